//! What an import prints at its end: sums, what was left out, and why.
//!
//! Not here: the jobs on their way (`batch`).

use super::batch::Answered;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::Query;
use crate::output::{note, report, times};
use crate::trial::log::Log;
use jiff::tz::TimeZone;
use serde_json::json;
use wire::api::UnixTime;
use wire::api::job_import::Refused;
use wire::shown::count;
use wire::time::Time;

/// Lines without a rule that are named.
const LINES_SHOWN: usize = 3;

/// What was found in the files.
#[derive(Default)]
pub(super) struct Summary {
    jobs: u64,
    /// Times of the first and the last end.
    ended: Option<(Time, Time)>,
    /// Jobs that had not ended, or whose end has no time.
    pub(super) unfinished: u64,
    /// The first lines of the present file that matched no rule.
    unknown: Vec<u64>,
    unknown_total: u64,
    notes: Vec<String>,
}

impl Summary {
    pub(super) fn job(&mut self, ended: Option<Time>) {
        self.jobs += 1;
        if let Some(at) = ended {
            let (first, last) = self.ended.unwrap_or((at, at));
            self.ended = Some((first.min(at), last.max(at)));
        }
    }

    pub(super) fn unknown(&mut self, line: u64) {
        self.unknown_total += 1;
        if self.unknown.len() < LINES_SHOWN {
            self.unknown.push(line);
        }
    }

    /// Notes what a file that was read had besides jobs.
    pub(super) fn log(&mut self, shown: &str, log: &Log, cut_lines: u64) {
        let unknown = log.counters().unknown;
        if unknown > 0 {
            let lines: Vec<String> = self.unknown.drain(..).map(|line| line.to_string()).collect();
            let more = if unknown > LINES_SHOWN as u64 { ", …" } else { "" };
            self.notes.push(format!(
                "{shown}: {} that no rule of the filter takes (line {}{more}); visperf filter try shows them",
                count(unknown, "line"),
                lines.join(", ")
            ));
        }
        if cut_lines > 0 {
            let lines = count(cut_lines, "line");
            self.notes.push(format!("{shown}: {lines} longer than 1 MiB, only the beginning read"));
        }
    }

    /// Says after an error what was stored before it.
    pub(super) fn note_stored(&self, answered: &Answered) {
        let sums = &answered.sums;
        if sums.stored + sums.completed + sums.known > 0 {
            note(&format!(
                "{} before the error stored, {} completed, {} known; the same command goes on",
                count(sums.stored, "job"),
                sums.completed,
                sums.known
            ));
        }
    }

    /// Prints the sums.
    ///
    /// # Errors
    /// If jobs were refused.
    pub(super) fn print(mut self, answered: &Answered, is_trial: bool, query: &Query) -> Result<(), Failure> {
        let mut output = query.width.output();
        match query.json {
            true => output.json(&self.json(answered, is_trial))?,
            false => output.line(&self.text(answered, is_trial))?,
        }
        output.flush()?;
        if self.unfinished > 0 {
            self.notes.push(format!(
                "{} without an end, or without its time: not imported",
                count(self.unfinished, "job")
            ));
        }
        self.notes.iter().for_each(|text| note(text));
        for kind in Refused::ALL {
            print_refused(*kind, answered);
        }
        let sums = &answered.sums;
        if is_trial && sums.stored > sums.room {
            report(&format!("only {} more have room; the others will be refused", count(sums.room, "job")));
        }
        if self.jobs == 0 && answered.refused() == 0 {
            let text = "no job that has ended was found; `visperf filter try FILE` shows what the filter makes of each line";
            return Err(Failure::Failed(text.to_owned()));
        }
        if answered.refused() > 0 { Err(Failure::Printed(Kind::Failed)) } else { Ok(()) }
    }

    fn text(&self, answered: &Answered, is_trial: bool) -> String {
        let day = |time: Time| {
            let shown = times::shown(time, &TimeZone::system());
            shown.split([' ', 'T']).next().unwrap_or_default().to_owned()
        };
        let of = self.ended.map(|(first, last)| match (day(first), day(last)) {
            (first, last) if first == last => format!(" that ended on {first}"),
            (first, last) => format!(" that ended from {first} to {last}"),
        });
        let sums = &answered.sums;
        let would = if is_trial { "would be " } else { "" };
        format!(
            "{}{}: {} {would}stored, {} completed, {} known, {} refused",
            count(self.jobs, "job"),
            of.unwrap_or_default(),
            sums.stored,
            sums.completed,
            sums.known,
            answered.refused()
        )
    }

    fn json(&self, answered: &Answered, is_trial: bool) -> serde_json::Value {
        let sums = &answered.sums;
        json!({
            "jobs": self.jobs,
            "dry_run": is_trial,
            "stored": sums.stored,
            "completed": sums.completed,
            "known": sums.known,
            "refused": answered.refused(),
            "unfinished": self.unfinished,
            "unknown_lines": self.unknown_total,
            "first_ended": self.ended.map(|(first, _)| UnixTime(first)),
            "last_ended": self.ended.map(|(_, last)| UnixTime(last)),
        })
    }
}

/// Prints some of the jobs that were refused for this kind of reason.
fn print_refused(kind: Refused, answered: &Answered) {
    let Some((all, first)) = answered.refused.get(kind.as_str()) else { return };
    for job in first {
        report(&clean(&format!("refused: {}: {}", job.id, job.why)));
    }
    let more = all.saturating_sub(first.len() as u64);
    if more > 0 {
        report(&format!("refused: {} more for such a reason", count(more, "job")));
    }
    if kind == Refused::Shifted {
        note(
            "--zone says in which time zone a file prints times; --replace corrects what was imported with a wrong one",
        );
    }
}
