//! Synthetic processes: for tests and measurements of the flock.
//!
//! Pure. Rule: the same parameters give the same flock.

use crate::flock::Flock;
use crate::flock::measure::{Capacity, Usage};
use crate::flock::sweep::{HostName, Reported, Sweep};
use overlay::dice::Dice;
use std::time::Duration;
use wire::time::Time;

/// Capacity of a synthetic host.
const HOST: Capacity = Capacity { cpus: 32.0, memory_bytes: 128e9 };

/// A kind of program: its percentage of all processes, the cores it uses, the share of user mode, its memory
/// in GB, I/O bytes per second, the share of reads, and page faults per second.
struct Kind {
    name: &'static str,
    of_100: u64,
    cores: f64,
    user: f64,
    memory_gb: f64,
    io: f64,
    reads: f64,
    faults: f64,
}

const fn kind(name: &'static str, of_100: u64, cores: f64, user: f64, memory_gb: f64) -> Kind {
    Kind { name, of_100, cores, user, memory_gb, io: 0.0, reads: 0.5, faults: 0.0 }
}

const KINDS: &[Kind] = &[
    Kind { faults: 900.0, ..kind("dgesv", 16, 3.4, 0.94, 5.5) },
    Kind { faults: 300.0, ..kind("qcd-48", 12, 7.5, 0.86, 9.0) },
    Kind { io: 24e6, reads: 0.9, faults: 2_500.0, ..kind("fold", 10, 1.4, 0.72, 2.6) },
    Kind { io: 90e6, reads: 0.12, faults: 400.0, ..kind("render", 8, 2.2, 0.55, 1.1) },
    Kind { io: 160e6, reads: 0.5, faults: 40.0, ..kind("rsync", 4, 0.5, 0.22, 0.05) },
    Kind { io: 12e6, reads: 0.35, faults: 120.0, ..kind("postgres", 8, 0.35, 0.61, 3.9) },
    Kind { io: 2e6, reads: 0.7, faults: 9_000.0, ..kind("cc1plus", 6, 0.95, 0.83, 0.6) },
    Kind { faults: 60.0, ..kind("python3", 8, 0.12, 0.78, 0.4) },
    kind("slurmd", 2, 0.02, 0.45, 0.02),
    kind("sshd", 6, 0.0, 0.5, 0.01),
    kind("bash", 8, 0.0, 0.5, 0.005),
    kind("kworker/0:1", 10, 0.004, 0.0, 0.0),
    kind("systemd", 2, 0.0, 0.5, 0.012),
];

/// State of one synthetic process.
struct Life {
    kind: &'static Kind,
    pid: u32,
    /// Activity, from 0 to 1.
    much: f64,
    period_secs: f64,
    phase: f64,
    usage: Usage,
}

/// A flock of hosts with `processes` each, with `sweeps` sweeps at intervals of `step`, starting at `begin`.
#[must_use]
pub fn flock(hosts: &[HostName], processes: u32, begin: Time, sweeps: u32, step: Duration) -> Flock {
    let mut flock = Flock::default();
    for (number, host) in (0..).zip(hosts) {
        flock.host(host, HOST);
        let mut lives: Vec<Life> = (0..processes).map(|at| life(number, at)).collect();
        for sweep in 0..sweeps {
            let time = begin.plus(step * sweep);
            let reported: Vec<Reported> =
                lives.iter_mut().filter_map(|life| life.live(sweep, step)).collect();
            let sweep = Sweep {
                host: host.clone(),
                time,
                is_whole: sweep == 0,
                processes: reported,
                gone: Vec::new(),
                left_out: 0,
            };
            flock.take(&sweep, time);
        }
    }
    flock
}

fn life(host: u64, at: u32) -> Life {
    let numbers =
        |salt: u64| share(host.wrapping_mul(7_919).wrapping_add(u64::from(at)).wrapping_add(salt << 40));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let mut pick = (numbers(1) * 100.0) as u64;
    let mut kind = &KINDS[0];
    for one in KINDS {
        kind = one;
        match pick.checked_sub(one.of_100) {
            Some(left) => pick = left,
            None => break,
        }
    }
    let user_secs = 40.0 * kind.user;
    let usage = Usage { cpu_secs: 40.0, user_secs, system_secs: 40.0 - user_secs, ..Usage::default() };
    Life {
        kind,
        pid: 1_000 + at * 7,
        much: numbers(2),
        period_secs: 6.0 + 30.0 * numbers(3),
        phase: numbers(4) * std::f64::consts::TAU,
        usage,
    }
}

impl Life {
    /// The next report of the process; `None` for an idle one after the first sweep.
    fn live(&mut self, sweep: u32, step: Duration) -> Option<Reported> {
        let (kind, secs) = (self.kind, step.as_secs_f64());
        let turn = self.phase + f64::from(sweep) * secs / self.period_secs * std::f64::consts::TAU;
        // Slow waves, and a faster one that makes the processes of a program differ.
        let wave = (0.72 + 0.2 * turn.sin() + 0.08 * (3.7 * turn).sin()) * (0.55 + 0.45 * self.much);
        let user = (kind.user + 0.07 * (turn * 0.5).cos()).clamp(0.0, 1.0);
        let cores = kind.cores * wave;
        self.usage.cpu_secs += cores * secs;
        self.usage.user_secs += cores * user * secs;
        self.usage.system_secs += cores * (1.0 - user) * secs;
        self.usage.minor_faults += kind.faults * wave * secs;
        self.usage.major_faults += kind.faults * 0.02 * kind.reads * wave * secs;
        let io = kind.io * wave * secs;
        let reads = (kind.reads + 0.1 * turn.cos()).clamp(0.0, 1.0);
        self.usage.read_bytes += io * reads;
        self.usage.written_bytes += io * (1.0 - reads);
        self.usage.rss_bytes = kind.memory_gb * 1e9 * (0.6 + 0.4 * self.much) * (0.94 + 0.06 * turn.sin());
        (sweep == 0 || kind.cores > 0.0).then(|| Reported {
            pid: self.pid,
            start_ns: 1,
            parent: 1,
            uid: 1_000,
            name: kind.name.to_owned(),
            threads: if kind.cores > 1.0 { 8 } else { 1 },
            usage: self.usage,
        })
    }
}

/// A pseudo-random number from 0 to 1, derived from a seed.
#[allow(clippy::cast_precision_loss)]
fn share(seed: u64) -> f64 {
    (Dice::new(seed).draw() >> 44) as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_give_the_same_flock_and_it_moves() {
        let hosts = [HostName::new("a", "wn01"), HostName::new("a", "wn02")];
        let begin = Time::from_secs_f64(1.7e9);
        let made = || flock(&hosts, 30, begin, 20, Duration::from_secs(1));
        let seen = |flock: &Flock, secs: u64| {
            let mut seen = Vec::new();
            flock.each(begin.plus(Duration::from_secs(secs)), |member, _, spots| seen.push((member, *spots)));
            seen
        };
        let one = made();
        assert_eq!((one.processes(), one.hosts().count()), (60, 2));
        assert_eq!(seen(&one, 9), seen(&made(), 9));
        assert_ne!(seen(&one, 9), seen(&one, 15));
    }
}
