//! Key for commands to modules: a random text in a file that only the sensor's user and root can read. A
//! client that has it may start and stop modules.
//!
//! ```text
//! STATE/modules.key     32 hexadecimal digits, mode 0600
//! ```
//! Rules: a new key is drawn at each start, so that a leaked one expires with the next start; the file is
//! replaced atomically. Every user of the host may query the daemon, but only users who could start and stop
//! the daemon may start and stop what it runs.
//! Not here: where the key is required (`query::modules`), which program reads the file (the command line).

use daemon::{state_file, state_folder};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Name of the file in the state folder.
pub(super) const FILE: &str = "modules.key";

/// The key as hexadecimal text.
pub(super) struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Draws a new key and writes it to `file`.
    pub(super) fn make(file: &Path) -> io::Result<Key> {
        let mut drawn = [0; 16];
        getrandom::fill(&mut drawn).map_err(io::Error::other)?;
        let key = Key(format!("{:032x}", u128::from_ne_bytes(drawn)));
        if let Some(folder) = file.parent() {
            state_folder::prepare_below(folder)?;
        }
        let fresh = file.with_extension("key.new");
        // Left over from an interrupted start.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut writing = state_file::open(&fresh, options.write(true).create_new(true).mode(0o600))?;
        writeln!(writing, "{}", key.0)?;
        fs::rename(&fresh, file)?;
        Ok(key)
    }

    /// Compares with the key, in a time that does not depend on how much is right.
    pub(super) fn is(&self, text: &str) -> bool {
        let differs = self.0.bytes().zip(text.bytes()).fold(0, |differs, (own, text)| differs | (own ^ text));
        text.len() == self.0.len() && differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_new_each_time_and_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state").join(FILE);
        let read = || fs::read_to_string(&file).expect("written").trim().to_owned();
        let first = Key::make(&file).expect("made");
        let text = read();
        assert!(first.is(&text) && text.len() == 32);
        for wrong in ["", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "x")] {
            assert!(!first.is(wrong), "{wrong}");
        }
        fs::write(file.with_extension("key.new"), "left").expect("written");
        let second = Key::make(&file).expect("made");
        assert!(second.is(&read()) && !second.is(&text));
        assert_eq!(fs::metadata(&file).expect("written").permissions().mode() & 0o777, 0o600);
        let target = folder.path().join("target");
        fs::write(&target, "untouched").expect("written");
        for link in [file.clone(), file.with_extension("key.new")] {
            let _absent = fs::remove_file(&link);
            std::os::unix::fs::symlink(&target, &link).expect("a link");
            Key::make(&file).expect("made in the place of the link");
            assert_eq!(fs::read_to_string(&target).expect("there"), "untouched");
        }
    }
}
