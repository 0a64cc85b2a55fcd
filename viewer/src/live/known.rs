//! What a daemon has told of the domains that are shown, and what of it is to be asked next.
//!
//! Rule: a domain that cannot be asked keeps no other from being shown; what was known of it stays, and why it cannot is
//! told. Not here: when is asked, and in which thread (`live`).

use super::answers::{self, Host};
use super::http::{Client, Error};
use super::{HISTORY, WHOLE_EVERY, named, rates};
use crate::feed::HostSeries;
use crate::flock::sweep::HostName;
use crate::grid::Grid;
use crate::grid::builder::{Builder, CALLS_MAX, DOMAINS_MAX};
use crate::grid::refused::Reason;
use compact_str::CompactString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::call::Call;
use wire::time::Time;

/// Calls asked for at once; the most that a daemon answers.
const CALLS_ASKED: u32 = 10_000;
/// So far before the newest known time calls are asked for again: logs of several hosts come late.
const OVERLAP: Duration = Duration::from_secs(30);
/// A host whose clock runs ahead by more than this is not believed.
const AHEAD: Duration = Duration::from_secs(86_400);
/// Domains whose events are waited for, each by a thread; of further ones calls are asked for each second.
const HEARD_MAX: usize = 32;
/// What a machine in no domain is called.
pub(crate) const THIS_MACHINE: &str = "this machine";

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    domains: Vec<OfDomain>,
    watched: Option<HostName>,
    series: HostSeries,
    rounds: u32,
    heard: Vec<Option<String>>,
    refused_domains: u64,
}

/// What is known of a domain.
#[derive(Debug, Default)]
struct OfDomain {
    /// The name by which it is asked for; none is the daemon's own.
    asked: Option<String>,
    name: String,
    hosts: Vec<Host>,
    hosts_left_out: u64,
    calls: BTreeMap<CompactString, Call>,
    newest: Option<Time>,
    trouble: Option<String>,
}

impl Known {
    /// Nothing yet of these domains; of the daemon's own where none is named.
    pub(super) fn new(domains: &[String]) -> Known {
        let mut known = Known::default();
        domains.iter().for_each(|domain| known.add(domain));
        if domains.is_empty() {
            known.domains.push(OfDomain::default());
        }
        known
    }

    /// Show this domain too.
    pub(super) fn add(&mut self, domain: &str) {
        let is_known = |known: &OfDomain| known.name == domain || known.asked.as_deref() == Some(domain);
        if self.domains.iter().any(is_known) {
            return;
        }
        if self.domains.len() >= DOMAINS_MAX {
            self.refused_domains += 1;
            return;
        }
        let name = domain.to_owned();
        self.domains.push(OfDomain { asked: Some(name.clone()), name, ..OfDomain::default() });
    }

    /// Show this domain no more.
    pub(super) fn drop_domain(&mut self, domain: &str) {
        self.domains.retain(|known| known.name != domain);
    }

    /// Show all domains that a directory knows.
    pub(super) fn take_domains(&mut self, client: &mut Client) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let answer = client.ask("directory.domains", &json!({ "after": after }))?;
            let names = answers::domains(&answer);
            self.domains.retain(|known| known.asked.is_some());
            names.iter().for_each(|name| self.add(name));
            match names.last() {
                Some(last) if answer["more"] == json!(true) && self.domains.len() < DOMAINS_MAX => {
                    after.clone_from(last);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Ask each domain for its hosts.
    pub(super) fn take_hosts(&mut self, client: &mut Client) -> Result<(), Error> {
        self.rounds = self.rounds.wrapping_add(1);
        for domain in &mut self.domains {
            let answer = domain.ask(client, "domain.hosts", json!({}))?;
            if let Some(answer) = answer {
                let (name, hosts, left_out) = answers::hosts(&answer);
                if domain.asked.is_none() {
                    domain.name = name;
                }
                (domain.hosts, domain.hosts_left_out) = (hosts, left_out);
            }
        }
        Ok(())
    }

    /// Ask each domain for its latest calls, or for all of them now and then; whether anything is new.
    pub(super) fn look(&mut self, client: &mut Client) -> Result<bool, Error> {
        let is_whole = self.rounds % WHOLE_EVERY == 1;
        let mut changed = false;
        for domain in &mut self.domains {
            changed |= domain.take_calls(client, is_whole)?;
        }
        Ok(changed)
    }

    /// The domains whose events nobody waits for yet; somebody will.
    pub(super) fn unheard(&mut self) -> Vec<Option<String>> {
        let asked = self.domains.iter().map(|domain| domain.asked.clone());
        let unheard: Vec<Option<String>> = asked
            .filter(|asked| !self.heard.contains(asked))
            .take(HEARD_MAX.saturating_sub(self.heard.len()))
            .collect();
        self.heard.extend(unheard.iter().cloned());
        unheard
    }

    /// Why domains cannot be asked.
    pub(super) fn troubles(&self) -> Vec<String> {
        self.domains.iter().filter_map(|domain| domain.trouble.clone()).collect()
    }

    /// Ask for everything again: the daemon may be another one.
    pub(super) fn begin_anew(&mut self) {
        self.rounds = 0;
    }

    /// Keep the figures of this host from now on.
    pub(super) fn watch(&mut self, host: HostName) {
        if self.watched.as_ref() != Some(&host) {
            self.watched = Some(host);
            self.series.clear();
        }
    }

    /// The figures of the host that is watched, where one is.
    pub(super) fn figures(&mut self, client: &mut Client) -> Result<Option<(HostName, HostSeries)>, Error> {
        let Some(host) = self.watched.clone() else { return Ok(None) };
        let newest = self.series.values().filter_map(|series| series.newest()).map(|(time, _)| time).max();
        // One sweep before the newest, from which its rate is.
        let since =
            newest.map_or_else(|| crate::clock::now().minus(HISTORY), |at| at.minus(Duration::from_secs(5)));
        let mut counters = Vec::new();
        for name in rates::ASKED {
            let mut params = named(&host);
            (params["name"], params["since"]) = ((*name).into(), since.secs_f64().into());
            params["history"] = true.into();
            match client.ask("domain.metrics", &params) {
                Ok(answer) => counters.extend(answers::metrics(&answer)),
                // The host is of a domain that cannot be asked: its graphs stand still, and their age is seen.
                Err(Error::Fault { .. }) => return Ok(Some((host, self.series.clone()))),
                Err(error) => return Err(error),
            }
        }
        for (name, samples) in rates::points(&counters) {
            let series = self.series.entry(name.to_owned()).or_default();
            samples.iter().for_each(|sample| series.push(sample.time, sample.value));
        }
        Ok(Some((host, self.series.clone())))
    }

    /// All of it as a grid.
    pub(super) fn grid(&self, now: Time) -> Grid {
        let mut builder = Builder::new(now.plus(AHEAD));
        for known in &self.domains {
            let name = if known.name.is_empty() { THIS_MACHINE } else { &known.name };
            let Some(domain) = builder.domain(name) else { continue };
            for host in &known.hosts {
                builder.host(domain, &host.name, host.state, host.report.clone());
            }
            known.calls.values().for_each(|call| builder.call(domain, call));
        }
        let mut grid = builder.build();
        grid.refused.add_many(Reason::Domains, self.refused_domains);
        let hosts_left_out = self.domains.iter().map(|domain| domain.hosts_left_out).sum();
        grid.refused.add_many(Reason::Hosts, hosts_left_out);
        grid
    }
}

impl OfDomain {
    /// Ask about this domain; nothing where it cannot be asked, which is kept as its trouble.
    fn ask(&mut self, client: &mut Client, method: &str, mut params: Value) -> Result<Option<Value>, Error> {
        if let Some(domain) = &self.asked {
            params["domain"] = domain.as_str().into();
        }
        match client.ask(method, &params) {
            Ok(answer) => {
                self.trouble = None;
                Ok(Some(answer))
            }
            Err(Error::Fault { message, .. }) if self.asked.is_some() => {
                self.trouble = Some(format!("{}: {message}", self.name));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take_calls(&mut self, client: &mut Client, is_whole: bool) -> Result<bool, Error> {
        let is_whole = is_whole || self.newest.is_none();
        let mut params = json!({ "limit": CALLS_ASKED, "order": "newest" });
        if let (Some(newest), false) = (self.newest, is_whole) {
            params["since"] = newest.minus(OVERLAP).secs_f64().into();
        }
        let Some(answer) = self.ask(client, "domain.calls", params)? else { return Ok(false) };
        let calls = answers::calls(&answer);
        if is_whole {
            self.calls.clear();
        }
        let latest = crate::clock::now().plus(AHEAD);
        let mut changed = is_whole;
        for call in calls {
            let times = [call.submitted, call.selected, call.started, call.ended];
            // One of the year 9999 is no reason to ask for nothing any more.
            let newest = times.into_iter().flatten().filter(|time| *time <= latest).max();
            self.newest = self.newest.max(newest);
            changed |= self.calls.get(&call.id) != Some(&call);
            self.calls.insert(call.id.clone(), call);
        }
        self.forget_oldest();
        Ok(changed)
    }

    /// Keep no more calls than a map takes.
    fn forget_oldest(&mut self) {
        let beyond = self.calls.len().saturating_sub(CALLS_MAX);
        if beyond == 0 {
            return;
        }
        let mut by_time: Vec<(Option<Time>, CompactString)> = self
            .calls
            .values()
            .map(|call| (call.ended.or(call.started).or(call.submitted), call.id.clone()))
            .collect();
        by_time.sort_unstable();
        for (_, id) in by_time.into_iter().take(beyond) {
            self.calls.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::place::{HostState, Report};
    use crate::invented;

    #[test]
    fn the_oldest_calls_are_forgotten() {
        let mut known = OfDomain::default();
        for number in 0..CALLS_MAX + 3 {
            let mut call = invented::call(&format!("s:{number:06}"), "u", &[]);
            call.ended = Some(invented::time_f(number as f64));
            known.calls.insert(call.id.clone(), call);
        }
        known.forget_oldest();
        assert_eq!(known.calls.len(), CALLS_MAX);
        assert!(!known.calls.contains_key("s:000002") && known.calls.contains_key("s:000003"));
    }

    #[test]
    fn hosts_and_calls_of_several_domains_become_one_grid() {
        let mut known = Known::new(&["demo".to_owned(), "other".to_owned(), "demo".to_owned()]);
        let call = invented::call("slurm:1", "ada", &["wn01"]);
        known.domains[0].calls.insert(call.id.clone(), call);
        let host = |name: &str| Host {
            name: name.into(),
            state: HostState::Live,
            is_reported: true,
            report: Report::default(),
        };
        known.domains[0].hosts = vec![host("wn01"), host("wn02")];
        let grid = known.grid(invented::latest());
        let names: Vec<&str> = grid.domains.iter().map(|domain| domain.name.as_str()).collect();
        assert_eq!((grid.hosts(), grid.calls.len(), names), (2, 1, vec!["demo", "other"]));
        known.drop_domain("demo");
        assert_eq!(known.grid(invented::latest()).domains.len(), 1);
        assert_eq!(known.unheard(), [Some("other".to_owned())]);
        assert!(known.unheard().is_empty());
    }
}
