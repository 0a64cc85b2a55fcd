//! Processes to be sampled: idle ones, ones with a known CPU share, and ones whose threads come and go. They
//! run this program again, and end when their standard input ends.
//!
//! Not here: the measurements (the benchmarks).
#![allow(dead_code)] // Each benchmark includes this module and uses a part of it.

use std::hint::black_box;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Behavior of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// It waits.
    Idle,
    /// It works for `busy_us` of each `period_us`; all the time if both are equal.
    Duty {
        /// Working time per period, in µs.
        busy_us: u64,
        /// Length of a period, in µs.
        period_us: u64,
    },
    /// It starts a thread that works for a moment, waits for it, and repeats.
    Threads,
}

/// Processes, killed on drop.
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts the given number of each, and lets them settle.
    pub(crate) fn start(works: &[(usize, Work)]) -> Load {
        let children = works.iter().flat_map(|(many, work)| (0..*many).map(|_| one(*work)));
        let load = Load(children.collect());
        std::thread::sleep(Duration::from_secs(1));
        load
    }

    /// Their process ids, in the order in which they were started.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
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

fn one(work: Work) -> Child {
    let arguments = match work {
        Work::Idle => vec!["load".to_owned()],
        Work::Duty { busy_us, period_us } => vec!["load".into(), busy_us.to_string(), period_us.to_string()],
        Work::Threads => vec!["load".to_owned(), "threads".to_owned()],
    };
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a process")
}

/// Runs as such a process until it is killed or its input ends, if these are its arguments. Returns whether
/// they were.
pub(crate) fn be_one(arguments: &[String]) -> bool {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["load"] => {
            // Waits for the end of the input.
            let _ = std::io::stdin().read(&mut [0]);
        }
        ["load", "threads"] => loop {
            std::thread::spawn(|| work_for(Duration::from_millis(2))).join().expect("it only works");
            std::thread::sleep(Duration::from_millis(50));
        },
        ["load", busy, period] => {
            let micros = |text: &str| Duration::from_micros(text.parse().expect("microseconds"));
            be_on_duty(micros(busy), micros(period));
        }
        _ => return false,
    }
    true
}

fn be_on_duty(busy: Duration, period: Duration) {
    loop {
        let started = Instant::now();
        work_for(busy);
        std::thread::sleep(period.saturating_sub(started.elapsed()));
    }
}

/// Uses this much CPU time.
fn work_for(busy: Duration) {
    let started = thread_time();
    while thread_time() - started < busy {
        (0..200).for_each(|step| {
            black_box(step);
        });
    }
}

/// CPU time of this thread, in the program and in the kernel.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
