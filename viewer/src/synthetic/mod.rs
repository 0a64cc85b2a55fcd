//! Synthetic grids: for tests, measurements and the pictures of the documents.
//!
//! Pure. Rule: the same parameters give the same grid. Not here: windows on them (`window`).

pub mod figures;
pub mod flock;
pub mod jobs;
pub mod window;

use crate::grid::Grid;
use crate::grid::builder::Builder;
use crate::grid::place::{HostState, Report};
use overlay::dice::Dice;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Start of the synthetic hour: 2026-03-28T12:00:00Z.
const BEGIN_MICROS: i64 = 1_774_699_200_000_000;
/// Its length, in seconds.
const HOUR_SECS: u64 = 3_600;
/// Names of domains; further domains are numbered.
const DOMAINS: &[&str] = &[
    "UT-ICL", "K-JIST", "Tromsø", "Bergen", "Alpha", "Padova", "Lund", "Bologna", "Krakow", "Zürich",
    "Oxford", "Lyon", "Kyoto", "Madison", "Uppsala", "Delft", "Graz", "Turku", "Oulu", "Aarhus",
];
const USERS: &[&str] = &[
    "mrossi", "leepro", "ada", "jdoe", "svensson", "kimura", "nowak", "weber", "aliu", "bianchi", "olsen",
    "moreau",
];
const NAMES: &[&str] = &["relax", "inttest", "qcd-48", "fold", "render", "mesh", "dgesv", "sweep"];

/// Pseudo-random numbers from a seed.
struct Numbers(Dice);

impl Numbers {
    /// One number is drawn whatever `end` is, so that the following ones stay the same.
    fn below(&mut self, end: u64) -> u64 {
        self.0.draw() % end.max(1)
    }

    #[allow(clippy::cast_precision_loss)]
    fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}

/// The time this many seconds after the start of the synthetic hour.
#[must_use]
#[allow(clippy::cast_possible_truncation)]
pub fn time_f(secs: f64) -> Time {
    Time::from_micros(BEGIN_MICROS.saturating_add((secs * 1e6) as i64))
}

/// The latest time that these grids accept.
#[must_use]
pub fn latest() -> Time {
    time_f(1e9)
}

/// A call as logs report it: submitted at 10 s, started at 20 s, ended successfully at 60 s.
#[must_use]
pub fn call(id: &str, user: &str, hosts: &[&str]) -> wire::call::Call {
    wire::call::Call {
        id: id.into(),
        job: id.rsplit(':').next().unwrap_or(id).into(),
        name: "relax".into(),
        user: user.into(),
        from: "".into(),
        state: State::Ended,
        submitted: Some(time_f(10.0)),
        offered: None,
        selected: None,
        started: Some(time_f(20.0)),
        ended: Some(time_f(60.0)),
        offers: Vec::new(),
        hosts: hosts.iter().map(|&host| host.into()).collect(),
        outcome: Some(Outcome::Ok),
        code: "".into(),
        signal: "".into(),
        reason: "".into(),
        tries: 1,
        events: 3,
        details: None,
    }
}

/// A grid of one domain with these calls.
#[must_use]
pub fn one_domain(calls: &[wire::call::Call]) -> Grid {
    let mut builder = Builder::new(latest());
    if let Some(domain) = builder.domain("Alpha") {
        calls.iter().for_each(|call| builder.call(domain, call));
    }
    builder.build()
}

/// A call as the grid stores it, with these times in seconds.
#[must_use]
pub fn drawn(submitted: Option<i64>, started: Option<i64>, ended: Option<i64>) -> crate::grid::call::Call {
    let mut one = call("slurm:1", "ada", &["wn01"]);
    #[allow(clippy::cast_precision_loss)]
    let time = |secs: Option<i64>| secs.map(|secs| time_f(secs as f64));
    (one.submitted, one.started, one.ended) = (time(submitted), time(started), time(ended));
    one_domain(&[one]).calls.remove(0)
}

/// One hour of `domains` with `hosts` each, and `calls` over all of them.
#[must_use]
pub fn grid(domains: u32, hosts: u32, calls: u32, seed: u64) -> Grid {
    let mut numbers = Numbers(Dice::new(seed));
    let mut builder = Builder::new(latest());
    let mut ids = Vec::new();
    for at in 0..domains {
        let name = match DOMAINS.get(at as usize) {
            Some(name) => (*name).to_owned(),
            None => format!("domain {at}"),
        };
        let Some(id) = builder.domain(&name) else { continue };
        ids.push(id);
        for host in 1..=hosts {
            let state = match numbers.below(100) {
                0 => HostState::Down,
                1 | 2 => HostState::Draining,
                _ => HostState::Live,
            };
            builder.host(id, &format!("wn{host:03}"), state, report(&mut numbers, host));
        }
    }
    for number in 0..calls {
        let at = numbers.below(ids.len() as u64);
        if let Some(&domain) = usize::try_from(at).ok().and_then(|at| ids.get(at)) {
            builder.call(domain, &random_call(&mut numbers, number, hosts));
        }
    }
    builder.build()
}

/// A grid in which `moving` calls move to a host from 100 s to 101.4 s of the hour: for measurements.
#[must_use]
pub fn busy(domains: u32, hosts: u32, moving: u32) -> Grid {
    let mut numbers = Numbers(Dice::new(7));
    let mut builder = Builder::new(latest());
    for at in 0..domains {
        let Some(id) = builder.domain(DOMAINS.get(at as usize).copied().unwrap_or("domain")) else {
            continue;
        };
        for host in 1..=hosts {
            builder.host(id, &format!("wn{host:03}"), HostState::Live, report(&mut numbers, host));
        }
        for number in 0..moving.div_ceil(domains.max(1)) {
            let mut call = random_call(&mut numbers, number, hosts);
            (call.submitted, call.started, call.ended) = (Some(time_f(50.0)), Some(time_f(100.0)), None);
            (call.state, call.outcome) = (State::Running, None);
            call.hosts.truncate(1);
            builder.call(id, &call);
        }
    }
    builder.build()
}

#[allow(clippy::cast_precision_loss)]
fn report(numbers: &mut Numbers, host: u32) -> Report {
    let busy = numbers.share().powi(2);
    Report {
        role: if host == 1 { "representative" } else { "member" }.to_owned(),
        cpu_used: Some(busy),
        memory_used: Some(0.1 + 0.8 * numbers.share()),
        load1: Some(busy * 32.0),
        cpus: Some(32.0),
        memory_bytes: Some(128e9),
        age_secs: Some(numbers.below(900) as f64 / 1_000.0),
        lag_bytes: Some(numbers.below(40) * numbers.below(40)),
        events_behind: Some(numbers.below(12)),
        events_lost: Some(numbers.below(60) / 58),
        events_refused: Some(0),
        samples_thinned: Some(numbers.below(3)),
        health: Vec::new(),
    }
}

#[allow(clippy::cast_precision_loss)]
fn random_call(numbers: &mut Numbers, number: u32, hosts: u32) -> wire::call::Call {
    let pick = |numbers: &mut Numbers, from: &[&'static str]| {
        let at = numbers.below(from.len() as u64);
        usize::try_from(at).ok().and_then(|at| from.get(at)).copied().unwrap_or_default()
    };
    let begin = numbers.below(HOUR_SECS * 1_000) as f64 / 1_000.0;
    let waits = numbers.share().powi(3) * 240.0;
    let works = 2.0 + numbers.share().powi(3) * 1_200.0;
    let wide = 1 + numbers.below(8).saturating_sub(6) * numbers.below(3);
    let on: Vec<String> =
        (0..wide).map(|_| format!("wn{:03}", 1 + numbers.below(u64::from(hosts)))).collect();
    let on: Vec<&str> = on.iter().map(String::as_str).collect();
    let mut made =
        call(&format!("slurm:{}", 1_000 + number), pick(numbers, USERS), if hosts == 0 { &[] } else { &on });
    made.name = pick(numbers, NAMES).into();
    made.submitted = Some(time_f(begin));
    made.started = Some(time_f(begin + waits));
    made.ended = Some(time_f(begin + waits + works));
    made.outcome = Some(match numbers.below(24) {
        0 | 1 => Outcome::Failed,
        2 => Outcome::Timeout,
        3 => Outcome::Cancelled,
        4 => Outcome::NodeFail,
        _ => Outcome::Ok,
    });
    if begin + waits + works > HOUR_SECS as f64 {
        (made.state, made.ended, made.outcome) = (State::Running, None, None);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_numbers_give_the_same_grid() {
        let one = grid(3, 10, 100, 5);
        assert_eq!(one, grid(3, 10, 100, 5));
        assert_ne!(one, grid(3, 10, 100, 6));
        assert_eq!((one.domains.len(), one.hosts(), one.calls.len()), (3, 30, 100));
        assert!(!one.failures.is_empty() && one.refused.is_empty());
    }

    #[test]
    fn an_empty_grid_is_one_too() {
        assert_eq!(grid(0, 0, 10, 1).places.len(), 0);
        assert_eq!(grid(1, 0, 10, 1).hosts(), 0);
    }
}
