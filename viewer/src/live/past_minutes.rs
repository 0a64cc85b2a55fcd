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
const PROCESSES_MAX: u64 = 200;

/// Request the minutes of a period; it is widened to whole ones, and cut after some.
///
/// # Errors
/// See [`Error`]; also if the sensor stores no such history.
pub(super) fn ask(client: &mut Client, missing: &MissingSpan) -> Result<StoredSweeps, Error> {
    let start = Time::from_micros(missing.from.micros().div_euclid(60_000_000) * 60_000_000);
    let mut made = Minutes::new(missing, start);
    for _ in 0..MINUTES_MAX {
        if made.stored.to >= missing.to {
            break;
        }
        let minute = made.stored.to;
        let params = ProcessHistoryParams {
            since: Some(UnixTime(minute)),
            until: Some(UnixTime(minute.plus(GLIDE))),
            limit: PROCESSES_MAX,
            ..ProcessHistoryParams::default()
        };
        made.add(&client.call(&params, &about(&missing.host))?.processes);
    }
    Ok(made.stored)
}

/// Minutes that become sweeps.
struct Minutes<'a> {
    missing: &'a MissingSpan,
    stored: StoredSweeps,
    /// Use of each process since the first minute, by process id and start.
    used: HashMap<(u32, u64), Usage>,
}

impl Minutes<'_> {
    fn new(missing: &MissingSpan, start: Time) -> Minutes<'_> {
        let stored = StoredSweeps { from: start, to: start, sweeps: Vec::new(), is_by_minute: true };
        Minutes { missing, stored, used: HashMap::new() }
    }

    /// Add the processes of the next minute.
    fn add(&mut self, processes: &[TopProcess]) {
        let (start, end) = (self.stored.to, self.stored.to.plus(MINUTE));
        self.stored.to = end;
        let shares = [(start, 0.0), (start.plus(GLIDE), GLIDE.as_secs_f64() / 60.0), (end, 1.0)];
        for (time, share) in shares {
            let reported = |process: &TopProcess| {
                let before = self.used.get(&(process.pid, process.start_ns)).copied().unwrap_or_default();
                reported(process, before, share)
            };
            let processes = processes.iter().map(reported).collect();
            self.stored.sweeps.push(Sweep {
                host: self.missing.host.clone(),
                time,
                is_whole: true,
                processes,
                gone: Vec::new(),
                left_out: 0,
            });
        }
        let last = self.stored.sweeps.last().map(|sweep| sweep.processes.as_slice()).unwrap_or_default();
        self.used.extend(last.iter().map(|process| ((process.pid, process.start_ns), process.usage)));
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

    #[test]
    fn a_minute_is_spread_evenly_and_the_next_continues_it() {
        let start = Time::from_secs_f64(1_800_000_000.0);
        let missing =
            MissingSpan { host: HostName::new("demo", "wn01"), from: start, to: start.plus(2 * MINUTE) };
        let process = |pid: u32, cpu_seconds: f64| TopProcess {
            pid,
            start_ns: 5,
            name: "burn".into(),
            cpu_seconds,
            rss_max_bytes: 7,
            read_bytes: Some(600),
            ..TopProcess::default()
        };
        let mut minutes = Minutes::new(&missing, start);
        minutes.add(&[process(1, 30.0), process(2, 6.0)]);
        minutes.add(&[process(1, 60.0)]);
        let of_first = |sweep: &Sweep| {
            let usage = &sweep.processes[0].usage;
            (sweep.time.since(start).as_secs(), usage.cpu_secs, usage.read_bytes, sweep.processes.len())
        };
        let found: Vec<_> = minutes.stored.sweeps.iter().map(of_first).collect();
        let expected = [
            (0, 0.0, 0.0, 2),
            (1, 0.5, 10.0, 2),
            (60, 30.0, 600.0, 2),
            (60, 30.0, 600.0, 1),
            (61, 31.0, 610.0, 1),
            (120, 90.0, 1_200.0, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!((minutes.stored.from, minutes.stored.to), (start, missing.to));
    }
}
