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

/// What can be subscribed to at this sensor, and within which bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelsParams {}

impl Request for ChannelsParams {
    const METHOD: &'static str = "sensor.channels";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Channels;
}

/// The subscriptions at this sensor: what each is of, and what it costs.
///
/// Those of other clients are there without what they look for and find. Those that the sensor made for itself have an owner and no
/// subscription to name them by: clients can neither alter nor end them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubscriptionsParams {}

impl Request for SubscriptionsParams {
    const METHOD: &'static str = "sensor.subscriptions";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Subscriptions;
}

/// Subscribe to processes, metrics, events or calls of this sensor's host; sensor.take takes what comes.
///
/// A filter is such as `cpu > 0.5 and name ~ "^slurm" and rss_bytes changes by 1M top 10 by cpu`, a condition such as
/// `sum cpu > 3.5 until 2.5 for 10 s`; sensor.channels has the fields. Unless given, all pass, once a second, without condition and script, within
/// 20 ms of CPU and 8388608 bytes a second and 262144 bytes that wait. A subscription from which nothing is taken for 60 seconds ends. As
/// many subscriptions as there may be, or no room for another queue, is the fault busy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SubscribeParams {
    /// What to subscribe to.
    pub kind: Kind,
    /// How.
    #[serde(flatten)]
    pub settings: Settings,
    /// Of events and calls: where to begin, as `cursor` of sensor.events or of a subscription, "" for the oldest stored event; with the next
    /// event unless given.
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

/// Change a subscription while it runs; what is not given stays.
///
/// Nothing that waits is lost, and a subscription that was stopped goes on, with a whole sample. A mistake changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlterParams {
    /// Which, as sensor.subscribe gave it.
    pub subscription: String,
    /// How it is to be.
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

/// End a subscription; what waits is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnsubscribeParams {
    /// Which, as sensor.subscribe gave it.
    pub subscription: String,
}

impl Request for UnsubscribeParams {
    const METHOD: &'static str = "sensor.unsubscribe";
    const EFFECT: Effect = Effect::KeepsForClient;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Subscription;
}

/// What can be subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channels {
    /// Each kind.
    pub kinds: Vec<Channel>,
    /// Within these bounds.
    pub bounds: Bounds,
}

/// A kind of what can be subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channel {
    /// Which.
    pub kind: ChannelKind,
    /// What filters and conditions may name of it.
    pub fields: Vec<Field>,
    /// What it may be selected by.
    pub selection: Vec<String>,
}

/// A field that filters and conditions may name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChannelField")]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: FieldKind,
    /// The unit of a number; empty where it has none.
    pub unit: String,
    /// What it says.
    pub help: String,
}

/// What a field is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChannelFieldKind")]
pub enum FieldKind {
    /// A number.
    Number,
    /// A text.
    Text,
    /// A word that a later version has.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What can be subscribed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// The processes of a host.
    Process,
    /// The metrics of a host.
    Host,
    /// Events, as they are found in logs.
    Event,
    /// Calls, as their state changes.
    Call,
    /// A word that a later version has.
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

/// The bounds of subscriptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChannelBounds")]
pub struct Bounds {
    /// The slowest rate, in samples a second.
    pub rate_min_hz: f64,
    /// The fastest rate, in samples a second.
    pub rate_max_hz: f64,
    /// Most subscriptions at a time.
    pub subscriptions_max: u64,
    /// Most bytes that wait in the queues of all subscriptions together.
    pub queues_max_bytes: u64,
    /// A subscription from which nothing is taken for so long ends.
    pub idle_max_seconds: f64,
}

/// Subscriptions at a sensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Subscriptions {
    /// Each of them.
    pub subscriptions: Vec<Subscription>,
    /// The rate of the fastest, in samples a second; 0 where there is none.
    pub rate_hz: f64,
}

/// A subscription, and how it stands. Of those of other clients only what it costs is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Subscription {
    /// What names it in calls; left out of those of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The part of the sensor that made it for itself: `recorder` or `module`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What it is of.
    pub kind: ChannelKind,
    /// Which are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Samples a second.
    pub rate_hz: f64,
    /// Which of them pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// What is signalled, where there is a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Whether the condition is true, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_true: Option<bool>,
    /// Its script, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Whether samples have only what differs from the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<bool>,
    /// Whether there are signals and no samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_signals: Option<bool>,
    /// What it may cost.
    pub budget: BudgetSettings,
    /// How often it was altered.
    pub revision: u64,
    /// The number of its next entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Samples that were due, since it was made.
    pub due: u64,
    /// Samples of which nothing passed, since it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Entries that wait to be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// Bytes of the entries that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_bytes: Option<u64>,
    /// Entries that were left out, since it was made.
    pub missed: u64,
    /// Entries of `missed` that were left out because its owner, or all subscriptions together, used too much CPU time.
    pub throttled: u64,
    /// CPU time that its evaluation took, since it was made.
    pub cpu_seconds: f64,
    /// Bytes of its entries, since it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Why it was stopped, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
    /// Of events and calls: the next event that it looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Subscription {
    /// What all clients may see of it: what it costs, and nothing of what it looks for or finds.
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
