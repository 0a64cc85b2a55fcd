//! What sampling every process costs: each way of reading at several rates and numbers of processes, beside reading
//! every file of every process anew and beside a library, and what a sweep takes on the wire.
//!
//! `cargo bench -p sensor --bench processes [-- SECONDS [IDLE]]` starts processes of its own (300 idle ones, 270 idle and 30 busy
//! ones, 1,000, 3,000), sweeps for SECONDS (5 by default) and prints the CPU time of the sweeping thread, the median of a
//! sweep, sweeps that slipped, bytes of a process in a sweep, and what listening to the scheduler costs the machine.
//! Processes that run on the machine anyway are sampled too and counted. With IDLE there are only so many idle ones, swept
//! 64 times a second.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A bench: it has a clock, starts processes and prints.

mod loads;

use loads::{Load, Work, thread_time};
use sensor::process::source::{Chosen, Kind, Source, View, choose};
use sensor::recorder::ring::{BYTES_MAX, Limits, Ring};
use sensor::sample::schedule::{Rate, Schedule};
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::process::delta::Encoder;

/// Sweeps of the others between two whole ones on the wire.
const CHANGES_BETWEEN_WHOLES: u64 = 640;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if loads::be_one(&arguments) {
        return;
    }
    let secs = arguments.first().map_or(5, |secs| secs.parse().expect("a number of seconds"));
    println!(
        "{:<34} {:>5} {:>6} {:>7} {:>10} {:>9} {:>8} {:>8}",
        "processes", "Hz", "seen", "% core", "µs a sweep", "slipped", "bytes", "B/sample"
    );
    if let Some(idle) = arguments.get(1) {
        return rows((idle.parse().expect("a number of processes"), 0), &[64.0], secs);
    }
    for (idle, busy, rates) in
        [(300, 0, &[64.0, 1000.0][..]), (270, 30, &[64.0, 1000.0]), (1000, 0, &[64.0]), (3000, 0, &[64.0])]
    {
        rows((idle, busy), rates, secs);
    }
    switches();
}

/// Every way, at these rates, with so many idle and busy processes.
fn rows((idle, busy): (usize, usize), rates: &[f64], secs: u64) {
    let works = [(idle, Work::Idle), (busy, Work::Duty { busy_us: 200, period_us: 20_000 })];
    let _load = Load::start(&works);
    println!("{idle} idle and {busy} busy");
    for hz in rates {
        print_row("every file anew", *hz, &measure(&mut Anew::default(), *hz, secs));
        print_row(
            "the sysinfo crate",
            *hz,
            &measure(&mut Sysinfo(sysinfo::System::new().expect("a system that it knows")), *hz, secs),
        );
        for kind in [Kind::Procfs, Kind::BpfSweep, Kind::BpfChanged] {
            match choose(Path::new("/proc"), Some(kind)) {
                Ok(Chosen { mut source, .. }) => {
                    print_row(kind.as_str(), *hz, &measure(&mut Kept::new(&mut *source), *hz, secs));
                    record(kind, *hz, secs, &mut *source);
                }
                Err(error) => println!("  {kind}: {error}"),
            }
        }
    }
}

/// Something that sweeps, and tells how many processes it saw and how many bytes they took.
trait Sweeps {
    fn sweep(&mut self, number: u64) -> (usize, usize);
}

/// The way of a monitor that opens, reads, takes apart and closes every file of every process at every sweep.
#[derive(Default)]
struct Anew {
    figures: Vec<[u64; 8]>,
}

impl Sweeps for Anew {
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

/// A library for programs that show processes: CPU time, memory and storage of each, without its threads.
struct Sysinfo(sysinfo::System);

impl Sweeps for Sysinfo {
    fn sweep(&mut self, _: u64) -> (usize, usize) {
        let what =
            sysinfo::ProcessRefreshKind::nothing().with_cpu().with_memory().with_disk_usage().without_tasks();
        self.0.refresh_processes_specifics(sysinfo::ProcessesToUpdate::All, true, what);
        (self.0.processes().len(), 0)
    }
}

/// A way of the sensor's, with its table, and each sweep written as it travels.
struct Kept<'a> {
    source: &'a mut dyn Source,
    view: View,
    encoder: Encoder,
    frame: Vec<u8>,
}

impl<'a> Kept<'a> {
    fn new(source: &'a mut dyn Source) -> Kept<'a> {
        Kept { source, view: View::default(), encoder: Encoder::default(), frame: Vec::new() }
    }
}

impl Sweeps for Kept<'_> {
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

struct Measured {
    seen: usize,
    core: f64,
    median: Duration,
    slipped: u64,
    bytes: usize,
    samples: usize,
}

fn measure(sweeps: &mut dyn Sweeps, hz: f64, secs: u64) -> Measured {
    let rate = Rate::of_processes(hz).expect("allowed");
    // The first ones open files and fill caches.
    for number in 1..4 {
        sweeps.sweep(number);
    }
    let begun = Instant::now();
    let mut schedule = Schedule::new(rate, Duration::ZERO);
    let (mut times, mut bytes, mut samples, mut seen) = (Vec::new(), 0, 0, 0);
    let used = thread_time();
    while begun.elapsed() < Duration::from_secs(secs) {
        std::thread::sleep(schedule.wait(begun.elapsed()));
        schedule.begin(begun.elapsed());
        let sweep = Instant::now();
        let (processes, len) = sweeps.sweep(4 + times.len() as u64);
        times.push(sweep.elapsed());
        (seen, bytes, samples) = (processes, bytes + len, samples + processes);
    }
    let core = (thread_time() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    times.sort_unstable();
    Measured { seen, core, median: times[times.len() / 2], slipped: schedule.slipped_total(), bytes, samples }
}

#[allow(clippy::cast_precision_loss)]
fn print_row(name: &str, hz: f64, measured: &Measured) {
    let Measured { seen, core, median, slipped, bytes, samples } = measured;
    println!(
        "  {name:<32} {hz:>5} {seen:>6} {:>7.2} {:>10.1} {slipped:>9} {bytes:>8} {:>8.3}",
        core * 100.0,
        median.as_secs_f64() * 1e6,
        *bytes as f64 / *samples as f64
    );
}

/// Two threads that wake each other, with nobody listening and with the sensor listening: medians of rounds by turns.
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
    let begun = Instant::now();
    let mut byte = [0];
    for _ in 0..TURNS {
        here.write_all(&byte).expect("the other lives");
        here.read_exact(&mut byte).expect("the other lives");
    }
    let rate = f64::from(2 * TURNS) / begun.elapsed().as_secs_f64();
    drop(here);
    other.join().expect("it ends with the socket");
    rate
}
