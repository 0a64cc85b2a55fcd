//! Methods that every daemon has: `daemon.info`.
//!
//! Pure. Not here: the health checks of a daemon (the daemons).

use super::{Effect, Named, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Return the version, addresses, health and counters of this daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InfoParams {}

impl Request for InfoParams {
    const METHOD: &'static str = "daemon.info";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = &[("uptime_secs", "uptime")];
    type Answer = Info;
}

/// Indirect connection to another daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reached {
    /// Key of the daemon at the other end.
    pub peer: String,
    /// Transport of the connection: `punched`, `circuit`, `websocket`, `connect` or `polling`.
    pub rung: String,
}

/// Counters and gauges by their names.
pub type Figures = Named<u64>;

/// Version, addresses, health and counters of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Info {
    /// Name of the program: `visperf`.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Kind of daemon: `sensor`, `directory`, `proxy`, or `up` for a sensor and a directory in one process.
    pub kind: String,
    /// Name of its host.
    pub host: String,
    /// Name of its domain. Absent if it is in no domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Process id of the daemon.
    pub pid: u32,
    /// Time when the daemon was started.
    pub started: UnixTime,
    /// Time since the daemon was started, in seconds.
    pub uptime_secs: f64,
    /// Addresses on which it answers queries.
    pub listen: Vec<String>,
    /// Path of the state folder.
    pub state_directory: String,
    /// Whether `health` is empty.
    pub healthy: bool,
    /// Problems, one sentence each.
    pub health: Vec<String>,
    /// Indirect connections to other daemons.
    pub reach: Vec<Reached>,
    /// Counters and gauges, by part of the daemon and by name.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, u64>>")]
    pub statistics: Named<Figures>,
}

impl Info {
    /// Counter of a part of the daemon, if it exists.
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
