//! Jobs in the store: how fast they are stored, how much space they take, how long the first page of each filter takes,
//! and all pages.
//!
//! `VISPERF_CALLS=10000000` sets how many; 200,000 by default. `VISPERF_SACCT=FOLDER` names a Slurm with accounting, whose
//! `sacct` is measured beside.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark")]

use call_store::answer::{Place, Query};
use call_store::store::{CallLimit, CallStore};
use compact_str::format_compact;
use fastrand::Rng;
use log_filters::join::changes::CallChanges;
use std::time::{Duration, Instant};
use wire::api::UnixTime;
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::job_amount::{ByAmount, JobAmount, conditions};
use wire::call::failed_process::FailedProcess;
use wire::call::job::{Fact, JobDetails, Line, Statement};
use wire::call::usage::{Figure, MeasuredBy, Usage};
use wire::call::{Authority, Call, State, StoredCall};
use wire::event::{Id, Outcome};
use wire::id::{Generation, SensorKey};
use wire::report::calls::FetchCalls;
use wire::time::Time;

#[path = "calls/sacct.rs"]
mod sacct;

const START_SECS: i64 = 1_700_000_000;
const ROOM: CallLimit = CallLimit { bytes: 1 << 40, age: Duration::MAX };
const BATCH: u64 = 5_000;
const ROUNDS: usize = 9;
const SEARCHES: usize = 200;

/// A job of a cluster of 500 hosts with 200 users; a call each ten seconds.
fn call(rng: &mut Rng, number: u64) -> StoredCall {
    let ended = START_SECS + i64::try_from(number).unwrap() * 10;
    let at = |secs: i64| Some(Time::from_micros((ended - secs) * 1_000_000));
    // Some users and programs run most jobs.
    let skewed = |rng: &mut Rng, below: u32| rng.u32(0..below).min(rng.u32(0..below));
    let hosts =
        (0..1 + rng.usize(0..2)).map(|_| format_compact!("wn{:03}.site.org", rng.u32(0..500))).collect();
    let is_ok = rng.u8(0..20) > 0;
    let call = Call {
        id: format_compact!("slurm:{number}"),
        job: format_compact!("{number}"),
        name: format_compact!("program-{}", skewed(rng, 1000)),
        user: format_compact!("user{}", skewed(rng, 200)),
        from: "login1".into(),
        state: State::Ended,
        submitted: at(rng.i64(600..4_000)),
        offered: None,
        selected: at(500),
        started: at(500),
        ended: at(0),
        offers: Vec::new(),
        hosts,
        outcome: Some(if is_ok { Outcome::Ok } else { Outcome::Failed }),
        code: if is_ok { "0" } else { "1" }.into(),
        signal: "".into(),
        reason: "".into(),
        tries: 1,
        events: 4,
        details: None,
    };
    let details = Some(Box::new(details(rng, &call)));
    StoredCall { first: call.submitted.unwrap(), aliases: Vec::new(), call: Call { details, ..call } }
}

fn line(rng: &mut Rng, time: Time) -> Line {
    let event = Id {
        sensor: SensorKey(rng.u64(..)),
        generation: Generation(1),
        offset: rng.u64(0..1 << 32),
        number: 0,
    };
    Line { event, time }
}

/// What Slurm's logs state of a job, and its usage on each host.
fn details(rng: &mut Rng, call: &Call) -> JobDetails {
    let ended = call.ended.unwrap();
    let number = |number: u32| format_compact!("{number}");
    let facts = [
        (Fact::Account, format_compact!("account{}", rng.u32(0..40))),
        (Fact::Queue, format_compact!("queue{}", rng.u32(0..8))),
        (Fact::Qos, "normal".into()),
        (Fact::Uid, number(rng.u32(1000..1200))),
        (Fact::Cpus, number(rng.u32(1..129))),
        (Fact::Nodes, number(2)),
        (Fact::Memory, format_compact!("{}", rng.u64(1..256) << 30)),
        (Fact::TimeLimit, number(86_400)),
        (Fact::Eligible, format_compact!("{}", ended.micros() / 1_000_000 - 700)),
        (Fact::State, "COMPLETED".into()),
    ];
    let state = |(fact, value)| Statement { fact, value, by: Authority::Accounting, line: 0 };
    let usage = call.hosts.iter().map(|host| Usage {
        host: host.clone(),
        user: call.user.clone(),
        uid: 1000,
        is_proved: true,
        by: MeasuredBy::ControlGroup,
        started: call.started.unwrap(),
        until: ended,
        is_over: true,
        figures: Figure::ALL.iter().take(10).map(|figure| (*figure, rng.u64(0..1 << 34))).collect(),
        failed: failed(call.outcome, ended),
        line: line(rng, ended),
    });
    let usage = usage.collect();
    let facts = facts.into_iter().map(state).collect();
    JobDetails { facts, lines: vec![line(rng, ended)], usage, ..JobDetails::default() }
}

fn failed(outcome: Option<Outcome>, ended: Time) -> Vec<FailedProcess> {
    let failed = |name: &str| FailedProcess { name: name.into(), pid: 4711, parent: 4700, code: 256, ended };
    match outcome {
        Some(Outcome::Failed) => vec![failed("slurm_script"), failed("python3")],
        _ => Vec::new(),
    }
}

/// Searches by amounts, of all jobs and of a user's.
fn by_amount() -> Vec<(&'static str, Option<&'static str>, ByAmount)> {
    let by = |text: &str, sort| {
        let conditions = if text.is_empty() { Vec::new() } else { conditions(text).unwrap() };
        ByAmount { conditions, sort }
    };
    let wasted = Some(JobAmount::Wasted);
    vec![
        ("where, many fit", None, by("cpu_efficiency < 20 %", None)),
        ("where, some fit", None, by("cpu_efficiency < 20 % and cpus = 7", None)),
        ("where, few fit", None, by("cpu_efficiency < 20 % and cpus = 7 and memory = 9 GiB", None)),
        ("where, none fits", None, by("tries > 9 and peak_memory > 1 GiB", None)),
        ("most wasted", None, by("", wasted)),
        ("most wasted, where", None, by("cpus = 7 and ran < 1h", wasted)),
        ("user, where", Some("user3"), by("cpu_efficiency < 20 %", None)),
        ("user, most wasted", Some("user3"), by("", wasted)),
    ]
}

fn queries(count: u64) -> Vec<(&'static str, CallsParams)> {
    let all = CallsParams { jobs_only: true, ..CallsParams::default() };
    let middle = UnixTime(Time::from_micros((START_SECS + i64::try_from(count).unwrap() * 5) * 1_000_000));
    let later = UnixTime(middle.0.plus(Duration::from_secs(30 * 86_400)));
    let text = |text: &str| Some(text.to_owned());
    vec![
        ("newest", all.clone()),
        ("oldest", CallsParams { order: CallOrder::Oldest, ..all.clone() }),
        ("until the middle", CallsParams { until: Some(middle), ..all.clone() }),
        ("id", CallsParams { call: Some(format!("slurm:{}", count / 2)), ..all.clone() }),
        ("id pattern, few", CallsParams { call: Some(format!("slurm:{}*", count / 20)), ..all.clone() }),
        ("id pattern, many", CallsParams { call: text("slurm:1*"), ..all.clone() }),
        ("job", CallsParams { job: Some((count / 3).to_string()), ..all.clone() }),
        ("user with many", CallsParams { user: text("user3"), ..all.clone() }),
        ("user with few", CallsParams { user: text("user199"), ..all.clone() }),
        ("user with none", CallsParams { user: text("root"), ..all.clone() }),
        (
            "user in 30 days",
            CallsParams { user: text("user3"), since: Some(middle), until: Some(later), ..all.clone() },
        ),
        ("account", CallsParams { account: text("account7"), ..all.clone() }),
        ("queue", CallsParams { queue: text("queue3"), ..all.clone() }),
        ("host", CallsParams { on_host: text("wn123"), ..all.clone() }),
        ("name", CallsParams { name: text("program-5"), ..all.clone() }),
        ("name pattern, some", CallsParams { name: text("program-99*"), ..all.clone() }),
        ("name pattern, all", CallsParams { name: text("*program*"), ..all.clone() }),
        ("name pattern, none", CallsParams { name: text("*nothing*"), ..all.clone() }),
        ("failed", CallsParams { outcome: vec![Outcome::Failed], ..all.clone() }),
        ("timeout (none)", CallsParams { outcome: vec![Outcome::Timeout], ..all.clone() }),
        (
            "user and failed",
            CallsParams { user: text("user3"), outcome: vec![Outcome::Failed], ..all.clone() },
        ),
        ("host and user", CallsParams { on_host: text("wn123"), user: text("user3"), ..all.clone() }),
        ("running (none)", CallsParams { state: Some(State::Running), ..all }),
    ]
}

async fn measure(count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let store = CallStore::new(&folder.path().join("calls.db"), ROOM);
    let (mut rng, mut took, mut number, mut bytes) = (Rng::with_seed(1), Duration::ZERO, 0, 0);
    let mut accounting = sacct::Accounting::open();
    while number < count {
        let left: Vec<StoredCall> =
            (0..BATCH.min(count - number)).map(|nth| call(&mut rng, number + nth)).collect();
        accounting.iter_mut().for_each(|accounting| left.iter().for_each(|call| accounting.push(call)));
        let changes = CallChanges { left, ..CallChanges::default() };
        number += changes.left.len() as u64;
        let started = Instant::now();
        bytes = store.apply(&changes, Time::from_micros(i64::MAX)).await.unwrap().used_bytes;
        took += started.elapsed();
    }
    #[allow(clippy::cast_precision_loss)]
    let (rate, each) = (count as f64 / took.as_secs_f64(), bytes as f64 / count as f64);
    println!("{count} calls: {rate:.0} stored a second, {each:.0} bytes a call");
    for limit in [100, 1000] {
        println!("first page of {limit}, with the count up to 10,000: median and maximum of {ROUNDS}");
        for (what, params) in queries(count) {
            measure_page(&store, what, Query::of_all(&params), limit).await;
        }
        for (what, user, by) in by_amount() {
            let params =
                CallsParams { user: user.map(str::to_owned), jobs_only: true, ..CallsParams::default() };
            measure_page(&store, what, Query { by: &by, ..Query::of_all(&params) }, limit).await;
        }
    }
    measure_user_and_time(&store, count).await;
    if let Some(accounting) = &accounting {
        accounting.load();
        accounting.measure(&searches(count));
    }
    measure_all_pages(&store, count).await;
    measure_copy(&store, count).await;
}

async fn measure_page(store: &CallStore, what: &str, query: Query<'_>, limit: usize) {
    let mut times = Vec::new();
    let mut answer = String::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let page = store.page(query, None, limit).await;
        times.push(started.elapsed());
        answer = match page {
            Ok(page) => {
                format!("{} of {}{}", page.calls.len(), page.total, if page.is_more { "+" } else { "" })
            }
            Err(error) => error.to_string(),
        };
    }
    times.sort();
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (median, most) = (millis(times[ROUNDS / 2]), millis(times[ROUNDS - 1]));
    println!("  {what:20} {median:8.2} ms {most:8.2} ms  {answer}");
}

/// Users and times of searches, in seconds since 1970.
fn searches(count: u64) -> Vec<(String, i64, i64)> {
    let mut rng = Rng::with_seed(7);
    let mut search = || {
        let user = format!("user{}", rng.u32(0..200).min(rng.u32(0..200)));
        let since = START_SECS + rng.i64(0..i64::try_from(count).unwrap() * 10);
        (user, since, since + 30 * 86_400)
    };
    (0..SEARCHES).map(|_| search()).collect()
}

/// Searches the jobs of a user in 30 days, of many users and times: with nothing of the file in memory, and again.
async fn measure_user_and_time(store: &CallStore, count: u64) {
    let (mut cold, mut warm, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (user, since, until) in searches(count) {
        let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
        let (user, since, until) = (Some(user), at(since), at(until));
        let params = CallsParams { user, since, until, jobs_only: true, ..CallsParams::default() };
        // Only root may; else it is warm, too.
        let is_cold = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        let mut unread = Vec::new();
        for (times, limit) in [(&mut cold, 100), (&mut warm, 100), (&mut unread, 10_000), (&mut all, 10_000)]
        {
            let started = Instant::now();
            store.page(Query::of_all(&params), None, limit).await.unwrap();
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        if !is_cold {
            cold.clear();
        }
    }
    println!(
        "first page of 100 of a user in 30 days, {SEARCHES} users and times: median and 99th percentile"
    );
    for (what, mut times) in [("cold", cold), ("warm", warm), ("all of them", all)] {
        times.sort_by(f64::total_cmp);
        match times.as_slice() {
            [] => println!("  {what}: it takes root to drop what is cached"),
            times => println!(
                "  {what:20} {:8.2} ms {:8.2} ms",
                times[times.len() / 2],
                times[times.len() * 99 / 100]
            ),
        }
    }
}

/// Reads all jobs, in pages as a report does.
async fn measure_all_pages(store: &CallStore, count: u64) {
    let params = CallsParams { jobs_only: true, state: Some(State::Ended), ..CallsParams::default() };
    let (mut place, mut read, started) = (None, 0, Instant::now());
    loop {
        let page = store.page(Query::of_all(&params), place.as_ref(), 10_001).await.unwrap();
        read += page.calls.len() as u64;
        let Some(last) = page.calls.last().filter(|_| page.calls.len() > 10_000) else { break };
        place = Some(Place { latest: last.latest(), id: last.id.clone() });
    }
    assert_eq!(read, count);
    #[allow(clippy::cast_precision_loss)]
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("all pages of 10,000: {rate:.0} jobs a second");
}

/// Copies a store, in answers of a quarter of a MiB as a standby requests them; then that nothing follows.
async fn measure_copy(from: &CallStore, count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let to = CallStore::new(&folder.path().join("calls.db"), ROOM);
    let (mut answers, mut read, mut written) = (0, Duration::ZERO, Duration::ZERO);
    loop {
        let started = Instant::now();
        let held = to.positions().await.unwrap();
        let calls = from.following(&FetchCalls { held, len_bytes: 256 << 10 }).await.unwrap();
        read += started.elapsed();
        answers += 1;
        let is_end = calls.is_end;
        let started = Instant::now();
        to.copy(calls, Time::from_micros(i64::MAX)).await.unwrap();
        written += started.elapsed();
        if is_end {
            break;
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let [read, written] = [read, written].map(|took| count as f64 / took.as_secs_f64());
    println!("copied in {answers} answers: {read:.0} calls read a second, {written:.0} stored");
    let held = to.positions().await.unwrap();
    let started = Instant::now();
    let nothing = from.following(&FetchCalls { held, len_bytes: 256 << 10 }).await.unwrap();
    assert!(nothing.calls.is_empty());
    println!("that nothing follows: {:.2} ms", started.elapsed().as_secs_f64() * 1e3);
}

fn main() {
    let count = std::env::var("VISPERF_CALLS").ok().and_then(|count| count.parse().ok()).unwrap_or(200_000);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(measure(count));
}
