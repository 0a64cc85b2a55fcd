//! Evaluation of a subscription to events or to calls: each event as it is found, each call when its state
//! changes.
//!
//! Pure. Rules: nothing is decimated: each record that passes is sent once, and each one left out is counted.
//! The rate of the subscription is how often its condition checks what has passed since the last check, and
//! how often a script runs over that.
//! Not here: reading the journal (`pump`), which calls changed (`call_states`).

use super::condition::{self, Tally};
use super::fields::Subject;
use super::outcome::Outcome;
use super::parts::Parts;
use std::time::Duration;
use wire::channel::stream::{Body, Change, Occurrence};
use wire::channel::{ChannelRequest, Selection};

/// Most records that wait for a script: when there are so many, it runs before it is due.
const SCRIPTED_AT_ONCE_MAX: usize = 1000;

/// A kind of record that happens at a moment: an event or a change of a call.
pub trait EventSubject: Subject<Context = ()> {
    /// Whether the selection includes the record.
    fn includes(selection: &Selection, record: &Self::Record) -> bool;
    /// The entry that carries the record.
    fn body(record: Self::Record) -> Body;
}

/// An event or a change of a call.
#[derive(Clone, Copy, Debug)]
pub enum EventOrCall<'a> {
    Event(&'a Occurrence),
    /// A call whose state changed.
    Call(&'a Change),
}

/// The compiled parts and their memory.
#[derive(Debug)]
pub struct Evaluation<S: EventSubject> {
    parts: Parts<S>,
    /// Records that wait for the script.
    waiting: Vec<S::Record>,
    /// What passed since the last check of the condition.
    tally: Tally,
}

impl<S: EventSubject> Evaluation<S> {
    #[must_use]
    pub fn new(parts: Parts<S>) -> Evaluation<S> {
        Evaluation { parts, waiting: Vec::new(), tally: Tally::default() }
    }

    /// Takes over the memory of `before`, which this evaluation replaces.
    pub fn go_on(
        &mut self,
        mut before: Evaluation<S>,
        was: &ChannelRequest,
        is: &ChannelRequest,
        is_stopped: bool,
    ) {
        self.parts.go_on(&mut before.parts, was, is, is_stopped);
        self.waiting = before.waiting;
        if was.condition == is.condition {
            self.tally = before.tally;
        }
    }

    /// Whether its condition is true; `None` without a condition.
    #[must_use]
    pub fn is_true(&self) -> Option<bool> {
        self.parts.condition.as_ref().map(condition::State::is_true)
    }

    /// Takes in a record.
    pub fn handle(&mut self, outcome: &mut Outcome, record: &S::Record, at_ns: u64) {
        let view = S::view(record);
        let passes =
            S::includes(&outcome.wanted.selection, record) && self.parts.filter.passes(&view, &[], 0.0, &());
        if !passes {
            return;
        }
        if let Some(condition) = &self.parts.condition {
            condition.add(&mut self.tally, &view);
        }
        if outcome.wanted.only_signals {
            return;
        }
        if self.parts.script.is_none() {
            outcome.push_budgeted(at_ns, S::body(record.clone()));
            return;
        }
        self.waiting.push(record.clone());
        if self.waiting.len() >= SCRIPTED_AT_ONCE_MAX {
            self.run_script(outcome, at_ns);
        }
    }

    /// Checks the condition and runs the script over what passed since the last time.
    pub fn check_due(&mut self, outcome: &mut Outcome, at_ns: u64, now: Duration) {
        let tally = std::mem::take(&mut self.tally);
        outcome.empty += u64::from(tally == Tally::default() && self.waiting.is_empty());
        self.parts.signal_of(outcome, &tally, at_ns, now);
        if !self.waiting.is_empty() {
            self.run_script(outcome, at_ns);
        }
    }

    fn run_script(&mut self, outcome: &mut Outcome, at_ns: u64) {
        match self.parts.scripted(std::mem::take(&mut self.waiting), at_ns) {
            Ok((records, figures)) => {
                records.into_iter().for_each(|record| outcome.push_budgeted(at_ns, S::body(record)));
                if !figures.is_empty() {
                    outcome.push_budgeted(at_ns, Body::Figures(figures));
                }
            }
            Err(error) => outcome.stop(error.to_string(), at_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::subscription::{CompiledRequest, Subscription};
    use proptest::prelude::*;
    use wire::channel::{Budget, Kind, expression};
    use wire::event::{Content, Event, Id, Source};
    use wire::id::{Generation, SensorKey};
    use wire::time::Time;

    fn occurrence(number: u64) -> Occurrence {
        let mut content = Content::new(wire::event::Kind::JobStart, Time::from_micros(1));
        content.job = number.to_string().into();
        let id = Id { sensor: SensorKey(1), generation: Generation(1), offset: number, number: 0 };
        let source = Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() };
        let event = Event { id, seen: content.time, call: "".into(), content, source };
        Occurrence { number, event, name: "".into(), user: "ada".into() }
    }

    fn wanted(filter: &str, change: impl FnOnce(&mut ChannelRequest)) -> CompiledRequest {
        let filter = expression::filter(filter).expect("understood");
        let mut wanted = ChannelRequest { kind: Kind::Event, filter, ..ChannelRequest::default() };
        change(&mut wanted);
        CompiledRequest::new(wanted, || Duration::ZERO).expect("it can be used")
    }

    fn hear(subscription: &mut Subscription, number: u64, now: Duration) {
        subscription.handle_event(&EventOrCall::Event(&occurrence(number)), 1, now);
    }

    fn bodies(subscription: &mut Subscription) -> Vec<Body> {
        subscription.take(usize::MAX).entries().map(|entry| entry.body).collect()
    }

    #[test]
    fn what_a_job_used_is_shown_to_its_user_root_and_operators() {
        use wire::query::Viewer;
        let heard = |viewer: Option<Viewer>, kind, uid: &str| {
            let mut happened = occurrence(1);
            happened.event.content.kind = kind;
            happened.event.content.user = "ada".into();
            happened.event.content.attributes = vec![("uid".into(), wire::event::Value::Text(uid.into()))];
            let now = Duration::ZERO;
            let mut subscription = Subscription::of(wanted("job = \"1\"", |_| {}), viewer, now);
            subscription.handle_event(&EventOrCall::Event(&happened), 1, now);
            !bodies(&mut subscription).is_empty()
        };
        let (used, ended) = (wire::event::Kind::Workload, wire::event::Kind::JobEnd);
        for (viewer, uid, is_heard) in [
            (None, "1000", true),
            (Some(Viewer::Trusted), "1000", true),
            (Some(Viewer::Owner(7)), "1000", true),
            (Some(Viewer::User(1000)), "1000", true),
            (Some(Viewer::User(1001)), "1000", false),
            (Some(Viewer::User(1000)), "?", false),
            (Some(Viewer::Anonymous), "1000", false),
        ] {
            assert_eq!(heard(viewer, used, uid), is_heard, "{viewer:?} {uid}");
            assert!(heard(viewer, ended, uid), "{viewer:?}");
        }
    }

    fn conditioned(wanted: &mut ChannelRequest) {
        wanted.condition = Some(expression::condition("count > 2 until 0").expect("understood"));
        wanted.only_signals = true;
    }

    #[test]
    fn a_condition_is_of_what_passed_since_it_was_looked_at() {
        let mut subscription = Subscription::new(wanted("job !~ \"9\"", conditioned), Duration::ZERO);
        let mut look = |second: u64, numbers: &[u64], expected: &[bool]| {
            let now = Duration::from_secs(second);
            numbers.iter().for_each(|number| hear(&mut subscription, *number, now));
            assert!(subscription.is_due(now));
            subscription.check_due(1, now);
            let is_true = |body: Body| matches!(body, Body::Signal { is_true: true, .. });
            let signals: Vec<bool> = bodies(&mut subscription).into_iter().map(is_true).collect();
            assert_eq!(signals, expected, "{second}");
        };
        look(1, &[1, 2, 9, 19], &[]);
        look(2, &[3, 4, 5], &[true]);
        look(3, &[6], &[]);
        look(4, &[9], &[false]);
    }

    #[test]
    fn a_script_runs_over_what_came_since_it_ran() {
        let script = |wanted: &mut ChannelRequest| wanted.script = Some("#{ events: records.len() }".into());
        let mut subscription = Subscription::new(wanted("", script), Duration::ZERO);
        (0..SCRIPTED_AT_ONCE_MAX as u64 + 5)
            .for_each(|number| hear(&mut subscription, number, Duration::ZERO));
        subscription.check_due(1, Duration::from_secs(1));
        let figures = |count: f64| Body::Figures(vec![("events".into(), count)]);
        assert_eq!(bodies(&mut subscription), [figures(SCRIPTED_AT_ONCE_MAX as f64), figures(5.0)]);
        let only = |wanted: &mut ChannelRequest| wanted.script = Some("[records[1]]".into());
        subscription.alter(wanted("", only), Duration::from_secs(2));
        [7, 8, 9].into_iter().for_each(|number| hear(&mut subscription, number, Duration::from_secs(2)));
        subscription.check_due(1, Duration::from_secs(3));
        assert_eq!(bodies(&mut subscription), [Body::Event(Box::new(occurrence(8)))]);
    }

    proptest! {
        #[test]
        fn whatever_happens_each_that_passes_is_sent_or_counted(
            steps in prop::collection::vec((0..6_u8, 0..40_u64), 1..200),
        ) {
            let filters = ["", "job ~ \"[02468]$\"", "user = \"ada\" and job !~ \"7\""];
            let passes = |filter: usize, number: u64| match filter {
                0 => true,
                1 => number.is_multiple_of(2),
                _ => !number.to_string().contains('7'),
            };
            let budget = |wanted: &mut ChannelRequest| wanted.budget = Budget { queue_bytes: 4096, ..Budget::default() };
            let mut subscription = Subscription::new(wanted("", budget), Duration::ZERO);
            let (mut filter, mut number, mut passed, mut covered) = (0, 0_u64, Vec::new(), 0_u64);
            let mut sent = 0;
            for (what, many) in steps {
                let now = Duration::from_millis(number);
                match what {
                    0 => {
                        filter = many as usize % 3;
                        subscription.alter(wanted(filters[filter], budget), now);
                    }
                    1 => {
                        for entry in subscription.take(many as usize).entries() {
                            prop_assert_eq!(entry.number, covered);
                            if let Body::Missed(count) = entry.body {
                                covered += count;
                                continue;
                            }
                            let Body::Event(event) = entry.body else { panic!("{entry:?}") };
                            prop_assert_eq!(passed[covered as usize], event.number);
                            sent += 1;
                            covered += 1;
                        }
                    }
                    _ => for _ in 0..many {
                        hear(&mut subscription, number, now);
                        passed.extend(passes(filter, number).then_some(number));
                        number += 1;
                    }
                }
            }
            prop_assert_eq!(subscription.status().next, passed.len() as u64);
            let rest: Vec<_> = subscription.take(usize::MAX).entries().collect();
            sent += rest.iter().filter(|entry| matches!(entry.body, Body::Event(_))).count() as u64;
            prop_assert_eq!(sent + subscription.status().missed_total, passed.len() as u64);
        }
    }
}
