//! `visperf watch`: subscribes to processes, metrics, events or calls of a host, and prints those that match
//! a filter.
//!
//! Rule: the subscription is ended however the command ends, if the daemon can be reached. The command
//! continues if another daemon answers, or none for a while. If no sample matches, that is reported once.
//! Not here: keeping the subscription alive (`renewed_subscription`), printing (`printing`), the meaning of
//! filters and conditions (`wire::channel`), their evaluation (`sensor::channel`).

use crate::command::interrupt::Interrupt;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{Place, Query, chosen, whole, words};
use printing::Printing;
use renewed_subscription::{RenewedSubscription, Spec, WAIT_SECS};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::api::OneOrMore;
use wire::api::channels::{BudgetSettings, Selection, Settings, SubscribeParams};
use wire::api::processes::PID_MAX;
use wire::channel::{self, CPU_MAX_MS, expression};
use wire::event::{Kind, Outcome};

mod printing;
mod renewed_subscription;

/// Shortest wait for a first sample, in seconds; if none arrives in time, a note states that nothing matches.
const FIRST_WAIT_SECS: u64 = 5;
/// Entries requested at a time: the most that a daemon returns.
const PAGE: u64 = 1_000;

/// Print processes, metrics, events or calls of a host as they arrive, until Ctrl-C
///
/// The sensor applies the filter at the given rate; only matches are sent. Prints one line per sample, event
/// or call. Samples without a match are not printed. Events and calls are all sent, whatever the rate.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf watch --filter 'top 5 by cpu'
  visperf watch --rate 64 --filter 'cpu > 0.5 and name ~ \"^slurm\"'
  visperf watch --rate 64 --changes wn07
  visperf watch wn07
  visperf watch UT-ICL/wn07 --rate 64 --filter 'cpu > 0.5'
  visperf watch --under 4711 --condition 'sum cpu > 3 until 2 for 10 s'
  visperf watch --rate 10 --samples 100 --json | jq '.processes[].name'
  visperf watch --job 17 --filter 'cpu > 0.9'
  visperf watch --kind host --metric node_load1 --filter 'value changes by 0.5'
  visperf watch --kind event --event job_end --filter 'outcome = \"failed\"'
  visperf watch --kind call --user ada UT-ICL/head
  visperf watch --kind call --outcome failed --outcome timeout

Predicates: cpu > 0.5, state = \"running\", name ~ \"REGEX\", name !~ \"REGEX\",
rss_bytes changes by 1M, rate of read_bytes > 1M, child of PID, parent of PID;
joined by and; then top N by FIELD. docs/channels.md lists the fields of each
kind.")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Host to watch, of the daemon's domain or of another [default: the host of the queried daemon]
    #[arg(value_name = "[DOMAIN/]HOST", value_parser = place, conflicts_with_all = ["domain", "host"])]
    of: Option<Place>,
    #[command(flatten)]
    place: Place,
    /// Kind of data to watch
    #[arg(long, value_name = "KIND", value_parser = ["process", "host", "event", "call"], default_value = "process")]
    kind: String,
    /// Rate in Hz, 0.1 to 1000; for kind host at most its sampling rate (sample_hz); for events and calls the
    /// polling rate
    #[arg(long, value_name = "HZ", value_parser = rate, default_value = "1")]
    rate: f64,
    /// Only matches of this filter, such as 'cpu > 0.5 top 5 by rss_bytes'
    #[arg(long, value_name = "FILTER", value_parser = filter, default_value = "", hide_default_value = true)]
    filter: String,
    /// Print only processes that differ from the previous sample, and those that ended or no longer match
    #[arg(long)]
    changes: bool,
    /// CPU budget on the sensor, in ms per second, 1 to 500 [default: 20]; the subscription is stopped if it
    /// exceeds it
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u64::from(CPU_MAX_MS)))]
    cpu_ms: Option<u64>,
    /// Signal when this condition becomes true and when it becomes false again, such as 'count > 100 until
    /// 90'
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    condition: Option<String>,
    /// Run the script in this file on each sample, for what a filter cannot express
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Only processes or calls of this name; * matches any characters
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only records of this user: for processes a name or a user id of that host, for events and calls as
    /// printed in the logs
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only the process with this id
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = whole(1..=PID_MAX.into()))]
    pid: Option<u64>,
    /// Only the process with this id and all its descendants
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = whole(1..=PID_MAX.into()))]
    under: Option<u64>,
    /// Only records of this job: its calls, their events, the processes that serve them
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only records of this call, as printed by `visperf calls`
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Only events of this kind, such as job_end
    #[arg(long, value_name = "KIND", value_parser = words(Kind::ALL.iter().map(|kind| kind.as_str())), hide_possible_values = true)]
    event: Option<String>,
    /// Only events and calls with this outcome, such as failed; may be repeated
    #[arg(long, value_name = "OUTCOME", value_parser = words(Outcome::ALL.iter().map(|outcome| outcome.as_str())))]
    outcome: Vec<String>,
    /// Only metrics of this name, or that match this glob (node_cpu_*)
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Exit after this number of samples, events or calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,
}

/// Subscribe, and print entries until the command ends.
///
/// # Errors
/// If no daemon is reached, it answers with a fault, or the sensor stopped the subscription.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let place = args.of.clone().unwrap_or_else(|| args.place.clone());
    let wanted = wanted(args)?;
    let happens = wanted.kind.happens();
    let mut watching = RenewedSubscription::subscribe(Spec {
        target: args.query.target.clone(),
        about: place.about(),
        wanted,
        is_json: args.query.json,
        limit: args.samples.map_or(PAGE, |samples| samples.min(PAGE)),
        // Events and calls may be hours apart.
        first_wait_secs: (!happens).then(|| first_wait_secs(args.rate)),
    })?;
    let (subscription, is_ending) = (watching.subscription(), Arc::new(AtomicBool::new(false)));
    let (at_the_end, ending) = (subscription.clone(), Arc::clone(&is_ending));
    let _interrupt = Interrupt::catch(move || {
        ending.store(true, Ordering::SeqCst);
        at_the_end.end();
    })?;
    let mut printing = Printing::new(args);
    let watched = loop {
        let printed = watching.take().and_then(|answer| match answer {
            Some(received) => printing.print(&received),
            None => Ok(true),
        });
        // Ctrl-C removed the subscription, and is about to end the program.
        while is_ending.load(Ordering::SeqCst) {
            std::thread::park();
        }
        match printed {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    subscription.end();
    watched
}

/// Wait for a first sample: at least two sampling periods.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within the bounds of a rate: 0 to 20.
fn first_wait_secs(rate_hz: f64) -> u64 {
    ((2.0 / rate_hz).ceil() as u64).clamp(FIRST_WAIT_SECS, WAIT_SECS)
}

fn wanted(args: &Args) -> Result<SubscribeParams, Failure> {
    let script = args.script.as_ref().map(|file| {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::of(&format!("cannot read the script {}", file.display()), error))
    });
    let text = |text: &Option<String>| text.as_deref().map(Into::into);
    let number = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let selection = Selection {
        name: text(&args.name),
        user: text(&args.user),
        command: None,
        pid: number(args.pid),
        under: number(args.under),
        job: text(&args.job),
        call: text(&args.call),
        kind: args.event.as_deref().and_then(Kind::from_word),
        outcome: OneOrMore(args.outcome.iter().filter_map(|word| Outcome::from_word(word)).collect()),
        metric: text(&args.metric),
    };
    let settings = Settings {
        selection: (selection != Selection::default()).then_some(selection),
        rate_hz: Some(args.rate),
        filter: Some(args.filter.clone()),
        condition: args.condition.clone(),
        script: script.transpose()?,
        changes: args.changes.then_some(true),
        only_signals: None,
        budget: args
            .cpu_ms
            .map(|cpu_ms| BudgetSettings { cpu_ms: number(Some(cpu_ms)), ..BudgetSettings::default() }),
    };
    let kind = channel::Kind::from_word(&args.kind).unwrap_or_default();
    Ok(SubscribeParams { kind, settings, cursor: None })
}

/// Parse a host, with its domain unless that is the daemon's own.
fn place(text: &str) -> Result<Place, String> {
    Ok(match text.split_once('/') {
        Some((domain, host)) => Place { domain: Some(chosen(domain)?), host: Some(chosen(host)?) },
        None => Place { domain: None, host: Some(chosen(text)?) },
    })
}

fn rate(text: &str) -> Result<f64, String> {
    let hz = text.parse::<f64>().map_err(|_| "expected a number of samples a second".to_owned())?;
    wire::channel::Rate::try_from(hz).map(wire::channel::Rate::hz).map_err(|error| error.to_string())
}

fn filter(text: &str) -> Result<String, String> {
    expression::filter(text).map(|_| text.to_owned()).map_err(|error| pointed(text, &error))
}

fn condition(text: &str) -> Result<String, String> {
    expression::condition(text).map(|_| text.to_owned()).map_err(|error| pointed(text, &error))
}

/// The error message, with its position marked below the text.
fn pointed(text: &str, error: &expression::Error) -> String {
    format!("{error}\n  {}\n  {}^", clean(text), " ".repeat(error.at.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_pointed_at() {
        let message = filter("cpu > 0.5 and name ~ slurm").expect_err("no quotes");
        let expected = "expected a text in quotes, found slurm at character 22\n  cpu > 0.5 and name ~ slurm\n                       ^";
        assert_eq!(message, expected);
        assert!(condition("count > 1 until 2").is_err());
        assert_eq!(filter("cpu > 0.5").as_deref(), Ok("cpu > 0.5"));
        assert_eq!(rate("64"), Ok(64.0));
        assert!(rate("2000").expect_err("too fast").contains("0.1 to 1000"));
        let of = |text: &str| {
            place(text).map(|place| (place.domain.unwrap_or_default(), place.host.unwrap_or_default()))
        };
        assert_eq!(of("UT-ICL/wn07"), Ok(("UT-ICL".to_owned(), "wn07".to_owned())));
        assert_eq!(of("wn07"), Ok((String::new(), "wn07".to_owned())));
        assert!(place("/wn07").is_err() && place("").is_err());
        assert_eq!([0.1, 0.3, 1.0, 1000.0].map(first_wait_secs), [20, 7, 5, 5]);
    }
}
