//! `visperf job show`: all that is known of a job, on one page.
//!
//! Not here: the text of the page (`output::job_page`), the hosts that are asked (`curves`).

use super::OneJob;
use super::curves::{self, Wanted};
use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::event_lines::EventLines;
use crate::output::job_curves::print_bars;
use crate::output::job_page::print_job;
use crate::output::{Color, Output, note, times};
use ::client::typed::Answered;
use jiff::tz::TimeZone;
use wire::api::Request;
use wire::api::events::{DomainEventsParams, EventsParams};
use wire::api::jobs::JobRecord;

/// Most events of the job that are printed.
const EVENTS_MAX: u64 = 200;

/// Print all that is known of a job
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job show 17
  visperf job show slurm:17
  visperf job show slurm:17 --json | jq .runs")]
pub(crate) struct Args {
    #[command(flatten)]
    of: OneJob,
}

/// Print the job, then its events.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut client = Client::new(&args.of.query.target);
    let Answered { raw, typed: record } = args.of.ask(&mut client)?;
    let mut output = args.of.query.width.output();
    if args.of.query.json {
        output.json(&raw)?;
        return output.flush();
    }
    print_job(&record, &TimeZone::system(), times::now(), &mut output)?;
    if !record.job.is_reduced {
        print_curves(args, &record, &mut output)?;
        print_events(&mut client, args, &record, &mut output)?;
    }
    output.flush()
}

/// Print what it used over time, of the hosts that answer, and of others from archives.
fn print_curves(args: &Args, record: &JobRecord, output: &mut Output) -> Result<(), Failure> {
    if record.job.started.is_none() && record.usage.is_empty() {
        return Ok(());
    }
    let curves = curves::read(&args.of.query.target, record, &[], Wanted::default());
    if !curves.curves.is_empty() {
        output.line("")?;
        print_bars(&curves.curves, output)?;
    }
    for (host, archive) in &curves.archived {
        let text = format!("{}: from the archive on {}", clean(host), clean(archive));
        output.line(&output.paint(Color::Dim, &text))?;
    }
    // Where there is no sensor there is nothing to miss.
    let measured = |text: &&String| record.usage.iter().any(|usage| text.starts_with(&usage.host));
    for text in curves.missing.iter().filter(measured) {
        output.line(&output.paint(Color::Dim, &format!("{}; its curves are missing", clean(text))))?;
    }
    Ok(())
}

fn print_events(
    client: &mut Client,
    args: &Args,
    record: &JobRecord,
    output: &mut Output,
) -> Result<(), Failure> {
    let params = DomainEventsParams(EventsParams {
        call: Some(record.job.id.clone()),
        limit: EVENTS_MAX,
        ..EventsParams::default()
    });
    let answer = client.request(&params, &args.of.whose.about(), PATIENCE);
    let mut events = answer.map_err(|error| client.explain(DomainEventsParams::METHOD, error))?.typed.events;
    // They are in the order of reading: log after log.
    events.sort_by_key(|event| event.time);
    if events.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let mut lines = EventLines::new(TimeZone::system(), output);
    for event in &events {
        let line = lines.line(event, output);
        output.line(&line)?;
    }
    if events.len() as u64 == EVENTS_MAX {
        output.flush()?;
        let id = wire::shell::quoted(&record.job.id);
        note(&format!("the first {EVENTS_MAX} events; `visperf events --call {id}` prints all"));
    }
    Ok(())
}
