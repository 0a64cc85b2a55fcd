//! Details of a job: the facts that its events state, each with its line, and its earlier runs.
//!
//! Pure. Rule: a fact of the better authority is used, and of one authority the later one, so the order in which logs
//! are read does not matter. Facts of steps and transfers are not those of a job.
//! Not here: the course of the call (`progress`).

use crate::amount;
use crate::earlier_runs::EarlierRuns;
use crate::span;
use compact_str::{CompactString, ToCompactString};
use serde::{Deserialize, Serialize};
use wire::call::Authority;
use wire::call::job::{Fact, JobDetails, Line, Statement, Unit};
use wire::event::{Content, Id, Kind, Value};

/// Attribute of a request to cancel that was refused.
const REFUSED: &str = "refused";

/// Longest text of a fact, in bytes.
const TEXT_LEN_MAX_BYTES: usize = 200;

/// Most lines of a job in memory; beyond, those that no fact names are dropped. More than there are facts.
const LINES_MAX: usize = 32;

/// What is known of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Details {
    facts: Vec<Statement>,
    lines: Vec<Line>,
    pub(crate) earlier: EarlierRuns,
}

/// Details of a job, if there are any. Boxed, because other calls have none.
pub(crate) type Known = Option<Box<Details>>;

impl Details {
    /// Processes an event of a job.
    pub(crate) fn report(known: &mut Known, content: &Content, by: Authority, event: Id) {
        let line = Line { event, time: content.time };
        for (name, value) in &content.attributes {
            let Some(fact) = Fact::from_word(name).filter(|fact| *fact != Fact::ImportedFrom) else {
                continue;
            };
            if let Some(value) = value_of(fact, value) {
                known.get_or_insert_default().state(fact, value, by, line);
            }
        }
        if content.kind == Kind::JobCancel && content.attribute(REFUSED).is_none() && !content.user.is_empty()
        {
            known.get_or_insert_default().state(Fact::CancelledBy, content.user.clone(), by, line);
        }
    }

    /// Adds the details of another call that is the same.
    pub(crate) fn absorb(known: &mut Known, other: &Known) {
        let Some(other) = other else { return };
        let details = known.get_or_insert_default();
        for Statement { fact, value, by, line } in &other.facts {
            if let Some(line) = other.lines.get(usize::from(*line)) {
                details.state(*fact, value.clone(), *by, *line);
            }
        }
        details.earlier.absorb(&other.earlier);
    }

    /// The details as they are shown, in an order that does not depend on that of reading.
    pub(crate) fn shown(&self) -> Box<JobDetails> {
        let mut shown =
            Details { facts: self.facts.clone(), lines: self.lines.clone(), ..Details::default() };
        shown.facts.sort_unstable_by_key(|statement| statement.fact);
        shown.drop_unused_lines();
        Box::new(JobDetails {
            facts: shown.facts,
            lines: shown.lines,
            runs: self.earlier.runs(),
            ..JobDetails::default()
        })
    }

    fn state(&mut self, fact: Fact, value: CompactString, by: Authority, line: Line) {
        let at = self.facts.iter().position(|known| known.fact == fact);
        if let Some(known) = at.map(|at| &self.facts[at]) {
            let Line { event, time } = self.lines[usize::from(known.line)];
            if (by, line.time, line.event) < (known.by, time, event) {
                return;
            }
        }
        let Some(line) = self.place_of(line) else { return };
        let statement = Statement { fact, value, by, line };
        match at {
            Some(at) => self.facts[at] = statement,
            None => self.facts.push(statement),
        }
    }

    /// The place of a line, which is added if it is new.
    fn place_of(&mut self, line: Line) -> Option<u8> {
        if let Some(at) = self.lines.iter().rposition(|known| known.event == line.event) {
            return u8::try_from(at).ok();
        }
        if self.lines.len() >= LINES_MAX {
            self.drop_unused_lines();
        }
        self.lines.push(line);
        u8::try_from(self.lines.len() - 1).ok()
    }

    fn drop_unused_lines(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        for statement in &mut self.facts {
            let line = lines[usize::from(statement.line)];
            let known = self.lines.iter().position(|known| known.event == line.event);
            let at = known.unwrap_or_else(|| {
                self.lines.push(line);
                self.lines.len() - 1
            });
            statement.line = u8::try_from(at).unwrap_or(u8::MAX);
        }
    }
}

/// Whether events of this kind state facts of the job itself.
pub(crate) fn is_of_job(kind: Kind) -> bool {
    kind.as_str().starts_with("job_")
}

/// The value of a fact in its unit; `None` if it is not one.
fn value_of(fact: Fact, value: &Value) -> Option<CompactString> {
    let text = value.as_text()?.trim();
    let number = match fact.unit() {
        Unit::Text => {
            let end = text.floor_char_boundary(TEXT_LEN_MAX_BYTES);
            return (!text.is_empty()).then(|| text[..end].into());
        }
        Unit::Count => text.parse().ok()?,
        Unit::Bytes => amount::bytes(text)?,
        Unit::Seconds => u64::try_from(span::seconds(text.as_bytes())?).ok()?,
    };
    Some(number.to_compact_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::{Generation, SensorKey};
    use wire::time::Time;

    fn event(kind: Kind, secs: i64, attributes: &[(&str, &str)]) -> Content {
        let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
        let value = |text: &str| Value::Text(text.into());
        content.attributes = attributes.iter().map(|(name, text)| ((*name).into(), value(text))).collect();
        content
    }

    fn id(offset: u64) -> Id {
        Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 }
    }

    type Reported = (Kind, i64, &'static [(&'static str, &'static str)], Authority);

    fn details(events: &[Reported]) -> JobDetails {
        let mut known = None;
        for (kind, secs, attributes, by) in events {
            Details::report(&mut known, &event(*kind, *secs, attributes), *by, id(secs.unsigned_abs()));
        }
        known.map(|known| *known.shown()).unwrap_or_default()
    }

    const SUBMITTED: Reported =
        (Kind::JobSubmit, 1, &[("queue", "long"), ("cpus", "4")], Authority::Scheduler);
    const MOVED: Reported = (Kind::JobSubmit, 5, &[("queue", "short")], Authority::Scheduler);
    const ENDED: Reported = (
        Kind::JobEnd,
        9,
        &[("queue", "short"), ("cpus", "8"), ("memory", "50M"), ("time_limit", "1-00:00:00"), ("other", "x")],
        Authority::Accounting,
    );
    const HOST: Reported = (Kind::JobStart, 7, &[("cpus", "1")], Authority::Message);

    #[test]
    fn the_better_and_the_later_statement_is_used_in_any_order_of_reading() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
            let events = [SUBMITTED, MOVED, ENDED, HOST];
            let found = details(&order.map(|at| events[at]));
            let facts = [Fact::Queue, Fact::Cpus, Fact::Memory, Fact::TimeLimit].map(|fact| found.text(fact));
            assert_eq!(facts, [Some("short"), Some("8"), Some("52428800"), Some("86400")], "{order:?}");
            assert_eq!(found.line(Fact::Cpus).map(|line| line.event), Some(id(9)), "{order:?}");
            assert_eq!(found.facts.len(), 4);
        }
        assert_eq!(details(&[SUBMITTED, MOVED]).text(Fact::Queue), Some("short"));
        assert_eq!(details(&[MOVED, SUBMITTED]).text(Fact::Queue), Some("short"));
    }

    #[test]
    fn who_last_asked_to_cancel_it_and_was_not_refused_is_known_in_any_order() {
        let cancel = |secs, user: &str, attributes: &[(&str, &str)]| Content {
            user: user.into(),
            ..event(Kind::JobCancel, secs, attributes)
        };
        let events =
            [cancel(1, "1003", &[]), cancel(5, "0", &[]), cancel(9, "1004", &[("refused", "not permitted")])];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut known = None;
            for at in order {
                Details::report(&mut known, &events[at], Authority::Scheduler, id(at as u64));
            }
            let shown = known.expect("details").shown();
            assert_eq!((shown.text(Fact::CancelledBy), shown.facts.len()), (Some("0"), 1), "{order:?}");
            assert_eq!(shown.line(Fact::CancelledBy).map(|line| line.event), Some(id(1)));
        }
    }

    #[test]
    fn what_is_no_value_of_the_fact_is_left_out() {
        let wrong: Reported = (
            Kind::JobEnd,
            1,
            &[("cpus", "many"), ("memory", "?"), ("time_limit", "UNLIMITED"), ("queue", " "), ("uid", "-1")],
            Authority::Accounting,
        );
        assert_eq!(details(&[wrong]).facts, []);
        let long = "é".repeat(200);
        let mut known = None;
        let content = event(Kind::JobEnd, 1, &[("queue", &long)]);
        Details::report(&mut known, &content, Authority::Message, id(1));
        let shown = known.expect("a job").shown();
        assert_eq!(shown.text(Fact::Queue).map(str::len), Some(TEXT_LEN_MAX_BYTES));
    }

    #[test]
    fn lines_without_a_fact_are_dropped() {
        let mut known = None;
        for secs in 0..1_000_i64 {
            let queue = format!("q{secs}");
            let content = event(Kind::JobSubmit, secs, &[("queue", &queue)]);
            Details::report(&mut known, &content, Authority::Scheduler, id(secs.unsigned_abs()));
        }
        let shown = known.expect("a job").shown();
        assert!(shown.lines.len() <= LINES_MAX);
        assert_eq!(shown.line(Fact::Queue).map(|line| line.event), Some(id(999)));
    }

    #[test]
    fn calls_that_are_the_same_have_the_facts_of_both() {
        let of = |reported: Reported| {
            let mut known = None;
            let content = event(reported.0, reported.1, reported.2);
            Details::report(&mut known, &content, reported.3, id(reported.1.unsigned_abs()));
            known
        };
        for (one, other) in [(SUBMITTED, ENDED), (ENDED, SUBMITTED)] {
            let mut known = of(one);
            Details::absorb(&mut known, &of(other));
            let shown = known.expect("a job").shown();
            assert_eq!((shown.number(Fact::Cpus), shown.text(Fact::Queue)), (Some(8), Some("short")));
        }
    }
}
