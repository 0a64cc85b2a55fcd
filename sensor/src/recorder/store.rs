//! Folder of recordings: `ID.vpr` are complete recordings, `ID.part` those under way.
//!
//! Shell. Rules: a recording gets its final name only when all of it is on disk; beyond the budget or the
//! allowed number the oldest are deleted, ordered ones first while they take more than half; a file that a
//! crash left half-written is completed at the next start with what can be read of it.
//! Not here: the format of the file (`wire::recording`), when something is recorded (`worker`).

use compact_str::{CompactString, format_compact};
use daemon::{state_file, state_folder};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wire::codec;
use wire::recording::{self, Block, End, Header, LEN_MAX_BYTES, Recording};
use wire::time::Time;

/// Most recordings stored, so that a list of them fits in an answer and the folder stays small.
pub const COUNT_MAX: usize = 1000;
/// Length of the start of a file that must contain the header, in bytes.
const HEADER_LEN_MAX_BYTES: u64 = 64 << 10;

/// Why a recording cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {what} {path}: {source}", path = .path.display())]
    Refused {
        /// The operation that failed.
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The file has an invalid format.
    #[error("{path}: {source}", path = .path.display())]
    Form {
        path: PathBuf,
        /// The defect.
        source: recording::Error,
    },
    #[error("the sensor is ending")]
    Ended,
    /// The recording exceeds the longest allowed.
    #[error("{path} is longer than {LEN_MAX_BYTES} bytes; choose a shorter window", path = .path.display())]
    TooLong {
        /// Path of the file.
        path: PathBuf,
    },
}

/// One recording in the folder.
#[derive(Clone, Debug)]
pub struct StoredRecording {
    pub header: Header,
    /// How it ended; `None` while it is under way.
    pub end: Option<End>,
    /// Size of its file, in bytes.
    pub len_bytes: u64,
}

/// The folder with its list of recordings.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    budget_bytes: u64,
    recordings: BTreeMap<CompactString, StoredRecording>,
    deleted_total: u64,
}

/// A recording under way. If it is dropped without [`Writing::finish`], the next start completes it.
#[derive(Debug)]
pub struct Writing {
    header: Header,
    path: PathBuf,
    file: File,
    len_bytes: u64,
}

impl Store {
    /// Opens the folder, and creates it if necessary. Returns too, in sentences, what a crash left and what
    /// cannot be read.
    ///
    /// # Errors
    /// If the folder cannot be created or listed.
    pub fn open(folder: &Path, budget_bytes: u64) -> Result<(Store, Vec<String>), Error> {
        state_folder::prepare_below(folder).map_err(|error| refused("use", folder)(error.into()))?;
        let mut store =
            Store { folder: folder.to_owned(), budget_bytes, recordings: BTreeMap::new(), deleted_total: 0 };
        let mut notices = Vec::new();
        let listed = fs::read_dir(folder).map_err(refused("list", folder))?;
        for path in listed.filter_map(|entry| Some(entry.ok()?.path())) {
            let is = |ending: &str| path.extension().is_some_and(|known| known == ending);
            let recording = match (is("part"), is("vpr")) {
                (true, _) => complete(&path).inspect(|recording| {
                    notices.push(format!(
                        "recording {} was cut short by the end of the sensor",
                        recording.header.id
                    ));
                }),
                (_, true) => read_header(&path),
                _ => continue,
            };
            match recording {
                Ok(recording) => drop(store.recordings.insert(recording.header.id.clone(), recording)),
                Err(error) => notices.push(format!("a recording cannot be read: {error}")),
            }
        }
        store.retain();
        Ok((store, notices))
    }

    /// A free id, from the date of the cause.
    #[must_use]
    pub fn free_id(&self, at: Time) -> CompactString {
        let date = jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default();
        let id = format_compact!("{}", date.strftime("%Y%m%dT%H%M%SZ"));
        let more = (2..).map(|number: u32| format_compact!("{id}-{number}"));
        let free = std::iter::once(id.clone()).chain(more).find(|id| !self.recordings.contains_key(id));
        free.expect("numbers do not end")
    }

    /// All recordings, the oldest first.
    pub fn list(&self) -> impl DoubleEndedIterator<Item = &StoredRecording> {
        self.recordings.values()
    }

    /// Recordings deleted to keep the limits, since the start.
    #[must_use]
    pub fn deleted_total(&self) -> u64 {
        self.deleted_total
    }

    /// The recording with this id, and the path of its file.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<(&StoredRecording, PathBuf)> {
        let recording = self.recordings.get(id)?;
        Some((recording, self.path(id, if recording.end.is_some() { "vpr" } else { "part" })))
    }

    /// Adds a recording that starts to the list; returns the path of its file.
    #[must_use]
    pub fn announce(&mut self, header: &Header) -> PathBuf {
        let recording = StoredRecording { header: header.clone(), end: None, len_bytes: 0 };
        self.recordings.insert(header.id.clone(), recording);
        self.path(&header.id, "part")
    }

    /// Updates the list when a recording has ended; `None` removes it. Then deletes the oldest others beyond
    /// the limits.
    pub fn ended(&mut self, id: &str, recording: Option<StoredRecording>) {
        match recording {
            Some(recording) => drop(self.recordings.insert(id.into(), recording)),
            None => drop(self.recordings.remove(id)),
        }
        self.retain();
    }

    fn path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }

    fn retain(&mut self) {
        while let Some(id) = next_to_go(&self.recordings, self.budget_bytes) {
            self.recordings.remove(&id);
            self.deleted_total += 1;
            let path = self.path(&id, "vpr");
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!("cannot delete the recording {}: {error}", path.display());
            }
        }
    }
}

/// The recording to delete next, if there are too many or they are too large. Recordings under way stay, and
/// at least one complete one. Any user may order recordings, so ordered ones must not displace those of
/// triggers: they go first while they take more than half, even the one just recorded.
fn next_to_go(
    recordings: &BTreeMap<CompactString, StoredRecording>,
    budget_bytes: u64,
) -> Option<CompactString> {
    let is_ordered = |recording: &StoredRecording| recording.header.cause.is_order();
    let bytes_of = |are_ordered: bool| -> u64 {
        recordings
            .values()
            .filter(|recording| is_ordered(recording) == are_ordered)
            .map(|recording| recording.len_bytes)
            .sum()
    };
    let (ordered, others) = (bytes_of(true), bytes_of(false));
    let ordered_count = recordings.values().filter(|recording| is_ordered(recording)).count();
    let is_too_large = ordered + others > budget_bytes;
    let are_too_many = recordings.len() > COUNT_MAX;
    if !is_too_large && !are_too_many {
        return None;
    }
    let orders_first =
        is_too_large && ordered > budget_bytes / 2 || are_too_many && ordered_count > COUNT_MAX / 2;
    let over = recordings.iter().filter(|(_, recording)| recording.end.is_some());
    let oldest = over.clone().next().filter(|_| over.clone().count() > 1)?;
    let ordered = over.clone().find(|(_, recording)| orders_first && is_ordered(recording));
    Some(ordered.unwrap_or(oldest).0.clone())
}

impl Writing {
    /// Creates the file that [`Store::announce`] named.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn begin(path: PathBuf, header: Header) -> Result<Writing, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = state_file::open(&path, &mut options).map_err(refused("make", &path))?;
        let mut out = Vec::new();
        let result = recording::begin(header.clone(), &mut out);
        let mut writing = Writing { header, path, file, len_bytes: 0 };
        result.map_err(|source| Error::Form { path: writing.path.clone(), source })?;
        writing.write(&out)?;
        Ok(writing)
    }

    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Appends a block.
    ///
    /// # Errors
    /// If it cannot be written; the file then ends with a torn block.
    pub fn put(&mut self, block: &Block) -> Result<(), Error> {
        let mut out = Vec::new();
        recording::put(block, &mut out).map_err(|source| Error::Form { path: self.path.clone(), source })?;
        self.write(&out)
    }

    /// Flushes what was appended to disk.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(refused("write", &self.path))
    }

    /// Appends the end, and gives the file its final name.
    ///
    /// # Errors
    /// If the system refuses; the next start then completes the file.
    pub fn finish(mut self, end: End) -> Result<StoredRecording, Error> {
        self.put(&Block::End(end))?;
        self.sync()?;
        name(&self.path)?;
        Ok(StoredRecording { header: self.header, end: Some(end), len_bytes: self.len_bytes })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.len_bytes += bytes.len() as u64;
        if self.len_bytes > LEN_MAX_BYTES {
            return Err(Error::TooLong { path: self.path.clone() });
        }
        self.file.write_all(bytes).map_err(refused("write", &self.path))
    }
}

/// Opens a file of the folder for reading. If it was under way when its path was requested, it may have its
/// final name now.
///
/// # Errors
/// If the system refuses.
pub fn open(path: &Path) -> io::Result<File> {
    match state_file::open_to_read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            state_file::open_to_read(&path.with_extension("vpr"))
        }
        opened => opened,
    }
}

/// Reads a file of the folder.
///
/// # Errors
/// If it cannot be read, is too long or is not a recording.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let mut bytes = Vec::new();
    let file = open(path).map_err(refused("open", path))?;
    file.take(LEN_MAX_BYTES + 1).read_to_end(&mut bytes).map_err(refused("read", path))?;
    if bytes.len() as u64 > LEN_MAX_BYTES {
        return Err(Error::TooLong { path: path.to_owned() });
    }
    Recording::read(&bytes).map_err(|source| Error::Form { path: path.to_owned(), source })
}

/// Reads the header of a file, and how it ended.
fn read_header(path: &Path) -> Result<StoredRecording, Error> {
    let mut file = state_file::open_to_read(path).map_err(refused("open", path))?;
    let mut begin = Vec::new();
    Read::by_ref(&mut file)
        .take(HEADER_LEN_MAX_BYTES)
        .read_to_end(&mut begin)
        .map_err(refused("read", path))?;
    let header = recording::header(&begin);
    let (header, _) = header.map_err(|source| Error::Form { path: path.to_owned(), source })?;
    let len_bytes = file.metadata().map_err(refused("read", path))?.len();
    let mut last = Vec::new();
    codec::encode(&Block::End(End::Whole), &mut last).expect("an end is short");
    let read = file
        .seek(SeekFrom::Start(len_bytes.saturating_sub(last.len() as u64)))
        .and_then(|_| file.read_exact(&mut last));
    read.map_err(refused("read", path))?;
    // A file with a final name but another end was changed by another program, or damaged: what there is can
    // be read.
    let end = match codec::decode(&last) {
        Ok(Some((Block::End(end), _))) => end,
        _ => End::Crashed,
    };
    Ok(StoredRecording { header, end: Some(end), len_bytes })
}

/// Completes a file that a crash left, without its torn block.
fn complete(path: &Path) -> Result<StoredRecording, Error> {
    let recording = read(path)?;
    let opened = state_file::open(path, OpenOptions::new().write(true));
    let mut file = opened.map_err(refused("open", path))?;
    let len = file.metadata().map_err(refused("read", path))?.len() - recording.damage.torn_bytes;
    let mut end = Vec::new();
    codec::encode(&Block::End(End::Crashed), &mut end).expect("an end is short");
    file.set_len(len)
        .and_then(|()| file.seek(SeekFrom::End(0)))
        .and_then(|_| file.write_all(&end))
        .and_then(|()| file.sync_data())
        .map_err(refused("complete", path))?;
    name(path)?;
    let len_bytes = len + end.len() as u64;
    Ok(StoredRecording { header: recording.header, end: Some(End::Crashed), len_bytes })
}

/// Gives a complete file its final name, durably.
fn name(path: &Path) -> Result<(), Error> {
    let named = path.with_extension("vpr");
    fs::rename(path, &named).map_err(refused("rename", path))?;
    let folder = named.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(refused("write", folder))
}

fn refused(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Refused { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::SensorKey;
    use wire::recording::Cause;

    fn recording(number: u32, trigger: &str, len_bytes: u64) -> (CompactString, StoredRecording) {
        let header = Header {
            id: format_compact!("{number:04}"),
            domain: "local".try_into().expect("a name"),
            host: "head".try_into().expect("a name"),
            sensor: SensorKey(1),
            cause: Cause { trigger: trigger.into(), ..Cause::default() },
            at_ns: 0,
            from_ns: 0,
            to_ns: 0,
            booted: Time::from_micros(1_790_000_000_000_000),
            hz: 1.0,
            source: "procfs".into(),
        };
        (header.id.clone(), StoredRecording { header, end: Some(End::Whole), len_bytes })
    }

    /// So many recordings of a trigger, then so many ordered ones, of these lengths.
    fn check(triggers: (u32, u64), orders: (u32, u64), expected: Option<&str>) {
        let of_triggers = (0..triggers.0).map(|number| recording(number, "failed", triggers.1));
        let ordered = (triggers.0..triggers.0 + orders.0).map(|number| recording(number, "", orders.1));
        let recordings = of_triggers.chain(ordered).collect();
        assert_eq!(next_to_go(&recordings, 1000).as_deref(), expected, "{triggers:?} {orders:?}");
    }

    #[test]
    fn orders_go_first_while_they_have_more_than_half_of_the_bytes_or_of_the_number() {
        check((10, 40), (10, 60), None);
        check((10, 40), (11, 60), Some("0010"));
        check((10, 60), (8, 60), Some("0000"));
        check((0, 60), (17, 60), Some("0000"));
        check((1, 600), (1, 501), Some("0001"));
        check((0, 0), (1, 2000), None);
        check((400, 0), (600, 0), None);
        check((400, 0), (601, 0), Some("0400"));
        check((600, 0), (401, 0), Some("0000"));
    }

    #[test]
    fn a_link_in_the_place_of_a_recording_is_not_followed() {
        let (folder, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let target = outside.path().join("target");
        fs::write(&target, "untouched").expect("written");
        let header = recording(1, "failed", 0).1.header;
        for name in ["0001.part", "0002.vpr"] {
            std::os::unix::fs::symlink(&target, folder.path().join(name)).expect("a link");
        }
        let (mut store, notes) = Store::open(folder.path(), 1 << 20).expect("opened");
        assert_eq!(
            notes.iter().filter(|note| note.contains("found a symbolic link")).count(),
            2,
            "{notes:?}"
        );
        assert!(Writing::begin(store.announce(&header), header).is_err());
        assert!(open(&folder.path().join("0002.part")).is_err());
        assert_eq!(fs::read(&target).expect("there"), b"untouched");
    }
}
