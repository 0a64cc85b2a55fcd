//! Visibility by user: what each user sees of other users' processes and subscriptions.

#![allow(clippy::unwrap_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Registry;
use rpc::limits::Limits;
use sensor::channel::hub::{Budget as Shares, Hub};
use sensor::process::source::View;
use sensor::process::table::Coverage;
use sensor::query::channels::Channels;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::channel::stream::Body;
use wire::channel::{Budget, ChannelRequest, expression};
use wire::fault;
use wire::process::{Io, Process, ProcessKey};
use wire::query::{Principal, Viewer};

const ANA: Viewer = Viewer::User(1000);
const BEN: Viewer = Viewer::User(1001);

fn client(viewer: Viewer) -> Principal {
    Principal { viewer, asker: None }
}

/// Sweeps one process of root, one of Ana and one of Ben; all of them read.
fn sweep(view: &mut View, number: u64, at: Duration) {
    view.table.begin(number, u64::try_from(at.as_nanos()).unwrap(), Coverage::All);
    for (pid, uid) in [(1, 0), (2, 1000), (3, 1001)] {
        let mut process = Process { key: ProcessKey { pid, start_ns: 1 }, uid, ..Process::default() };
        process.usage.io = Some(Io { read_bytes: number * 1_000_000, ..Io::default() });
        view.table.set(process);
    }
    view.table.end(0);
}

fn wanted(filter: &str, change: impl FnOnce(&mut ChannelRequest)) -> ChannelRequest {
    let budget = Budget { cpu_ms: 500, ..Budget::default() };
    let filter = expression::filter(filter).unwrap();
    let mut wanted =
        ChannelRequest { rate: 10.0.try_into().unwrap(), filter, budget, ..ChannelRequest::default() };
    change(&mut wanted);
    wanted
}

/// Process ids of the last sample, each with whether its I/O is visible.
async fn sampled(viewer: Viewer, wanted: ChannelRequest) -> Vec<(u32, bool)> {
    let hub = Hub::default();
    let (mut tap, mut view) = (hub.tap(), View::default());
    let id = hub.subscribe_for(client(viewer), wanted).unwrap();
    for number in 1..=2 {
        let at = Duration::from_secs(number);
        sweep(&mut view, number, at);
        tap.swept(&view, at);
    }
    let entries = hub.take(id, 10, Duration::ZERO).await.unwrap().entries;
    match entries.last().map(|entry| &entry.body) {
        Some(Body::Sample { records, .. }) => {
            records.iter().map(|record| (record.process.key.pid, record.process.usage.io.is_some())).collect()
        }
        None => Vec::new(),
        Some(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_io_of_others_is_absent_and_passes_no_filter() {
    let all = |io: [bool; 3]| (1..).zip(io).collect::<Vec<_>>();
    for (viewer, io) in [
        (Viewer::Trusted, [true; 3]),
        (ANA, [false, true, false]),
        (BEN, [false, false, true]),
        (Viewer::Anonymous, [false; 3]),
    ] {
        assert_eq!(sampled(viewer, wanted("", |_| ())).await, all(io), "{viewer:?}");
        let own: Vec<_> = all(io).into_iter().filter(|(_, io)| *io).collect();
        for filter in
            ["read_bytes > 0", "rate of read_bytes > 1", "io_bytes changes by 1", "top 3 by io_bytes"]
        {
            assert_eq!(sampled(viewer, wanted(filter, |_| ())).await, own, "{viewer:?} {filter}");
        }
        let scripted = |wanted: &mut ChannelRequest| {
            wanted.script = Some(
                "let own = []; for one in records { if one.read_bytes != () { own.push(one); } } own"
                    .to_owned(),
            );
        };
        assert_eq!(sampled(viewer, wanted("", scripted)).await, own, "{viewer:?}, by a script");
        let changes = sampled(viewer, wanted("", |wanted| wanted.changes = true)).await;
        assert_eq!(changes, all(io), "{viewer:?}, by changes");
    }
}

fn named(params: &[(&'static str, Value)]) -> Vec<(Name, Value)> {
    params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect()
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Struct(members) = value else { return None };
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[tokio::test]
async fn a_user_neither_uses_nor_names_the_subscriptions_of_another() {
    let mut registry = Registry::new();
    for method in (Channels { hub: Hub::default(), ending: CancellationToken::new() }).methods() {
        registry.add(method).unwrap();
    }
    let dispatcher = Dispatcher::new(registry, Limits::default(), Arc::default());
    let caller = |viewer| Caller { viewer, ..Caller::client(Duration::from_secs(20)) };
    let call = async |viewer, method, params: &[(&'static str, Value)]| {
        dispatcher.call_for(&caller(viewer), method, named(params)).await
    };
    for (owner, others) in [(ANA, [BEN, Viewer::Anonymous]), (Viewer::Anonymous, [ANA, BEN])] {
        let made = call(owner, "sensor.subscribe", &[]).await.unwrap();
        let id = || ("subscription", member(&made, "subscription").unwrap().clone());
        for other in others {
            for method in ["sensor.take", "sensor.alter", "sensor.unsubscribe"] {
                let fault = call(other, method, &[id()]).await.unwrap_err();
                assert_eq!(fault.code, fault::NOT_FOUND, "{other:?} {method}");
            }
        }
        for (viewer, sees) in
            [(ANA, owner == ANA), (BEN, false), (Viewer::Anonymous, false), (Viewer::Trusted, true)]
        {
            let all = call(viewer, "sensor.subscriptions", &[]).await.unwrap();
            let Some(Value::Array(all)) = member(&all, "subscriptions") else { panic!("{all:?}") };
            assert_eq!(member(&all[0], "subscription").is_some(), sees, "{viewer:?} of {owner:?}");
        }
        call(owner, "sensor.take", &[id()]).await.unwrap();
        call(Viewer::Trusted, "sensor.alter", &[id()]).await.unwrap();
        call(Viewer::Trusted, "sensor.unsubscribe", &[id()]).await.unwrap();
    }
}

#[tokio::test]
async fn one_user_leaves_room_for_others() {
    let hub = Hub::default();
    let small = || wanted("", |wanted| wanted.budget.queue_bytes = 4096);
    let fill = |viewer| (0..300).take_while(|_| hub.subscribe_for(client(viewer), small()).is_ok()).count();
    assert_eq!([fill(ANA), fill(BEN), fill(Viewer::Anonymous)], [112, 56, 28]);
    let large = || wanted("", |wanted| wanted.budget.queue_bytes = 8 << 20);
    assert!(hub.subscribe_for(client(Viewer::User(1002)), small()).is_ok());
    assert!(fill(Viewer::Trusted) >= 32, "an eighth is left to root");
    let hub = Hub::default();
    let fill = |viewer| (0..9).take_while(|_| hub.subscribe_for(client(viewer), large()).is_ok()).count();
    assert_eq!([fill(ANA), fill(BEN), fill(Viewer::Trusted)], [3, 2, 3]);
}

/// Scripts of one user that use their whole budget, beside a subscription of another user.
#[tokio::test]
async fn the_subscriptions_of_one_user_cost_another_nothing() {
    let hub = Hub::with_budget(Shares::new(20, 100));
    let mut tap = hub.tap();
    let busy = || {
        wanted("", |wanted| {
            wanted.rate = 120.0.try_into().unwrap();
            wanted.script = Some("let x = 0; for i in 0..1500 { x += i; } #{ x: x }".to_owned());
        })
    };
    let attacking: Vec<_> = (0..50).map(|_| hub.subscribe_for(client(ANA), busy()).unwrap()).collect();
    let wanted = wanted("pid = 1", |wanted| wanted.rate = 120.0.try_into().unwrap());
    let victim = hub.subscribe_for(client(BEN), wanted).unwrap();
    let mut view = View::default();
    let mut sweeps = Vec::new();
    for number in 1..=600_u32 {
        let at = Duration::from_secs(100) + Duration::from_secs_f64(f64::from(number) / 120.0);
        sweep(&mut view, number.into(), at);
        tap.swept(&view, at);
        for entry in hub.take(victim, 100, Duration::ZERO).await.unwrap().entries {
            let Body::Sample { sweep, .. } = entry.body else { panic!("{entry:?}") };
            sweeps.push(sweep);
        }
    }
    assert_eq!(sweeps, (1..=600).collect::<Vec<_>>(), "every sample");
    assert_eq!(hub.status(victim).unwrap().throttled_total, 0);
    let throttled: u64 = attacking.iter().map(|id| hub.status(*id).unwrap().throttled_total).sum();
    assert!(throttled > 10_000, "{throttled} of 30,000");
    let used: Duration = attacking.iter().map(|id| hub.status(*id).unwrap().cpu).sum();
    assert!(
        used < Duration::from_millis(1_500),
        "in five seconds of 20 and 50 ms, with a second's worth at once: {used:?}"
    );
    let counted = |name| hub.statistics().into_iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(counted("throttled_total"), throttled);
    assert_eq!(counted("subscriptions"), 51);
}
