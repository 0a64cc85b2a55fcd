//! Compaction: the short blocks of a complete segment are rewritten as long ones, some at a time.
//!
//! Rule: the new file replaces the old one by a rename, once it is whole and durable; until then, and after a crash,
//! the old one is used. A segment with damage stays as it is. Not here: room for the new file (`tier_files`).

use crate::block::{BlockEncoder, Encoded, HostNo, Opened, Place, RowNumbers, SeriesNo};
use crate::bucket::Bucket;
use crate::bytes::Damaged;
use crate::segment::{Entry, Segment};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use wire::time::Time;

/// Rows of a block that is made of several, at most: a day of minutes.
const ROWS_MAX: u32 = 1440;

/// Bytes of the blocks that are made into one, at most: they are in memory together.
const LEN_MAX: u64 = 4 << 20;

/// End of the name of a file that is not whole yet.
pub(crate) const NEW_END: &str = "new";

/// A compaction under way.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// The segment whose blocks are read.
    pub(crate) old: Arc<Segment>,
    /// The segment that will replace it.
    pub(crate) new: Segment,
    groups: VecDeque<Group>,
}

/// A block to be written.
pub(crate) struct Compacted {
    pub(crate) block: Encoded,
    pub(crate) series: Vec<SeriesNo>,
}

/// Blocks of a host that follow each other and are to become one.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    entries: Vec<Entry>,
    rows: u32,
    len: u64,
}

impl Group {
    fn of(entry: Entry) -> Group {
        Group { rows: entry.extent.rows, len: entry.len(), entries: vec![entry] }
    }

    /// Adds the next block; returns it if it does not follow, or there is no room for it.
    fn add(&mut self, entry: Entry, is_copy: bool) -> Result<(), Entry> {
        let last = self.entries.last().map(|last| &last.extent).expect("a group has a block");
        let next = &entry.extent;
        // The rows of a copied block have numbers of their origin too, one after the other.
        let follows = next.first_row == last.next_row()
            && (!is_copy || next.finer_rows == last.finer_rows + u64::from(next.rows));
        let is_room = self.rows + next.rows <= ROWS_MAX && self.len + entry.len() <= LEN_MAX;
        if !follows || !is_room {
            return Err(entry);
        }
        self.rows += next.rows;
        self.len += entry.len();
        self.entries.push(entry);
        Ok(())
    }
}

/// Groups of blocks, host by host, each in the order in which it was written.
fn groups(entries: Vec<Entry>, is_copy: bool) -> VecDeque<Group> {
    let mut hosts: BTreeMap<HostNo, Vec<Group>> = BTreeMap::new();
    for entry in entries {
        let of_host = hosts.entry(entry.extent.host).or_default();
        let left = match of_host.last_mut() {
            Some(group) => group.add(entry, is_copy).err(),
            None => Some(entry),
        };
        of_host.extend(left.map(Group::of));
    }
    hosts.into_values().flatten().collect()
}

impl Compaction {
    /// Starts to compact a complete segment; `None` if that would not halve the number of its blocks.
    ///
    /// # Errors
    /// If the new file cannot be created.
    pub(crate) fn start(old: &Arc<Segment>, is_copy: bool) -> io::Result<Option<Compaction>> {
        let entries = old.entries(|_| true);
        let count = entries.len();
        let groups = groups(entries, is_copy);
        if count < 2 * groups.len().max(1) {
            return Ok(None);
        }
        let new = Segment::create(new_path(old))?;
        Ok(Some(Compaction { old: Arc::clone(old), new, groups }))
    }

    /// The next blocks, of about so many bytes before they were compacted; none at the end.
    pub(crate) fn next(&mut self, len: u64) -> Result<Vec<Compacted>, Damaged> {
        let (mut read, mut blocks) = (0, Vec::new());
        while read < len
            && let Some(group) = self.groups.pop_front()
        {
            read += group.len;
            blocks.push(merge(&self.old, &group)?);
        }
        Ok(blocks)
    }

    pub(crate) fn is_read(&self) -> bool {
        self.groups.is_empty()
    }

    /// Deletes the new file.
    pub(crate) fn discard(self) {
        // What remains is deleted when the store is opened again.
        let _ = self.new.delete();
    }
}

fn new_path(segment: &Segment) -> PathBuf {
    segment.path().with_extension(NEW_END)
}

/// A block that is read.
struct Source {
    opened: Opened,
    body: Vec<u8>,
    /// Places by their series.
    places: BTreeMap<SeriesNo, Place>,
}

impl Source {
    fn read(segment: &Segment, entry: &Entry) -> Result<Source, Damaged> {
        let (head, body) = segment.parts(entry)?;
        let opened = Opened::new(&head, |_| true)?;
        let places = opened.places.iter().map(|place| (place.series, place.clone())).collect();
        Ok(Source { opened, body, places })
    }

    fn column(&self, series: SeriesNo) -> Result<Vec<Option<Bucket>>, Damaged> {
        let Some(place) = self.places.get(&series) else { return Ok(vec![None; self.opened.times.len()]) };
        let bytes = self.body.get(place.bytes.clone()).ok_or(Damaged("a chunk beyond its block"))?;
        self.opened.chunk(place, bytes)
    }
}

/// Merges the blocks of a group.
fn merge(segment: &Segment, group: &Group) -> Result<Compacted, Damaged> {
    let sources: Result<Vec<Source>, Damaged> =
        group.entries.iter().map(|entry| Source::read(segment, entry)).collect();
    let sources = sources?;
    let series: BTreeSet<SeriesNo> =
        sources.iter().flat_map(|source| source.places.keys().copied()).collect();
    let mut block = BlockEncoder::new();
    for number in &series {
        let mut cells = Vec::with_capacity(group.rows as usize);
        for source in &sources {
            cells.extend(source.column(*number)?);
        }
        block.add(*number, &cells);
    }
    let times: Vec<Time> = sources.iter().flat_map(|source| source.opened.times.iter().copied()).collect();
    let marks = sources.iter().flat_map(|source| source.opened.marks.iter().copied()).collect();
    let first = &group.entries.first().expect("a group has a block").extent;
    let last = &group.entries.last().expect("a group has a block").extent;
    let numbers = RowNumbers { host: first.host, first_row: first.first_row, finer_rows: last.finer_rows };
    Ok(Compacted { block: block.finish(&times, marks, numbers), series: series.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Extent;

    fn entry(host: HostNo, first_row: u64, rows: u32, finer_rows: u64, len: u32) -> Entry {
        let (earliest, latest) = (Time::default(), Time::default());
        Entry::new(0, len, Extent { host, first_row, rows, finer_rows, earliest, latest })
    }

    fn grouped(entries: Vec<Entry>, is_copy: bool) -> Vec<(HostNo, u64, u32, usize)> {
        let group = |group: Group| {
            let first = &group.entries[0].extent;
            (first.host, first.first_row, group.rows, group.entries.len())
        };
        groups(entries, is_copy).into_iter().map(group).collect()
    }

    #[test]
    fn blocks_that_follow_each_other_are_made_into_one_of_a_day_at_most() {
        let hour = |host, at: u64| entry(host, at * 60, 60, at * 3600, 5000);
        let entries = (0..30).flat_map(|at| [hour(2, at), hour(1, at)]).collect();
        assert_eq!(
            grouped(entries, false),
            [(1, 0, 1440, 24), (1, 1440, 360, 6), (2, 0, 1440, 24), (2, 1440, 360, 6)]
        );
        // A block between them was lost.
        assert_eq!(grouped(vec![hour(1, 0), hour(1, 2)], false), [(1, 0, 60, 1), (1, 120, 60, 1)]);
    }

    #[test]
    fn wide_blocks_stay_short() {
        let entries = (0..9).map(|at| entry(1, at * 60, 60, 0, 1 << 20)).collect();
        assert_eq!(grouped(entries, false), [(1, 0, 240, 4), (1, 240, 240, 4), (1, 480, 60, 1)]);
        assert_eq!(grouped(vec![entry(1, 0, 60, 0, 9 << 20)], false), [(1, 0, 60, 1)]);
    }

    #[test]
    fn copied_blocks_are_made_into_one_where_their_numbers_at_their_origin_follow_each_other() {
        let entries = vec![entry(1, 0, 60, 160, 9), entry(1, 60, 60, 220, 9), entry(1, 120, 60, 281, 9)];
        assert_eq!(grouped(entries, true), [(1, 0, 120, 2), (1, 120, 60, 1)]);
    }
}
