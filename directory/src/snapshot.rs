//! Snapshot of the table on disk, for the next start of the directory.
//!
//! A file of frames ([`wire::codec`]): a header, chunks of records, a trailer with their number. It is
//! written to a temporary file and renamed, so a crash leaves the old or the new one. Restored records are
//! *last seen*, never live: leases do not outlive the process.
//! Rule: a file that is damaged or of another version is not interpreted; it is moved aside for inspection,
//! and the directory starts empty.

use crate::registry::{DOMAINS_MAX, Registry};
use crate::stored_domain::StoredDomain;
use daemon::state_file;
use overlay::whole_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use wire::codec;
use wire::time::{Moment, Time};
use wire::version::DIRECTORY_SNAPSHOT;

/// Name of the file in the state folder.
pub const FILE_NAME: &str = "directory.snapshot";

/// Start of the file, so that another file of frames is not mistaken for a snapshot.
const PURPOSE: &str = "visperf directory";

/// Domains in a frame: even with long revocation lists a frame stays below its length limit.
const CHUNK_LEN: usize = 4;

/// Length of one read in bytes.
const READ_LEN_BYTES: usize = 64 << 10;

/// The table at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was taken, by the calendar clock of this host.
    pub taken: Time,
    /// Saved state of every domain.
    pub kept: Vec<StoredDomain>,
}

#[derive(Serialize, Deserialize)]
enum Part {
    Head { purpose: String, version: u16, taken: Time },
    Chunk(Vec<StoredDomain>),
    End { records: u64 },
}

/// Why a snapshot could not be written or read.
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
    /// The file was not written by this program.
    #[error("{} is not a whole snapshot of version {}: {reason}", path.display(), DIRECTORY_SNAPSHOT.expected())]
    Unreadable {
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
}

impl Snapshot {
    /// Save the content of `registry` at `now`; `taken` is the same moment in calendar time.
    #[must_use]
    pub fn of(registry: &Registry, now: Moment, taken: Time) -> Snapshot {
        Snapshot { taken, kept: registry.to_keep(now).collect() }
    }

    /// Restore into `registry` as last seen, at `now`, which is `calendar` in calendar time. Returns how many
    /// domains were refused.
    pub fn take_back(self, registry: &mut Registry, now: Moment, calendar: Time) -> usize {
        // The calendar is the only clock that both runs share. The age is displayed, not compared between
        // hosts.
        let since = calendar.since(self.taken);
        self.kept.into_iter().filter_map(|kept| registry.take_back(kept, since, now).err()).count()
    }

    /// Write the snapshot to `path`, completely or not at all; it is on disk when this returns.
    ///
    /// # Errors
    /// If the file cannot be written; the previous file is then unchanged.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let written = whole_file::replace_with(path, |file| self.write_frames(file));
        written.map_err(|error| Error::File { action: "write", path: path.to_owned(), error })
    }

    fn write_frames(&self, file: &mut File) -> io::Result<()> {
        let mut file = BufWriter::new(file);
        let mut frame = Vec::new();
        let mut put = |part: &Part| {
            frame.clear();
            codec::encode(part, &mut frame).map_err(io::Error::other)?;
            file.write_all(&frame)
        };
        put(&Part::Head {
            purpose: PURPOSE.to_owned(),
            version: DIRECTORY_SNAPSHOT.written,
            taken: self.taken,
        })?;
        for chunk in self.kept.chunks(CHUNK_LEN) {
            put(&Part::Chunk(chunk.to_vec()))?;
        }
        put(&Part::End { records: self.kept.len() as u64 })?;
        file.flush()
    }

    /// Read the snapshot at `path`; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is not a complete snapshot of this version.
    pub fn read(path: &Path) -> Result<Option<Snapshot>, Error> {
        let file = match state_file::open_to_read(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::File { action: "open", path: path.to_owned(), error }),
        };
        let mut frames = Frames { file, path, bytes: Vec::new(), at: 0 };
        let taken = match frames.next()? {
            Part::Head { purpose, version, taken }
                if purpose == PURPOSE && DIRECTORY_SNAPSHOT.reads(version) =>
            {
                taken
            }
            Part::Head { purpose, version, .. } => {
                return Err(frames.refuse(&format!("it says {purpose:?}, version {version}")));
            }
            Part::Chunk(_) | Part::End { .. } => return Err(frames.refuse("it has no head")),
        };
        let mut kept = Vec::new();
        loop {
            match frames.next()? {
                Part::Head { .. } => return Err(frames.refuse("it has two heads")),
                Part::Chunk(more) if kept.len() + more.len() > DOMAINS_MAX => {
                    return Err(frames.refuse(&format!("it has more than {DOMAINS_MAX} records")));
                }
                Part::Chunk(more) => kept.extend(more),
                Part::End { records } if records == kept.len() as u64 => {
                    return Ok(Some(Snapshot { taken, kept }));
                }
                Part::End { records } => {
                    let found = kept.len();
                    return Err(frames.refuse(&format!("it has {found} of {records} records")));
                }
            }
        }
    }
}

/// Rename the file at `path` for inspection, replacing an earlier one. Returns the new name.
///
/// # Errors
/// If the file cannot be renamed; it is then unchanged.
pub fn move_aside(path: &Path) -> Result<PathBuf, Error> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".unreadable");
    let aside = PathBuf::from(aside);
    match fs::rename(path, &aside) {
        Ok(()) => Ok(aside),
        Err(error) => Err(Error::File { action: "move aside", path: path.to_owned(), error }),
    }
}

/// Reader of the frames of a file, one at a time in memory.
struct Frames<'p> {
    file: File,
    path: &'p Path,
    bytes: Vec<u8>,
    at: usize,
}

impl Frames<'_> {
    fn next(&mut self) -> Result<Part, Error> {
        loop {
            match codec::decode::<Part>(&self.bytes[self.at..]) {
                Ok(Some((part, len_bytes))) => {
                    self.at += len_bytes;
                    return Ok(part);
                }
                Ok(None) => self.fill()?,
                Err(error) => return Err(self.refuse(&error.to_string())),
            }
        }
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let held = self.bytes.len();
        self.bytes.resize(held + READ_LEN_BYTES, 0);
        let read = self.file.read(&mut self.bytes[held..]).map_err(|error| Error::File {
            action: "read",
            path: self.path.to_owned(),
            error,
        })?;
        self.bytes.truncate(held + read);
        if read == 0 { Err(self.refuse("it ends early")) } else { Ok(()) }
    }

    fn refuse(&self, reason: &str) -> Error {
        Error::Unreadable { path: self.path.to_owned(), reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{leave, statement, whole};
    use std::time::Duration;

    fn snapshot(records: u32) -> Snapshot {
        let mut registry = Registry::new(2000);
        for n in 0..records {
            let name = format!("d{n}");
            if n % 3 == 0 {
                registry
                    .leave(leave(&name, 1, 3, n.into()), Duration::ZERO, Moment::default())
                    .expect("place");
            } else {
                let stated = statement(&name, 1, 3, n.into(), whole());
                registry.register(stated, Moment::default()).expect("place");
            }
        }
        let now = Moment(Duration::from_millis(1500));
        Snapshot::of(&registry, now, Time::from_micros(1_000_000))
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join(FILE_NAME);
        assert_eq!(Snapshot::read(&path).expect("none is no error"), None);
        for records in [0, 1, 1000] {
            snapshot(records).write(&path).expect("written");
            assert_eq!(Snapshot::read(&path).expect("readable"), Some(snapshot(records)));
        }
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_cut_or_flipped_file_is_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join(FILE_NAME);
        snapshot(2).write(&path).expect("written");
        let good = fs::read(&path).expect("readable");
        for cut in 0..good.len() {
            fs::write(&path, &good[..cut]).expect("written");
            assert!(matches!(Snapshot::read(&path), Err(Error::Unreadable { .. })), "cut at {cut}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).expect("written");
            assert!(matches!(Snapshot::read(&path), Err(Error::Unreadable { .. })), "flipped at {at}");
        }
    }

    #[test]
    fn another_version_is_refused_and_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join(FILE_NAME);
        let mut bytes = Vec::new();
        let head = Part::Head { purpose: PURPOSE.to_owned(), version: 9, taken: Time::default() };
        codec::encode(&head, &mut bytes).expect("short");
        fs::write(&path, &bytes).expect("written");
        let error = Snapshot::read(&path).expect_err("another version").to_string();
        assert!(error.ends_with("version 2: it says \"visperf directory\", version 9"), "{error}");
        let aside = move_aside(&path).expect("moved");
        assert!(aside.exists() && !path.exists());
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join(FILE_NAME);
        snapshot(2).write(&path).expect("written");
        fs::create_dir(dir.path().join(format!(".{FILE_NAME}.new"))).expect("in the way");
        assert!(matches!(snapshot(5).write(&path), Err(Error::File { action: "write", .. })));
        assert_eq!(Snapshot::read(&path).expect("readable"), Some(snapshot(2)));
    }
}
