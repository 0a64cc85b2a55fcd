//! What is stored when calls change, end again or lose their ids, and when space, crashes and damage interfere.

use crate::made_up::{ROOM, block_on, forgetting, left, now, store, storing, time, usage};
use call_store::answer::{Page, Query};
use call_store::store::{CallLimit, CallStore};
use log_filters::join::changes::{CallChanges, LateUsage};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};
use std::time::Duration;
use wire::api::calls::{CallOrder, CallsParams};
use wire::api::job_amount::{ByAmount, conditions};
use wire::call::job::JobDetails;
use wire::call::usage::Usage;
use wire::call::{Call, StoredCall};

async fn all(store: &CallStore) -> Page {
    let params = CallsParams { order: CallOrder::Oldest, ..CallsParams::default() };
    store.page(Query::of_all(&params), None, 1_000_000).await.unwrap()
}

async fn on_host(store: &CallStore, host: &str) -> u64 {
    let params = CallsParams { on_host: Some(host.to_owned()), ..CallsParams::default() };
    store.page(Query::of_all(&params), None, 10).await.unwrap().total
}

#[test]
fn a_later_report_replaces_the_row_and_what_came_after_the_drop_does_not() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![left(1, 100)]), now()).await.unwrap();
        let mut better = left(1, 101);
        (better.call.events, better.call.hosts) = (4, vec!["wn2".into()]);
        store.apply(&storing(vec![better.clone()]), now()).await.unwrap();
        assert_eq!(all(&store).await.calls, [better.call.clone()]);
        assert_eq!((on_host(&store, "wn1").await, on_host(&store, "wn2").await), (0, 1));
        let mut late = left(1, 130);
        (late.call.events, late.call.submitted, late.call.started, late.first) = (1, None, None, time(130));
        store.apply(&storing(vec![late]), now()).await.unwrap();
        assert_eq!(all(&store).await.calls, [better.call]);
    });
}

#[test]
fn measured_usage_is_replaced_by_newer_and_stays_when_memory_has_it_no_longer() {
    let (_folder, store) = store();
    let with = |usage: Vec<Usage>| {
        let mut left = left(1, 100);
        left.call.details = Some(Box::new(JobDetails { usage, ..JobDetails::default() }));
        left
    };
    let stored = || async { all(&store).await.calls[0].details.clone().unwrap_or_default().usage };
    block_on(async {
        for (known, expected) in [
            (vec![], vec![]),
            // Only the usage is new: neither an event nor a time of the call.
            (vec![usage("wn1", 5)], vec![usage("wn1", 5)]),
            (vec![usage("wn1", 9)], vec![usage("wn1", 9)]),
            (vec![usage("wn2", 7)], vec![usage("wn1", 9), usage("wn2", 7)]),
            (vec![], vec![usage("wn1", 9), usage("wn2", 7)]),
        ] {
            store.apply(&storing(vec![with(known)]), now()).await.unwrap();
            assert_eq!(stored().await, expected);
        }
    });
}

#[test]
fn a_usage_that_comes_after_its_call_left_memory_is_added_to_the_stored_one() {
    let (_folder, store) = store();
    let late = |job: &str, usage: Usage| {
        let late = vec![LateUsage { names: vec![job.into()], usage }];
        CallChanges { late, ..CallChanges::default() }
    };
    let stored = || async { all(&store).await.calls[0].details.clone().unwrap_or_default().usage };
    block_on(async {
        store.apply(&storing(vec![left(1, 12)]), now()).await.unwrap();
        for (changes, expected) in [
            (late("slurm:1", Usage { user: "eve".into(), ..usage("wn1", 7) }), vec![]),
            (late("torque:1", usage("wn1", 7)), vec![]),
            (late("slurm:2", usage("wn1", 7)), vec![]),
            (late("slurm:1", usage("wn1", 7)), vec![usage("wn1", 7)]),
            (late("slurm:1", usage("wn1", 5)), vec![usage("wn1", 7)]),
            (late("slurm:1", usage("wn1", 9)), vec![usage("wn1", 9)]),
        ] {
            store.apply(&changes, now()).await.unwrap();
            assert_eq!(stored().await, expected, "{changes:?}");
        }
        assert_eq!(all(&store).await.total, 1);
    });
}

#[test]
fn jobs_of_an_earlier_version_get_their_amounts_when_the_store_is_opened_and_changed() {
    let (folder, store) = store();
    let ran = ByAmount { conditions: conditions("ran >= 10s").unwrap(), sort: None };
    let params = CallsParams::default();
    let query = Query { by: &ran, ..Query::of_all(&params) };
    let found = |store: CallStore| async move {
        (store.page(query, None, 10).await.unwrap().total, store.is_behind())
    };
    let job = |number: u32| {
        let mut left = left(number, i64::from(number));
        left.call.details = Some(Box::default());
        left
    };
    block_on(async {
        let calls = (0..500).map(job).chain([left(500, 500)]).collect();
        store.apply(&storing(calls), now()).await.unwrap();
        let options = SqliteConnectOptions::new().filename(store.path());
        drop(store);
        let mut other = SqliteConnection::connect_with(&options).await.unwrap();
        for sql in ["DELETE FROM call_amounts", "UPDATE identity SET without_amounts = last_key"] {
            sqlx::query(sql).execute(&mut other).await.unwrap();
        }
        other.close().await.unwrap();
        let open = || CallStore::new(&folder.path().join("calls.db"), ROOM);
        assert_eq!(found(open()).await, (0, true));
        let again = open();
        again.apply(&storing(vec![job(501)]), now()).await.unwrap();
        assert_eq!(found(again).await, (501, false), "jobs alone have amounts");
        assert_eq!(found(open()).await, (501, false));
    });
}

#[test]
fn a_replaced_or_deleted_job_leaves_no_amounts_behind() {
    let (_folder, store) = store();
    let ran = ByAmount { conditions: conditions("ran >= 1s").unwrap(), sort: None };
    let params = CallsParams { limit: 1, ..CallsParams::default() };
    let found = || async {
        // More than a page, so that they are counted by their amounts alone.
        let page = store.page(Query { by: &ran, ..Query::of_all(&params) }, None, 1).await.unwrap();
        (page.calls.len(), page.total)
    };
    let job = |number: u32, events: u32| {
        let mut left = left(number, 100 + i64::from(number));
        (left.call.events, left.call.details) = (events, Some(Box::default()));
        left
    };
    block_on(async {
        store.apply(&storing((1..=4).map(|number| job(number, 3)).collect()), now()).await.unwrap();
        assert_eq!(found().await, (1, 4));
        store.apply(&storing((1..=4).map(|number| job(number, 4)).collect()), now()).await.unwrap();
        assert_eq!(found().await, (1, 4));
        store.apply(&forgetting(&job(4, 4)), now()).await.unwrap();
        assert_eq!(found().await, (1, 3));
    });
}

#[test]
fn an_id_that_is_used_again_is_another_call() {
    let (_folder, store) = store();
    block_on(async {
        let year = 365 * 86_400;
        let (first, second) = (left(1, 100), left(1, year));
        store.apply(&storing(vec![first.clone()]), now()).await.unwrap();
        store.apply(&storing(vec![second.clone()]), now()).await.unwrap();
        let first = Call { id: "slurm:1#2".into(), ..first.call };
        assert_eq!(all(&store).await.calls, [first.clone(), second.call.clone()]);
        let by_id = CallsParams { job: Some("1".to_owned()), ..CallsParams::default() };
        assert_eq!(store.page(Query::of_all(&by_id), None, 10).await.unwrap().total, 2);
        // The second one runs again: the first is not meant.
        store.apply(&forgetting(&second), now()).await.unwrap();
        store.apply(&forgetting(&second), now()).await.unwrap();
        assert_eq!(all(&store).await.calls, [first]);
        assert_eq!(on_host(&store, "wn1.site.org").await, 1);
    });
}

#[test]
fn the_oldest_calls_go_when_the_space_is_used_up() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 2 << 20;
    let store = CallStore::new(&folder.path().join("calls.db"), CallLimit { bytes: limit, ..ROOM });
    block_on(async {
        let mut last = None;
        for round in 0..60 {
            let calls: Vec<StoredCall> =
                (0..200).map(|nth| left(round * 200 + nth, i64::from(round * 200 + nth))).collect();
            last = calls.last().map(|left| left.call.clone());
            let figures = store.apply(&storing(calls), now()).await.unwrap();
            assert!(figures.used_bytes <= limit, "{figures:?}");
            assert!(std::fs::metadata(store.path()).unwrap().len() <= limit);
        }
        let calls = all(&store).await.calls;
        assert!((1_000..12_000).contains(&calls.len()), "{}", calls.len());
        assert_eq!(calls.last(), last.as_ref());
        let oldest = calls[0].id.trim_start_matches("slurm:").parse::<usize>().unwrap();
        assert_eq!(oldest + calls.len(), 12_000, "what is left is the newest without a hole");
        let figures = store.apply(&storing(Vec::new()), now()).await.unwrap();
        assert_eq!((figures.deleted, figures.oldest), (oldest as u64, calls[0].ended));
        assert_eq!(on_host(&store, "wn1").await, calls.len() as u64, "no index entry is left behind");
    });
}

#[test]
fn calls_go_when_their_time_is_over_by_the_clock_and_by_the_newest_call() {
    let folder = tempfile::tempdir().unwrap();
    let limit = CallLimit { age: Duration::from_secs(1000), ..ROOM };
    let store = CallStore::new(&folder.path().join("calls.db"), limit);
    let mut timeless = left(9, 0);
    (timeless.call.submitted, timeless.call.started, timeless.call.ended) = (None, None, None);
    block_on(async {
        let first = vec![left(1, 100), left(2, 200), timeless.clone()];
        store.apply(&storing(first), time(10_000)).await.unwrap();
        assert_eq!(all(&store).await.total, 3, "the clock alone is late");
        store.apply(&storing(vec![left(3, 9_000)]), time(300)).await.unwrap();
        assert_eq!(all(&store).await.total, 4, "a call alone is late");
        let figures = store.apply(&storing(vec![left(4, 1_150)]), time(1_150)).await.unwrap();
        assert_eq!(figures.deleted, 1);
        let expected = [timeless.call, left(2, 200).call, left(4, 1_150).call, left(3, 9_000).call];
        assert_eq!(all(&store).await.calls, expected);
    });
}

#[test]
fn a_database_of_a_later_version_is_an_error_and_stays_as_it_is() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![left(1, 100)]), now()).await.unwrap();
        let options = SqliteConnectOptions::new().filename(store.path());
        let mut later = SqliteConnection::connect_with(&options).await.unwrap();
        for change in [
            "ALTER TABLE call ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                VALUES (6, 'colours', TRUE, x'00', 1)",
        ] {
            sqlx::query(change).execute(&mut later).await.unwrap();
        }
        later.close().await.unwrap();
        let earlier = CallStore::new(store.path(), ROOM);
        let error = earlier.apply(&storing(vec![left(2, 101)]), now()).await.unwrap_err().to_string();
        assert!(error.contains("if a later version wrote it, start that one"), "{error}");
        assert_eq!(all(&earlier).await.calls, [left(1, 100).call], "what is known of it can be read");
    });
}

#[test]
fn what_was_applied_is_there_for_another_process() {
    let (_folder, store) = store();
    block_on(async {
        store.apply(&storing(vec![left(1, 100)]), now()).await.unwrap();
        // As after a kill: the first one's connection is still open, and nothing was closed.
        let second = CallStore::new(store.path(), ROOM);
        assert_eq!(all(&second).await.total, 1);
        second.apply(&storing(vec![left(2, 101)]), now()).await.unwrap();
        assert_eq!(all(&store).await.total, 2);
    });
}

#[test]
fn damage_is_an_error_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.db");
    let damaged = vec![7; 8192];
    std::fs::write(&path, &damaged).unwrap();
    block_on(async {
        let store = CallStore::new(&path, ROOM);
        let error = store.apply(&storing(vec![left(1, 100)]), now()).await.unwrap_err().to_string();
        assert!(error.contains("not a database"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
        assert!(store.page(Query::of_all(&CallsParams::default()), None, 1).await.is_err());
        std::fs::remove_file(&path).unwrap();
        store.apply(&storing(vec![left(1, 100)]), now()).await.unwrap();
    });
}

#[test]
fn a_row_from_before_gets_its_details_although_nothing_else_changed() {
    let (_folder, store) = store();
    block_on(async {
        let call = left(1, 100);
        store.apply(&storing(vec![call.clone()]), now()).await.unwrap();
        let mut known = call;
        known.call.details = Some(Box::default());
        store.apply(&storing(vec![known.clone()]), now()).await.unwrap();
        assert_eq!(all(&store).await.calls, [known.call.clone()]);
        // Details that only a later version can read leave the call without any.
        let options = SqliteConnectOptions::new().filename(store.path());
        let mut later = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query("UPDATE call SET details = x'ff'").execute(&mut later).await.unwrap();
        later.close().await.unwrap();
        assert_eq!(all(&store).await.calls, [left(1, 100).call]);
    });
}
