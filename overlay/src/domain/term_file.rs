//! File of the election's state: the highest term used, and the number of starts of the daemon.
//!
//! Rule: it is replaced atomically, and synced before the write is reported; a file that cannot be read
//! prevents the start, since a lost term could be used twice.

use crate::election::Persisted;
use crate::whole_file;
use daemon::state_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use wire::codec;
use wire::membership::Term;
use wire::version::{ELECTION, Trailing};

const NAME: &str = "election";

/// Longest file that is read, in bytes.
const LEN_MAX_BYTES: u64 = 256;

#[derive(Serialize, Deserialize)]
struct Stored {
    term: Term,
    incarnation: u64,
    version: Trailing,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the file system failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Disk {
        /// The operation: "read" or "write".
        what: &'static str,
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file does not hold a valid term.
    #[error(
        "{} does not hold a term ({reason}); a term may not be forgotten while others remember it: put the file \
         back from a copy, or join the domain again with a new key",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        /// Why its content is refused.
        reason: String,
    },
}

/// Load the state from `folder`; the default if nothing is stored.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn load(folder: &Path) -> Result<Persisted, Error> {
    let path = folder.join(NAME);
    let read = state_file::read(&path, LEN_MAX_BYTES);
    let read = read.map_err(|source| Error::Disk { what: "read", path: path.clone(), source })?;
    let Some(bytes) = read else { return Ok(Persisted::default()) };
    match codec::decode::<Stored>(&bytes) {
        Ok(Some((Stored { term, incarnation, version: Trailing(found) }, _))) => {
            if !ELECTION.reads(found) {
                let expected = ELECTION.expected();
                let reason = format!("it has version {found}, this program reads {expected}");
                return Err(Error::Damaged { path, reason });
            }
            Ok(Persisted { term, incarnation })
        }
        Ok(None) => Err(Error::Damaged { path, reason: "it is cut short".to_owned() }),
        Err(error) => Err(Error::Damaged { path, reason: error.to_string() }),
    }
}

/// Store the state in `folder`; it is on disk when this returns.
///
/// # Errors
/// If the write fails; the previous state is then still stored.
pub(super) fn store(folder: &Path, persisted: Persisted) -> Result<(), Error> {
    let Persisted { term, incarnation } = persisted;
    let mut bytes = Vec::new();
    codec::encode(&Stored { term, incarnation, version: Trailing(ELECTION.written) }, &mut bytes)
        .expect("two numbers fit into a frame");
    let path = folder.join(NAME);
    whole_file::replace(&path, &bytes).map_err(|source| Error::Disk { what: "write", path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_outlives_a_restart_and_a_damaged_one_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(load(folder.path()).expect("nothing yet"), Persisted::default());
        let persisted = Persisted { term: Term(77), incarnation: 3 };
        store(folder.path(), persisted).expect("stored");
        assert_eq!(load(folder.path()).expect("stored"), persisted);
        let path = folder.path().join(NAME);
        let mut bytes = std::fs::read(&path).expect("there");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        assert!(matches!(load(folder.path()), Err(Error::Damaged { .. })));
        std::fs::write(&path, b"").expect("written");
        assert!(matches!(load(folder.path()), Err(Error::Damaged { .. })));
    }
}
