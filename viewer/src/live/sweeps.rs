//! What `sensor.take` answers, as sweeps of the flock.
//!
//! Pure. Rule: after entries were missed, or a gap in their numbers, nothing is taken before the next whole sample, for
//! what changed in between is not known (docs/channels.md). Answers come from strangers: what is missing or of another
//! kind is left out.

use crate::flock::measure::Usage;
use crate::flock::sweep::{HostName, Reported, Sweep};
use serde_json::Value;
use wire::time::Time;

/// Processes taken of one sweep; a sensor tells of at most so many.
const PROCESSES_MAX: usize = 10_000;

/// A subscription's entries, in their order.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The number of the next entry.
    next: Option<u64>,
    is_broken: bool,
}

/// What an answer brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Sweeps, the oldest first.
    pub sweeps: Vec<Sweep>,
    /// Entries that were missed.
    pub missed: u64,
    /// Whether a whole sample is waited for: `sensor.alter` makes it come at once.
    pub wants_whole: bool,
    /// Why the subscription was stopped, if it was.
    pub stopped: Option<String>,
}

impl Stream {
    /// The sweeps of `host` in an answer.
    pub fn take(&mut self, host: &HostName, answer: &Value) -> Taken {
        let mut taken = Taken::default();
        for entry in answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let number = entry["number"].as_u64();
            let is_gap = self.next.is_some() && number != self.next;
            self.next = number.map(|number| number.saturating_add(1));
            self.is_broken |= is_gap;
            match entry["what"].as_str() {
                Some("sample") => {
                    let Some(sweep) = sweep(host, entry) else { continue };
                    self.is_broken &= !sweep.is_whole;
                    if !self.is_broken {
                        taken.sweeps.push(sweep);
                    }
                }
                Some("missed") => {
                    taken.missed = taken.missed.saturating_add(entry["count"].as_u64().unwrap_or(1));
                    self.is_broken = true;
                }
                Some("quarantined") => {
                    let reason = entry["reason"].as_str().unwrap_or_default();
                    taken.stopped = Some(crate::grid::text::shown(reason).text);
                    self.is_broken = true;
                }
                _ => {}
            }
        }
        taken.wants_whole = self.is_broken;
        taken
    }
}

/// A sweep of `host`, if an entry is one.
pub(super) fn sweep(host: &HostName, entry: &Value) -> Option<Sweep> {
    let time = entry["time"].as_f64().filter(|secs| secs.is_finite())?;
    let numbers = entry["gone"].as_array();
    let processes = entry["processes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    Some(Sweep {
        host: host.clone(),
        time: Time::from_secs_f64(time),
        is_whole: numbers.is_none(),
        processes: processes.iter().take(PROCESSES_MAX).filter_map(reported).collect(),
        gone: numbers.into_iter().flatten().take(PROCESSES_MAX).filter_map(number).collect(),
        left_out: entry["left_out"].as_u64().unwrap_or(0),
    })
}

fn reported(told: &Value) -> Option<Reported> {
    let whole = |name: &str| told[name].as_u64().and_then(|number| u32::try_from(number).ok());
    let figure = |name: &str| told[name].as_f64().filter(|figure| figure.is_finite()).unwrap_or(0.0);
    Some(Reported {
        pid: whole("pid")?,
        start_ns: told["start_ns"].as_u64()?,
        parent: whole("parent").unwrap_or(0),
        uid: whole("uid").unwrap_or(0),
        name: told["name"].as_str().unwrap_or_default().to_owned(),
        threads: whole("threads").unwrap_or(0),
        usage: Usage {
            cpu_secs: figure("cpu_seconds"),
            user_secs: figure("user_seconds"),
            system_secs: figure("system_seconds"),
            rss_bytes: figure("rss_bytes"),
            minor_faults: figure("minor_faults"),
            major_faults: figure("major_faults"),
            read_bytes: figure("read_bytes"),
            written_bytes: figure("written_bytes"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(number: u64, gone: Option<&[u32]>) -> Value {
        let process = json!({"pid": 7, "start_ns": 5, "name": "burn", "threads": 2, "cpu_seconds": 1.5, "rss_bytes": 4096});
        let mut entry = json!({"number": number, "time": 1.7e9 + number as f64, "what": "sample", "processes": [process]});
        if let Some(gone) = gone {
            entry["gone"] = gone.into();
        }
        entry
    }

    fn take(stream: &mut Stream, entries: &[Value]) -> Taken {
        stream.take(&HostName::new("demo", "wn01"), &json!({ "entries": entries }))
    }

    #[test]
    fn entries_become_sweeps() {
        let taken = take(&mut Stream::default(), &[entry(0, None), entry(1, Some(&[3, 4]))]);
        let kinds: Vec<_> = taken.sweeps.iter().map(|sweep| (sweep.is_whole, sweep.gone.clone())).collect();
        assert_eq!(kinds, [(true, vec![]), (false, vec![3, 4])]);
        let process = &taken.sweeps[0].processes[0];
        assert_eq!((process.pid, process.threads, process.usage.cpu_secs), (7, 2, 1.5));
        assert_eq!((taken.wants_whole, taken.missed), (false, 0));
    }

    #[test]
    fn after_a_gap_the_next_whole_one_is_waited_for() {
        let changes = |number| entry(number, Some(&[]));
        let mut stream = Stream::default();
        assert_eq!(take(&mut stream, &[entry(0, None)]).sweeps.len(), 1);
        let taken = take(&mut stream, &[changes(2), changes(3)]);
        assert_eq!((taken.sweeps.len(), taken.wants_whole), (0, true), "number 1 was lost on the way");
        let taken = take(&mut stream, &[changes(4), entry(5, None), changes(6)]);
        assert_eq!((taken.sweeps.len(), taken.wants_whole), (2, false));
        let missed = json!({"number": 7, "what": "missed", "count": 9});
        let taken = take(&mut stream, &[missed, changes(8)]);
        assert_eq!((taken.sweeps.len(), taken.missed, taken.wants_whole), (0, 9, true));
    }

    #[test]
    fn nonsense_is_nothing() {
        let odd = json!({"number": 0, "what": "sample", "time": 1.7e9, "gone": ["x", -1, 1e30], "left_out": "x",
            "processes": [null, {"pid": 1}, {"pid": -1, "start_ns": 1}, {"pid": 1, "start_ns": 1, "cpu_seconds": "NaN"}]});
        let taken = take(&mut Stream::default(), &[odd, json!(7), json!({"what": "sample"})]);
        assert_eq!(taken.sweeps.len(), 1);
        assert_eq!((taken.sweeps[0].processes.len(), taken.sweeps[0].gone.len()), (1, 0));
        for answer in [json!(null), json!({"entries": {}}), json!([])] {
            assert_eq!(Stream::default().take(&HostName::new("", ""), &answer), Taken::default());
        }
    }
}
