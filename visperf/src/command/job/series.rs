//! `visperf job series`: what a job used over time, on each of its hosts.
//!
//! Not here: asking the hosts (`curves`), how curves are printed (`output::job_curves`).

use super::OneJob;
use super::curves::{self, Curves, Wanted};
use crate::client::Client;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{Between, chosen};
use crate::output::job_curves::{print_csv, print_plots};
use crate::output::{note, times};
use jiff::tz::TimeZone;
use std::time::Duration;
use wire::api::jobs::{Job, JobRecord};
use wire::call::State;

/// Print what a job used over time
///
/// CPUs in use, memory, processes, threads and storage I/O of the last run, as each host measured them once a second. The hosts
/// are asked directly, and the archives of the domain for what they do not have; those without an answer are named.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job series 17
  visperf job series slurm:17 --since 10m --step 1s
  visperf job series slurm:17 --step 1m --csv > usage.csv
  visperf job series slurm:17 --json | jq '.curves[].cpus'")]
pub(crate) struct Args {
    #[command(flatten)]
    of: OneJob,
    /// Only this host; may be repeated
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Vec<String>,
    #[command(flatten)]
    between: Between,
    /// Time between two points, from 1s on [default: a round time that yields at most 300 points]
    #[arg(long, value_name = "SPAN", value_parser = times::span)]
    step: Option<Duration>,
    /// Print comma-separated values, a row for each host and point, times in UTC
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// Print the curves.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault; if a host does not answer.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    let mut client = Client::new(&args.of.query.target);
    let record = args.of.ask(&mut client)?.typed;
    let wanted = Wanted { since: args.between.since, until: args.between.until, step: args.step };
    let curves = curves::read(&args.of.query.target, &record, &args.host, wanted);
    print(args, &record, &curves)?;
    for (host, archive) in &curves.archived {
        note(&format!("{}: from the archive on {}", clean(host), clean(archive)));
    }
    curves.missing.iter().for_each(|text| note(&format!("{}; its curves are missing", clean(text))));
    if curves.missing.is_empty() { Ok(()) } else { Err(Failure::Printed(Kind::HostAway)) }
}

fn print(args: &Args, record: &JobRecord, curves: &Curves) -> Result<(), Failure> {
    let mut output = args.of.query.width.output();
    if args.of.query.json {
        curves.raw.iter().try_for_each(|answer| output.json(answer))?;
    } else if args.csv {
        print_csv(&curves.curves, &mut output)?;
    } else if curves.curves.is_empty() && curves.missing.is_empty() {
        note(&format!("{}: {}", clean(&record.job.id), why_nothing(&record.job)));
    } else {
        print_plots(&curves.curves, curves.step_secs, &TimeZone::system(), &mut output)?;
    }
    output.flush()
}

/// Why there is no curve.
fn why_nothing(job: &Job) -> &'static str {
    match (job.started, job.state) {
        (None, State::Waiting) => "it has not started yet",
        (None, State::Ended) => "it has not run",
        _ if job.is_reduced => {
            "what a job used is shown to its user, root and operators, over the local socket of a daemon"
        }
        _ => "no host has stored what it used in this time: its hosts have no sensor, or it is too long ago",
    }
}
