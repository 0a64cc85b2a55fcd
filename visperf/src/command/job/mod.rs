//! `visperf job`: one job, what it used over time, and sums of many.
//!
//! Not here: lists of jobs (`jobs`).

mod curves;
mod report;
mod series;
mod show;

use crate::client::{Client, PATIENCE};
use crate::exit::Failure;
use crate::options::{OfDomain, Query, chosen};
use ::client::typed::Answered;
use clap::Subcommand;
use wire::api::Request;
use wire::api::jobs::{JobParams, JobRecord};

/// Show one job and what it used over time, or sum up many
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job show 17
  visperf job show slurm:17 --json
  visperf job series 17 --step 10s --csv
  visperf job report --by queue --since 7d")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Show(show::Args),
    Series(series::Args),
    Report(report::Args),
}

/// One job, and the daemon that is asked for it.
#[derive(Debug, clap::Args)]
struct OneJob {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Id of the job such as slurm:17, or its number if only one job has it
    #[arg(value_name = "JOB", value_parser = chosen)]
    job: String,
}

impl OneJob {
    /// Asks for the job.
    ///
    /// # Errors
    /// If no daemon is reached, or it answers with a fault.
    fn ask(&self, client: &mut Client) -> Result<Answered<JobRecord>, Failure> {
        let params = JobParams { job: self.job.clone() };
        let answer = client.request(&params, &self.whose.about(), PATIENCE);
        answer.map_err(|error| client.explain(JobParams::METHOD, error))
    }
}

/// Run the action.
///
/// # Errors
/// The errors of the action.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Show(args) => show::run(args),
        Action::Series(args) => series::run(args),
        Action::Report(args) => report::run(args),
    }
}
