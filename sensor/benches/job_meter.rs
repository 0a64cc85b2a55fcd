//! Benchmark of the meter of jobs: what one sweep costs, with all processes of the jobs running at each sweep.
//!
//! `cargo bench -p sensor --bench job_meter` prints for several loads the median time of a sweep in the meter, what is added
//! to reading the processes, and the share of a core that this is at 1 and at 64 sweeps a second. Every process of a job has
//! used CPU time since the last sweep, and one in a hundred ends and is followed by another.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // A benchmark: it has a clock and prints.

use sensor::job_series::piece::{self, Piece, Point, Whose};
use sensor::job_usage::meter::{Meter, Now};
use sensor::process::lives::Freed;
use sensor::process::source::View;
use sensor::process::table::Coverage;
use sensor::serving::job_table::{Evidence, ServedJob};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::process::{Life, Process, ProcessKey, Usage};
use wire::time::Time;

const SWEEPS: u64 = 2_000;
/// Time between two sweeps, in nanoseconds.
const EVERY_NS: u64 = 15_625_000;

/// Jobs of some processes each, beside processes that serve none.
struct Host {
    view: View,
    meter: Meter,
    living: Vec<(ProcessKey, usize)>,
    next_pid: u32,
    now_ns: u64,
}

fn main() {
    println!(
        "{:<34} {:>12} {:>10} {:>10} {:>14} {:>12}",
        "load", "µs a sweep", "1 Hz, %", "64 Hz, %", "µs a second,", "bytes a job"
    );
    println!("{:<34} {:>12} {:>10} {:>10} {:>14} {:>12}", "", "", "", "", "of the series", "and hour");
    for (jobs, each, others) in [(1, 1, 300), (1, 100, 300), (64, 4, 300), (1_000, 10, 1_000)] {
        let mut host = Host::new(jobs, each);
        let micros = median(&mut host, others);
        let percent = micros / 1e6 * 100.0;
        let load = format!("{jobs} jobs of {each} processes");
        let (points, bytes) = host.series(others);
        println!(
            "{load:<34} {micros:>12.1} {percent:>10.4} {:>10.3} {points:>14.1} {bytes:>12}",
            percent * 64.0
        );
    }
}

fn median(host: &mut Host, others: u32) -> f64 {
    let mut took: Vec<Duration> = (0..SWEEPS).map(|sweep| host.sweep(sweep, others)).collect();
    // The first have the news of all processes.
    took.drain(..10);
    took.sort_unstable();
    took[took.len() / 2].as_secs_f64() * 1e6
}

impl Host {
    fn new(jobs: usize, each: usize) -> Host {
        let mut host = Host {
            view: View::default(),
            meter: Meter::default(),
            living: Vec::new(),
            next_pid: 100_000,
            now_ns: 1_000_000_000_000,
        };
        for job in 0..jobs {
            (0..each).for_each(|_| host.start(job));
        }
        host
    }

    fn start(&mut self, job: usize) {
        self.next_pid += 1;
        self.living.push((ProcessKey { pid: self.next_pid, start_ns: self.now_ns }, job));
    }

    /// Makes a sweep; returns how long the meter took.
    fn sweep(&mut self, sweep: u64, others: u32) -> Duration {
        self.now_ns += EVERY_NS;
        let is_first = sweep == 0;
        let mut news = Vec::new();
        for place in 0..self.living.len() {
            let (key, job) = self.living[place];
            if is_first {
                news.push((key, served(job)));
            } else if (place as u64 + sweep).is_multiple_of(100) {
                self.end(key, sweep);
                self.start(job);
                self.living.swap_remove(place);
                news.push((self.living[place].0, served(job)));
            }
        }
        let table = &mut self.view.table;
        table.begin(sweep + 1, self.now_ns, Coverage::All);
        for (key, _) in &self.living {
            table.set(Process {
                key: *key,
                rss_kib: 4096 + sweep,
                usage: usage(sweep),
                ..Process::default()
            });
        }
        for pid in 1..=others {
            table.set(Process {
                key: ProcessKey { pid, start_ns: 1 },
                usage: usage(sweep),
                ..Process::default()
            });
        }
        table.end(1);
        let time = Time::from_micros(i64::try_from(self.now_ns / 1000).expect("small"));
        let now = Now { boot_ns: self.now_ns, time };
        let began = Instant::now();
        let reports = self.meter.sweep(&self.view, news, now);
        let took = began.elapsed();
        assert!(reports.iter().all(|report| !report.is_over), "every job goes on");
        took
    }

    /// Makes the points of five minutes; returns the median time of those of a second, in microseconds, and how many bytes an
    /// hour of a job takes when they are packed.
    fn series(&mut self, others: u32) -> (f64, usize) {
        let (mut took, mut bytes) = (Vec::new(), 0);
        for record in 0..10 {
            let mut open: BTreeMap<Arc<Whose>, Vec<Point>> = BTreeMap::new();
            for second in 0..30 {
                self.now_ns += 1_000_000_000 - EVERY_NS;
                self.sweep(SWEEPS + record * 30 + second, others);
                let time = Time::from_micros(i64::try_from(self.now_ns / 1000).expect("small"));
                let began = Instant::now();
                let points = self.meter.points(Now { boot_ns: self.now_ns, time });
                took.push(began.elapsed());
                points.into_iter().for_each(|(whose, point)| open.entry(whose).or_default().push(point));
            }
            let pieces: Vec<Piece<'_>> =
                open.iter().map(|(whose, points)| Piece::pack(whose, points)).collect();
            bytes += piece::record(&pieces).len() / pieces.len();
        }
        took.sort_unstable();
        (took[took.len() / 2].as_secs_f64() * 1e6, bytes * 12)
    }

    fn end(&mut self, key: ProcessKey, sweep: u64) {
        let life = Life {
            key,
            parent: 1,
            uid: 1000,
            cgroup: None,
            name: "work".into(),
            command: "".into(),
            end_ns: self.now_ns,
            code: 0,
            usage: Some(usage(sweep)),
        };
        self.view.lives.exit(life);
        self.view.lives.freed(Freed { key, usage: usage(sweep), peak_rss_kib: 4096 });
    }
}

fn usage(sweep: u64) -> Usage {
    Usage { cpu_ns: sweep * 1_000_000, minor_faults: sweep, ..Usage::default() }
}

fn served(job: usize) -> ServedJob {
    ServedJob {
        jobs: vec![format!("slurm:{job}").into()],
        by: Evidence::Environment,
        user: Some(u32::try_from(1000 + job / 100).expect("small")),
        groups: Arc::default(),
        end_ns: None,
    }
}
