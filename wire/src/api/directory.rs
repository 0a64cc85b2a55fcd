//! The methods of directories: `directory.resolve`, `directory.domains`, `directory.targets`. Every daemon of a grid answers them.
//!
//! Pure. Not here: records as representatives state them ([`crate::registration`]).

use super::{Effect, Renamed, Request, Subject};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most domains in one answer: some 4 MB of XML.
pub const DOMAINS_MAX: u64 = 10_000;
/// Domains of an answer by default.
const DOMAINS_DEFAULT: u64 = 1_000;
/// Port of `node_exporter`, the usual target on a host monitored with Prometheus.
const PORT_DEFAULT: u16 = 9100;

const RENAMED: &[Renamed] = &[("age_secs", "age"), ("lease_remaining_secs", "lease_remaining")];

/// Return the address of a domain's representative.
///
/// A representative renews its record every 5 seconds, with a lease of 15 seconds. After that the domain is
/// still returned, with state `last_seen` and its age. Every sensor of a grid answers this method, from its
/// cache if no directory is reachable. Fault not_found: the domain is unknown or has left. Fault unavailable:
/// the directory has just started and may still receive the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// Name of the domain, such as UT-ICL.
    pub domain: String,
}

impl Request for ResolveParams {
    const METHOD: &'static str = "directory.resolve";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Domain;
}

/// List the domains known to the directory, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainsParams {
    /// Only domains in this state.
    pub state: Option<DomainState>,
    /// Only domains whose name sorts after this one, for the next page.
    pub after: Option<String>,
    /// Maximum number of domains.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
}

impl Default for DomainsParams {
    fn default() -> DomainsParams {
        DomainsParams { state: None, after: None, limit: DOMAINS_DEFAULT }
    }
}

impl Request for DomainsParams {
    const METHOD: &'static str = "directory.domains";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Domains;
}

/// List of domains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domains {
    /// Matching domains, sorted by name.
    pub domains: Vec<Domain>,
    /// Whether more domains match than are returned.
    pub more: bool,
}

/// Record of a domain, as registered by its representative.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domain {
    /// Name of the domain.
    pub domain: String,
    /// Host of the representative.
    pub host: String,
    /// Port on which the representative answers queries.
    pub port: u16,
    /// Role of the registered sensor: `representative` or `member`.
    #[serde(rename = "type")]
    pub sensor_type: String,
    /// Addresses on which the representative answers queries, as http://HOST:PORT, best first.
    pub addresses: Vec<String>,
    /// Election term; of two records the one with the higher term takes precedence.
    pub term: u64,
    /// Sequence number of the record within its term.
    pub sequence: u64,
    /// Whether the lease of the record is valid.
    pub state: DomainState,
    /// Time since the record was registered, in seconds.
    pub age_secs: f64,
    /// Remaining time of the lease, in seconds; 0 if it has expired.
    pub lease_remaining_secs: f64,
    /// Whether the record was restored after a restart of the directory and has not been renewed since.
    pub restored: bool,
    /// Root key of the domain. Absent if the domain is not in the overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Key of the representative. Absent if the domain is not in the overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Overlay addresses of the representative, as HOST:PORT. Absent if the domain is not in the overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Vec<String>>,
    /// Whether the representative answers for all hosts of the domain. Absent if the domain is not in the
    /// overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Number of hosts in the domain. Absent if the domain is not in the overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_total: Option<u32>,
    /// Hosts for which the representative answers. Absent unless `coverage` is `part`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Live representatives with lower terms that answer for hosts not covered by this one; each has the
    /// fields of this structure.
    #[schemars(schema_with = "structures")]
    pub partial: Vec<Domain>,
}

/// Schema of a list of structures: a type that contains itself cannot be inlined.
fn structures(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// State of a domain's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainState {
    /// The lease is valid.
    Live,
    /// The lease has expired; the record is the last one known.
    LastSeen,
    /// State that only a later version knows.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl DomainState {
    /// The value as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DomainState::Live => "live",
            DomainState::LastSeen => "last_seen",
            DomainState::Unknown => "unknown",
        }
    }
}

/// Hosts of a domain for which a representative answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// All hosts of the domain.
    #[default]
    Whole,
    /// The hosts listed in `hosts`.
    Part,
    /// Value that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// List all hosts in the format of HTTP service discovery of Prometheus.
///
/// Also available as GET /sd/prometheus, for http_sd_configs of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetsParams {
    /// Only hosts of this domain.
    pub domain: Option<String>,
    /// Port of each target.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
}

impl Default for TargetsParams {
    fn default() -> TargetsParams {
        TargetsParams { domain: None, port: PORT_DEFAULT }
    }
}

impl Request for TargetsParams {
    const METHOD: &'static str = "directory.targets";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    type Answer = Vec<TargetGroup>;
}

/// Targets with the same labels: one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetGroup {
    /// Addresses of the target, as HOST:PORT.
    pub targets: Vec<String>,
    /// Labels of the host; their names start with __meta_visperf_.
    pub labels: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_later_version_is_handed_on_as_unknown() {
        let answer = r#"{"domains": [{"domain": "A", "state": "asleep", "coverage": "twice"}]}"#;
        let read: Domains = serde_json::from_str(answer).expect("read");
        let domain = &read.domains[0];
        assert_eq!((domain.state, domain.coverage), (DomainState::Unknown, Some(Coverage::Unknown)));
        let json = serde_json::to_value(&read).expect("written");
        assert_eq!(json["domains"][0]["state"], "unknown");
        let schema = schemars::schema_for!(DomainsParams).to_value().to_string();
        assert!(schema.contains("last_seen") && !schema.contains("unknown"), "{schema}");
    }

    #[test]
    fn the_most_is_as_the_schema_has_it() {
        assert_eq!(DOMAINS_MAX, 10_000);
    }
}
