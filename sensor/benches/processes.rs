//! Benchmark of process sampling: each source at several rates and numbers of processes, beside a monitor
//! that reopens every file of every process and beside a library; and the bytes of a sweep on the wire.
//!
//! `cargo bench -p sensor --bench processes [-- SECONDS [IDLE [HZ]]]` starts processes of its own (300 idle
//! ones; 270 idle and 30 busy ones; 1,000; 3,000) and sweeps for SECONDS (default: 5). It prints the CPU time
//! of the sweeping thread, the median of a sweep, and slipped sweeps. Beside them it prints the slipped
//! wakeups of a thread that is woken as often at the same time and does nothing: those are caused by the
//! machine. It also prints the bytes per process in a sweep, and what listening to the scheduler costs the
//! machine. Other processes of the machine are sampled and counted too. With IDLE there are only this many
//! idle processes, swept 64 times per second; with HZ, at that rate. The whole pipeline is the sweep, its
//! encoding for the wire, the ring of the flight recorder and a subscription for all processes, with whole
//! samples or changes.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark: it has a clock, starts processes and prints.

mod loads;

use loads::{Load, Work, thread_time};
use sensor::channel::hub::Hub;
use sensor::process::source::{ChosenSource, Kind, Source, View, choose};
use sensor::process::tap::Tap;
use sensor::recorder::ring::{BYTES_MAX, Limits, Ring};
use sensor::sample::schedule::Rate;
use sensor::sample::ticker::{Next, Ticker};
use sensor::sample::wakeup_latency;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::channel::{Budget, CPU_MAX_MS, ChannelRequest};
use wire::process::delta::Encoder;

/// Sweeps of changes between two whole ones on the wire.
const CHANGES_BETWEEN_WHOLES: u64 = 640;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if loads::be_one(&arguments) {
        return;
    }
    let secs = arguments.first().map_or(5, |secs| secs.parse().expect("a number of seconds"));
    println!(
        "{:<34} {:>5} {:>6} {:>7} {:>10} {:>7} {:>7} {:>8} {:>8}",
        "processes", "Hz", "seen", "% core", "µs a sweep", "slipped", "idle", "bytes", "B/sample"
    );
    if let Some(idle) = arguments.get(1) {
        let hz = arguments.get(2).map_or(64.0, |hz| hz.parse().expect("a rate"));
        return rows((idle.parse().expect("a number of processes"), 0), &[hz], secs);
    }
    for (idle, busy, rates) in
        [(300, 0, &[64.0, 1000.0][..]), (270, 30, &[64.0, 1000.0]), (1000, 0, &[64.0]), (3000, 0, &[64.0])]
    {
        rows((idle, busy), rates, secs);
    }
    switches();
}

/// Runs every source at these rates, with this many idle and busy processes.
fn rows((idle, busy): (usize, usize), rates: &[f64], secs: u64) {
    let works = [(idle, Work::Idle), (busy, Work::Duty { busy_us: 200, period_us: 20_000 })];
    let _load = Load::start(&works);
    println!("{idle} idle and {busy} busy");
    // A dedicated thread, as in the sensor: its scheduling requests must not apply to the processes of the
    // load.
    std::thread::scope(|scope| {
        let sweeping = scope.spawn(|| {
            wakeup_latency::reduce();
            rates.iter().for_each(|hz| rows_at(*hz, secs));
        });
        sweeping.join().expect("it does not panic");
    });
}

fn rows_at(hz: f64, secs: u64) {
    print_row("every file again", hz, &measure(&mut Rereading::default(), hz, secs));
    let library = sysinfo::System::new().expect("a system that it knows");
    print_row("the sysinfo crate", hz, &measure(&mut Sysinfo(library), hz, secs));
    for kind in [Kind::Procfs, Kind::BpfSweep, Kind::BpfChanged] {
        match choose(Path::new("/proc"), Some(kind)) {
            Ok(ChosenSource { mut source, .. }) => {
                print_row(kind.as_str(), hz, &measure(&mut EncodedSource::new(&mut *source), hz, secs));
                record(kind, hz, secs, &mut *source);
                pipe(kind, hz, secs, &mut *source);
            }
            Err(error) => println!("  {kind}: {error}"),
        }
    }
}

/// A sampler under test; returns the number of processes it saw and the bytes they took.
trait Sweeps {
    fn sweep(&mut self, number: u64) -> (usize, usize);
}

/// A monitor that opens, reads, parses and closes every file of every process at every sweep.
#[derive(Default)]
struct Rereading {
    figures: Vec<[u64; 8]>,
}

impl Sweeps for Rereading {
    fn sweep(&mut self, _: u64) -> (usize, usize) {
        self.figures.clear();
        let entries = fs::read_dir("/proc").expect("proc");
        for pid in entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
            self.figures.extend(figures(pid));
        }
        black_box(&self.figures);
        (self.figures.len(), 0)
    }
}

fn figures(pid: u32) -> Option<[u64; 8]> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let (stat, statm) = (read("stat")?, read("statm")?);
    let (io, status) = (read("io").unwrap_or_default(), read("status")?);
    let fields: Vec<&str> = stat[stat.rfind(')')? + 2..].split(' ').collect();
    let number = |field: usize| fields.get(field)?.parse().ok();
    let line = |text: &str, name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    };
    Some([
        number(11)?,
        number(12)?,
        number(17)?,
        number(7)?,
        statm.split(' ').nth(1)?.parse().ok()?,
        line(&io, "read_bytes:").unwrap_or(0),
        line(&io, "write_bytes:").unwrap_or(0),
        line(&status, "voluntary_ctxt_switches:")?,
    ])
}

/// The sysinfo library: CPU time, memory and storage of each process, without threads.
struct Sysinfo(sysinfo::System);

impl Sweeps for Sysinfo {
    fn sweep(&mut self, _: u64) -> (usize, usize) {
        let what =
            sysinfo::ProcessRefreshKind::nothing().with_cpu().with_memory().with_disk_usage().without_tasks();
        self.0.refresh_processes_specifics(sysinfo::ProcessesToUpdate::All, true, what);
        (self.0.processes().len(), 0)
    }
}

/// A source of the sensor with its table; each sweep is encoded for the wire.
struct EncodedSource<'a> {
    source: &'a mut dyn Source,
    view: View,
    encoder: Encoder,
    frame: Vec<u8>,
}

impl<'a> EncodedSource<'a> {
    fn new(source: &'a mut dyn Source) -> EncodedSource<'a> {
        EncodedSource { source, view: View::default(), encoder: Encoder::default(), frame: Vec::new() }
    }
}

impl Sweeps for EncodedSource<'_> {
    fn sweep(&mut self, number: u64) -> (usize, usize) {
        self.source.sweep(number, &mut self.view).expect("a sweep");
        let table = &self.view.table;
        self.frame.clear();
        if number % CHANGES_BETWEEN_WHOLES == 1 {
            self.encoder.whole(table.sweep(), table.rows(), &mut self.frame);
        } else {
            let changed = table.changed().iter().map(|place| *place as usize);
            self.encoder.changes(table.sweep(), table.rows(), changed, &mut self.frame);
        }
        (table.len(), self.frame.len())
    }
}

/// The same with the flight recorder's ring instead of the wire.
struct Recorded<'a> {
    source: &'a mut dyn Source,
    view: View,
    ring: Ring,
    lives_next: u64,
}

impl Sweeps for Recorded<'_> {
    fn sweep(&mut self, number: u64) -> (usize, usize) {
        self.source.sweep(number, &mut self.view).expect("a sweep");
        let before = self.ring.reach().bytes_total;
        let next = self.view.lives.next();
        let (ended, _) = self.view.lives.since(std::mem::replace(&mut self.lives_next, next));
        self.ring.take(&self.view.table, ended, || 0);
        let written = self.ring.reach().bytes_total - before;
        (self.view.table.len(), usize::try_from(written).expect("a sweep"))
    }
}

fn record(kind: Kind, hz: f64, secs: u64, source: &mut dyn Source) {
    let limits = Limits { reach_ns: 60_000_000_000, bytes_max: BYTES_MAX };
    let mut recorded = Recorded { source, view: View::default(), ring: Ring::new(limits), lives_next: 0 };
    let measured = measure(&mut recorded, hz, secs);
    print_row(&format!("{kind} and recorder"), hz, &measured);
    let reach = recorded.ring.reach();
    let held = Duration::from_nanos(reach.to_ns - reach.from_ns).as_secs_f64();
    #[allow(clippy::cast_precision_loss)]
    let (kib, a_minute) = (reach.bytes as f64 / 1024.0, reach.bytes_total as f64 / 1024.0 * 60.0 / held);
    println!("    {kib:.0} KiB hold {held:.1} s; a minute takes {a_minute:.0} KiB");
}

/// The whole pipeline: each sweep is encoded, recorded, and sent to a subscription for all processes, whose
/// samples another thread takes.
struct Piped<'a> {
    recorded: Recorded<'a>,
    encoder: Encoder,
    frame: Vec<u8>,
    channel: Box<dyn Tap>,
}

impl Sweeps for Piped<'_> {
    fn sweep(&mut self, number: u64) -> (usize, usize) {
        let (seen, _) = self.recorded.sweep(number);
        let (table, frame) = (&self.recorded.view.table, &mut self.frame);
        frame.clear();
        let changed = table.changed().iter().map(|place| *place as usize);
        self.encoder.changes(table.sweep(), table.rows(), changed, frame);
        self.channel.swept(&self.recorded.view, running());
        (seen, self.frame.len())
    }
}

fn pipe(kind: Kind, hz: f64, secs: u64, source: &mut dyn Source) {
    let limits = Limits { reach_ns: 60_000_000_000, bytes_max: BYTES_MAX };
    for changes in [false, true] {
        let hub = Hub::default();
        let rate = hz.try_into().expect("allowed");
        // The cost is measured, not limited.
        let budget = Budget { cpu_ms: CPU_MAX_MS, bytes: wire::channel::BYTES_MAX, ..Budget::default() };
        let wanted = ChannelRequest { rate, changes, budget, ..ChannelRequest::default() };
        let id = hub.subscribe(wanted).expect("there is room");
        let taking = {
            let hub = hub.clone();
            std::thread::spawn(move || take_all(&hub, id))
        };
        let recorded = Recorded { source, view: View::default(), ring: Ring::new(limits), lives_next: 0 };
        let channel = hub.tap();
        let (encoder, frame, started) = (Encoder::default(), Vec::new(), Instant::now());
        let mut piped = Piped { recorded, encoder, frame, channel };
        let measured = measure(&mut piped, hz, secs);
        let text = if changes { "changes" } else { "all" };
        print_row(&format!("{kind}, whole pipeline, {text}"), hz, &measured);
        let stands = hub.unsubscribe(id).expect("it is there");
        let (taken, took) = taking.join().expect("it does not panic");
        #[allow(clippy::cast_precision_loss)]
        let (each, share) = (
            stands.bytes_total / stands.counts.due_total as f64,
            took.as_secs_f64() / started.elapsed().as_secs_f64(),
        );
        println!(
            "    the one that takes: {taken} samples, {:.2} % of a core; {each:.0} bytes a sample waited, {} missed",
            share * 100.0,
            stands.missed_total
        );
    }
}

/// Takes until the subscription is ended; returns the number of samples, and the CPU time used for it.
fn take_all(hub: &Hub, id: sensor::channel::hub::Id) -> (usize, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut taken = 0;
    while let Ok(answer) = runtime.block_on(hub.take(id, 1000, Duration::from_secs(1))) {
        taken += black_box(answer.entries).len();
    }
    (taken, thread_time())
}

/// The clock of subscriptions: since boot, without suspension.
fn running() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

struct Measured {
    seen: usize,
    core: f64,
    median: Duration,
    slipped: u64,
    slipped_idle: u64,
    bytes: usize,
    samples: usize,
}

fn measure(sweeps: &mut dyn Sweeps, hz: f64, secs: u64) -> Measured {
    let rate = Rate::of_processes(hz).expect("allowed");
    // Warm-up: the first sweeps open files and fill caches.
    for number in 1..4 {
        sweeps.sweep(number);
    }
    let started = Instant::now();
    let until = started + Duration::from_secs(secs);
    let ticker = Ticker::new(rate);
    let mut follower = ticker.follow();
    let idle = std::thread::spawn(move || idle_slips(rate, until));
    let (mut times, mut bytes, mut samples, mut seen) = (Vec::new(), 0, 0, 0);
    let used = thread_time();
    while Instant::now() < until {
        let next = follower.next(None);
        assert!(matches!(next, Next::Sweep(_)), "{next:?}");
        let sweep = Instant::now();
        let (processes, len) = sweeps.sweep(4 + times.len() as u64);
        times.push(sweep.elapsed());
        (seen, bytes, samples) = (processes, bytes + len, samples + processes);
    }
    let core = (thread_time() - used).as_secs_f64() / started.elapsed().as_secs_f64();
    times.sort_unstable();
    let (median, slipped) = (times[times.len() / 2], follower.slipped_total());
    let slipped_idle = idle.join().expect("it does not panic");
    Measured { seen, core, median, slipped, slipped_idle, bytes, samples }
}

/// Counts the slipped wakeups of a thread that does nothing when it is woken.
fn idle_slips(rate: Rate, until: Instant) -> u64 {
    wakeup_latency::reduce();
    let ticker = Ticker::new(rate);
    let mut follower = ticker.follow();
    while Instant::now() < until {
        black_box(follower.next(None));
    }
    follower.slipped_total()
}

#[allow(clippy::cast_precision_loss)]
fn print_row(name: &str, hz: f64, measured: &Measured) {
    let Measured { seen, core, median, slipped, slipped_idle, bytes, samples } = measured;
    println!(
        "  {name:<32} {hz:>5} {seen:>6} {:>7.2} {:>10.1} {slipped:>7} {slipped_idle:>7} {bytes:>8} {:>8.3}",
        core * 100.0,
        median.as_secs_f64() * 1e6,
        *bytes as f64 / *samples as f64
    );
}

/// Context switches of two threads that wake each other, without and with the sensor listening: medians of
/// alternating rounds.
fn switches() {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        rates[0].push(switches_a_second());
        let listening = choose(Path::new("/proc"), Some(Kind::BpfChanged));
        if let Err(error) = &listening {
            return println!("switches: {error}");
        }
        rates[1].push(switches_a_second());
    }
    let [alone, heard] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let more_ns = (1e9 / heard - 1e9 / alone).max(0.0);
    println!(
        "context switches a second: {alone:.0} alone, {heard:.0} listened to: {more_ns:.0} ns more each"
    );
}

fn switches_a_second() -> f64 {
    const TURNS: u32 = 100_000;
    let (mut here, mut there) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    let started = Instant::now();
    let mut byte = [0];
    for _ in 0..TURNS {
        here.write_all(&byte).expect("the other lives");
        here.read_exact(&mut byte).expect("the other lives");
    }
    let rate = f64::from(2 * TURNS) / started.elapsed().as_secs_f64();
    drop(here);
    other.join().expect("it ends with the socket");
    rate
}
