//! Benchmark of accuracy: sampled CPU usage of processes with a known load, sweep by sweep, beside the ticks
//! of `/proc`; and the CPU time of a thousand processes over ten seconds beside that of `/proc`.
//!
//! `cargo bench -p sensor --bench agreement [-- SECONDS]` starts processes of its own and samples them for
//! SECONDS (default: 10). The reference is the process's own CPU clock (clock_getcpuclockid(3)), read at each
//! sweep. The error is the root mean square of the differences in usage over all intervals, in points
//! (hundredths) of a core.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark: it has a clock, starts processes and prints.
#![allow(clippy::cast_precision_loss)] // Numbers to read, not to compute with.

mod loads;

use loads::{Load, Work};
use nix::time::ClockId;
use nix::unistd::Pid;
use sensor::process::source::{ChosenSource, Kind, Source, View, choose};
use sensor::sample::schedule::{Rate, Schedule};
use std::path::Path;
use std::time::{Duration, Instant};

/// Nanoseconds of one tick of `/proc`.
const TICK_NS: f64 = 1e7;
const KINDS: [Kind; 3] = [Kind::Procfs, Kind::BpfSweep, Kind::BpfChanged];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if loads::be_one(&arguments) {
        return;
    }
    let secs = arguments.first().map_or(10, |secs| secs.parse().expect("a number of seconds"));
    let duties = [
        ("always", Work::Duty { busy_us: 1_000_000, period_us: 1_000_000 }),
        ("3 of 10 ms", Work::Duty { busy_us: 3_000, period_us: 10_000 }),
        ("0.5 of 5 ms", Work::Duty { busy_us: 500, period_us: 5_000 }),
        ("0.2 of 20 ms", Work::Duty { busy_us: 200, period_us: 20_000 }),
    ];
    println!(
        "root mean square error of CPU use, points of a core; and the mean use that was found, of the true one"
    );
    println!(
        "{:<14} {:>5} {:<12} {:>8} {:>8} {:>12}",
        "work", "Hz", "source", "error", "ticks", "mean, true"
    );
    for (name, work) in duties {
        let load = Load::start(&[(1, work)]);
        for hz in [64.0, 1000.0] {
            for kind in KINDS {
                duty(name, load.pids()[0], kind, hz, Duration::from_secs(secs));
            }
        }
    }
    println!();
    thousand(Duration::from_secs(secs));
}

/// Compares the usage of a process, sweep by sweep, as sampled and as measured by its own clock.
fn duty(name: &str, pid: u32, kind: Kind, hz: f64, span: Duration) {
    let Some(mut source) = opened(kind) else { return };
    let rate = Rate::of_processes(hz).expect("allowed");
    let mut view = View::default();
    source.sweep(1, &mut view).expect("a sweep");
    let started = Instant::now();
    let mut schedule = Schedule::new(rate, Duration::ZERO);
    let (mut seen, mut true_, mut ticks) = (Used::default(), Used::default(), Used::default());
    let (mut errors, mut ticks_errors) = (Vec::new(), Vec::new());
    for number in 2.. {
        if started.elapsed() > span {
            break;
        }
        std::thread::sleep(schedule.wait(started.elapsed()));
        schedule.begin(started.elapsed());
        let at_ns = started.elapsed().as_nanos() as f64;
        let (clock_ns, reported_ticks) = (cpu_clock_ns(pid), cpu_ticks(pid));
        source.sweep(number, &mut view).expect("a sweep");
        let process = view.table.get(pid).expect("it works on");
        let use_seen = seen.next(view.table.sweep().begin_ns as f64, process.usage.cpu_ns as f64);
        let use_true = true_.next(at_ns, clock_ns);
        let use_ticks = ticks.next(at_ns, reported_ticks * TICK_NS);
        if let (Some(seen), Some(was), Some(ticks)) = (use_seen, use_true, use_ticks) {
            errors.push((seen - was) * 100.0);
            ticks_errors.push((ticks - was) * 100.0);
        }
    }
    println!(
        "{name:<14} {hz:>5} {:<12} {:>8.2} {:>8.2} {:>5.1}, {:>5.1}",
        kind.as_str(),
        root_mean_square(&errors),
        root_mean_square(&ticks_errors),
        100.0 * seen.mean(),
        100.0 * true_.mean()
    );
}

/// A growing counter, with the time of its first and last reading.
#[derive(Default)]
struct Used {
    first: Option<(f64, f64)>,
    last: Option<(f64, f64)>,
}

impl Used {
    /// Returns the usage since the last reading; `None` at the first.
    fn next(&mut self, at_ns: f64, used_ns: f64) -> Option<f64> {
        self.first.get_or_insert((at_ns, used_ns));
        let (before_ns, had_ns) = self.last.replace((at_ns, used_ns))?;
        (at_ns > before_ns).then(|| (used_ns - had_ns) / (at_ns - before_ns))
    }

    /// Returns the usage between the first reading and the last.
    fn mean(&self) -> f64 {
        let (first, last) = (self.first.expect("a reading"), self.last.expect("a reading"));
        (last.1 - first.1) / (last.0 - first.0)
    }
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// Compares the CPU time of a thousand processes over the span, by each source and by `/proc`. Some of them
/// work, and some have threads that end. `/proc` rounds user and system time down to whole ticks at each
/// reading, so it is up to two ticks off by itself.
fn thousand(span: Duration) {
    let works =
        [(800, Work::Idle), (150, Work::Duty { busy_us: 200, period_us: 50_000 }), (50, Work::Threads)];
    let load = Load::start(&works);
    println!("CPU time of 1,000 processes over {span:?}, 150 of them at work and 50 with threads that end");
    println!(
        "{:<12} {:>9} {:>14} {:>14} {:>12}",
        "source", "processes", "within 1 tick", "within 2 ticks", "most, ticks"
    );
    for kind in KINDS {
        let Some(mut source) = opened(kind) else { continue };
        let mut view = View::default();
        let mut reading = |number: u64| {
            source.sweep(number, &mut view).expect("a sweep");
            load.pids()
                .into_iter()
                .map(|pid| {
                    let seen = view.table.get(pid).expect("it is there").usage.cpu_ns as f64 / TICK_NS;
                    (seen, cpu_ticks(pid))
                })
                .collect::<Vec<_>>()
        };
        let (_, first) = (reading(1), reading(2));
        std::thread::sleep(span);
        let last = reading(3);
        let off: Vec<f64> =
            first.iter().zip(&last).map(|(was, is)| ((is.0 - was.0) - (is.1 - was.1)).abs()).collect();
        let within =
            |ticks: f64| 100.0 * off.iter().filter(|off| **off <= ticks).count() as f64 / off.len() as f64;
        println!(
            "{:<12} {:>9} {:>13.1}% {:>13.1}% {:>12.2}",
            kind.as_str(),
            off.len(),
            within(1.0),
            within(2.0),
            off.iter().copied().fold(0.0, f64::max)
        );
    }
}

fn opened(kind: Kind) -> Option<Box<dyn Source>> {
    match choose(Path::new("/proc"), Some(kind)) {
        Ok(ChosenSource { source, .. }) => Some(source),
        Err(error) => {
            println!("  {kind}: {error}");
            None
        }
    }
}

fn cpu_clock_ns(pid: u32) -> f64 {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    let clock = ClockId::pid_cpu_clock_id(pid).expect("it lives");
    Duration::from(clock.now().expect("it lives")).as_nanos() as f64
}

/// User and system time in `/proc`, in ticks.
fn cpu_ticks(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split(' ').collect();
    [11, 12].iter().map(|field| fields[*field].parse::<f64>().expect("ticks")).sum()
}
