//! `visperf events`: the events that a daemon stores, and with `--follow` new ones as they arrive.
//!
//! Rule: every page is requested with the cursor of the previous one, also after a lost connection or a
//! restart of the daemon; so no event is printed twice and none is missed without notice.

#[cfg(feature = "export")]
mod exported;
mod interrupt;
mod printer;

use crate::client::items;
use crate::client::{Client, PATIENCE};
use crate::command::call_names;
use crate::command::calls::call_or_number;
use crate::command::query::note_missing;
use crate::exit::Failure;
use crate::options::{Between, OfDomain, Query, chosen, user, whole, words};
use crate::output::note;
use crate::output::recent_ids::RecentIds;
use crate::output::times;
use ::client::Error;
use ::client::Patience;
use ::client::recovery::{self, Recovery};
use ::client::typed::Answered;
use clap::builder::TypedValueParser;
use interrupt::Place;
use printer::Printer;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use wire::api::events::{DomainEventsParams, Event, Events, EventsParams, SensorEventsParams};
use wire::api::{Request, Span, UnixTime};
use wire::backoff::Backoff;
use wire::event::Kind;
use wire::shown::count;
use wire::text_regex::TextRegex;

/// Events requested at a time.
const PAGE: u64 = 1_000;
/// Events requested first: those of few places are shown sooner than a whole page of them is found.
const PAGE_FIRST: u64 = 100;
/// Most of the newest events that a daemon returns.
const LAST_MAX: u64 = 10_000;
/// How long a daemon may wait for a first event before it returns an empty answer.
const WAIT: Duration = Duration::from_secs(20);
/// Size of the buffer of event ids that detects events a new representative sends again; some 3 MB.
const SEEN_MAX: usize = 100_000;
/// The cursor behind the newest event.
const NEWEST: &str = "end";
/// Pauses between tries to reach a daemon again: short at first, for most restarts take a second.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// Print the events of the domain, oldest first; --limit for the newest ones only, --follow for future ones
/// too
///
/// Each event is from one line of one log. If several logs report one job, it has several events of a kind,
/// such as a job_end from each of HTCondor's EventLog, SchedLog and ShadowLog, all of one call: `visperf
/// calls` prints each job once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf events --since 10m
  visperf events --limit 20
  visperf events --follow --kind job_start --kind job_end
  visperf events --call slurm:17
  visperf events --user mrossi --host wn01 --since 1h
  visperf events --regex 'signal (9|11)' --since 7d
  visperf events --kind node_down --since 90d --from /srv/grid-history
  visperf events --json --follow | jq -r .kind")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Keep printing new events as they arrive, starting with the next one, or at --since or --cursor
    #[arg(long, short)]
    follow: bool,
    /// Only events of this kind, such as job_end; may be repeated
    #[arg(long, value_name = "KIND", value_parser = kinds(), hide_possible_values = true)]
    kind: Vec<Kind>,
    /// Only events of this call, as printed by `visperf calls`
    #[arg(long, value_name = "CALL", value_parser = chosen)]
    call: Option<String>,
    /// Only events of jobs with this number, as the middleware prints it, of any product, and of their parts;
    /// slurm:17 for those of one product
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    /// Only events of calls of this user: a name, or the number printed as `uid 1000`
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only events from or to this host, with or without its domain
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    /// Only events with a text that this regular expression matches: the job, the user, the parties or an
    /// attribute; (?i) at its start ignores case
    #[arg(long, value_name = "REGEX")]
    regex: Option<TextRegex>,
    #[command(flatten)]
    between: Between,
    /// Maximum number of events: the newest ones, printed oldest first; with --follow or --cursor the next
    /// ones
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u64::MAX))]
    limit: Option<u64>,
    /// Continue from the cursor of an earlier answer
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Query only the connected sensor, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
    /// Read days that were exported to this place (visperf history export) instead of asking a daemon
    #[cfg(feature = "export")]
    #[arg(long, value_name = "PLACE", value_parser = crate::command::history::exported::place, conflicts_with_all = ["local", "cursor", "follow"])]
    from: Option<String>,
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    let words = words(Kind::ALL.iter().map(|kind| kind.as_str()));
    words.try_map(|word| Kind::from_word(&word).ok_or("expected a kind of event"))
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
    #[cfg(feature = "export")]
    if let Some(place) = &args.from {
        return exported::print(place, args);
    }
    let mut reading = Reading::new(args);
    let interrupt = if args.follow { Some(interrupt::catch(&reading.place)?) } else { None };
    let mut left = args.limit.unwrap_or(u64::MAX);
    let (mut was_empty, mut is_found, mut is_noted) = (false, false, false);
    while left > 0 {
        let answer = reading.page(left)?;
        let events = &answer.typed.events;
        reading.note_missed(answer.typed.missed)?;
        if !is_noted {
            note_missing(&answer.typed.unheard);
            is_noted = true;
        }
        left -= reading.print(&answer, left)?;
        if args.is_last() {
            is_found = !events.is_empty();
            break;
        }
        // No event from now on can be before a bound that has passed.
        let is_over = args.between.until.is_some_and(|until| until < times::now());
        if args.follow && is_over && events.is_empty() && was_empty {
            break;
        }
        // A page without events ends the reading; the daemon may return an empty page while it scans events
        // that do not match.
        if !args.follow && events.is_empty() && (was_empty || !reading.moved) {
            break;
        }
        was_empty = events.is_empty();
        is_found |= !was_empty;
    }
    drop(interrupt);
    if let (false, false, Some(call)) = (is_found, args.follow, &args.params().call) {
        reading.printer.flush()?;
        call_names::check(&args.query, &args.whose, args.local, call)?;
    }
    if !is_found && !args.follow && !args.query.json {
        note(args.nothing());
    }
    reading.printer.flush()
}

impl Args {
    /// Note where nothing is printed.
    fn nothing(&self) -> &'static str {
        match self.regex {
            None => "no event fits",
            Some(_) => {
                "no event fits; --regex is tried on the job, the user, the parties and the value of each attribute, not on \
                 its name and the kind of the event"
            }
        }
    }

    /// Whether the newest events are requested, and not those from some cursor on.
    fn is_last(&self) -> bool {
        self.limit.is_some() && !self.follow && self.cursor.is_none()
    }

    /// What is asked of events, whatever the position.
    fn params(&self) -> EventsParams {
        let (call, job) = call_or_number(self.call.as_ref(), self.job.as_ref());
        EventsParams {
            job,
            user: self.user.clone(),
            on_host: self.host.clone(),
            kind: self.kind.clone(),
            call,
            regex: self.regex.clone(),
            since: self.between.since.map(UnixTime),
            until: self.between.until.map(UnixTime),
            ..EventsParams::default()
        }
    }
}

struct Reading<'a> {
    args: &'a Args,
    client: Client,
    place: Arc<Place>,
    /// Whether the last answer moved the cursor.
    moved: bool,
    /// Whether a daemon ever answered.
    reached: bool,
    /// With --follow: recently printed events, which a new representative may send again.
    seen: Option<RecentIds>,
    printer: Printer,
}

impl Reading<'_> {
    fn new(args: &Args) -> Reading<'_> {
        let begin = match &args.cursor {
            Some(cursor) => cursor.clone(),
            None if args.follow && args.between.since.is_none() => NEWEST.to_owned(),
            None => String::new(),
        };
        Reading {
            args,
            client: Client::new(&args.query.target),
            place: Arc::new(Place::new(begin)),
            moved: true,
            reached: false,
            seen: args.follow.then(|| RecentIds::new(SEEN_MAX)),
            printer: Printer::new(&args.query),
        }
    }

    /// Parameters of the next request, with `left` more events to print.
    fn params(&self, left: u64) -> EventsParams {
        let (args, cursor) = (self.args, self.place.cursor());
        // The first answer returns the cursor of the newest event, which Ctrl-C prints; it must not wait.
        let waits = args.follow && cursor != NEWEST;
        EventsParams {
            cursor: (!args.is_last()).then_some(cursor),
            last: args.is_last(),
            limit: if args.is_last() { left } else { left.min(if self.reached { PAGE } else { PAGE_FIRST }) },
            wait: Span(if waits { WAIT } else { Duration::ZERO }),
            ..args.params()
        }
    }

    fn ask(&mut self, params: &EventsParams) -> Result<Answered<Events>, Error> {
        let patience = match self.args.follow {
            true => Patience::of(PATIENCE.most + WAIT),
            false => PATIENCE,
        };
        let about = self.args.whose.about();
        match self.args.local {
            true => self.client.request(&SensorEventsParams(params.clone()), &about, patience),
            false => self.client.request(&DomainEventsParams(params.clone()), &about, patience),
        }
    }

    /// The next answer. With --follow a lost daemon is retried, if it was reached before.
    fn page(&mut self, left: u64) -> Result<Answered<Events>, Failure> {
        let params = self.params(left);
        let reached_before = self.reached;
        let mut failures = 0_u32;
        let mut is_noted = false;
        loop {
            let error = match self.ask(&params) {
                Ok(answer) => {
                    if is_noted {
                        note(&format!("reached {} again, going on", self.client.address()));
                    }
                    return Ok(answer);
                }
                Err(error) => error,
            };
            // No daemon answered yet: there may be none at this address.
            let passes = recovery::of(&error, is_noted || reached_before) != Recovery::End;
            if !self.args.follow || !passes {
                let method =
                    if self.args.local { SensorEventsParams::METHOD } else { DomainEventsParams::METHOD };
                return Err(self.client.explain(method, error));
            }
            if !is_noted {
                self.printer.flush()?;
                note(&format!("{}; trying again until it answers (Ctrl-C ends)", error.first_line()));
                is_noted = true;
            }
            std::thread::sleep(BACKOFF.pause(failures));
            failures = failures.saturating_add(1);
        }
    }

    /// Report events that were deleted before this cursor could read them: a gap must be visible.
    fn note_missed(&mut self, missed: u64) -> Result<(), Failure> {
        if missed > 0 {
            self.printer.flush()?;
            note(&format!(
                "{} missed: deleted by the daemon before they could be read",
                count(missed, "event")
            ));
        }
        Ok(())
    }

    /// Print at most `most` events, then store the answer's cursor; returns the number printed.
    fn print(&mut self, answer: &Answered<Events>, most: u64) -> Result<u64, Failure> {
        let printing = self.place.begin();
        let mut printed = 0;
        let raw = items(&answer.raw, "events");
        let events = answer.typed.events.iter().zip(&raw);
        let mut events: Vec<(&Event, &Value)> =
            events.take(usize::try_from(most).unwrap_or(usize::MAX)).collect();
        // Logs are read one after another, and each may lag.
        events.sort_by_key(|(event, _)| event.time);
        for (event, raw) in events {
            if self.seen.as_mut().is_some_and(|seen| !seen.is_new(&event.id)) {
                continue;
            }
            self.printer.print_answered(event, raw)?;
            printed += 1;
        }
        self.printer.flush()?;
        let next = &answer.typed.cursor;
        self.moved = self.place.cursor() != *next;
        self.reached = true;
        self.place.go_on_from(next);
        drop(printing);
        Ok(printed)
    }
}
