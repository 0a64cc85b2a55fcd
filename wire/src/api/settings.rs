//! Settings of a subscription: selection, rate, filter, limits.
//!
//! Pure. Not here: the methods with these parameters (`channels`), the evaluation ([`crate::channel`]).

use super::OneOrMore;
use crate::channel::{self, BYTES_MAX, CPU_MAX_MS, Kind, QUEUE_MAX_BYTES, QUEUE_MIN_BYTES};
use crate::event;
use compact_str::{CompactString, ToCompactString};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a subscription is to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Which are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Samples a second, 0.1 to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Which of them pass (docs/channels.md); all with "".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What is signalled when it becomes true, and when false again; nothing with "".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What a filter cannot say (docs/channels.md); none with "". The sensor of the host takes it, and for hosts of its domain the representative:
    /// no daemon hands it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Of processes: give only those that differ from the sample before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// Give the condition's signals and no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_signals: Option<bool>,
    /// What it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSettings>,
}

/// Which processes, metrics, events or calls are meant: those that fit all that is given. Each kind takes some of these (sensor.channels).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Selection {
    /// The name of a process, or that of a call by its user; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// Of processes: a user of the host, by name or number. Of events and calls: the user, as the logs name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub user: Option<CompactString>,
    /// The arguments of a process; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
    /// The number of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The number of a process: it, and all that descend from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<u32>,
    /// The number of a job, of any product; its parts too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub job: Option<CompactString>,
    /// The id of a call; for events and calls `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub call: Option<CompactString>,
    /// The kind of an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<event::Kind>,
    /// How it ended: so, or in one of these ways.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub outcome: OneOrMore<event::Outcome>,
    /// The name of a metric, or a glob (`node_cpu_*`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub metric: Option<CompactString>,
}

impl Selection {
    /// The names of what is given.
    #[must_use]
    pub fn given(&self) -> Vec<&'static str> {
        let Selection { name, user, command, pid, under, job, call, kind, outcome, metric } = self;
        let all = [
            ("name", name.is_some()),
            ("user", user.is_some()),
            ("command", command.is_some()),
            ("pid", pid.is_some()),
            ("under", under.is_some()),
            ("job", job.is_some()),
            ("call", call.is_some()),
            ("kind", kind.is_some()),
            ("outcome", !outcome.is_empty()),
            ("metric", metric.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// As a channel has it, where the user of processes has this number.
    #[must_use]
    pub fn of_kind(&self, kind: Kind, uid: Option<u32>) -> channel::Selection {
        let mut outcomes = self.outcome.0.clone();
        // Sorted and without duplicates, so that equal requests give equal selections.
        outcomes.sort_unstable_by_key(|outcome| outcome.as_str());
        outcomes.dedup();
        channel::Selection {
            name: self.name.clone(),
            uid,
            command: self.command.clone(),
            pid: self.pid,
            under: self.under,
            job: self.job.clone(),
            call: self.call.clone(),
            user: self.user.clone().filter(|_| kind != Kind::Process),
            event: self.kind,
            outcomes,
            metric: self.metric.clone(),
        }
    }
}

impl From<&channel::Selection> for Selection {
    fn from(selection: &channel::Selection) -> Selection {
        let channel::Selection { name, uid, command, pid, under, job, call, user, event, outcomes, metric } =
            selection;
        Selection {
            name: name.clone(),
            user: uid.map(|uid| uid.to_compact_string()).or_else(|| user.clone()),
            command: command.clone(),
            pid: *pid,
            under: *under,
            job: job.clone(),
            call: call.clone(),
            kind: *event,
            outcome: OneOrMore(outcomes.clone()),
            metric: metric.clone(),
        }
    }
}

/// What a subscription may cost; what is not given stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetSettings {
    /// CPU time of its evaluation, in milliseconds a second; beyond it the subscription is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = CPU_MAX_MS))]
    pub cpu_ms: Option<u32>,
    /// Bytes a second; what would be beyond it is missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = BYTES_MAX))]
    pub bytes: Option<u32>,
    /// Bytes that may wait to be taken; beyond it the oldest are missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = QUEUE_MIN_BYTES, max = QUEUE_MAX_BYTES))]
    pub queue_bytes: Option<u32>,
}

impl BudgetSettings {
    /// `budget` with what is given.
    #[must_use]
    pub fn within(self, budget: channel::Budget) -> channel::Budget {
        channel::Budget {
            cpu_ms: self.cpu_ms.unwrap_or(budget.cpu_ms),
            bytes: self.bytes.unwrap_or(budget.bytes),
            queue_bytes: self.queue_bytes.unwrap_or(budget.queue_bytes),
        }
    }
}

impl From<channel::Budget> for BudgetSettings {
    fn from(budget: channel::Budget) -> BudgetSettings {
        BudgetSettings {
            cpu_ms: Some(budget.cpu_ms),
            bytes: Some(budget.bytes),
            queue_bytes: Some(budget.queue_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Outcome;
    use serde_json::json;

    #[test]
    fn a_selection_is_read_and_written_as_it_is_meant() {
        let given = json!({"name": "w*", "user": "7", "outcome": ["timeout", "failed", "failed"]});
        let selection: Selection = serde_json::from_value(given).expect("it is read");
        assert_eq!(selection.given(), ["name", "user", "outcome"]);
        let of_calls = selection.of_kind(Kind::Call, None);
        assert_eq!((of_calls.uid, of_calls.user.as_deref()), (None, Some("7")));
        assert_eq!(of_calls.outcomes, [Outcome::Failed, Outcome::Timeout]);
        let of_processes = selection.of_kind(Kind::Process, Some(7));
        assert_eq!((of_processes.uid, of_processes.user.as_deref()), (Some(7), None));
        let written = serde_json::to_value(Selection::from(&of_processes)).expect("it is written");
        assert_eq!(written, json!({"name": "w*", "user": "7", "outcome": ["failed", "timeout"]}));
        let one: Selection = serde_json::from_value(json!({"outcome": "ok"})).expect("it is read");
        assert_eq!(serde_json::to_value(&one).expect("it is written"), json!({"outcome": "ok"}));
    }

    #[test]
    fn every_selector_of_a_kind_is_a_field_of_a_selection() {
        let all = json!({"name": "n", "user": "u", "command": "c", "pid": 1, "under": 1, "job": "j", "call": "c",
            "kind": "job_end", "outcome": "ok", "metric": "m"});
        let all: Selection = serde_json::from_value(all).expect("it is read");
        let given = all.given();
        assert_eq!(given.len(), 10);
        for kind in Kind::ALL {
            assert!(kind.selectors().iter().all(|selector| given.contains(selector)), "{kind:?}");
        }
    }

    #[test]
    fn defaults_are_those_that_the_documents_say() {
        let usual = channel::Budget::default();
        assert_eq!((usual.cpu_ms, usual.bytes, usual.queue_bytes), (20, 8_388_608, 262_144));
        let wider = BudgetSettings { cpu_ms: Some(30), ..BudgetSettings::default() }.within(usual);
        assert_eq!((wider.cpu_ms, wider.bytes), (30, usual.bytes));
        assert_eq!(BudgetSettings::from(wider).within(usual), wider);
    }
}
