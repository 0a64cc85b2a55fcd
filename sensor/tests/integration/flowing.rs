//! Channels of a real sensor, over a log that is written meanwhile, the host it runs on, and real processes:
//! metrics, events, calls, and the processes of a job; at the sensor and through the representative of its
//! domain.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::{Caller, Forward, Forwarding, forwarded};
use rpc::dispatch::method::{Answer, Registry};
use rpc::dispatch::params::Params;
use rpc::fault::Fault;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::query::channels::relays::{HostClient, Relays};
use sensor::query::declared;
use sensor::run::Sensor;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::fault;
use wire::id::PeerKey;
use wire::query::{Form, Viewer};

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sensor that follows a log, and the representative of its domain.
struct Site {
    folder: tempfile::TempDir,
    host: Arc<Dispatcher>,
    representative: Arc<Dispatcher>,
    is_gone: Arc<AtomicBool>,
    shutdown: CancellationToken,
    run: JoinHandle<Result<(), sensor::run::Error>>,
    relaying: JoinHandle<()>,
}

/// Calls the sensor as another daemon would.
struct HostLink(Arc<Dispatcher>, Arc<AtomicBool>);

impl HostClient for HostLink {
    fn call(
        &self,
        _: &str,
        viewer: Viewer,
        method: &'static str,
        params: Vec<(Name, Value)>,
        _: Duration,
    ) -> Answer {
        let (host, is_gone) = (Arc::clone(&self.0), Arc::clone(&self.1));
        Box::pin(async move {
            if is_gone.load(Ordering::SeqCst) {
                return Err(Fault::unavailable("it does not answer"));
            }
            let caller =
                Caller { peer: Some(PeerKey([7; 32])), hops_left: 1, viewer, ..Caller::client(PATIENCE) };
            host.call_for(&caller, method, params).await
        })
    }
}

struct Beyond(Relays);

impl Forward for Beyond {
    fn ask(
        &self,
        caller: &Caller,
        method: &'static str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Forwarding> {
        self.0.ask(caller, "head", method, params, form).map(forwarded)
    }
}

impl Site {
    fn start() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("slurmctld.log");
        std::fs::write(&log, "").unwrap();
        let text = format!(
            "sample_hz = 10\nprocess_hz = 20\n[[tail]]\npath = '{}'\nfilter = 'slurmctld'\n",
            log.display()
        );
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), &text).unwrap();
        let config = Config::new(raw, "head", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &folder.path().join("state")).unwrap();
        let host = Arc::new(Dispatcher::new(sensor.methods().unwrap(), Limits::default(), Arc::default()));
        let is_gone = Arc::<AtomicBool>::default();
        let (relays, relaying) = Relays::new(Arc::new(HostLink(Arc::clone(&host), Arc::clone(&is_gone))));
        let mut registry = Registry::new();
        for declared in declared::all() {
            registry.add(declared.handler_now(|_| Ok(Value::Nil))).unwrap();
        }
        registry.set_elsewhere(Box::new(Beyond(relays)));
        let representative = Arc::new(Dispatcher::new(registry, Limits::default(), Arc::default()));
        let shutdown = CancellationToken::new();
        let relaying = tokio::spawn(relaying.run(shutdown.clone()));
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        Site { folder, host, representative, is_gone, shutdown, run, relaying }
    }

    /// Appends lines to the log, each with the same time stamp.
    fn write(&self, lines: impl Iterator<Item = String>) {
        let path = self.folder.path().join("slurmctld.log");
        let lines: String = lines.map(|line| format!("[2026-11-20T12:24:17.446] {line}\n")).collect();
        std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(lines.as_bytes()).unwrap();
    }

    fn submit(&self, jobs: std::ops::Range<u32>) {
        self.write(jobs.map(|job| format!("_slurm_rpc_submit_batch_job: JobId={job} InitPrio=1 usec=718")));
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap().unwrap();
        self.relaying.await.unwrap();
    }
}

async fn ask(at: &Dispatcher, method: &str, params: Vec<(&'static str, Value)>) -> Result<Value, Fault> {
    let params = params.into_iter().map(|(name, value)| (Name::Borrowed(name), value)).collect();
    at.call_for(&Caller::trusted(PATIENCE), method, params).await
}

fn wanted(kind: &'static str, rate: f64, filter: &str) -> Vec<(&'static str, Value)> {
    let budget = Value::object([("cpu_ms", Value::Int(500)), ("queue_bytes", Value::Int(1 << 20))]);
    vec![
        ("kind", Value::from(kind)),
        ("rate", Value::Double(rate)),
        ("filter", Value::from(filter)),
        ("budget", budget),
    ]
}

fn selecting(
    mut wanted: Vec<(&'static str, Value)>,
    of: &[(&'static str, &str)],
) -> Vec<(&'static str, Value)> {
    let members = of.iter().map(|(name, value)| (*name, Value::from(*value)));
    wanted.push(("selection", Value::object(members)));
    wanted
}

/// A subscription, and the number of its next entry.
struct Taker {
    at: Arc<Dispatcher>,
    id: Value,
    next: u64,
}

impl Taker {
    async fn new(at: &Arc<Dispatcher>, wanted: Vec<(&'static str, Value)>) -> Taker {
        let made = ask(at, "sensor.subscribe", wanted).await.unwrap();
        Taker { at: Arc::clone(at), id: made.get("subscription").unwrap().clone(), next: 0 }
    }

    /// Takes waiting entries, or those that come soon; checks that numbers have no gap.
    async fn take(&mut self) -> Result<Vec<Value>, Fault> {
        let params = vec![
            ("subscription", self.id.clone()),
            ("wait", Value::Double(0.5)),
            ("limit", Value::Int(1000)),
        ];
        let answer = ask(&self.at, "sensor.take", params).await?;
        let entries = answer.get("entries").and_then(Value::as_array).unwrap().to_vec();
        // A quarantined subscription would never send the expected entries.
        assert!(entries.iter().all(|entry| text(entry, "what") != "quarantined"), "{entries:?}");
        if let Some(first) = entries.first() {
            assert_eq!(first.get("number"), Some(&Value::UInt(self.next)));
            self.next = whole(&answer, "next");
        }
        Ok(entries)
    }

    /// Takes entries of this kind until there are `count`.
    async fn until(&mut self, what: &str, count: usize) -> Vec<Value> {
        let mut all = Vec::new();
        let taking = async {
            while all.len() < count {
                let entries = match self.take().await {
                    Ok(entries) => entries,
                    Err(fault) if fault.code == fault::UNAVAILABLE => continue,
                    Err(fault) => panic!("{fault}"),
                };
                all.extend(entries.into_iter().filter(|entry| text(entry, "what") == what));
            }
        };
        let taken = tokio::time::timeout(PATIENCE, taking).await;
        assert!(taken.is_ok(), "{} of {count} {what}: {:?}", all.len(), all.last());
        all
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_text).unwrap_or_else(|| panic!("{name} of {value:?}"))
}

fn whole(value: &Value, name: &str) -> u64 {
    match value.get(name) {
        Some(Value::UInt(number)) => *number,
        other => panic!("{name} of {value:?}: {other:?}"),
    }
}

fn jobs(entries: &[Value]) -> Vec<u32> {
    entries.iter().map(|entry| text(entry.get("event").unwrap(), "job").parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_come_at_the_rate_of_the_sampler_and_are_chosen_by_name_and_value() {
    let site = Site::start();
    for at in [&site.host, &site.representative] {
        let loads = selecting(wanted("host", 10.0, "value >= 0"), &[("metric", "node_load?")]);
        let mut loads = Taker::new(at, loads).await;
        let mut with_condition =
            wanted("host", 10.0, "name = \"node_memory_MemTotal_bytes\" and value changes by 1");
        with_condition.push(("condition", Value::from("max value > 1000")));
        let mut total = Taker::new(at, with_condition).await;
        // When the machine stalls for a moment, a sweep is missing.
        let mut tries = 0;
        let samples = loop {
            let samples = loads.until("sample", 5).await;
            let sweeps: Vec<u64> = samples.iter().map(|sample| whole(sample, "sweep")).collect();
            if sweeps.windows(2).all(|pair| pair[1] == pair[0] + 1) {
                break samples;
            }
            tries += 1;
            assert!(tries < 20, "{sweeps:?}");
        };
        for sample in &samples {
            let metrics = sample.get("metrics").and_then(Value::as_array).unwrap();
            let names: Vec<&str> = metrics.iter().map(|metric| text(metric, "name")).collect();
            assert_eq!(names, ["node_load1", "node_load5"], "of one digit");
        }
        let signal = total.until("signal", 1).await;
        assert_eq!(signal[0].get("is_true"), Some(&Value::Bool(true)));
        assert!(total.next <= 3, "a constant value is sent once, and signalled true and false");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_comes_once_though_none_are_taken_meanwhile_and_what_is_wanted_is_altered() {
    let site = Site::start();
    site.submit(1..6);
    // Earlier events are sent only on request.
    let mut from_start = wanted("event", 20.0, "");
    from_start.push(("cursor", Value::from("")));
    let mut from_start = Taker::new(&site.host, from_start).await;
    assert_eq!(jobs(&from_start.until("event", 5).await), (1..6).collect::<Vec<_>>());
    let mut small = wanted("event", 20.0, "");
    small.pop();
    small.push(("budget", Value::object([("cpu_ms", Value::Int(500)), ("queue_bytes", Value::Int(16_384))])));
    let mut all = Taker::new(&site.host, small).await;
    let mut few = Taker::new(&site.host, selecting(wanted("event", 0.5, ""), &[("job", "77")])).await;
    // Far more than a queue holds.
    site.submit(10..3010);
    let mut came = jobs(&all.until("event", 300).await);
    for (rate, filter) in [(1.0, "kind = \"job_submit\""), (64.0, "job != \"0\""), (10.0, "")] {
        let altered = vec![
            ("subscription", all.id.clone()),
            ("rate", Value::Double(rate)),
            ("filter", Value::from(filter)),
        ];
        ask(&site.host, "sensor.alter", altered).await.unwrap();
        came.extend(jobs(&all.until("event", 200).await));
    }
    came.extend(jobs(&all.until("event", 3000 - came.len()).await));
    assert_eq!(came, (10..3010).collect::<Vec<_>>());
    assert_eq!(jobs(&few.until("event", 1).await), [77]);
    assert!(few.take().await.unwrap().is_empty());
    let result = ask(&site.host, "sensor.subscribe", wanted("event", 1.0, "kind = \"job-end\"")).await;
    assert!(result.unwrap_err().message.contains("expected one of job_submit"));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_subscribes_again_goes_on_behind_what_it_was_given() {
    let site = Site::start();
    site.submit(1..200);
    let (mut cursor, mut came) = (String::new(), Vec::new());
    // Some rounds leave waiting entries, some leave none, and some take nothing.
    for limit in [7, 1, 1000, 1000].into_iter().cycle() {
        let mut wanted = wanted("event", 50.0, "job != \"50\"");
        wanted.push(("cursor", Value::from(cursor.as_str())));
        let id =
            ask(&site.host, "sensor.subscribe", wanted).await.unwrap().get("subscription").unwrap().clone();
        let params =
            vec![("subscription", id.clone()), ("wait", Value::Double(0.5)), ("limit", Value::Int(limit))];
        let answer = ask(&site.host, "sensor.take", params).await.unwrap();
        came.extend(jobs(answer.get("entries").and_then(Value::as_array).unwrap()));
        text(&answer, "cursor").clone_into(&mut cursor);
        // Drops the waiting entries.
        ask(&site.host, "sensor.unsubscribe", vec![("subscription", id)]).await.unwrap();
        if came.len() >= 198 {
            break;
        }
    }
    assert_eq!(came, (1..200).filter(|job| *job != 50).collect::<Vec<_>>());
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_sent_as_its_state_becomes_another() {
    let site = Site::start();
    let mut calls = Taker::new(&site.host, wanted("call", 20.0, "job = \"17\"")).await;
    let mut ended = Taker::new(&site.representative, wanted("call", 20.0, "state = \"ended\"")).await;
    let mut busy = wanted("call", 20.0, "");
    busy.push(("condition", Value::from("count > 0")));
    busy.push(("only_signals", Value::Bool(true)));
    let mut busy = Taker::new(&site.representative, busy).await;
    // Makes the representative subscribe at the host.
    assert!(ended.take().await.unwrap().is_empty());
    for (line, state) in [
        ("_slurm_rpc_submit_batch_job: JobId=17 InitPrio=1 usec=718", "waiting"),
        ("sched: Allocate JobId=17 NodeList=wn01 #CPUs=1 Partition=short", "running"),
        ("_job_complete: JobId=17 WEXITSTATUS 2", "ended"),
    ] {
        site.write(
            ["_slurm_rpc_submit_batch_job: JobId=18 InitPrio=1 usec=718", line]
                .map(str::to_owned)
                .into_iter(),
        );
        let call = calls.until("call", 1).await;
        assert_eq!((call.len(), text(call[0].get("call").unwrap(), "state")), (1, state));
    }
    assert!(calls.take().await.unwrap().is_empty(), "it is sent once");
    let call = ended.until("call", 1).await;
    assert_eq!(text(call[0].get("call").unwrap(), "outcome"), "failed");
    let signals = busy.until("signal", 2).await;
    let is_true = |signal: &Value| signal.get("is_true") == Some(&Value::Bool(true));
    assert!(is_true(&signals[0]) && !is_true(&signals[1]), "nothing happens any more");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_the_representative_gets_every_event_once_though_the_host_is_away_meanwhile() {
    let site = Site::start();
    let mut all = Taker::new(&site.representative, wanted("event", 50.0, "")).await;
    let odd = wanted("event", 20.0, "job ~ \"[13579]$\"");
    let mut odd = Taker::new(&site.representative, odd).await;
    let subscribed = async || {
        let answer = ask(&site.host, "sensor.subscriptions", Vec::new()).await.unwrap();
        answer.get("subscriptions").and_then(Value::as_array).unwrap().to_vec()
    };
    while subscribed().await.is_empty() {
        tokio::task::yield_now().await;
    }
    site.submit(100..200);
    assert_eq!(jobs(&all.until("event", 100).await), (100..200).collect::<Vec<_>>());
    assert_eq!(subscribed().await.len(), 1, "one for both");
    site.is_gone.store(true, Ordering::SeqCst);
    // The call in progress returns what it has; later calls do not reach the host.
    site.submit(200..300);
    let mut came = Vec::new();
    let fault = loop {
        match all.take().await {
            Ok(entries) => came.extend(jobs(&entries)),
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault.code, fault::UNAVAILABLE, "{fault}");
    for one in subscribed().await {
        let id = one.get("subscription").unwrap().clone();
        ask(&site.host, "sensor.unsubscribe", vec![("subscription", id)]).await.unwrap();
    }
    site.submit(300..400);
    site.is_gone.store(false, Ordering::SeqCst);
    came.extend(jobs(&all.until("event", 200 - came.len()).await));
    assert_eq!(came, (200..400).collect::<Vec<_>>());
    let odds = jobs(&odd.until("event", 150).await);
    assert_eq!(odds, (100..400).filter(|job| job % 2 == 1).collect::<Vec<_>>());
    site.end().await;
}

/// A process that serves a job; killed on drop.
struct Worker(Child);

impl Worker {
    #[allow(clippy::disallowed_methods)]
    fn start(job: u32) -> Worker {
        Worker(Command::new("sleep").arg("600").env("SLURM_JOB_ID", job.to_string()).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _code = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_job_come_and_go_and_no_others() {
    let site = Site::start();
    let first = Worker::start(804_217);
    let _other = Worker::start(80_421);
    let mut takers = Vec::new();
    for at in [&site.host, &site.representative] {
        for of in [("job", "804217"), ("call", "slurm:804217")] {
            takers.push(Taker::new(at, selecting(wanted("process", 20.0, ""), &[of])).await);
        }
    }
    let second = Worker::start(804_217);
    let pids: BTreeSet<u64> = [&first, &second].iter().map(|worker| u64::from(worker.0.id())).collect();
    for taker in &mut takers {
        let seen = async {
            loop {
                let samples = taker.until("sample", 1).await;
                let of = |sample: &Value| -> BTreeSet<u64> {
                    let processes = sample.get("processes").and_then(Value::as_array).unwrap();
                    processes.iter().map(|process| whole(process, "pid")).collect()
                };
                assert!(samples.iter().all(|sample| of(sample).is_subset(&pids)), "{samples:?}");
                if samples.iter().any(|sample| of(sample) == pids) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("both are sent");
    }
    drop((first, second));
    // The host sends no sample without processes.
    let taker = &mut takers[0];
    let quiet = async { while !taker.take().await.unwrap().is_empty() {} };
    tokio::time::timeout(PATIENCE, quiet).await.expect("those that ended are sent no more");
    site.end().await;
}
