//! Writer: adds samples to a store, seals them into blocks, and deletes what is oldest.
//!
//! Rule: one writer a store. Samples are in memory until [`Writer::flush`], which the caller calls every few
//! seconds; a crash loses what was added since. If the disk refuses a write, samples stay in memory up to a
//! bound, the error is shown, and the next flush tries again.

use crate::block::{HostNo, SeriesNo};
use crate::exact::Exact;
use crate::exported::ExportedTimes;
use crate::head::Shape;
use crate::head_log::{HeadLog, Pending};
use crate::host::{Continue, Host};
use crate::mark::Mark;
use crate::reader::{Index, Reader, Shared, TierState};
use crate::tier::Tier;
use crate::tier_files::{Limit, TierFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// Rows of the head that are sealed into a block: large enough that the compression pays.
pub(crate) const RAW_ROWS: usize = 1024;

/// Closed rows of buckets that are sealed into a block: they are in memory until then.
pub(crate) const BUCKET_ROWS: [usize; 3] = [0, 60, 24];

/// Length of the log of the head at which it is sealed, however few rows each host has.
const LOG_LEN_MAX: u64 = 16 << 20;

/// Rows of a host in memory, in blocks, while the disk refuses to store them.
const BLOCKS_WAITING_MAX: usize = 4;

/// Closed rows of buckets of a host in memory while the disk refuses to store them.
const BUCKETS_WAITING_MAX: usize = 240;

/// All metrics of a host at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// Time of the samples.
    pub time: Time,
    /// The metrics; the same pointer as in the sweep before, if they are the same.
    pub metrics: &'a Arc<[Arc<Metric>]>,
    /// Their values.
    pub values: &'a [Number],
}

/// The writer of a store.
#[derive(Debug)]
pub struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) folder: PathBuf,
    pub(crate) tiers: [TierFiles; 3],
    pub(crate) log: HeadLog,
    pub(crate) pending: Pending,
    /// Numbers whose names are in the log.
    pub(crate) logged: Logged,
    /// The log lacks rows that are in memory: it is not written until they are sealed.
    pub(crate) is_log_incomplete: bool,
    /// Starts of sensors, for the next row of each host.
    pub(crate) starts: BTreeMap<HostNo, Mark>,
    /// Numbers of the next minute of each host that the log lacks, of those that are copied.
    pub(crate) logged_minutes: BTreeMap<HostNo, u64>,
}

/// Numbers whose names a log has.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    hosts: BTreeSet<HostNo>,
    metrics: BTreeSet<SeriesNo>,
}

impl Writer {
    /// Returns a reader of the store; readers are cheap to clone.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader(Arc::clone(&self.shared))
    }

    /// Adds the samples of a sweep.
    pub fn push(&mut self, name: &HostName, sweep: Sweep) {
        let shared = Arc::clone(&self.shared);
        let mut index = shared.write();
        let number = index.names.host_number(name);
        let shape = self.shape(&mut index, number, sweep.metrics);
        let host = index.hosts.entry(number).or_insert_with(|| Host::new(number, Continue::default()));
        let marks = self.starts.remove(&number).into_iter().chain(host.mark_before(sweep.time));
        let marks: Vec<Mark> = marks.collect();
        let row = host.head.next_row();
        let values = sweep.values.iter().map(|value| Exact::from(*value));
        let (packed, is_new) = host.push(&shape, sweep.time, values);
        self.pending.row(number, row, is_new.then_some(&shape.series), packed);
        for mark in marks {
            host.head.mark(mark);
            self.pending.mark(mark);
        }
        let is_full = host.head.rows().is_multiple_of(RAW_ROWS);
        let buckets_due = has_due(host);
        drop(index);
        if is_full || self.log.len() > self.log_len_max() {
            self.seal();
        }
        if buckets_due {
            self.seal_buckets();
        }
    }

    /// Marks that the sensor of this host was started, with the next samples of the host.
    pub fn mark_start(&mut self, name: &HostName, now: Time) {
        let number = self.shared.write().names.host_number(name);
        self.starts.insert(number, Mark::Started(now));
    }

    /// Appends the samples that were added since the last call to the log on disk.
    pub fn flush(&mut self) {
        let is_refused = self.shared.read().state.errors[Tier::Raw.index()].is_some();
        let is_long = self.log.len() > self.log_len_max();
        if is_long {
            self.seal_copied(self.log_len_max() / 2);
        }
        if self.is_log_incomplete || is_refused || is_long {
            self.seal();
        }
        self.log_minutes();
        if !self.is_log_incomplete && !self.pending.is_empty() {
            let len = self.log.len() + self.pending.len_bytes() as u64;
            let room = self.tiers[Tier::Raw.index()].reserve(len);
            let written = room.and_then(|()| self.log.append(&mut self.pending));
            self.outcome(Part::Log, written);
        }
        if self.pending.len_bytes() as u64 > LOG_LEN_MAX {
            self.forget_pending();
        }
    }

    /// Goes on with making long blocks of short ones, in the tiers of minutes and hours: a part of the work at each
    /// call, some tens of milliseconds. The caller calls it every few seconds.
    pub fn compact(&mut self) {
        let shared = Arc::clone(&self.shared);
        for tier in [Tier::Minute, Tier::Hour] {
            let files = &mut self.tiers[tier.index()];
            let is_changed = {
                let index = shared.read();
                files.compact(&index.names, index.is_copy)
            };
            if is_changed {
                shared.write().segments[tier.index()] = files.segments().clone();
            }
        }
        self.show();
    }

    /// Length at which a new log is started: it must fit beside the blocks.
    fn log_len_max(&self) -> u64 {
        LOG_LEN_MAX.min(self.tiers[Tier::Raw.index()].limit().bytes / 2)
    }

    /// Appends what is in memory and makes it durable: before the end of the process.
    pub fn close(mut self) {
        self.flush();
        let synced = self.log.sync();
        self.outcome(Part::Log, synced);
    }

    /// Changes the limits; they apply from the next block on.
    pub fn set_limits(&mut self, limits: [Limit; 3]) {
        for (files, limit) in self.tiers.iter_mut().zip(limits) {
            files.set_limit(limit);
        }
    }

    /// Holds minutes beyond their age until they are exported, if `exported` is given: it applies from the next block on.
    pub fn hold_unexported(&mut self, exported: Option<ExportedTimes>) {
        self.tiers[Tier::Minute.index()].set_exported(exported);
    }

    /// Number of this shape's metrics; names that the log lacks are added to it.
    fn shape(&mut self, index: &mut Index, host: HostNo, metrics: &Arc<[Arc<Metric>]>) -> Arc<Shape> {
        let known = index.hosts.get(&host).and_then(|host| host.shape.as_ref());
        if let Some((known, shape)) = known
            && Arc::ptr_eq(known, metrics)
            && self.logged.hosts.contains(&host)
        {
            return Arc::clone(shape);
        }
        let series: Box<[SeriesNo]> =
            metrics.iter().map(|metric| index.names.series_number(metric)).collect();
        self.log_names(index, host, &series);
        let counters = metrics.iter().map(|metric| metric.semantics == Semantics::Counter).collect();
        let shape = Arc::new(Shape { series, counters });
        let state = index.hosts.entry(host).or_insert_with(|| Host::new(host, Continue::default()));
        state.shape = Some((Arc::clone(metrics), Arc::clone(&shape)));
        shape
    }

    pub(crate) fn log_names(&mut self, index: &Index, host: HostNo, series: &[SeriesNo]) {
        let host = self.logged.hosts.insert(host).then_some(host);
        let metrics: Vec<SeriesNo> =
            series.iter().copied().filter(|series| self.logged.metrics.insert(*series)).collect();
        let names = index.names.definitions(host.into_iter(), metrics.into_iter());
        if !names.is_empty() {
            self.pending.names(&names);
        }
    }

    /// Seals the rows of all hosts into blocks, and starts a new log.
    pub(crate) fn seal(&mut self) {
        let (sealed, outcome) = self.append_rows();
        let is_complete = outcome.is_ok();
        self.outcome(Part::Tier(Tier::Raw), outcome);
        self.publish_rows(&sealed);
        if is_complete {
            let renewed = self.renew_log();
            self.outcome(Part::Log, renewed);
        }
        self.bound_memory();
    }

    /// Appends the rows of each host to the raw tier; returns the hosts that this was done for.
    fn append_rows(&mut self) -> (Vec<HostNo>, io::Result<()>) {
        let shared = Arc::clone(&self.shared);
        let index = shared.read();
        let files = &mut self.tiers[Tier::Raw.index()];
        let mut sealed = Vec::new();
        for (number, host) in index.hosts.iter().filter(|(_, host)| host.head.rows() > 0) {
            let rows = host.head.columns();
            let series: Vec<SeriesNo> = rows.columns.iter().map(|(series, _)| *series).collect();
            if let Err(error) = files.append(&rows.encode(), &series, &index.names) {
                return (sealed, Err(error));
            }
            sealed.push(*number);
        }
        let synced = files.sync();
        (sealed, synced)
    }

    fn publish_rows(&self, sealed: &[HostNo]) {
        let mut index = self.shared.write();
        for number in sealed {
            if let Some(host) = index.hosts.get_mut(number) {
                let row = host.head.next_row();
                host.head.drop_before(row);
            }
        }
        index.segments[Tier::Raw.index()] = self.tiers[Tier::Raw.index()].segments().clone();
    }

    /// Starts a new log, as all rows of the old one are sealed.
    fn renew_log(&mut self) -> io::Result<()> {
        let next = HeadLog::start(&self.folder, self.log.number() + 1)?;
        let old = std::mem::replace(&mut self.log, next);
        self.forget_pending();
        self.is_log_incomplete = false;
        self.log_minutes();
        self.log.append(&mut self.pending)?;
        if !self.logged_minutes.is_empty() {
            self.tiers[Tier::Minute.index()].sync()?;
        }
        old.delete()
    }

    /// Drops the rows that wait for the log: they are sealed, or will be before the log is written again.
    fn forget_pending(&mut self) {
        self.pending = Pending::default();
        self.logged = Logged::default();
        self.logged_minutes.clear();
        self.is_log_incomplete = true;
    }

    /// Seals closed buckets into blocks where enough of them are in memory.
    pub(crate) fn seal_buckets(&mut self) {
        let is_hour_due = |host: &Host| is_due(host, Tier::Hour);
        self.seal_buckets_of(|host| is_due(host, Tier::Minute) || is_hour_due(host), is_hour_due);
    }

    /// Seals the closed minutes and hours of these hosts into blocks. An hour is sealed after its minutes: after a crash
    /// it is known so which minutes are in it.
    pub(crate) fn seal_buckets_of(&mut self, minutes: impl Fn(&Host) -> bool, hours: impl Fn(&Host) -> bool) {
        let mut sealed = self.try_seal_buckets(Tier::Minute, minutes);
        let are_minutes_sealed = sealed.is_ok();
        self.outcome(Part::Tier(Tier::Minute), sealed);
        if are_minutes_sealed {
            sealed = self.try_seal_buckets(Tier::Hour, hours);
            self.outcome(Part::Tier(Tier::Hour), sealed);
        }
    }

    fn try_seal_buckets(&mut self, tier: Tier, is_due: impl Fn(&Host) -> bool) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let index = shared.read();
        let mut sealed = Vec::new();
        let mut outcome = Ok(());
        for (number, host) in index.hosts.iter().filter(|(_, host)| is_due(host)) {
            if host.rollup(tier).closed().is_empty() {
                continue;
            }
            let rows = host.rollup(tier).columns();
            let series: Vec<SeriesNo> = rows.columns.iter().map(|(series, _)| *series).collect();
            outcome = self.tiers[tier.index()].append(&rows.encode(), &series, &index.names);
            if outcome.is_err() {
                break;
            }
            sealed.push((*number, rows.first_row + rows.times.len() as u64));
        }
        drop(index);
        let mut index = shared.write();
        for (number, next_row) in sealed {
            if let Some(host) = index.hosts.get_mut(&number) {
                host.rollup_mut(tier).drop_before(next_row);
            }
        }
        index.segments[tier.index()] = self.tiers[tier.index()].segments().clone();
        outcome
    }

    /// Drops the oldest rows of the head if more wait than fit in memory; they are counted.
    pub(crate) fn bound_memory(&mut self) {
        let mut index = self.shared.write();
        let mut lost = 0;
        for host in index.hosts.values_mut() {
            host.head.cut();
            while host.head.rows() > RAW_ROWS * BLOCKS_WAITING_MAX {
                match host.head.drop_oldest() {
                    0 => break,
                    rows => lost += rows,
                }
            }
            for rollup in [&mut host.minutes, &mut host.hours] {
                lost += rollup.bound(BUCKETS_WAITING_MAX);
            }
        }
        index.state.lost_rows += lost;
    }

    /// Shows an error, or that there is none any more.
    pub(crate) fn outcome(&self, part: Part, outcome: io::Result<()>) {
        let mut index = self.shared.write();
        let at = match part {
            Part::Tier(tier) => tier.index(),
            Part::Log => Tier::ALL.len(),
        };
        index.state.errors[at] = outcome.err().map(|error| error.to_string());
        drop(index);
        self.show();
    }

    /// Updates the figures of the files.
    pub(crate) fn show(&self) {
        let mut index = self.shared.write();
        for (tier, files) in self.tiers.iter().enumerate() {
            index.state.tiers[tier] = TierState {
                used_bytes: files.used_bytes(),
                limit: files.limit(),
                is_held: files.is_held(),
                files: files.counts,
            };
        }
        index.state.tiers[Tier::Raw.index()].used_bytes += self.log.len();
    }
}

/// A part of the store that can fail on its own.
pub(crate) enum Part {
    Tier(Tier),
    Log,
}

/// Whether so many closed buckets of the host are in memory that they are sealed.
pub(crate) fn has_due(host: &Host) -> bool {
    [Tier::Minute, Tier::Hour].into_iter().any(|tier| is_due(host, tier))
}

fn is_due(host: &Host, tier: Tier) -> bool {
    host.rollup(tier).closed().len() >= BUCKET_ROWS[tier.index()]
}
