//! Methods that every daemon has: `daemon.info`.
//!
//! Pure. Not here: the health checks of a daemon (the daemons).

use super::{Effect, Named, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What this daemon is, how it is, and what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InfoParams {}

impl Request for InfoParams {
    const METHOD: &'static str = "daemon.info";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = &[("uptime_secs", "uptime")];
    type Answer = Info;
}

/// A daemon to which a connection is not direct.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reached {
    /// The daemon at the other end: its key.
    pub peer: String,
    /// How the connection is made: `punched`, `circuit`, `websocket`, `connect` or `polling`.
    pub rung: String,
}

/// Counters and gauges by their names.
pub type Figures = Named<u64>;

/// What a daemon is, how it is, and what it did since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Info {
    /// `visperf`.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// `sensor`, `directory`, `proxy`, or `up` for a sensor and a directory in one.
    pub kind: String,
    /// Its host.
    pub host: String,
    /// Its domain, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The number of its process.
    pub pid: u32,
    /// When it was started.
    pub started: UnixTime,
    /// Seconds since then.
    pub uptime_secs: f64,
    /// The addresses at which it answers.
    pub listen: Vec<String>,
    /// Where its state is.
    pub state_directory: String,
    /// Whether `health` is empty.
    pub healthy: bool,
    /// What is wrong, a sentence each.
    pub health: Vec<String>,
    /// Connections that are not direct.
    pub reach: Vec<Reached>,
    /// Counters of each of its parts.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, u64>>")]
    pub statistics: Named<Figures>,
}

impl Info {
    /// A figure of a part, where the daemon has it.
    #[must_use]
    pub fn figure(&self, part: &str, name: &str) -> Option<u64> {
        let (_, figures) = self.statistics.0.iter().find(|(known, _)| known == part)?;
        figures.0.iter().find(|(known, _)| known == name).map(|(_, figure)| *figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_figure_is_found_by_its_part_and_name() {
        let info: Info = serde_json::from_value(json!({"kind": "up", "pid": 7, "later": [1],
            "statistics": {"sensor": {"lag_bytes": 5}, "queries": {"calls_total": 9}}}))
        .expect("an answer");
        assert_eq!((info.pid, info.figure("sensor", "lag_bytes")), (7, Some(5)));
        assert_eq!((info.figure("sensor", "calls_total"), info.figure("proxy", "lag_bytes")), (None, None));
    }
}
