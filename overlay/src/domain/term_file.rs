//! The election's memory: the highest term used and how often the daemon started, on disk.
//!
//! Rule: replaced whole, synced before it is said to be written; a file that cannot be read stops the start,
//! since a forgotten term could be used twice.

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

/// Longest such file, in bytes.
const LEN_MAX_BYTES: u64 = 256;

#[derive(Serialize, Deserialize)]
struct Stored {
    term: Term,
    incarnation: u64,
    version: Trailing,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Disk {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds something else.
    #[error(
        "{} does not hold a term ({reason}); a term may not be forgotten while others remember it: put the file \
         back from a copy, or join the domain again with a new key",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// What was stored in `folder`; the beginning if nothing was.
///
/// # Errors
/// If the file is there and cannot be read.
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

/// Store it in `folder`; on disk when this returns.
///
/// # Errors
/// If the disk refuses; what was stored before is then still there.
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
    fn a_term_outlives_a_restart_and_a_damaged_one_is_told() {
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
