//! Segment: a file of blocks of one tier, to which blocks are appended until it is complete.
//!
//! ```text
//! purpose | names | block | block | names | block … | index | place of the index, u64 LE
//! ```
//! Invariant: a segment has the names of all numbers in it. Only a complete segment has an index; others are
//! scanned when they are opened. Not here: which segments there are (`tier_files`).

use crate::block::{self, Encoded, Extent, HostNo, Opened, Place, SeriesNo};
use crate::bytes::Damaged;
use crate::chunk::Cell;
use crate::frame::{self, Kind, PREFIX_LEN, Prefix};
use crate::frame_file;
use crate::names::Definitions;
use daemon::state_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::time::Time;
use wire::version;

/// Bytes that an index needs for a block, at most.
const INDEX_ENTRY_LEN_MAX: u64 = 80;

/// A file of blocks.
#[derive(Debug)]
pub(crate) struct Segment {
    path: PathBuf,
    file: File,
    content: Mutex<Content>,
}

/// What is in the file.
#[derive(Debug, Default)]
struct Content {
    len: u64,
    entries: Vec<Entry>,
    hosts: BTreeSet<HostNo>,
    metrics: BTreeSet<SeriesNo>,
    /// Bytes of names, which the index repeats.
    names_len: u64,
    is_complete: bool,
    /// The file has an older version: nothing is appended to it.
    is_older: bool,
}

/// A block and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    offset: u64,
    head_len: u32,
    body_len: u32,
    pub(crate) extent: Extent,
}

impl Entry {
    #[cfg(test)]
    pub(crate) fn new(offset: u64, body_len: u32, extent: Extent) -> Entry {
        Entry { offset, head_len: 0, body_len, extent }
    }

    /// Bytes of the block, without its prefix.
    pub(crate) fn len(&self) -> u64 {
        u64::from(self.head_len) + u64::from(self.body_len)
    }
}

#[derive(Serialize, Deserialize)]
struct Index {
    entries: Vec<Entry>,
    names: Definitions,
}

/// How many blocks a segment has.
pub(crate) struct Blocks {
    /// Earliest time of the first one; `None` without any.
    pub(crate) first: Option<Time>,
    pub(crate) count: usize,
    /// Hosts with a block.
    pub(crate) hosts: usize,
}

/// A segment as it was found.
pub(crate) struct Found {
    pub(crate) segment: Segment,
    pub(crate) names: Definitions,
    /// Bytes that could not be read and were skipped or cut off.
    pub(crate) damaged_bytes: u64,
}

impl Segment {
    /// Creates an empty segment.
    pub(crate) fn create(path: PathBuf) -> io::Result<Segment> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = state_file::open(&path, &mut options)?;
        let mut bytes = Vec::new();
        frame::put_value(Kind::Purpose, &version::HISTORY.purpose(), &mut bytes);
        file.write_all_at(&bytes, 0)?;
        let content = Content { len: bytes.len() as u64, ..Content::default() };
        Ok(Segment { path, file, content: Mutex::new(content) })
    }

    /// Opens a segment that exists. Damage at the end of one that is not complete is cut off.
    pub(crate) fn open(path: PathBuf) -> io::Result<Found> {
        let file = state_file::open(&path, OpenOptions::new().read(true).write(true))?;
        let len = file.metadata()?.len();
        let is_older = frame_file::check_purpose(&file, &path, version::HISTORY)? < version::HISTORY.written;
        if let Some((index, start)) = read_index(&file, len) {
            let mut content = Content { len, is_complete: true, is_older, ..Content::default() };
            content.add_names(&index.names, len - start);
            content.entries = index.entries;
            let segment = Segment { path, file, content: Mutex::new(content) };
            return Ok(Found { segment, names: index.names, damaged_bytes: 0 });
        }
        let mut scan = Scan { file: &file, len, at: 0, damaged_bytes: 0, content: Content::default() };
        let names = scan.run()?;
        let Scan { at, damaged_bytes, mut content, .. } = scan;
        if at < len {
            file.set_len(at)?;
        }
        (content.len, content.is_older) = (at, is_older);
        let segment = Segment { path, file, content: Mutex::new(content) };
        Ok(Found { segment, names, damaged_bytes })
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.content().len
    }

    /// Length of the segment once it is complete, at most.
    pub(crate) fn len_complete(&self) -> u64 {
        let content = self.content();
        let index = content.names_len + INDEX_ENTRY_LEN_MAX * content.entries.len() as u64 + 64;
        content.len + if content.is_complete { 0 } else { index }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.content().is_complete
    }

    pub(crate) fn is_older(&self) -> bool {
        self.content().is_older
    }

    /// Takes the place of the file at `path`.
    pub(crate) fn replace(&mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, path)?;
        path.clone_into(&mut self.path);
        Ok(())
    }

    /// The blocks for which `wanted` returns true.
    pub(crate) fn entries(&self, wanted: impl Fn(&Extent) -> bool) -> Vec<Entry> {
        self.content().entries.iter().filter(|entry| wanted(&entry.extent)).cloned().collect()
    }

    pub(crate) fn blocks(&self) -> Blocks {
        let Content { entries, hosts, .. } = &*self.content();
        let first = entries.first().map(|entry| entry.extent.earliest);
        Blocks { first, count: entries.len(), hosts: hosts.len() }
    }

    /// Visits the extents of all blocks.
    pub(crate) fn each_extent(&self, visit: impl FnMut(&Extent)) {
        self.content().entries.iter().map(|entry| &entry.extent).for_each(visit);
    }

    /// Those of these numbers whose names the segment does not have yet.
    pub(crate) fn unnamed(
        &self,
        host: HostNo,
        metrics: impl Iterator<Item = SeriesNo>,
    ) -> (Option<HostNo>, Vec<SeriesNo>) {
        let content = self.content();
        let host = (!content.hosts.contains(&host)).then_some(host);
        (host, metrics.filter(|metric| !content.metrics.contains(metric)).collect())
    }

    /// Appends names and a block. If that fails, the file is as before.
    pub(crate) fn append(&self, names: &Definitions, block: &Encoded) -> io::Result<()> {
        let mut bytes = Vec::new();
        if !names.is_empty() {
            frame::put_value(Kind::Names, names, &mut bytes);
        }
        let (start, names_len) = (self.len(), bytes.len() as u64);
        frame::put(Kind::Block, &block.head, &block.body, &mut bytes);
        self.write(&bytes, start)?;
        let entry = Entry {
            offset: start + names_len,
            head_len: u32::try_from(block.head.len()).expect("bounded by a frame"),
            body_len: u32::try_from(block.body.len()).expect("bounded by a frame"),
            extent: block.extent.clone(),
        };
        let mut content = self.content();
        content.len = start + bytes.len() as u64;
        content.add_names(names, names_len);
        content.entries.push(entry);
        Ok(())
    }

    /// Writes the index; nothing is appended after it.
    pub(crate) fn complete(&self, names: Definitions) -> io::Result<()> {
        let (start, entries) = {
            let content = self.content();
            (content.len, content.entries.clone())
        };
        let mut bytes = Vec::new();
        let body = postcard::to_stdvec(&Index { entries, names }).expect("writing to memory does not fail");
        frame::put(Kind::Index, &crc32fast::hash(&body).to_le_bytes(), &body, &mut bytes);
        bytes.extend_from_slice(&start.to_le_bytes());
        self.write(&bytes, start)?;
        let mut content = self.content();
        content.len = start + bytes.len() as u64;
        content.is_complete = true;
        Ok(())
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, at);
        if written.is_err() {
            // What remains of it is overwritten by the next block, or cut off at the next start.
            let _ = self.file.set_len(at);
        }
        written
    }

    /// Makes the blocks durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Deletes the file; readers that have it open can read on.
    pub(crate) fn delete(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    /// Names of the numbers in the segment.
    pub(crate) fn named(&self) -> (BTreeSet<HostNo>, BTreeSet<SeriesNo>) {
        let content = self.content();
        (content.hosts.clone(), content.metrics.clone())
    }

    /// Reads the head of a block.
    pub(crate) fn open_block(
        &self,
        entry: &Entry,
        wanted: impl Fn(SeriesNo) -> bool,
    ) -> Result<Opened, Damaged> {
        let mut bytes = vec![0; PREFIX_LEN + entry.head_len as usize];
        let read = self.file.read_exact_at(&mut bytes, entry.offset);
        read.map_err(|_| Damaged("a block that cannot be read"))?;
        let prefix = Prefix::parse(&bytes)?;
        prefix.check(&bytes[PREFIX_LEN..])?;
        let opened = Opened::new(&bytes[PREFIX_LEN..], wanted)?;
        match opened.body_len <= entry.body_len as usize {
            true => Ok(opened),
            false => Err(Damaged("chunks beyond the end of their block")),
        }
    }

    /// Reads head and body of a block; the head is checked.
    pub(crate) fn parts(&self, entry: &Entry) -> Result<(Vec<u8>, Vec<u8>), Damaged> {
        let mut head = vec![0; PREFIX_LEN + entry.head_len as usize];
        let mut body = vec![0; entry.body_len as usize];
        let read = self.file.read_exact_at(&mut head, entry.offset);
        let read = read.and_then(|()| self.file.read_exact_at(&mut body, entry.offset + head.len() as u64));
        read.map_err(|_| Damaged("a block that cannot be read"))?;
        let prefix = Prefix::parse(&head)?;
        prefix.check(&head[PREFIX_LEN..])?;
        Ok((head.split_off(PREFIX_LEN), body))
    }

    /// Reads the values of a series from a block whose head is read.
    pub(crate) fn column<C: Cell>(
        &self,
        entry: &Entry,
        opened: &Opened,
        place: &Place,
    ) -> Result<Vec<Option<C>>, Damaged> {
        opened.chunk(place, &self.chunk(entry, place)?)
    }

    fn chunk(&self, entry: &Entry, place: &Place) -> Result<Vec<u8>, Damaged> {
        let mut bytes = vec![0; place.bytes.len()];
        let start = entry.offset + PREFIX_LEN as u64 + u64::from(entry.head_len) + place.bytes.start as u64;
        let read = self.file.read_exact_at(&mut bytes, start);
        read.map(|()| bytes).map_err(|_| Damaged("a chunk that cannot be read"))
    }
}

impl Content {
    fn add_names(&mut self, names: &Definitions, len: u64) {
        self.hosts.extend(names.hosts.iter().map(|(number, _)| *number));
        self.metrics.extend(names.metrics.iter().map(|(number, _)| *number));
        self.names_len += len;
    }
}

fn read_index(file: &File, len: u64) -> Option<(Index, u64)> {
    let mut place = [0; 8];
    file.read_exact_at(&mut place, len.checked_sub(8)?).ok()?;
    let start = u64::from_le_bytes(place);
    let (prefix, head) = frame_file::read_head(file, start, len - 8).ok()?;
    if prefix.kind != Kind::Index || start + prefix.len() + 8 != len {
        return None;
    }
    let body = frame_file::read_body(file, start, &prefix).ok()?;
    if crc32fast::hash(&body).to_le_bytes()[..] != head[..] {
        return None;
    }
    postcard::from_bytes(&body).ok().map(|index| (index, start))
}

/// Scan of a segment without an index.
struct Scan<'a> {
    file: &'a File,
    len: u64,
    /// End of what was read.
    at: u64,
    damaged_bytes: u64,
    content: Content,
}

impl Scan<'_> {
    fn run(&mut self) -> io::Result<Definitions> {
        let mut names = Definitions::default();
        let mut at = 0;
        while at < self.len {
            if let Ok(next) = self.frame(at, &mut names) {
                at = next;
                self.at = next;
                continue;
            }
            // The damage is counted; after it the next frame that is whole is searched for.
            let found = frame_file::next_frame(self.file, at + 1, self.len)?;
            self.damaged_bytes += found.unwrap_or(self.len) - at;
            match found {
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(names)
    }

    fn frame(&mut self, at: u64, names: &mut Definitions) -> Result<u64, Damaged> {
        let (prefix, head) = frame_file::read_head(self.file, at, self.len)?;
        let end = at + prefix.len();
        match prefix.kind {
            Kind::Names => {
                let found: Definitions =
                    postcard::from_bytes(&head).map_err(|_| Damaged("names that cannot be read"))?;
                self.content.add_names(&found, prefix.len());
                names.hosts.extend(found.hosts);
                names.metrics.extend(found.metrics);
            }
            Kind::Block => {
                if end == self.len {
                    self.check_body(at, &prefix, &head)?;
                }
                self.content.entries.push(Entry {
                    offset: at,
                    head_len: prefix.head_len,
                    body_len: prefix.body_len,
                    extent: block::extent(&head)?,
                });
            }
            Kind::Purpose => {}
            // An index without its end is written again.
            Kind::Index | Kind::Shape | Kind::Sweeps | Kind::Minute | Kind::Record => {
                return Err(Damaged("a frame of another file"));
            }
        }
        Ok(end)
    }

    /// The last block may be torn: its space allocated and its bytes not written.
    fn check_body(&self, at: u64, prefix: &Prefix, head: &[u8]) -> Result<(), Damaged> {
        let opened = Opened::new(head, |_| true)?;
        let body = frame_file::read_body(self.file, at, prefix);
        let body = body.map_err(|_| Damaged("a block that cannot be read"))?;
        let chunk = |place: &Place| body.get(place.bytes.clone()).ok_or(Damaged("a chunk beyond its block"));
        opened.places.iter().try_for_each(|place| place.check(chunk(place)?))
    }
}
