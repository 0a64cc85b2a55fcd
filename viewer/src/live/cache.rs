//! Cached state of the domains that are shown, and the poll schedule: which question is asked next.
//!
//! Pure: times are given, `now` as the time since polling started. Rule: a domain that cannot be queried
//! hides no other; its last state stays, with its age and the reason of the failure. Not here: the threads
//! that ask (`asking`), the threads that wait for events (`event_listener`).

mod past;

use super::answers::Host;
use super::asking::{Answer, PollResult, Question};
use super::calls::Calls;
use super::event_listener::EventListener;
use super::figures::Figures;
use super::history::PastFigures;
use super::past_calls::PastCalls;
use super::poll_schedule::{Due, PollSchedule};
use super::sensors::Sensors;
use super::via::Where;
use crate::feed::{Status, Update};
use crate::grid::Grid;
use crate::grid::builder::{AHEAD, Builder, CALLS_MAX, DOMAINS_MAX};
use crate::grid::refused::Reason;
use client::Error;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::backoff::Backoff;
use wire::call::Call;
use wire::time::Time;

/// All newest calls of a domain are requested again after this many rounds, because ids become more complete
/// as more is known.
const WHOLE_EVERY: u32 = 60;
/// Interval of requests for the list of domains of a directory.
const DOMAINS_EVERY: Duration = Duration::from_secs(60);
/// Failing or slow domains that are queried at a time: each may block an asker for long, and the other askers
/// remain for the rest.
const TROUBLED_AT_A_TIME: usize = 3;
/// Questions to single hosts in flight at a time: some askers are left for domains.
const ASIDE_AT_A_TIME: usize = super::asking::ASKERS - TROUBLED_AT_A_TIME;
/// Longest delay between two tries while the daemon cannot be reached.
pub const PAUSE_MAX: Duration = Duration::from_secs(8);
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), PAUSE_MAX);
/// Displayed name of the domain of a machine that is in no domain.
pub(crate) const THIS_MACHINE: &str = "this machine";

/// Cached state of all domains, and the schedule of all questions.
#[derive(Debug, Default)]
pub(super) struct Cache {
    domains: Vec<OfDomain>,
    /// Index of the domain that was queried last; the next one is tried first.
    last_asked: usize,
    /// Schedule of the request for the directory's domains, where all of them are shown.
    all: Option<PollSchedule>,
    /// Domains that the user removed: the directory's list does not bring them back.
    dropped: BTreeSet<String>,
    /// Metrics of hosts.
    pub(super) figures: Figures,
    /// Metrics of hosts in the past.
    pub(super) past: PastFigures,
    /// Sensors that are queried in detail.
    pub(super) sensors: Sensors,
    /// The time that is looked at, unless it is the present.
    looked_at: Option<Time>,
    lost: Option<Outage>,
    took: Duration,
    refused_domains: u64,
}

/// Cached state of one domain.
#[derive(Debug, Default)]
struct OfDomain {
    /// Name of the domain in requests; `None` is the daemon's own domain.
    asked: Option<String>,
    name: String,
    hosts: Vec<Host>,
    hosts_left_out: u64,
    /// When its hosts were received.
    hosts_at: Duration,
    calls: Calls,
    schedule: PollSchedule,
    rounds: u32,
    listener: Option<EventListener>,
    trouble: Option<String>,
    /// When the oldest values that it has stored are requested.
    oldest: Option<PollSchedule>,
    /// Calls around the time that is looked at, before those in `calls`.
    past_calls: PastCalls,
}

/// State while the daemon cannot be reached.
#[derive(Debug)]
struct Outage {
    what: String,
    failures: u32,
    again: Duration,
}

/// Use of the askers by questions to single hosts.
#[derive(Clone, Copy, Debug)]
struct AskerUse {
    has_room: bool,
    /// Whether no further questions to hosts that failed are sent.
    is_full: bool,
}

/// Result of processing an answer.
#[derive(Debug, Default)]
pub(super) struct CacheChanges {
    /// Whether the grid changed.
    pub(super) grid: bool,
    /// Another update to publish: metrics of a host, the health of a sensor, a term.
    pub(super) update: Option<Update>,
    /// The error, for a caller that asks each question once.
    pub(super) error: Option<Error>,
}

impl Cache {
    /// State with nothing received yet of these domains. Where none is named: of all domains that the
    /// directory knows, or, if the daemon is no directory, of its own domain.
    pub(super) fn new(domains: &[String], is_directory: bool) -> Cache {
        let mut known = Cache::default();
        domains.iter().for_each(|domain| known.add(domain));
        if domains.is_empty() {
            known.all = is_directory.then(|| PollSchedule::every(DOMAINS_EVERY));
            known.domains.extend((!is_directory).then(OfDomain::default));
        }
        known
    }

    /// Show this domain too.
    pub(super) fn add(&mut self, domain: &str) {
        self.dropped.remove(domain);
        self.add_found(domain);
    }

    fn add_found(&mut self, domain: &str) {
        let is_known = |known: &OfDomain| known.name == domain || known.asked.as_deref() == Some(domain);
        if self.dropped.contains(domain) || self.domains.iter().any(is_known) {
            return;
        }
        if self.domains.len() >= DOMAINS_MAX {
            self.refused_domains += 1;
            return;
        }
        let name = domain.to_owned();
        self.domains.push(OfDomain { asked: Some(name.clone()), name, ..OfDomain::default() });
    }

    /// Stop showing this domain.
    pub(super) fn drop_domain(&mut self, domain: &str) {
        self.domains.retain(|known| known.name != domain);
        if self.all.is_some() && self.dropped.len() < DOMAINS_MAX {
            self.dropped.insert(domain.to_owned());
        }
    }

    /// The next question that is due; it counts as in flight from then on.
    pub(super) fn question(&mut self, now: Duration, at: Time) -> Option<Question> {
        let asker_use = self.asker_use();
        // First, ahead of all other questions: the failure of such a sensor must be shown within three
        // seconds.
        if let Some(question) = self.sensors.question_itself(now, asker_use.is_full) {
            return Some(question);
        }
        if let Some(lost) = &self.lost
            && (now < lost.again || self.schedules().any(PollSchedule::is_out))
        {
            return None;
        }
        if let Some(schedule) = self.all.as_mut().filter(|schedule| schedule.due(now, false).is_some()) {
            schedule.ask();
            return Some(Question::Domains);
        }
        let of_domain = self.of_domain(now);
        if of_domain.is_some() || !asker_use.has_room {
            return of_domain;
        }
        if let Some(question) = self.past_calls(now) {
            return Some(question);
        }
        let sensors = self.sensors.question(now, asker_use.is_full);
        let figures = sensors.or_else(|| self.figures.question(now, at, asker_use.is_full));
        figures.or_else(|| self.past.question()).or_else(|| self.oldest(now))
    }

    /// How many questions to single hosts are in flight; they must leave room for those to domains.
    fn asker_use(&self) -> AskerUse {
        let schedules =
            self.figures.schedules().chain(self.sensors.schedules()).chain(self.sensors.own_schedules());
        let out: Vec<&PollSchedule> = schedules.filter(|schedule| schedule.is_out()).collect();
        let failed = out.iter().filter(|schedule| schedule.has_failed()).count();
        let oldest = self.domains.iter().filter_map(|domain| domain.oldest.as_ref());
        let calls = self.domains.iter().filter(|domain| domain.past_calls.is_out());
        let oldest = oldest.filter(|oldest| oldest.is_out());
        let count = out.len() + self.past.out() + oldest.count() + calls.count();
        AskerUse { has_room: count < ASIDE_AT_A_TIME, is_full: failed >= TROUBLED_AT_A_TIME }
    }

    /// The next domain that is due, in round-robin order.
    fn of_domain(&mut self, now: Duration) -> Option<Question> {
        let is_full = self.is_full_of_trouble();
        let count = self.domains.len();
        let order = (1..=count).map(|step| (self.last_asked + step) % count);
        let (at, due) = order.filter_map(|at| Some((at, self.domains[at].due(now, is_full)?))).next()?;
        self.last_asked = at;
        let domain = &mut self.domains[at];
        domain.schedule.ask();
        domain.listener.iter().for_each(EventListener::heed);
        domain.rounds += u32::from(due == Due::All);
        let calls = domain.calls.request(domain.rounds > WHOLE_EVERY);
        Some(Question::Domain { asked: domain.asked.clone(), due, calls })
    }

    fn is_full_of_trouble(&self) -> bool {
        let troubled =
            self.domains.iter().filter(|domain| domain.schedule.is_out() && domain.schedule.is_troubled());
        troubled.count() >= TROUBLED_AT_A_TIME
    }

    fn schedules(&self) -> impl Iterator<Item = &PollSchedule> {
        let domains = self.domains.iter().map(|domain| &domain.schedule);
        domains.chain(&self.all).chain(self.figures.schedules()).chain(self.sensors.schedules())
    }

    /// When the next question is due, unless an answer comes earlier.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let asker_use = self.asker_use();
        let is_left = |schedule: &&PollSchedule| !(asker_use.is_full && schedule.has_failed());
        let is_asked = |schedule: &&PollSchedule| asker_use.has_room && is_left(schedule);
        let itself =
            self.sensors.own_schedules().filter(is_left).filter_map(|schedule| schedule.next(false)).min();
        if let Some(lost) = &self.lost {
            let again = (!self.schedules().any(PollSchedule::is_out)).then_some(lost.again);
            return again.into_iter().chain(itself).min();
        }
        let is_full = self.is_full_of_trouble();
        let domains = self.domains.iter().filter(|domain| !(is_full && domain.schedule.is_troubled()));
        let domains = domains.filter_map(|domain| domain.schedule.next(domain.has_heard()));
        let others = self
            .all
            .iter()
            .chain(self.sensors.schedules().filter(is_asked))
            .filter_map(|schedule| schedule.next(false));
        let figures = self.figures.next_due(asker_use.is_full).filter(|_| asker_use.has_room);
        let oldest = self.oldest_due().filter(|_| asker_use.has_room);
        let calls = self.looked_at.into_iter();
        let calls =
            calls.flat_map(|at| self.domains.iter().filter_map(move |domain| domain.past_calls_due(at)));
        let calls = calls.min().filter(|_| asker_use.has_room);
        let past = (self.past.is_due() && asker_use.has_room).then_some(Duration::ZERO);
        domains.chain(others).chain(figures).chain(past).chain(calls).chain(oldest).chain(itself).min()
    }

    /// Process an answer that came `at`.
    pub(super) fn take(&mut self, answer: Answer, now: Duration, at: Time, took: Duration) -> CacheChanges {
        self.took = took;
        match answer {
            Answer::Domain { asked, due, polled } => {
                let Some(number) = self.domains.iter().position(|domain| domain.asked == asked) else {
                    return CacheChanges::default();
                };
                let domain = &mut self.domains[number];
                let (grid, error) = domain.take(due, polled, (now, at), took);
                let Some(error) = error else {
                    self.lost = None;
                    self.forget_oldest();
                    return CacheChanges { grid, ..CacheChanges::default() };
                };
                self.lose(&error, now);
                CacheChanges { grid, error: Some(error), ..CacheChanges::default() }
            }
            Answer::Domains(names) => self.take_domains(names, now, took),
            Answer::Figures { host, metrics, counters } => {
                let update = self.figures.take(&host, &metrics, counters, (now, at), took);
                CacheChanges { update, ..CacheChanges::default() }
            }
            Answer::Tile { tile, answer } => {
                let update = Some(self.past.take(tile, answer));
                CacheChanges { update, ..CacheChanges::default() }
            }
            Answer::Oldest { asked, oldest } => self.take_oldest(asked.as_deref(), oldest, now, took),
            Answer::PastCalls { asked, answer } => self.take_past_calls(asked.as_deref(), answer, now, took),
            Answer::Sensor { at, health } => {
                self.sensors.answered(&at, health.is_ok(), now, took);
                let health = health.map(Arc::new).map_err(|error| error.to_string());
                CacheChanges { update: Some(Update::Sensor { at, health }), ..CacheChanges::default() }
            }
            Answer::Term { domain, term } => {
                self.sensors.resolved(&domain, term.is_some(), now, took);
                CacheChanges { update: Some(Update::Term { domain, term }), ..CacheChanges::default() }
            }
        }
    }

    fn take_domains(
        &mut self,
        names: Result<Vec<String>, Error>,
        now: Duration,
        took: Duration,
    ) -> CacheChanges {
        let Some(schedule) = &mut self.all else { return CacheChanges::default() };
        match names {
            Ok(names) => {
                schedule.answered(Due::All, now, took);
                self.lost = None;
                self.refused_domains = 0;
                names.iter().for_each(|name| self.add_found(name));
                CacheChanges { grid: true, ..CacheChanges::default() }
            }
            Err(error) => {
                schedule.failed(now);
                self.lose(&error, now);
                CacheChanges { error: Some(error), ..CacheChanges::default() }
            }
        }
    }

    /// Record that the daemon cannot be reached or did not answer as one. Everything is requested again
    /// afterwards, since another daemon may answer then.
    fn lose(&mut self, error: &Error, now: Duration) {
        let failures = self.lost.as_ref().map_or(0, |lost| lost.failures.saturating_add(1));
        self.lost = Some(Outage { what: error.to_string(), failures, again: now + BACKOFF.pause(failures) });
        for domain in &mut self.domains {
            domain.calls.request_all();
            domain.past_calls.request_again();
            domain.oldest.iter_mut().for_each(PollSchedule::hurry);
            domain.schedule.hurry();
        }
        self.all.iter_mut().for_each(PollSchedule::hurry);
    }

    /// The status of the connection.
    pub(super) fn status(&self, address: &Where) -> Status {
        match &self.lost {
            Some(lost) => Status::Lost { what: lost.what.clone() },
            None => Status::Connected {
                address: address.to_string(),
                took_secs: self.took.as_secs_f64(),
                troubles: self.troubles().cloned().collect(),
            },
        }
    }

    /// Why domains cannot be queried.
    pub(super) fn troubles(&self) -> impl Iterator<Item = &String> {
        self.domains.iter().filter_map(|domain| domain.trouble.as_ref())
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Domains whose hosts were received and that have no event listener yet: each may be given one.
    pub(super) fn unheard(&mut self) -> impl Iterator<Item = (Option<&str>, &mut Option<EventListener>)> {
        let silent = self.domains.iter_mut().filter(|domain| domain.listener.is_none() && domain.rounds > 0);
        silent.map(|domain| (domain.asked.as_deref(), &mut domain.listener))
    }

    /// Drop the oldest calls beyond the limit of a map, in the order in which a map would omit them.
    fn forget_oldest(&mut self) {
        let sum: usize = self.domains.iter().map(|domain| domain.calls.iter().len()).sum();
        // Only once the limit is exceeded twofold, since each pass costs as much as all calls.
        if sum <= 2 * CALLS_MAX {
            return;
        }
        let calls = self.domains.iter().flat_map(|domain| domain.calls.iter());
        let mut times: Vec<_> = calls.map(super::calls::latest).collect();
        times.sort_unstable();
        let oldest = times[sum - CALLS_MAX];
        for domain in &mut self.domains {
            let kept = domain.calls.iter().filter(|call| super::calls::latest(call) >= oldest).count();
            domain.calls.forget(kept);
        }
    }

    /// Build the grid from the cached state.
    pub(super) fn grid(&self, now: Duration, at: Time) -> Grid {
        let mut builder = Builder::new(at.plus(AHEAD));
        let room = self.newest_shown_since();
        for known in &self.domains {
            let name = if known.name.is_empty() { THIS_MACHINE } else { &known.name };
            let Some(domain) = builder.domain(name) else { continue };
            // The age in the report, plus the time since the report was received.
            let ago = now.saturating_sub(known.hosts_at).as_secs_f64();
            for host in &known.hosts {
                let mut report = host.report.clone();
                report.age_secs = report.age_secs.map(|age| age + ago);
                builder.host(domain, &host.name, host.state, report);
            }
            let is_shown =
                |call: &&Call| room.is_none_or(|oldest| super::calls::latest(call) >= Some(oldest));
            known.calls.iter().filter(is_shown).for_each(|call| builder.call(domain, call));
            let is_other = |call: &&Call| !known.calls.has(&call.id);
            known.past_calls.iter().filter(is_other).for_each(|call| builder.call(domain, call));
        }
        let mut grid = builder.build();
        grid.unloaded = self.unloaded();
        grid.refused.add_many(Reason::Domains, self.refused_domains);
        let (hosts, calls) = self.domains.iter().fold((0, 0), |(hosts, calls), domain| {
            (hosts + domain.hosts_left_out, calls + domain.calls.left_out())
        });
        grid.refused.add_many(Reason::Hosts, hosts);
        grid.refused.add_many(Reason::Calls, calls);
        grid
    }
}

impl OfDomain {
    /// When calls around a time are to be requested; `None` if never.
    fn past_calls_due(&self, at: Time) -> Option<Duration> {
        let is_asked = !self.hosts.is_empty() && !self.schedule.is_troubled();
        is_asked.then(|| self.past_calls.due(at, self.calls.oldest()))?
    }

    fn has_heard(&self) -> bool {
        self.listener.as_ref().is_some_and(EventListener::has_heard)
    }

    fn due(&self, now: Duration, is_full_of_trouble: bool) -> Option<Due> {
        match is_full_of_trouble && self.schedule.is_troubled() {
            true => None,
            false => self.schedule.due(now, self.has_heard()),
        }
    }

    /// Process an answer about this domain. Returns whether anything changed, and the error if the daemon
    /// itself seems lost.
    fn take(
        &mut self,
        due: Due,
        polled: PollResult,
        (now, at): (Duration, Time),
        took: Duration,
    ) -> (bool, Option<Error>) {
        let mut changed = polled.hosts.is_some();
        if let Some((name, hosts, left_out)) = polled.hosts {
            if self.asked.is_none() {
                self.name = name;
            }
            (self.hosts, self.hosts_left_out, self.hosts_at) = (hosts, left_out, now);
        }
        if let Some(answer) = polled.calls {
            if !matches!(answer.request, super::calls::CallsRequest::Since(_)) {
                self.rounds = 1;
            }
            changed |= self.calls.take(answer, at);
        }
        match polled.error {
            None => {
                self.schedule.answered(due, now, took);
                changed |= self.trouble.take().is_some();
                (changed, None)
            }
            Some(error @ (Error::Fault { .. } | Error::Late { .. })) if self.asked.is_some() => {
                self.schedule.failed(now);
                let why = match &error {
                    Error::Fault { message, .. } => message.clone(),
                    Error::Late { after, .. } => format!("no answer within {} s", after.as_secs()),
                    Error::Unreachable(_) | Error::Mistake(_) | Error::Lost { .. } | Error::Answer { .. } => {
                        error.to_string()
                    }
                };
                self.trouble = Some(format!("{}: {why}", self.name));
                (changed, None)
            }
            Some(error) => {
                self.schedule.put_back();
                (changed, Some(error))
            }
        }
    }
}

#[cfg(test)]
mod tests;
