//! Format of a job as one aligned line when it changes: time, state, job, name, user, queue, and what is known of it now.
//!
//! Pure. On a terminal the heads of the columns precede the first line, and what does not fit continues on the next line,
//! as with events.

use crate::harmless::clean;
use crate::output::event_lines::{Flow, outcome_color};
use crate::output::figures::user;
use crate::output::job_table::{cpu_used, kinds, ran, state_color, waited};
use crate::output::table::{Cell, Columns};
use crate::output::times::{below, now, offset_now, shown};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Initial widths that fit most rows: time, state, job, name, user, queue.
const WIDTHS: [usize; 6] = [24, 9, 12, 12, 8, 6];
/// The same on a terminal, which shows only the time of day of what is recent.
const TERMINAL_WIDTHS: [usize; 6] = [12, 9, 12, 12, 8, 6];

/// Formats jobs one after the other.
pub(crate) struct JobLines {
    columns: Columns,
    zone: TimeZone,
    /// The offset of the zone that the head shows.
    offset: String,
    /// Whether the heads are still to be printed.
    is_head_due: bool,
}

impl JobLines {
    /// A formatter for times in `zone`, on this output.
    pub(crate) fn new(zone: TimeZone, output: &Output) -> JobLines {
        let is_terminal = output.width().is_some();
        let widths = if is_terminal { &TERMINAL_WIDTHS } else { &WIDTHS };
        JobLines { columns: Columns::new(widths), offset: offset_now(&zone), zone, is_head_due: is_terminal }
    }

    /// The line of a job; on a terminal several if needed, and the heads above the first.
    pub(crate) fn line(&mut self, job: &Job, output: &Output) -> String {
        let head = std::mem::take(&mut self.is_head_due).then(|| {
            let time = format!("TIME {}", self.offset);
            let heads = [time.as_str(), "STATE", "JOB", "NAME", "USER", "QUEUE"];
            let heads = heads.map(|head| Cell::whole(head).color(Color::Head)).to_vec();
            self.columns.row(heads, output) + "\n"
        });
        head.unwrap_or_default() + self.line_of(job, output).as_str()
    }

    fn line_of(&mut self, job: &Job, output: &Output) -> String {
        let time = changed_at(job).map_or_else(String::new, |time| match output.width() {
            Some(_) => below(&self.offset, time, &self.zone, output),
            None => shown(time, &self.zone),
        });
        let outcome = job.outcome.filter(|_| job.state == State::Ended).map(Outcome::as_str);
        let state = match outcome {
            Some(outcome) => Cell::text(outcome).color(outcome_color(outcome)),
            None => Cell::text(job.state.as_str()).color(state_color(job.state)),
        };
        let mut cells = vec![
            Cell::whole(time).color(Color::Dim),
            state,
            Cell::text(&job.id).color(Color::Name),
            Cell::text(&job.name),
            Cell::text(user(&job.user)),
            Cell::text(&job.queue),
        ];
        let parts = parts(job);
        let Some(width) = output.width() else {
            cells.push(Cell::text(parts.join(" ")));
            return self.columns.row(cells, output);
        };
        let (text, chars, next) = self.columns.row_and_end(cells, output);
        let mut flow = Flow { text, chars, next, width };
        for part in parts {
            flow.add(None, &clean(&part), output);
        }
        flow.text
    }
}

/// When a job was submitted, started or ended last.
pub(crate) fn changed_at(job: &Job) -> Option<Time> {
    [job.submitted, job.started, job.ended].into_iter().flatten().map(|time| time.0).max()
}

/// What is known of a job in its state.
fn parts(job: &Job) -> Vec<String> {
    let of = |name: &str, value: String| (!value.is_empty()).then(|| format!("{name}={value}"));
    let is_ended = job.state == State::Ended;
    let time = now();
    let usage = job.usage.filter(|_| is_ended);
    let parts = [
        of("on", job.hosts.join(",")),
        of("waited", if job.state == State::Running { waited(job, time) } else { String::new() }),
        of("ran", if is_ended { ran(job, time) } else { String::new() }),
        of("code", job.code.clone()),
        of("cpu_used", usage.map_or_else(String::new, cpu_used)),
        of("findings", kinds(job)),
        of("reason", job.reason.clone()),
    ];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn job() -> Job {
        Job {
            id: "slurm:17".to_owned(),
            name: "re\u{1b}lax".to_owned(),
            user: "ada".to_owned(),
            queue: "long".to_owned(),
            state: State::Ended,
            outcome: Some(Outcome::Failed),
            submitted: at(100),
            started: at(130),
            ended: at(190),
            hosts: vec!["wn1".to_owned(), "wn2".to_owned()],
            reason: "NonZeroExitCode".to_owned(),
            ..Job::default()
        }
    }

    #[test]
    fn a_line_has_the_time_of_the_change_and_what_is_known_now() {
        let output = Output::into_writer(std::io::sink(), None);
        let mut lines = JobLines::new(TimeZone::UTC, &output);
        let ended = lines.line(&job(), &output);
        for part in ["1970-01-01T00:03:10", " failed ", "on=wn1,wn2", "ran=60s", "reason=NonZeroExitCode"] {
            assert!(ended.contains(part), "{part} in {ended}");
        }
        assert!(!ended.contains('\u{1b}') && !ended.contains("waited"), "{ended}");
        let running = Job { state: State::Running, outcome: None, ended: None, ..job() };
        let running = lines.line(&running, &output);
        assert!(running.contains("00:02:10") && running.contains("waited=30s"), "{running}");
    }

    #[test]
    fn a_narrow_terminal_has_heads_and_no_line_that_is_too_long() {
        let output = Output::into_writer(std::io::sink(), Some(80));
        let mut lines = JobLines::new(TimeZone::UTC, &output);
        let text = lines.line(&job(), &output);
        assert!(text.starts_with("TIME Z") && text.lines().count() >= 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!lines.line(&job(), &output).contains("TIME"), "once");
    }
}
