//! What is stored of jobs of accounting files: each job once, whatever is known of it, and whatever is given again.

use crate::made_up::{ROOM, block_on, left, now, store, storing, time, usage};
use call_store::answer::{Page, Query};
use call_store::importing::Import;
use call_store::store::{CallLimit, CallStore};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::job_import::{ImportedJob, JobsImported};
use wire::api::jobs::Job;
use wire::call::job::{Fact, JobDetails};
use wire::call::{Call, State, StoredCall};
use wire::event::Outcome;
use wire::report::calls::FetchCalls;

/// A job of an accounting file that ended then, after 10 s.
fn job(id: &str, ended_secs: i64) -> ImportedJob {
    let at = |secs: i64| Some(UnixTime(time(secs)));
    let job = Job {
        id: id.to_owned(),
        name: "relax".to_owned(),
        user: "ada".to_owned(),
        account: "physics".to_owned(),
        submitted: at(ended_secs - 12),
        started: at(ended_secs - 10),
        ended: at(ended_secs),
        outcome: Some(Outcome::Failed),
        code: "3:0".to_owned(),
        cpus: Some(4),
        ..Job::default()
    };
    ImportedJob { job, ..ImportedJob::default() }
}

fn calls(jobs: &[ImportedJob]) -> Vec<StoredCall> {
    jobs.iter().map(|job| job.to_call("sacct.txt", now()).unwrap()).collect()
}

async fn import(store: &CallStore, jobs: &[ImportedJob]) -> JobsImported {
    store.import(&calls(jobs), &Import::default(), now()).await.unwrap().0
}

/// Numbers of jobs stored, completed, known and refused.
fn sums(imported: &JobsImported) -> (u64, u64, u64, usize) {
    (imported.stored, imported.completed, imported.known, imported.refused.len())
}

async fn all(store: &CallStore) -> Vec<Call> {
    let params = CallsParams { order: CallOrder::Oldest, ..CallsParams::default() };
    let page: Page = store.page(Query::of_all(&params), None, 1_000_000).await.unwrap();
    page.calls
}

/// As logs have it that state neither user nor end of a job: a row of an ended call without them.
fn poor(number: u32, ended_secs: i64) -> StoredCall {
    let mut poor = left(number, ended_secs);
    let call = &mut poor.call;
    (call.name, call.user, call.code) = ("".into(), "1000".into(), "".into());
    (call.submitted, call.outcome) = (None, Some(Outcome::Finished));
    call.details = Some(Box::new(JobDetails { usage: vec![usage("wn1", 5)], ..JobDetails::default() }));
    poor
}

#[test]
fn a_job_is_stored_once_however_often_it_is_given() {
    let (_folder, store) = store();
    let jobs: Vec<ImportedJob> =
        (0..700).map(|number| job(&format!("slurm:{number}"), 100 + number)).collect();
    block_on(async {
        assert_eq!(sums(&import(&store, &jobs).await), (700, 0, 0, 0));
        assert_eq!(sums(&import(&store, &jobs).await), (0, 0, 700, 0));
        let again = CallStore::new(store.path(), ROOM);
        assert_eq!(sums(&import(&again, &jobs[10..20]).await), (0, 0, 10, 0));
        let twice = [jobs[0].clone(), job("slurm:9000", 50), job("slurm:9000", 50)];
        assert_eq!(sums(&import(&store, &twice).await), (1, 0, 2, 0), "twice in one call");
        let stored = all(&store).await;
        assert_eq!(stored.len(), 701);
        let expected = calls(&jobs[699..]).remove(0).call;
        assert_eq!(stored.last(), Some(&expected));
    });
}

#[test]
fn what_is_not_known_of_a_job_is_added_and_what_is_known_remains() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![poor(1, 100), left(2, 100)]), now()).await.unwrap();
        let mut rich = left(2, 100);
        rich.call.details = Some(Box::default());
        store.apply(&storing(vec![rich]), now()).await.unwrap();
        let jobs = [job("slurm:1", 100), job("slurm:2", 101)];
        assert_eq!(sums(&import(&store, &jobs).await), (0, 2, 0, 0));
        assert_eq!(sums(&import(&store, &jobs).await), (0, 0, 2, 0));
        let stored = all(&store).await;
        let [one, two] = stored.as_slice() else { panic!("{stored:?}") };
        assert_eq!((one.name.as_str(), one.user.as_str(), one.code.as_str()), ("relax", "ada", "3:0"));
        assert_eq!((one.outcome, one.submitted), (Some(Outcome::Failed), Some(time(88))));
        assert_eq!((one.events, one.details.as_ref().unwrap().usage.len()), (3, 1));
        assert_eq!(one.fact(Fact::ImportedFrom), Some("sacct.txt"));
        assert_eq!((two.outcome, two.code.as_str(), two.ended), (Some(Outcome::Ok), "0", Some(time(100))));
        assert_eq!(two.fact(Fact::Account), Some("physics"));
    });
}

#[test]
fn what_was_added_remains_when_logs_state_more_of_the_job() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![poor(1, 100)]), now()).await.unwrap();
        import(&store, &[job("slurm:1", 100)]).await;
        let added = all(&store).await;
        // As after a restart, then as after a late line.
        store.apply(&storing(vec![poor(1, 100)]), now()).await.unwrap();
        assert_eq!(all(&store).await, added);
        let mut later = poor(1, 100);
        (later.call.events, later.call.reason) = (4, "OutOfMemory".into());
        store.apply(&storing(vec![later]), now()).await.unwrap();
        let stored = all(&store).await;
        assert_eq!((stored.len(), stored[0].events, stored[0].reason.as_str()), (1, 4, "OutOfMemory"));
        assert_eq!((stored[0].user.as_str(), stored[0].fact(Fact::Account)), ("ada", Some("physics")));
        assert_eq!(sums(&import(&store, &[job("slurm:1", 100)]).await), (0, 0, 1, 0));
    });
}

#[test]
fn a_call_that_was_dropped_from_memory_before_its_end_gets_it() {
    let (_folder, store) = store();
    block_on(async {
        let mut dropped = poor(1, 100);
        (dropped.call.state, dropped.call.outcome, dropped.call.ended) = (State::Running, None, None);
        store.apply(&storing(vec![dropped]), now()).await.unwrap();
        assert_eq!(sums(&import(&store, &[job("slurm:1", 100)]).await), (0, 1, 0, 0));
        let stored = all(&store).await;
        assert_eq!((stored[0].state, stored[0].ended), (State::Ended, Some(time(100))));
    });
}

#[test]
fn a_number_that_was_used_again_is_another_job_under_any_of_its_names() {
    let (_folder, store) = store();
    let year = 365 * 86_400;
    block_on(async {
        let mut task = left(9, 3 * year);
        (task.call.id, task.call.job) = ("slurm:4_7".into(), "4_7".into());
        task.aliases = vec!["slurm:9".into()];
        task.call.details = Some(Box::default());
        store.apply(&storing(vec![task]), now()).await.unwrap();
        let jobs = [
            job("slurm:9", year),
            job("slurm:9#2", 2 * year),
            job("slurm:9", 3 * year),
            job("slurm:4_7", year),
        ];
        assert_eq!(sums(&import(&store, &jobs).await), (3, 1, 0, 0));
        assert_eq!(sums(&import(&store, &jobs).await), (0, 0, 4, 0));
        let stored = all(&store).await;
        let mut ids: Vec<&str> = stored.iter().map(|call| call.id.as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["slurm:4_7", "slurm:4_7#2", "slurm:9", "slurm:9#2"]);
        let by_number = CallsParams { job: Some("9".to_owned()), ..CallsParams::default() };
        assert_eq!(store.page(Query::of_all(&by_number), None, 10).await.unwrap().total, 3);
        assert_eq!(
            sums(&import(&store, &[job("pbs:9", 3 * year)]).await),
            (1, 0, 0, 0),
            "of another product"
        );
        // A live job takes the number once more, and then an earlier one of it becomes known to a copy.
        store.apply(&storing(vec![left(9, 4 * year)]), now()).await.unwrap();
        store.apply(&storing(calls(&[job("slurm:9", year)])), now()).await.unwrap();
        let stored = all(&store).await;
        let ids: BTreeSet<&str> = stored.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((stored.len(), ids.len()), (7, 7), "each has an id of its own: {ids:?}");
        let live = stored.iter().find(|call| call.id == "slurm:9").unwrap();
        assert_eq!(live.ended, Some(time(4 * year)));
    });
}

#[test]
fn an_array_is_not_its_task_although_it_has_the_number() {
    let (_folder, store) = store();
    block_on(async {
        let mut whole = left(9, 100);
        whole.call.details = Some(Box::new(JobDetails { parts: 3, ..JobDetails::default() }));
        store.apply(&storing(vec![whole.clone()]), now()).await.unwrap();
        let task = ImportedJob { aliases: vec!["slurm:9".to_owned()], ..job("slurm:9_2", 100) };
        assert_eq!(sums(&import(&store, &[task]).await), (1, 0, 0, 0));
        assert!(all(&store).await.contains(&whole.call));
    });
}

#[test]
fn jobs_without_room_or_too_old_or_of_another_zone_are_refused_and_nothing_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let limit = CallLimit { bytes: 1 << 20, age: Duration::from_secs(1_000_000) };
    let store = CallStore::new(&folder.path().join("calls.db"), limit);
    let jobs: Vec<ImportedJob> =
        (0..2_000).map(|number| job(&format!("slurm:{number}"), 1_000_000 + number)).collect();
    block_on(async {
        let now = time(1_000_000);
        store.apply(&storing(vec![left(77_777, 1_002_000)]), now).await.unwrap();
        let import =
            async |jobs: &[ImportedJob]| store.import(&calls(jobs), &Import::default(), now).await.unwrap();
        let (imported, figures) = import(&[job("slurm:5", -1_000), job("slurm:6", 10)]).await;
        assert_eq!((sums(&imported), figures.deleted), ((1, 0, 0, 1), 0));
        assert_eq!(
            (imported.refused[0].id.as_str(), imported.refused[0].kind.as_str()),
            ("slurm:5", "too_old")
        );
        // Two hours and a second away, as rounding has it; of another name; of another length.
        let mut others = [job("slurm:6", 7_211), job("slurm:6", 7_211), job("slurm:6", 7_211)];
        others[1].job.name = "other".to_owned();
        others[2].job.started = Some(UnixTime(time(7_205)));
        let (imported, _) = import(&others).await;
        assert_eq!(sums(&imported), (1, 0, 1, 1));
        assert_eq!(imported.refused[0].kind, "shifted");
        assert!(imported.refused[0].why.contains("known 2 h earlier"), "{}", imported.refused[0].why);
        let mut stored = 0;
        for jobs in jobs.chunks(500) {
            let (imported, figures) = import(jobs).await;
            stored += imported.stored;
            assert!(imported.refused.iter().all(|job| job.kind == "no_room"), "{:?}", imported.refused);
            assert!(figures.used_bytes <= limit.bytes && figures.deleted == 0, "{figures:?}");
        }
        assert!((200..1_500).contains(&stored), "{stored}");
        let before = all(&store).await.len();
        let (imported, _) = import(&jobs[..1]).await;
        assert_eq!(sums(&imported), (0, 0, 1, 0), "a known one needs no room");
        // What logs state has room all the same.
        let figures = store.apply(&storing(vec![left(88_888, 1_002_001)]), now).await.unwrap();
        assert_eq!((figures.deleted, all(&store).await.len()), (0, before + 1));
    });
}

#[test]
fn a_wrong_time_zone_is_refused_also_of_long_jobs_and_can_be_corrected() {
    let (_folder, store) = store();
    let hour = 3_600;
    let long = |ended: i64| {
        let mut long = job("slurm:1", ended);
        long.job.started = Some(UnixTime(time(ended - 10 * hour)));
        long.job.submitted = Some(UnixTime(time(ended - 11 * hour)));
        long
    };
    block_on(async {
        let mut stated = left(2, 100 * hour);
        stated.call.details = Some(Box::default());
        store.apply(&storing(vec![stated]), now()).await.unwrap();
        let mut wrong = [long(100 * hour), job("slurm:2", 100 * hour)];
        wrong[1].job.outcome = Some(Outcome::Ok);
        assert_eq!(sums(&import(&store, &wrong).await), (1, 1, 0, 0));
        let mut right = [long(101 * hour), wrong[1].clone()];
        for time_of in [&mut right[1].job.submitted, &mut right[1].job.started, &mut right[1].job.ended] {
            *time_of = time_of.map(|UnixTime(at)| UnixTime(at.plus(Duration::from_secs(3_600))));
        }
        let refused = import(&store, &right).await;
        assert_eq!(sums(&refused), (0, 0, 0, 2));
        assert!(refused.refused[0].why.contains("1 h earlier"), "{refused:?}");
        let replacing = Import { is_replacing: true, ..Import::default() };
        let replaced = store.import(&calls(&right), &replacing, now()).await.unwrap().0;
        assert_eq!(sums(&replaced), (0, 1, 0, 1), "what a log states remains: {replaced:?}");
        let stored = all(&store).await;
        assert_eq!(
            stored.iter().map(|call| call.ended).collect::<Vec<_>>(),
            [Some(time(100 * hour)), Some(time(101 * hour))]
        );
        assert_eq!(sums(&import(&store, &right[..1]).await), (0, 0, 1, 0));
    });
}

#[test]
fn an_id_that_a_call_of_another_time_has_in_memory_is_not_given() {
    let (_folder, store) = store();
    block_on(async {
        let how = Import { taken: ["slurm:1".into()].into(), ..Import::default() };
        let jobs = calls(&[job("slurm:1", 100)]);
        assert_eq!(sums(&store.import(&jobs, &how, now()).await.unwrap().0), (1, 0, 0, 0));
        assert_eq!(all(&store).await[0].id, "slurm:1#2");
        assert_eq!(sums(&store.import(&jobs, &how, now()).await.unwrap().0), (0, 0, 1, 0));
    });
}

#[test]
fn a_trial_says_what_would_be_done_and_does_nothing() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![poor(1, 100)]), now()).await.unwrap();
        let before = all(&store).await;
        let jobs = calls(&[job("slurm:1", 100), job("slurm:2", 100)]);
        let trial = Import { is_trial: true, ..Import::default() };
        assert_eq!(sums(&store.import(&jobs, &trial, now()).await.unwrap().0), (1, 1, 0, 0));
        assert_eq!(all(&store).await, before);
        assert_eq!(sums(&store.import(&jobs, &Import::default(), now()).await.unwrap().0), (1, 1, 0, 0));
    });
}

#[test]
fn imported_jobs_are_copied_to_other_stores() {
    let ((_one, from), (_other, to)) = (store(), store());
    block_on(async {
        from.apply(&storing(vec![poor(1, 100)]), now()).await.unwrap();
        let copy = async || {
            let fetch = FetchCalls { held: to.positions().await.unwrap(), len_bytes: 1 << 20 };
            to.copy(from.following(&fetch).await.unwrap(), now()).await.unwrap();
        };
        copy().await;
        import(&from, &[job("slurm:1", 100), job("slurm:2", 100)]).await;
        copy().await;
        assert_eq!(all(&to).await, all(&from).await);
        assert_eq!(sums(&import(&to, &[job("slurm:1", 100), job("slurm:2", 100)]).await), (0, 0, 2, 0));
    });
}
