//! Health of a sensor, as it reports it: sweeps, channels, and the external collectors and handlers that it
//! runs.
//!
//! Pure. Rule: answers are untrusted: texts and lists are bounded, and figures below zero are left out.

use crate::grid::text::shown;
use wire::api::channels::{ChannelKind, Subscription, Subscriptions};
use wire::api::daemon::Info;
use wire::api::modules::{self as api, ModuleKind, Modules};
use wire::api::processes::Processes;

/// Maximum number of channels and of modules; a sensor has at most so many channels.
const LISTED_MAX: usize = 256;
/// Maximum number of troubles.
const TROUBLES_MAX: usize = 8;

/// Health of a sensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    pub host: String,
    pub domain: String,
    /// `sensor`, `directory` or `up` (both).
    pub kind: String,
    pub version: String,
    /// Seconds since its start.
    pub uptime_secs: Option<f64>,
    /// Problems, as it describes them.
    pub troubles: Vec<String>,
    /// Bytes of logs that it has not read yet.
    pub lag_bytes: Option<u64>,
    pub events_lost: Option<u64>,
    /// Samples that were taken but not sent.
    pub thinned: Option<u64>,
    /// Process sweeps that were due but not made.
    pub slipped: Option<u64>,
    /// Processes that did not fit into the kernel's buffer.
    pub lost: Option<u64>,
    /// The source of its process data.
    pub source: String,
    /// Interval of its sweeps, in seconds.
    pub interval_secs: Option<f64>,
    pub channels: Vec<Channel>,
    /// Its external collectors and handlers.
    pub modules: Vec<Module>,
    /// Whether running modules is enabled.
    pub runs_modules: bool,
}

/// A channel: the subscription of a client, or one of the sensor itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Its id; `None` for a channel of the sensor itself, or of a client other than the caller.
    pub subscription: Option<String>,
    /// Owner of a channel of the sensor itself.
    pub owner: String,
    /// Kind of its entries: `process`, `host`, `event`, `call`.
    pub kind: String,
    /// Samples per second.
    pub rate_hz: f64,
    /// Its filter.
    pub filter: String,
    /// Entries that were dropped.
    pub missed: u64,
    /// CPU time spent on it, in seconds.
    pub cpu_secs: f64,
    /// Why the sensor stopped it, if it did.
    pub stopped: Option<String>,
}

/// A collector or handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    pub name: String,
    /// `running`, `stopped`, `quarantined` and so on.
    pub state: String,
    /// `collector` or `handler`.
    pub kind: String,
    /// How often a collector is polled, per second.
    pub rate_hz: Option<f64>,
    /// Number of failures.
    pub failures: u64,
    pub last_error: String,
}

impl Module {
    /// Whether it can be stopped; otherwise it can be started.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self.state.as_str(), "starting" | "running" | "waiting")
    }
}

impl Health {
    /// Take over an answer of `daemon.info`.
    pub fn take_info(&mut self, info: &Info) {
        self.host = shown(&info.host).text;
        self.domain = optional(info.domain.as_deref());
        self.kind = shown(&info.kind).text;
        self.version = shown(&info.version).text;
        self.uptime_secs = sound(info.uptime_secs);
        self.troubles = info.health.iter().take(TROUBLES_MAX).map(|trouble| shown(trouble).text).collect();
        self.lag_bytes = info.figure("sensor", "lag_bytes");
        self.events_lost = info.figure("sensor", "events_lost_total");
        self.thinned = info.figure("reporting", "samples_thinned_total");
    }

    /// Take over the sweep statistics in an answer of `sensor.processes`.
    pub fn take_sweeps(&mut self, answer: &Processes) {
        self.slipped = Some(answer.slipped);
        self.lost = Some(answer.lost);
        self.source = shown(&answer.source).text;
        self.interval_secs = sound(answer.interval_secs);
    }

    /// Take over an answer of `sensor.subscriptions`.
    pub fn take_channels(&mut self, answer: &Subscriptions) {
        let channel = |one: &Subscription| Channel {
            subscription: one.subscription.as_deref().map(|id| shown(id).text),
            owner: optional(one.owner.as_deref()),
            kind: kind_text(one.kind).to_owned(),
            rate_hz: sound(one.rate_hz).unwrap_or(0.0),
            filter: optional(one.filter.as_deref()),
            missed: one.missed,
            cpu_secs: sound(one.cpu_seconds).unwrap_or(0.0),
            stopped: one.quarantined.as_deref().map(|why| shown(why).text),
        };
        self.channels = answer.subscriptions.iter().take(LISTED_MAX).map(channel).collect();
    }

    /// Take over an answer of `sensor.modules`.
    pub fn take_modules(&mut self, answer: &Modules) {
        let module = |one: &api::Module| Module {
            name: shown(&one.name).text,
            state: one.state.as_str().to_owned(),
            kind: one.kind.map_or("", ModuleKind::as_str).to_owned(),
            rate_hz: one.rate_hz.and_then(sound),
            failures: one.failures,
            last_error: optional(one.last_error.as_deref()),
        };
        let modules = answer.modules.iter().take(LISTED_MAX).map(module);
        self.modules = modules.filter(|module| !module.name.is_empty()).collect();
        self.runs_modules = answer.on;
        self.troubles.extend(answer.trouble.as_deref().map(|trouble| shown(trouble).text));
    }
}

fn optional(text: Option<&str>) -> String {
    shown(text.unwrap_or_default()).text
}

fn sound(figure: f64) -> Option<f64> {
    Some(figure).filter(|figure| figure.is_finite() && *figure >= 0.0)
}

fn kind_text(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Process => "process",
        ChannelKind::Host => "host",
        ChannelKind::Event => "event",
        ChannelKind::Call => "call",
        ChannelKind::Unknown => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read<T: serde::de::DeserializeOwned>(answer: serde_json::Value) -> T {
        serde_json::from_value(answer).expect("an answer")
    }

    #[test]
    fn answers_become_what_is_shown() {
        let mut health = Health::default();
        health.take_info(&read(
            json!({"host": "wn01", "domain": "demo", "kind": "up", "health": ["disk full"],
            "statistics": {"sensor": {"lag_bytes": 12}, "reporting": {"samples_thinned_total": 220}}}),
        ));
        health.take_sweeps(&read(json!({"slipped": 3, "lost": 0, "source": "procfs", "interval_secs": 0.1})));
        health.take_channels(&read(json!({"subscriptions": [
            {"subscription": "s1", "kind": "process", "rate_hz": 10.0, "filter": "cpu > 0.5", "missed": 4},
            {"owner": "recorder", "kind": "process", "rate_hz": 1.0, "quarantined": "too much CPU"},
        ]})));
        health.take_modules(&read(json!({"on": true, "trouble": "no folder", "modules": [
            {"name": "gpu", "state": "running", "kind": "collector", "rate_hz": 0.1},
            {"name": "mail", "state": "stopped", "failures": 2}, {"state": "off"},
        ]})));
        assert_eq!((health.lag_bytes, health.thinned, health.slipped), (Some(12), Some(220), Some(3)));
        assert_eq!(health.troubles, ["disk full", "no folder"]);
        let channels: Vec<_> = health
            .channels
            .iter()
            .map(|one| (one.subscription.as_deref(), one.kind.as_str(), one.rate_hz, one.missed))
            .collect();
        assert_eq!(channels, [(Some("s1"), "process", 10.0, 4), (None, "process", 1.0, 0)]);
        let modules: Vec<_> = health.modules.iter().map(|one| (one.name.as_str(), one.is_on())).collect();
        assert_eq!(modules, [("gpu", true), ("mail", false)]);
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let mut health = Health::default();
        health.take_info(&read(
            json!({"host": "x".repeat(4_000), "uptime_secs": -1.0, "health": vec!["x"; 99]}),
        ));
        assert_eq!((health.host.chars().count() <= 256, health.uptime_secs), (true, None));
        assert_eq!(health.troubles.len(), TROUBLES_MAX);
        let many = vec![json!({"name": "a\u{202e}b", "rate_hz": -1.0}); 9_999];
        health.take_modules(&read(json!({ "modules": many })));
        assert_eq!(health.modules.len(), LISTED_MAX);
        assert_eq!((health.modules[0].name.as_str(), health.modules[0].rate_hz), ("a\u{fffd}b", None));
    }
}
