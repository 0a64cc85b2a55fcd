//! Client of `sensor.past_processes`: requests a period of process history for the hosts of the flock.
//!
//! Rule: a period is requested in a bounded number of pages, and the result ends where the last page ends.
//! Answers are untrusted: what is missing or of another kind is skipped. Not here: when history is requested
//! (`app::flock`).

use super::about;
use super::ask::Client;
use super::past_minutes;
use super::sweeps;
use crate::flock::past::{MissingSpan, Span, StoredSweeps};
use crate::flock::sweep::{HostName, Sweep};
use client::Error;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::samples::{PastEntry, PastKind, PastProcesses, PastProcessesParams};
use wire::time::Time;

/// Pages per request of the window.
const PARTS_MAX: usize = 8;
/// Entries read from one page, which is the most that a sensor sends.
const ENTRIES_MAX: usize = 10_000;
/// Limit on processes over all pages: as many as a sensor names in them, and a whole sweep per page.
const NAMED_MAX: usize = 200_000;
/// A shorter time without sweeps is not looked up in the minutes.
const UNSEEN_MIN: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_micros(1);
const FOREVER: Time = Time::from_micros(i64::MAX);
/// Spans read from one page.
const SPANS_MAX: usize = 1_001;

/// Request a period, at a resolution of one sweep per `every`, and the times for which the sensor has sweeps
/// at all.
///
/// # Errors
/// See [`Error`]; also if the sensor stores no history.
pub(super) fn ask(
    client: &mut Client,
    missing: &MissingSpan,
    every: Duration,
) -> Result<(StoredSweeps, Vec<Span>), Error> {
    let (from, to) = (missing.from, missing.to);
    let mut stored = StoredSweeps::new(from, to, Vec::new());
    let mut spans = Vec::new();
    let mut start = from;
    for _ in 0..PARTS_MAX {
        let mut params = PastProcessesParams {
            from: UnixTime(start),
            to: UnixTime(missing.to),
            every: Some(wire::api::Span(every)),
            ..PastProcessesParams::default()
        };
        if missing.from >= missing.to {
            params.limit = 0;
        }
        let answer = client.call(&params, &about(&missing.host))?;
        spans = read_spans(&answer);
        match take(&mut stored, missing, start, &answer) {
            Some(next) => start = next,
            None => break,
        }
    }
    Ok((with_minutes(client, missing, stored, &spans, every)?, spans))
}

/// What is stored in full, or minutes where it starts without any; it ends where the next minutes may be.
fn with_minutes(
    client: &mut Client,
    missing: &MissingSpan,
    mut stored: StoredSweeps,
    spans: &[Span],
    every: Duration,
) -> Result<StoredSweeps, Error> {
    match unseen(&stored, spans, UNSEEN_MIN.max(every * 2)) {
        None => Ok(stored),
        Some((start, _)) if start > stored.from => {
            stored.sweeps.retain(|sweep| sweep.time <= start);
            stored.to = start.plus(TICK);
            Ok(stored)
        }
        Some((_, limit)) => match past_minutes::ask(client, missing, limit) {
            Ok(minutes) if minutes.sweeps.iter().any(|sweep| !sweep.processes.is_empty()) => Ok(minutes),
            // A sensor of an earlier version has none.
            Ok(_) | Err(Error::Fault { .. }) => Ok(stored),
            Err(error) => Err(error),
        },
    }
}

/// The first time of some length without a sweep in full, until the next one, which may be far beyond the period.
fn unseen(stored: &StoredSweeps, spans: &[Span], least: Duration) -> Option<Span> {
    let mut since = Some(stored.from);
    for sweep in &stored.sweeps {
        match since {
            _ if sweep.is_whole && sweep.processes.is_empty() => {
                since.get_or_insert(sweep.time);
            }
            Some(start) if sweep.time.since(start) > least => return Some((start, sweep.time)),
            _ => since = None,
        }
    }
    let next = spans.iter().map(|(from, _)| *from).filter(|from| *from >= stored.to).min();
    since.filter(|start| stored.to.since(*start) > least).map(|start| (start, next.unwrap_or(FOREVER)))
}

/// Add a page that starts at `from`. Returns where the next page starts, if there is one.
fn take(
    stored: &mut StoredSweeps,
    missing: &MissingSpan,
    from: Time,
    answer: &PastProcesses,
) -> Option<Time> {
    let mut named: usize = stored.sweeps.iter().map(|sweep| sweep.processes.len()).sum();
    let sweeps = read_sweeps(&missing.host, answer).take_while(|sweep| {
        named += sweep.processes.len();
        named <= NAMED_MAX
    });
    stored.sweeps.extend(sweeps);
    let next = answer.next.map(|next| next.0).filter(|next| *next > from && *next < missing.to);
    stored.to = next.unwrap_or(missing.to);
    next
}

fn read_sweeps(host: &HostName, answer: &PastProcesses) -> impl Iterator<Item = Sweep> {
    let sweep = move |entry: &PastEntry| match entry.what {
        PastKind::Sample => {
            let processes = entry.processes.as_deref().unwrap_or_default();
            Some(sweeps::sweep(host, entry.time.0, entry.gone.as_deref(), processes))
        }
        // Nothing is known after a gap: an empty sweep says that no process is there.
        PastKind::Gap => Some(sweeps::sweep(host, entry.time.0, None, &[])),
        PastKind::Unknown => None,
    };
    answer.entries.iter().take(ENTRIES_MAX).filter_map(sweep)
}

fn read_spans(answer: &PastProcesses) -> Vec<Span> {
    let spans = answer.spans.iter().take(SPANS_MAX).map(|span| (span.from.0, span.to.0));
    spans.filter(|(from, to)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(answer: Value) -> PastProcesses {
        serde_json::from_value(answer).expect("an answer")
    }

    #[test]
    fn what_is_kept_ends_where_the_last_part_does() {
        let secs = Time::from_secs_f64;
        let missing = MissingSpan { host: HostName::new("demo", "wn01"), from: secs(10.0), to: secs(20.0) };
        let mut stored = StoredSweeps::default();
        let mut part = |from: f64, next: Value| {
            let next = take(&mut stored, &missing, secs(from), &read(json!({ "entries": [], "next": next })));
            (next.map(Time::secs_f64), stored.to.secs_f64())
        };
        assert_eq!(part(10.0, json!(13.5)), (Some(13.5), 13.5));
        assert_eq!(part(13.5, json!(17.0)), (Some(17.0), 17.0));
        assert_eq!(part(17.0, json!(null)), (None, 20.0));
        for nonsense in [json!(17.0), json!(3.0), json!(1e9)] {
            assert_eq!(part(17.0, nonsense), (None, 20.0), "it does not go on");
        }
    }

    #[test]
    fn the_first_time_without_sweeps_is_found() {
        let secs = Time::from_secs_f64;
        let host = HostName::new("demo", "wn01");
        let process = json!({"pid": 7, "start_ns": 5, "name": "burn"});
        let sample = |time: f64| json!({"time": time, "what": "sample", "processes": [process]});
        let gap = |time: f64| json!({"time": time, "what": "gap"});
        let found = |entries: Vec<Value>, spans: &[Span]| {
            let answer = read(json!({ "entries": entries }));
            let sweeps = read_sweeps(&host, &answer).collect();
            let stored = StoredSweeps::new(secs(10.0), secs(30.0), sweeps);
            unseen(&stored, spans, UNSEEN_MIN).map(|(from, to)| (from.secs_f64(), to.secs_f64()))
        };
        let forever = FOREVER.secs_f64();
        assert_eq!(found(vec![], &[]), Some((10.0, forever)));
        let spans = [(secs(1.0), secs(5.0)), (secs(90.0), secs(95.0)), (secs(40.0), secs(50.0))];
        assert_eq!(found(vec![gap(10.0)], &spans), Some((10.0, 40.0)), "until sweeps follow");
        assert_eq!(found(vec![sample(17.0)], &[]), Some((10.0, 17.0)), "they start within it");
        assert_eq!(
            found(vec![sample(11.0), sample(29.0)], &[]),
            None,
            "a process that rests is not reported"
        );
        assert_eq!(found(vec![sample(10.0), gap(12.0), sample(13.0)], &[]), None, "a short one");
        assert_eq!(found(vec![sample(10.0), gap(12.0), sample(20.0)], &[]), Some((12.0, 20.0)));
        assert_eq!(found(vec![sample(10.0), gap(15.0), gap(16.0)], &[]), Some((15.0, forever)));
    }

    #[test]
    fn entries_become_sweeps_and_gaps_such_without_processes() {
        let process = json!({"pid": 7, "start_ns": 5, "name": "burn"});
        let answer = json!({"entries": [
            {"time": 10.0, "what": "sample", "processes": [process]},
            {"time": 11.0, "what": "sample", "processes": [], "gone": [7]},
            {"time": 12.0, "what": "gap"}, {"what": "other", "time": 13.0},
        ], "spans": [{"from": 9.0, "to": 12.5}, {"from": 2.0, "to": 1.0}]});
        let answer = read(answer);
        let host = HostName::new("demo", "wn01");
        let sweeps: Vec<Sweep> = read_sweeps(&host, &answer).collect();
        let summaries: Vec<_> = sweeps
            .iter()
            .map(|sweep| (sweep.time.secs_f64(), sweep.is_whole, sweep.processes.len(), sweep.gone.len()))
            .collect();
        assert_eq!(summaries, [(10.0, true, 1, 0), (11.0, false, 0, 1), (12.0, true, 0, 0)]);
        assert_eq!(read_spans(&answer), [(Time::from_secs_f64(9.0), Time::from_secs_f64(12.5))]);
        for nonsense in
            [json!({"entries": {}, "spans": 7}), json!({"entries": [{"time": "x", "what": "gap"}]})]
        {
            assert!(serde_json::from_value::<PastProcesses>(nonsense.clone()).is_err(), "{nonsense}");
        }
    }
}
