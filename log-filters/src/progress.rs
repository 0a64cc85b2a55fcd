//! State of a call: how each event changes it.
//!
//! Pure. Rule: the result does not depend on the order in which logs are read, as far as their times and
//! authority define an order; a later, better report replaces an earlier, poorer one.
//! Not here: which reported start and end are used (`beginning`, `ending`).

use crate::beginning::Beginning;
use crate::details::{Details, Known, is_of_job};
use crate::ending::Ending;
use crate::implied::Implied;
use crate::namesakes::SAME_TRANSFER_MICROS;
use crate::reason::Reason;
use crate::reported_value::{ReportedValue, in_order, set_text, set_time};
use crate::sameness::{better_job, hosts_of, same_host};
use crate::steps::{Alone, Steps};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::{Authority, Call, State};
use wire::event::{Content, Id, Kind, Outcome, Value};
use wire::time::Time;

mod runs;

/// Most hosts stored per call.
pub(crate) const HOSTS_MAX: usize = 4_096;

/// State of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) id: CompactString,
    /// Time of its first event.
    pub(crate) first: Time,
    job: CompactString,
    /// Number of names of the event that reported the job number.
    job_names: u8,
    name: ReportedValue<CompactString>,
    user: ReportedValue<CompactString>,
    from: ReportedValue<CompactString>,
    submitted: Option<ReportedValue<Time>>,
    offered: Option<Time>,
    /// Time of the last selection of a host; a selection before the last requeue belongs to an earlier run.
    selected: Option<Time>,
    beginning: Beginning,
    offers: Box<[CompactString]>,
    hosts: ReportedValue<Vec<CompactString>>,
    ending: Ending,
    reason: Reason,
    cancel_asked: Option<Time>,
    requeues: u32,
    events: u32,
    last_requeue: Option<Time>,
    /// The last requeue is void: the job was only stopped in order to be removed.
    requeue_undone: bool,
    /// Start and end implied by other events, if no log reports them.
    implied: Implied,
    /// Data of its steps, while nothing else is known of the call; most calls have none.
    steps: Alone,
    /// Whether it is a job, with its facts and earlier runs. Stored after all calls, which earlier versions read
    /// without them.
    #[serde(skip)]
    pub(crate) is_job: bool,
    #[serde(skip)]
    pub(crate) details: Known,
}

impl Progress {
    pub(crate) fn new(id: CompactString, first: Time) -> Progress {
        Progress {
            id,
            first,
            job: CompactString::default(),
            job_names: 0,
            name: ReportedValue::default(),
            user: ReportedValue::default(),
            from: ReportedValue::default(),
            submitted: None,
            offered: None,
            selected: None,
            beginning: Beginning::default(),
            offers: Box::default(),
            hosts: ReportedValue::default(),
            ending: Ending::default(),
            reason: Reason::default(),
            cancel_asked: None,
            requeues: 0,
            events: 0,
            last_requeue: None,
            requeue_undone: false,
            implied: Implied::default(),
            steps: None,
            is_job: false,
            details: None,
        }
    }

    pub(crate) fn ended(&self) -> Option<Time> {
        self.ending.at().filter(|_| !self.is_end_of_earlier_run())
    }

    pub(crate) fn submitted(&self) -> Option<Time> {
        self.submitted.as_ref().map(|submitted| submitted.value)
    }

    pub(crate) fn started(&self) -> Option<Time> {
        self.beginning.at()
    }

    fn selected(&self) -> Option<Time> {
        self.selected.filter(|&at| self.requeue_undone || !self.is_earlier_try(at))
    }

    pub(crate) fn is_selected(&self) -> bool {
        self.selected.is_some()
    }

    pub(crate) fn is_final(&self) -> bool {
        self.ending.is_final() && !self.is_end_of_earlier_run()
    }

    /// Start time: reported, or else implied by the selection.
    fn began(&self) -> Option<Time> {
        let by_steps = || self.steps.as_ref().and_then(|steps| steps.started());
        self.started().or_else(|| self.implied.started(self.selected())).or_else(by_steps)
    }

    /// Time and outcome of the implied end, if no log reports one.
    fn implied_end(&self) -> Option<(Time, Outcome)> {
        let last_requeue = self.last_requeue.filter(|_| !self.requeue_undone);
        let end = self.implied.ended(last_requeue).filter(|_| self.ended().is_none());
        let by_steps = || self.steps.as_ref().and_then(|steps| steps.ended());
        end.filter(|&(at, _)| !self.is_earlier_try(at)).or_else(by_steps)
    }

    pub(crate) fn state(&self) -> State {
        if self.ended().is_some() || self.implied_end().is_some() {
            State::Ended
        } else if self.began().is_some() {
            State::Running
        } else {
            State::Waiting
        }
    }

    pub(crate) fn call(&self) -> Call {
        let (implied_end, implied_outcome) = self.implied_end().unzip();
        let open = Ending::default();
        let ending = if self.is_end_of_earlier_run() { &open } else { &self.ending };
        let ended = self.ended().or(implied_end);
        let mut times = [self.submitted(), self.offered, self.selected(), self.began(), ended];
        in_order(&mut times);
        let [submitted, offered, selected, started, ended] = times;
        let call = Call {
            id: self.id.clone(),
            job: self.job.clone(),
            name: self.name.value.clone(),
            user: self.user.value.clone(),
            from: self.from.value.clone(),
            state: self.state(),
            submitted,
            offered,
            selected,
            started,
            ended,
            offers: self.offers.to_vec(),
            hosts: self.hosts.value.clone(),
            outcome: ending.outcome(self.cancel_asked).or(implied_outcome),
            code: ending.code().clone(),
            signal: ending.signal().clone(),
            reason: CompactString::default(),
            tries: self.requeues + u32::from(self.began().is_some()),
            events: self.events,
            details: self.is_job.then(|| self.details.as_deref().map(Details::shown).unwrap_or_default()),
        };
        let call = Call { reason: self.reason.of(&call), ..call };
        Steps::fill_in(&self.steps, call)
    }

    /// Process an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most kinds are alike here")]
    pub(crate) fn apply(&mut self, content: &Content, by: Authority) {
        Steps::take(&mut self.steps, content, self.events == 0);
        self.events += 1;
        self.first = self.first.min(content.time);
        self.facts(content, by);
        self.reason.report(content, by);
        self.implied.apply(content, by, self.last_requeue);
        match content.kind {
            Kind::JobSubmit => self.submit(content.time, by),
            Kind::ServerList => {
                self.offered = self.offered.or(Some(content.time));
                self.offers = hosts_of(content).into();
            }
            Kind::JobSelect => {
                self.reopen(content.time);
                self.selected = self.selected.max(Some(content.time));
                self.ran_on_at(content, content.time, by);
            }
            Kind::JobStart | Kind::TransferStart => {
                let at = content.started.unwrap_or(content.time);
                self.reopen(content.time);
                self.start(at, by);
                self.ran_on_at(content, at, by);
            }
            Kind::JobEnd | Kind::TransferEnd => {
                self.ran_on_at(content, content.ended.unwrap_or(content.time), by);
                self.end(content, by);
            }
            Kind::JobCancel => self.cancel(content.time),
            Kind::JobReject => {
                self.submit(content.time, by);
                self.end(content, by);
                self.ending.suppose_outcome(Some(Outcome::Failed));
            }
            Kind::JobRequeue => {
                // The accounting record of a requeue contains the start of the run that it ended.
                if let Some(started) = content.started {
                    self.start(started, by);
                }
                self.requeue(content.time, content.started);
            }
            _ => {}
        }
    }

    /// Whether an event of another log may belong to this call: its user, start and outcome do not contradict
    /// it, and a start or end is not before the selection of the host.
    pub(crate) fn agrees_with(&self, content: &Content) -> bool {
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let own = &self.user.value;
        let same_user = *own == content.user || is_number(own) || is_number(&content.user);
        let both = self.started().zip(content.started);
        let same_start =
            both.is_none_or(|(own, other)| (own.micros() - other.micros()).abs() <= SAME_TRANSFER_MICROS);
        let ends = (self.ending.outcome(None), content.outcome);
        let contradict =
            [(Some(Outcome::Ok), Some(Outcome::Failed)), (Some(Outcome::Failed), Some(Outcome::Ok))];
        let follows = matches!(content.kind, Kind::JobStart | Kind::JobEnd);
        let is_early = follows
            && self.selected.is_some_and(|at| at.micros() > content.time.micros() + SAME_TRANSFER_MICROS);
        same_user && same_start && !is_early && !contradict.contains(&ends)
    }

    /// Process the job number of an event with `names` names: an event with more names is preferred.
    pub(crate) fn known_as(&mut self, job: &CompactString, names: u8) {
        if job.is_empty() {
            return;
        }
        let is_better = names > self.job_names || (names == self.job_names && better_job(&self.job, job));
        if self.job.is_empty() || is_better {
            self.job = job.clone();
        }
        self.job_names = self.job_names.max(names);
    }

    /// Process what an event states of a job besides its course.
    pub(crate) fn state_details(&mut self, content: &Content, by: Authority, event: Id) {
        if is_of_job(content.kind) {
            self.is_job = true;
            Details::report(&mut self.details, content, by, event);
        }
    }

    /// Merge the start and end of a part that is being dropped.
    pub(crate) fn outlive(&mut self, part: &Call) {
        self.ending.outlive(part);
        self.beginning.suppose(part.started);
    }

    /// Merge another call that is the same.
    pub(crate) fn absorb(&mut self, other: &Progress) {
        Steps::join(&mut self.steps, self.events == 0, (&other.steps, other.events == 0));
        self.events += other.events;
        self.first = self.first.min(other.first);
        self.requeues = self.requeues.max(other.requeues);
        self.ending.absorb(&other.ending);
        self.reason.absorb(&other.reason);
        self.is_job |= other.is_job;
        Details::absorb(&mut self.details, &other.details);
        self.known_as(&other.job, other.job_names);
        let text = |own: &mut ReportedValue<CompactString>, their: &ReportedValue<CompactString>| {
            if own.value.is_empty() || (their.by > own.by && !their.value.is_empty()) {
                *own = their.clone();
            }
        };
        text(&mut self.name, &other.name);
        text(&mut self.user, &other.user);
        text(&mut self.from, &other.from);
        if let Some(ReportedValue { value, by: Some(by) }) = other.submitted {
            self.submit(value, by);
        }
        self.beginning.absorb(&other.beginning);
        self.offered = self.offered.or(other.offered);
        self.selected = self.selected.max(other.selected);
        self.cancel_asked = self.cancel_asked.or(other.cancel_asked);
        self.last_requeue = self.last_requeue.max(other.last_requeue);
        self.requeue_undone |= other.requeue_undone;
        self.implied.absorb(&other.implied, self.last_requeue);
        if self.offers.is_empty() {
            self.offers.clone_from(&other.offers);
        }
        if self.hosts.value.is_empty() || other.hosts.by > self.hosts.by {
            self.hosts = other.hosts.clone();
        }
    }

    fn facts(&mut self, content: &Content, by: Authority) {
        if let Some(name) = content.attribute("name").and_then(Value::as_text) {
            set_text(&mut self.name, name, by);
        }
        // If the log prints another form of the user's name, `owner` is the form that users of the product
        // know.
        let owner = content.attribute("owner").and_then(Value::as_text).unwrap_or(&content.user);
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let user_better = is_number(&self.user.value) || !is_number(owner);
        if content.kind == Kind::JobEnd && content.outcome == Some(Outcome::Cancelled) {
            // This may be the user that removed the job: used until a log names the owner. A name is better
            // than a number.
            if is_number(&self.user.value) && (self.user.value.is_empty() || !is_number(owner)) {
                self.user = ReportedValue { value: owner.into(), by: None };
            }
        } else if !owner.is_empty() && user_better && names_owner(content.kind) {
            if is_number(&self.user.value) && !is_number(owner) {
                self.user.by = None;
            }
            set_text(&mut self.user, owner, by);
        }
        if !content.from.is_empty() && names_owner(content.kind) {
            set_text(&mut self.from, &content.from, by);
        }
        if let Some(submitted) = content.submitted {
            self.submit(submitted, by);
        }
    }

    fn submit(&mut self, at: Time, by: Authority) {
        set_time(&mut self.submitted, at, by);
    }

    fn start(&mut self, at: Time, by: Authority) {
        if self.is_earlier_try(at) {
            // The requeue was read first, when no run was known.
            self.requeues = self.requeues.max(u32::from(!self.requeue_undone));
            self.earlier_run_at(at, |run| run.beginning.report(at, by));
            return;
        }
        self.beginning.report(at, by);
    }

    /// Process the hosts of an event of this time.
    fn ran_on_at(&mut self, content: &Content, at: Time, by: Authority) {
        match self.is_earlier_try(at) {
            true => self.earlier_run_at(at, |run| run.ran_on(content)),
            false => self.ran_on(content, by),
        }
    }

    fn ran_on(&mut self, content: &Content, by: Authority) {
        let hosts = hosts_of(content);
        if hosts.is_empty() || Some(by) < self.hosts.by {
            return;
        }
        if Some(by) > self.hosts.by {
            self.hosts = ReportedValue { value: Vec::new(), by: Some(by) };
        }
        for host in hosts {
            let known = self.hosts.value.iter().any(|known| same_host(known, &host));
            if !known && self.hosts.value.len() < HOSTS_MAX {
                if self.hosts.value.is_empty() {
                    // Most calls have one host.
                    self.hosts.value.reserve_exact(1);
                }
                self.hosts.value.push(host);
            }
        }
    }
}

/// Steps and similar events may be of another user or from another host.
fn names_owner(kind: Kind) -> bool {
    !matches!(kind, Kind::StepStart | Kind::StepEnd | Kind::JobHold | Kind::JobRelease | Kind::JobCancel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(events: &[(Kind, i64)], end: Option<(i64, Outcome, &str)>) -> Call {
        let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
        let secs = |secs: i64| Time::from_micros(secs * 1_000_000);
        for &(kind, at) in events {
            progress.apply(&Content::new(kind, secs(at)), Authority::Scheduler);
        }
        if let Some((started, outcome, user)) = end {
            let mut content = Content::new(Kind::JobEnd, secs(100));
            (content.started, content.outcome, content.user) =
                (Some(secs(started)), Some(outcome), user.into());
            progress.apply(&content, Authority::Accounting);
        }
        progress.call()
    }

    #[test]
    fn hosts_of_an_earlier_try_are_not_hosts_of_the_last() {
        let start = |at: i64, host: &str| {
            let mut content = Content::new(Kind::JobStart, Time::from_micros(at * 1_000_000));
            content.attributes.push(("host".into(), Value::Text(host.into())));
            content
        };
        let requeue = Content::new(Kind::JobRequeue, Time::from_micros(20_000_000));
        let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
        for content in [&requeue, &start(10, "n1"), &start(20, "n2")] {
            progress.apply(content, Authority::Accounting);
        }
        assert_eq!(progress.call().hosts, ["n2"]);
    }

    #[test]
    fn a_requeue_reported_after_the_end_takes_the_start_before_it_back() {
        let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
        let at = |kind: Kind, secs: i64| Content::new(kind, Time::from_micros(secs * 1_000_000));
        progress.apply(&at(Kind::JobStart, 20), Authority::Message);
        progress.apply(&at(Kind::JobEnd, 30), Authority::Message);
        for content in [at(Kind::JobStart, 10), at(Kind::JobRequeue, 20), at(Kind::JobStart, 20)] {
            progress.apply(&content, Authority::Accounting);
        }
        let call = progress.call();
        assert_eq!(
            (call.started, call.ended),
            (Some(Time::from_micros(20_000_000)), Some(Time::from_micros(30_000_000)))
        );
    }

    #[test]
    fn a_requeue_that_two_logs_report_is_one() {
        let events =
            [(Kind::JobStart, 10), (Kind::JobRequeue, 20), (Kind::JobRequeue, 21), (Kind::JobStart, 30)];
        assert_eq!(joined(&events, None).tries, 2);
    }

    #[test]
    fn an_end_that_reports_its_start_undoes_the_requeue_that_came_to_nothing() {
        let call =
            joined(&[(Kind::JobStart, 10), (Kind::JobRequeue, 100)], Some((10, Outcome::Cancelled, "root")));
        assert_eq!((call.started, call.tries), (Some(Time::from_micros(10_000_000)), 1));
    }

    #[test]
    fn the_start_that_the_end_reports_is_believed() {
        let mut end = Content::new(Kind::JobEnd, Time::from_micros(90_000_000));
        end.started = Some(Time::from_micros(11_000_000));
        let start = Content::new(Kind::JobStart, Time::from_micros(10_000_000));
        for order in [[&start, &end], [&end, &start]] {
            let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
            order.iter().for_each(|content| progress.apply(content, Authority::Accounting));
            assert_eq!(progress.call().started, end.started);
        }
    }

    #[test]
    fn who_removed_a_job_is_its_user_only_until_its_owner_is_named() {
        let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
        let mut end = Content::new(Kind::JobEnd, Time::from_micros(5));
        (end.outcome, end.user) = (Some(Outcome::Cancelled), "root".into());
        progress.apply(&end, Authority::Accounting);
        assert_eq!(progress.call().user, "root");
        let mut start = Content::new(Kind::JobStart, Time::from_micros(3));
        start.user = "aliu".into();
        progress.apply(&start, Authority::Message);
        progress.apply(&end, Authority::Accounting);
        assert_eq!(progress.call().user, "aliu");
    }
}
