//! The index of the jobs of all domains: what it finds, compared with the truth, and what it does with ids that are used again,
//! little space, damage and crashes.

use crate::made_up::block_on;
use call_store::job_index::{IndexLimit, JobIndex};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::calls::CallOrder;
use wire::api::job_index::{DirectoryJobsParams, IndexPosition, JobIndexPage};
use wire::api::jobs::Job;
use wire::call::State;
use wire::event::Outcome;
use wire::id::DomainName;
use wire::time::Time;

const SECOND: i64 = 1_000_000;
const START: i64 = 1_790_000_000 * SECOND;
const ROOM: IndexLimit = IndexLimit { bytes: 64 << 20, age: Duration::from_secs(3_000 * 86_400) };

fn index(limit: IndexLimit) -> (tempfile::TempDir, JobIndex) {
    let folder = tempfile::tempdir().unwrap();
    let index = JobIndex::new(&folder.path().join("jobs.db"), limit);
    (folder, index)
}

fn named(domain: &str) -> DomainName {
    DomainName::try_from(domain).unwrap()
}

fn at(micros: i64) -> Option<UnixTime> {
    Some(UnixTime(Time::from_micros(micros)))
}

fn now() -> Time {
    Time::from_micros(START + 10_000_000 * SECOND)
}

/// Job of this number, which ran for a minute and ended so many seconds after the start of all.
fn job(rng: &mut Rng, number: u64, secs: i64) -> Job {
    let user = rng.choice(["ada", "bob", "cem"]).unwrap();
    let name = rng.choice(["relax", "relax-2", "mix"]).unwrap();
    let outcome = *rng.choice(&[Outcome::Ok, Outcome::Ok, Outcome::Failed, Outcome::Timeout]).unwrap();
    let host = format!("wn{}", rng.u8(1..5));
    let ended = START + secs * SECOND;
    let array = if number.is_multiple_of(10) { (number / 10).to_string() } else { String::new() };
    Job {
        id: format!("slurm:{number}"),
        job: number.to_string(),
        product: "slurm".to_owned(),
        name: name.to_owned(),
        user: user.to_owned(),
        queue: rng.choice(["long", "short"]).unwrap().to_owned(),
        array_job: array,
        state: State::Ended,
        outcome: Some(outcome),
        submitted: at(ended - 90 * SECOND),
        started: at(ended - 60 * SECOND),
        ended: at(ended),
        hosts: vec![host, format!("wn9.{}", rng.choice(["a", "b"]).unwrap())],
        nodes: Some(2),
        tries: 1,
        is_reduced: true,
        ..Job::default()
    }
}

fn page(store: &str, key: u64, is_end: bool, jobs: &[Job]) -> JobIndexPage {
    JobIndexPage::new(IndexPosition { store: store.to_owned(), key }, is_end, jobs)
}

/// All jobs of a search, page by page.
async fn found(index: &JobIndex, params: &DirectoryJobsParams, limit: u64) -> Vec<Job> {
    let mut params = DirectoryJobsParams { limit, ..params.clone() };
    let mut all = Vec::new();
    loop {
        let page = index.search(&params).await.unwrap();
        assert!(page.jobs.len() as u64 <= limit);
        all.extend(page.jobs);
        match page.next {
            None => return all,
            next => params.cursor = next,
        }
    }
}

fn sorted(mut jobs: Vec<Job>, order: CallOrder) -> Vec<Job> {
    jobs.sort_by_key(|job| (job.ended, job.id.clone(), job.domain.clone()));
    if order == CallOrder::Newest {
        jobs.reverse();
    }
    jobs
}

/// Whether a job is found.
type Fits = Box<dyn Fn(&Job) -> bool>;

#[test]
fn every_search_finds_what_fits_in_the_order_of_time() {
    let (_folder, index) = index(ROOM);
    let mut rng = Rng::with_seed(3);
    let mut all = Vec::new();
    block_on(async {
        for domain in ["a", "b", "c"] {
            // Times that several jobs have.
            let jobs: Vec<Job> = (1..=400).map(|number| job(&mut rng, number, number as i64 / 3)).collect();
            index.take(&named(domain), &page("0000", 1, true, &jobs), now()).await.unwrap();
            all.extend(jobs.into_iter().map(|job| Job { domain: domain.to_owned(), ..job }));
        }
        let text = |text: &str| Some(text.to_owned());
        let base = DirectoryJobsParams::default();
        let searches: Vec<(DirectoryJobsParams, Fits)> = vec![
            (base.clone(), Box::new(|_| true)),
            (DirectoryJobsParams { user: text("ada"), ..base.clone() }, Box::new(|job| job.user == "ada")),
            (DirectoryJobsParams { id: text("slurm:17"), ..base.clone() }, Box::new(|job| job.job == "17")),
            (
                DirectoryJobsParams { id: text("slurm:1*"), ..base.clone() },
                Box::new(|job| job.job.starts_with('1')),
            ),
            (
                DirectoryJobsParams { job: text("17"), ..base.clone() },
                Box::new(|job| job.job == "17" || job.array_job == "17"),
            ),
            (
                DirectoryJobsParams { name: text("relax*"), queue: text("long"), ..base.clone() },
                Box::new(|job| job.name.starts_with("relax") && job.queue == "long"),
            ),
            (
                DirectoryJobsParams { on_host: text("wn3"), user: text("bob"), ..base.clone() },
                Box::new(|job| job.hosts[0] == "wn3" && job.user == "bob"),
            ),
            (DirectoryJobsParams { on_host: text("wn9"), ..base.clone() }, Box::new(|_| true)),
            (
                DirectoryJobsParams { on_host: text("wn9.b"), ..base.clone() },
                Box::new(|job| job.hosts[1] == "wn9.b"),
            ),
            (DirectoryJobsParams { domain: text("b"), ..base.clone() }, Box::new(|job| job.domain == "b")),
            (
                DirectoryJobsParams {
                    domain: text("a"),
                    outcome: vec![Outcome::Failed, Outcome::Timeout],
                    since: at(START + 20 * SECOND),
                    until: at(START + 90 * SECOND),
                    ..base.clone()
                },
                Box::new(|job| {
                    job.domain == "a"
                        && job.outcome != Some(Outcome::Ok)
                        && (at(START + 20 * SECOND)..=at(START + 90 * SECOND)).contains(&job.ended)
                }),
            ),
        ];
        for (params, fits) in searches {
            for order in [CallOrder::Newest, CallOrder::Oldest] {
                let params = DirectoryJobsParams { order, ..params.clone() };
                let truth = sorted(all.iter().filter(|job| fits(job)).cloned().collect(), order);
                assert!(!truth.is_empty(), "{params:?}");
                for limit in [7, 10_000] {
                    assert_eq!(found(&index, &params, limit).await, truth, "{limit}: {params:?}");
                }
            }
        }
        let domains = index.domains().await.unwrap();
        let counts: Vec<(&str, u64)> = domains.iter().map(|one| (one.domain.as_str(), one.jobs)).collect();
        assert_eq!(counts, [("a", 400), ("b", 400), ("c", 400)]);
        assert!(domains.iter().all(|one| one.complete == Some(UnixTime(now()))));
        let odd = DirectoryJobsParams { cursor: text("newest"), ..base };
        assert!(index.search(&odd).await.unwrap_err().to_string().contains("cursor"));
    });
}

#[test]
fn what_more_is_known_of_a_job_replaces_it_and_an_id_that_is_used_again_does_not() {
    let (_folder, index) = index(ROOM);
    let mut rng = Rng::with_seed(3);
    let domain = named("a");
    block_on(async {
        let first = job(&mut rng, 17, 100);
        index.take(&domain, &page("0000", 1, false, std::slice::from_ref(&first)), now()).await.unwrap();
        assert_eq!(index.domains().await.unwrap()[0].complete, None, "more follows");
        let named = Job { name: "better".to_owned(), ..first };
        index.take(&domain, &page("0000", 2, true, std::slice::from_ref(&named)), now()).await.unwrap();
        for secs in [1_000, 2_000] {
            let again = job(&mut rng, 17, secs);
            index.take(&domain, &page("0000", 3, true, &[again]), now()).await.unwrap();
        }
        let found = found(&index, &DirectoryJobsParams::default(), 10).await;
        let ids: BTreeMap<&str, &str> =
            found.iter().map(|job| (job.id.as_str(), job.name.as_str())).collect();
        assert_eq!(ids.keys().copied().collect::<Vec<_>>(), ["slurm:17", "slurm:17#2", "slurm:17#3"]);
        assert_eq!(ids["slurm:17#2"], "better");
        assert_eq!(index.domains().await.unwrap()[0].jobs, 3);
    });
}

#[test]
fn reading_goes_on_after_the_last_page_of_each_store_and_a_damaged_page_changes_nothing() {
    let (folder, index) = index(ROOM);
    let mut rng = Rng::with_seed(3);
    let domain = named("a");
    block_on(async {
        assert_eq!(index.reached(&domain).await.unwrap(), []);
        let jobs = [job(&mut rng, 1, 1), job(&mut rng, 2, 2)];
        index.take(&domain, &page("aaaa", 5, true, &jobs), now()).await.unwrap();
        index.take(&domain, &page("bbbb", 2, true, &jobs), now()).await.unwrap();
        let damaged = JobIndexPage { users: Vec::new(), ..page("aaaa", 9, true, &jobs) };
        assert!(index.take(&domain, &damaged, now()).await.is_err());
        // Another process goes on where this one was killed.
        let again = JobIndex::new(&folder.path().join("jobs.db"), ROOM);
        let reached = again.reached(&domain).await.unwrap();
        let reached: Vec<(&str, u64)> = reached.iter().map(|at| (at.store.as_str(), at.key)).collect();
        assert_eq!(reached, [("aaaa", 5), ("bbbb", 2)]);
        assert_eq!(again.reached(&named("b")).await.unwrap(), []);
        for store in 0..100 {
            again.take(&domain, &page(&format!("{store:04}"), 1, true, &[]), now()).await.unwrap();
        }
        assert_eq!(again.reached(&domain).await.unwrap().len(), 64, "those of long ago are forgotten");
        assert_eq!(found(&again, &DirectoryJobsParams::default(), 9).await.len(), 2);
    });
}

#[test]
fn a_domain_with_many_jobs_does_not_drive_out_those_of_others() {
    let (folder, index) = index(IndexLimit { bytes: 2 << 20, ..ROOM });
    let mut rng = Rng::with_seed(3);
    block_on(async {
        let few: Vec<Job> = (1..=100).map(|number| job(&mut rng, number, 1)).collect();
        index.take(&named("small"), &page("0000", 1, true, &few), now()).await.unwrap();
        let mut deleted = 0;
        for chunk in 0..20_u64 {
            let many: Vec<Job> = (1..=1_000)
                .map(|number| job(&mut rng, chunk * 1_000 + number, 1_000 + chunk as i64))
                .collect();
            deleted += index.take(&named("large"), &page("0000", chunk, true, &many), now()).await.unwrap();
        }
        let domains = index.domains().await.unwrap();
        assert_eq!(domains[1].jobs, 100, "{domains:?}");
        assert!(deleted > 5_000 && domains[0].jobs + deleted == 20_000, "{deleted}: {domains:?}");
        let newest = found(&index, &DirectoryJobsParams::default(), 5).await;
        assert_eq!(newest[0].ended, at(START + 1_019 * SECOND), "the oldest go first");
        let len = std::fs::metadata(folder.path().join("jobs.db")).unwrap().len();
        assert!(len <= 2 << 20, "{len}");
        let expired = JobIndex::new(
            &folder.path().join("jobs.db"),
            IndexLimit { age: Duration::from_secs(60), ..ROOM },
        );
        for _ in 0..20 {
            expired.take(&named("small"), &page("0000", 2, true, &[]), now()).await.unwrap();
        }
        assert!(expired.domains().await.unwrap().iter().all(|domain| domain.jobs == 0));
    });
}

#[test]
fn a_domain_with_long_texts_and_odd_times_harms_no_other() {
    let (folder, index) = index(IndexLimit { bytes: 2 << 20, ..ROOM });
    let mut rng = Rng::with_seed(3);
    block_on(async {
        let few: Vec<Job> = (1..=100).map(|number| job(&mut rng, number, 1)).collect();
        index.take(&named("small"), &page("0000", 1, true, &few), now()).await.unwrap();
        for chunk in 0..20_u64 {
            let hosts = |job: u64| (0..64).map(move |host| format!("{job}-{host}-{}", "x".repeat(500)));
            let long =
                |number: u64| Job { hosts: hosts(number).collect(), ..job(&mut rng.clone(), number, 9) };
            let long: Vec<Job> = (chunk * 50..chunk * 50 + 50).map(long).collect();
            index.take(&named("hostile"), &page("0000", chunk, true, &long), now()).await.unwrap();
        }
        let domains = index.domains().await.unwrap();
        assert_eq!(domains[1].jobs, 100, "{domains:?}");
        assert!((10..60).contains(&domains[0].jobs), "{domains:?}");
        assert!(std::fs::metadata(folder.path().join("jobs.db")).unwrap().len() <= 2 << 20);

        let future = Job { ended: at(i64::MAX / 2), ..job(&mut rng, 5_000, 9) };
        let none = Job { submitted: None, started: None, ended: None, ..job(&mut rng, 5_001, 9) };
        index.take(&named("hostile"), &page("0000", 99, true, &[future, none]), now()).await.unwrap();
        let later = now().plus(Duration::from_secs(60));
        let last = Job { ended: at(later.micros() - 1), ..job(&mut rng, 5_002, 9) };
        index.take(&named("small"), &page("0000", 2, true, &[last]), later).await.unwrap();
        let newest = found(&index, &DirectoryJobsParams::default(), 200).await;
        let ids: Vec<&str> = newest.iter().take(3).map(|job| job.id.as_str()).collect();
        assert_eq!(ids, ["slurm:5002", "slurm:5001", "slurm:5000"], "a time in the future counts as now");

        for store in ["", "elsewhere", "00000000000000000"] {
            assert!(
                index.take(&named("hostile"), &page(store, 1, true, &[]), later).await.is_err(),
                "{store:?}"
            );
        }
        let many = JobIndexPage { ids: vec![String::new(); 20_001], ..page("0000", 1, true, &[]) };
        assert!(index.take(&named("hostile"), &many, later).await.is_err());
    });
}
