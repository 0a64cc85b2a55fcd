//! The secret of an account, read from a file.
//!
//! Rule: the file has mode 0600; a secret is never taken from the command line, where other users of the host
//! could see it.

use super::safe_file;
use std::path::Path;

/// Longest file with a secret, in bytes.
const SECRET_LEN_MAX_BYTES: usize = 1 << 10;

/// Read the secret of an account from a private file; white space around it is removed.
///
/// # Errors
/// If there is none, others may read it, or it is too long or not text; the message says what to do.
pub fn read(file: &Path) -> Result<String, String> {
    let found = safe_file::read_named(file).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| {
        format!("expected a file with the secret, of mode 0600, found no file {}", file.display())
    })?;
    if bytes.len() > SECRET_LEN_MAX_BYTES {
        let (most, len) = (SECRET_LEN_MAX_BYTES, bytes.len());
        return Err(format!("{}: expected a secret of at most {most} bytes, found {len}", file.display()));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("{} is no text: {error}", file.display()))?;
    match text.trim() {
        "" => Err(format!("{}: expected a secret, found nothing in it", file.display())),
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("secret");
        let refused = || read(&file).expect_err("refused");
        assert!(refused().contains("found no file"));
        std::fs::write(&file, "abc\n").expect("written");
        let give =
            |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("given");
        give(0o644);
        assert!(refused().contains("chmod 600"));
        give(0o600);
        assert_eq!(read(&file), Ok("abc".to_owned()));
        std::fs::write(&file, "a".repeat(2_000)).expect("written");
        assert!(refused().contains("at most 1024 bytes, found 2000"));
        std::fs::write(&file, " \n").expect("written");
        assert!(refused().contains("expected a secret, found nothing"));
    }
}
