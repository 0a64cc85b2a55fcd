//! `visperf job report`: what groups of jobs were given, used and lost.
//!
//! Not here: the sums (the representative has them), the forms of the report (`output::job_report`).

use crate::client::{Client, PATIENCE};
use crate::command::calls::note_end_of_past;
use crate::command::query::note_missing;
use crate::exit::Failure;
use crate::options::{Between, OfDomain, OfJobs, Query, whole};
use crate::output::job_report::{print_csv, print_html, print_report};
use crate::output::times::{self, to_second};
use crate::output::{Output, note};
use ::client::typed::Answered;
use clap::ValueEnum;
use jiff::tz::TimeZone;
use std::time::Duration;
use wire::api::job_report::{JobGroupBy, JobReport, JobReportParams};
use wire::api::{Request, UnixTime};

/// The span of a report by default.
const SPAN: Duration = Duration::from_secs(30 * 86_400);

/// Sum up jobs that have ended: CPU hours given, used, wasted and lost, and why
///
/// Each job counts by its last run. CPU hours are those of the allocated CPUs; USED is the measured CPU time as a share of
/// them, of the jobs that were measured on all their hosts. LOST are the CPU hours of jobs that failed, ran until their
/// time limit, or whose host failed. You get the sums of your own jobs; root and operators get those of all users.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf job report
  visperf job report --by queue --since 7d
  visperf job report --by month --since 365d --user mrossi
  visperf job report --by name --user mrossi --top 10
  visperf job report --by account --since 2026-11-01 --until 2026-12-01 --csv
  visperf job report --by user --html > report.html")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// What the jobs of a line have in common
    #[arg(long, value_name = "WHAT", default_value = "user")]
    by: By,
    #[command(flatten)]
    of: OfJobs,
    #[command(flatten)]
    between: Between,
    /// Print only the N lines with most CPU hours; the total has all
    #[arg(long, value_name = "N", value_parser = whole(1..=10_000), default_value_t = 100)]
    top: u64,
    /// Print comma-separated values, times in seconds
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print a page of HTML
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    html: bool,
}

/// Values of `--by`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The user
    User,
    /// The account that is charged
    Account,
    /// The queue or partition
    Queue,
    /// The name that the user gave
    Name,
    /// The middleware
    Product,
    /// The outcome
    Outcome,
    /// The month of the end, in UTC
    Month,
}

impl From<By> for JobGroupBy {
    fn from(by: By) -> JobGroupBy {
        match by {
            By::User => JobGroupBy::User,
            By::Account => JobGroupBy::Account,
            By::Queue => JobGroupBy::Queue,
            By::Name => JobGroupBy::Name,
            By::Product => JobGroupBy::Product,
            By::Outcome => JobGroupBy::Outcome,
            By::Month => JobGroupBy::Month,
        }
    }
}

/// Print the report.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    let mut client = Client::new(&args.query.target);
    let since =
        args.between.since.unwrap_or_else(|| args.between.until.unwrap_or_else(times::now).minus(SPAN));
    let params = JobReportParams {
        by: args.by.into(),
        user: args.of.user.clone(),
        account: args.of.charged_to.clone(),
        queue: args.of.queue.clone(),
        name: args.of.name.clone(),
        since: Some(UnixTime(since)),
        until: args.between.until.map(UnixTime),
        limit: args.top,
    };
    let answer = client.request(&params, &args.whose.about(), PATIENCE);
    let Answered { raw, typed: report } =
        answer.map_err(|error| client.explain(JobReportParams::METHOD, error))?;
    let mut output = args.query.width.output();
    if args.query.json {
        output.json(&raw)?;
        return output.flush();
    }
    print(args, &params, &report, &mut output)?;
    output.flush()?;
    notes(args, &report);
    Ok(())
}

fn print(
    args: &Args,
    params: &JobReportParams,
    report: &JobReport,
    output: &mut Output,
) -> Result<(), Failure> {
    if args.csv {
        return print_csv(params.by, report, output);
    }
    if args.html {
        let zone = TimeZone::system();
        let shown = |time: Option<UnixTime>| time.map(|time| to_second(time.0, &zone));
        let until = shown(params.until).unwrap_or_else(|| to_second(times::now(), &zone));
        let span = format!("{} to {until}", shown(params.since).unwrap_or_default());
        return print_html(params.by, report, &span, output);
    }
    if report.total.jobs == 0 {
        note("no job fits that ended in that time; --since 365d reaches back further");
        return Ok(());
    }
    print_report(params.by, report, output)
}

/// What the report does not say.
fn notes(args: &Args, report: &JobReport) {
    if report.own_only {
        note(
            "of your own jobs; root and operators get those of all users, over the local socket of a daemon",
        );
    }
    if report.left_out > 0 {
        note(&format!("{} more lines with fewer CPU hours; --top N prints more", report.left_out));
    }
    if let Some(oldest) = report.oldest.filter(|_| report.is_cut) {
        note(&format!(
            "there were too many jobs: only those that ended since {} are summed up; choose a shorter time",
            to_second(oldest.0, &TimeZone::system())
        ));
    }
    note_missing(&report.unheard);
    note_end_of_past(args.between.since, report.stored_since);
}
