//! What a copy of a store has, in which order it gets it, and where it goes on.

use crate::made_up::{ROOM, block_on, forgetting, left, now, random_calls, store, storing};
use call_store::answer::{Page, Query};
use call_store::store::CallStore;
use fastrand::Rng;
use wire::api::calls::CallsParams;
use wire::report::calls::{CallPosition, Calls, FetchCalls};

async fn found(store: &CallStore, params: CallsParams) -> Page {
    store.page(Query::of_all(&params), None, 1_000_000).await.unwrap()
}

async fn following(from: &CallStore, to: &CallStore, len_bytes: u32) -> Calls {
    let held = to.positions().await.unwrap();
    from.following(&FetchCalls { held, len_bytes }).await.unwrap()
}

/// Copies what follows; returns the number of answers and of calls.
async fn copy(from: &CallStore, to: &CallStore, len_bytes: u32) -> (usize, usize) {
    let (mut answers, mut calls) = (0, 0);
    loop {
        let following = following(from, to, len_bytes).await;
        (answers, calls) = (answers + 1, calls + following.calls.len());
        let is_end = following.is_end;
        to.copy(following, now()).await.unwrap();
        if is_end {
            return (answers, calls);
        }
    }
}

#[test]
fn a_copy_has_every_call_and_finds_it_in_the_same_ways() {
    let ((_one, from), (_two, to)) = (store(), store());
    let mut rng = Rng::with_seed(7);
    block_on(async {
        from.apply(&storing(random_calls(&mut rng, 3_000)), now()).await.unwrap();
        let (answers, _) = copy(&from, &to, 64 << 10).await;
        assert!(answers > 3, "{answers}");
        for params in [
            CallsParams::default(),
            CallsParams { user: Some("ada".to_owned()), ..CallsParams::default() },
            CallsParams { on_host: Some("wn1".to_owned()), ..CallsParams::default() },
            CallsParams { job: Some("17".to_owned()), ..CallsParams::default() },
            CallsParams { name: Some("rel*".to_owned()), ..CallsParams::default() },
            CallsParams { account: Some("physics".to_owned()), ..CallsParams::default() },
            CallsParams { queue: Some("long".to_owned()), jobs_only: true, ..CallsParams::default() },
        ] {
            let (copied, truth) = (found(&to, params.clone()).await, found(&from, params).await);
            assert!(truth.total > 0);
            assert_eq!(copied, truth);
        }
        assert_eq!(copy(&from, &to, 64 << 10).await, (1, 0), "nothing is sent twice");
        // Another one has what both had, and the first gains nothing by the way back.
        copy(&to, &from, u32::MAX).await;
        assert_eq!(copy(&from, &to, u32::MAX).await, (1, 0), "nothing goes round");
    });
}

#[test]
fn a_copy_goes_on_where_it_ended_also_in_another_process() {
    let ((_one, from), (_two, to)) = (store(), store());
    block_on(async {
        let nothing = following(&from, &to, u32::MAX).await;
        assert!(nothing.calls.is_empty() && nothing.is_end, "{nothing:?}");
        from.apply(&storing(vec![left(1, 100), left(2, 101)]), now()).await.unwrap();
        copy(&from, &to, u32::MAX).await;
        let to = CallStore::new(to.path(), ROOM);
        let mut more = left(1, 105);
        more.call.events = 5;
        from.apply(&storing(vec![more.clone(), left(3, 104)]), now()).await.unwrap();
        let next = following(&from, &to, u32::MAX).await;
        assert_eq!(
            next.calls.iter().map(|stored| &stored.call.id).collect::<Vec<_>>(),
            ["slurm:1", "slurm:3"]
        );
        to.copy(next, now()).await.unwrap();
        assert_eq!(found(&to, CallsParams::default()).await, found(&from, CallsParams::default()).await);
    });
}

#[test]
fn a_key_is_not_given_again() {
    let ((_one, from), (_two, to)) = (store(), store());
    block_on(async {
        from.apply(&storing(vec![left(1, 100), left(2, 101)]), now()).await.unwrap();
        copy(&from, &to, u32::MAX).await;
        // The newest one runs again, and ends.
        from.apply(&forgetting(&left(2, 101)), now()).await.unwrap();
        let mut again = left(2, 200);
        again.call.events = 6;
        from.apply(&storing(vec![again.clone()]), now()).await.unwrap();
        assert_eq!(copy(&from, &to, u32::MAX).await, (1, 1));
        assert_eq!(found(&to, CallsParams::default()).await.calls[0], again.call);
    });
}

#[test]
fn a_call_that_is_longer_than_the_answer_is_sent_alone_and_one_that_no_answer_can_have_is_left_out() {
    let ((_one, from), (_two, to)) = (store(), store());
    let (mut long, mut longest) = (left(2, 101), left(3, 102));
    long.call.reason = "r".repeat(300_000).into();
    longest.call.reason = "r".repeat(2 << 20).into();
    block_on(async {
        from.apply(&storing(vec![left(1, 100), long, longest, left(4, 103)]), now()).await.unwrap();
        assert_eq!(copy(&from, &to, 1_000).await, (3, 3));
        let calls = found(&to, CallsParams::default()).await.calls;
        assert_eq!(
            calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(),
            ["slurm:4", "slurm:2", "slurm:1"]
        );
    });
}

#[test]
fn an_alias_is_the_same_in_the_copy_of_a_copy() {
    let ((_one, first), (_two, second), (_three, third)) = (store(), store(), store());
    let mut odd = left(1, 100);
    odd.aliases = vec!["slurm:12:7".into()];
    block_on(async {
        first.apply(&storing(vec![odd]), now()).await.unwrap();
        copy(&first, &second, u32::MAX).await;
        copy(&second, &third, u32::MAX).await;
        for (job, count) in [("12:7", 1), ("7", 0)] {
            let params = CallsParams { job: Some(job.to_owned()), ..CallsParams::default() };
            for store in [&first, &third] {
                assert_eq!(found(store, params.clone()).await.total, count, "{job}");
            }
        }
    });
}

#[test]
fn the_positions_of_the_stores_that_were_copied_last_are_kept() {
    let (_folder, to) = store();
    block_on(async {
        for number in 1..=70 {
            let position = CallPosition { store: wire::report::StoreKey(u64::MAX - number), key: number };
            to.copy(Calls { position, calls: Vec::new(), is_end: true }, now()).await.unwrap();
        }
        let mut keys: Vec<u64> = to.positions().await.unwrap().iter().map(|position| position.key).collect();
        keys.sort_unstable();
        assert_eq!(keys, (7..=70).collect::<Vec<_>>());
    });
}
