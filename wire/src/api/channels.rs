//! Methods about subscriptions: `sensor.channels`, `sensor.subscribe`, `sensor.alter`, `sensor.unsubscribe`,
//! `sensor.subscriptions`.
//!
//! Pure. Not here: the settings of a subscription (`settings`), its entries (`entries`), its evaluation
//! ([`crate::channel`]).

pub use super::settings::{BudgetSettings, Selection, Settings};
use super::{Effect, Renamed, Request, Subject};
use crate::channel::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const RENAMED: &[Renamed] = &[("rate_hz", "rate"), ("rate_min_hz", "rate_min"), ("rate_max_hz", "rate_max")];

/// List the kinds of data that a client can subscribe to at this sensor, and the limits of subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelsParams {}

impl Request for ChannelsParams {
    const METHOD: &'static str = "sensor.channels";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Channels;
}

/// List the subscriptions of this sensor, with their settings and resource usage.
///
/// Settings and results of a subscription are visible to its owner, to root and to the daemon's own user;
/// other callers receive only its kind, rate, budget and the counters of resource usage. The id, the script
/// and the cursor are visible only to the owner. Subscriptions of the sensor itself have an `owner` and no
/// id; clients cannot alter or end them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionsParams {}

impl Request for SubscriptionsParams {
    const METHOD: &'static str = "sensor.subscriptions";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Subscriptions;
}

/// Subscribe to processes, metrics, events or calls of this sensor's host; read the entries with sensor.take.
///
/// Example of a filter: `cpu > 0.5 and name ~ "^slurm" and rss_bytes changes by 1M top 10 by cpu`. Example of
/// a condition: `sum cpu > 3.5 until 2.5 for 10 s`. sensor.channels lists the fields. Defaults: no filter, 1
/// sample per second, no condition, no script, 20 ms of CPU time per second, 8388608 bytes per second, a
/// queue of 262144 bytes. A subscription ends if no entries are taken from it for 60 seconds. Fault busy: the
/// maximum number of subscriptions is reached, or there is no memory for another queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SubscribeParams {
    /// Kind of data.
    pub kind: Kind,
    /// Settings of the subscription.
    #[serde(flatten)]
    pub settings: Settings,
    /// Start position for kind `event` and `call`: `cursor` of sensor.events or of a subscription, "" for the
    /// oldest stored event, "end" for the next event. Default: the next event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Request for SubscribeParams {
    const METHOD: &'static str = "sensor.subscribe";
    const EFFECT: Effect = Effect::KeepsForClient;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    const RENAMED_PARAMETERS: &'static [Renamed] = RENAMED;
    type Answer = Subscription;
}

/// Change the settings of a subscription while it runs; absent settings keep their value.
///
/// Waiting entries are not lost. A quarantined subscription is resumed, starting with a complete sample. If a
/// setting is invalid, nothing is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlterParams {
    /// Id of the subscription, as returned by sensor.subscribe.
    pub subscription: String,
    /// New settings of the subscription.
    #[serde(flatten)]
    pub settings: Settings,
}

impl Request for AlterParams {
    const METHOD: &'static str = "sensor.alter";
    const EFFECT: Effect = Effect::KeepsForClient;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    const RENAMED_PARAMETERS: &'static [Renamed] = RENAMED;
    type Answer = Subscription;
}

/// End a subscription and drop its waiting entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsubscribeParams {
    /// Id of the subscription, as returned by sensor.subscribe.
    pub subscription: String,
}

impl Request for UnsubscribeParams {
    const METHOD: &'static str = "sensor.unsubscribe";
    const EFFECT: Effect = Effect::KeepsForClient;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Subscription;
}

/// Kinds of data that a client can subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channels {
    /// Kinds of data, with their fields.
    pub kinds: Vec<Channel>,
    /// Limits of subscriptions.
    pub bounds: Bounds,
}

/// Kind of data that a client can subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channel {
    /// Kind of data.
    pub kind: ChannelKind,
    /// Fields that filters and conditions may use.
    pub fields: Vec<Field>,
    /// Names of the fields of `selection` that apply to this kind.
    pub selection: Vec<String>,
}

/// Field that filters and conditions may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChannelField")]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// Unit of a number; empty if it has none.
    pub unit: String,
    /// Description of the field.
    pub help: String,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChannelFieldKind")]
pub enum FieldKind {
    /// Number.
    Number,
    /// Text.
    Text,
    /// Type that only a later version knows.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Kind of data of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// Processes of a host.
    Process,
    /// Metrics of a host.
    Host,
    /// Events, as they are found in logs.
    Event,
    /// Calls, whenever their state changes.
    Call,
    /// Kind that only a later version knows.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl From<Kind> for ChannelKind {
    fn from(kind: Kind) -> ChannelKind {
        match kind {
            Kind::Process => ChannelKind::Process,
            Kind::Host => ChannelKind::Host,
            Kind::Event => ChannelKind::Event,
            Kind::Call => ChannelKind::Call,
        }
    }
}

/// Limits of subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChannelBounds")]
pub struct Bounds {
    /// Lowest rate, in samples per second.
    pub rate_min_hz: f64,
    /// Highest rate, in samples per second.
    pub rate_max_hz: f64,
    /// Maximum number of subscriptions at the sensor.
    pub subscriptions_max: u64,
    /// Maximum size of the queues of all subscriptions together, in bytes.
    pub queues_max_bytes: u64,
    /// Idle timeout in seconds: a subscription ends if no entries are taken from it for this long.
    pub idle_max_seconds: f64,
}

/// List of subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Subscriptions {
    /// Subscriptions of the sensor.
    pub subscriptions: Vec<Subscription>,
    /// Highest rate of all subscriptions, in samples per second; 0 if there are none.
    pub rate_hz: f64,
}

/// Settings, state and counters of a subscription. Settings and results are absent if the caller may not see
/// them (sensor.subscriptions).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Subscription {
    /// Id of the subscription. Absent if the caller is not the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// Part of the sensor that created the subscription for itself: `recorder` or `module`. Absent for
    /// subscriptions of clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Kind of data.
    pub kind: ChannelKind,
    /// Selected items. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Rate, in samples per second.
    pub rate_hz: f64,
    /// Filter; empty if everything passes. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Condition whose changes are signalled. Absent if there is none or if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Whether the condition is true. Absent without a condition or if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_true: Option<bool>,
    /// Script. Absent if there is none or if the caller is not the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Whether samples contain only the changes since the previous one. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// Whether only signals of the condition are sent, and no samples. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_signals: Option<bool>,
    /// Resource limits.
    pub budget: BudgetSettings,
    /// Number of times the subscription was altered.
    pub revision: u64,
    /// Number of the next entry. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Number of samples due since the subscription was created.
    pub due: u64,
    /// Number of due samples without a match or change since the subscription was created. Absent if not
    /// visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Number of entries in the queue. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Size of the entries in the queue, in bytes. Absent if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_bytes: Option<u64>,
    /// Number of entries dropped since the subscription was created.
    pub missed: u64,
    /// Number of entries in `missed` dropped because the owner, or all subscriptions together, used too much
    /// CPU time.
    pub throttled: u64,
    /// CPU time used by the evaluation since the subscription was created, in seconds.
    pub cpu_seconds: f64,
    /// Size of all entries queued since the subscription was created, in bytes. Absent if not visible to the
    /// caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Reason why the subscription was stopped. Absent while it runs or if not visible to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// Cursor of the next event to evaluate. Absent for kinds other than `event` and `call`, or if the caller
    /// is not the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Subscription {
    /// The part visible to all callers: resource usage, without settings and results.
    #[must_use]
    pub fn shown_to_all(self) -> Subscription {
        let Subscription { kind, rate_hz, budget, revision, due, missed, throttled, cpu_seconds, .. } = self;
        Subscription {
            kind,
            rate_hz,
            budget,
            revision,
            due,
            missed,
            throttled,
            cpu_seconds,
            ..Subscription::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn others_see_what_a_subscription_costs_and_nothing_of_what_it_finds() {
        let full = json!({"subscription": "s", "owner": "module", "kind": "process", "selection": {"user": "0"}, "rate_hz": 2.0,
            "filter": "cpu > 1", "condition": "count > 1", "is_true": true, "script": "1", "changes": true, "only_signals": true,
            "budget": {"cpu_ms": 20}, "revision": 1, "next": 2, "due": 3, "empty": 4, "waiting": 5, "waiting_bytes": 6, "missed": 7,
            "throttled": 8, "cpu_seconds": 0.5, "bytes": 9.0, "quarantined": "why", "cursor": "c"});
        let shown = serde_json::from_value::<Subscription>(full).expect("it is read").shown_to_all();
        let expected = json!({"kind": "process", "rate_hz": 2.0, "budget": {"cpu_ms": 20}, "revision": 1, "due": 3, "missed": 7,
            "throttled": 8, "cpu_seconds": 0.5});
        assert_eq!(serde_json::to_value(shown).expect("it is written"), expected);
    }
}
