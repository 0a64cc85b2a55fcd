//! Client of `sensor.process_history`: minutes of process history as sweeps of the flock, for times that no sweep of a
//! sensor covers any more.
//!
//! Rule: the use of a minute is spread over it evenly; only the processes that used most are there. Not here: when
//! history is requested (`model::flock::past`), real sweeps (`past`).

use super::about;
use super::ask::Client;
use crate::flock::measure::Usage;
use crate::flock::past::{MissingSpan, StoredSweeps};
use crate::flock::sweep::{Reported, Sweep};
use client::Error;
use std::collections::HashMap;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::process_history::{ProcessHistoryParams, TopProcess};
use wire::time::Time;

const MINUTE: Duration = Duration::from_secs(60);
/// A process gets to its place within this time, where minutes meet.
const GLIDE: Duration = Duration::from_secs(1);
/// Minutes per request of the window.
const MINUTES_MAX: usize = 30;
/// Processes read from one answer: of a minute there are at most 60.
const PROCESSES_MAX: usize = 200;
const TICK: Duration = Duration::from_micros(1);

/// Request the minutes of a period, until `limit` at most: to the end of the last minute, and after some minutes cut.
///
/// # Errors
/// See [`Error`]; also if the sensor stores no such history.
pub(super) fn ask(client: &mut Client, missing: &MissingSpan, limit: Time) -> Result<StoredSweeps, Error> {
    let mut made = Minutes::new(missing, limit);
    for _ in 0..MINUTES_MAX {
        let minute = made.stored.to;
        if minute >= missing.to.min(limit) {
            break;
        }
        let params = ProcessHistoryParams {
            since: Some(UnixTime(minute)),
            until: Some(UnixTime(minute.plus(GLIDE).min(minute_of(minute).plus(MINUTE)))),
            limit: PROCESSES_MAX as u64,
            ..ProcessHistoryParams::default()
        };
        made.add(&client.call(&params, &about(&missing.host))?.processes);
    }
    Ok(made.stored)
}

/// Start of the minute of a time.
fn minute_of(time: Time) -> Time {
    Time::from_micros(time.micros().div_euclid(60_000_000) * 60_000_000)
}

/// Minutes that become sweeps.
struct Minutes<'a> {
    missing: &'a MissingSpan,
    /// Sweeps of another kind start here.
    limit: Time,
    stored: StoredSweeps,
    /// Use of each process since the first minute, by process id and start.
    used: HashMap<(u32, u64), Usage>,
}

impl Minutes<'_> {
    fn new(missing: &MissingSpan, limit: Time) -> Minutes<'_> {
        let (from, sweeps) = (missing.from, Vec::new());
        let stored = StoredSweeps { from, to: from, sweeps, is_by_minute: true };
        Minutes { missing, limit, stored, used: HashMap::new() }
    }

    /// Add the processes of the minute that is next, as far as it is in the period.
    fn add(&mut self, processes: &[TopProcess]) {
        let processes = &processes[..processes.len().min(PROCESSES_MAX)];
        let start = self.stored.to;
        let end = minute_of(start).plus(MINUTE);
        let is_last = end >= self.limit;
        let end = end.min(self.limit);
        self.stored.to = end;
        // Where sweeps of another kind follow, nothing joins the two.
        let seen_until = if is_last { end.minus(2 * TICK).max(start) } else { end };
        let mut last = Vec::new();
        for time in [start, start.plus(GLIDE).min(seen_until), seen_until] {
            let share = time.since(start).as_secs_f64() / MINUTE.as_secs_f64();
            let reported = |process: &TopProcess| {
                let before = self.used.get(&(process.pid, process.start_ns)).copied().unwrap_or_default();
                reported(process, before, share)
            };
            last = processes.iter().map(reported).collect();
            self.stored.sweeps.push(self.sweep(time, last.clone()));
        }
        if is_last {
            self.stored.sweeps.push(self.sweep(end.minus(TICK), Vec::new()));
        }
        self.used.extend(last.iter().map(|process| ((process.pid, process.start_ns), process.usage)));
    }

    fn sweep(&self, time: Time, processes: Vec<Reported>) -> Sweep {
        let host = self.missing.host.clone();
        Sweep { host, time, is_whole: true, processes, gone: Vec::new(), left_out: 0 }
    }
}

/// A process that has used a share of what it uses in its minute.
#[allow(clippy::cast_precision_loss)]
fn reported(process: &TopProcess, before: Usage, share: f64) -> Reported {
    let bytes = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 * share;
    Reported {
        pid: process.pid,
        start_ns: process.start_ns,
        parent: process.parent,
        uid: process.uid,
        name: process.name.to_string(),
        // How many it had is not stored.
        threads: 1,
        usage: Usage {
            cpu_secs: before.cpu_secs + process.cpu_seconds * share,
            // In which mode it was is not stored: it is drawn in the middle.
            user_secs: before.user_secs + process.cpu_seconds * share / 2.0,
            system_secs: before.system_secs + process.cpu_seconds * share / 2.0,
            rss_bytes: process.rss_max_bytes as f64,
            read_bytes: before.read_bytes + bytes(process.read_bytes),
            written_bytes: before.written_bytes + bytes(process.written_bytes),
            ..Usage::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flock::sweep::HostName;

    const FOREVER: Time = Time::from_micros(i64::MAX);

    fn process(pid: u32, cpu_seconds: f64) -> TopProcess {
        TopProcess {
            pid,
            start_ns: 5,
            name: "burn".into(),
            cpu_seconds,
            rss_max_bytes: 7,
            read_bytes: Some(600),
            ..TopProcess::default()
        }
    }

    fn missing(from: Time, secs: u64) -> MissingSpan {
        MissingSpan { host: HostName::new("demo", "wn01"), from, to: from.plus(Duration::from_secs(secs)) }
    }

    /// Seconds from the start, CPU time of the first process, and number of processes of each sweep.
    fn summary(minutes: &Minutes<'_>) -> Vec<(f64, f64, usize)> {
        let start = minutes.stored.from;
        let of_first = |sweep: &Sweep| {
            let cpu_secs = sweep.processes.first().map_or(0.0, |first| first.usage.cpu_secs);
            (sweep.time.since(start).as_secs_f64().round(), cpu_secs, sweep.processes.len())
        };
        minutes.stored.sweeps.iter().map(of_first).collect()
    }

    #[test]
    fn a_minute_is_spread_evenly_and_the_next_continues_it() {
        let start = Time::from_secs_f64(1_800_000_000.0);
        let missing = missing(start, 120);
        let mut minutes = Minutes::new(&missing, FOREVER);
        minutes.add(&[process(1, 30.0), process(2, 6.0)]);
        minutes.add(&[process(1, 60.0)]);
        let expected = [
            (0.0, 0.0, 2),
            (1.0, 0.5, 2),
            (60.0, 30.0, 2),
            (60.0, 30.0, 1),
            (61.0, 31.0, 1),
            (120.0, 90.0, 1),
        ];
        assert_eq!(summary(&minutes), expected);
        assert_eq!(minutes.stored.sweeps[5].processes[0].usage.read_bytes, 1_200.0);
        assert_eq!((minutes.stored.from, minutes.stored.to), (start, missing.to));
    }

    #[test]
    fn minutes_start_where_they_are_missing_and_end_before_sweeps_that_follow() {
        let start = Time::from_secs_f64(1_800_000_030.0);
        let missing = missing(start, 20);
        let limit = start.plus(Duration::from_secs(45));
        let mut minutes = Minutes::new(&missing, limit);
        minutes.add(&[process(1, 60.0)]);
        minutes.add(&[process(1, 60.0)]);
        let expected = [
            (0.0, 0.0, 1),
            (1.0, 1.0, 1),
            (30.0, 30.0, 1),
            (30.0, 30.0, 1),
            (31.0, 31.0, 1),
            (45.0, 45.0, 1),
            (45.0, 0.0, 0),
        ];
        let found = summary(&minutes);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found.0, found.2) == (expected.0, expected.2), "{found:?} {expected:?}");
            assert!((found.1 - expected.1).abs() < 1e-3, "{found:?} {expected:?}");
        }
        assert_eq!((found.len(), minutes.stored.to), (expected.len(), limit));
        assert!(minutes.stored.sweeps.iter().all(|sweep| sweep.time < limit), "the next one is taken");
    }

    #[test]
    fn an_answer_without_bounds_is_cut() {
        let missing = missing(Time::from_secs_f64(1_800_000_000.0), 60);
        let mut minutes = Minutes::new(&missing, FOREVER);
        minutes.add(&(0..10_000).map(|pid| process(pid, 1.0)).collect::<Vec<_>>());
        assert!(minutes.stored.sweeps.iter().all(|sweep| sweep.processes.len() == PROCESSES_MAX));
    }
}
