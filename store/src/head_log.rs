//! Log of the head: the rows that are not sealed into a block, so that a crash does not lose them.
//!
//! ```text
//! purpose | names | shape of a host's rows | sweeps | sweeps | minute | …
//! ```
//! Rule: rows are appended every few seconds and never rewritten; when they are sealed, a new log is started
//! and the old one deleted. What is damaged at its end is not read. Minutes are in it only if they were copied
//! from another store: others follow from the samples. Not here: the rows in memory (`head`).

use crate::block::{HostNo, SeriesNo};
use crate::bucket_row::Unpack;
use crate::bytes::{Cursor, Damaged};
use crate::exact::Exact;
use crate::frame::{self, Kind, PREFIX_LEN, Prefix};
use crate::mark::Mark;
use crate::names::Definitions;
use crate::packed::Last;
use crate::rollup::ClosedRow;
use crate::tier_files::numbered;
use daemon::state_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use wire::time::Time;
use wire::version;

const END: &str = ".head";

/// Longest log that is read: the head is sealed long before.
const LEN_MAX: u64 = 256 << 20;

/// The metrics of a host's next rows.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShapeFrame {
    pub(crate) host: HostNo,
    pub(crate) series: Vec<SeriesNo>,
}

/// Rows of a host, which follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SweepsHead {
    host: HostNo,
    first_row: u64,
    rows: u32,
    marks: Vec<Mark>,
    checksum: u32,
}

/// A copied minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MinuteHead {
    host: HostNo,
    number: u64,
    start: Time,
    finer_end: u64,
    checksum: u32,
}

/// A log that is written.
#[derive(Debug)]
pub(crate) struct HeadLog {
    folder: PathBuf,
    number: u64,
    file: File,
    len: u64,
}

/// Rows to be written.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    open: Option<(SweepsHead, Vec<u8>)>,
}

impl Pending {
    /// Adds names that later rows use.
    pub(crate) fn names(&mut self, names: &Definitions) {
        self.close();
        frame::put_value(Kind::Names, names, &mut self.bytes);
    }

    /// Adds a row: its number and its packed values; with the shape, if it is the first one of a run.
    pub(crate) fn row(&mut self, host: HostNo, row: u64, shape: Option<&[SeriesNo]>, packed: &[u8]) {
        if let Some(series) = shape {
            self.close();
            let shape = ShapeFrame { host, series: series.to_vec() };
            frame::put_value(Kind::Shape, &shape, &mut self.bytes);
        }
        let follows =
            |(head, _): &(SweepsHead, _)| head.host == host && head.first_row + u64::from(head.rows) == row;
        if !self.open.as_ref().is_some_and(follows) {
            self.close();
            let head = SweepsHead { host, first_row: row, rows: 0, marks: Vec::new(), checksum: 0 };
            self.open = Some((head, Vec::new()));
        }
        let (head, bytes) = self.open.as_mut().expect("opened above");
        head.rows += 1;
        bytes.extend_from_slice(packed);
    }

    /// Adds a copied minute: its number and its row.
    pub(crate) fn minute(&mut self, host: HostNo, number: u64, row: &ClosedRow) {
        self.close();
        let ClosedRow { start, finer_end, packed } = row;
        let checksum = crc32fast::hash(packed);
        let head = MinuteHead { host, number, start: *start, finer_end: *finer_end, checksum };
        let head = postcard::to_stdvec(&head).expect("writing to memory does not fail");
        frame::put(Kind::Minute, &head, packed, &mut self.bytes);
    }

    /// Adds a mark to the row that was added last.
    pub(crate) fn mark(&mut self, mark: Mark) {
        if let Some((head, _)) = &mut self.open {
            head.marks.push(mark);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.open.is_none()
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len() + self.open.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }

    fn close(&mut self) {
        if let Some((mut head, bytes)) = self.open.take() {
            head.checksum = crc32fast::hash(&bytes);
            let head = postcard::to_stdvec(&head).expect("writing to memory does not fail");
            frame::put(Kind::Sweeps, &head, &bytes, &mut self.bytes);
        }
    }
}

impl HeadLog {
    /// Starts a log.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn start(folder: &Path, number: u64) -> io::Result<HeadLog> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = state_file::open(&path(folder, number), &mut options)?;
        let mut bytes = Vec::new();
        frame::put_value(Kind::Purpose, &version::HISTORY.purpose(), &mut bytes);
        file.write_all_at(&bytes, 0)?;
        Ok(HeadLog { folder: folder.to_owned(), number, file, len: bytes.len() as u64 })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends rows, and empties `pending`. If that fails, the file and the rows are as before.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub(crate) fn append(&mut self, pending: &mut Pending) -> io::Result<()> {
        pending.close();
        if let Err(error) = self.file.write_all_at(&pending.bytes, self.len) {
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += pending.bytes.len() as u64;
        *pending = Pending::default();
        Ok(())
    }

    /// Makes the rows durable.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Deletes the log: its rows are sealed.
    ///
    /// # Errors
    /// If the file cannot be deleted.
    pub(crate) fn delete(self) -> io::Result<()> {
        std::fs::remove_file(path(&self.folder, self.number))
    }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}{END}"))
}

/// Logs that are left from earlier runs, oldest first.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn left(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    numbered(folder, END)
}

/// A row of a log.
pub(crate) struct Row<'a> {
    pub(crate) host: HostNo,
    pub(crate) number: u64,
    pub(crate) time: Time,
    pub(crate) series: &'a [SeriesNo],
    pub(crate) values: &'a [Exact],
    pub(crate) marks: &'a [Mark],
}

/// Content of a log.
pub(crate) enum Found<'a> {
    /// Names that later rows use.
    Names(Definitions),
    /// A row of samples.
    Row(Row<'a>),
    /// A copied minute, and its number.
    Minute { host: HostNo, number: u64, row: ClosedRow },
}

/// Reads a log. Returns the number of damaged bytes, which are at the end.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read(path: &Path, mut found: impl FnMut(Found)) -> io::Result<u64> {
    let bytes = state_file::read(path, LEN_MAX)?.unwrap_or_default();
    let mut shapes: BTreeMap<HostNo, (Vec<SeriesNo>, Last)> = BTreeMap::new();
    let mut at = 0;
    while at < bytes.len() {
        match frame(&bytes[at..], &mut shapes, &mut found) {
            Ok(len) => at += len,
            Err(_) => return Ok((bytes.len() - at) as u64),
        }
    }
    Ok(0)
}

fn frame(
    bytes: &[u8],
    shapes: &mut BTreeMap<HostNo, (Vec<SeriesNo>, Last)>,
    found: &mut impl FnMut(Found),
) -> Result<usize, Damaged> {
    let prefix = Prefix::parse(bytes)?;
    let mut from = Cursor(&bytes[PREFIX_LEN..]);
    let head = from.take(prefix.head_len as usize)?;
    let body = from.take(prefix.body_len as usize)?;
    prefix.check(head)?;
    let check_body = |checksum: u32| match crc32fast::hash(body) == checksum {
        true => Ok(()),
        false => Err(Damaged("rows whose checksum does not match")),
    };
    let unreadable = |_| Damaged("a head that cannot be read");
    match prefix.kind {
        Kind::Purpose => check_purpose(head)?,
        Kind::Names => found(Found::Names(postcard::from_bytes(head).map_err(unreadable)?)),
        Kind::Shape => {
            let shape: ShapeFrame = postcard::from_bytes(head).map_err(unreadable)?;
            let last = Last::new(shape.series.len());
            shapes.insert(shape.host, (shape.series, last));
        }
        Kind::Sweeps => {
            let head: SweepsHead = postcard::from_bytes(head).map_err(unreadable)?;
            check_body(head.checksum)?;
            let (series, last) = shapes.get_mut(&head.host).ok_or(Damaged("rows without a shape"))?;
            rows(&head, body, series, last, found)?;
        }
        Kind::Minute => {
            let head: MinuteHead = postcard::from_bytes(head).map_err(unreadable)?;
            check_body(head.checksum)?;
            Unpack::new(body).try_for_each(|bucket| bucket.map(drop))?;
            let MinuteHead { host, number, start, finer_end, .. } = head;
            found(Found::Minute { host, number, row: ClosedRow { start, finer_end, packed: body.into() } });
        }
        Kind::Block | Kind::Index | Kind::Record => return Err(Damaged("a frame of another file")),
    }
    Ok(usize::try_from(prefix.len()).expect("within memory"))
}

fn check_purpose(head: &[u8]) -> Result<(), Damaged> {
    let purpose: String = postcard::from_bytes(head).unwrap_or_default();
    match version::HISTORY.version_of(&purpose) {
        Some(found) if version::HISTORY.reads(found) => Ok(()),
        _ => Err(Damaged("another format or version")),
    }
}

fn rows(
    head: &SweepsHead,
    body: &[u8],
    series: &[SeriesNo],
    last: &mut Last,
    found: &mut impl FnMut(Found),
) -> Result<(), Damaged> {
    let mut from = Cursor(body);
    for number in 0..u64::from(head.rows) {
        let time = last.unpack(&mut from)?;
        let marks = if number == 0 { head.marks.as_slice() } else { &[] };
        let (host, number) = (head.host, head.first_row + number);
        found(Found::Row(Row { host, number, time, series, values: last.values(), marks }));
    }
    Ok(())
}
