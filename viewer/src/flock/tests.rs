//! The flock as a whole: who goes back to a time sees what who waited for it saw, and nobody's sweeps break a bound.

use super::chosen::Chosen;
use super::groups::{groups, rows};
use super::lasso::Lasso;
use super::measure::{Spot, Spots, Usage, first_spots, spots};
use super::sweep::Reported;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const HOST: Capacity = Capacity { cpus: 2.0, memory_bytes: 1e9 };
/// Sweeps are so long apart.
const STEP: Duration = Duration::from_millis(100);
const BEGIN: Time = Time::from_micros(1_774_699_200_000_000);

fn wn01() -> HostName {
    HostName::new("demo", "wn01")
}

fn at(sweep: usize) -> Time {
    BEGIN.plus(STEP * u32::try_from(sweep).unwrap())
}

fn reported(pid: u32, name: &str, cpu_secs: f64) -> Reported {
    let usage = Usage { cpu_secs, user_secs: cpu_secs, rss_bytes: 1e8, ..Usage::default() };
    Reported { pid, start_ns: 1, name: name.to_owned(), threads: 1, usage, ..Reported::default() }
}

fn sweep(number: usize, is_whole: bool, processes: Vec<Reported>, gone: Vec<u32>) -> Sweep {
    Sweep { host: wn01(), time: at(number), is_whole, processes, gone, left_out: 0 }
}

fn flock(sweeps: &[Sweep]) -> Flock {
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    sweeps.iter().for_each(|sweep| flock.take(sweep, sweep.time));
    flock
}

fn seen(flock: &Flock, time: Time) -> Vec<(Member, Spots)> {
    let mut seen = Vec::new();
    flock.each(time, |member, _, spots| seen.push((member, *spots)));
    seen.sort_by_key(|(member, _)| *member);
    seen
}

/// What each of some processes does in each sweep: how much CPU time it uses, nothing, or not being there.
fn lives() -> impl Strategy<Value = Vec<Vec<Option<u8>>>> {
    let step = prop_oneof![3 => Just(Some(0_u8)), 3 => (1_u8..20).prop_map(Some), 1 => Just(None)];
    proptest::collection::vec(proptest::collection::vec(step, 24), 1..5)
}

/// The sweeps that a sensor tells of such lives: whole ones each ten, between them only what changed.
fn told(lives: &[Vec<Option<u8>>]) -> Vec<Sweep> {
    let mut used = vec![0.0; lives.len()];
    let mut starts = vec![0_u64; lives.len()];
    (0..24)
        .map(|number| {
            let is_whole = number % 10 == 0;
            let (mut processes, mut gone) = (Vec::new(), Vec::new());
            for (at, life) in lives.iter().enumerate() {
                let pid = u32::try_from(at).unwrap() + 1;
                let was = number > 0 && life[number - 1].is_some();
                let Some(more) = life[number] else {
                    gone.extend(was.then_some(pid));
                    continue;
                };
                if !was {
                    (starts[at], used[at]) = (starts[at] + 1, 0.0);
                }
                used[at] += f64::from(more) / 1e3;
                if is_whole || !was || more > 0 {
                    processes.push(Reported { start_ns: starts[at], ..reported(pid, "burn", used[at]) });
                }
            }
            sweep(number, is_whole, processes, gone)
        })
        .collect()
}

proptest! {
    #[test]
    fn who_goes_back_sees_what_who_waited_saw(lives in lives(), share in 0.0_f64..1.0) {
        let sweeps = told(&lives);
        let whole = flock(&sweeps);
        for number in 0..23 {
            let time = at(number).plus(STEP.mul_f64(share));
            // Who waits knows the sweep before and the one after, and nothing of what will come.
            let waited = flock(&sweeps[..number + 2]);
            prop_assert_eq!(seen(&whole, time), seen(&waited, time), "sweep {}", number);
        }
    }

    #[test]
    fn what_only_changes_tell_is_what_every_sweep_tells(life in proptest::collection::vec(0_u8..3, 24)) {
        let lives: Vec<Vec<Option<u8>>> = vec![life.iter().map(|&more| Some(more)).collect()];
        let changes = flock(&told(&lives));
        // Whoever is told everything computes each place from the sweep and the one before it.
        let mut used = Usage { rss_bytes: 1e8, ..Usage::default() };
        let mut stood = first_spots(&used, HOST);
        for (number, more) in life.iter().enumerate() {
            let mut now = used;
            now.cpu_secs += f64::from(*more) / 1e3;
            now.user_secs = now.cpu_secs;
            if number > 0 {
                stood = spots(&used, &now, STEP.as_secs_f64(), HOST, &stood);
                let found = seen(&changes, at(number));
                prop_assert!((found[0].1[0].x - stood[0].x).abs() < 1e-5, "sweep {}: {:?}", number, found);
            }
            used = now;
        }
    }
}

#[test]
fn a_number_given_out_again_is_another_process() {
    let mut other = reported(7, "other", 0.0);
    other.start_ns = 2;
    let flock = flock(&[
        sweep(0, true, vec![reported(7, "burn", 0.0)], Vec::new()),
        sweep(1, false, vec![other], Vec::new()),
    ]);
    let at_first = seen(&flock, at(0).plus(STEP / 2));
    let then = seen(&flock, at(1));
    assert_eq!((at_first.len(), at_first[0].0.start_ns), (1, 1));
    assert_eq!((then.len(), then[0].0.start_ns), (1, 2));
    assert_eq!(flock.track(then[0].0).map(|track| flock.name(track.name)), Some("other"));
}

#[test]
fn who_is_not_in_a_whole_sweep_has_ended() {
    let both = vec![reported(1, "a", 0.0), reported(2, "b", 0.0)];
    let flock =
        flock(&[sweep(0, true, both, Vec::new()), sweep(1, true, vec![reported(1, "a", 0.0)], Vec::new())]);
    assert_eq!((seen(&flock, at(0)).len(), seen(&flock, at(1)).len()), (2, 1));
}

#[test]
fn a_wrong_clock_is_moved_and_sweeps_that_go_back_are_told() {
    let mut flock = flock(&[]);
    let year_9999 = Time::from_micros(253_402_300_799_000_000);
    for number in 0..3_u32 {
        let mut far = sweep(0, true, vec![reported(1, "a", 0.0)], Vec::new());
        far.time = year_9999.plus(STEP * number);
        // It comes at uneven times, and is drawn at even ones.
        flock.take(&far, at(number as usize).plus(Duration::from_millis(u64::from(number * number))));
    }
    assert_eq!(flock.hosts().next().and_then(|(_, last)| last), Some(at(2)));
    flock.take(&sweep(1, true, Vec::new(), Vec::new()), at(2));
    assert_eq!(flock.refused().times, 1);
    assert!(flock.refused().lines()[0].contains("1 sweeps left out"));
}

#[test]
fn hosts_processes_and_knots_are_bounded() {
    let mut flock = Flock::default();
    for number in 0..HOSTS_MAX + 3 {
        flock.host(&HostName::new("demo", &format!("wn{number}")), HOST);
    }
    assert_eq!((flock.hosts().count(), flock.refused().hosts), (HOSTS_MAX, 3));
    let mut many = Flock::default();
    many.host(&wn01(), HOST);
    let beyond = u32::try_from(PROCESSES_MAX).unwrap() + 7;
    let processes = (1..=beyond).map(|pid| reported(pid, "p", 0.0)).collect();
    many.take(&sweep(0, true, processes, Vec::new()), at(0));
    assert_eq!((many.processes(), many.refused().processes), (PROCESSES_MAX, 7));
    // All end, and are let go a while later.
    many.take(&sweep(1, true, Vec::new(), Vec::new()), at(1));
    many.take(&sweep(2_000, true, Vec::new(), Vec::new()), at(2_000));
    assert_eq!((many.processes(), many.knots), (0, 0));
    assert!(flock.keep(&[]) && !flock.keep(&[]));
    assert_eq!(flock.hosts().count(), 0);
}

#[test]
fn a_lasso_chooses_and_programs_are_grouped() {
    let two = |first: f64, second: f64| vec![reported(1, "burn", first), reported(2, "rest", second)];
    let flock =
        flock(&[sweep(0, true, two(0.0, 0.0), Vec::new()), sweep(1, false, two(0.2, 0.0), Vec::new())]);
    let mut wanted = Chosen::default();
    let mut lasso = Lasso::default();
    for (x, y) in [(0.9, 0.0), (1.1, 0.0), (1.1, 1.1), (0.9, 1.1)] {
        lasso.to(Spot { x, y });
    }
    let chosen = |wanted: &Chosen| lasso.members(&flock, wanted, at(1), |_, _, spot| spot);
    let pids = |members: &BTreeSet<Member>| members.iter().map(|member| member.pid).collect::<Vec<_>>();
    assert_eq!(pids(&chosen(&wanted)), [1], "two CPUs, all of them used");
    let found = groups(&flock, &wanted, &chosen(&wanted), at(1));
    let told: Vec<_> =
        found.iter().map(|group| (flock.name(group.name), group.processes, group.chosen)).collect();
    assert_eq!(told, [("burn", 1, 1), ("rest", 1, 0)]);
    let names: BTreeSet<_> = found.iter().map(|group| group.name).collect();
    let listed = |chosen: &BTreeSet<Member>, most: usize| {
        let of = rows(&flock, &wanted, &names, chosen, at(1), most);
        of.values().flatten().map(|row| row.member.pid).collect::<Vec<_>>()
    };
    assert_eq!((listed(&BTreeSet::new(), 10), listed(&BTreeSet::new(), 0)), (vec![1, 2], vec![]));
    assert_eq!(listed(&chosen(&wanted), 1), [1], "where some are chosen, those alone");
    wanted.search("program:rest user:ada");
    assert!(chosen(&wanted).is_empty());
    assert_eq!(groups(&flock, &wanted, &BTreeSet::new(), at(1)).len(), 1);
}
