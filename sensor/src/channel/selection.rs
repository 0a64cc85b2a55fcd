//! Selection of the processes, events and calls of a channel.
//!
//! Pure. Not here: finding a user's number (`process::details`), which processes serve a job (`serving`),
//! metrics (`host_evaluation`).

use super::event_evaluation::EventSubject;
use super::fields::call::Calls;
use super::fields::event::Events;
use super::fields::process::ProcessView;
use crate::process::table::Table;
use crate::serving::job_matcher;
use compact_str::CompactString;
use wire::channel::stream::{Body, Change, Occurrence};
use wire::channel::{self, Kind, Selection, TEXT_LEN_MAX_BYTES};
use wire::event::Outcome;
use wire::name_match;
use wire::process::Process;

/// Most ancestors checked: no real process tree is deeper, and reused process ids may form a cycle.
const ANCESTORS_MAX: usize = 256;

/// Why a selection is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Bounds(#[from] channel::Error),
    /// It has a selector that this kind does not have.
    #[error("selection: expected {} for kind {}, found {found}", kind.selectors().join(", "), kind.as_str())]
    Selector {
        kind: Kind,
        /// Name of the selector.
        found: &'static str,
    },
    /// The pattern for the name of a metric is invalid.
    #[error("selection.metric: {0}")]
    Metric(String),
}

/// Checks the lengths of the texts of a selection, and that its selectors fit the kind.
///
/// # Errors
/// The first one that does not.
pub fn check(kind: Kind, selection: &Selection) -> Result<(), Error> {
    let Selection { name, uid, command, pid, under, job, call, user, event, outcomes, metric } = selection;
    let texts = [
        ("name", name),
        ("command", command),
        ("job", job),
        ("call", call),
        ("user", user),
        ("metric", metric),
    ];
    for (what, text) in texts {
        let found = text.as_ref().map_or(0, |text| text.len());
        if found > TEXT_LEN_MAX_BYTES {
            return Err(channel::Error::Text { what, max: TEXT_LEN_MAX_BYTES, found }.into());
        }
    }
    let others = [
        ("user", uid.is_some()),
        ("pid", pid.is_some()),
        ("under", under.is_some()),
        ("kind", event.is_some()),
        ("outcome", !outcomes.is_empty()),
    ];
    let mut given = texts.map(|(what, text)| (what, text.is_some())).into_iter().chain(others);
    let wrong = given.find(|(what, is_given)| *is_given && !kind.selectors().contains(what));
    wrong.map_or(Ok(()), |(found, _)| Err(Error::Selector { kind, found }))
}

/// Whether the selection includes the process. `seen.command` is needed only if the selection has a command.
#[must_use]
pub fn fits(selection: &Selection, seen: &ProcessView<'_>, table: &Table) -> bool {
    let Selection { name, uid, command, pid, under, .. } = selection;
    let process = seen.process;
    pid.is_none_or(|pid| process.key.pid == pid)
        && uid.is_none_or(|uid| process.uid == uid)
        && name.as_ref().is_none_or(|name| name_match::matches(name, &process.name))
        && command
            .as_ref()
            .is_none_or(|command| seen.command.is_some_and(|other| name_match::matches(command, other)))
        && under.is_none_or(|top| is_under(top, process, table))
}

fn is_under(top: u32, process: &Process, table: &Table) -> bool {
    let up = |process: &&Process| table.get(process.parent);
    std::iter::successors(Some(process), up).take(ANCESTORS_MAX).any(|process| process.key.pid == top)
}

impl EventSubject for Events {
    fn includes(selection: &Selection, record: &Occurrence) -> bool {
        let content = &record.event.content;
        selection.event.is_none_or(|kind| content.kind == kind)
            && has_outcome(selection, content.outcome)
            && is_of_call(selection, &record.event.call, &content.job, (&record.name, &record.user))
    }

    fn body(record: Occurrence) -> Body {
        Body::Event(Box::new(record))
    }
}

impl EventSubject for Calls {
    fn includes(selection: &Selection, record: &Change) -> bool {
        let call = &record.call;
        has_outcome(selection, call.outcome)
            && is_of_call(selection, &call.id, &call.job, (&call.name, &call.user))
    }

    fn body(record: Change) -> Body {
        Body::Call(Box::new(record))
    }
}

/// Whether the selection includes this outcome.
fn has_outcome(selection: &Selection, outcome: Option<Outcome>) -> bool {
    selection.outcomes.is_empty() || outcome.is_some_and(|outcome| selection.outcomes.contains(&outcome))
}

/// Whether the selection includes a call with this id, job, name and user.
fn is_of_call(selection: &Selection, id: &str, job: &str, (name, user): (&str, &str)) -> bool {
    let means = |wanted: &Option<CompactString>, text: &str| {
        wanted.as_ref().is_none_or(|wanted| name_match::matches(wanted, text))
    };
    let Selection { name: named, user: whose, job: number, call, .. } = selection;
    means(named, name)
        && means(call, id)
        && whose.as_ref().is_none_or(|whose| whose == user)
        && number.as_ref().is_none_or(|number| job_matcher::bears(id, job, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use wire::event;
    use wire::id::{Generation, SensorKey};
    use wire::process::ProcessKey;
    use wire::time::Time;

    #[test]
    fn those_are_meant_that_fit_all_that_is_given() {
        let mut table = Table::default();
        table.begin(1, 1, Coverage::All);
        for (pid, parent, uid, name) in [
            (1, 0, 0, "init"),
            (2, 1, 7, "bash"),
            (3, 2, 7, "python3"),
            (4, 1, 7, "python3"),
            (8, 9, 7, "a"),
            (9, 8, 7, "b"),
        ] {
            let key = ProcessKey { pid, start_ns: 0 };
            table.set(Process { key, parent, uid, name: name.into(), ..Process::default() });
        }
        table.end(0);
        let check = |selection: Selection, expected: &[u32]| {
            let is_reported = |process: &&Process| {
                let command = (process.key.pid == 3).then_some("python3 train.py");
                fits(
                    &selection,
                    &ProcessView {
                        process,
                        cpu: None,
                        command,
                        visibility: crate::process::visibility::Visibility::ALL,
                    },
                    &table,
                )
            };
            let pids: Vec<u32> =
                table.rows().iter().flatten().filter(is_reported).map(|process| process.key.pid).collect();
            assert_eq!(pids, expected, "{selection:?}");
        };
        check(Selection::default(), &[1, 2, 3, 4, 8, 9]);
        check(Selection { name: Some("py*".into()), ..Selection::default() }, &[3, 4]);
        check(Selection { uid: Some(7), under: Some(2), ..Selection::default() }, &[2, 3]);
        check(Selection { under: Some(1), ..Selection::default() }, &[1, 2, 3, 4]);
        check(Selection { under: Some(5), ..Selection::default() }, &[]);
        check(Selection { pid: Some(4), uid: Some(0), ..Selection::default() }, &[]);
        check(Selection { command: Some("*train*".into()), ..Selection::default() }, &[3]);
        let long =
            Selection { name: Some("a".repeat(TEXT_LEN_MAX_BYTES + 1).into()), ..Selection::default() };
        assert!(super::check(Kind::Process, &long).is_err());
    }

    #[test]
    fn a_selection_of_another_kind_is_refused_with_what_there_is() {
        let given = Selection { pid: Some(4), ..Selection::default() };
        assert_eq!(super::check(Kind::Process, &given), Ok(()));
        for kind in [Kind::Host, Kind::Event, Kind::Call] {
            let text = super::check(kind, &given).expect_err("no processes").to_string();
            assert!(text.starts_with("selection: expected ") && text.ends_with("found pid"), "{text}");
        }
        let given = Selection { event: Some(event::Kind::JobEnd), ..Selection::default() };
        assert!(super::check(Kind::Call, &given).is_err());
    }

    fn occurrence() -> Occurrence {
        let mut content = event::Content::new(event::Kind::JobEnd, Time::from_micros(1));
        content.job = "17".into();
        content.outcome = Some(event::Outcome::Failed);
        let id = event::Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 };
        let source = event::Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() };
        let event = event::Event { id, seen: content.time, call: "slurm:94_2".into(), content, source };
        Occurrence { number: 3, event, name: "train".into(), user: "ada".into() }
    }

    #[test]
    fn an_event_is_meant_by_what_is_known_of_its_call() {
        let record = occurrence();
        let check = |change: fn(&mut Selection), expected: bool| {
            let mut selection = Selection::default();
            change(&mut selection);
            assert_eq!(Events::includes(&selection, &record), expected, "{selection:?}");
        };
        check(|_| (), true);
        check(|wanted| wanted.user = Some("ada".into()), true);
        check(|wanted| wanted.user = Some("bob".into()), false);
        check(|wanted| wanted.name = Some("tr*".into()), true);
        check(|wanted| wanted.name = Some("tr".into()), false);
        check(|wanted| wanted.call = Some("slurm:*".into()), true);
        check(|wanted| wanted.event = Some(event::Kind::JobStart), false);
        check(|wanted| wanted.outcomes = vec![event::Outcome::Failed], true);
        check(|wanted| wanted.outcomes = vec![event::Outcome::Ok, event::Outcome::Failed], true);
        check(|wanted| wanted.outcomes = vec![event::Outcome::Ok], false);
        for (job, expected) in [("17", true), ("94", true), ("94_2", true), ("9", false), ("1", false)] {
            let selection = Selection { job: Some(job.into()), ..Selection::default() };
            assert_eq!(Events::includes(&selection, &record), expected, "{job}");
        }
    }
}
