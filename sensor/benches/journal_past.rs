//! Benchmark of the past in the journal: ten million events, before and after compression.
//!
//! Prints bytes of an event in the log, in the journal and compressed, the speed of compression, and the time
//! of queries of `sensor.events` beside `grep` over the log. The events are those of recorded jobs
//! (`site_logs`), through the shipped filters. `VISPERF_LOGS` is the path of the recorded logs,
//! `VISPERF_LINES` the number of lines, `VISPERF_BENCH_FOLDER` a folder with room for four gigabytes.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]
#![allow(clippy::cast_precision_loss)]

mod site_logs;

use compact_str::CompactString;
use log_filters::engine::{Engine, Source};
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Registry as Methods;
use rpc::limits::Limits;
use sensor::journal::packer::Step;
use sensor::journal::reader::Reader;
use sensor::query::events::Events;
use sensor::tail::handle::MachineClock;
use sensor::tail::ingest::{Ingest, Parts};
use sensor::tail::interpret::{Filters, Interpret};
use sensor::tail::watch::Wake;
use sensor::tail::{Config, Spec};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use wire::id::SensorKey;

struct Shipped(Registry);

impl Filters for Shipped {
    fn choose(&self, wanted: Option<&str>, path: &Path, first: &[u8]) -> Option<CompactString> {
        let name = path.file_name()?.to_str()?;
        let filter = match wanted {
            Some(wanted) => self.0.get(wanted),
            None => self.0.choose(name, first),
        };
        filter.map(|filter| filter.name().into())
    }

    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>> {
        let source = Source {
            file_name: path.file_name()?.to_str()?.to_owned(),
            host: "host".into(),
            cluster: cluster.to_owned(),
            zone: jiff::tz::TimeZone::UTC,
        };
        Some(Box::new(Engine::new(self.0.get(filter)?.clone(), &source)))
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let lines: u64 = number("VISPERF_LINES").unwrap_or(12_500_000);
    let parent = std::env::var("VISPERF_BENCH_FOLDER").map_or_else(|_| std::env::temp_dir(), Into::into);
    let directory = tempfile::tempdir_in(parent).unwrap();
    let logged = site_logs::write(directory.path(), lines);
    let joiner = Arc::new(Mutex::new(Joiner::default()));
    let parts = Parts {
        filters: Box::new(Shipped(Registry::shipped())),
        join: Box::new(Arc::clone(&joiner)),
        clock: Box::new(MachineClock),
        fresh_key: SensorKey(1),
    };
    let logs = site_logs::LOGS.map(|name| directory.path().join(name));
    let specs = logs.iter().map(|log| Spec::new(log.to_str().unwrap()));
    let mut config = Config::new("host", specs.collect());
    config.journal.budget_bytes = u64::MAX;
    let state = directory.path().join("state");
    let mut ingest = Ingest::open(config, &state, parts).unwrap();
    let started = Instant::now();
    while ingest.turn(&Wake::default()) == Duration::ZERO {}
    ingest.drain();
    let events = *ingest.reader().next().borrow();
    println!("{lines} lines of {logged} bytes, {events} events, read in {:.1?}", started.elapsed());
    let per_event = |bytes: u64| bytes as f64 / events as f64;
    println!("log               {:7.2} bytes an event", per_event(logged));
    println!("journal           {:7.2} bytes an event", per_event(size(&state.join("journal"))));
    queries(&ingest.reader(), &joiner, "before");
    let (started, work) = (Instant::now(), processor_time());
    let mut packer = ingest.packer();
    while packer.step(&|| true).unwrap() == Step::Done {}
    let work = processor_time() - work;
    println!("journal, packed   {:7.2} bytes an event", per_event(size(&state.join("journal"))));
    println!(
        "compressed in {:.1?}, {:.2} µs an event",
        started.elapsed(),
        work.as_secs_f64() * 1e6 / events as f64
    );
    queries(&ingest.reader(), &joiner, "packed");
    grep(&logs[0]);
}

fn size(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Times queries of a client, from the call to the encoded answer.
fn queries(reader: &Reader, joiner: &Arc<Mutex<Joiner>>, state: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let events = Events::new(reader.clone(), Arc::clone(joiner), CancellationToken::new());
    let mut methods = Methods::new();
    methods.add(events.method()).unwrap();
    let dispatcher = Arc::new(Dispatcher::new(methods, Limits::default(), Arc::default()));
    let (since, until) = hour(reader);
    let hour = [("since", since.as_str()), ("until", until.as_str())];
    let queries: [(&str, Vec<(&'static str, &str)>); 11] = [
        ("host and hour", [("on_host", "wn123")].into_iter().chain(hour).collect()),
        ("hour", hour.to_vec()),
        ("user", vec![("user", "user042")]),
        ("user, 100", vec![("user", "user042"), ("limit", "100")]),
        ("user and hour", [("user", "user042")].into_iter().chain(hour).collect()),
        ("no such user", vec![("user", "ada")]),
        ("job", vec![("job", "1200345")]),
        ("regex, rare", vec![("regex", "wn12[0-9]:.*SIGSEGV")]),
        ("regex, a job", vec![("regex", "^(120034|3456)5$")]),
        ("regex, none", vec![("regex", "wn[0-9]+:.*a text that is nowhere")]),
        ("regex, often", vec![("regex", "user04[0-9]|NODE_FAIL")]),
    ];
    for (name, params) in queries {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..5 {
            let params = params.iter().map(|(name, text)| (Name::Borrowed(*name), Value::from(*text)));
            let params: Vec<_> = params.collect();
            let caller = Caller::client(Duration::from_secs(60));
            let started = Instant::now();
            let answer = runtime.block_on(dispatcher.call_for(&caller, "sensor.events", params)).unwrap();
            times.push(started.elapsed());
            if let Some(Value::Array(events)) = answer.get("events") {
                found = events.len();
            }
            if times[0] > Duration::from_secs(2) {
                break;
            }
        }
        times.sort_unstable();
        println!("{state:7} {name:14} {found:5} events in {:.1?} (median)", times[times.len() / 2]);
    }
}

/// An hour in the middle.
fn hour(reader: &Reader) -> (String, String) {
    let middle = *reader.next().borrow() / 2;
    let page = reader.read(middle, 1, |_| true).unwrap();
    let at = jiff::Timestamp::from_microsecond(page.events[0].content.time.micros()).unwrap();
    (at.to_string(), (at + jiff::SignedDuration::from_hours(1)).to_string())
}

fn grep(log: &Path) {
    for pattern in ["wn123", "JobId=1200345", "WEXITSTATUS [1-9]"] {
        let started = Instant::now();
        let out = Command::new("grep").args(["-cE", pattern]).arg(log).output();
        let count = out.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default();
        println!("grep -cE {pattern:?} over the log: {count} lines in {:.1?}", started.elapsed());
    }
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
