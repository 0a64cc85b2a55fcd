//! Calls known only by their steps: a worker host's log names the steps that it ran, and its controller's log
//! may not be available.
//!
//! Pure. Rule: steps have the lowest priority of all. They are used only as long as no event of another kind
//! is known; from then on they say nothing about the call's start and end.
//! Not here: a step's end that a filter declares to be the call's end (`implied`).

use crate::sameness::{hosts_of, same_host};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::Call;
use wire::event::{Content, Kind, Outcome};
use wire::time::Time;

/// Most hosts stored; a call with more hosts is known from another log.
const HOSTS_MAX: usize = 64;

/// Summary of the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Steps {
    started: u32,
    over: u32,
    first: Option<Time>,
    last_end: Option<Time>,
    pub(crate) user: CompactString,
    pub(crate) from: CompactString,
    pub(crate) hosts: Vec<CompactString>,
}

/// Steps of a call about which nothing else is known; most calls have none.
pub(crate) type Alone = Option<Box<Steps>>;

impl Steps {
    /// Process an event of the call.
    pub(crate) fn take(alone: &mut Alone, content: &Content, is_first: bool) {
        if !matches!(content.kind, Kind::StepStart | Kind::StepEnd) {
            *alone = None;
        } else if is_first {
            alone.insert(Box::default()).apply(content);
        } else if let Some(steps) = alone {
            steps.apply(content);
        }
    }

    /// Merge the steps of another call that is the same; for both it is given whether they have no events
    /// yet.
    pub(crate) fn join(own: &mut Alone, is_new: bool, (their, is_nothing): (&Alone, bool)) {
        match (own.as_mut(), their) {
            (Some(own), Some(their)) => own.absorb(their),
            (None, Some(their)) if is_new => *own = Some(their.clone()),
            (Some(_), None) if is_nothing => {}
            (_, None | Some(_)) => *own = None,
        }
    }

    /// Add the user, the submission host and the hosts of the steps to the call.
    pub(crate) fn fill_in(alone: &Alone, call: Call) -> Call {
        match alone.as_deref().cloned() {
            Some(Steps { user, from, hosts, .. }) => Call { user, from, hosts, ..call },
            None => call,
        }
    }

    fn apply(&mut self, content: &Content) {
        if content.kind == Kind::StepStart {
            self.started += 1;
            self.first = Some(self.first.map_or(content.time, |first| first.min(content.time)));
        } else {
            self.over += 1;
            self.last_end = self.last_end.max(Some(content.time));
        }
        for (own, reported) in [(&mut self.user, &content.user), (&mut self.from, &content.from)] {
            if own.is_empty() {
                own.clone_from(reported);
            }
        }
        self.add_hosts(hosts_of(content));
    }

    fn absorb(&mut self, other: &Steps) {
        self.started += other.started;
        self.over += other.over;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last_end = self.last_end.max(other.last_end);
        for (own, reported) in [(&mut self.user, &other.user), (&mut self.from, &other.from)] {
            if own.is_empty() {
                own.clone_from(reported);
            }
        }
        self.add_hosts(other.hosts.iter().cloned());
    }

    /// Start of the first reported step; `None` if only ends of steps are known.
    pub(crate) fn started(&self) -> Option<Time> {
        self.first
    }

    /// End of the last step, with an unknown outcome; `None` while a step is running.
    pub(crate) fn ended(&self) -> Option<(Time, Outcome)> {
        self.last_end.filter(|_| self.over >= self.started).map(|at| (at, Outcome::Finished))
    }

    fn add_hosts(&mut self, hosts: impl IntoIterator<Item = CompactString>) {
        for host in hosts {
            if self.hosts.len() < HOSTS_MAX && !self.hosts.iter().any(|known| same_host(known, &host)) {
                self.hosts.push(host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::progress::Progress;
    use wire::call::{Authority, State};
    use wire::event::{Content, Kind, Outcome, Value};
    use wire::time::Time;

    fn event(kind: Kind, secs: i64) -> Content {
        let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
        if kind == Kind::StepStart {
            (content.user, content.from) = ("1000".into(), "sub01".into());
        }
        content.attributes.push(("host".into(), Value::Text("wn02".into())));
        content
    }

    fn joined(events: &[(Kind, i64)]) -> wire::call::Call {
        let mut progress = Progress::new("slurm:1".into(), Time::from_micros(0));
        for (kind, secs) in events {
            progress.apply(&event(*kind, *secs), Authority::Message);
        }
        progress.call()
    }

    #[test]
    fn a_call_of_steps_alone_runs_while_one_does_and_ends_with_the_last() {
        use Kind::{StepEnd, StepStart};
        let running = joined(&[(StepStart, 5)]);
        assert_eq!(
            (running.state, running.user.as_str(), running.from.as_str()),
            (State::Running, "1000", "sub01")
        );
        assert_eq!(
            (running.started, running.hosts),
            (Some(Time::from_micros(5_000_000)), vec!["wn02".into()])
        );
        assert_eq!(joined(&[(StepStart, 5), (StepEnd, 6), (StepStart, 7)]).state, State::Running);
        let over = joined(&[(StepStart, 5), (StepStart, 6), (StepEnd, 7), (StepEnd, 9)]);
        assert_eq!((over.state, over.outcome), (State::Ended, Some(Outcome::Finished)));
        assert_eq!(over.ended, Some(Time::from_micros(9_000_000)));
        let backwards = joined(&[(StepEnd, 9), (StepStart, 5)]);
        assert_eq!((backwards.started, backwards.ended), (Some(Time::from_micros(5_000_000)), over.ended));
        assert_eq!(joined(&[(StepEnd, 9)]).state, State::Ended, "the log begins within the step");
    }

    #[test]
    fn steps_say_nothing_once_another_log_speaks() {
        use Kind::{JobSubmit, StepEnd, StepStart};
        for events in [
            [(StepStart, 5), (StepEnd, 9), (JobSubmit, 1)],
            [(JobSubmit, 1), (StepStart, 5), (StepEnd, 9)],
            [(StepStart, 5), (JobSubmit, 1), (StepEnd, 9)],
        ] {
            let call = joined(&events);
            assert_eq!(
                (call.state, call.started, call.user.as_str()),
                (State::Waiting, None, ""),
                "{events:?}"
            );
        }
    }
}
