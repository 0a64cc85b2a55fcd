//! Lock of the state directory: one sensor at a time; a second sensor reports which process holds the lock.
//!
//! An advisory lock on `STATE/lock`. The kernel releases it however the process ends. The text of the file
//! names the holder; it is only displayed, never trusted.

use daemon::state_file;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use wire::time::Time;

/// Limit on the displayed text of the holder, in bytes: the file may contain anything.
const HOLDER_LEN_MAX_BYTES: u64 = 512;

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process holds the state directory.
    #[error("the state directory {directory} is held by {holder}; stop it or choose another with --state")]
    Held {
        directory: String,
        /// Process id, start time and command of the holder.
        holder: String,
    },
    /// The operating system refused the operation.
    #[error("cannot {what}: {source}; check the permissions of the state directory")]
    Refused {
        /// The failed operation, with the path.
        what: String,
        source: std::io::Error,
    },
}

/// The lock; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Take the lock of a state directory, which must exist.
    ///
    /// # Errors
    /// [`Error::Held`] if another process holds it, with the name of that process; [`Error::Refused`] if the
    /// file cannot be opened or locked.
    pub fn take(directory: &Path, now: Time) -> Result<Lock, Error> {
        let path = directory.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let refused =
            |what: &str, source| Error::Refused { what: format!("{what} {}", path.display()), source };
        let mut file = state_file::open(&path, &mut options).map_err(|error| refused("open", error))?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(refused("lock", error.into()));
            }
            let mut text = String::new();
            let _unreadable = file.take(HOLDER_LEN_MAX_BYTES).read_to_string(&mut text);
            return Err(Error::Held {
                directory: directory.display().to_string(),
                holder: holder(&text, now),
            });
        }
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let text = format!("{}\n{}\n{command}\n", std::process::id(), now.micros());
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()));
        // A full disk must not prevent the start of the sensor: the lock holds without its text.
        if let Err(error) = written {
            tracing::warn!(%error, path = %path.display(), "the lock is held, but its text could not be written");
        }
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    /// Release it by name: closing the file alone would leave it to a child process between its fork and its
    /// exec, which has the file too (flock(2)).
    fn drop(&mut self) {
        // An error means that the kernel releases it with the last descriptor.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Describes the holder from the text of the file: process id, start time in microseconds since 1970,
/// command.
fn holder(text: &str, now: Time) -> String {
    let mut lines = text.lines();
    let pid = lines.next().and_then(|pid| pid.parse::<u32>().ok());
    let since = lines.next().and_then(|since| since.parse().ok()).map(Time::from_micros);
    let Some((pid, since)) = pid.zip(since) else { return "another process".to_owned() };
    let command = lines.next().unwrap_or_default();
    let moment = jiff::Timestamp::from_microsecond(since.micros()).unwrap_or_default();
    let moment = moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z");
    let secs = now.micros().saturating_sub(since.micros()) / 1_000_000;
    format!("process {pid} ({command}), since {moment} ({})", ago(secs))
}

fn ago(secs: i64) -> String {
    match secs {
        // The clock was set back.
        ..0 => "by a clock that was set back since".to_owned(),
        0..120 => format!("for {secs} s"),
        120..7200 => format!("for {} min", secs / 60),
        7200..172_800 => format!("for {} h", secs / 3600),
        172_800.. => format!("for {} days", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_learns_who_the_first_is_and_since_when() {
        let directory = tempfile::tempdir().unwrap();
        let micros = |secs: i64| Time::from_micros(secs * 1_000_000);
        let first = Lock::take(directory.path(), micros(1_800_000_000)).unwrap();
        let refused = |now| Lock::take(directory.path(), now).unwrap_err().to_string();
        let text = refused(micros(1_800_000_000 + 600));
        assert!(text.contains(&format!("process {} (", std::process::id())), "{text}");
        let local =
            jiff::Timestamp::from_second(1_800_000_000).unwrap().to_zoned(jiff::tz::TimeZone::system());
        assert!(text.contains(&local.strftime(", since %Y-%m-%d %H:%M:%S").to_string()), "{text}");
        assert!(text.contains("(for 10 min); stop it"), "{text}");
        assert!(refused(micros(1_800_000_005)).contains("(for 5 s)"));
        assert!(refused(micros(1_800_200_000)).contains("(for 2 days)"));
        assert!(refused(micros(1)).contains("set back"));
        std::fs::write(directory.path().join("lock"), "\0\nnothing of ours").unwrap();
        assert!(refused(micros(1)).contains("held by another process;"), "{}", refused(micros(1)));
        drop(first);
        Lock::take(directory.path(), Time::default()).unwrap();
    }

    #[test]
    fn a_released_lock_is_free_though_a_child_still_has_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let lock = Lock::take(directory.path(), Time::default()).unwrap();
        let inherited = lock.file.try_clone().unwrap();
        drop(lock);
        Lock::take(directory.path(), Time::default()).unwrap();
        drop(inherited);
    }
}
