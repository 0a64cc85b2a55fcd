//! What a sensor answers of itself: its sweeps, its channels, and the collectors of others' making that it runs.
//!
//! Pure. Rule: answers come from strangers: what is missing or of another kind is left out, texts and lists are bounded.

use crate::grid::text::shown;
use serde_json::Value;

/// Channels and modules that are kept; a sensor has at most so many channels.
const LISTED_MAX: usize = 256;
/// Troubles that are kept.
const TROUBLES_MAX: usize = 8;

/// How a sensor is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Its host.
    pub host: String,
    /// Its domain.
    pub domain: String,
    /// `sensor`, `directory` or `up` (both).
    pub kind: String,
    /// Its version.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_secs: Option<f64>,
    /// What is wrong, in its words.
    pub troubles: Vec<String>,
    /// Bytes of logs that it has not read yet.
    pub lag_bytes: Option<u64>,
    /// Events that it lost.
    pub events_lost: Option<u64>,
    /// Samples that it did not send.
    pub thinned: Option<u64>,
    /// Sweeps over processes that were due and not made.
    pub slipped: Option<u64>,
    /// Processes of which the kernel had no room to tell.
    pub lost: Option<u64>,
    /// What reads the processes.
    pub source: String,
    /// Between two sweeps, in seconds.
    pub interval_secs: Option<f64>,
    /// Its channels.
    pub channels: Vec<Channel>,
    /// The collectors and handlers of others' making.
    pub modules: Vec<Module>,
    /// Whether it runs any.
    pub runs_modules: bool,
}

/// A channel: somebody's subscription.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Its number; none of what the sensor made for itself.
    pub subscription: Option<String>,
    /// Whose it is, where the sensor made it for itself.
    pub owner: String,
    /// Of what: `process`, `host`, `event`, `call`.
    pub kind: String,
    /// Samples a second.
    pub rate_hz: f64,
    /// What passes.
    pub filter: String,
    /// Entries that were left out.
    pub missed: u64,
    /// CPU time that it took, in seconds.
    pub cpu_secs: f64,
    /// Why it was stopped, if it was.
    pub stopped: Option<String>,
}

/// A collector or handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// `running`, `stopped`, `quarantined` and so on.
    pub state: String,
    /// `collector` or `handler`.
    pub kind: String,
    /// How often a collector is asked, a second.
    pub rate_hz: Option<f64>,
    /// What it did that it should not.
    pub failures: u64,
    /// What was last wrong with it.
    pub last_error: String,
}

impl Module {
    /// Whether it can be stopped; else it can be started.
    #[must_use]
    pub fn is_on(&self) -> bool {
        matches!(self.state.as_str(), "starting" | "running" | "waiting")
    }
}

impl Health {
    /// What `daemon.info` says.
    pub fn take_info(&mut self, info: &Value) {
        self.host = text(info, "host");
        self.domain = text(info, "domain");
        self.kind = text(info, "kind");
        self.version = text(info, "version");
        // As a daemon of the version before calls it.
        self.uptime_secs = figure(info, "uptime_secs").or_else(|| figure(info, "uptime"));
        let troubles = info["health"].as_array().map(Vec::as_slice).unwrap_or_default();
        let troubles = troubles.iter().filter_map(Value::as_str).take(TROUBLES_MAX);
        self.troubles = troubles.map(|trouble| shown(trouble).text).collect();
        let statistics = &info["statistics"];
        self.lag_bytes = statistics["sensor"]["lag_bytes"].as_u64();
        self.events_lost = statistics["sensor"]["events_lost_total"].as_u64();
        self.thinned = statistics["reporting"]["samples_thinned_total"].as_u64();
    }

    /// What `sensor.processes` says of its sweeps.
    pub fn take_sweeps(&mut self, answer: &Value) {
        self.slipped = answer["slipped"].as_u64();
        self.lost = answer["lost"].as_u64();
        self.source = text(answer, "source");
        // As a sensor of the version before calls it.
        self.interval_secs = figure(answer, "interval_secs").or_else(|| figure(answer, "interval"));
    }

    /// What `sensor.subscriptions` says.
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

    /// What `sensor.modules` says.
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
