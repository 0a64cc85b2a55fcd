//! Settings of a subscription: selection, rate, filter, limits.
//!
//! Pure. Not here: the methods with these parameters (`channels`), the evaluation ([`crate::channel`]).

use super::OneOrMore;
use crate::channel::{self, BYTES_MAX, CPU_MAX_MS, Kind, QUEUE_MAX_BYTES, QUEUE_MIN_BYTES};
use crate::event;
use compact_str::{CompactString, ToCompactString};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Selected items. Initial value: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Rate in samples per second, 0.1 to 1000. Initial value: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Filter of the selected items (docs/channels.md); "" removes it. Initial value: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Condition; a signal is sent when it becomes true and when it becomes false again; "" removes it.
    /// Initial value: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Script, for what a filter cannot express (docs/channels.md); "" removes it. Initial value: none.
    /// Accepted by the sensor of the host and, for hosts of its domain, by the representative; fault
    /// forbidden if another daemon forwards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Send only processes that differ from the previous sample. Initial value: false. Has an effect only for
    /// kind `process`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// Send only signals of the condition, and no samples. Initial value: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_signals: Option<bool>,
    /// Resource limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSettings>,
}

/// Selection of processes, metrics, events or calls: items that match all given fields. sensor.channels lists
/// the fields that apply to each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Selection {
    /// Name of a process, or name given to a call by its user; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub name: Option<CompactString>,
    /// User. For processes: name or user id on the host. For events and calls: user as printed in the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub user: Option<CompactString>,
    /// Command line of a process; `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub command: Option<CompactString>,
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Process id of an ancestor: selects that process and all its descendants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<u32>,
    /// Job number, of any product; includes the parts of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub job: Option<CompactString>,
    /// Id of a call; for events and calls `*` matches any characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub call: Option<CompactString>,
    /// Kind of event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<event::Kind>,
    /// Outcome, or list of alternative outcomes.
    #[serde(skip_serializing_if = "OneOrMore::is_empty")]
    pub outcome: OneOrMore<event::Outcome>,
    /// Name of a metric, or a glob (`node_cpu_*`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub metric: Option<CompactString>,
}

impl Selection {
    /// Names of the fields that are set.
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

    /// Convert to the selection of a channel; `uid` is the user id of `user` for processes.
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

/// Resource limits of a subscription; limits not given keep their value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetSettings {
    /// CPU time of the evaluation, in milliseconds per second; the subscription is stopped if it exceeds it.
    /// Initial value: 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = CPU_MAX_MS))]
    pub cpu_ms: Option<u32>,
    /// Size of the entries, in bytes per second; entries beyond it are dropped. Initial value: 8388608.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1024, max = BYTES_MAX))]
    pub bytes: Option<u32>,
    /// Size of the queue, in bytes; if it is full, the oldest entries are dropped. Initial value: 262144.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = QUEUE_MIN_BYTES, max = QUEUE_MAX_BYTES))]
    pub queue_bytes: Option<u32>,
}

impl BudgetSettings {
    /// `budget` with the limits that are set here.
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
