//! Parser of `sensor.take`: subscription entries as sweeps of the flock.
//!
//! Pure. Rule: after missed entries, or a gap in their numbers, entries are skipped until the next whole
//! sample, because the changes in between are unknown (docs/channels.md). Answers are untrusted: what is
//! missing or of another kind is skipped, or the answer is refused.

use crate::flock::measure::Usage;
use crate::flock::sweep::{HostName, Reported, Sweep};
use wire::api::entries::{Entry, EntryKind, TakeAnswer as Answer};
use wire::api::processes::Process;
use wire::time::Time;

/// Processes read from one sweep, which is the most that a sensor sends.
const PROCESSES_MAX: usize = 10_000;

/// Position in the entries of a subscription.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Expected number of the next entry.
    next: Option<u64>,
    is_broken: bool,
}

/// Content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// Sweeps, the oldest first.
    pub sweeps: Vec<Sweep>,
    pub missed: u64,
    /// Whether a whole sample is needed: `sensor.alter` has it sent at once.
    pub wants_whole: bool,
    /// Why the sensor stopped the subscription, if it did.
    pub stopped: Option<String>,
}

impl Stream {
    /// Parse the entries of `host` in an answer.
    pub fn take(&mut self, host: &HostName, answer: &Answer) -> Received {
        let mut taken = Received::default();
        for entry in &answer.entries {
            let is_gap = self.next.is_some_and(|next| next != entry.number);
            self.next = Some(entry.number.saturating_add(1));
            self.is_broken |= is_gap;
            match entry.what {
                EntryKind::Sample => {
                    let Some(sweep) = sample(host, entry) else { continue };
                    self.is_broken &= !sweep.is_whole;
                    if !self.is_broken {
                        taken.sweeps.push(sweep);
                    }
                }
                EntryKind::Missed => {
                    taken.missed = taken.missed.saturating_add(entry.count.unwrap_or(1));
                    self.is_broken = true;
                }
                EntryKind::Quarantined => {
                    let reason = entry.reason.as_deref().unwrap_or_default();
                    taken.stopped = Some(crate::grid::text::shown(reason).text);
                    self.is_broken = true;
                }
                EntryKind::Event | EntryKind::Call | EntryKind::Signal | EntryKind::Unknown => {}
            }
        }
        taken.wants_whole = self.is_broken;
        taken
    }
}

/// The sweep in an entry, if the entry holds one.
fn sample(host: &HostName, entry: &Entry) -> Option<Sweep> {
    let (time, processes) = (entry.time?.0, entry.processes.as_deref().unwrap_or_default());
    let sweep = sweep(host, time, entry.gone.as_deref(), processes);
    Some(Sweep { left_out: entry.left_out.unwrap_or(0).into(), ..sweep })
}

/// A sweep of `host`: a whole one, or only the changes where `gone` is given.
pub(super) fn sweep(host: &HostName, time: Time, gone: Option<&[u32]>, processes: &[Process]) -> Sweep {
    Sweep {
        host: host.clone(),
        time,
        is_whole: gone.is_none(),
        processes: processes.iter().take(PROCESSES_MAX).map(reported).collect(),
        gone: gone.unwrap_or_default().iter().take(PROCESSES_MAX).copied().collect(),
        left_out: 0,
    }
}

#[allow(clippy::cast_precision_loss)] // Counts are shown with few digits.
fn reported(process: &Process) -> Reported {
    let secs = |secs: f64| if secs.is_finite() { secs } else { 0.0 };
    let count = |count: Option<u64>| count.unwrap_or(0) as f64;
    Reported {
        pid: process.pid,
        start_ns: process.start_ns,
        parent: process.parent,
        uid: process.uid,
        name: process.name.to_string(),
        threads: process.threads,
        usage: Usage {
            cpu_secs: secs(process.cpu_seconds),
            user_secs: secs(process.user_seconds),
            system_secs: secs(process.system_seconds),
            rss_bytes: process.rss_bytes as f64,
            minor_faults: process.minor_faults as f64,
            major_faults: process.major_faults as f64,
            read_bytes: count(process.read_bytes),
            written_bytes: count(process.written_bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(number: u64, gone: Option<&[u32]>) -> Value {
        let process = json!({"pid": 7, "start_ns": 5, "name": "burn", "threads": 2, "cpu_seconds": 1.5, "rss_bytes": 4096});
        let mut entry = json!({"number": number, "time": 1.7e9 + number as f64, "what": "sample", "processes": [process]});
        if let Some(gone) = gone {
            entry["gone"] = gone.into();
        }
        entry
    }

    fn take(stream: &mut Stream, entries: &[Value]) -> Received {
        let answer = serde_json::from_value(json!({ "entries": entries })).expect("an answer");
        stream.take(&HostName::new("demo", "wn01"), &answer)
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
        let odd = json!({"number": 0, "what": "sample", "time": 1.7e9, "gone": [], "left_out": 7,
            "processes": [{"pid": 1}, {"pid": 1, "start_ns": 1, "cpu_seconds": -1e308}]});
        let taken =
            take(&mut Stream::default(), &[odd, json!({}), json!({"what": "sample"}), json!({"what": "x"})]);
        let left_out: Vec<u64> = taken.sweeps.iter().map(|sweep| sweep.left_out).collect();
        assert_eq!(left_out, [7], "an entry of no time is no sweep");
        for answer in [json!({"entries": {}}), json!([7]), json!({"entries": [{"gone": [-1]}]})] {
            assert!(serde_json::from_value::<Answer>(answer.clone()).is_err(), "{answer}");
        }
    }
}
