//! Builder of a [`Grid`] from facts.
//!
//! Pure. Rule: the order of the facts does not matter, except that the last of two reports on one host is
//! stored. Beyond its limit a table accepts no more and counts what it refused; of calls the oldest are
//! dropped, which only `build` can decide.

use super::call::Call;
use super::place::{Domain, DomainId, HostState, Part, Place, PlaceId, Report};
use super::refused::{Reason, Refused};
use super::text::{host_key, natural_key, shown};
use super::{Failure, FailureOf, Grid};
use std::collections::{BTreeMap, HashMap, HashSet};
use wire::event::Outcome;
use wire::time::Time;

/// Domains stored: as many as a directory is made for.
pub const DOMAINS_MAX: usize = 1_000;
/// Hosts stored, over all domains: twice what a map of 10,000 needs.
pub const HOSTS_MAX: usize = 20_000;
/// Clients with a place of their own, over all domains; a map with more would be unreadable.
pub const CLIENTS_MAX: usize = 2_000;
/// Calls stored, about 40 MB: what a busy cluster does in a day.
pub const CALLS_MAX: usize = 50_000;
/// Timestamps further in the future than this are refused: a day, for logs of other time zones.
pub const AHEAD: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Hosts shown of one call.
pub const HOSTS_OF_CALL_MAX: usize = 256;
/// State changes stored of one host.
pub const CHANGES_MAX: usize = 256;
/// 1980-01-01: earlier timestamps are refused.
pub const EARLIEST: Time = Time::from_micros(315_532_800_000_000);
/// Name of the place that clients beyond [`CLIENTS_MAX`] share, and of the place of unnamed clients.
const OTHER_CLIENTS: &str = "others";
const UNNAMED_CLIENT: &str = "unknown";

/// Key of a place: domain, part, and the key of its name.
type Key = (u32, Part, String);

/// A grid under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    latest: Time,
    domains: Vec<String>,
    domain_ids: HashMap<String, u32>,
    places: Vec<(Key, Place)>,
    place_ids: HashMap<Key, PlaceId>,
    clients: usize,
    hosts: usize,
    calls: BTreeMap<(u32, String), Call>,
    refused: Refused,
}

impl Builder {
    /// An empty builder; times after `latest` will be refused.
    #[must_use]
    pub fn new(latest: Time) -> Builder {
        Builder {
            latest,
            domains: Vec::new(),
            domain_ids: HashMap::new(),
            places: Vec::new(),
            place_ids: HashMap::new(),
            clients: 0,
            hosts: 0,
            calls: BTreeMap::new(),
            refused: Refused::default(),
        }
    }

    /// The domain of this name, added if needed; `None` beyond [`DOMAINS_MAX`].
    pub fn domain(&mut self, name: &str) -> Option<DomainId> {
        let name = self.shown(name);
        if let Some(&id) = self.domain_ids.get(&name) {
            return Some(DomainId(id));
        }
        if self.domains.len() >= DOMAINS_MAX {
            self.refused.add(Reason::Domains);
            return None;
        }
        let id = u32::try_from(self.domains.len()).ok()?;
        self.domain_ids.insert(name.clone(), id);
        self.domains.push(name);
        Some(DomainId(id))
    }

    /// Add a host that its domain reports.
    pub fn host(&mut self, domain: DomainId, name: &str, state: HostState, report: Report) {
        let Some(id) = self.place(domain, Part::Server, name) else { return };
        let report = self.sound(report);
        let place = &mut self.places[id.at()].1;
        place.state = state;
        place.report = Some(report);
    }

    /// Add a host known only by name.
    pub fn named(&mut self, domain: DomainId, name: &str) {
        if !name.is_empty() {
            self.place(domain, Part::Server, name);
        }
    }

    /// Add a change of a host's state from a log.
    pub fn host_change(&mut self, domain: DomainId, name: &str, time: Time, state: HostState) {
        if name.is_empty() {
            return;
        }
        let Some(time) = self.time(Some(time)) else { return };
        let Some(id) = self.place(domain, Part::Server, name) else { return };
        let changes = &mut self.places[id.at()].1.changes;
        if changes.len() >= CHANGES_MAX {
            self.refused.add(Reason::Changes);
            return;
        }
        changes.push((time, state));
    }

    /// Add a call; a later fact about the same call replaces it.
    pub fn call(&mut self, domain: DomainId, reported: &wire::call::Call) {
        self.call_of(domain, reported, &client_name(&reported.user, &reported.from));
    }

    /// Add a call of the client of this name.
    pub fn call_of(&mut self, domain: DomainId, reported: &wire::call::Call, client: &str) {
        let times =
            [reported.submitted, reported.offered, reported.selected, reported.started, reported.ended];
        let [submitted, offered, selected, started, ended] = times.map(|time| self.time(time));
        let chosen = reported.submitted.or(reported.offered).or(reported.selected).is_some();
        let scope = reported.id.split([':', '@']).next().unwrap_or_default();
        let mut call = Call {
            id: self.shown(&reported.id),
            domain,
            job: self.shown(&reported.job),
            name: self.shown(&reported.name),
            user: self.shown(&reported.user),
            reason: self.shown(&why(reported)),
            client: match self.client(domain, client) {
                Some(client) => client,
                None => return,
            },
            scheduler: if chosen { self.place(domain, Part::Scheduler, scope) } else { None },
            hosts: self.servers(domain, &reported.hosts),
            offers: self.servers(domain, &reported.offers),
            submitted,
            offered,
            assigned: selected.or(started),
            started,
            ended,
            state: reported.state,
            outcome: reported.outcome,
            tries: reported.tries,
            events: reported.events,
        };
        call.order_times();
        self.calls.insert((domain.0, call.id.clone()), call);
    }

    /// Build the grid, with everything sorted and renumbered.
    #[must_use]
    pub fn build(mut self) -> Grid {
        let (domains, places, renumbered) = self.sorted_places();
        let mut calls: Vec<Call> = std::mem::take(&mut self.calls).into_values().collect();
        for call in &mut calls {
            let of = |id: &mut PlaceId| *id = renumbered.places[id.at()];
            of(&mut call.client);
            call.scheduler.as_mut().into_iter().for_each(of);
            call.hosts.iter_mut().chain(&mut call.offers).for_each(of);
            call.domain = renumbered.domains[call.domain.at()];
        }
        calls.sort_by(|one, other| one.last().cmp(&other.last()).then_with(|| one.id.cmp(&other.id)));
        let beyond = calls.len().saturating_sub(CALLS_MAX);
        self.refused.add_many(Reason::Calls, beyond as u64);
        calls.drain(..beyond);
        calls.sort_by(|one, other| {
            let key = |call: &Call| (call.first(), call.domain);
            key(one).cmp(&key(other)).then_with(|| one.id.cmp(&other.id))
        });
        let failures = failures(&calls, &places);
        Grid { domains, places, calls, failures, refused: self.refused, unloaded: Vec::new() }
    }

    fn shown(&mut self, text: &str) -> String {
        let shown = shown(text);
        if shown.changed {
            self.refused.add(Reason::Names);
        }
        shown.text
    }

    fn time(&mut self, time: Option<Time>) -> Option<Time> {
        let fits = time.filter(|&time| time >= EARLIEST && time <= self.latest);
        if time.is_some() && fits.is_none() {
            self.refused.add(Reason::Times);
        }
        fits
    }

    fn sound(&mut self, mut report: Report) -> Report {
        let figures = [
            &mut report.cpu_used,
            &mut report.memory_used,
            &mut report.load1,
            &mut report.cpus,
            &mut report.memory_bytes,
            &mut report.age_secs,
        ];
        for figure in figures {
            if figure.is_some_and(|value| !value.is_finite() || value < 0.0) {
                *figure = None;
                self.refused.add(Reason::Figures);
            }
        }
        report.role = self.shown(&report.role);
        report.health.truncate(8);
        let health = std::mem::take(&mut report.health);
        report.health = health.iter().map(|text| self.shown(text)).collect();
        report
    }

    fn servers(&mut self, domain: DomainId, names: &[compact_str::CompactString]) -> Vec<PlaceId> {
        let beyond = names.len().saturating_sub(HOSTS_OF_CALL_MAX);
        self.refused.add_many(Reason::HostsOfCall, beyond as u64);
        let names = names.iter().take(HOSTS_OF_CALL_MAX).filter(|name| !name.is_empty());
        // A call may list a host twice: once per slot, or by its short and its full name.
        let mut seen = HashSet::new();
        let places = names.filter_map(|name| self.place(domain, Part::Server, name));
        places.filter(|place| seen.insert(*place)).collect()
    }

    fn client(&mut self, domain: DomainId, name: &str) -> Option<PlaceId> {
        match name {
            "" => self.place(domain, Part::Client, UNNAMED_CLIENT),
            // From a saved grid: it is not counted as a client.
            OTHER_CLIENTS => Some(self.other_clients(domain)),
            name => self.place(domain, Part::Client, name),
        }
    }

    /// The place of this name in the domain, added if there is room.
    fn place(&mut self, domain: DomainId, part: Part, name: &str) -> Option<PlaceId> {
        let name_key = if part == Part::Server { host_key(name) } else { name.to_owned() };
        let key = (domain.0, part, shown(&name_key).text);
        if let Some(&id) = self.place_ids.get(&key) {
            let text = shown(name).text;
            let known = &mut self.places[id.at()].1.name;
            // The longest name wins, so that it does not depend on which came first.
            if (text.len(), &*known) > (known.len(), &text) {
                *known = text;
            }
            return Some(id);
        }
        let (count, most) = match part {
            Part::Server => (&mut self.hosts, HOSTS_MAX),
            Part::Client | Part::Scheduler => (&mut self.clients, CLIENTS_MAX),
        };
        if *count >= most {
            let reason = if part == Part::Server { Reason::Hosts } else { Reason::Clients };
            self.refused.add(reason);
            return (part == Part::Client).then(|| self.other_clients(domain));
        }
        *count += 1;
        let name = self.shown(name);
        Some(self.add(key, domain, part, name))
    }

    fn other_clients(&mut self, domain: DomainId) -> PlaceId {
        let key = (domain.0, Part::Client, OTHER_CLIENTS.to_owned());
        match self.place_ids.get(&key) {
            Some(&id) => id,
            None => self.add(key, domain, Part::Client, OTHER_CLIENTS.to_owned()),
        }
    }

    fn add(&mut self, key: Key, domain: DomainId, part: Part, name: String) -> PlaceId {
        // At most HOSTS_MAX and CLIENTS_MAX of them, and one more for each domain.
        let id = PlaceId(u32::try_from(self.places.len()).expect("places are bounded"));
        self.place_ids.insert(key.clone(), id);
        let place =
            Place { name, domain, part, state: HostState::Unknown, report: None, changes: Vec::new() };
        self.places.push((key, place));
        id
    }

    /// Places by domain, part and name, with their new numbers.
    fn sorted_places(&mut self) -> (Vec<Domain>, Vec<Place>, Renumbered) {
        let mut names: Vec<(String, u32)> = self.domains.iter().cloned().zip(0..).collect();
        names.sort_by_cached_key(|(name, _)| natural_key(name));
        let mut new_domains = vec![DomainId(0); names.len()];
        for (at, (_, former)) in (0..).zip(&names) {
            new_domains[*former as usize] = DomainId(at);
        }
        let mut order: Vec<(usize, (Key, Place))> =
            std::mem::take(&mut self.places).into_iter().enumerate().collect();
        order.sort_by_cached_key(|(_, ((domain, part, key), _))| {
            (new_domains[*domain as usize], *part, natural_key(key))
        });
        let mut domains: Vec<Domain> = names
            .into_iter()
            .map(|(name, _)| Domain { name, places: 0..0, clients: 0, schedulers: 0, servers: 0 })
            .collect();
        let mut new_places = vec![PlaceId(0); order.len()];
        let mut places = Vec::with_capacity(order.len());
        for (at, (former, (_, mut place))) in (0..).zip(order) {
            new_places[former] = PlaceId(at);
            place.domain = new_domains[place.domain.at()];
            place.changes.sort_unstable();
            place.changes.dedup_by_key(|change| change.1);
            count(&mut domains[place.domain.at()], place.part, at);
            places.push(place);
        }
        (domains, places, Renumbered { domains: new_domains, places: new_places })
    }
}

/// Display name of a client.
fn client_name(user: &str, from: &str) -> String {
    let is_number = !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit());
    let number = format!("uid {user}");
    let user = if is_number { number.as_str() } else { user };
    match (user, from) {
        ("", "") => UNNAMED_CLIENT.to_owned(),
        (user, "") => user.to_owned(),
        // The party already names its user, such as NetSolve's `leepro@anaka.cs.utk.edu`.
        ("", from) => from.to_owned(),
        (user, from) if from.starts_with(user) => from.to_owned(),
        (user, from) => format!("{user}@{from}"),
    }
}

/// New numbers, indexed by the old ones.
struct Renumbered {
    domains: Vec<DomainId>,
    places: Vec<PlaceId>,
}

fn count(domain: &mut Domain, part: Part, at: u32) {
    if domain.places.is_empty() {
        domain.places = at..at;
    }
    domain.places.end = at + 1;
    match part {
        Part::Client => domain.clients += 1,
        Part::Scheduler => domain.schedulers += 1,
        Part::Server => domain.servers += 1,
    }
}

fn failures(calls: &[Call], places: &[Place]) -> Vec<Failure> {
    let of_calls = (0..).zip(calls).filter(|(_, call)| call.has_failed());
    let of_calls =
        of_calls.filter_map(|(at, call)| Some(Failure { time: call.ended?, of: FailureOf::Call(at) }));
    let downs = (0..).zip(places).flat_map(|(at, place)| {
        let down = place.changes.iter().filter(|(_, state)| *state == HostState::Down);
        down.map(move |&(time, _)| Failure { time, of: FailureOf::Host(PlaceId(at)) })
    });
    let mut failures: Vec<Failure> = of_calls.chain(downs).collect();
    failures.sort_unstable();
    failures
}

/// Why a call waits or how it ended, in the middleware's own terms; after a failure with its exit code and
/// signal.
fn why(reported: &wire::call::Call) -> String {
    let is_bad = reported.outcome.is_some_and(|outcome| outcome != Outcome::Ok);
    let with =
        |what: &str, value: &str| if value.is_empty() { String::new() } else { format!("{what} {value}") };
    let ended = [with("code", &reported.code), with("signal", &reported.signal)];
    let ended = ended.into_iter().filter(|_| is_bad);
    let parts: Vec<String> =
        std::iter::once(reported.reason.to_string()).chain(ended).filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests;
