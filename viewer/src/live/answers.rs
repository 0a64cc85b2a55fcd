//! Parser of the answers of daemons into facts of a grid.
//!
//! Pure. Rule: answers are untrusted: a value that is missing or of the wrong type is skipped and never an
//! error of the viewer; the grid's builder enforces the limits. Not here: the requests (`live`).

use crate::grid::builder::HOSTS_MAX;
use crate::grid::place::{HostState, Report};
use crate::live::rates::{Counter, Sample};
use compact_str::CompactString;
use serde_json::Value;
use wire::api::metrics as api;
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::time::Time;

/// A host as its domain reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub name: String,
    pub state: HostState,
    /// Whether the domain reports its state; otherwise only its name is known.
    pub is_reported: bool,
    /// What its sensor reports.
    pub report: Report,
}

/// The domain's name, its hosts, and the number of hosts beyond the limit, from an answer of `domain.hosts`.
#[must_use]
pub fn hosts(answer: &Value) -> (String, Vec<Host>, u64) {
    let domain = text(answer, "domain");
    let mut listed = items(answer, "hosts").filter(|host| !text(host, "host").is_empty());
    let hosts = listed.by_ref().take(HOSTS_MAX).map(host).collect();
    (domain, hosts, listed.count() as u64)
}

/// A host as `domain.hosts` describes it.
#[must_use]
pub fn host(host: &Value) -> Host {
    Host {
        name: text(host, "host"),
        state: match host["state"].as_str() {
            Some("live") => HostState::Live,
            Some("left") => HostState::Left,
            Some("last_seen") => HostState::Down,
            // The last two occur only in grid files that a viewer saved.
            Some("draining") => HostState::Draining,
            Some("silent") => HostState::Silent,
            _ => HostState::Unknown,
        },
        is_reported: host["state"].is_string(),
        report: report(host),
    }
}

fn report(host: &Value) -> Report {
    let figure = |name: &str| host[name].as_f64();
    // Daemons of the previous version, and grid files that a viewer saved, use the old names.
    let either = |name: &str, former: &str| figure(name).or_else(|| figure(former));
    let memory_total = either("memory_total_bytes", "memory_total");
    let memory =
        either("memory_used_bytes", "memory_used").zip(memory_total).map(|(used, total)| used / total);
    Report {
        role: text(host, "role"),
        cpu_used: figure("cpu_used"),
        memory_used: memory,
        load1: figure("load1"),
        cpus: figure("cpus"),
        memory_bytes: memory_total,
        age_secs: either("age_secs", "age"),
        lag_bytes: host["lag_bytes"].as_u64().or_else(|| host["lag"].as_u64()),
        events_behind: host["events_behind"].as_u64(),
        events_lost: host["events_lost"].as_u64(),
        events_refused: host["events_refused"].as_u64(),
        samples_thinned: host["samples_thinned"].as_u64(),
        health: items(host, "health").filter_map(|line| line.as_str().map(str::to_owned)).take(8).collect(),
    }
}

/// The calls of an answer of `domain.calls` or `sensor.calls`.
#[must_use]
pub fn calls(answer: &Value) -> Vec<Call> {
    items(answer, "calls").filter(|call| !text(call, "id").is_empty()).map(call).collect()
}

/// A call as `domain.calls` describes it.
#[must_use]
pub fn call(value: &Value) -> Call {
    let word = |name: &str| CompactString::from(text(value, name));
    let time = |name: &str| value[name].as_f64().filter(|secs| secs.is_finite()).map(Time::from_secs_f64);
    let names =
        |name: &str| items(value, name).filter_map(|host| host.as_str().map(CompactString::from)).collect();
    let number = |name: &str| value[name].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let state = value["state"].as_str();
    Call {
        id: word("id"),
        job: word("job"),
        name: word("name"),
        user: word("user"),
        from: word("from"),
        state: State::ALL.into_iter().find(|known| Some(known.as_str()) == state).unwrap_or(State::Waiting),
        submitted: time("submitted"),
        offered: time("offered"),
        selected: time("selected"),
        started: time("started"),
        ended: time("ended"),
        offers: names("offers"),
        hosts: names("hosts"),
        outcome: value["outcome"].as_str().and_then(Outcome::from_word),
        code: word("code"),
        signal: word("signal"),
        reason: word("reason"),
        tries: number("tries"),
        events: number("events"),
        details: None,
    }
}

/// The metrics with their history, from an answer of `domain.metrics`.
#[must_use]
pub fn metrics(answer: api::DomainMetrics) -> Vec<Counter> {
    let metric = |metric: api::Metric| Counter {
        name: metric.name.into(),
        labels: metric.labels.0.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        grows: metric.semantics == api::Semantics::Counter,
        samples: metric
            .samples
            .into_iter()
            .flatten()
            .map(|sample| Sample { time: sample.time.0, value: sample.value.as_f64() })
            .collect(),
    };
    answer.metrics.into_iter().map(metric).collect()
}

/// The items of an array; none if the field is missing or no array.
pub(super) fn items<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    answer[name].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

/// A text field of an answer; empty if it is missing or no text.
#[must_use]
pub fn text(answer: &Value, name: &str) -> String {
    answer[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_become_facts() {
        let answer = json!({"domain": "demo", "hosts": [
            {"host": "wn01", "state": "live", "role": "member", "cpu_used": 0.5, "memory_used_bytes": 1, "memory_total_bytes": 4,
                "age_secs": 0.2, "lag_bytes": 12, "events_lost": -1, "samples_thinned": 3},
            {"host": "wn02", "state": "last_seen", "age": 7, "health": ["disk full", 7]},
            {"state": "live"}, "nonsense",
        ]});
        let (domain, hosts, left_out) = hosts(&answer);
        assert_eq!((domain.as_str(), hosts.len(), left_out), ("demo", 2, 0));
        assert_eq!((hosts[0].report.memory_used, hosts[0].report.cpu_used), (Some(0.25), Some(0.5)));
        let counts =
            (hosts[0].report.lag_bytes, hosts[0].report.events_lost, hosts[0].report.samples_thinned);
        assert_eq!(counts, (Some(12), None, Some(3)));
        assert_eq!(
            (hosts[1].state, hosts[1].report.health.len(), hosts[1].report.age_secs),
            (HostState::Down, 1, Some(7.0))
        );
        let answer = json!({"calls": [
            {"id": "slurm:1", "user": "ada", "state": "ended", "outcome": "failed", "hosts": ["wn01"], "ended": 1.5e9, "tries": 2},
            {"id": "slurm:2", "state": 7, "submitted": "never", "hosts": "wn01"},
        ]});
        let calls = calls(&answer);
        assert_eq!(
            (calls[0].outcome, calls[0].ended, calls[0].tries),
            (Some(Outcome::Failed), Some(Time::from_secs_f64(1.5e9)), 2)
        );
        assert_eq!((calls[1].state, calls[1].submitted, calls[1].hosts.len()), (State::Waiting, None, 0));
    }

    #[test]
    fn nonsense_is_nothing() {
        for answer in [json!(null), json!([]), json!({"hosts": {}, "calls": 1})] {
            assert_eq!(hosts(&answer), (String::new(), Vec::new(), 0));
            assert!(calls(&answer).is_empty());
        }
    }
}
