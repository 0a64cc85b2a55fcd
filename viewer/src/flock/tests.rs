//! The flock as a whole: a look back shows what the live view showed, and no data exceeds a limit.

use super::chosen::Chosen;
use super::groups::{groups, rows};
use super::lasso::Lasso;
use super::measure::{Spot, Spots, Usage, first_spots, spots};
use super::sweep::Reported;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const HOST: Capacity = Capacity { cpus: 2.0, memory_bytes: 1e9 };
/// Time between two sweeps.
const STEP: Duration = Duration::from_millis(100);
const PACE: past::Pace = past::Pace { speed: 1.0, every: STEP };
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

fn drawn(flock: &Flock, time: Time) -> Vec<(Member, Spots)> {
    let mut seen = Vec::new();
    flock.each(time, |member, _, spots| seen.push((member, *spots)));
    seen.sort_by_key(|(member, _)| *member);
    seen
}

/// Strategy: what each process does in each sweep: the CPU time it uses, or none, or absence.
fn lives() -> impl Strategy<Value = Vec<Vec<Option<u8>>>> {
    let step = prop_oneof![3 => Just(Some(0_u8)), 3 => (1_u8..20).prop_map(Some), 1 => Just(None)];
    proptest::collection::vec(proptest::collection::vec(step, 24), 1..5)
}

/// The sweeps that a sensor sends for such processes: every tenth is whole, the others contain only changes.
fn sweeps_of(lives: &[Vec<Option<u8>>]) -> Vec<Sweep> {
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
        let sweeps = sweeps_of(&lives);
        let whole = flock(&sweeps);
        for number in 0..23 {
            let time = at(number).plus(STEP.mul_f64(share));
            // The live view knows the sweep before and the one after, and nothing later.
            let waited = flock(&sweeps[..number + 2]);
            prop_assert_eq!(drawn(&whole, time), drawn(&waited, time), "sweep {}", number);
        }
    }

    #[test]
    fn what_only_changes_give_is_what_every_sweep_gives(life in proptest::collection::vec(0_u8..3, 24)) {
        let lives: Vec<Vec<Option<u8>>> = vec![life.iter().map(|&more| Some(more)).collect()];
        let changes = flock(&sweeps_of(&lives));
        // With whole sweeps, each position is computed from the sweep and the previous one.
        let mut used = Usage { rss_bytes: 1e8, ..Usage::default() };
        let mut stood = first_spots(&used, HOST);
        for (number, more) in life.iter().enumerate() {
            let mut now = used;
            now.cpu_secs += f64::from(*more) / 1e3;
            now.user_secs = now.cpu_secs;
            if number > 0 {
                stood = spots(&used, &now, STEP.as_secs_f64(), HOST, &stood);
                let found = drawn(&changes, at(number));
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
    for gone in [Vec::new(), vec![7]] {
        let flock = flock(&[
            sweep(0, true, vec![reported(7, "burn", 0.0)], Vec::new()),
            sweep(1, false, vec![other.clone()], gone),
        ]);
        let at_first = drawn(&flock, at(0).plus(STEP / 2));
        let then = drawn(&flock, at(1));
        assert_eq!((at_first.len(), at_first[0].0.start_ns), (1, 1));
        assert_eq!((then.len(), then[0].0.start_ns), (1, 2));
        assert_eq!(flock.track(then[0].0).map(|track| flock.name(track.name)), Some("other"));
    }
}

#[test]
fn who_is_not_in_a_whole_sweep_has_ended() {
    let both = vec![reported(1, "a", 0.0), reported(2, "b", 0.0)];
    let flock =
        flock(&[sweep(0, true, both, Vec::new()), sweep(1, true, vec![reported(1, "a", 0.0)], Vec::new())]);
    assert_eq!((drawn(&flock, at(0)).len(), drawn(&flock, at(1)).len()), (2, 1));
}

#[test]
fn a_wrong_clock_is_moved_and_sweeps_that_go_back_are_reported() {
    let mut flock = flock(&[]);
    let year_9999 = Time::from_micros(253_402_300_799_000_000);
    for number in 0..3_u32 {
        let mut far = sweep(0, true, vec![reported(1, "a", 0.0)], Vec::new());
        far.time = year_9999.plus(STEP * number);
        // Sweeps arrive at uneven times, and are drawn at even ones.
        flock.take(&far, at(number as usize).plus(Duration::from_millis(u64::from(number * number))));
    }
    assert_eq!(flock.hosts().next().and_then(|(_, last)| last), Some(at(2)));
    flock.take(&sweep(1, true, Vec::new(), Vec::new()), at(2));
    assert_eq!(flock.refused().times, 1);
    assert!(flock.refused().lines()[0].contains("1 sweeps left out"));
}

#[test]
fn hosts_processes_and_keyframes_are_bounded() {
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
    // All end, and are dropped a while later.
    many.take(&sweep(1, true, Vec::new(), Vec::new()), at(1));
    many.take(&sweep(2_000, true, Vec::new(), Vec::new()), at(2_000));
    assert_eq!((many.processes(), many.keyframes), (0, 0));
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
    let programs: Vec<_> =
        found.iter().map(|group| (flock.name(group.name), group.processes, group.chosen)).collect();
    assert_eq!(programs, [("burn", 1, 1), ("rest", 1, 0)]);
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

fn stored(from: Time, to: Time, sweeps: &[Sweep]) -> past::StoredSweeps {
    let within = sweeps.iter().filter(|sweep| from <= sweep.time && sweep.time < to);
    past::StoredSweeps { from, to, sweeps: within.cloned().collect(), is_by_minute: false }
}

proptest! {
    /// A later look back at the sensor's history shows what the live view showed.
    #[test]
    fn what_was_kept_looks_as_it_did(lives in lives(), parts in 1_usize..4, apart in 0_i64..2) {
        let sweeps = sweeps_of(&lives);
        let live = flock(&sweeps);
        // The host's clock is right, or an hour ahead.
        let moved = apart * 3_600_000_000;
        let by_host = |time: Time| Time::from_micros(time.micros() + moved);
        let mut later = Flock::default();
        later.host(&wn01(), HOST);
        later.take(&Sweep { time: by_host(at(1_000)), ..sweep(0, true, vec![], vec![]) }, at(1_000));
        let sweeps: Vec<Sweep> =
            sweeps.iter().map(|sweep| Sweep { time: by_host(sweep.time), ..sweep.clone() }).collect();
        let len = 24_usize.div_ceil(parts);
        for begin in (0..24).step_by(len) {
            later.take_stored(&wn01(), &stored(by_host(at(begin)), by_host(at(begin + len)), &sweeps));
        }
        for step in 0..46 {
            let time = at(0).plus(STEP / 2 * step);
            prop_assert_eq!(drawn(&later, time), drawn(&live, time), "at {}", step);
        }
    }
}

#[test]
fn what_lacks_is_asked_for_once_and_ahead_of_its_end() {
    let secs = |secs: u64| BEGIN.plus(Duration::from_secs(secs));
    let stretch = |flock: &Flock, time: u64, speed: f64| {
        let since = |time: Time| time.since(BEGIN).as_secs();
        let pace = past::Pace { speed, every: STEP.mul_f64(speed) };
        let missing_spans = flock.missing_spans(secs(time), pace, secs(1_000));
        missing_spans.first().map(|missing| (since(missing.from), since(missing.to)))
    };
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    assert_eq!(stretch(&flock, 100, 1.0), Some((96, 120)), "nothing was seen live yet");
    flock.take(&Sweep { time: secs(900), ..sweep(0, true, vec![reported(1, "a", 0.0)], vec![]) }, secs(900));
    assert_eq!(stretch(&flock, 950, 1.0), None, "that was seen live");
    assert_eq!(stretch(&flock, 890, 1.0), Some((886, 900)), "from there on it was seen live");
    assert_eq!(stretch(&flock, 100, 10.0), Some((96, 300)));
    let one = |time: u64| Sweep { time: secs(time), ..sweep(0, true, vec![reported(2, "b", 0.0)], vec![]) };
    flock.take_stored(&wn01(), &past::StoredSweeps::new(secs(96), secs(120), vec![one(96), one(119)]));
    assert_eq!((stretch(&flock, 100, 1.0), stretch(&flock, 113, 1.0)), (None, Some((120, 140))));
    assert_eq!((flock.hosts_at(secs(100)), flock.hosts_at(secs(200)), flock.hosts_at(secs(901))), (1, 0, 1));
    flock.take_stored(&wn01(), &past::StoredSweeps::new(secs(120), secs(140), vec![one(130)]));
    assert_eq!((stretch(&flock, 100, 1.0), stretch(&flock, 125, 1.0)), (None, None), "one stretch");
    flock.take_stored(&wn01(), &past::StoredSweeps::new(secs(300), secs(320), vec![]));
    assert_eq!(flock.hosts_at(secs(100)), 0, "another takes its place");
    assert_eq!((stretch(&flock, 305, 1.0), flock.hosts_at(secs(305))), (None, 0), "nothing is kept of it");
}

#[test]
fn a_host_whose_clock_is_wrong_is_asked_by_its_own() {
    let hour = Duration::from_secs(3_600);
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    let late = sweep(1_000, true, vec![reported(1, "a", 0.0)], vec![]);
    flock.take(&Sweep { time: late.time.plus(hour), ..late.clone() }, late.time);
    let [missing] = &flock.missing_spans(at(500), PACE, at(1_001))[..] else {
        panic!("nothing is known of it")
    };
    assert_eq!(missing.to, at(700).plus(hour), "20 s from then, as its clock shows it");
    assert!(missing.from > at(0).plus(hour));
    flock.take(&Sweep { time: late.time.plus(STEP), ..late.clone() }, late.time.plus(STEP));
    assert_eq!(flock.moved(&wn01()), 0, "its clock was corrected");
}

#[test]
fn a_time_without_sweeps_is_not_known_though_others_are_around_it() {
    let busy = |number: usize| sweep(number, true, vec![reported(1, "a", 0.0)], vec![]);
    let sweeps: Vec<Sweep> = (0..50).chain(450..500).map(busy).collect();
    let flock = flock(&sweeps);
    assert_eq!(flock.missing_spans(at(480), PACE, at(500)), []);
    let [missing] = &flock.missing_spans(at(200), PACE, at(500))[..] else {
        panic!("no sweep was taken then")
    };
    assert!(missing.from < at(200) && missing.to > at(200));
    let slow: Vec<Sweep> = (0..10).map(|number| busy(number * 50)).collect();
    assert_eq!(
        self::flock(&slow).missing_spans(at(200), PACE, at(450)),
        [],
        "a sweep each five seconds is no hole"
    );
}

#[test]
fn what_ended_long_before_is_kept_in_the_past() {
    let secs = |secs: u64| BEGIN.plus(Duration::from_secs(secs));
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    let gap = |time: u64| Sweep { time: secs(time), ..sweep(0, true, vec![], vec![]) };
    let one = |time: u64| Sweep { processes: vec![reported(1, "a", 0.0)], ..gap(time) };
    let sweeps = vec![one(100), one(101), gap(102), one(220), one(221)];
    flock.take_stored(
        &wn01(),
        &past::StoredSweeps { from: secs(96), to: secs(260), sweeps, is_by_minute: false },
    );
    assert_eq!(flock.hosts_at(secs(101)), 1, "it ended two minutes before the last sweep");
    assert_eq!(flock.missing_spans(secs(101), past::Pace { speed: 8.0, every: STEP * 8 }, secs(1_000)), []);
}

#[test]
fn minutes_follow_each_other_and_sweeps() {
    let secs = |secs: u64| BEGIN.plus(Duration::from_secs(secs));
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    let one = |time: u64, used: f64| Sweep {
        time: secs(time),
        ..sweep(0, true, vec![reported(1, "burn", used)], vec![])
    };
    let minute = |start: u64| past::StoredSweeps {
        is_by_minute: true,
        ..past::StoredSweeps::new(
            secs(start),
            secs(start + 60),
            vec![one(start, 0.0), one(start + 1, 0.5), one(start + 60, 30.0)],
        )
    };
    flock.take_stored(&wn01(), &minute(60));
    flock.take_stored(&wn01(), &minute(120));
    let cpu = |flock: &Flock, time: u64| drawn(flock, secs(time))[0].1[0].x;
    let expected = measure::scaled(0.25);
    for time in [62, 100, 119, 120, 121, 122, 150] {
        assert!((cpu(&flock, time) - expected).abs() < 1e-4, "{time}: {}", cpu(&flock, time));
    }
    flock.take_stored(&wn01(), &past::StoredSweeps::new(secs(180), secs(182), vec![one(180, 90.0)]));
    assert_eq!(flock.hosts_at(secs(100)), 1, "one stretch");
    let by_minute = [100, 150, 181].map(|time| flock.is_by_minute(secs(time)));
    assert_eq!(by_minute, [true, true, false]);
    let pace = past::Pace { speed: past::SPEED_MAX * 2.0, every: STEP };
    assert_eq!(flock.missing_spans(secs(500), pace, secs(1_000)), [], "over before they arrive");
}

#[test]
fn what_was_let_go_is_not_taken_for_known() {
    let mut flock = Flock::default();
    flock.host(&wn01(), HOST);
    for number in 0..motion::KEYFRAMES_MAX + 10 {
        #[allow(clippy::cast_precision_loss)]
        let busy = reported(1, "busy", (number * number) as f64 / 1e6);
        flock.take(&sweep(number, number == 0, vec![busy], vec![]), at(number));
    }
    let now = at(motion::KEYFRAMES_MAX + 20);
    assert_eq!(flock.missing_spans(at(5), PACE, now).len(), 1, "its first keyframes are gone");
    assert_eq!(flock.missing_spans(at(20), PACE, now), []);

    for _ in 0..3 {
        flock.take_stored(
            &wn01(),
            &past::StoredSweeps::new(
                at(0),
                at(6),
                vec![sweep(0, true, vec![reported(1, "busy", 0.0)], vec![])],
            ),
        );
    }
    assert_eq!(
        (flock.hosts_at(at(5)), flock.of_past()),
        (1, (1, 1)),
        "each takes the place of the one before"
    );
}
