//! Triggers of recordings: a line of a log, the start or end of a call, or a condition that becomes true.
//!
//! Pure: events and the time in, windows out. Rules: a trigger is quiet for its cool-down after it has fired, and
//! after another trigger has recorded an event that it matches, so that a storm of lines makes few recordings;
//! the suppressed events are counted. An event from before the reach of the ring (an old log that is read late)
//! fires nothing and is counted. An event that could not be recorded is counted, and all triggers that match it
//! are soon ready again.
//! Not here: orders of operators, and what is done in a window (`worker`), watching conditions
//! (`conditions`).

use compact_str::{CompactString, format_compact};
use regex::Regex;
use serde::Deserialize;
use std::time::Duration;
use wire::channel::ChannelRequest;
use wire::event::{Event, Kind, Value};
use wire::time::Time;

/// How long a trigger is quiet after its recording could not be started.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// Which events a trigger checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// All events.
    #[default]
    Line,
    /// Events that start a job, a part of a job or a transfer.
    CallStart,
    /// Events that end one of these.
    CallEnd,
    /// No events: a condition over the processes.
    Condition,
}

impl On {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            On::Line => "line",
            On::CallStart => "call-start",
            On::CallEnd => "call-end",
            On::Condition => "condition",
        }
    }

    fn fits(self, kind: Kind) -> bool {
        match self {
            On::Line => true,
            On::CallStart => matches!(kind, Kind::JobStart | Kind::StepStart | Kind::TransferStart),
            On::CallEnd => matches!(kind, Kind::JobEnd | Kind::StepEnd | Kind::TransferEnd),
            On::Condition => false,
        }
    }
}

/// Pattern for events: every expression given must match its field.
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    /// Matches the kind.
    pub kind: Option<Regex>,
    /// Matches the id of the call.
    pub call: Option<Regex>,
    /// Matches the middleware's name of the job.
    pub job: Option<Regex>,
    /// Matches the outcome; events without one do not match.
    pub outcome: Option<Regex>,
    /// Matches the user.
    pub user: Option<Regex>,
    /// Matches one of the parties.
    pub host: Option<Regex>,
    /// Matches one of the other texts.
    pub text: Option<Regex>,
}

impl Pattern {
    fn fits(&self, event: &Event) -> bool {
        let content = &event.content;
        let is_found = |pattern: &Option<Regex>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
        };
        is_found(&self.kind, content.kind.as_str())
            && is_found(&self.call, &event.call)
            && is_found(&self.job, &content.job)
            && is_found(&self.user, &content.user)
            && self.outcome.as_ref().is_none_or(|pattern| {
                content.outcome.is_some_and(|outcome| pattern.is_match(outcome.as_str()))
            })
            && self.host.as_ref().is_none_or(|pattern| {
                let parties = content.from.split(',').chain(content.to.split(','));
                parties.map(str::trim).any(|party| !party.is_empty() && pattern.is_match(party))
            })
            && self
                .text
                .as_ref()
                .is_none_or(|pattern| content.attributes.iter().any(|(_, value)| is_in(pattern, value)))
    }
}

fn is_in(pattern: &Regex, value: &Value) -> bool {
    match value {
        Value::Text(text) => pattern.is_match(text),
        Value::List(list) => list.iter().any(|text| pattern.is_match(text)),
        Value::Bytes(_) => false,
    }
}

#[derive(Clone, Debug)]
pub struct Trigger {
    /// Name, which its recordings show.
    pub name: CompactString,
    /// Which events it checks.
    pub on: On,
    pub pattern: Pattern,
    /// Subscription, if it is a condition.
    pub condition: Option<Box<ChannelRequest>>,
    /// How long before the event is recorded.
    pub before: Duration,
    /// How long after the event is recorded.
    pub after: Duration,
    /// How long it is quiet after its event was recorded.
    pub cool_down: Duration,
}

impl Trigger {
    fn window(&self, number: usize, note: CompactString, at_ns: u64) -> WindowRequest {
        WindowRequest {
            number,
            trigger: self.name.clone(),
            note,
            at_ns,
            from_ns: at_ns.saturating_sub(nanos(self.before)),
            to_ns: at_ns.saturating_add(nanos(self.after)),
        }
    }
}

/// The current time on both clocks of the host.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub boot_ns: u64,
    /// Calendar time of the boot, by the current calendar.
    pub booted: Time,
}

impl Now {
    /// Converts a date to nanoseconds since boot.
    #[must_use]
    pub fn moment_ns(self, time: Time) -> u64 {
        u64::try_from(time.since(self.booted).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A window to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRequest {
    /// Number of the trigger, from 0.
    pub number: usize,
    /// Name of the trigger.
    pub trigger: CompactString,
    /// The event in a few words.
    pub note: CompactString,
    /// When the event happened, in nanoseconds since boot.
    pub at_ns: u64,
    /// Start of the window.
    pub from_ns: u64,
    /// End of the window.
    pub to_ns: u64,
}

/// Counters of a trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub fired_total: u64,
    /// Matching events while it was quiet, or that an earlier trigger recorded.
    pub suppressed_total: u64,
    /// Matching events from before the reach of the ring.
    pub late_total: u64,
    /// Matching events whose recording could not be started.
    pub refused_total: u64,
}

/// All triggers of a sensor.
#[derive(Debug, Default)]
pub struct Triggers {
    states: Vec<TriggerState>,
    reach: Duration,
}

#[derive(Debug)]
struct TriggerState {
    trigger: Trigger,
    quiet_until_ns: u64,
    /// Number of the trigger whose recording made it quiet.
    recorded_by: Option<usize>,
    count: Count,
}

impl TriggerState {
    fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns < self.quiet_until_ns
    }

    /// Trigger `number` records an event that this one matches.
    fn recorded(&mut self, number: usize, now_ns: u64) {
        self.recorded_by = Some(number);
        self.quiet_until_ns = now_ns.saturating_add(nanos(self.trigger.cool_down));
    }
}

impl Triggers {
    /// Creates the triggers for a ring that reaches back so far.
    #[must_use]
    pub fn new(triggers: Vec<Trigger>, reach: Duration) -> Triggers {
        let state =
            |trigger| TriggerState { trigger, quiet_until_ns: 0, recorded_by: None, count: Count::default() };
        Triggers { states: triggers.into_iter().map(state).collect(), reach }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Checks an event; returns the window of the first trigger that fires. For the other triggers that
    /// match, the event counts as suppressed, and they become quiet: it is recorded only once.
    pub fn event(&mut self, event: &Event, now: Now) -> Option<WindowRequest> {
        let mut first: Option<WindowRequest> = None;
        let seen_ns = now.moment_ns(event.seen).min(now.boot_ns);
        let at_ns = now.moment_ns(event.content.time).min(seen_ns);
        let is_late = now.boot_ns.saturating_sub(at_ns) > nanos(self.reach);
        for (number, state) in self.states.iter_mut().enumerate() {
            let trigger = &state.trigger;
            if !trigger.on.fits(event.content.kind) || !trigger.pattern.fits(event) {
                continue;
            }
            if is_late {
                state.count.late_total += 1;
                continue;
            }
            if state.is_quiet(now.boot_ns) {
                state.count.suppressed_total += 1;
                continue;
            }
            match &first {
                Some(first) => {
                    state.count.suppressed_total += 1;
                    state.recorded(first.number, now.boot_ns);
                }
                None => {
                    state.count.fired_total += 1;
                    first = Some(state.trigger.window(number, describe(event), at_ns));
                    state.recorded(number, now.boot_ns);
                }
            }
        }
        first
    }

    /// The condition of trigger `number` became true at `at_ns` with this value; returns the window, unless
    /// the trigger is quiet.
    pub fn signal(&mut self, number: usize, at_ns: u64, value: f64) -> Option<WindowRequest> {
        let state = self.states.get_mut(number)?;
        if state.is_quiet(at_ns) {
            state.count.suppressed_total += 1;
            return None;
        }
        state.count.fired_total += 1;
        state.recorded(number, at_ns);
        let condition = state.trigger.condition.as_ref()?.condition.as_ref()?;
        Some(state.trigger.window(number, format_compact!("{condition}, at {value}"), at_ns))
    }

    /// The recording of this trigger could not be started: the event counts as refused, and the triggers that
    /// match it are soon ready again.
    pub fn refuse(&mut self, number: usize, now_ns: u64) {
        let Some(TriggerState { count, .. }) = self.states.get_mut(number) else { return };
        count.fired_total = count.fired_total.saturating_sub(1);
        count.refused_total += 1;
        for state in self.states.iter_mut().filter(|state| state.recorded_by == Some(number)) {
            let wait = state.trigger.cool_down.min(AFTER_REFUSAL);
            state.quiet_until_ns = now_ns.saturating_add(nanos(wait));
        }
    }

    /// Each trigger with its counters.
    pub fn counts(&self) -> impl Iterator<Item = (&Trigger, Count)> {
        self.states.iter().map(|state| (&state.trigger, state.count))
    }
}

fn describe(event: &Event) -> CompactString {
    let content = &event.content;
    let whose = if event.call.is_empty() { &content.job } else { &event.call };
    let outcome = content.outcome.map_or("", |outcome| outcome.as_str());
    let words = [content.kind.as_str(), whose, outcome];
    words.into_iter().filter(|word| !word.is_empty()).fold(CompactString::default(), |text, word| {
        if text.is_empty() { word.into() } else { format_compact!("{text} {word}") }
    })
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Content, Id, Outcome, Source};
    use wire::id::{Generation, SensorKey};

    const BOOTED: i64 = 1_700_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn now(secs: u64) -> Now {
        Now { boot_ns: secs * SECOND, booted: Time::from_micros(BOOTED * 1_000_000) }
    }

    /// The end of a job, written and read at these seconds after boot.
    fn job_end(job: &str, outcome: Outcome, written: i64, seen: i64) -> Event {
        let time = |secs: i64| Time::from_micros((BOOTED + secs) * 1_000_000);
        let mut content = Content::new(Kind::JobEnd, time(written));
        content.job = job.into();
        content.user = "ada".into();
        content.to = "wn01,wn02".into();
        content.outcome = Some(outcome);
        content.attributes.push(("reason".into(), Value::Text("Prolog failed".into())));
        content.attributes.push(("nodes".into(), Value::List(vec!["gpu7".into()])));
        Event {
            id: Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 },
            seen: time(seen),
            call: format_compact!("slurm:{job}"),
            content,
            source: Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        }
    }

    fn trigger(set: impl FnOnce(&mut Trigger)) -> Triggers {
        Triggers::new(vec![one(set)], Duration::from_secs(60))
    }

    fn one(set: impl FnOnce(&mut Trigger)) -> Trigger {
        let mut trigger = Trigger {
            name: "failed".into(),
            on: On::Line,
            pattern: Pattern::default(),
            condition: None,
            before: Duration::from_secs(30),
            after: Duration::from_secs(10),
            cool_down: Duration::from_secs(60),
        };
        set(&mut trigger);
        trigger
    }

    fn expression(text: &str) -> Option<Regex> {
        Some(Regex::new(text).expect("good"))
    }

    #[test]
    fn the_window_lies_around_what_the_line_reports() {
        let mut triggers = trigger(|trigger| trigger.pattern.outcome = expression("^failed$"));
        let window = triggers.event(&job_end("17", Outcome::Failed, 998, 1000), now(1000)).expect("it fits");
        assert_eq!((window.at_ns, window.from_ns, window.to_ns), (998 * SECOND, 968 * SECOND, 1008 * SECOND));
        assert_eq!((window.trigger.as_str(), window.note.as_str()), ("failed", "job_end slurm:17 failed"));
        assert_eq!(triggers.event(&job_end("18", Outcome::Ok, 1100, 1100), now(1100)), None);
        // A log whose clock is ahead.
        let window = triggers.event(&job_end("19", Outcome::Failed, 2000, 1200), now(1200)).expect("it fits");
        assert_eq!(window.at_ns, 1200 * SECOND);
    }

    #[test]
    fn every_field_is_looked_at() {
        type Field = fn(&mut Pattern) -> &mut Option<Regex>;
        let fields: [(Field, &str, &str); 7] = [
            (|pattern| &mut pattern.kind, "^job_", "^step_"),
            (|pattern| &mut pattern.call, "slurm:17", "slurm:18"),
            (|pattern| &mut pattern.job, "^1[67]$", "^7"),
            (|pattern| &mut pattern.outcome, "fail", "ok"),
            (|pattern| &mut pattern.user, "ada", "bob"),
            (|pattern| &mut pattern.host, "^wn02$", "^$"),
            (|pattern| &mut pattern.text, "gpu[0-9]", "gpu[0-6]"),
        ];
        for (field, fitting, other) in fields {
            for (text, fits) in [(fitting, true), (other, false)] {
                let mut triggers = trigger(|trigger| *field(&mut trigger.pattern) = expression(text));
                let window = triggers.event(&job_end("17", Outcome::Failed, 1, 1), now(1));
                assert_eq!(window.is_some(), fits, "{text}");
            }
        }
        for (on, fits) in [(On::CallEnd, true), (On::CallStart, false)] {
            let mut triggers = trigger(|trigger| trigger.on = on);
            assert_eq!(triggers.event(&job_end("17", Outcome::Ok, 1, 1), now(1)).is_some(), fits);
        }
    }

    #[test]
    fn a_storm_of_lines_makes_few_recordings_and_the_rest_is_counted() {
        let mut triggers = trigger(|_| {});
        let mut fired = 0;
        for second in 1000..1180 {
            for _ in 0..10 {
                let event = job_end("17", Outcome::Failed, second, second);
                let second = u64::try_from(second).expect("after boot");
                fired += u64::from(triggers.event(&event, now(second)).is_some());
            }
        }
        let (_, count) = triggers.counts().next().expect("one");
        assert_eq!((fired, count.fired_total, count.suppressed_total), (3, 3, 1797));
    }

    #[test]
    fn a_storm_that_several_triggers_match_makes_one_recording() {
        let all = [one(|_| {}), one(|_| {}), one(|trigger| trigger.pattern.outcome = expression("^ok$"))];
        let mut triggers = Triggers::new(all.to_vec(), Duration::from_secs(60));
        let mut fire = |outcome, secs: u32| {
            let event = job_end("17", outcome, secs.into(), secs.into());
            triggers.event(&event, now(secs.into())).map(|window| window.number)
        };
        assert_eq!(fire(Outcome::Failed, 1000), Some(0));
        assert_eq!(fire(Outcome::Failed, 1001), None, "the recording of the first trigger shows as much");
        assert_eq!(fire(Outcome::Ok, 1002), Some(2), "it did not match what was recorded");
        assert_eq!(fire(Outcome::Failed, 1060), Some(0));
        let counts: Vec<_> =
            triggers.counts().map(|(_, count)| (count.fired_total, count.suppressed_total)).collect();
        assert_eq!(counts, [(2, 2), (0, 4), (1, 0)]);
    }

    #[test]
    fn all_triggers_that_match_are_soon_ready_again_after_a_refusal() {
        let all = [one(|trigger| trigger.cool_down = Duration::ZERO), one(|_| {})];
        let mut triggers = Triggers::new(all.to_vec(), Duration::from_secs(60));
        let event = |job: &str| job_end(job, Outcome::Failed, 1000, 1000);
        let window = triggers.event(&event("17"), now(1000)).expect("it fits");
        triggers.refuse(window.number, 1000 * SECOND);
        let quiet = |triggers: &Triggers, secs: u64| {
            triggers.states.iter().map(|state| state.is_quiet(secs * SECOND)).collect::<Vec<_>>()
        };
        assert_eq!(quiet(&triggers, 1000), [false, true]);
        assert_eq!(quiet(&triggers, 1001), [false, false]);
    }

    #[test]
    fn a_condition_fires_and_is_quiet_for_its_cool_down() {
        let condition = wire::channel::expression::condition("count > 2").expect("understood");
        let wanted = ChannelRequest { condition: Some(condition), ..ChannelRequest::default() };
        let mut triggers = trigger(|trigger| {
            trigger.on = On::Condition;
            trigger.condition = Some(Box::new(wanted.clone()));
        });
        assert_eq!(triggers.event(&job_end("17", Outcome::Ok, 1, 1), now(1)), None, "no event is meant");
        let window = triggers.signal(0, 1000 * SECOND, 3.5).expect("it fires");
        assert_eq!((window.from_ns, window.to_ns), (970 * SECOND, 1010 * SECOND));
        assert!(window.note.starts_with("count > 2") && window.note.ends_with(", at 3.5"), "{}", window.note);
        assert_eq!(triggers.signal(0, 1059 * SECOND, 3.5), None);
        assert!(triggers.signal(0, 1060 * SECOND, 3.5).is_some());
        assert_eq!(triggers.signal(1, 9000 * SECOND, 3.5), None, "there is none");
        let (_, count) = triggers.counts().next().expect("one");
        assert_eq!((count.fired_total, count.suppressed_total), (2, 1));
    }

    #[test]
    fn what_could_not_be_recorded_did_not_fire_and_may_soon() {
        let mut triggers = trigger(|_| {});
        let event = |secs: i64| job_end("17", Outcome::Failed, secs, secs);
        let window = triggers.event(&event(1000), now(1000)).expect("it fits");
        triggers.refuse(window.number, 1000 * SECOND);
        assert_eq!(triggers.event(&event(1000), now(1000)), None, "a storm is not tried line by line");
        assert!(triggers.event(&event(1001), now(1001)).is_some());
        assert_eq!(triggers.event(&event(1002), now(1002)), None, "it fired, and is quiet");
        let (_, count) = triggers.counts().next().expect("one");
        assert_eq!((count.fired_total, count.suppressed_total, count.refused_total), (1, 2, 1));
    }

    #[test]
    fn an_old_log_fires_nothing() {
        let mut triggers = trigger(|_| {});
        assert_eq!(triggers.event(&job_end("17", Outcome::Failed, 900, 1000), now(1000)), None);
        let (_, count) = triggers.counts().next().expect("one");
        assert_eq!(count, Count { late_total: 1, ..Count::default() });
        assert!(triggers.event(&job_end("17", Outcome::Failed, 940, 1000), now(1000)).is_some());
    }
}
