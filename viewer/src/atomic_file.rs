//! Atomic replacement of a file: settings, pictures, tables, saved grids.
//!
//! Rule: a reader finds the previous content or the whole new one, and a failure leaves no temporary file.

use std::fs::Permissions;
use std::io::{Error, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Permissions of a new file, before the umask, as `std::fs::write` has them.
const MODE: u32 = 0o666;

/// Write a file under a temporary name in the same folder, and rename it.
///
/// # Errors
/// If it cannot be written; an existing file is unchanged then.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist(path).map(drop).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_with_the_permissions_of_a_new_one_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let [file, plain] = ["map.csv", "plain"].map(|name| folder.path().join(name));
        fs::write(&plain, "").unwrap();
        for content in ["one", "two"] {
            replace(&file, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&file), mode(&plain));
        assert!(replace(folder.path(), b"three").is_err(), "a folder is no file");
        assert!(replace(&folder.path().join("none/map.csv"), b"three").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
