//! `visperf jobs`: the jobs of a domain, with account, queue and what was allocated.
//!
//! Not here: transfers and requests (`calls`), one job (`job`), jobs of earlier years (`import`).

mod everywhere;
mod follow;
mod import;
mod sorted;

use crate::client::{Client, PATIENCE};
use crate::command::calls::{call_or_number, note_end_of_past, outcomes, refuse_state_of_calls, states};
use crate::command::known_jobs;
use crate::command::pages::Pages;
use crate::command::query::{LIMIT_MAX, note_missing, print_typed};
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{Between, OfDomain, OfJobs, Query, chosen, whole, words};
use crate::output::job_rows::{print_csv, print_sacct};
use crate::output::job_table::print_jobs;
use crate::output::times::now;
use crate::output::{Output, note};
use clap::builder::TypedValueParser;
use serde_json::Value;
use wire::api::calls::CallOrder;
use wire::api::findings::FindingKind;
use wire::api::job_amount::{Condition, JobAmount, conditions};
use wire::api::jobs::{Job, JobsSearchParams};
use wire::api::{Request, UnixTime};
use wire::call::State;
use wire::event::Outcome;
use wire::shown::count;

/// Print the jobs of the domain, newest first
///
/// Jobs that wait, run or have ended, of every middleware. Each task of an array is a job. The time of a job, by which
/// --since and --until choose and jobs are sorted, is the latest that is known of it: its end, if it has ended.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:
  visperf jobs --in running
  visperf jobs --follow --user mrossi
  visperf jobs --user mrossi --outcome failed --since 7d
  visperf jobs --queue long --in waiting
  visperf jobs --charged-to physics --since 30d --json
  visperf jobs --all-domains --user mrossi --outcome failed
  visperf jobs --since 30d --where 'cpu_efficiency < 20 % and ran > 1h'
  visperf jobs --since 7d --finding failed_process
  visperf jobs --since 30d --sort wasted --top 5
  visperf jobs --user mrossi --limit 100 --sort wasted --top 5
  visperf jobs --since 30d --limit 100000 --csv > jobs.csv
  visperf job show slurm:17
  visperf jobs import sacct-2024.txt",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    search: Search,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Import(import::Args),
}

/// Which jobs are printed.
#[derive(Debug, clap::Args)]
struct Search {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Only jobs in this state
    #[arg(long = "in", value_name = "STATE", value_parser = states())]
    within: Option<State>,
    /// Only jobs with this outcome; may be repeated
    #[arg(long, value_name = "OUTCOME", value_parser = outcomes())]
    outcome: Vec<Outcome>,
    #[command(flatten)]
    of: OfJobs,
    /// Only jobs that ran on this host
    #[arg(long, value_name = "HOST", value_parser = chosen)]
    host: Option<String>,
    /// Only jobs with this number, of any product, and their parts; slurm:17 for the job of one product
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    #[command(flatten)]
    between: Between,
    /// Only jobs that meet these conditions, of your own jobs unless you are root or an operator; may be repeated
    #[arg(long = "where", value_name = "CONDITIONS", value_parser = conditions, long_help = WHERE_HELP)]
    conditions: Vec<Vec<Condition>>,
    /// Only jobs with a finding of this kind, of your own jobs unless you are root or an operator
    #[arg(long, value_name = "KIND", value_parser = findings())]
    finding: Option<FindingKind>,
    /// Maximum number of jobs; several pages are requested from the daemon if needed [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u64::MAX))]
    limit: Option<u64>,
    /// Continue after an earlier page: the cursor in its note, with the same other options
    #[arg(long, value_name = "CURSOR", value_parser = chosen, conflicts_with = "sort")]
    cursor: Option<String>,
    /// Search all domains that the directory knows
    #[arg(long, conflicts_with_all = ["domain", "cursor"])]
    all_domains: bool,
    /// Print each job when it is submitted, starts and ends, until Ctrl-C; with --since those since then first
    #[arg(long, conflicts_with_all = ["until", "limit", "cursor", "all_domains", "oldest", "sort", "csv", "format"])]
    follow: bool,
    /// Print the oldest jobs first
    #[arg(long)]
    oldest: bool,
    /// Sort by this amount, the largest first: all jobs that fit, or the newest of them that --limit says
    #[arg(long, value_name = "AMOUNT", value_parser = amounts(), conflicts_with = "oldest")]
    sort: Option<JobAmount>,
    /// Print only the first N of the sorted jobs; needs --sort [default: 100, or all that --limit says]
    #[arg(long, value_name = "N", value_parser = whole(1..=LIMIT_MAX), requires = "sort")]
    top: Option<u64>,
    /// Print comma-separated values, all columns, times in UTC
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print the columns of another program, for scripts that read it: sacct, as `sacct --parsable2`
    #[arg(long, value_name = "FORMAT", value_parser = ["sacct"], conflicts_with_all = ["json", "csv"])]
    format: Option<String>,
}

const WHERE_HELP: &str = "\
Only jobs that meet these conditions, of your own jobs unless you are root or an operator; may be repeated

A condition is an amount, one of < <= > >= =, and a value; several are joined by `and`. A job whose amount is not known does
not meet it.
  shares  cpu_efficiency, memory_efficiency                 20 %
  times   cpu_time, wasted, ran, waited, time_limit         90s, 30m, 1h30m, 2d
  sizes   peak_memory, memory, read_bytes, written_bytes    512 MiB, 2 GiB
  counts  cpus, nodes, gpus, tries                          8
`memory`, `cpus` and `gpus` are what was allocated, `wasted` is CPU time of the allocated CPUs that was not used.";

/// Sorted jobs that are printed by default.
const TOP_DEFAULT: u64 = 100;

/// Jobs that are printed by default.
const LIMIT_DEFAULT: u64 = 100;

fn amounts() -> impl TypedValueParser<Value = JobAmount> {
    let words = words(JobAmount::ALL.iter().map(|amount| amount.as_str()));
    words.try_map(|word| JobAmount::from_word(&word).ok_or("expected an amount"))
}

/// Kinds of findings that a search knows: those that do not compare a job with others.
fn findings() -> impl TypedValueParser<Value = FindingKind> {
    let is_of_one = |kind: &&FindingKind| !matches!(kind, FindingKind::LongWait | FindingKind::FailsAgain);
    let words = words(FindingKind::ALL.iter().filter(is_of_one).map(|kind| kind.as_str()));
    words.try_map(|word| FindingKind::from_word(&word).ok_or("expected a kind of finding"))
}

impl Search {
    /// The amount by which the daemon sorts all jobs that fit; if `--limit` is given, the newest are sorted here.
    fn sorted_there(&self) -> Option<JobAmount> {
        self.sort.filter(|_| self.limit.is_none())
    }

    /// Most jobs that are requested.
    fn limit(&self) -> u64 {
        match self.sorted_there() {
            Some(_) => self.top.unwrap_or(TOP_DEFAULT),
            None => self.limit.unwrap_or(LIMIT_DEFAULT),
        }
    }
}

/// Print the jobs, or import some.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Some(Action::Import(args)) => import::run(args),
        None => search(&args.search),
    }
}

fn search(args: &Search) -> Result<(), Failure> {
    args.between.check()?;
    refuse_state_of_calls("jobs", &args.query.target)?;
    if args.all_domains {
        return print_found(args, everywhere::read(args)?);
    }
    let mut client = Client::new(&args.query.target);
    if args.follow {
        return follow::run(args, &mut client);
    }
    let about = args.whose.about();
    let pages = Pages::read(args.cursor.clone(), args.limit(), |cursor, limit| {
        client.request(&params(args, cursor, limit), &about, PATIENCE)
    });
    let pages = match (pages, &args.whose.domain) {
        (Ok(pages), _) => pages,
        (Err(error), Some(domain)) if known_jobs::is_away(&error) && args.cursor.is_none() => {
            return print_found(args, everywhere::of_away(args, domain, error)?);
        }
        (Err(error), _) => return Err(client.explain(JobsSearchParams::METHOD, error)),
    };
    let shown = pages.items.len() as u64;
    let left_out = match args.sorted_there() {
        Some(amount) => below(amount, shown, pages.last.total, pages.last.total_is_more),
        None if args.sort.is_some() => newest_sorted(shown, pages.last.total, pages.last.total_is_more),
        None => pages.left_out(),
    };
    let Pages { items, last, .. } = pages;
    print(args, items)?;
    if let Some(text) = left_out {
        note(&text);
    }
    if last.own_only {
        note("only your own jobs were searched; root and operators search all by these options");
    }
    note_missing(&last.unheard);
    note_end_of_past(args.between.since, last.stored_since);
    note_unknown(args, &mut client);
    Ok(())
}

/// Says how many sorted jobs are not printed.
fn below(amount: JobAmount, shown: u64, total: u64, is_more: bool) -> Option<String> {
    let more = if is_more { "more than " } else { "" };
    (total > shown || is_more).then(|| {
        format!(
            "the {shown} of {more}{total} jobs that have most of this ({amount}); --top N prints more of them"
        )
    })
}

/// Says how many jobs were not sorted.
fn newest_sorted(sorted: u64, total: u64, is_more: bool) -> Option<String> {
    let more = if is_more { "more than " } else { "" };
    (total > sorted || is_more).then(|| {
        format!("of the newest {sorted} of {more}{total} jobs; without --limit all that fit are sorted")
    })
}

/// Notes jobs that a search by user or name leaves out, as no log states these before the end.
fn note_unknown(args: &Search, client: &mut Client) {
    let is_for_programs = args.query.json || args.csv || args.format.is_some();
    if is_for_programs || (args.of.user.is_none() && args.of.name.is_none()) {
        return;
    }
    let states = [State::Waiting, State::Running].into_iter();
    let states = states.filter(|state| args.within.is_none_or(|within| within == *state));
    let mut unknown = 0;
    for state in states {
        let open = JobsSearchParams { state: Some(state), limit: LIMIT_MAX, ..JobsSearchParams::default() };
        // It is a note beside an answer: without it the answer is as good.
        let Ok(answer) = client.request(&open, &args.whose.about(), PATIENCE) else { return };
        let lacks = |job: &&Job| {
            (args.of.user.is_some() && job.user.is_empty()) || (args.of.name.is_some() && job.name.is_empty())
        };
        unknown += answer.typed.jobs.iter().filter(lacks).count();
    }
    if unknown > 0 {
        note(&format!(
            "{}, waiting or running, may be missing: no log states the user or name yet; --in running and --in waiting \
             list all",
            count(unknown as u64, "job")
        ));
    }
}

/// Returns the pattern of ids and the number to search by: `slurm:17` is number 17 of Slurm, and its parts. An id with a
/// mark of a later life is one job.
fn id_and_number(job: Option<&str>) -> (Option<String>, Option<String>) {
    let (id, number) = call_or_number(None, job.map(str::to_owned).as_ref());
    match id.as_deref().and_then(|id| id.split_once(':')).filter(|(_, number)| !number.contains(['#', '*'])) {
        Some((scope, number)) => (Some(format!("{scope}*")), Some(number.to_owned())),
        None => (id, number),
    }
}

/// Print jobs of several domains, or of one that does not answer.
fn print_found(args: &Search, found: everywhere::Found) -> Result<(), Failure> {
    let everywhere::Found { items, total, is_more, missing, unheard } = found;
    let shown = items.len() as u64;
    print(args, items)?;
    if let Some(amount) = args.sorted_there() {
        below(amount, shown.min(args.limit()), total, is_more).iter().for_each(|text| note(text));
    } else if total > shown || is_more {
        let more = if is_more { "more than " } else { "" };
        note(&format!("{shown} of {more}{total} jobs; --limit N shows more"));
    }
    missing.iter().for_each(|text| note(&clean(text)));
    note_missing(&unheard);
    if missing.is_empty() { Ok(()) } else { Err(Failure::Printed(Kind::HostAway)) }
}

fn print(args: &Search, mut items: Vec<(Job, Value)>) -> Result<(), Failure> {
    if let Some(by) = args.sort {
        let unknown = sorted::sort(&mut items, by, now());
        if unknown > 0 {
            note(&format!(
                "of {unknown} of the {} jobs the value to sort by is not known; these are last",
                items.len()
            ));
        }
        let top = args.top.or(args.sorted_there().map(|_| TOP_DEFAULT));
        items.truncate(top.and_then(|top| usize::try_from(top).ok()).unwrap_or(usize::MAX));
    }
    let (jobs, raw): (Vec<Job>, Vec<Value>) = items.into_iter().unzip();
    if jobs.iter().any(|job| job.is_reduced) {
        note(
            "of other users' jobs only what a queue shows is printed; all of them is shown to root and operators, over the \
             local socket of a daemon",
        );
    }
    if !args.csv && args.format.is_none() {
        let conditions = args.conditions.iter().flatten().map(|condition| condition.amount);
        let asked: Vec<JobAmount> = conditions.chain(args.sort).collect();
        let table = |jobs: &[Job], output: &mut Output| print_jobs(jobs, &asked, output);
        return print_typed(&args.query, &raw, &jobs, "no job fits", table);
    }
    let mut output = args.query.width.output().whole();
    if args.csv {
        print_csv(&jobs, &mut output)?;
    } else {
        print_sacct(&jobs, &mut output)?;
    }
    output.flush()
}

fn params(args: &Search, cursor: Option<String>, limit: u64) -> JobsSearchParams {
    let (id, job) = id_and_number(args.job.as_deref());
    JobsSearchParams {
        id,
        job,
        name: args.of.name.clone(),
        user: args.of.user.clone(),
        account: args.of.charged_to.clone(),
        queue: args.of.queue.clone(),
        on_host: args.host.clone(),
        state: args.within,
        outcome: args.outcome.clone(),
        since: args.between.since.map(UnixTime),
        until: args.between.until.map(UnixTime),
        conditions: args.conditions.concat(),
        finding: args.finding,
        sort: args.sorted_there(),
        limit,
        order: if args.oldest { CallOrder::Oldest } else { CallOrder::Newest },
        cursor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_product_is_a_number_and_a_pattern_of_ids() {
        for (job, id, number) in [
            ("17", None, Some("17")),
            ("slurm:17", Some("slurm*"), Some("17")),
            ("slurm/alpha:9_7", Some("slurm/alpha*"), Some("9_7")),
            ("slurm:17#2", Some("slurm:17#2"), None),
            ("https://gk.site/1/", None, Some("https://gk.site/1/")),
        ] {
            let (found_id, found) = id_and_number(Some(job));
            assert_eq!((found_id.as_deref(), found.as_deref()), (id, number), "{job}");
        }
        assert_eq!(id_and_number(None), (None, None));
    }
}
