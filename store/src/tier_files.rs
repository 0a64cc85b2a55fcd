//! Files of a tier: its segments, within a limit that is never exceeded.
//!
//! Rule: before anything is written there is room for it and for the index; the oldest segments are deleted
//! for that. Data also expires by age: measured by the newest blocks, not by the clock, so that a clock that
//! is wrong for a while deletes nothing.

use crate::block::{Encoded, Extent, HostNo};
use crate::compaction::{self, Compaction};
use crate::exported::ExportedTimes;
use crate::names::{Definitions, Names};
use crate::rows::HostBlock;
use crate::segment::{Found, Segment};
use crate::tier::Tier;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Segments that a full tier consists of: so much of it is deleted at a time, at most.
const SEGMENTS_PER_TIER: u64 = 16;

/// Smallest segment: names and index would be most of a smaller one.
const SEGMENT_LEN_MIN: u64 = 64 << 10;

/// Blocks of a segment of each tier that is compacted when it is complete, at most: so queries meet few short blocks, and
/// these take some megabytes of memory. Of a large domain these are about four hours of minutes, a week of hours.
const BLOCKS_MAX: [usize; 3] = [usize::MAX, 8192, 65_536];

/// Blocks of each host that a segment has room for, however many hosts there are: fewer are not worth compacting.
const BLOCKS_PER_HOST: usize = 16;

/// Bytes of blocks that are compacted at each call: some tens of milliseconds of a core.
const COMPACTED_LEN: u64 = 1 << 20;

/// Calls until a compaction that failed is tried again: about an hour.
const CALLS_AFTER_FAILURE: u32 = 450;

/// Blocks that must be later than the age limit before older ones expire.
const NEWEST_BLOCKS: usize = 16;

/// How much of a tier is retained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Disk space, in bytes.
    pub bytes: u64,
    /// Age of the oldest values.
    pub age: Duration,
}

/// The segments of a tier.
#[derive(Debug)]
pub(crate) struct TierFiles {
    tier: Tier,
    folder: PathBuf,
    limit: Limit,
    /// Oldest first.
    segments: VecDeque<Arc<Segment>>,
    next_number: u64,
    /// Disk space of files beside the segments that counts towards the limit.
    reserved_bytes: u64,
    /// Ends of the newest blocks.
    newest: VecDeque<Time>,
    /// Complete segments whose blocks may be short.
    to_compact: VecDeque<Arc<Segment>>,
    compaction: Option<Compaction>,
    /// Calls until the next compaction is started.
    pause: u32,
    /// What is exported; if it is given, other blocks are held beyond their age.
    exported: Option<ExportedTimes>,
    /// Some are.
    is_held: bool,
    pub(crate) counts: Counts,
}

/// What happened to the files of a tier since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that were damaged, and were skipped or cut off.
    pub damaged_bytes: u64,
    /// Files that could not be read at all, and were left where they are.
    pub unreadable_files: u64,
    /// Segments deleted for their age or for space.
    pub deleted_segments: u64,
    /// Those of them that were deleted for space before they were exported.
    pub unexported_segments: u64,
    /// Segments whose short blocks were made into long ones.
    pub compacted_segments: u64,
}

impl TierFiles {
    /// Opens the files of a tier in the folder of the history, and adds their names.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub(crate) fn open(history: &Path, tier: Tier, limit: Limit, names: &mut Names) -> io::Result<TierFiles> {
        let folder = history.join(tier.name());
        daemon::state_folder::prepare_below(&folder)?;
        remove_unfinished(&folder)?;
        let mut files = TierFiles {
            tier,
            folder,
            limit,
            segments: VecDeque::new(),
            next_number: 1,
            reserved_bytes: 0,
            newest: VecDeque::new(),
            to_compact: VecDeque::new(),
            compaction: None,
            pause: 0,
            exported: None,
            is_held: false,
            counts: Counts::default(),
        };
        for (number, path) in numbered(&files.folder, ".seg")? {
            files.next_number = number + 1;
            match Segment::open(path) {
                Ok(Found { segment, names: found, damaged_bytes }) => {
                    names.add(&found);
                    files.counts.damaged_bytes += damaged_bytes;
                    segment.each_extent(|extent| files.note(extent));
                    let segment = Arc::new(segment);
                    files.may_compact(&segment);
                    files.segments.push_back(segment);
                }
                Err(_) => files.counts.unreadable_files += 1,
            }
        }
        Ok(files)
    }

    pub(crate) fn segments(&self) -> &VecDeque<Arc<Segment>> {
        &self.segments
    }

    /// Disk space in use, in bytes, with the index that the newest segment will have.
    pub(crate) fn used_bytes(&self) -> u64 {
        let compacted = self.compaction.iter().map(|compaction| compaction.new.len_complete());
        self.segments.iter().map(|segment| segment.len_complete()).chain(compacted).sum()
    }

    pub(crate) fn limit(&self) -> Limit {
        self.limit
    }

    pub(crate) fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    pub(crate) fn set_exported(&mut self, exported: Option<ExportedTimes>) {
        self.exported = exported;
    }

    /// Whether blocks are held beyond their age, because they are not exported.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Makes room for files beside the segments.
    ///
    /// # Errors
    /// If there is no room, or a segment cannot be deleted.
    pub(crate) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        self.reserved_bytes = bytes;
        self.make_room(0)
    }

    /// Appends a block; deletes what is oldest if there is no room for it or it has expired.
    ///
    /// # Errors
    /// If the block cannot be written. Nothing is stored of it then; older blocks may have been deleted.
    pub(crate) fn append(&mut self, block: &Encoded, series: &[u32], names: &Names) -> io::Result<()> {
        let segment = self.segment_for(block, names)?;
        let definitions = missing(&segment, block.extent.host, series, names);
        self.make_room(needed(&definitions, block))?;
        segment.append(&definitions, block)?;
        self.note(&block.extent);
        self.expire()
    }

    /// Makes the newest segment durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.segments.back().map_or(Ok(()), |segment| segment.sync())
    }

    /// The blocks of each host, oldest first.
    pub(crate) fn by_host(&self) -> BTreeMap<HostNo, Vec<HostBlock>> {
        let mut hosts: BTreeMap<HostNo, Vec<HostBlock>> = BTreeMap::new();
        for segment in &self.segments {
            for entry in segment.entries(|_| true) {
                hosts.entry(entry.extent.host).or_default().push((Arc::clone(segment), entry));
            }
        }
        hosts
    }

    /// The segment to append to, which is started if there is none or the newest is full.
    fn segment_for(&mut self, block: &Encoded, names: &Names) -> io::Result<Arc<Segment>> {
        let len_max = (self.limit.bytes / SEGMENTS_PER_TIER).max(SEGMENT_LEN_MIN);
        if let Some(newest) = self.segments.back()
            && !newest.is_complete()
        {
            let len = newest.len_complete() + (block.head.len() + block.body.len()) as u64;
            // By its age too, so that it can be compacted, and deleted by age.
            let age_max = self.limit.age / u32::try_from(SEGMENTS_PER_TIER).expect("a small number");
            let is_aged = |first: Time| block.extent.latest > first.plus(age_max);
            let blocks = newest.blocks();
            let is_over = blocks.count >= blocks_max(self.tier, blocks.hosts);
            let is_full = blocks.first.is_some_and(|first| len > len_max || is_over || is_aged(first));
            if !is_full && !newest.is_older() {
                return Ok(Arc::clone(newest));
            }
            let newest = Arc::clone(newest);
            complete(&newest, names)?;
            self.may_compact(&newest);
        }
        let path = self.folder.join(format!("{:020}.seg", self.next_number));
        let segment = Arc::new(Segment::create(path)?);
        self.next_number += 1;
        self.segments.push_back(Arc::clone(&segment));
        Ok(segment)
    }

    fn may_compact(&mut self, segment: &Arc<Segment>) {
        if self.tier != Tier::Raw && segment.is_complete() {
            self.to_compact.push_back(Arc::clone(segment));
        }
    }

    /// Goes on with making long blocks of short ones, a part of the work at each call. Returns whether the segments
    /// have changed. What fails is tried again later; the segments stay as they are.
    pub(crate) fn compact(&mut self, names: &Names, is_copy: bool) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.try_compact(names, is_copy).unwrap_or_else(|_| {
            if let Some(failed) = self.compaction.take() {
                self.to_compact.push_back(Arc::clone(&failed.old));
                failed.discard();
            }
            self.pause = CALLS_AFTER_FAILURE;
            false
        })
    }

    fn try_compact(&mut self, names: &Names, is_copy: bool) -> io::Result<bool> {
        let is_copied_minute = is_copy && self.tier == Tier::Minute;
        while self.compaction.is_none()
            && let Some(next) = self.to_compact.pop_front()
        {
            if self.place_of(&next).is_some() {
                self.compaction = Compaction::start(&next, is_copied_minute)?;
            }
        }
        let Some(compaction) = &mut self.compaction else { return Ok(false) };
        let Ok(blocks) = compaction.next(COMPACTED_LEN) else {
            // What can be read of a damaged segment stays where it is.
            self.compaction.take().into_iter().for_each(Compaction::discard);
            return Ok(false);
        };
        for compaction::Compacted { block, series } in blocks {
            let Some(Compaction { new, .. }) = &self.compaction else { break };
            let definitions = missing(new, block.extent.host, &series, names);
            self.make_room(needed(&definitions, &block))?;
            let Some(Compaction { new, .. }) = &self.compaction else { break };
            new.append(&definitions, &block)?;
        }
        match self.compaction.take_if(|compaction| compaction.is_read()) {
            Some(compaction) => self.install(compaction, names),
            None => Ok(false),
        }
    }

    /// Replaces the segment by its compacted form, unless it was deleted meanwhile.
    fn install(&mut self, mut compaction: Compaction, names: &Names) -> io::Result<bool> {
        let Some(at) = self.place_of(&compaction.old) else {
            compaction.discard();
            return Ok(false);
        };
        let whole = complete(&compaction.new, names);
        if let Err(error) = whole.and_then(|()| compaction.new.replace(compaction.old.path())) {
            // It is discarded like one that failed before.
            self.compaction = Some(compaction);
            return Err(error);
        }
        self.segments[at] = Arc::new(compaction.new);
        self.counts.compacted_segments += 1;
        Ok(true)
    }

    fn place_of(&self, wanted: &Arc<Segment>) -> Option<usize> {
        self.segments.iter().position(|segment| Arc::ptr_eq(segment, wanted))
    }

    fn make_room(&mut self, needed: u64) -> io::Result<()> {
        while self.used_bytes() + self.reserved_bytes + needed > self.limit.bytes {
            if self.segments.len() <= 1 {
                let text =
                    format!("a block of {needed} bytes exceeds the limit of {} bytes", self.limit.bytes);
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
            }
            let is_unexported = !self.may_expire();
            self.delete_oldest()?;
            self.counts.unexported_segments += u64::from(is_unexported);
        }
        Ok(())
    }

    fn expire(&mut self) -> io::Result<()> {
        let Some(newest) = self.newest.iter().min().filter(|_| self.newest.len() == NEWEST_BLOCKS) else {
            return Ok(());
        };
        let oldest_allowed = newest.minus(self.limit.age);
        self.is_held = false;
        while self.segments.len() > 1 {
            let mut is_expired = true;
            self.segments[0].each_extent(|extent| is_expired &= extent.latest < oldest_allowed);
            self.is_held = is_expired && !self.may_expire();
            if !is_expired || self.is_held {
                break;
            }
            self.delete_oldest()?;
        }
        Ok(())
    }

    /// Whether the oldest segment is not held until it is exported.
    fn may_expire(&self) -> bool {
        let mut may = true;
        if let (Some(exported), Some(oldest)) = (&self.exported, self.segments.front()) {
            oldest.each_extent(|extent| may &= exported.has(extent));
        }
        may
    }

    fn delete_oldest(&mut self) -> io::Result<()> {
        let Some(oldest) = self.segments.front() else { return Ok(()) };
        match oldest.delete() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.counts.deleted_segments += 1;
        self.segments.pop_front();
        Ok(())
    }

    fn note(&mut self, extent: &Extent) {
        if self.newest.len() == NEWEST_BLOCKS {
            self.newest.pop_front();
        }
        self.newest.push_back(extent.latest);
    }
}

/// Blocks of a segment with so many hosts, at most.
fn blocks_max(tier: Tier, hosts: usize) -> usize {
    BLOCKS_MAX[tier.index()].max(BLOCKS_PER_HOST * hosts)
}

/// Space that names and a block need: names are written twice, before the block and in the index.
fn needed(names: &Definitions, block: &Encoded) -> u64 {
    let names_len = postcard::to_stdvec(names).map_or(0, |bytes| bytes.len() as u64);
    (block.head.len() + block.body.len()) as u64 + 2 * names_len + 160
}

/// Writes the index of a segment and makes it durable.
fn complete(segment: &Segment, names: &Names) -> io::Result<()> {
    let (hosts, metrics) = segment.named();
    segment.complete(names.definitions(hosts.into_iter(), metrics.into_iter()))?;
    segment.sync()
}

/// Deletes what a compaction left that did not come to its end.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for (_, path) in numbered(folder, &format!(".{}", compaction::NEW_END))? {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Definitions that the segment lacks.
fn missing(segment: &Segment, host: HostNo, series: &[u32], names: &Names) -> Definitions {
    let (host, metrics) = segment.unnamed(host, series.iter().copied());
    names.definitions(host.into_iter(), metrics.into_iter())
}

/// The files of a folder whose names are a number and this end, by number.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn numbered(folder: &Path, end: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(end)).and_then(|name| name.parse().ok());
        found.extend(number.map(|number: u64| (number, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_blocks_of_every_host_that_are_worth_compacting() {
        assert_eq!(blocks_max(Tier::Minute, 1), 8192);
        assert_eq!(blocks_max(Tier::Minute, 10_000), 160_000);
        assert_eq!(blocks_max(Tier::Hour, 10_000), 160_000);
        assert_eq!(blocks_max(Tier::Raw, 10_000), usize::MAX);
    }
}
