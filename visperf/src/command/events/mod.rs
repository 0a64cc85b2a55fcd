//! `visperf events`: the events a daemon holds, and with `--follow` those to come.
//!
//! Rule: every page is asked for with the cursor of the one before, also after the connection was lost or
//! the daemon restarted; so no event is printed twice and none is left out unnoticed.

mod interrupt;

use crate::cli::{Between, OfDomain, Query, chosen, user, whole, words};
use crate::client::connection::Patience;
use crate::client::course::{Course, course, first_line};
use crate::client::{Client, PATIENCE};
use crate::command::call_names;
use crate::command::query::{Params, items, note_unheard};
use crate::exit::Failure;
use crate::output::event_lines::EventLines;
use crate::output::figures::{count, number_of, text_of};
use crate::output::seen::Seen;
use crate::output::times;
use crate::output::{Output, note};
use interrupt::Place;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use wire::event::Kind;
use wire::time::Time;

/// Events asked for at a time.
const PAGE: u64 = 1_000;
/// The most that a daemon gives of the newest.
const LAST_MAX: u64 = 10_000;
/// How long a daemon may wait for a first event before it answers with none.
const WAIT_SECS: u64 = 20;
/// Most events that are known again when a new representative tells them; some 3 MB.
const SEEN_MAX: usize = 100_000;
/// The cursor behind the newest event.
const NEWEST: &str = "end";
/// Pauses between tries to reach a daemon again: short at first, for most restarts take a second.
const AGAIN_FIRST: Duration = Duration::from_millis(250);
const AGAIN_MOST: Duration = Duration::from_secs(5);

/// Print the events of the domain, oldest first; with --limit the newest so many; with --follow also those to come
///
/// Each is what one line of one log told. Where several logs tell of one job, it has as many events of a kind, such as
/// a job_end of each of HTCondor's EventLog, SchedLog and ShadowLog, all of one call: `visperf calls` has each job once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf events --since 10m
  visperf events --limit 20
  visperf events --follow --kind job_start --kind job_end
  visperf events --call slurm:17
  visperf events --user mrossi --host wn01 --since 1h
  visperf events --json --follow | jq -r .kind")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Go on with new events as they come; begins with the next one unless --since or --cursor is given
    #[arg(long, short)]
    follow: bool,
    /// Only events of this kind, such as job_end; may be repeated
    #[arg(long, value_name = "KIND", value_parser = words(Kind::ALL.iter().map(|kind| kind.as_str())), hide_possible_values = true)]
    kind: Vec<String>,
    /// Only events of this call, as `visperf calls` names it
    #[arg(long, value_name = "CALL", value_parser = chosen)]
    call: Option<String>,
    /// Only events of the jobs of this number, as the middleware prints it, in any product; also of their parts
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    /// Only events of this user's calls: a name, or the number that is shown as `uid 1000`
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only events from or to this host, with or without its domain
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    #[command(flatten)]
    between: Between,
    /// Only the newest so many of the events that fit, printed oldest first; with --follow or --cursor the next so many
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u64::MAX))]
    limit: Option<u64>,
    /// Go on where an earlier answer's cursor says
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Ask only the sensor that is connected to, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
}

/// Print the events.
///
/// # Errors
/// If no daemon is reached (with --follow: at first), or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    if let Some(limit) = args.limit.filter(|&limit| args.is_last() && limit > LAST_MAX) {
        return Err(Failure::Usage(format!(
            "--limit {limit}: expected at most {LAST_MAX} of the newest events; --since gives all from a time on, and \
             --cursor '' with --limit the oldest so many"
        )));
    }
    let mut reading = Reading::new(args);
    let interrupt = if args.follow { Some(interrupt::catch(&reading.place)?) } else { None };
    let mut left = args.limit.unwrap_or(u64::MAX);
    let (mut was_empty, mut is_found, mut is_told) = (false, false, false);
    while left > 0 {
        let answer = reading.page(left)?;
        let events = items(&answer, "events");
        reading.tell_missed(&answer)?;
        if !is_told {
            note_unheard(&answer);
            is_told = true;
        }
        left -= reading.print(&events, &answer, left)?;
        if args.is_last() {
            is_found = !events.is_empty();
            break;
        }
        // Nothing that happens from now on is before a time that is over.
        let is_over = args.between.until.is_some_and(|until| until < times::now());
        if args.follow && is_over && events.is_empty() && was_empty {
            break;
        }
        // A page without an event ends it; one may be empty because the daemon looked through others.
        if !args.follow && events.is_empty() && (was_empty || !reading.moved) {
            break;
        }
        was_empty = events.is_empty();
        is_found |= !was_empty;
    }
    drop(interrupt);
    if let (false, false, Some(call)) = (is_found, args.follow, &args.call) {
        reading.output.flush()?;
        let calls = if args.local { "sensor.calls" } else { "domain.calls" };
        call_names::check(&args.query, &args.whose, calls, call)?;
    }
    if !is_found && !args.follow && !args.query.json {
        note("no event fits");
    }
    reading.output.flush()
}

impl Args {
    /// Whether the newest are wanted, and not those from some place on.
    fn is_last(&self) -> bool {
        self.limit.is_some() && !self.follow && self.cursor.is_none()
    }
}

struct Reading<'a> {
    args: &'a Args,
    client: Client,
    place: Arc<Place>,
    /// Whether the last answer's cursor was another than before.
    moved: bool,
    /// Whether a daemon ever answered.
    reached: bool,
    /// With --follow: what was printed lately, which a new representative may tell again.
    seen: Option<Seen>,
    output: Output,
    lines: EventLines,
}

impl Reading<'_> {
    fn new(args: &Args) -> Reading<'_> {
        let begin = match &args.cursor {
            Some(cursor) => cursor.clone(),
            None if args.follow && args.between.since.is_none() => NEWEST.to_owned(),
            None => String::new(),
        };
        let output = args.query.width.output();
        Reading {
            args,
            client: Client::new(&args.query.target),
            place: Arc::new(Place::new(begin)),
            moved: true,
            reached: false,
            seen: args.follow.then(|| Seen::new(SEEN_MAX)),
            lines: EventLines::new(TimeZone::system(), &output),
            output,
        }
    }

    /// What to ask for, where `left` more events are wanted.
    fn params(&self, left: u64) -> Value {
        let cursor = self.place.cursor();
        let between = &self.args.between;
        // The first answer tells where the newest event is, and with it what Ctrl-C shows; it must not wait.
        let waits = self.args.follow && cursor != NEWEST;
        Params::default()
            .of(&self.args.whose)
            .with("cursor", (!self.args.is_last()).then_some(cursor))
            .with("last", self.args.is_last().then_some(true))
            .with("limit", Some(if self.args.is_last() { left } else { left.min(PAGE) }))
            .with("job", self.args.job.clone())
            .with("user", self.args.user.clone())
            .with("on_host", self.args.host.clone())
            .with("kind", (!self.args.kind.is_empty()).then(|| self.args.kind.clone()))
            .with("call", self.args.call.clone())
            .with("since", between.since.map(Time::secs_f64))
            .with("until", between.until.map(Time::secs_f64))
            .with("wait", waits.then_some(WAIT_SECS))
            .value()
    }

    /// The next answer. With --follow a daemon that went away is waited for, once it was reached.
    fn page(&mut self, left: u64) -> Result<Value, Failure> {
        let method = if self.args.local { "sensor.events" } else { "domain.events" };
        let params = self.params(left);
        let patience = match self.args.follow {
            true => Patience { most: PATIENCE.most + Duration::from_secs(WAIT_SECS), tell_after: None },
            false => PATIENCE,
        };
        let reached_before = self.reached;
        let mut pause = AGAIN_FIRST;
        let mut told = false;
        loop {
            let error = match self.client.call(method, &params, patience) {
                Ok(answer) => {
                    if told {
                        note(&format!("reached {} again, going on", self.client.address()));
                    }
                    return Ok(answer);
                }
                Err(error) => error,
            };
            // Nobody answered yet: there may be none at this address.
            let passes = course(&error, told || reached_before) != Course::End;
            if !self.args.follow || !passes {
                return Err(self.client.explain(method, error));
            }
            if !told {
                self.output.flush()?;
                note(&format!("{}; trying again until it answers (Ctrl-C ends)", first_line(&error)));
                told = true;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(AGAIN_MOST);
        }
    }

    /// Events that were deleted before this cursor could read them are a gap that must be seen.
    fn tell_missed(&mut self, answer: &Value) -> Result<(), Failure> {
        let missed = answer.get("missed").and_then(Value::as_u64).unwrap_or(0);
        if missed > 0 {
            self.output.flush()?;
            note(&format!(
                "{} missed: deleted by the daemon before they could be read",
                count(missed, "event")
            ));
        }
        Ok(())
    }

    /// Print at most `most` events, then take over the answer's cursor; how many were printed.
    fn print(&mut self, events: &[Value], answer: &Value, most: u64) -> Result<u64, Failure> {
        let printing = self.place.begin();
        let mut printed = 0;
        let mut events: Vec<&Value> =
            events.iter().take(usize::try_from(most).unwrap_or(usize::MAX)).collect();
        // Logs are read one after the other, and each may be behind.
        let time = |event: &Value| number_of(event, "time").unwrap_or(f64::NEG_INFINITY);
        events.sort_by(|one, other| time(one).total_cmp(&time(other)));
        for event in events {
            if self.seen.as_mut().is_some_and(|seen| !seen.is_new(text_of(event, "id"))) {
                continue;
            }
            match self.args.query.json {
                true => self.output.json(event)?,
                false => {
                    let line = self.lines.line(event, &self.output);
                    self.output.line(&line)?;
                }
            }
            printed += 1;
        }
        self.output.flush()?;
        let next = answer.get("cursor").and_then(Value::as_str).unwrap_or_default();
        self.moved = self.place.cursor() != next;
        self.reached = true;
        self.place.go_on_from(next);
        drop(printing);
        Ok(printed)
    }
}
