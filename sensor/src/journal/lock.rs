//! The lock of the state directory: one sensor at a time, and a second one learns who the first is.
//!
//! An advisory lock on `STATE/lock`, dropped by the kernel however the process ends. The file's text says
//! who holds it; it is never trusted, only shown.

use super::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wire::time::Time;

/// Most of the holder's text that is shown, in bytes: the file may hold anything.
const HOLDER_LEN_MAX_BYTES: u64 = 512;

/// The lock, held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Take the lock of a state directory, which must exist.
    ///
    /// # Errors
    /// [`Error::Held`] if another process has it, naming that process; [`Error::Disk`] if the file
    /// cannot be made.
    pub fn take(directory: &Path, since: Time) -> Result<Lock, Error> {
        let path = directory.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(Error::disk(format!("open {}", path.display())))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(Error::disk(format!("lock {}", path.display()))(error.into()));
            }
            let mut holder = String::new();
            let _unreadable = file.take(HOLDER_LEN_MAX_BYTES).read_to_string(&mut holder);
            let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
            return Err(Error::Held {
                directory: directory.display().to_string(),
                holder: holder.trim().to_owned(),
            });
        }
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let text = format!(
            "process {}, since {:.0} (seconds since 1970), command {command}\n",
            std::process::id(),
            since.secs_f64()
        );
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()));
        // A full disk must not keep the sensor from starting: the lock is held all the same.
        if let Err(error) = written {
            tracing::warn!(%error, path = %path.display(), "the lock is held, but its text could not be written");
        }
        Ok(Lock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path(), Time::from_micros(7_000_000)).unwrap();
        let refused = Lock::take(directory.path(), Time::default()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}, since 7 ", std::process::id())), "{refused}");
        drop(first);
        Lock::take(directory.path(), Time::default()).unwrap();
    }
}
