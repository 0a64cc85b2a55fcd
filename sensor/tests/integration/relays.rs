//! Relayed subscriptions: a client subscribes to another host through the representative of its domain. It
//! gets what the host itself would send, and equal subscriptions share a stream.

#![allow(clippy::unwrap_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::{Caller, Forward, Forwarding, forwarded};
use rpc::dispatch::method::{Answer, Registry};
use rpc::dispatch::params::Params;
use rpc::fault::Fault;
use rpc::limits::Limits;
use sensor::channel::hub::Hub;
use sensor::process::source::View;
use sensor::process::table::Coverage;
use sensor::process::tap::Tap;
use sensor::query::channels::Channels;
use sensor::query::channels::relays::{HostClient, Relays};
use sensor::query::declared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::entries::TakeParams;
use wire::channel::stream::{Body, Entry};
use wire::fault;
use wire::id::PeerKey;
use wire::process::{Process, ProcessKey};
use wire::query::{Account, Form, Viewer};

/// The remote host: its methods, and whether it is reachable.
#[derive(Clone)]
struct Host {
    hub: Hub,
    dispatcher: Arc<Dispatcher>,
    is_gone: Arc<AtomicBool>,
    /// Panics once, like a bug of this program would.
    panics: Arc<AtomicBool>,
    /// Number of calls that wait here for the next entries.
    takes: Arc<AtomicI64>,
}

impl Host {
    fn new() -> Host {
        let hub = Hub::default();
        let mut registry = Registry::new();
        for method in (Channels { hub: hub.clone(), ending: CancellationToken::new() }).methods() {
            registry.add(method).unwrap();
        }
        let dispatcher = Arc::new(Dispatcher::new(registry, Limits::default(), Arc::default()));
        Host { hub, dispatcher, is_gone: Arc::default(), panics: Arc::default(), takes: Arc::default() }
    }
}

fn peer() -> Caller {
    Caller { peer: Some(PeerKey([7; 32])), hops_left: 1, ..Caller::client(Duration::from_secs(20)) }
}

impl HostClient for Host {
    fn call(
        &self,
        host: &str,
        viewer: Viewer,
        method: &'static str,
        params: Vec<(Name, Value)>,
        _: Duration,
    ) -> Answer {
        assert_eq!(host, "wn07");
        assert!(!self.panics.swap(false, Ordering::SeqCst), "a fault of the program");
        let (dispatcher, is_gone) = (Arc::clone(&self.dispatcher), Arc::clone(&self.is_gone));
        let takes = Arc::clone(&self.takes);
        Box::pin(async move {
            if is_gone.load(Ordering::SeqCst) {
                return Err(Fault::unavailable("wn07 does not answer"));
            }
            takes.fetch_add(i64::from(method == "sensor.take"), Ordering::SeqCst);
            let caller = Caller { viewer, ..peer() };
            let answer = dispatcher.call_for(&caller, method, params).await;
            takes.fetch_sub(i64::from(method == "sensor.take"), Ordering::SeqCst);
            answer
        })
    }
}

/// Forwards to the one host that the representative knows.
struct RelayLink(Relays);

impl Forward for RelayLink {
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding> {
        self.0.ask(caller, "wn07", method, params, form).map(forwarded)
    }
}

/// A host, its representative, and the sweeps of the host.
struct Story {
    host: Host,
    representative: Dispatcher,
    tap: Box<dyn Tap>,
    view: View,
    swept: u64,
    running: tokio::task::JoinHandle<()>,
}

impl Drop for Story {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Story {
    fn new() -> Story {
        let host = Host::new();
        let tap = host.hub.tap();
        let (relays, running) = Relays::new(Arc::new(host.clone()));
        let running = tokio::spawn(running.run(CancellationToken::new()));
        let mut registry = Registry::new();
        for declared in declared::all() {
            registry.add(declared.handler_now(|_| Ok(Value::Nil))).unwrap();
        }
        registry.set_elsewhere(Box::new(RelayLink(relays)));
        let representative = Dispatcher::new(registry, Limits::default(), Arc::default());
        Story { host, representative, tap, view: View::default(), swept: 0, running }
    }

    /// Sweeps a tenth of a second apart, over ten processes: number N uses a tenth of N cores, and each third
    /// one works only at every fourth sweep.
    fn sweep(&mut self, times: u64) {
        for _ in 0..times {
            self.swept += 1;
            let now = Duration::from_millis(1000 + 100 * self.swept);
            let now_ns = u64::try_from(now.as_nanos()).unwrap();
            self.view.table.begin(self.swept, now_ns, Coverage::All);
            for pid in 1..=10_u32 {
                let key = ProcessKey { pid, start_ns: 1 };
                let mut process = Process { key, name: format!("worker{pid}").into(), ..Process::default() };
                let works = if pid % 3 == 0 { self.swept / 4 * 4 } else { self.swept };
                process.usage.cpu_ns = works * 10_000_000 * u64::from(pid);
                self.view.table.set(process);
            }
            self.view.table.end(0);
            self.tap.swept(&self.view, now);
        }
    }

    async fn at_representative(
        &self,
        method: &str,
        params: Vec<(&'static str, Value)>,
    ) -> Result<Value, Fault> {
        let caller = Caller::client(Duration::from_secs(20));
        self.representative.call_for(&caller, method, named(params)).await
    }

    async fn at_host(&self, method: &str, params: Vec<(&'static str, Value)>) -> Result<Value, Fault> {
        let caller = Caller::client(Duration::from_secs(20));
        self.host.dispatcher.call_for(&caller, method, named(params)).await
    }

    /// Waits until a call at the host waits for the next entries.
    async fn until_taken_from(&self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while self.host.takes.load(Ordering::SeqCst) == 0 {
            assert!(tokio::time::Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until the host has exactly the subscriptions with these rates.
    async fn until_rates(&self, mut expected: Vec<f64>) {
        expected.sort_by(f64::total_cmp);
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let mut rates: Vec<f64> =
                self.host.hub.statuses().iter().map(|(_, stands)| stands.wanted.rate.hz()).collect();
            rates.sort_by(f64::total_cmp);
            if rates == expected {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{rates:?}, expected {expected:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn named(params: Vec<(&'static str, Value)>) -> Vec<(Name, Value)> {
    params.into_iter().map(|(name, value)| (Name::Borrowed(name), value)).collect()
}

fn wanted(rate: f64, filter: &str) -> Vec<(&'static str, Value)> {
    let budget = Value::object([("cpu_ms", Value::Int(500))]);
    vec![("rate", Value::Double(rate)), ("filter", Value::from(filter)), ("budget", budget)]
}

fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    let Value::Struct(members) = value else { panic!("{value:?}") };
    &members.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name}: {value:?}")).1
}

fn id(made: &Value) -> Value {
    member(made, "subscription").clone()
}

fn whole(value: &Value) -> i64 {
    if let Value::UInt(number) = value { i64::try_from(*number).unwrap() } else { value.as_int().unwrap() }
}

/// Content of a sample: its sweep, and the processes with their CPU shares in hundredths.
type SweepContent = (i64, Vec<(String, i64)>);

fn content(entry: &Value) -> SweepContent {
    assert_eq!(member(entry, "what").as_text(), Some("sample"), "{entry:?}");
    let process = |process: &Value| {
        let Value::Struct(members) = process else { panic!("{process:?}") };
        let share = members.iter().find(|(name, _)| name == "cpu").map(|(_, share)| {
            let Value::Double(share) = share else { panic!("{share:?}") };
            (share * 100.0).round() as i64
        });
        (member(process, "name").as_text().unwrap().to_owned(), share.unwrap_or(-1))
    };
    let processes = member(entry, "processes").as_array().unwrap();
    (whole(member(entry, "sweep")), processes.iter().map(process).collect())
}

impl Story {
    /// Takes entries at the representative until the sample of `last` has come.
    async fn take_until(&self, subscription: &Value, last: u64) -> Vec<SweepContent> {
        let mut all = Vec::new();
        while all.last().is_none_or(|(sweep, _)| *sweep < last as i64) {
            let params = vec![("subscription", subscription.clone()), ("wait", Value::Double(10.0))];
            let answer = self.at_representative("sensor.take", params).await.unwrap();
            let entries = member(&answer, "entries").as_array().unwrap();
            assert!(!entries.is_empty(), "up to {last}, found {all:?}");
            all.extend(entries.iter().map(content));
        }
        all
    }

    /// Takes entries at the representative until it returns an error.
    async fn take_until_refused(&self, subscription: &Value) -> Fault {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let taking = vec![("subscription", subscription.clone()), ("wait", Value::Double(0.01))];
            match self.at_representative("sensor.take", taking).await {
                Err(fault) => return fault,
                Ok(_) => assert!(tokio::time::Instant::now() < deadline),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_the_representative_gets_what_the_host_would_give() {
    let filters =
        ["", "cpu > 0.45", "name ~ \"[2468]$\" and cpu > 0.1 top 2 by cpu", "rate of cpu_seconds > 0.3"];
    for filter in filters {
        let mut story = Story::new();
        let (mut through, mut direct) = (Vec::new(), Vec::new());
        for rate in [10.0, 5.0, 2.0] {
            direct.push(id(&story.at_host("sensor.subscribe", wanted(rate, filter)).await.unwrap()));
            let made = story.at_representative("sensor.subscribe", wanted(rate, filter)).await.unwrap();
            assert_eq!(member(&made, "filter").as_text(), Some(filter));
            through.push((id(&made), rate));
        }
        // Three direct ones, and a shared one for the other three.
        story.until_rates(vec![10.0, 5.0, 2.0, 10.0]).await;
        story.sweep(41);
        for (direct, (through, rate)) in direct.into_iter().zip(through) {
            let params = vec![("subscription", direct), ("limit", Value::Int(1000))];
            let answer = story.at_host("sensor.take", params).await.unwrap();
            let expected: Vec<SweepContent> =
                member(&answer, "entries").as_array().unwrap().iter().map(content).collect();
            let last = expected.last().unwrap().0 as u64;
            assert!(last > 30, "{filter} at {rate}: {expected:?}");
            assert_eq!(story.take_until(&through, last).await, expected, "{filter} at {rate}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_the_highest_rate_and_ends_with_its_last_consumer() {
    let story = Story::new();
    let mut made = Vec::new();
    for rate in [1.0, 64.0, 8.0] {
        made.push(id(&story.at_representative("sensor.subscribe", wanted(rate, "pid < 5")).await.unwrap()));
    }
    story.until_rates(vec![64.0]).await;
    story.at_representative("sensor.subscribe", wanted(2.0, "pid < 6")).await.unwrap();
    story.until_rates(vec![64.0, 2.0]).await;
    let end =
        |nth: usize| story.at_representative("sensor.unsubscribe", vec![("subscription", made[nth].clone())]);
    end(1).await.unwrap();
    story.until_rates(vec![8.0, 2.0]).await;
    end(0).await.unwrap();
    end(2).await.unwrap();
    assert_eq!(end(2).await.unwrap_err().code, fault::NOT_FOUND);
    story.until_rates(vec![2.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_filter_takes_what_waits_along_and_loses_nothing() {
    let mut story = Story::new();
    let one = id(&story.at_representative("sensor.subscribe", wanted(10.0, "pid < 3")).await.unwrap());
    let other = id(&story.at_representative("sensor.subscribe", wanted(10.0, "pid > 8")).await.unwrap());
    story.until_rates(vec![10.0, 10.0]).await;
    story.sweep(5);
    assert_eq!(story.take_until(&other, 5).await.len(), 5);
    let altered = vec![("subscription", one.clone()), ("filter", Value::from("pid > 8"))];
    // What the host has sent until now is there, though no client took it.
    let waited = || async {
        let stands =
            story.at_representative("sensor.alter", vec![("subscription", one.clone())]).await.unwrap();
        whole(member(&stands, "next"))
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while waited().await < 5 {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    story.at_representative("sensor.alter", altered).await.unwrap();
    story.until_rates(vec![10.0]).await;
    story.sweep(5);
    let all = story.take_until(&one, 10).await;
    assert_eq!(all.iter().map(|(sweep, _)| *sweep).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    let names = |content: &SweepContent| content.1.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&all[4]), names(&all[5])),
        (vec!["worker1".to_owned(), "worker2".to_owned()], vec!["worker9".to_owned(), "worker10".to_owned()],)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_host_is_away_its_consumers_are_notified_and_then_go_on() {
    let mut story = Story::new();
    let one = id(&story.at_representative("sensor.subscribe", wanted(10.0, "")).await.unwrap());
    story.until_rates(vec![10.0]).await;
    story.sweep(3);
    assert_eq!(story.take_until(&one, 3).await.len(), 3);
    story.until_taken_from().await;
    story.host.is_gone.store(true, Ordering::SeqCst);
    // The call that waits at the host ends with this sweep; the next one does not reach the host.
    story.sweep(1);
    story.take_until(&one, 4).await;
    let fault = story.take_until_refused(&one).await;
    assert_eq!(fault.code, fault::UNAVAILABLE, "{fault}");
    assert!(fault.message.ends_with("wn07 does not answer"), "{fault}");
    // Its unsent entries are lost with the subscription at the host.
    for (id, _) in story.host.hub.statuses() {
        story.host.hub.unsubscribe(id).unwrap();
    }
    story.sweep(5);
    story.host.is_gone.store(false, Ordering::SeqCst);
    story.until_rates(vec![10.0]).await;
    story.sweep(2);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let all = loop {
        let taking = vec![("subscription", one.clone()), ("wait", Value::Double(5.0))];
        match story.at_representative("sensor.take", taking).await {
            Ok(answer) if !member(&answer, "entries").as_array().unwrap().is_empty() => break answer,
            Ok(_) => assert!(tokio::time::Instant::now() < deadline),
            // The consumer does not see that the host lost the subscription.
            Err(fault) => assert_eq!(fault.code, fault::UNAVAILABLE, "{fault}"),
        }
    };
    let entries = member(&all, "entries").as_array().unwrap();
    let samples = entries.iter().filter(|entry| member(entry, "what").as_text() == Some("sample"));
    let first = samples.map(content).next().unwrap();
    assert_eq!((first.0, first.1.len()), (10, 10), "the whole host, as it is now");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_cannot_use_is_refused_at_once_or_reported() {
    let story = Story::new();
    for filter in ["name ~ \"[\"", "warmth > 3"] {
        let fault = story.at_representative("sensor.subscribe", wanted(1.0, filter)).await.unwrap_err();
        assert_eq!(fault.code, fault::INVALID_PARAMS, "{filter}: {fault}");
    }
    let mut of_no_user = wanted(1.0, "");
    of_no_user.push(("selection", Value::object([("user", "no such user")])));
    let one = id(&story.at_representative("sensor.subscribe", of_no_user).await.unwrap());
    let fault = story.take_until_refused(&one).await;
    assert_eq!(fault.code, fault::INVALID_PARAMS, "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_consumer_has_to_do_with_the_subscriptions_of_others() {
    let story = Story::new();
    let other = Caller { peer: Some(PeerKey([8; 32])), ..peer() };
    // Two accounts at one proxy, and an equal account at another proxy.
    let of_account = |number: u8| Caller { account: Some(Account([number; 16])), ..peer() };
    let namesake = Caller { peer: other.peer, ..of_account(1) };
    for dispatcher in [&*story.host.dispatcher, &story.representative] {
        for (owner, others) in [(peer(), [other, of_account(1)]), (of_account(1), [peer(), of_account(2)])] {
            let made = dispatcher.call_for(&owner, "sensor.subscribe", named(wanted(1.0, ""))).await.unwrap();
            let of = || named(vec![("subscription", id(&made))]);
            for method in ["sensor.take", "sensor.alter", "sensor.unsubscribe"] {
                for other in others.iter().chain([&namesake]) {
                    let fault = dispatcher.call_for(other, method, of()).await.unwrap_err();
                    assert_eq!(fault.code, fault::NOT_FOUND, "{method}: {fault}");
                }
                assert!(dispatcher.call_for(&owner, method, of()).await.is_ok(), "{method} by its owner");
            }
        }
    }
    let made = named(wanted(1.0, ""));
    let made = story.host.dispatcher.call_for(&of_account(1), "sensor.subscribe", made).await.unwrap();
    for (asker, sees) in [(other, false), (peer(), false), (of_account(2), false), (of_account(1), true)] {
        let all = story.host.dispatcher.call_for(&asker, "sensor.subscriptions", Vec::new()).await.unwrap();
        // The list may also have the subscription of a stream that is about to end.
        let listed = member(&all, "subscriptions")
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one.get("subscription").is_some_and(|id| Some(id) == made.get("subscription")));
        assert_eq!(listed, sees);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_not_taken_from_other_daemons() {
    let story = Story::new();
    let scripted = || named(vec![("script", Value::from("true"))]);
    for dispatcher in [&*story.host.dispatcher, &story.representative] {
        let fault = dispatcher.call_for(&peer(), "sensor.subscribe", scripted()).await.unwrap_err();
        assert_eq!(fault.code, fault::FORBIDDEN, "{fault}");
    }
    let client = Caller::client(Duration::from_secs(5));
    story.host.dispatcher.call_for(&client, "sensor.subscribe", scripted()).await.unwrap();
}

#[tokio::test]
async fn a_stream_whose_task_failed_is_started_again() {
    let mut story = Story::new();
    let made = story.at_representative("sensor.subscribe", wanted(20.0, "")).await.unwrap();
    story.until_taken_from().await;
    story.host.panics.store(true, Ordering::SeqCst);
    // The current call ends, and the next one panics.
    story.sweep(1);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while story.host.panics.load(Ordering::SeqCst) {
        assert!(tokio::time::Instant::now() < deadline, "it was not asked again");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // A new subscription exists beside the old one, which nothing ends.
    story.until_rates(vec![20.0, 20.0]).await;
    story.sweep(4);
    let sweeps = story.take_until(&id(&made), story.swept).await;
    assert!(!sweeps.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_representative_gives_packed_entries_too() {
    let mut story = Story::new();
    let made =
        story.at_representative("sensor.subscribe", wanted(10.0, "name = \"worker10\"")).await.unwrap();
    story.until_rates(vec![10.0]).await;
    story.until_taken_from().await;
    story.sweep(10);
    let mut entries = Vec::new();
    let mut next = 0;
    while entries.len() < 3 {
        let params =
            vec![("subscription", id(&made)), ("wait", Value::Double(10.0)), ("packed", Value::Bool(true))];
        let answer = story.at_representative("sensor.take", params).await.unwrap();
        let taken = rpc::dispatch::typed::answer_of::<TakeParams>(answer).unwrap();
        assert!(taken.entries.is_empty() && taken.booted.is_some(), "{taken:?}");
        next = taken.next;
        entries.extend(taken.packed_entries().unwrap().unwrap());
    }
    let named = |entry: &Entry| {
        let Body::Sample { records, .. } = &entry.body else { panic!("{entry:?}") };
        records[0].process.name.to_string()
    };
    assert!(entries.iter().all(|entry| named(entry) == "worker10"), "{entries:?}");
    assert_eq!(next, entries.last().unwrap().number + 1);
}
