//! Relay of a subscription: one stream from a host for all consumers with the same request. Splits each
//! filter into the part that the host evaluates and the rest, and rebuilds the host's tables from its
//! entries.
//!
//! ```text
//! consumer A: child of 7 and cpu > 0.5, 64 Hz ─┐ the rest of each, here    child of 7, by changes, 64 Hz
//! consumer B: child of 7 top 3 by cpu,   1 Hz ─┴──── table, rebuilt ◀───────── one subscription at the host
//! ```
//!
//! Pure. Rule: predicates on what a process keeps for its lifetime, and on the name of a metric, are
//! evaluated at the source, so that the host sends little more than its consumers need; the other predicates
//! are evaluated here at each consumer's own rate, by the same code. Invariant: the table is that of the
//! source, or it is not shown.
//! Not here: requests to the host, the list of subscribers (`query::channels`).

use crate::process::source::View;
use crate::process::table::Coverage;
use crate::sample::table::{Rows, Table};
use std::sync::Arc;
use std::time::Duration;
use wire::channel::Kind;
use wire::channel::filter::{Filter, Predicate};
use wire::channel::stream::{Body, Entry, Reading, Record};
use wire::sample::Metric;
use wire::time::Time;

/// Numbers that do not change during the life of a process. With a threshold on another number, a process
/// would come and go at the source, and lose its past here.
const LASTING: [&str; 5] = ["pid", "parent", "uid", "cgroup", "start_seconds"];
/// How far the converted time of an entry may be from its arrival before the clocks are compared again: more
/// than the entries of one answer span.
const DRIFT_MAX: Duration = Duration::from_secs(10);

/// Splits a filter into the part that the source evaluates, and the rest.
///
/// For events and calls the source evaluates nothing: a consumer that alters its filter stays in the same
/// stream, and loses nothing.
#[must_use]
pub fn split(kind: Kind, filter: &Filter) -> (Filter, Filter) {
    let is_of_source = |predicate: &&Predicate| match (kind, predicate) {
        (Kind::Event | Kind::Call, _) => false,
        (Kind::Process, Predicate::Threshold { field, .. }) => LASTING.contains(&field.as_str()),
        (Kind::Host, Predicate::Threshold { .. }) => false,
        (Kind::Process | Kind::Host, predicate) => match predicate {
            Predicate::Matches { field, .. } | Predicate::Is { field, .. } => field != "state",
            Predicate::ParentOf(_) | Predicate::ChildOf(_) => true,
            Predicate::Changes { .. } | Predicate::Growth { .. } | Predicate::Threshold { .. } => false,
        },
    };
    let (of_source, rest): (Vec<&Predicate>, Vec<&Predicate>) =
        filter.predicates.iter().partition(|predicate| is_of_source(predicate));
    let of_source = Filter { predicates: of_source.into_iter().cloned().collect(), top: None };
    let rest = Filter { predicates: rest.into_iter().cloned().collect(), top: filter.top.clone() };
    (of_source, rest)
}

/// Result of an entry of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The table is that of the source, as of a sweep.
    Sweep {
        /// When the sweep started, by the local clock.
        at: Duration,
        /// Samples lost before it.
        lost: u64,
    },
    /// More processes pass than the source sends.
    TooMany,
    /// So many samples were lost, and the table is unknown until a whole sample arrives.
    Lost(u64),
    Nothing,
}

/// State of the stream from a source: entry numbers and clock.
#[derive(Debug, Default)]
pub struct StreamState {
    /// Expected number of the next entry; `None` before the first.
    next: Option<u64>,
    /// The same moment by the local clock and by the source's clock, the latter in nanoseconds since its
    /// boot.
    clocks: Option<(Duration, u64)>,
}

impl StreamState {
    /// Restarts the numbering, for another subscription at the source.
    pub fn restart(&mut self) {
        *self = StreamState { next: Some(0), clocks: None };
    }

    /// Takes in the next entry; returns how many entries before it were lost.
    pub fn lost(&mut self, entry: &Entry) -> u64 {
        let lost = self.next.map_or(0, |next| entry.number.saturating_sub(next));
        self.next = Some(entry.number + if let Body::Missed(count) = entry.body { count } else { 1 });
        lost
    }

    /// Converts a time of the source to the local clock. Clocks drift, and only the source's clock counts the
    /// time that its host is suspended.
    pub fn own(&mut self, at_ns: u64, now: Duration) -> Duration {
        let (own, of_source) = *self.clocks.get_or_insert((now, at_ns));
        let at = at_ns.checked_sub(of_source).map(|since| own + Duration::from_nanos(since));
        let is_near = |at: &Duration| at.abs_diff(now) <= DRIFT_MAX;
        at.filter(is_near).unwrap_or_else(|| {
            self.clocks = Some((now, at_ns));
            now
        })
    }

    /// Converts a local time to the source's clock, in nanoseconds since its boot; 0 before the first entry.
    #[must_use]
    pub fn of_source(&self, now: Duration) -> u64 {
        let since = |own: Duration| u64::try_from(now.saturating_sub(own).as_nanos()).unwrap_or(0);
        self.clocks.map_or(0, |(own, of_source)| of_source.saturating_add(since(own)))
    }
}

/// Rebuilds tables from the host sweeps of a source.
#[derive(Debug, Default)]
pub struct Tables {
    /// Metrics of the previous sweep.
    known: Vec<Arc<Metric>>,
    rows: Rows,
}

impl Tables {
    /// Builds a table of these readings; it shares the metrics of the previous table where they are the same.
    pub fn table(&mut self, readings: Vec<Reading>) -> Table {
        let count = readings.len();
        for (place, Reading { metric, value }) in readings.into_iter().enumerate() {
            if self.known.get(place).is_none_or(|known| **known != metric) {
                self.known.truncate(place);
                self.known.push(Arc::new(metric));
            }
            self.rows.push(&self.known[place], value);
        }
        self.known.truncate(count);
        self.rows.finish(Time::default())
    }
}

/// Process table of a source, rebuilt from its entries.
#[derive(Debug, Default)]
pub struct RebuiltTable {
    view: View,
    /// Whether the table is that of the source.
    is_known: bool,
    pub stream: StreamState,
}

impl RebuiltTable {
    /// The processes, as of the last sweep.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether the table is that of the source; if not, a whole sample must be requested.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Restarts the numbering, for another subscription at the source.
    pub fn restart(&mut self) {
        self.is_known = false;
        self.stream.restart();
    }

    /// Takes in the next entry of the source, which arrived at `now`.
    pub fn apply(&mut self, entry: Entry, now: Duration) -> Applied {
        let lost = self.stream.lost(&entry);
        if lost > 0 {
            self.is_known = false;
        }
        match entry.body {
            Body::Sample { left_out, .. } if left_out > 0 => {
                self.is_known = false;
                Applied::TooMany
            }
            Body::Sample { sweep, gone, records, .. } => {
                let is_whole = gone.is_none();
                if !is_whole && !self.is_known {
                    // A sample of changes needs the table before it, which was lost: the sample is lost too.
                    return Applied::Lost(lost + 1);
                }
                self.is_known = true;
                self.sweep(sweep, entry.at_ns, gone, records);
                Applied::Sweep { at: self.stream.own(entry.at_ns, now), lost }
            }
            Body::Missed(count) => {
                self.is_known = false;
                Applied::Lost(lost + count)
            }
            Body::Signal { .. }
            | Body::Quarantined(_)
            | Body::Readings { .. }
            | Body::Event(_)
            | Body::Call(_)
            | Body::Figures(_) => Applied::Nothing,
        }
    }

    fn sweep(&mut self, number: u64, at_ns: u64, gone: Option<Vec<u32>>, records: Vec<Record>) {
        let table = &mut self.view.table;
        // A restarted source counts from the beginning, but the numbers of the table may only rise.
        let number = number.max(table.sweep().number + 1);
        let coverage = if gone.is_none() { Coverage::All } else { Coverage::Changes };
        table.begin(number, at_ns, coverage);
        for pid in gone.into_iter().flatten() {
            if let Some(key) = table.get(pid).map(|process| process.key) {
                table.remove_process(key);
            }
        }
        records.into_iter().for_each(|record| table.set(record.process));
        table.end(0);
        self.view.recent.update(&self.view.table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::channel::expression;
    use wire::process::{Process, ProcessKey};

    #[test]
    fn what_depends_on_the_rate_is_not_for_the_source() {
        let check = |text: &str, of_source: &str, rest: &str| {
            let (source, other) = split(Kind::Process, &expression::filter(text).expect("understood"));
            assert_eq!(
                (source.to_string().as_str(), other.to_string().as_str()),
                (of_source, rest),
                "{text}"
            );
        };
        check("", "", "");
        check(
            "cpu > 0.5 and name ~ \"^s\" top 3 by rss_bytes",
            "name ~ \"^s\"",
            "cpu > 0.5 top 3 by rss_bytes",
        );
        check("child of 7 and rss_bytes > 10 and uid = 5", "child of 7 and uid = 5", "rss_bytes > 10");
        check("state = \"running\" and command ~ \"a\"", "command ~ \"a\"", "state = \"running\"");
        check(
            "rate of read_bytes > 1 and threads changes by 2",
            "",
            "rate of read_bytes > 1 and threads changes by 2",
        );
    }

    #[test]
    fn of_metrics_the_source_chooses_by_name_and_of_what_happens_nothing() {
        let check = |kind: Kind, text: &str, of_source: &str| {
            let (source, rest) = split(kind, &expression::filter(text).expect("understood"));
            assert_eq!(source.to_string(), of_source, "{text}");
            assert_eq!(source.predicates.len() + rest.predicates.len(), 2, "{text}");
        };
        check(Kind::Host, "name ~ \"cpu\" and value > 3", "name ~ \"cpu\"");
        check(Kind::Host, "value changes by 3 and rate of value > 3", "");
        check(Kind::Event, "kind = \"job_end\" and delay > 3", "");
        check(Kind::Call, "state = \"running\" and user = \"ada\"", "");
    }

    #[test]
    fn tables_of_the_same_metrics_share_them() {
        let reading = |name: &str, value: u64| Reading {
            metric: Metric {
                name: name.into(),
                labels: Vec::new(),
                unit: "".into(),
                semantics: wire::sample::Semantics::Gauge,
            },
            value: wire::sample::Number::Whole(value),
        };
        let mut tables = Tables::default();
        let first = tables.table(vec![reading("a", 1), reading("b", 2)]);
        let second = tables.table(vec![reading("a", 3), reading("b", 4)]);
        assert!(Arc::ptr_eq(first.metrics(), second.metrics()));
        let third = tables.table(vec![reading("b", 5)]);
        assert_eq!(third.get("b", &[]), Some(wire::sample::Number::Whole(5)));
        assert_eq!((third.get("a", &[]), third.rows().len()), (None, 1));
    }

    fn record(pid: u32, rss_kib: u64) -> Record {
        let key = ProcessKey { pid, start_ns: 0 };
        Record { process: Process { key, rss_kib, ..Process::default() }, cpu: None }
    }

    fn entry(number: u64, gone: Option<&[u32]>, records: &[Record]) -> Entry {
        let body = Body::Sample {
            sweep: number + 1,
            gone: gone.map(<[u32]>::to_vec),
            records: records.to_vec(),
            left_out: 0,
            figures: Vec::new(),
        };
        Entry { number, revision: 0, at_ns: (number + 1) * 1_000_000, body }
    }

    /// A client that subscribes at the representative later need not wait for a second sample.
    #[test]
    fn what_they_used_of_late_is_known_here_too() {
        const SECOND: u64 = 1_000_000_000;
        let (mut table, now) = (RebuiltTable::default(), Duration::from_secs(100));
        for number in 0..4 {
            let mut used = record(1, 1);
            used.process.usage.cpu_ns = number * SECOND / 2;
            let at_ns = (number + 1) * SECOND;
            table.apply(Entry { at_ns, ..entry(number, None, &[used]) }, now);
        }
        let View { table, recent, .. } = table.view();
        assert_eq!(recent.share(table, 0), Some(0.5));
    }

    fn shown(table: &RebuiltTable) -> Vec<(u32, u64)> {
        let rows = table.view().table.rows().iter().flatten();
        let mut shown: Vec<_> = rows.map(|process| (process.key.pid, process.rss_kib)).collect();
        shown.sort_unstable();
        shown
    }

    #[test]
    fn the_table_is_that_of_the_source_or_not_shown() {
        let mut table = RebuiltTable::default();
        let now = Duration::from_secs(100);
        assert_eq!(
            table.apply(entry(0, Some(&[]), &[record(1, 1)]), now),
            Applied::Lost(1),
            "nothing to build on"
        );
        let first = table.apply(entry(1, None, &[record(1, 1), record(2, 2)]), now);
        assert_eq!(first, Applied::Sweep { at: now, lost: 0 });
        // Entries of one answer arrive together; their times are those of the source.
        let next = table.apply(entry(2, Some(&[1]), &[record(2, 3)]), now);
        assert_eq!(next, Applied::Sweep { at: now + Duration::from_millis(1), lost: 0 });
        assert_eq!(shown(&table), [(2, 3)]);
        // Entries 3 and 4 were lost on the way.
        assert_eq!(table.apply(entry(5, Some(&[]), &[record(2, 4)]), now), Applied::Lost(3));
        assert!(!table.is_known());
        let whole = table.apply(entry(9, None, &[record(2, 5)]), now);
        assert!(matches!(whole, Applied::Sweep { lost: 3, .. }), "{whole:?}");
        assert_eq!(shown(&table), [(2, 5)]);
        let missed = Entry { number: 10, revision: 0, at_ns: 0, body: Body::Missed(4) };
        assert_eq!(table.apply(missed, now), Applied::Lost(4));
        assert!(!table.is_known());
    }

    #[test]
    fn the_clock_of_a_source_may_be_far_ahead_and_run_on() {
        let mut table = RebuiltTable::default();
        let (now, year) = (Duration::from_secs(3), 365 * 86_400 * 1000);
        let at = |table: &mut RebuiltTable, number: u64, now: Duration| match table
            .apply(entry(number, None, &[]), now)
        {
            Applied::Sweep { at, .. } => at,
            other @ (Applied::Lost(_) | Applied::Nothing | Applied::TooMany) => panic!("{other:?}"),
        };
        assert_eq!(at(&mut table, year, now), now);
        assert_eq!(at(&mut table, year + 20, now), now + Duration::from_millis(20));
        // By its clock, it was suspended for an hour.
        assert_eq!(
            at(&mut table, year + 3_600_000, now + Duration::from_secs(1)),
            now + Duration::from_secs(1)
        );
    }

    #[test]
    fn more_than_a_source_sends_is_not_shown() {
        let mut table = RebuiltTable::default();
        let mut entry = entry(0, None, &[record(1, 1)]);
        if let Body::Sample { left_out, .. } = &mut entry.body {
            *left_out = 1;
        }
        assert_eq!(table.apply(entry, Duration::ZERO), Applied::TooMany);
        assert!(!table.is_known());
    }

    #[test]
    fn a_source_that_was_restarted_goes_on() {
        let mut table = RebuiltTable::default();
        table.apply(entry(8, None, &[record(1, 1)]), Duration::from_secs(5));
        table.restart();
        let now = Duration::from_secs(9);
        assert_eq!(table.apply(entry(0, None, &[record(2, 7)]), now), Applied::Sweep { at: now, lost: 0 });
        assert_eq!(shown(&table), [(2, 7)]);
        assert_eq!(table.view().table.sweep().number, 10);
    }
}
