//! What `sensor.past_processes` answers, as a stretch of the past of the flock's hosts.
//!
//! Rule: a stretch is asked for in bounded parts, and what comes of it ends where the last part does. Answers come from
//! strangers: what is missing or of another kind is left out. Not here: when it is asked for (`app::flock`).

use super::at;
use super::http::{Client, Error};
use super::sweeps;
use crate::flock::past::{Kept, Lack};
use crate::flock::sweep::{HostName, Sweep};
use serde_json::{Value, json};
use std::time::Duration;
use wire::time::Time;

/// Answers to one question.
const PARTS_MAX: usize = 8;
/// Entries of one answer that are taken; a sensor tells of no more.
const ENTRIES_MAX: usize = 10_000;
/// Processes named in all answers to one question that are taken: as many as a sensor tells of in them, and a whole sweep each.
const NAMED_MAX: usize = 200_000;
/// Spans of one answer that are taken.
const SPANS_MAX: usize = 1_001;

/// From when to when a sensor has sweeps, by the host's clock.
pub type Span = (Time, Time);

/// Ask for a stretch, of which one sweep in `every` does; and of which times there are sweeps at all.
///
/// # Errors
/// If the sensor cannot be asked, or keeps nothing.
pub(super) fn ask(client: &mut Client, lack: &Lack, every: Duration) -> Result<(Kept, Vec<Span>), Error> {
    let mut kept = Kept { from: lack.from, to: lack.to, sweeps: Vec::new() };
    let mut spans = Vec::new();
    let mut from = lack.from;
    for _ in 0..PARTS_MAX {
        let mut params = json!({
            "from": from.secs_f64(), "to": lack.to.secs_f64(), "every": every.as_secs_f64(),
        });
        if lack.from >= lack.to {
            params["limit"] = 0.into();
        }
        let answer = client.ask("sensor.past_processes", &at(&lack.host, params))?;
        spans = read_spans(&answer);
        match take(&mut kept, lack, from, &answer) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok((kept, spans))
}

/// Take what was answered from `from` on; from when on there is more.
fn take(kept: &mut Kept, lack: &Lack, from: Time, answer: &Value) -> Option<Time> {
    let mut named: usize = kept.sweeps.iter().map(|sweep| sweep.processes.len()).sum();
    let sweeps = read_sweeps(&lack.host, answer).take_while(|sweep| {
        named += sweep.processes.len();
        named <= NAMED_MAX
    });
    kept.sweeps.extend(sweeps);
    let next = answer["next"].as_f64().filter(|secs| secs.is_finite()).map(Time::from_secs_f64);
    let next = next.filter(|next| *next > from && *next < lack.to);
    kept.to = next.unwrap_or(lack.to);
    next
}

fn read_sweeps(host: &HostName, answer: &Value) -> impl Iterator<Item = Sweep> {
    let entries = answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let sweep = move |entry: &Value| match entry["what"].as_str() {
        Some("sample") => sweeps::sweep(host, entry),
        // Nothing is known from there on: nobody is there.
        Some("gap") => sweeps::sweep(host, &json!({ "time": entry["time"] })),
        Some(_) | None => None,
    };
    entries.iter().take(ENTRIES_MAX).filter_map(sweep)
}

fn read_spans(answer: &Value) -> Vec<Span> {
    let spans = answer["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let time = |value: &Value| value.as_f64().filter(|secs| secs.is_finite()).map(Time::from_secs_f64);
    let span = |span: &Value| time(&span["from"]).zip(time(&span["to"])).filter(|(from, to)| from < to);
    spans.iter().take(SPANS_MAX).filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_ends_where_the_last_part_does() {
        let secs = Time::from_secs_f64;
        let lack = Lack { host: HostName::new("demo", "wn01"), from: secs(10.0), to: secs(20.0) };
        let mut kept = Kept::default();
        let mut part = |from: f64, next: Value| {
            let next = take(&mut kept, &lack, secs(from), &json!({ "entries": [], "next": next }));
            (next.map(Time::secs_f64), kept.to.secs_f64())
        };
        assert_eq!(part(10.0, json!(13.5)), (Some(13.5), 13.5));
        assert_eq!(part(13.5, json!(17.0)), (Some(17.0), 17.0));
        assert_eq!(part(17.0, json!(null)), (None, 20.0));
        for nonsense in [json!(17.0), json!(3.0), json!(1e9), json!("x")] {
            assert_eq!(part(17.0, nonsense), (None, 20.0), "it does not go on");
        }
    }

    #[test]
    fn entries_become_sweeps_and_gaps_such_with_nobody() {
        let process = json!({"pid": 7, "start_ns": 5, "name": "burn"});
        let answer = json!({"entries": [
            {"time": 10.0, "what": "sample", "processes": [process]},
            {"time": 11.0, "what": "sample", "processes": [], "gone": [7]},
            {"time": 12.0, "what": "gap"}, {"time": "x", "what": "gap"}, {"what": "other", "time": 13.0}, 7,
        ], "spans": [{"from": 9.0, "to": 12.5}, {"from": 2.0, "to": 1.0}, {"from": null, "to": 1.0}, 3]});
        let host = HostName::new("demo", "wn01");
        let sweeps: Vec<Sweep> = read_sweeps(&host, &answer).collect();
        let told: Vec<_> = sweeps
            .iter()
            .map(|sweep| (sweep.time.secs_f64(), sweep.is_whole, sweep.processes.len(), sweep.gone.len()))
            .collect();
        assert_eq!(told, [(10.0, true, 1, 0), (11.0, false, 0, 1), (12.0, true, 0, 0)]);
        assert_eq!(read_spans(&answer), [(Time::from_secs_f64(9.0), Time::from_secs_f64(12.5))]);
        for nonsense in [json!(null), json!({"entries": {}, "spans": "x"}), json!([])] {
            assert!(read_sweeps(&host, &nonsense).next().is_none() && read_spans(&nonsense).is_empty());
        }
    }
}
