//! Log by the day: records in a file for each day (UTC), within a limit of space and of days.
//!
//! Rule: the limit of space is never exceeded: before something is written, the oldest days are deleted that have no
//! room beside it, except the one that is written to. Days are counted, not compared with the clock, so that a clock
//! that is wrong for a while deletes nothing. What is damaged is skipped and counted. Not here: what records say.

use crate::frame::{self, Kind, Prefix};
use crate::frame_file;
use daemon::state_file;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::time::Time;
use wire::version::Format;

/// Longest record, in bytes.
pub const RECORD_LEN_MAX: usize = 16 << 20;

/// End of the names of the files.
const SUFFIX: &str = ".log";

/// How much is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyLimit {
    /// Disk space, in bytes.
    pub bytes: u64,
    /// Days that have records.
    pub days: usize,
}

/// A log by the day, for its one writer.
#[derive(Debug)]
pub struct DailyLog {
    reader: DailyReader,
    limit: DailyLimit,
    /// Length of the file of each day.
    lens: BTreeMap<Date, u64>,
    /// The day that was written to last.
    open: Option<(Date, File)>,
    damaged_bytes: u64,
}

/// Reader of a log by the day.
#[derive(Clone, Debug)]
pub struct DailyReader {
    folder: Arc<Path>,
    format: Format,
}

/// Head of a record.
#[derive(Serialize, Deserialize)]
struct Head {
    time: Time,
    /// CRC-32 of the body.
    checksum: u32,
}

impl DailyLog {
    /// Opens the log in a folder, which is created if it does not exist; the one around it is not.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub fn open(folder: &Path, format: Format, limit: DailyLimit) -> io::Result<DailyLog> {
        daemon::state_folder::prepare_below(folder)?;
        let reader = DailyReader::new(folder, format);
        let mut lens = BTreeMap::new();
        for date in reader.dates()? {
            lens.insert(date, std::fs::symlink_metadata(reader.path(date))?.len());
        }
        Ok(DailyLog { reader, limit, lens, open: None, damaged_bytes: 0 })
    }

    /// Returns a reader of the log.
    #[must_use]
    pub fn reader(&self) -> DailyReader {
        self.reader.clone()
    }

    /// Disk space in use, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lens.values().sum()
    }

    /// Bytes at the end of files that were damaged, and cut off before something was appended, since the start.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// Appends a record to the file of its day.
    ///
    /// # Errors
    /// If it cannot be written, or is longer than [`RECORD_LEN_MAX`] or the limit; nothing of it is stored then, but
    /// older days may have been deleted.
    pub fn append(&mut self, time: Time, record: &[u8]) -> io::Result<()> {
        if record.len() > RECORD_LEN_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is too long"));
        }
        let date = date(time);
        let at = self.open_day(date)?;
        let mut bytes = Vec::new();
        if at == 0 {
            frame::put_value(Kind::Purpose, &self.reader.format.purpose(), &mut bytes);
        }
        let head = Head { time, checksum: crc32fast::hash(record) };
        let head = postcard::to_stdvec(&head).expect("writing to memory does not fail");
        frame::put(Kind::Record, &head, record, &mut bytes);
        self.make_room(date, bytes.len() as u64)?;
        let (_, file) = self.open.as_ref().expect("opened above");
        if let Err(error) = file.write_all_at(&bytes, at) {
            // What was written of it would count towards the limit. If this fails too, it is written over.
            let _ = file.set_len(at);
            return Err(error);
        }
        self.lens.insert(date, at + bytes.len() as u64);
        Ok(())
    }

    /// Opens the file of a day; returns where its whole records end.
    fn open_day(&mut self, date: Date) -> io::Result<u64> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != date) {
            let path = self.reader.path(date);
            let mut options = OpenOptions::new();
            let file = state_file::open(&path, options.read(true).write(true).create(true).mode(0o600))?;
            let len = file.metadata()?.len();
            let end = match len {
                0 => 0,
                _ => {
                    frame_file::check_purpose(&file, &path, self.reader.format)?;
                    end_of_whole(&file, 0, len)?
                }
            };
            if end < len {
                file.set_len(end)?;
                self.damaged_bytes += len - end;
            }
            self.lens.insert(date, end);
            self.open = Some((date, file));
        }
        Ok(self.lens.get(&date).copied().unwrap_or_default())
    }

    fn make_room(&mut self, date: Date, needed: u64) -> io::Result<()> {
        loop {
            let is_full = self.used_bytes() + needed > self.limit.bytes;
            if !is_full && self.lens.len() <= self.limit.days.max(1) {
                return Ok(());
            }
            let Some(oldest) = self.lens.keys().copied().find(|oldest| *oldest != date) else {
                let text = format!("a day would take more than the limit of {} bytes", self.limit.bytes);
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
            };
            match std::fs::remove_file(self.reader.path(oldest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => self.lens.remove(&oldest),
            };
        }
    }
}

impl DailyReader {
    /// Creates a reader of the log in a folder, which need not exist.
    #[must_use]
    pub fn new(folder: &Path, format: Format) -> DailyReader {
        DailyReader { folder: folder.into(), format }
    }

    /// Returns the folder of the log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Visits the records from `since` on and before `until`: those of earlier days first, those of a day in the
    /// order in which they were stored; `visit` returns whether it wants more. Returns the number of damaged
    /// bytes that were skipped.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn each(
        &self,
        since: Time,
        until: Time,
        mut visit: impl FnMut(Time, &[u8]) -> bool,
    ) -> io::Result<u64> {
        let mut damaged = 0;
        for day in self.dates()? {
            if day < date(since) || day > date(until) {
                continue;
            }
            let path = self.path(day);
            let file = match state_file::open_to_read(&path) {
                // Deleted meanwhile, for its age.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let len = file.metadata()?.len();
            if len == 0 {
                continue;
            }
            frame_file::check_purpose(&file, &path, self.format)?;
            let mut broken = 0;
            let read = records(&file, 0, len, |at, prefix, head| {
                if head.time < since || head.time >= until {
                    return true;
                }
                match frame_file::read_body(&file, at, prefix) {
                    Ok(body) if crc32fast::hash(&body) == head.checksum => visit(head.time, &body),
                    _ => {
                        broken += prefix.len();
                        true
                    }
                }
            })?;
            damaged += read.damaged_bytes + broken;
            if read.is_stopped {
                break;
            }
        }
        Ok(damaged)
    }

    /// Time of the first record of the oldest day.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn oldest(&self) -> io::Result<Option<Time>> {
        let mut oldest = None;
        for date in self.dates()? {
            let Ok(file) = state_file::open_to_read(&self.path(date)) else { continue };
            records(&file, 0, file.metadata()?.len(), |_, _, head| {
                oldest = Some(head.time);
                false
            })?;
            if oldest.is_some() {
                break;
            }
        }
        Ok(oldest)
    }

    pub(crate) fn path(&self, date: Date) -> PathBuf {
        self.folder.join(file_of(date))
    }

    /// Days that have a file, the oldest first.
    pub(crate) fn dates(&self) -> io::Result<Vec<Date>> {
        let mut dates = Vec::new();
        let entries = match std::fs::read_dir(&self.folder) {
            // Nothing is stored yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(dates),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let date = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse::<Date>().ok());
            dates.extend(date.filter(|date| *name == *file_of(*date)));
        }
        dates.sort_unstable();
        Ok(dates)
    }
}

/// What was read of a file.
struct Read {
    /// End of the last whole record.
    end: u64,
    /// Bytes before that which are damaged.
    damaged_bytes: u64,
    is_stopped: bool,
}

/// Name of the file of a day.
pub(crate) fn file_of(date: Date) -> String {
    format!("{date}{SUFFIX}")
}

/// Where the last whole record ends. No record before `from` is looked at, unless one lies across it.
pub(crate) fn end_of_whole(file: &File, from: u64, len: u64) -> io::Result<u64> {
    let is_between = from < len && frame_file::read_head(file, from, len).is_ok();
    let read = records(file, if is_between { from } else { 0 }, len, |_, _, _| true)?;
    Ok(read.end)
}

/// Visits the records from a place on: place, prefix and head; `visit` returns whether it wants more.
fn records(
    file: &File,
    from: u64,
    len: u64,
    mut visit: impl FnMut(u64, &Prefix, &Head) -> bool,
) -> io::Result<Read> {
    let mut read = Read { end: from, damaged_bytes: 0, is_stopped: false };
    let mut at = from;
    while at < len {
        let Ok((prefix, head)) = frame_file::read_head(file, at, len) else {
            match frame_file::next_frame(file, at + 1, len)? {
                Some(next) => {
                    read.damaged_bytes += next - at;
                    at = next;
                    continue;
                }
                None => break,
            }
        };
        if prefix.kind == Kind::Record
            && let Ok(head) = postcard::from_bytes::<Head>(&head)
            && !visit(at, &prefix, &head)
        {
            read.is_stopped = true;
            return Ok(read);
        }
        at += prefix.len();
        read.end = at;
    }
    Ok(read)
}

/// The day of a time in UTC; times beyond the calendar are of its first or last day.
fn date(time: Time) -> Date {
    let stamp = Timestamp::from_microsecond(time.micros()).unwrap_or(match time.micros() < 0 {
        true => Timestamp::MIN,
        false => Timestamp::MAX,
    });
    stamp.to_zoned(TimeZone::UTC).date()
}
