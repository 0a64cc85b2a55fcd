//! Health of a sensor, as it reports it: sweeps, channels, and the external collectors and handlers that it
//! runs.
//!
//! Pure. Rule: answers are untrusted: what is missing or of another kind is skipped, texts and lists are
//! bounded.

use crate::grid::text::shown;
use serde_json::Value;

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
    /// Read an answer of `daemon.info`.
    pub fn take_info(&mut self, info: &Value) {
        self.host = text(info, "host");
        self.domain = text(info, "domain");
        self.kind = text(info, "kind");
        self.version = text(info, "version");
        // A daemon of the previous version uses the old name.
        self.uptime_secs = figure(info, "uptime_secs").or_else(|| figure(info, "uptime"));
        let troubles = info["health"].as_array().map(Vec::as_slice).unwrap_or_default();
        let troubles = troubles.iter().filter_map(Value::as_str).take(TROUBLES_MAX);
        self.troubles = troubles.map(|trouble| shown(trouble).text).collect();
        let statistics = &info["statistics"];
        self.lag_bytes = statistics["sensor"]["lag_bytes"].as_u64();
        self.events_lost = statistics["sensor"]["events_lost_total"].as_u64();
        self.thinned = statistics["reporting"]["samples_thinned_total"].as_u64();
    }

    /// Read the sweep statistics in an answer of `sensor.processes`.
    pub fn take_sweeps(&mut self, answer: &Value) {
        self.slipped = answer["slipped"].as_u64();
        self.lost = answer["lost"].as_u64();
        self.source = text(answer, "source");
        // A sensor of the previous version uses the old name.
        self.interval_secs = figure(answer, "interval_secs").or_else(|| figure(answer, "interval"));
    }

    /// Read an answer of `sensor.subscriptions`.
    pub fn take_channels(&mut self, answer: &Value) {
        let channel = |told: &Value| Channel {
            subscription: told["subscription"].as_str().map(|id| shown(id).text),
            owner: text(told, "owner"),
            kind: text(told, "kind"),
            rate_hz: figure(told, "rate").unwrap_or(0.0),
            filter: text(told, "filter"),
            missed: told["missed"].as_u64().unwrap_or(0),
            cpu_secs: figure(told, "cpu_seconds").unwrap_or(0.0),
            stopped: told["quarantined"].as_str().map(|why| shown(why).text),
        };
        self.channels = items(answer, "subscriptions").map(channel).collect();
    }

    /// Read an answer of `sensor.modules`.
    pub fn take_modules(&mut self, answer: &Value) {
        let module = |told: &Value| Module {
            name: text(told, "name"),
            state: text(told, "state"),
            kind: text(told, "kind"),
            rate_hz: figure(told, "rate_hz").or_else(|| figure(told, "rate")),
            failures: told["failures"].as_u64().unwrap_or(0),
            last_error: text(told, "last_error"),
        };
        self.modules =
            items(answer, "modules").map(module).filter(|module| !module.name.is_empty()).collect();
        self.runs_modules = answer["on"] == true;
        let trouble = text(answer, "trouble");
        if !trouble.is_empty() {
            self.troubles.push(trouble);
        }
    }
}

fn items<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    answer[name].as_array().map(Vec::as_slice).unwrap_or_default().iter().take(LISTED_MAX)
}

fn text(told: &Value, name: &str) -> String {
    shown(told[name].as_str().unwrap_or_default()).text
}

fn figure(told: &Value, name: &str) -> Option<f64> {
    told[name].as_f64().filter(|figure| figure.is_finite() && *figure >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_become_what_is_shown() {
        let mut health = Health::default();
        health.take_info(&json!({"host": "wn01", "domain": "demo", "kind": "up", "health": ["disk full", 7],
            "statistics": {"sensor": {"lag_bytes": 12}, "reporting": {"samples_thinned_total": 220}}}));
        health.take_sweeps(&json!({"slipped": 3, "lost": 0, "source": "procfs", "interval_secs": 0.1}));
        health.take_channels(&json!({"subscriptions": [
            {"subscription": "s1", "kind": "process", "rate": 10.0, "filter": "cpu > 0.5", "missed": 4},
            {"owner": "recorder", "kind": "process", "rate": 1.0, "quarantined": "too much CPU"},
        ]}));
        health.take_modules(&json!({"on": true, "modules": [
            {"name": "gpu", "state": "running", "kind": "collector", "rate_hz": 0.1},
            {"name": "mail", "state": "stopped", "failures": 2}, {"state": "off"},
        ]}));
        assert_eq!((health.lag_bytes, health.thinned, health.slipped), (Some(12), Some(220), Some(3)));
        assert_eq!(health.troubles, ["disk full"]);
        let channels: Vec<_> = health
            .channels
            .iter()
            .map(|one| (one.subscription.as_deref(), one.rate_hz, one.missed))
            .collect();
        assert_eq!(channels, [(Some("s1"), 10.0, 4), (None, 1.0, 0)]);
        let modules: Vec<_> = health.modules.iter().map(|one| (one.name.as_str(), one.is_on())).collect();
        assert_eq!(modules, [("gpu", true), ("mail", false)]);
    }

    #[test]
    fn nonsense_is_nothing_and_what_is_too_much_is_left_out() {
        for answer in
            [json!(null), json!([]), json!({"health": {}, "subscriptions": 1, "modules": "x", "rate": []})]
        {
            let mut health = Health::default();
            health.take_info(&answer);
            health.take_sweeps(&answer);
            health.take_channels(&answer);
            health.take_modules(&answer);
            assert_eq!(health, Health::default());
        }
        let mut health = Health::default();
        let many = vec![json!({"name": "a\u{202e}b", "kind": "x".repeat(4_000), "rate": -1.0}); 9_999];
        health.take_modules(&json!({ "modules": many }));
        assert_eq!(health.modules.len(), LISTED_MAX);
        assert_eq!((health.modules[0].name.as_str(), health.modules[0].rate_hz), ("a\u{fffd}b", None));
        assert!(health.modules[0].kind.chars().count() <= 256);
    }
}
