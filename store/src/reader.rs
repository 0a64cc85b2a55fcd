//! Reader: the values of a store, from its blocks and from what is in memory.
//!
//! Rule: readers never wait for the disk of the writer. A reader takes a list of blocks, and reads them
//! without a lock; segments deleted meanwhile stay readable. Damaged chunks are skipped and counted.

use crate::block::{HostNo, SeriesNo};
use crate::bucket::Bucket;
use crate::chunk::Cell;
use crate::exact::Exact;
use crate::host::Host;
use crate::mark::Mark;
use crate::names::Names;
use crate::plan::Part;
use crate::rollup::{BucketRow, ClosedRow};
use crate::segment::{Entry, Segment};
use crate::tier::{Tier, floor};
use crate::tier_files::{Counts, Limit};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use wire::id::HostName;
use wire::sample::Metric;
use wire::time::Time;

/// State of a store, for health and metrics about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Each tier.
    pub tiers: [TierState; 3],
    /// Why each tier and the log of the newest samples is not stored at the moment.
    pub errors: [Option<String>; 4],
    /// Rows dropped since the start because the disk did not store them in time.
    pub lost_rows: u64,
    /// Blocks and chunks found damaged while the store was opened.
    pub damaged_chunks: u64,
}

/// State of a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierState {
    /// Disk space in use, in bytes.
    pub used_bytes: u64,
    /// How much of it is retained.
    pub limit: Limit,
    /// Values are held beyond their age, because they are not exported.
    pub is_held: bool,
    /// What happened to its files.
    pub files: Counts,
}

/// What readers and the writer share.
#[derive(Debug, Default)]
pub(crate) struct Shared(RwLock<Index>);

#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) names: Names,
    pub(crate) hosts: BTreeMap<HostNo, Host>,
    pub(crate) segments: [VecDeque<Arc<Segment>>; 3],
    pub(crate) state: State,
    /// Minutes are copied from other stores: they do not follow from samples, and are in the log.
    pub(crate) is_copy: bool,
}

impl Shared {
    pub(crate) fn new(index: Index) -> Shared {
        Shared(RwLock::new(index))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reader of a store.
#[derive(Clone, Debug)]
pub struct Reader(pub(crate) Arc<Shared>);

/// Series and span of time to read.
pub struct Selection<'a> {
    /// Which hosts.
    pub host: &'a dyn Fn(&HostName) -> bool,
    /// Which metrics.
    pub metric: &'a dyn Fn(&Metric) -> bool,
    /// From this time on.
    pub since: Time,
    /// Before this time.
    pub until: Time,
}

/// A selection by numbers.
pub(crate) struct Numbers {
    pub(crate) hosts: BTreeMap<HostNo, HostName>,
    pub(crate) metrics: BTreeMap<SeriesNo, Arc<Metric>>,
}

/// What a read met beside values.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Damaged blocks and chunks.
    pub(crate) damaged: u64,
    pub(crate) marks: BTreeSet<(HostNo, Mark)>,
    /// The visitor wanted no more.
    is_stopped: bool,
}

/// Whether a visitor wants more values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    Continue,
    Stop,
}

/// A block to read.
struct ToRead {
    segment: Arc<Segment>,
    entry: Entry,
}

/// Values in a row of a series.
pub(crate) struct Found<'a, C> {
    pub(crate) host: HostNo,
    pub(crate) series: SeriesNo,
    pub(crate) time: Time,
    pub(crate) value: &'a C,
}

impl Reader {
    /// Returns the state of the store.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.read().state.clone()
    }

    /// Returns the time of the oldest value of each tier, for these hosts.
    #[must_use]
    pub fn oldest(&self, host: &dyn Fn(&HostName) -> bool) -> [Option<Time>; 3] {
        let index = self.0.read();
        let is_wanted = |number| index.names.host(number).is_some_and(host);
        Tier::ALL.map(|tier| {
            let mut oldest: Option<Time> = None;
            for segment in &index.segments[tier.index()] {
                segment.each_extent(|extent| {
                    if is_wanted(extent.host) {
                        oldest = Some(oldest.map_or(extent.earliest, |oldest| oldest.min(extent.earliest)));
                    }
                });
                if oldest.is_some() {
                    return oldest;
                }
            }
            let hosts = index.hosts.iter().filter(|(number, _)| is_wanted(**number));
            hosts.filter_map(|(_, host)| in_memory_since(host, tier)).min()
        })
    }

    /// Hosts and metrics of the selection.
    pub(crate) fn numbers(&self, selection: &Selection) -> Numbers {
        let index = self.0.read();
        let hosts = index.names.hosts().filter(|(_, host)| (selection.host)(host));
        let metrics = index.names.metrics().filter(|(_, metric)| (selection.metric)(metric));
        Numbers {
            hosts: hosts.map(|(number, host)| (number, host.clone())).collect(),
            metrics: metrics.map(|(number, metric)| (number, Arc::clone(metric))).collect(),
        }
    }

    /// What is read for a part: of hosts whose samples were not copied, minutes in their place.
    pub(crate) fn by_tier(&self, part: &Part, numbers: &Numbers) -> Vec<(Part, Numbers)> {
        let index = self.0.read();
        let has_none = |number: &HostNo| {
            let is_copied = || index.hosts.get(number).is_some_and(|host| host.copied.is_some());
            part.tier == Tier::Raw && index.is_copy && !is_copied()
        };
        let (others, hosts): (BTreeMap<_, _>, BTreeMap<_, _>) =
            numbers.hosts.clone().into_iter().partition(|(number, _)| has_none(number));
        let of = |tier, hosts| (Part { tier, ..*part }, Numbers { hosts, metrics: numbers.metrics.clone() });
        let all = [of(part.tier, hosts), of(Tier::Minute, others)];
        all.into_iter().filter(|(_, numbers)| !numbers.hosts.is_empty()).collect()
    }

    /// Visits samples in the order in which they were stored: all of the blocks that have any in this span, and
    /// of the blocks before these, from which the first increases follow.
    pub(crate) fn samples(
        &self,
        numbers: &Numbers,
        since: Time,
        until: Time,
        visit: &mut dyn FnMut(Found<Exact>) -> Visit,
    ) -> Notes {
        let index = self.0.read();
        let mut blocks = Vec::new();
        let mut earlier: BTreeMap<HostNo, ToRead> = BTreeMap::new();
        for segment in &index.segments[Tier::Raw.index()] {
            for entry in segment.entries(|extent| numbers.hosts.contains_key(&extent.host)) {
                let extent = &entry.extent;
                let in_memory = index.hosts.get(&extent.host).map(|host| host.head.first_row());
                if in_memory.is_some_and(|first| extent.first_row >= first) {
                    continue;
                }
                let (host, block) = (extent.host, ToRead { segment: Arc::clone(segment), entry });
                if block.entry.extent.latest >= since && block.entry.extent.earliest < until {
                    blocks.extend(earlier.remove(&host));
                    blocks.push(block);
                } else {
                    earlier.insert(host, block);
                }
            }
        }
        // Copied in packed form, so that the lock is not held while they are visited after the blocks.
        let mut heads = Vec::new();
        for (number, host) in index.hosts.iter().filter(|(number, _)| numbers.hosts.contains_key(number)) {
            if host.head.latest_of_all().is_some_and(|latest| latest >= since) {
                blocks.extend(earlier.remove(number));
                heads.push((*number, host.head.clone()));
            }
        }
        drop(index);
        let mut notes = read_blocks(&blocks, numbers, visit);
        if notes.is_stopped {
            return notes;
        }
        for (host, head) in &heads {
            notes.marks.extend(head.marks().iter().map(|mark| (*host, *mark)));
            head.each(|_, time, shape, values| {
                let wanted = shape.series.iter().zip(values);
                for (series, value) in wanted.filter(|(series, _)| numbers.metrics.contains_key(series)) {
                    visit(Found { host: *host, series: *series, time, value });
                }
            });
        }
        notes
    }

    /// Visits buckets in the order in which they were stored: all of the blocks that have any in this span, and
    /// those that are open.
    pub(crate) fn buckets(
        &self,
        tier: Tier,
        numbers: &Numbers,
        since: Time,
        until: Time,
        visit: &mut dyn FnMut(Found<Bucket>) -> Visit,
    ) -> Notes {
        let index = self.0.read();
        let mut blocks = Vec::new();
        for segment in &index.segments[tier.index()] {
            let entries = segment.entries(|extent| {
                let in_memory = index.hosts.get(&extent.host).map(|host| host.rollup(tier).first_row());
                numbers.hosts.contains_key(&extent.host)
                    && extent.latest >= since
                    && extent.earliest < until
                    && in_memory.is_none_or(|first| extent.first_row < first)
            });
            blocks.extend(entries.into_iter().map(|entry| ToRead { segment: Arc::clone(segment), entry }));
        }
        let (closed, open) = in_memory(&index, tier, numbers, |start| start >= since && start < until);
        drop(index);
        let notes = read_blocks(&blocks, numbers, visit);
        for (host, row) in &closed {
            for (series, bucket) in row.buckets().filter(|(series, _)| numbers.metrics.contains_key(series)) {
                visit(Found { host: *host, series, time: row.start, value: &bucket });
            }
        }
        for (host, series, time, value) in &open {
            visit(Found { host: *host, series: *series, time: *time, value });
        }
        notes
    }
}

type InMemory = (Vec<(HostNo, ClosedRow)>, Vec<(HostNo, SeriesNo, Time, Bucket)>);

/// Rows of a tier that are not sealed: closed ones, in packed form, and the buckets of those that are open.
fn in_memory(index: &Index, tier: Tier, numbers: &Numbers, is_in_span: impl Fn(Time) -> bool) -> InMemory {
    let (mut closed, mut open) = (Vec::new(), Vec::new());
    let mut add = |host: HostNo, row: &BucketRow, start: Time| {
        let wanted = row.buckets.iter().filter(|(series, _)| numbers.metrics.contains_key(series));
        open.extend(wanted.map(|(series, bucket)| (host, *series, start, *bucket)));
    };
    for (number, host) in index.hosts.iter().filter(|(number, _)| numbers.hosts.contains_key(number)) {
        let rows = host.rollup(tier).closed().iter().filter(|row| is_in_span(row.start));
        closed.extend(rows.map(|row| (*number, row.clone())));
        if let Some(row) = host.rollup(tier).open().filter(|row| is_in_span(row.start)) {
            add(*number, row, row.start);
        }
        // The open hour lacks the minute that is open.
        if tier == Tier::Hour
            && let Some(minute) = host.minutes.open()
        {
            let hour = floor(minute.start, Tier::Hour.period().expect("a tier of buckets"));
            if is_in_span(hour) {
                add(*number, minute, hour);
            }
        }
    }
    (closed, open)
}

fn in_memory_since(host: &Host, tier: Tier) -> Option<Time> {
    match tier {
        Tier::Raw => host.head.earliest(),
        Tier::Minute | Tier::Hour => host.rollup(tier).earliest(),
    }
}

/// Visits the selected series of blocks.
fn read_blocks<C: Cell>(
    blocks: &[ToRead],
    numbers: &Numbers,
    visit: &mut dyn FnMut(Found<C>) -> Visit,
) -> Notes {
    let mut notes = Notes::default();
    for ToRead { segment, entry } in blocks {
        let Ok(opened) = segment.open_block(entry, |series| numbers.metrics.contains_key(&series)) else {
            notes.damaged += 1;
            continue;
        };
        let host = opened.extent.host;
        notes.marks.extend(opened.marks.iter().map(|mark| (host, *mark)));
        for place in &opened.places {
            let Ok(cells) = segment.column::<C>(entry, &opened, place) else {
                notes.damaged += 1;
                continue;
            };
            for (time, value) in opened.times.iter().zip(&cells) {
                let Some(value) = value else { continue };
                if visit(Found { host, series: place.series, time: *time, value }) == Visit::Stop {
                    notes.is_stopped = true;
                    return notes;
                }
            }
        }
    }
    notes
}
