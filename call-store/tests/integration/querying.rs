//! Every page of every query equals what is computed from the calls themselves.

use crate::made_up::{block_on, now, random_calls, store, storing, time};
use call_store::answer::{Owners, Place, Query};
use call_store::store::CallStore;
use fastrand::Rng;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use wire::api::UnixTime;
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::job_amount::{ByAmount, JobAmount, conditions};
use wire::api::jobs::Job;
use wire::call::StoredCall;
use wire::call::job::Fact;
use wire::call::{Call, State};
use wire::event::Outcome;

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => (0..=text.len()).any(|at| matches(&pattern[1..], &text[at..])),
        Some(char) => text.strip_prefix(char).is_some_and(|rest| matches(&pattern[char.len_utf8()..], rest)),
    }
}

fn is_of_job(left: &StoredCall, job: &str) -> bool {
    let part = left.call.job.strip_prefix(job).is_some_and(|rest| rest.starts_with('_'));
    part || left.call.job == job || left.aliases.iter().any(|alias| alias.split(':').nth(1) == Some(job))
}

fn fits(left: &StoredCall, params: &CallsParams) -> bool {
    let call = &left.call;
    let on =
        |host: &String| call.hosts.iter().any(|known| known == host || known.split('.').next() == Some(host));
    params
        .call
        .as_ref()
        .is_none_or(|id| matches(id, &call.id) || left.aliases.iter().any(|alias| alias == id))
        && params.name.as_ref().is_none_or(|name| matches(name, &call.name))
        && params.job.as_ref().is_none_or(|job| is_of_job(left, job))
        && params.user.as_ref().is_none_or(|user| call.user == *user)
        && params.account.as_ref().is_none_or(|account| call.fact(Fact::Account) == Some(account))
        && params.queue.as_ref().is_none_or(|queue| call.fact(Fact::Queue) == Some(queue))
        && (!params.jobs_only || call.details.as_ref().is_some_and(|details| details.parts == 0))
        && params.on_host.as_ref().is_none_or(on)
        && params.state.is_none_or(|state| call.state == state)
        && (params.outcome.is_empty()
            || call.outcome.is_some_and(|outcome| params.outcome.contains(&outcome)))
        && params.since.is_none_or(|since| call.latest() >= Some(since.0))
        && params.until.is_none_or(|until| call.latest() <= Some(until.0))
}

fn random_params(rng: &mut Rng) -> CallsParams {
    let jobs_only = rng.u8(0..3) == 0;
    let mut chosen = |from: &[&str]| (rng.u8(0..3) == 0).then(|| (*rng.choice(from).unwrap()).to_owned());
    CallsParams {
        call: chosen(&[
            "slurm:17",
            "slurm:3_1",
            "slurm:31",
            "slurm:1*",
            "condor:*",
            "*7",
            "nothing",
            "slurm/alpha:*2*",
        ]),
        name: chosen(&["relax", "relax*", "*", "rel?x", "*[1]", "", "nothing*", "*l*x*"]),
        job: chosen(&["17", "3", "3_1", "31", "nothing"]),
        user: chosen(&["ada", "bob", "", "eve"]),
        account: chosen(&["physics", "bio", "law"]),
        queue: chosen(&["long", "short", "none"]),
        jobs_only,
        on_host: chosen(&["wn1", "wn1.site.org", "wn2", "wn3"]),
        state: (rng.u8(0..4) == 0).then(|| State::ALL[rng.usize(0..3)]),
        outcome: (0..rng.usize(0..3)).map(|_| *rng.choice(Outcome::ALL).unwrap()).collect(),
        since: (rng.u8(0..3) == 0).then(|| UnixTime(time(rng.i64(0..5_000)))),
        until: (rng.u8(0..3) == 0).then(|| UnixTime(time(rng.i64(0..5_000)))),
        order: if rng.bool() { CallOrder::Newest } else { CallOrder::Oldest },
        ..CallsParams::default()
    }
}

fn random_owners(rng: &mut Rng) -> Owners {
    match rng.u8(0..6) {
        0 => Owners::Only(vec!["ada".to_owned()]),
        1 => Owners::Only(vec!["bob".to_owned(), "1003".to_owned()]),
        2 => Owners::Only(Vec::new()),
        _ => Owners::All,
    }
}

fn is_owned(call: &Call, owners: &Owners) -> bool {
    match owners {
        Owners::All => true,
        Owners::Only(names) => names.contains(&call.user.to_string()),
    }
}

fn random_by(rng: &mut Rng) -> ByAmount {
    let texts = [
        "cpus > 1",
        "cpus <= 64",
        "tries = 1",
        "ran < 10s",
        "cpu_time >= 0.000007",
        "cpu_efficiency < 1 %",
        "waited > 1h",
    ];
    let text: Vec<&str> = (0..1 + rng.usize(0..2)).map(|_| *rng.choice(&texts).unwrap()).collect();
    match rng.u8(0..3) {
        0 => ByAmount { conditions: conditions(&text.join(" and ")).unwrap(), sort: None },
        _ => ByAmount::default(),
    }
}

fn fits_amounts(call: &Call, by: &ByAmount) -> bool {
    by.is_none() || (call.is_job() && by.fits(&Job::from(call), now()))
}

/// Reads all pages of this many calls.
async fn read(store: &CallStore, query: Query<'_>, limit: usize) -> Vec<Call> {
    let (mut after, mut calls) = (None, Vec::new());
    loop {
        let page = store.page(query, after.as_ref(), limit).await.unwrap();
        let Some(last) = page.calls.last() else { return calls };
        after = Some(Place { latest: last.latest(), id: last.id.clone() });
        calls.extend(page.calls);
    }
}

/// Makes the rows of hosts what they are in a database of an earlier version.
async fn forget_about_hosts(store: &CallStore) {
    let options = SqliteConnectOptions::new().filename(store.path());
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("UPDATE call_host SET user = NULL, outcome = NULL").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
}

#[test]
fn pages_equal_the_truth_for_any_filters() {
    let seed = 21;
    let mut rng = Rng::with_seed(seed);
    let (_folder, store) = store();
    let calls = random_calls(&mut rng, 1_500);
    block_on(async {
        for (number, calls) in calls.chunks(100).enumerate() {
            store.apply(&storing(calls.to_vec()), now()).await.unwrap();
            if number == 7 {
                forget_about_hosts(&store).await;
            }
        }
        let mut found = 0;
        for _ in 0..400 {
            let params = random_params(&mut rng);
            let owners = random_owners(&mut rng);
            let by = random_by(&mut rng);
            let query = Query { params: &params, by: &by, owners: &owners };
            let is_wanted = |left: &&StoredCall| {
                fits(left, &params) && is_owned(&left.call, &owners) && fits_amounts(&left.call, &by)
            };
            let mut wanted: Vec<&Call> = calls.iter().filter(is_wanted).map(|left| &left.call).collect();
            wanted.sort_by_key(|call| (call.latest(), &call.id));
            if params.order == CallOrder::Newest {
                wanted.reverse();
            }
            for limit in [7, 200] {
                let page = store.page(query, None, limit).await.unwrap();
                assert_eq!(
                    page.calls.iter().collect::<Vec<_>>(),
                    wanted[..wanted.len().min(limit)],
                    "{params:?}"
                );
                assert_eq!(
                    (page.total, page.is_more),
                    (wanted.len() as u64, false),
                    "{params:?} {owners:?} {by:?}"
                );
            }
            let read = read(&store, query, 7).await;
            assert_eq!(read.iter().collect::<Vec<_>>(), wanted, "{params:?}");
            found += wanted.len();
        }
        assert!(found > 1_000, "the queries find something: {found}");
    });
}

#[test]
fn jobs_with_most_of_an_amount_equal_the_truth_for_any_filters() {
    let mut rng = Rng::with_seed(22);
    let (_folder, store) = store();
    let calls = random_calls(&mut rng, 1_500);
    block_on(async {
        store.apply(&storing(calls.clone()), now()).await.unwrap();
        let mut found = 0;
        for _ in 0..300 {
            let (params, owners) = (random_params(&mut rng), random_owners(&mut rng));
            let amount = *rng.choice(JobAmount::ALL).unwrap();
            let by = ByAmount { sort: Some(amount), ..random_by(&mut rng) };
            let query = Query { params: &params, by: &by, owners: &owners };
            let key = |call: &Call| (amount.of(&Job::from(call), None), call.latest());
            let is_wanted = |left: &&StoredCall| {
                fits(left, &params) && is_owned(&left.call, &owners) && fits_amounts(&left.call, &by)
            };
            let mut wanted: Vec<_> = calls.iter().filter(is_wanted).map(|left| key(&left.call)).collect();
            wanted.sort_by(|one, other| other.partial_cmp(one).unwrap());
            for limit in [5, 200] {
                let page = store.page(query, None, limit).await.unwrap();
                let keys: Vec<_> = page.calls.iter().map(key).collect();
                assert_eq!(keys, wanted[..wanted.len().min(limit)], "{params:?} {by:?}");
                assert_eq!((page.total, page.is_more), (wanted.len() as u64, false), "{params:?} {by:?}");
            }
            found += wanted.len();
        }
        assert!(found > 1_000, "the queries find something: {found}");
    });
}
