//! File with the domains that commands admit; the directory reloads it when it changes.
//!
//! Rule: a new version is written to a temporary file and renamed over the old one, so a reader sees either
//! version whole. If the file cannot be read, the previous list stays in force.
//! Not here: the format of the lines (`admission`).

use crate::admission::{self, List};
use daemon::state_file;
use overlay::whole_file;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Name of the file in the state folder.
pub const FILE_NAME: &str = "admitted";

/// Why the list could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system returned an error.
    #[error("cannot {action} {}: {error}", path.display())]
    File {
        /// Failed operation.
        action: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// The file has an invalid line.
    #[error("{}: {error}", path.display())]
    List {
        /// Path of the file.
        path: PathBuf,
        error: admission::Error,
    },
}

/// Read the list in the folder `state`. Returns an empty list if there is no file.
///
/// # Errors
/// If the file cannot be read, or a line is invalid.
pub fn read(state: &Path) -> Result<List, Error> {
    let path = state.join(FILE_NAME);
    let text = state_file::read(&path, admission::LIST_LEN_MAX_BYTES as u64)
        .and_then(|found| String::from_utf8(found.unwrap_or_default()).map_err(io::Error::other))
        .map_err(|error| Error::File { action: "read", path: path.clone(), error })?;
    List::parse(&text).map_err(|error| Error::List { path, error })
}

/// Write the list to the folder `state`, completely or not at all.
///
/// # Errors
/// If the file cannot be written; the previous file is then unchanged.
pub fn write(state: &Path, list: &List) -> Result<(), Error> {
    let path = state.join(FILE_NAME);
    let written = whole_file::replace(&path, list.to_text().as_bytes());
    written.map_err(|error| Error::File { action: "write", path, error })
}

/// Watches whether the file was replaced.
#[derive(Debug)]
pub(crate) struct Watch {
    state: PathBuf,
    seen: Option<Stamp>,
}

/// Inode, length and modification time: they differ after the file was replaced.
type Stamp = (u64, u64, i64, i64);

impl Watch {
    pub(crate) fn start(state: &Path) -> Result<(Watch, List), Error> {
        let seen = stamp(state)?;
        Ok((Watch { state: state.to_owned(), seen }, read(state)?))
    }

    /// The new list if the file changed since the last call. An invalid file is reported once.
    pub(crate) fn look(&mut self) -> Result<Option<List>, Error> {
        let found = stamp(&self.state)?;
        if found == self.seen {
            return Ok(None);
        }
        self.seen = found;
        read(&self.state).map(Some)
    }
}

fn stamp(state: &Path) -> Result<Option<Stamp>, Error> {
    let path = state.join(FILE_NAME);
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(stamp_of(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::File { action: "look at", path, error }),
    }
}

fn stamp_of(found: &Metadata) -> Stamp {
    (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ROOT, domain};
    use std::fs;

    #[test]
    fn a_change_is_seen_once_and_a_wrong_list_is_refused() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let (mut watch, list) = Watch::start(folder.path()).expect("none is no error");
        assert_eq!((list, watch.look().expect("none")), (List::default(), None));
        let mut list = List::default();
        list.add(domain("a"), ROOT).expect("one");
        write(folder.path(), &list).expect("written");
        assert_eq!(watch.look().expect("readable"), Some(list.clone()));
        assert_eq!(watch.look().expect("readable"), None);
        fs::write(folder.path().join(FILE_NAME), "a\n").expect("written");
        let error = watch.look().expect_err("no key").to_string();
        assert!(error.contains("admitted: line 1: \"a\""), "{error}");
        assert_eq!(watch.look().expect("reported once"), None);
        fs::remove_file(folder.path().join(FILE_NAME)).expect("removed");
        assert_eq!(watch.look().expect("none"), Some(List::default()));
    }
}
