//! Atomic replacement of files: what daemons store in their state folders.
//!
//! Rule: content and name are on disk before a function here returns; a reader sees the old content or the
//! new one, never a mix. After an error, the old content remains, and no temporary file is left. Each file
//! has mode 0600, whatever it had before, and replaces a symbolic link without following it. The caller makes
//! sure that no other process writes the same file at the same time.
//! Not here: the contents, required owners (`identity`).

use daemon::state_file;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Permissions of the files: only the owner, whose commands and daemon use the folder, may read them.
const MODE: u32 = 0o600;

/// Replace the content of a file, or create it.
///
/// # Errors
/// The error of the system; the file is unchanged then.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(content))
}

/// As [`replace`], with content that `write` writes in parts.
///
/// # Errors
/// The error of the system or of `write`; the file is unchanged then.
pub fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let beside = beside(path, "new");
    // A file left by a crash may have any mode.
    remove(&beside)?;
    write_new(&beside, write)?;
    fs::rename(&beside, path).inspect_err(|_| forget(&beside))?;
    sync_folder(path)
}

/// Create a file with this content. Returns `false` if it exists already; its content is unchanged then.
/// Concurrent callers must use different marks.
///
/// # Errors
/// The error of the system.
pub fn create(path: &Path, content: &[u8], mark: u64) -> io::Result<bool> {
    let beside = beside(path, &format!("{mark:016x}.new"));
    write_new(&beside, |file| file.write_all(content))?;
    // A hard link fails if the file exists; a rename would replace it.
    let linked = fs::hard_link(&beside, path);
    remove(&beside)?;
    match linked {
        Ok(()) => sync_folder(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sync the folder of this file: without this, a power failure may lose a new name, though not the content.
///
/// # Errors
/// The error of the system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = state_file::open(path, OpenOptions::new().write(true).create_new(true).mode(MODE))?;
    write(&mut file).and_then(|()| file.sync_all()).inspect_err(|_| forget(path))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// An incomplete file is useless; the caller already has the error that matters.
fn forget(path: &Path) {
    let _ = fs::remove_file(path);
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn left(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_is_replaced_whole_whatever_a_crash_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        for content in [b"one".as_slice(), b"two"] {
            fs::write(folder.path().join(".a.new"), b"left by a crash, and longer").expect("written");
            replace(&path, content).expect("replaced");
            assert_eq!(fs::read(&path).expect("there"), content);
            assert_eq!(left(folder.path()), 1, "nothing is left beside it");
        }
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        replace(&path, b"old").expect("written");
        let failed = replace_with(&path, |file| {
            file.write_all(b"ne")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("full").kind(), io::ErrorKind::StorageFull);
        assert_eq!((fs::read(&path).expect("there"), left(folder.path())), (b"old".to_vec(), 1));
        fs::create_dir(folder.path().join("b")).expect("made");
        assert!(replace(&folder.path().join("b"), b"no folder").is_err());
        assert_eq!(left(folder.path()), 2);
    }

    #[test]
    fn a_first_content_is_the_only_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        assert!(create(&path, b"first", 1).expect("created"));
        assert!(!create(&path, b"second", 2).expect("not created"));
        assert_eq!((fs::read(&path).expect("there"), left(folder.path())), (b"first".to_vec(), 1));
    }
}
