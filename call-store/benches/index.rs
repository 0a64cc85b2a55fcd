//! The index of the jobs of all domains: how fast pages of 20 domains are stored, how much a job takes on the disk and in a page,
//! and how long the first page of searches takes.
//!
//! `VISPERF_JOBS=1000000` sets how many; 200,000 by default. SQLite works in a thread of its own: `taskset -c 1` gives the figures of
//! one core.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark")]

use call_store::job_index::{IndexLimit, JobIndex};
use fastrand::Rng;
use std::time::{Duration, Instant};
use wire::api::UnixTime;
use wire::api::job_index::{DirectoryJobsParams, IndexPosition, JobIndexPage};
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;
use wire::id::DomainName;
use wire::time::Time;

const START_SECS: i64 = 1_700_000_000;
const DOMAINS: u64 = 20;
const PAGE: u64 = 1_000;
const SEARCHES: usize = 200;

/// A job of a site of 500 hosts with 200 users.
fn job(rng: &mut Rng, number: u64, secs: i64) -> Job {
    let at = |before: i64| Some(UnixTime(Time::from_micros((secs - before) * 1_000_000 + 123_456)));
    // Some users and programs run most jobs.
    let skewed = |rng: &mut Rng, below: u32| rng.u32(0..below).min(rng.u32(0..below));
    let is_ok = rng.u8(0..20) > 0;
    Job {
        id: format!("slurm:{number}"),
        job: number.to_string(),
        product: "slurm".to_owned(),
        name: format!("program-{}", skewed(rng, 1000)),
        user: format!("user{}", skewed(rng, 200)),
        queue: ["long", "short", "gpu"][rng.usize(0..3)].to_owned(),
        state: State::Ended,
        outcome: Some(if is_ok { Outcome::Ok } else { Outcome::Failed }),
        submitted: at(rng.i64(600..4_000)),
        started: at(500),
        ended: at(0),
        hosts: (0..1 + rng.usize(0..2)).map(|_| format!("wn{:03}.site.org", rng.u32(0..500))).collect(),
        nodes: Some(2),
        tries: 1,
        is_reduced: true,
        ..Job::default()
    }
}

fn main() {
    let count: u64 = std::env::var("VISPERF_JOBS").map_or(200_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.db");
    let index = JobIndex::new(&path, IndexLimit { bytes: 1 << 40, age: Duration::from_secs(1 << 32) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        store(&index, count).await;
        let len = std::fs::metadata(&path).unwrap().len();
        println!("on the disk: {} B a job", len / count);
        search(&index, count).await;
    });
}

/// Stores as many jobs, page by page of one domain after the other.
async fn store(index: &JobIndex, count: u64) {
    let mut rng = Rng::with_seed(1);
    let (mut in_pages, mut took) = (0, Duration::ZERO);
    for at in 0..count / PAGE {
        let domain = DomainName::try_from(format!("site-{:02}", at % DOMAINS).as_str()).unwrap();
        let first = at / DOMAINS * PAGE;
        let secs = |number: u64| START_SECS + i64::try_from(number).unwrap() * 10;
        let jobs: Vec<Job> =
            (first..first + PAGE).map(|number| job(&mut rng, number, secs(number))).collect();
        let page = JobIndexPage::new(IndexPosition { store: "0".repeat(16), key: first + PAGE }, true, &jobs);
        in_pages += serde_json::to_vec(&page).unwrap().len();
        let asked = Instant::now();
        index.take(&domain, &page, Time::from_micros(secs(first + PAGE) * 1_000_000)).await.unwrap();
        took += asked.elapsed();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = count as f64 / took.as_secs_f64();
    println!("stored: {count} jobs of {DOMAINS} domains, {rate:.0} a second");
    println!("in a page: {} B a job as JSON", in_pages as u64 / count);
}

async fn search(index: &JobIndex, count: u64) {
    let mut rng = Rng::with_seed(2);
    let last = START_SECS + i64::try_from(count / DOMAINS).unwrap() * 10;
    let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
    type Make = fn(&mut Rng, DirectoryJobsParams) -> DirectoryJobsParams;
    let searches: [(&str, Make); 5] = [
        ("newest of all", |_, all| all),
        ("of a user and a time", |rng, all| DirectoryJobsParams {
            user: Some(format!("user{}", rng.u32(0..100))),
            ..all
        }),
        ("of a domain", |rng, all| DirectoryJobsParams {
            domain: Some(format!("site-{:02}", rng.u64(0..DOMAINS))),
            ..all
        }),
        ("of a number", |rng, all| DirectoryJobsParams { job: Some(rng.u32(0..9_000).to_string()), ..all }),
        ("failed, of a name with *", |rng, all| DirectoryJobsParams {
            name: Some(format!("program-{}*", rng.u32(1..50))),
            outcome: vec![Outcome::Failed],
            ..all
        }),
    ];
    for (what, make) in searches {
        let mut took: Vec<Duration> = Vec::new();
        let mut found = 0;
        for _ in 0..SEARCHES {
            let since = rng.i64(START_SECS..last - 1_000);
            let all = DirectoryJobsParams {
                since: at(since),
                until: at(since + 100_000),
                ..DirectoryJobsParams::default()
            };
            let params = make(&mut rng, all);
            let asked = Instant::now();
            found += index.search(&params).await.unwrap().jobs.len();
            took.push(asked.elapsed());
        }
        took.sort();
        println!(
            "search {what}: median {:.2?}, p99 {:.2?}, {} jobs each",
            took[SEARCHES / 2],
            took[SEARCHES * 99 / 100],
            found / SEARCHES
        );
    }
}
