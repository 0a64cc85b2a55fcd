//! Copies of logs by the day: a copy of a day has the same bytes as the log, so where it ends says what it lacks.
//!
//! Rules: bytes are durable once they are appended. What a copy has is not shortened by its source: a day that differs from
//! the copy, as after a crash of its host, is copied again beside what was there. Not here: what records say (`daily`), who copies
//! what.

use crate::daily::{DailyReader, end_of_whole, file_of};
use crate::frame_file::next_frame;
use daemon::state_file;
use jiff::civil::Date;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wire::version::Format;

/// Bytes before the end of a copy that are compared with the log.
const COMPARED_LEN: usize = 64;

/// A part ends with a record that ends at most so many bytes before its greatest length.
const CLOSE_LEN: u64 = 16 << 10;

/// End of the name of an empty file whose date is that of the newest day that was deleted.
const DELETED: &str = ".deleted";

/// Folder of days that differed, below that of the copy.
const EARLIER: &str = "earlier";

/// Length of a day's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayLen {
    pub date: Date,
    /// Length, in bytes.
    pub len: u64,
}

/// How far a day is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    pub date: Date,
    /// Bytes that are copied.
    pub len: u64,
    /// CRC-32 of the last of them.
    pub end: u32,
}

/// What follows in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Following {
    /// These bytes; none, if nothing follows at the moment.
    Bytes(Vec<u8>),
    /// The log has other bytes than the copy.
    Differs,
    /// The log has no such day.
    Gone,
}

impl DailyReader {
    /// Returns the length of each day's file, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn lens(&self) -> io::Result<Vec<DayLen>> {
        let mut lens = Vec::new();
        for date in self.dates()? {
            match std::fs::symlink_metadata(self.path(date)) {
                Ok(file) => lens.push(DayLen { date, len: file.len() }),
                // Deleted meanwhile, for its age.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(lens)
    }

    /// Returns how far this copy of a day reaches.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn reached(&self, date: Date) -> io::Result<Reached> {
        match state_file::open_to_read(&self.path(date)) {
            Ok(file) => {
                let len = file.metadata()?.len();
                Ok(Reached { date, len, end: end(&file, len)? })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Reached { date, len: 0, end: 0 }),
            Err(error) => Err(error),
        }
    }

    /// Returns what follows in this log after a copy of a day: at most `len_max` bytes, and no record that is cut off in the log.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn following(&self, copy: &Reached, len_max: usize) -> io::Result<Following> {
        let file = match state_file::open_to_read(&self.path(copy.date)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Following::Gone),
            opened => opened?,
        };
        let len = file.metadata()?.len();
        if len < copy.len || end(&file, copy.len)? != copy.end {
            return Ok(Following::Differs);
        }
        if len == copy.len {
            return Ok(Following::Bytes(Vec::new()));
        }
        let whole = end_of_part(&file, copy.len, len, len_max as u64)?.saturating_sub(copy.len);
        let mut bytes = vec![0; usize::try_from(whole).unwrap_or(usize::MAX).min(len_max)];
        file.read_exact_at(&mut bytes, copy.len)?;
        Ok(Following::Bytes(bytes))
    }
}

/// Where a part ends that starts at this place: a record that is cut off is cut away before the next one is appended. The next
/// part starts with a record if there is one close to the end of this one, so that few are looked at.
fn end_of_part(file: &File, from: u64, len: u64, len_max: u64) -> io::Result<u64> {
    let end = from.saturating_add(len_max);
    let close = end.saturating_sub(CLOSE_LEN).max(from + 1);
    match if end < len { next_frame(file, close, len)? } else { None } {
        Some(record) => Ok(record.min(end)),
        None => end_of_whole(file, from, len),
    }
}

/// CRC-32 of the bytes before a place.
fn end(file: &File, at: u64) -> io::Result<u32> {
    let len = usize::try_from(at).unwrap_or(usize::MAX).min(COMPARED_LEN);
    let mut bytes = [0; COMPARED_LEN];
    file.read_exact_at(&mut bytes[..len], at - len as u64)?;
    Ok(crc32fast::hash(&bytes[..len]))
}

/// A copy, for its one writer.
#[derive(Debug)]
pub struct DailyCopy {
    folder: PathBuf,
    format: Format,
}

impl DailyCopy {
    /// A copy in this folder, which need not exist; the one around it must.
    #[must_use]
    pub fn new(folder: &Path, format: Format) -> DailyCopy {
        DailyCopy { folder: folder.to_owned(), format }
    }

    /// Returns a reader of the copy.
    #[must_use]
    pub fn reader(&self) -> DailyReader {
        DailyReader::new(&self.folder, self.format)
    }

    /// Returns a reader of the days that differed from their log.
    #[must_use]
    pub fn earlier(&self) -> DailyReader {
        DailyReader::new(&self.folder.join(EARLIER), self.format)
    }

    /// Appends what follows at this place of a day, durably.
    ///
    /// # Errors
    /// If it cannot be written, or if the copy ends elsewhere; nothing of it is stored then.
    pub fn append(&self, date: Date, at: u64, bytes: &[u8]) -> io::Result<()> {
        daemon::state_folder::prepare_below(&self.folder)?;
        let path = self.folder.join(file_of(date));
        let mut options = OpenOptions::new();
        let file = state_file::open(&path, options.read(true).write(true).create(true).mode(0o600))?;
        let len = file.metadata()?.len();
        if len != at {
            let text = format!("{} has {len} bytes, and what follows byte {at} was sent", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if let Err(error) = file.write_all_at(bytes, at).and_then(|()| file.sync_data()) {
            // If this fails too, the copy differs from its log, and is made again.
            let _ = file.set_len(at);
            return Err(error);
        }
        if at == 0 { File::open(&self.folder)?.sync_all() } else { Ok(()) }
    }

    /// Moves a day away that differs from its log; of several the longest is retained.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn set_aside(&self, date: Date) -> io::Result<()> {
        let earlier = self.folder.join(EARLIER);
        daemon::state_folder::prepare_below(&earlier)?;
        let (from, to) = (self.folder.join(file_of(date)), earlier.join(file_of(date)));
        let len = |path: &Path| std::fs::symlink_metadata(path).map_or(0, |file| file.len());
        match len(&to) > len(&from) {
            true => std::fs::remove_file(&from),
            false => std::fs::rename(&from, &to),
        }
    }

    /// Deletes a day for want of space, and remembers that.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn delete(&self, date: Date) -> io::Result<()> {
        let former = self.deleted_until()?;
        if former.is_none_or(|former| former < date) {
            let marker = |date: Date| self.folder.join(format!("{date}{DELETED}"));
            state_file::open(&marker(date), OpenOptions::new().write(true).create(true).mode(0o600))?;
            former.map_or(Ok(()), |former| std::fs::remove_file(marker(former)))?;
        }
        for path in [self.folder.join(file_of(date)), self.folder.join(EARLIER).join(file_of(date))] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the newest day that was deleted for want of space.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn deleted_until(&self) -> io::Result<Option<Date>> {
        let mut newest = None;
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            newest = newest.max(name.to_str().and_then(|name| name.strip_suffix(DELETED)?.parse().ok()));
        }
        Ok(newest)
    }
}
