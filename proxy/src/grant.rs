//! Grant of an account: the domains, hosts and kinds of methods that it may see.
//!
//! | class    | methods                                                                     | needs    |
//! | -------- | --------------------------------------------------------------------------- | -------- |
//! | figures  | methods of `sensor.*` and `domain.*` that show only samples, hosts, processes | viewer   |
//! | logs     | those that show what logs say too: events, calls, recordings, the summary   | viewer   |
//! | grid     | `directory.*`                                                               | viewer   |
//! | proxy    | `daemon.*` of the proxy itself                                              | operator |
//! | steering | whatever changes something, and whatever is not known here                  | operator |
//!
//! Pure. Rules: every call is checked, including each call of a multicall, and refused unless it is granted.
//! A method is in class figures or logs only if it is listed here, so a new method is not granted by default.
//! An account for some domains learns of no others. An account that logged in by MD5 has at most the rights
//! of a viewer.
//! Not here: authentication (`login`).

use rpc::dispatch::permissions::CallTarget;
use std::collections::BTreeSet;
use std::fmt;
use wire::id::{DomainName, HostName};

/// Most names in one list of an account.
pub const NAMES_MAX: usize = 64;

/// Methods of class figures.
const FIGURES: [&str; 14] = [
    "sensor.history",
    "sensor.metrics",
    "sensor.processes",
    "sensor.past_processes",
    "sensor.process_history",
    "sensor.channels",
    "sensor.subscriptions",
    "sensor.subscribe",
    "sensor.alter",
    "sensor.unsubscribe",
    "sensor.take",
    "domain.hosts",
    "domain.metrics",
    "domain.history",
];

/// Values of the parameter `kind` for which a method of class figures stays in it; with any other kind the
/// call is of class logs.
const KINDS_OF_FIGURES: [&str; 2] = ["process", "host"];

/// Methods of class logs. Recordings contain events as well as samples; the summary names users and their
/// calls; the error of a module may contain data that it received.
const LOGS: [&str; 19] = [
    "sensor.events",
    "sensor.calls",
    "sensor.files",
    "sensor.filters",
    "sensor.call_processes",
    "sensor.job_series",
    "sensor.archive",
    "sensor.series_copy",
    "sensor.recordings",
    "sensor.recording",
    "sensor.recording_file",
    "sensor.modules",
    "domain.events",
    "domain.calls",
    "domain.summary",
    "jobs.get",
    "jobs.index",
    "jobs.report",
    "jobs.search",
];

/// The method that knows the hosts of a domain.
const TARGETS: &str = "directory.targets";

/// Class of a method: what kind of data it reads, or that it changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Reads samples, and no data from logs.
    Figures,
    /// Reads data from logs.
    Logs,
    /// Reads the list of domains.
    Grid,
    /// Reads the state of the proxy.
    Proxy,
    /// Changes something.
    Steering,
}

/// Highest rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Read only.
    Viewer,
    /// Read, including the state of the proxy, and change.
    Operator,
}

/// All items, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen<T> {
    All,
    These(BTreeSet<T>),
}

/// What an account may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Granted domains.
    pub domains: Chosen<DomainName>,
    /// Granted hosts of these domains; a query about no single host needs all.
    pub hosts: Chosen<HostName>,
    /// Granted classes of methods.
    pub classes: BTreeSet<Class>,
}

/// Why a call is refused. A call that is not granted and one for something that does not exist get the same
/// answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The method is of a class that is not granted.
    #[error(
        "this account may not call {method}, which is of class {class}; its operator grants it with --calls"
    )]
    Class {
        method: String,
        /// Class of the method.
        class: Class,
    },
    /// The method needs higher rights.
    #[error("{method} needs the rights of an operator, and this login has those of a viewer")]
    Rights {
        /// The refused method.
        method: String,
    },
    /// The domain is not granted, or none is given where one is needed.
    #[error("this account may not see that domain; its operator grants it with --domain")]
    Domain,
    /// No domain is given, and not all domains are granted.
    #[error(
        "this account may see single domains alone; name one of them as the parameter domain, of directory.resolve or \
         directory.targets"
    )]
    Unnamed,
    /// The host is not granted, or none is given where one is needed.
    #[error(
        "this account may see single hosts alone; name one of them as /d/DOMAIN/HOST or as the parameter host"
    )]
    Host,
}

impl Class {
    pub const ALL: [Class; 5] = [Class::Figures, Class::Logs, Class::Grid, Class::Proxy, Class::Steering];

    /// Default classes of an account.
    pub const USUAL: [Class; 3] = [Class::Figures, Class::Logs, Class::Grid];

    /// Keyword of the class in account files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Class::Figures => "figures",
            Class::Logs => "logs",
            Class::Grid => "grid",
            Class::Proxy => "proxy",
            Class::Steering => "steering",
        }
    }

    /// Class of a method.
    #[must_use]
    pub fn of(method: &str, is_reading: bool) -> Class {
        let (part, name) = method.split_once('.').unwrap_or((method, ""));
        match (part, name) {
            _ if !is_reading => Class::Steering,
            // It reads jobs of logs, of one domain or all.
            ("directory", "jobs") => Class::Logs,
            ("directory", _) => Class::Grid,
            ("daemon", _) => Class::Proxy,
            _ if FIGURES.contains(&method) => Class::Figures,
            _ if LOGS.contains(&method) => Class::Logs,
            _ => Class::Steering,
        }
    }

    /// Class of a call: subscribing to events or calls reads data from logs.
    #[must_use]
    pub fn of_call(asked: CallTarget<'_>) -> Class {
        match (Class::of(asked.method, asked.is_reading), asked.kind) {
            (Class::Figures, Some(kind)) if !KINDS_OF_FIGURES.contains(&kind) => Class::Logs,
            (class, _) => class,
        }
    }

    const fn needs(self) -> Rights {
        match self {
            Class::Figures | Class::Logs | Class::Grid => Rights::Viewer,
            Class::Proxy | Class::Steering => Rights::Operator,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Rights {
    /// Keyword in account files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Rights::Viewer => "viewer",
            Rights::Operator => "operator",
        }
    }
}

impl<T: Ord> Chosen<T> {
    #[must_use]
    pub fn holds(&self, one: &T) -> bool {
        match self {
            Chosen::All => true,
            Chosen::These(these) => these.contains(one),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Chosen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chosen::All => f.write_str("*"),
            Chosen::These(these) => {
                let words: Vec<String> = these.iter().map(T::to_string).collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

impl Grant {
    /// Check whether a client with these rights may make the call.
    ///
    /// # Errors
    /// Why the call is refused.
    pub fn check(&self, rights: Rights, asked: CallTarget<'_>) -> Result<(), Refused> {
        let class = Class::of_call(asked);
        let method = || asked.method.to_owned();
        if !self.classes.contains(&class) {
            return Err(Refused::Class { method: method(), class });
        }
        if rights < class.needs() {
            return Err(Refused::Rights { method: method() });
        }
        match class {
            Class::Proxy => Ok(()),
            Class::Grid if self.domains == Chosen::All && self.hosts == Chosen::All => Ok(()),
            Class::Grid if self.domains != Chosen::All && asked.domain.is_none() => Err(Refused::Unnamed),
            Class::Grid if asked.method != TARGETS => self.check_domain(asked),
            Class::Grid | Class::Figures | Class::Logs | Class::Steering => self.check_place(asked),
        }
    }

    fn check_domain(&self, asked: CallTarget<'_>) -> Result<(), Refused> {
        let domain = asked.domain.and_then(|name| DomainName::try_from(name).ok());
        match (&self.domains, domain) {
            (Chosen::All, _) => Ok(()),
            (chosen, Some(domain)) if chosen.holds(&domain) => Ok(()),
            _ => Err(Refused::Domain),
        }
    }

    fn check_place(&self, asked: CallTarget<'_>) -> Result<(), Refused> {
        self.check_domain(asked)?;
        let host = asked.host.and_then(|name| HostName::try_from(name).ok());
        match (&self.hosts, host) {
            (Chosen::All, _) => Ok(()),
            (chosen, Some(host)) if chosen.holds(&host) => Ok(()),
            _ => Err(Refused::Host),
        }
    }
}

/// A call for the tests: only one that records changes something.
#[cfg(test)]
pub(crate) fn asked<'a>(method: &'a str, domain: Option<&'a str>, host: Option<&'a str>) -> CallTarget<'a> {
    CallTarget { method, is_reading: !method.ends_with("record"), domain, host, kind: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(hosts: &[&str]) -> Grant {
        let names = |names: &[&str]| names.iter().map(|name| HostName::try_from(*name).unwrap()).collect();
        Grant {
            domains: Chosen::These([DomainName::try_from("UT-ICL").unwrap()].into()),
            hosts: if hosts.is_empty() { Chosen::All } else { Chosen::These(names(hosts)) },
            classes: Class::ALL.into(),
        }
    }

    #[test]
    fn each_method_has_a_class_and_what_is_unknown_the_strictest() {
        let check = |method, is_reading, class| assert_eq!(Class::of(method, is_reading), class, "{method}");
        check("sensor.events", true, Class::Logs);
        check("domain.calls", true, Class::Logs);
        check("sensor.metrics", true, Class::Figures);
        check("domain.hosts", true, Class::Figures);
        check("sensor.record", false, Class::Steering);
        check("domain.summary", true, Class::Logs);
        check("sensor.recording_file", true, Class::Logs);
        check("sensor.control", true, Class::Steering);
        check("sensor.of_tomorrow", true, Class::Steering);
        check("directory.resolve", true, Class::Grid);
        check("directory.jobs", true, Class::Logs);
        check("daemon.info", true, Class::Proxy);
        check("process.signal", true, Class::Steering);
        check("nothing", true, Class::Steering);
    }

    #[test]
    fn an_account_for_some_domains_sees_no_others() {
        let (limited, hosts) = (grant(&[]), grant(&["wn01"]));
        let all = Grant { domains: Chosen::All, ..grant(&[]) };
        let check = |grant: &Grant, method, domain, expected: Option<Refused>| {
            let found = grant.check(Rights::Viewer, asked(method, domain, None)).err();
            assert_eq!(found, expected, "{method} {domain:?}");
        };
        for method in ["directory.domains", "directory.targets", "directory.resolve", "directory.of_tomorrow"]
        {
            check(&limited, method, None, Some(Refused::Unnamed));
            check(&limited, method, Some("CERN"), Some(Refused::Domain));
            check(&limited, method, Some("UT-ICL"), None);
            check(&all, method, None, None);
            check(&all, method, Some("CERN"), None);
        }
        check(&hosts, "directory.resolve", Some("UT-ICL"), None);
        check(&hosts, "directory.targets", Some("UT-ICL"), Some(Refused::Host));
        let hosts = Grant { domains: Chosen::All, ..hosts };
        check(&hosts, "directory.domains", None, None);
        check(&hosts, "directory.resolve", Some("CERN"), None);
        check(&hosts, "directory.targets", None, Some(Refused::Host));
        check(&hosts, "directory.targets", Some("UT-ICL"), Some(Refused::Host));
    }

    #[test]
    fn domain_host_class_and_rights_are_each_needed() {
        let (all, some) = (grant(&[]), grant(&["wn01"]));
        let check = |grant: &Grant, rights, asked: CallTarget<'_>, expected: Option<Refused>| {
            assert_eq!(grant.check(rights, asked).err(), expected, "{asked:?}");
        };
        let viewer = Rights::Viewer;
        check(&all, viewer, asked("sensor.events", Some("UT-ICL"), None), None);
        check(&all, viewer, asked("sensor.events", Some("CERN"), None), Some(Refused::Domain));
        check(&all, viewer, asked("sensor.events", None, None), Some(Refused::Domain));
        check(&all, viewer, asked("sensor.events", Some("no domain!"), None), Some(Refused::Domain));
        check(&some, viewer, asked("sensor.events", Some("UT-ICL"), Some("wn01")), None);
        check(&some, viewer, asked("sensor.events", Some("UT-ICL"), Some("wn02")), Some(Refused::Host));
        check(&some, viewer, asked("domain.events", Some("UT-ICL"), None), Some(Refused::Host));
        let steering = asked("sensor.record", Some("UT-ICL"), None);
        check(&all, viewer, steering, Some(Refused::Rights { method: "sensor.record".into() }));
        check(&all, Rights::Operator, steering, None);
        check(
            &all,
            viewer,
            asked("daemon.info", None, None),
            Some(Refused::Rights { method: "daemon.info".into() }),
        );
        let mut figures = grant(&[]);
        figures.classes = [Class::Figures].into();
        for (kind, may) in
            [("process", true), ("host", true), ("event", false), ("call", false), ("other", false)]
        {
            let asked = CallTarget { kind: Some(kind), ..asked("sensor.subscribe", Some("UT-ICL"), None) };
            assert_eq!(figures.check(viewer, asked).is_ok(), may, "{kind}");
        }
        let refused = Refused::Class { method: "sensor.events".into(), class: Class::Logs };
        check(&figures, Rights::Operator, asked("sensor.events", Some("UT-ICL"), None), Some(refused));
    }
}
