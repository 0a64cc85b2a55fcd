//! `visperf job show`: all that is known of a job, on one page.
//!
//! Not here: the text of the page (`output::job_page`), the hosts that are asked (`curves`).

use super::OneJob;
use super::curves::{self, Wanted};
use crate::client::{Client, PATIENCE};
use crate::command::calls::call_or_number;
use crate::command::known_jobs;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::output::event_lines::EventLines;
use crate::output::job_curves::print_bars;
use crate::output::job_page::print_job;
use crate::output::{Color, Output, note, times};
use ::client::typed::Answered;
use jiff::tz::TimeZone;
use serde_json::json;
use wire::api::Request;
use wire::api::events::{DomainEventsParams, EventsParams};
use wire::api::job_index::DirectoryJobsParams;
use wire::api::jobs::{JobParams, JobRecord};

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
    let (Answered { raw, typed: record }, known) = record(args, &mut client)?;
    let mut output = args.of.query.width.output();
    if args.of.query.json {
        output.json(&raw)?;
    } else {
        print_job(&record, &TimeZone::system(), times::now(), &mut output)?;
        if !record.job.is_reduced {
            print_curves(args, &record, &mut output)?;
            print_events(&mut client, args, &record, &mut output)?;
        }
    }
    output.flush()?;
    let Some(known) = known else { return Ok(()) };
    note(&clean(&known));
    Err(Failure::Printed(Kind::HostAway))
}

/// Asks for the job. Of a domain that does not answer it is what a directory knows, and a sentence that says so.
fn record(args: &Args, client: &mut Client) -> Result<(Answered<JobRecord>, Option<String>), Failure> {
    let OneJob { whose, job, .. } = &args.of;
    let error = match client.request(&JobParams { job: job.clone() }, &whose.about(), PATIENCE) {
        Ok(answer) => return Ok((answer, None)),
        Err(error) => error,
    };
    let Some(domain) = whose.domain.as_ref().filter(|_| known_jobs::is_away(&error)) else {
        return Err(client.explain(JobParams::METHOD, error));
    };
    let (id, number) = call_or_number(None, Some(job));
    let search = DirectoryJobsParams { id, job: number, ..DirectoryJobsParams::default() };
    let (pages, known) = known_jobs::of_domain(client, domain, Some(&search), 2);
    let found = pages.map(|pages| pages.items).unwrap_or_default();
    match <[_; 1]>::try_from(found) {
        Ok([(job, raw)]) => {
            let typed = JobRecord { job, ..JobRecord::default() };
            let answer = Answered { raw: json!({ "job": raw }), typed };
            Ok((answer, Some(format!("{domain}: {error}; {known}"))))
        }
        Err(several) if !several.is_empty() => Err(Failure::Failed(format!(
            "{error}; a directory knows several jobs with this number: visperf jobs --domain {} --job {job}",
            wire::shell::quoted(domain)
        ))),
        Err(_) => Err(error.into()),
    }
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
