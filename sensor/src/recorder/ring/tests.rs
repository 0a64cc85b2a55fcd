//! Tests of the ring with made-up hosts: how far it reaches back, and that any window has all that was in it,
//! once.

use super::*;
use crate::process::table::Coverage;
use compact_str::CompactString;
use proptest::prelude::*;
use wire::process::{Process, ProcessKey};
use wire::recording::segment::{Item, Player};

const SECOND: u64 = 1_000_000_000;

fn life(pid: u32, end_ns: u64) -> Life {
    Life {
        key: ProcessKey { pid, start_ns: 0 },
        parent: 1,
        uid: 0,
        cgroup: None,
        name: "true".into(),
        command: CompactString::default(),
        end_ns,
        code: 0,
        usage: None,
    }
}

/// A host with so many processes; so many of them use a little CPU time between two sweeps.
struct Host {
    table: Table,
    ring: Ring,
    processes: u32,
    busy: u32,
    hz: u64,
}

impl Host {
    fn new(processes: u32, busy: u32, hz: u64, limits: Limits) -> Host {
        Host { table: Table::default(), ring: Ring::new(limits), processes, busy, hz }
    }

    fn sweep(&mut self, number: u64) {
        let at_ns = SECOND + number * SECOND / self.hz;
        self.fill(number, at_ns);
        let ended = [life(9, at_ns)];
        let ended = ended.iter().filter(|_| number.is_multiple_of(self.hz));
        self.ring.take(&self.table, ended, || number * 10);
    }

    fn fill(&mut self, number: u64, at_ns: u64) {
        self.table.begin(number, at_ns, Coverage::All);
        for pid in 1..=self.processes {
            let mut process =
                Process { key: ProcessKey { pid, start_ns: 5 }, name: "work".into(), ..Process::default() };
            process.rss_kib = 4000;
            if pid <= self.busy {
                // Values that do not follow from earlier ones, as in practice.
                process.usage.cpu_ns = number * 2_000_000 + (number * u64::from(pid) * 7919) % 100_000;
                process.usage.minor_faults = number * u64::from(pid) % 977;
            }
            self.table.set(process);
        }
        self.table.end(100);
    }
}

fn minute() -> Limits {
    Limits { reach_ns: 60 * SECOND, bytes_max: BYTES_MAX }
}

#[test]
fn it_reaches_back_its_seconds_and_any_window_can_be_read() {
    let mut host = Host::new(5, 2, 4, Limits { reach_ns: 20 * SECOND, bytes_max: BYTES_MAX });
    (1..=400).for_each(|number| host.sweep(number));
    let reach = host.ring.reach();
    let held_ns = reach.to_ns - reach.from_ns;
    assert!((20 * SECOND..=25 * SECOND).contains(&held_ns), "{held_ns}");
    assert_eq!((reach.squeezed_total, reach.samples_total), (0, 2000));
    let (from_ns, to_ns) = (90 * SECOND, 95 * SECOND);
    let window = host.ring.window(from_ns, to_ns);
    assert!((1..=3).contains(&window.len()));
    assert!(window[0].segment.first_ns <= from_ns, "from before its beginning");
    assert_eq!(window[0].events_from % 10, 0);
    let (mut sweeps, mut ended) = (Vec::new(), Vec::new());
    for kept in &window {
        let read = Player::default().play(&kept.segment, |item| {
            match item {
                Item::Swept(swept) => {
                    assert_eq!(swept.rows.iter().flatten().count(), 5);
                    assert_eq!(swept.sweep.begin_ns, SECOND + swept.sweep.number * SECOND / 4);
                    sweeps.push(swept.sweep.number);
                }
                Item::Ended(life) => ended.push(life.end_ns),
            }
            true
        });
        read.expect("each segment can be read alone");
    }
    assert!(sweeps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sweeps:?}");
    let lives = ended.iter().filter(|end_ns| (from_ns..=to_ns).contains(end_ns)).count();
    assert_eq!(lives, 6, "one each second");
}

#[test]
fn what_does_not_fit_shortens_the_reach_and_is_reported() {
    let limits = Limits { reach_ns: 60 * SECOND, bytes_max: 64 << 10 };
    let mut host = Host::new(100, 100, 64, limits);
    for number in 1..64 * 30 {
        host.sweep(number);
        let bytes = host.ring.reach().bytes;
        assert!(bytes <= 64 << 10, "{bytes} bytes");
    }
    let reach = host.ring.reach();
    let held_ns = reach.to_ns - reach.from_ns;
    assert!(held_ns < 10 * SECOND && held_ns > SECOND / 10, "{held_ns}");
    assert!(reach.squeezed_total > 10);
}

#[test]
fn a_sweep_that_is_larger_than_all_is_not_kept() {
    let mut host = Host::new(1000, 0, 1, Limits { reach_ns: 60 * SECOND, bytes_max: 4096 });
    (1..9).for_each(|number| host.sweep(number));
    assert_eq!((host.ring.reach().bytes, host.ring.window(0, u64::MAX).len()), (0, 0));
}

#[test]
fn a_minute_of_300_processes_at_64_hz_fits_even_if_all_are_busy() {
    for (busy, bytes_max) in [(0, 400 << 10), (30, 2 << 20), (300, BYTES_MAX)] {
        let mut host = Host::new(300, busy, 64, minute());
        (1..=64 * 62).for_each(|number| host.sweep(number));
        let reach = host.ring.reach();
        assert!(reach.bytes <= bytes_max, "{busy} busy: {} bytes", reach.bytes);
        assert!(reach.to_ns - reach.from_ns >= 60 * SECOND, "{busy} busy reach back less far");
    }
}

#[test]
fn what_is_sealed_is_not_returned_again() {
    let mut host = Host::new(3, 1, 4, minute());
    (1..=6).for_each(|number| host.sweep(number));
    host.ring.seal();
    let before = host.ring.window(0, u64::MAX);
    (7..=9).for_each(|number| host.sweep(number));
    let all = host.ring.window(0, u64::MAX);
    assert_eq!((before.len(), before[0].segment.sweeps, all.len(), all[1].segment.sweeps), (1, 6, 2, 3));
}

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    /// So many processes end, the last of them during the next sweep, which the ring takes.
    Sweep { ended: u32 },
    /// A window is ordered `at` hundredths of a second after a sweep; `before` and `after` are in tenths of a
    /// second.
    Order { at: u64, before: u64, after: u64 },
    /// The new segments of the windows are fetched.
    Look,
}

/// A window, and what was fetched for it.
struct Ordered {
    at_ns: u64,
    from_ns: u64,
    to_ns: u64,
    next: u64,
    segments: Vec<Arc<Segment>>,
}

const STEP: u64 = SECOND / 100;
const BETWEEN_SWEEPS: u64 = 10 * STEP;

/// A ring, and what was added to it.
struct Story {
    host: Host,
    ended: Vec<Life>,
    sweeps: Vec<u64>,
    open: Vec<Ordered>,
    over: Vec<Ordered>,
}

impl Story {
    fn new(limits: Limits) -> Story {
        let host = Host::new(5, 2, 10, limits);
        Story { host, ended: Vec::new(), sweeps: Vec::new(), open: Vec::new(), over: Vec::new() }
    }

    fn now_ns(&self) -> u64 {
        self.sweeps.last().copied().unwrap_or(SECOND)
    }

    fn step(&mut self, step: &Step) {
        let now_ns = self.now_ns();
        match *step {
            Step::Sweep { ended } => {
                let first = self.ended.len();
                let next_ns = now_ns + BETWEEN_SWEEPS;
                let moment_ns =
                    |one: u32| now_ns + STEP / 2 + BETWEEN_SWEEPS * u64::from(one) / u64::from(ended);
                let pid = |one: u32| one + u32::try_from(first).expect("few");
                self.ended.extend((1..=ended).map(|one| life(pid(one), moment_ns(one))));
                self.sweeps.push(next_ns);
                self.host.fill(self.sweeps.len() as u64, next_ns);
                self.host.ring.take(&self.host.table, self.ended[first..].iter(), || 0);
                let ring = &mut self.host.ring;
                let swept_ns = ring.swept_ns();
                for mut one in self.open.extract_if(.., |one| swept_ns > one.to_ns + STEP) {
                    ring.seal();
                    let (held, _) = ring.sealed(one.next, one.from_ns, one.to_ns);
                    one.segments.extend(held.into_iter().map(|kept| kept.segment));
                    self.over.push(one);
                }
            }
            Step::Order { at, before, after } => {
                let at_ns = now_ns + at * STEP;
                let (from_ns, to_ns) =
                    (at_ns.saturating_sub(before * SECOND / 10), at_ns + after * SECOND / 10);
                self.host.ring.seal();
                let (held, next) = self.host.ring.sealed(0, from_ns, to_ns);
                let segments = held.into_iter().map(|kept| kept.segment).collect();
                self.open.push(Ordered { at_ns, from_ns, to_ns, next, segments });
            }
            Step::Look => {
                for one in &mut self.open {
                    let (held, next) = self.host.ring.sealed(one.next, one.from_ns, one.to_ns);
                    one.segments.extend(held.into_iter().map(|kept| kept.segment));
                    one.next = next;
                }
            }
        }
    }

    /// Checks that every window has what was in it from `first_ns` on, each once.
    fn check(&self, first_ns: impl Fn(&Ordered) -> u64) {
        for one in &self.over {
            let within = first_ns(one)..=one.to_ns;
            let (mut sweeps, mut ended) = (Vec::new(), Vec::new());
            for segment in &one.segments {
                let read = Player::default().play(segment, |item| {
                    match item {
                        Item::Swept(swept) => sweeps.push(swept.sweep.begin_ns),
                        Item::Ended(life) => ended.push((life.end_ns, life.key.pid)),
                    }
                    true
                });
                read.expect("each segment can be read alone");
            }
            sweeps.retain(|moment_ns| within.contains(moment_ns));
            ended.retain(|(moment_ns, _)| within.contains(moment_ns));
            let expected = self.sweeps.iter().filter(|moment_ns| within.contains(moment_ns));
            assert_eq!(sweeps, expected.copied().collect::<Vec<_>>(), "sweeps around {}", one.at_ns);
            let expected = self.ended.iter().map(|life| (life.end_ns, life.key.pid));
            let expected: Vec<_> = expected.filter(|(moment_ns, _)| within.contains(moment_ns)).collect();
            assert_eq!(ended, expected, "ended around {}", one.at_ns);
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_u32..6).prop_map(|ended| Step::Sweep { ended }),
        1 => (0_u64..10, 0_u64..80, 0_u64..80)
            .prop_map(|(at, before, after)| Step::Order { at, before, after }),
        1 => Just(Step::Look),
    ];
    proptest::collection::vec(step, 1..250)
}

/// Makes steps until every window is complete.
fn until_all_are_over(story: &mut Story, steps: &[Step], mut beside: impl FnMut(&mut Story)) {
    for step in steps.iter().chain(std::iter::repeat_n(&Step::Sweep { ended: 2 }, 90)) {
        story.step(step);
        beside(story);
    }
    assert!(story.open.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_window_has_all_that_was_in_it_once_wherever_it_is_taken(steps in steps()) {
        let mut story = Story::new(minute());
        until_all_are_over(&mut story, &steps, |_| {});
        story.check(|one| one.from_ns);
    }

    #[test]
    fn what_comes_after_an_order_is_whole_though_the_ring_reaches_back_less_far(steps in steps()) {
        let mut story = Story::new(Limits { reach_ns: 60 * SECOND, bytes_max: 5 << 10 });
        until_all_are_over(&mut story, &steps, |story| story.step(&Step::Look));
        story.check(|one| one.at_ns);
    }
}
