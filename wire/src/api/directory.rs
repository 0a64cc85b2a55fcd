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
/// The port of `node_exporter`, which a host that is monitored with Prometheus has.
const PORT_DEFAULT: u16 = 9100;

const RENAMED: &[Renamed] = &[("age_secs", "age"), ("lease_remaining_secs", "lease_remaining")];

/// Where the representative of a domain answers.
///
/// A representative states its record every 5 seconds and it holds for 15; after that the domain is still answered, as last_seen with
/// its age. Every sensor of a grid answers this, from memory when no directory does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    /// The domain's name, such as UT-ICL.
    pub domain: String,
}

impl Request for ResolveParams {
    const METHOD: &'static str = "directory.resolve";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = Domain;
}

/// Every domain that the directory knows, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DomainsParams {
    /// Only domains in this state.
    pub state: Option<DomainState>,
    /// Only domains whose names come after this one.
    pub after: Option<String>,
    /// At most so many.
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

/// Domains of a grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domains {
    /// Those that fit, by name.
    pub domains: Vec<Domain>,
    /// Whether there are more.
    pub more: bool,
}

/// A domain, as its representative states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Domain {
    /// The domain's name.
    pub domain: String,
    /// The host of its representative.
    pub host: String,
    /// The port at which that answers queries.
    pub port: u16,
    /// What it is: representative, or member.
    #[serde(rename = "type")]
    pub sensor_type: String,
    /// Where it answers queries, as http://HOST:PORT, the best first.
    pub addresses: Vec<String>,
    /// The term in which it was elected; of two records the one with the higher term counts.
    pub term: u64,
    /// The number of the record in its term.
    pub sequence: u64,
    /// Whether its lease holds.
    pub state: DomainState,
    /// How long ago it was stated.
    pub age_secs: f64,
    /// How long its lease still holds.
    pub lease_remaining_secs: f64,
    /// Whether it is known from before a restart of the directory, and was not heard of since.
    pub restored: bool,
    /// The key of the domain, of one in the overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The key of the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Where the overlay reaches it, as HOST:PORT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<Vec<String>>,
    /// Whether it answers for all hosts of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// The hosts of the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_total: Option<u32>,
    /// Of a part of the domain: the hosts for which it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Live representatives with lower terms that answer for hosts which this one lacks: each with the fields of this structure.
    #[schemars(schema_with = "structures")]
    pub partial: Vec<Domain>,
}

/// A list of structures. A type within itself has no schema in place.
fn structures(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// Whether the lease of a domain's record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DomainState {
    /// It does.
    Live,
    /// It is over: this is the last that is known.
    LastSeen,
    /// A state that a later version has.
    #[default]
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl DomainState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DomainState::Live => "live",
            DomainState::LastSeen => "last_seen",
            DomainState::Unknown => "unknown",
        }
    }
}

/// For which hosts of a domain a representative answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// For all.
    #[default]
    Whole,
    /// For those that it names.
    Part,
    /// A word that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Every host, as service discovery of Prometheus takes it.
///
/// Also GET /sd/prometheus, which http_sd_configs of Prometheus can be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetsParams {
    /// Only hosts of this domain.
    pub domain: Option<String>,
    /// The port of each target.
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
    /// HOST:PORT.
    pub targets: Vec<String>,
    /// What is known of the host; names begin with __meta_visperf_.
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
