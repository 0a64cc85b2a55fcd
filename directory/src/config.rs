//! Configuration of a directory: the `[directory]` section of the configuration file.
//!
//! Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction.
//! Not here: the listening address and the state folder (command line flags and the composing program).

use crate::admission::{self, List};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::DomainName;

/// Default interval between saves of the table. Live records lost in a crash are stated again within
/// [`crate::registry::RENEWAL_INTERVAL`], so the interval only bounds the loss of last-seen records.
pub const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);

/// Bounds of the interval in seconds: at most one write per second, at least one per day.
pub const SNAPSHOT_SECS_ALLOWED: std::ops::RangeInclusive<f64> = 1.0..=86_400.0;

/// Default disk space of the index of jobs, in MiB: some four million jobs.
const JOBS_BUDGET_MIB_DEFAULT: u64 = 1024;
/// Allowed disk space of the index of jobs, in MiB.
pub const JOBS_BUDGET_MIB_ALLOWED: std::ops::RangeInclusive<u64> = 16..=1 << 20;
/// Default number of days that the index of jobs has: ten years.
const JOBS_DAYS_DEFAULT: u64 = 3653;
/// Allowed number of days.
pub const JOBS_DAYS_ALLOWED: std::ops::RangeInclusive<u64> = 1..=36_525;

/// The section as it is in the file, unchecked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    pub snapshot_secs: Option<f64>,
    pub domains_max: Option<usize>,
    /// Index of the ended jobs of all domains.
    pub jobs: Option<RawJobsConfig>,
    /// Domains whose signed statements are accepted, each with its root key.
    pub domains: Option<BTreeMap<String, String>>,
}

/// `[directory.jobs]` as it is in the file, unchecked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawJobsConfig {
    /// Whether the directory has an index of jobs [default: true].
    pub on: Option<bool>,
    /// Disk space, in MiB.
    pub budget_mib: Option<u64>,
    /// Number of days after which jobs are deleted.
    pub days: Option<u64>,
}

/// Checked configuration of the index of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobsConfig {
    pub bytes: u64,
    pub age: Duration,
}

impl Default for JobsConfig {
    fn default() -> JobsConfig {
        JobsConfig {
            bytes: JOBS_BUDGET_MIB_DEFAULT << 20,
            age: Duration::from_secs(JOBS_DAYS_DEFAULT * 86_400),
        }
    }
}

/// Checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub snapshot_interval: Duration,
    pub domains_max: usize,
    /// The index of jobs; `None` if there is none.
    pub jobs: Option<JobsConfig>,
    pub domains: List,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            snapshot_interval: SNAPSHOT_INTERVAL,
            domains_max: crate::registry::DOMAINS_MAX,
            jobs: Some(JobsConfig::default()),
            domains: List::default(),
        }
    }
}

/// Invalid value. [`Error::way`] is its path in the section, so that the line can be shown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `snapshot_secs` is outside [`SNAPSHOT_SECS_ALLOWED`].
    #[error("{found} seconds between snapshots; expected 1 to 86400")]
    SnapshotSecs {
        /// The value in the file.
        found: f64,
    },
    /// `domains_max` is outside 1 to [`crate::registry::DOMAINS_MAX`].
    #[error("{found} domains at most; expected 1 to {}", crate::registry::DOMAINS_MAX)]
    DomainsMax {
        /// The value in the file.
        found: usize,
    },
    /// `jobs.budget_mib` is outside [`JOBS_BUDGET_MIB_ALLOWED`].
    #[error("{found} MiB for the index of jobs; expected 16 to 1048576")]
    JobsBudgetMib {
        /// The value in the file.
        found: u64,
    },
    /// `jobs.days` is outside [`JOBS_DAYS_ALLOWED`].
    #[error("{found} days of jobs; expected 1 to 36525")]
    JobsDays {
        /// The value in the file.
        found: u64,
    },
    /// A domain name in `domains` is invalid.
    #[error("{error}")]
    Domain {
        /// The name as it is in the file.
        domain: String,
        error: wire::id::Error,
    },
    /// A root key in `domains` is invalid.
    #[error("root of {domain}: {error}")]
    Root {
        /// Domain with the invalid root key.
        domain: String,
        error: wire::id::NoPeerKey,
    },
    /// Two domains have the same root key.
    #[error("{domain} has the root key of {other}; expected one of its own: is one of them pasted twice?")]
    SameRoot {
        /// The later of the two domains.
        domain: String,
        /// The earlier of the two domains.
        other: DomainName,
    },
    /// `domains` has too many entries.
    #[error(transparent)]
    Domains(admission::Error),
}

impl Error {
    /// Path to the value in the section.
    #[must_use]
    pub fn way(&self) -> Vec<&str> {
        match self {
            Error::SnapshotSecs { .. } => vec!["snapshot_secs"],
            Error::DomainsMax { .. } => vec!["domains_max"],
            Error::JobsBudgetMib { .. } => vec!["jobs", "budget_mib"],
            Error::JobsDays { .. } => vec!["jobs", "days"],
            Error::Domain { domain, .. } | Error::Root { domain, .. } | Error::SameRoot { domain, .. } => {
                vec!["domains", domain]
            }
            Error::Domains(_) => vec!["domains"],
        }
    }
}

impl Config {
    /// Check a section.
    ///
    /// # Errors
    /// All invalid values.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<Error>> {
        let (mut config, mut errors) = (Config::default(), Vec::new());
        match raw.snapshot_secs {
            Some(found) if !SNAPSHOT_SECS_ALLOWED.contains(&found) => {
                errors.push(Error::SnapshotSecs { found });
            }
            Some(secs) => config.snapshot_interval = Duration::from_secs_f64(secs),
            None => {}
        }
        match raw.domains_max {
            Some(found) if found == 0 || found > crate::registry::DOMAINS_MAX => {
                errors.push(Error::DomainsMax { found });
            }
            Some(most) => config.domains_max = most,
            None => {}
        }
        config.jobs = jobs(raw.jobs.unwrap_or_default(), &mut errors);
        for (domain, root) in raw.domains.into_iter().flatten() {
            errors.extend(admit(&mut config.domains, domain, &root).err());
        }
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }
}

fn jobs(raw: RawJobsConfig, errors: &mut Vec<Error>) -> Option<JobsConfig> {
    let mib = raw.budget_mib.unwrap_or(JOBS_BUDGET_MIB_DEFAULT);
    if !JOBS_BUDGET_MIB_ALLOWED.contains(&mib) {
        errors.push(Error::JobsBudgetMib { found: mib });
    }
    let days = raw.days.unwrap_or(JOBS_DAYS_DEFAULT);
    if !JOBS_DAYS_ALLOWED.contains(&days) {
        errors.push(Error::JobsDays { found: days });
    }
    let config = || JobsConfig {
        bytes: mib.saturating_mul(1 << 20),
        age: Duration::from_secs(days.saturating_mul(86_400)),
    };
    raw.on.unwrap_or(true).then(config)
}

fn admit(list: &mut List, domain: String, root: &str) -> Result<(), Error> {
    let name = match DomainName::try_from(domain.as_str()) {
        Ok(name) => name,
        Err(error) => return Err(Error::Domain { domain, error }),
    };
    let root = match root.parse() {
        Ok(root) => root,
        Err(error) => return Err(Error::Root { domain, error }),
    };
    if let Some((other, _)) = list.iter().find(|(_, listed)| *listed == root) {
        return Err(Error::SameRoot { domain, other: other.clone() });
    }
    list.add(name, root).map(drop).map_err(Error::Domains)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn check(text: &str, expected: Result<Config, &str>) {
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), text).expect("well formed");
        let ways = |errors: Vec<Error>| {
            let ways: Vec<String> = errors.iter().map(|error| error.way().join(".")).collect();
            ways.join(" ")
        };
        assert_eq!(Config::new(raw).map_err(ways), expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn two_domains_of_one_root_are_both_named() {
        let root = wire::id::PeerKey([7; 32]).to_string();
        let domains = ["UT-ICL", "CERN"].map(|name| (name.to_owned(), root.clone()));
        let raw = RawConfig { domains: Some(BTreeMap::from(domains)), ..RawConfig::default() };
        let mistakes: Vec<String> =
            Config::new(raw).expect_err("refused").iter().map(ToString::to_string).collect();
        assert_eq!(
            mistakes,
            ["UT-ICL has the root key of CERN; expected one of its own: is one of them pasted twice?"]
        );
    }

    #[test]
    fn the_section_is_checked() {
        check("", Ok(Config::default()));
        let config =
            Config { snapshot_interval: Duration::from_millis(2500), domains_max: 7, ..Config::default() };
        check("snapshot_secs = 2.5\ndomains_max = 7", Ok(config));
        for bad in ["snapshot_secs = 0", "snapshot_secs = nan", "snapshot_secs = 1e9", "snapshot_secs = -1"] {
            check(bad, Err("snapshot_secs"));
        }
        let root = wire::id::PeerKey([7; 32]);
        let mut config = Config::default();
        config.domains.add(DomainName::try_from("UT-ICL").expect("a name"), root).expect("one");
        check(&format!("domains = {{ UT-ICL = \"{root}\" }}"), Ok(config));
        check("domains = { UT-ICL = \"12D3\" }", Err("domains.UT-ICL"));
        check(&format!("domains = {{ \"a b\" = \"{root}\" }}"), Err("domains.a b"));
        check(&format!("domains = {{ UT-ICL = \"{root}\", CERN = \"{root}\" }}"), Err("domains.UT-ICL"));
        let jobs = |bytes, days: u64| Some(JobsConfig { bytes, age: Duration::from_secs(days * 86_400) });
        let config = |jobs| Config { jobs, ..Config::default() };
        check("jobs = { budget_mib = 16, days = 30 }", Ok(config(jobs(16 << 20, 30))));
        check("jobs = { on = false }", Ok(config(None)));
        check("jobs = { budget_mib = 1, days = 0 }", Err("jobs.budget_mib jobs.days"));
        check("domains_max = 0", Err("domains_max"));
        check("domains_max = 100001", Err("domains_max"));
        check(
            "snapshot_secs = 0\ndomains_max = 0\ndomains = { A = \"1\", B = \"2\" }",
            Err("snapshot_secs domains_max domains.A domains.B"),
        );
    }
}
