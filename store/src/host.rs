//! Host: the state of one host in a store: its head, its open buckets, the previous values of its counters.
//!
//! Pure. Invariant: every row is in the head until it is sealed, and has been merged into the minute that is
//! open or closed; every closed minute likewise into the hour.

use crate::block::{HostNo, SeriesNo};
use crate::bucket::{Bucket, Previous};
use crate::exact::Exact;
use crate::head::{Head, Shape};
use crate::mark::Mark;
use crate::rollup::{ClosedRow, Rollup};
use crate::tier::{Tier, floor};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::sample::Metric;
use wire::time::Time;

/// Metrics of a row, in its order.
pub(crate) type Metrics = Arc<[Arc<Metric>]>;

/// Where a host continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Continue {
    /// Number of the next row of each tier.
    pub(crate) next: [u64; 3],
    /// Number of the first row that is not in a sealed minute.
    pub(crate) rolled_up: u64,
    /// Number of the first minute that is not in a sealed hour, and the latest sealed hour.
    pub(crate) in_hours: Option<(u64, Time)>,
}

/// How far samples were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedSamples {
    /// Number of the row after the newest one.
    pub(crate) next: u64,
    /// Time of the newest row.
    pub(crate) last: Time,
    /// Latest time of a row: not that of the newest after the clock was set back.
    pub(crate) latest: Time,
}

/// State of a host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) head: Head,
    pub(crate) minutes: Rollup,
    pub(crate) hours: Rollup,
    previous: BTreeMap<SeriesNo, Previous>,
    /// Rows before this one are in minutes that are sealed.
    rolled_up: u64,
    /// Minutes before this number are in hours that are sealed; but later minutes than that hour's are not, whatever
    /// their number, as after minutes were lost.
    in_hours: Option<(u64, Time)>,
    /// Samples that were copied from another store.
    pub(crate) copied: Option<CopiedSamples>,
    /// Metrics of the newest row, as the sampler gave them, and their numbers.
    pub(crate) shape: Option<(Metrics, Arc<Shape>)>,
}

impl Host {
    pub(crate) fn new(number: HostNo, from: Continue) -> Host {
        let rollup = |tier: Tier| {
            let period = tier.period().expect("a tier of buckets");
            Rollup::new(number, period, from.next[tier.index()])
        };
        Host {
            head: Head::new(number, from.next[Tier::Raw.index()]),
            minutes: rollup(Tier::Minute),
            hours: rollup(Tier::Hour),
            previous: BTreeMap::new(),
            rolled_up: from.rolled_up,
            in_hours: from.in_hours,
            copied: None,
            shape: None,
        }
    }

    /// Skips the numbers of rows that were lost though minutes made of them are stored: so a power failure can
    /// leave the files.
    pub(crate) fn skip_lost(&mut self, number: HostNo) {
        if self.head.rows() == 0 && self.head.next_row() < self.rolled_up {
            self.head = Head::new(number, self.rolled_up);
        }
    }

    /// Notes samples that were copied up to this row, which has this time.
    pub(crate) fn set_copied(&mut self, number: HostNo, next: u64, last: Time, latest: Time) {
        let latest = self.copied.map_or(latest, |copied| copied.latest.max(latest));
        self.copied = Some(CopiedSamples { next, last, latest });
        // They are all in blocks.
        self.head = Head::new(number, self.head.next_row().max(next));
    }

    /// Sets the last value of a counter before the first row, and its time.
    pub(crate) fn set_previous(&mut self, series: SeriesNo, value: Exact, time: Time) {
        self.previous.insert(series, Previous(Some((value, time))));
    }

    /// The mark that a row at this time needs, if any.
    pub(crate) fn mark_before(&self, time: Time) -> Option<Mark> {
        let latest = self.head.latest()?;
        (time < latest).then_some(Mark::ClockSetBack { from: latest, to: time })
    }

    /// Adds a row to the head; returns its packed bytes, and whether its shape is new.
    pub(crate) fn push(
        &mut self,
        shape: &Arc<Shape>,
        time: Time,
        values: impl Iterator<Item = Exact> + Clone,
    ) -> (&[u8], bool) {
        let row = self.head.next_row();
        match row >= self.rolled_up {
            true => self.roll_up(shape, time, row, values.clone()),
            false => self.pass(shape, time, values.clone()),
        }
        self.head.push(shape, time, values)
    }

    /// Passes a row that is in a sealed minute: the next increases follow from it.
    pub(crate) fn pass(&mut self, shape: &Shape, time: Time, values: impl Iterator<Item = Exact>) {
        for ((series, is_counter), value) in shape.series.iter().zip(&shape.counters).zip(values) {
            self.previous.entry(*series).or_default().next(value, time, *is_counter);
        }
    }

    /// Merges a row into the buckets.
    pub(crate) fn roll_up(
        &mut self,
        shape: &Shape,
        time: Time,
        row: u64,
        values: impl Iterator<Item = Exact>,
    ) {
        let series = shape.series.iter().zip(&shape.counters);
        let buckets: Vec<(SeriesNo, Bucket)> = series
            .zip(values)
            .filter_map(|((series, is_counter), value)| {
                let bucket = self.previous.entry(*series).or_default().next(value, time, *is_counter);
                bucket.map(|bucket| (*series, bucket))
            })
            .collect();
        let buckets = buckets.iter().map(|(series, bucket)| (*series, bucket));
        if let Some((number, minute)) = self.minutes.push(time, row, buckets) {
            let buckets = minute.buckets.iter().map(|(series, bucket)| (*series, bucket));
            self.add_to_hour(minute.start, number, buckets);
        }
    }

    /// Merges a minute into its hour, unless it is in a sealed one.
    pub(crate) fn add_to_hour<'a>(
        &mut self,
        start: Time,
        number: u64,
        buckets: impl Iterator<Item = (SeriesNo, &'a Bucket)>,
    ) {
        let is_sealed = self.in_hours.is_some_and(|(next, latest)| {
            number < next && floor(start, Tier::Hour.period().expect("a tier of buckets")) <= latest
        });
        if !is_sealed {
            self.hours.push(start, number, buckets);
        }
    }

    /// Adds a minute that another store has closed.
    pub(crate) fn append_minute(&mut self, minute: ClosedRow) {
        let buckets: Vec<(SeriesNo, Bucket)> = minute.buckets().collect();
        let (number, start) = (self.minutes.next_row(), minute.start);
        self.minutes.append(minute);
        self.add_to_hour(start, number, buckets.iter().map(|(series, bucket)| (*series, bucket)));
    }

    /// The buckets of a tier.
    pub(crate) fn rollup(&self, tier: Tier) -> &Rollup {
        match tier {
            Tier::Hour => &self.hours,
            Tier::Minute | Tier::Raw => &self.minutes,
        }
    }

    pub(crate) fn rollup_mut(&mut self, tier: Tier) -> &mut Rollup {
        match tier {
            Tier::Hour => &mut self.hours,
            Tier::Minute | Tier::Raw => &mut self.minutes,
        }
    }
}
