//! Benchmark of channels: delivery to a hundred subscribers of different rates and filters, and its cost. Ten
//! of them never take, and one has an endless script.
//!
//! `cargo bench -p sensor --bench channels [-- SECONDS]` starts 300 idle processes of its own and sweeps at
//! 64 Hz for SECONDS (default: 10) by the best source that works here. For the 89 subscribers that take, it
//! prints how far the samples are from their grid of deadlines, their latency until they are taken, and the
//! missed samples; it also prints the CPU usage. Other processes of the machine are sampled too.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark: it has a clock, starts processes and prints.

use sensor::channel::hub::{Hub, Id};
use sensor::process::sampler::Sampler;
use sensor::process::source::choose;
use sensor::sample::schedule::Rate;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use wire::channel::stream::Body;
use wire::channel::{Budget, ChannelRequest, expression};

const RATES_HZ: [f64; 5] = [64.0, 32.0, 16.0, 8.0, 1.0];
const FILTERS: [&str; 6] = [
    "top 10 by cpu",
    "cpu > 0.1",
    "name ~ \"^s\" and rss_bytes > 1M",
    "rss_bytes changes by 64ki",
    "rate of cpu_seconds > 0.05 and threads > 1",
    "",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|word| word == "idle") {
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let secs = arguments.first().map_or(10, |secs| secs.parse().expect("a number of seconds"));
    let _load = Load::start(300);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    for is_subscribed in [false, true] {
        runtime.block_on(measure(is_subscribed, Duration::from_secs(secs)));
    }
}

async fn measure(is_subscribed: bool, span: Duration) {
    let hub = Hub::default();
    let chosen = choose(Path::new("/proc"), None).expect("some way works");
    let kind = chosen.source.kind();
    let rate = Rate::of_processes(64.0).expect("allowed");
    let sampler = Sampler::new(chosen, Path::new("/proc"), rate, vec![hub.tap()]);
    let handle = sampler.handle();
    hub.set_demand(wire::channel::Kind::Process, handle.demand());
    let shutdown = CancellationToken::new();
    let sampling = tokio::spawn(sampler.run(shutdown.clone()));
    let (takers, started, used) = (subscribe(&hub, is_subscribed), Instant::now(), process_time());
    let until = started + span;
    let taking: Vec<_> =
        takers.iter().map(|(id, hz)| tokio::spawn(take(hub.clone(), *id, *hz, until))).collect();
    let mut all = Got::default();
    for task in taking {
        let got = task.await.expect("it does not panic");
        all.off_us.extend(got.off_us);
        all.way_us.extend(got.way_us);
        all.missed += got.missed;
    }
    tokio::time::sleep_until(until.into()).await;
    let (took, used, status) = (started.elapsed(), process_time() - used, handle.status());
    shutdown.cancel();
    sampling.await.expect("it does not panic").expect("it ends on cancellation");
    let of_core = |time: Duration| 100.0 * time.as_secs_f64() / took.as_secs_f64();
    println!(
        "{kind}, {} processes, {} subscriptions:",
        handle.read(|view| view.table.len()),
        hub.statuses().len()
    );
    println!(
        "  {} sweeps, {} slipped; subscriptions {:.2} % of a core, all of this process {:.2} %",
        status.sweeps_total,
        status.slipped_total,
        of_core(Duration::from_nanos(status.taps_ns_total)),
        of_core(used)
    );
    if is_subscribed {
        let stopped = hub.statuses().iter().filter(|(_, stands)| stands.quarantined.is_some()).count();
        println!(
            "  {} samples taken, {} missed; off their raster by {} µs (half), {} µs (p99); under way for {} µs, {} µs; \
             {stopped} quarantined",
            all.way_us.len(),
            all.missed,
            part(&mut all.off_us, 50),
            part(&mut all.off_us, 99),
            part(&mut all.way_us, 50),
            part(&mut all.way_us, 99)
        );
    }
}

/// Creates the subscriptions; returns those that take, with their rates.
fn subscribe(hub: &Hub, is_subscribed: bool) -> Vec<(Id, f64)> {
    let wanted = |hz: f64, filter: &str| ChannelRequest {
        rate: hz.try_into().expect("allowed"),
        filter: expression::filter(filter).expect("understood"),
        budget: Budget { cpu_ms: 100, ..Budget::default() },
        ..ChannelRequest::default()
    };
    if !is_subscribed {
        return Vec::new();
    }
    for _ in 0..10 {
        hub.subscribe(wanted(64.0, "")).expect("there is room");
    }
    let endless = ChannelRequest { script: Some("loop {}".to_owned()), ..wanted(64.0, "") };
    hub.subscribe(endless).expect("there is room");
    let one = |number: usize| {
        let hz = RATES_HZ[number % RATES_HZ.len()];
        (hub.subscribe(wanted(hz, FILTERS[number % FILTERS.len()])).expect("there is room"), hz)
    };
    (0..89).map(one).collect()
}

#[derive(Default)]
struct Got {
    off_us: Vec<u64>,
    way_us: Vec<u64>,
    missed: u64,
}

async fn take(hub: Hub, id: Id, hz: f64, until: Instant) -> Got {
    let (mut got, mut first) = (Got::default(), None);
    while Instant::now() < until {
        let answer = hub.take(id, 1000, Duration::from_millis(200)).await.expect("it is there");
        let now_ns = boot_ns();
        for entry in answer.entries {
            match entry.body {
                Body::Sample { .. } => {
                    got.way_us.push(now_ns.saturating_sub(entry.at_ns) / 1000);
                    // Empty samples are not sent, so the distance to the nearest deadline of the grid counts.
                    let since = entry.at_ns - *first.get_or_insert(entry.at_ns);
                    let periods = since as f64 * hz / 1e9;
                    got.off_us.push(((periods - periods.round()).abs() / hz * 1e6) as u64);
                }
                Body::Missed(count) => got.missed += count,
                Body::Signal { .. }
                | Body::Quarantined(_)
                | Body::Readings { .. }
                | Body::Event(_)
                | Body::Call(_)
                | Body::Figures(_) => {}
            }
        }
    }
    got
}

fn part(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied().unwrap_or(0)
}

fn clock(id: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(id);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn process_time() -> Duration {
    clock(rustix::time::ClockId::ProcessCPUTime)
}

fn boot_ns() -> u64 {
    u64::try_from(clock(rustix::time::ClockId::Boottime).as_nanos()).unwrap_or(u64::MAX)
}

/// Processes to be sampled; they end when their standard input does.
struct Load(Vec<Child>);

impl Load {
    fn start(count: usize) -> Load {
        let program = std::env::current_exe().expect("this program");
        let one = |_| {
            let mut command = Command::new(&program);
            command.arg("idle").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a process")
        };
        Load((0..count).map(one).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
