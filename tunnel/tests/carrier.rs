//! Two carriers over a path that loses, duplicates, reorders and cuts, and over an idle day, in simulated
//! time.

use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;
use tunnel::carrier::{Carrier, KEEP_ALIVE, RESUME_MAX, WINDOW_BYTES};
use wire::time::Moment;

/// Next event of the simulation.
#[derive(Clone, Debug)]
enum Step {
    /// An end writes this many bytes.
    Write(usize, usize),
    /// An end reads this many bytes.
    Read(usize, usize),
    /// An end gives the path a piece of at most this many bytes.
    Say(usize, usize),
    /// The oldest piece of an end arrives.
    Hear(usize),
    /// It is lost.
    Lose(usize),
    /// It arrives, and a copy stays in transit.
    Double(usize),
    /// It swaps places with the next one.
    Swap(usize),
    /// The path is cut, and everything in transit is lost.
    Cut,
    /// Another path resumes the carrier.
    Resume,
    /// This many milliseconds pass.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let end = 0..2_usize;
    prop_oneof![
        4 => (end.clone(), 1..200_000_usize).prop_map(|(end, count)| Step::Write(end, count)),
        4 => (end.clone(), 1..300_000_usize).prop_map(|(end, count)| Step::Read(end, count)),
        6 => (end.clone(), 40..150_000_usize).prop_map(|(end, most)| Step::Say(end, most)),
        6 => end.clone().prop_map(Step::Hear),
        1 => end.clone().prop_map(Step::Lose),
        1 => end.clone().prop_map(Step::Double),
        1 => end.prop_map(Step::Swap),
        1 => Just(Step::Cut),
        2 => Just(Step::Resume),
        2 => (1..3_000_u64).prop_map(Step::Pass),
    ]
}

/// The byte at this offset in the stream of an end.
fn byte(end: usize, number: u64) -> u8 {
    (number.wrapping_mul(31).wrapping_add(number >> 8).wrapping_add(end as u64 * 7) % 251) as u8
}

struct Link {
    now: Moment,
    ends: [Carrier; 2],
    /// Pieces of each end in transit.
    said: [VecDeque<Vec<u8>>; 2],
    written: [u64; 2],
    /// Bytes read by each end.
    taken: [u64; 2],
    cut_since: Moment,
}

impl Link {
    fn new() -> Link {
        let now = Moment::default();
        let ends = [Carrier::new(now), Carrier::new(now)];
        let mut link =
            Link { now, ends, said: Default::default(), written: [0; 2], taken: [0; 2], cut_since: now };
        link.resume();
        link
    }

    fn resume(&mut self) {
        self.said = Default::default();
        let cursors = [self.ends[1].received(), self.ends[0].received()];
        for (end, cursor) in self.ends.iter_mut().zip(cursors) {
            end.handle_attached(cursor, self.now).expect("the cursor of its own other end");
        }
    }

    fn cut(&mut self) {
        self.said = Default::default();
        if self.ends[0].is_carried() {
            self.cut_since = self.now;
        }
        let now = self.now;
        self.ends.iter_mut().for_each(|end| end.handle_detached(now));
    }

    fn write(&mut self, end: usize, count: usize) {
        let from = self.written[end];
        let bytes: Vec<u8> = (from..from + count as u64).map(|number| byte(end, number)).collect();
        self.written[end] += self.ends[end].write(&bytes, self.now) as u64;
    }

    fn read(&mut self, end: usize, count: usize) {
        let mut bytes = vec![0; count];
        let count = self.ends[end].read(&mut bytes, self.now);
        for found in &bytes[..count] {
            assert_eq!(*found, byte(1 - end, self.taken[end]), "byte {} of {end}", self.taken[end]);
            self.taken[end] += 1;
        }
    }

    fn hear(&mut self, from: usize, piece: &[u8]) {
        self.ends[1 - from].handle_bytes(piece, self.now).expect("what its own other end says");
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        if !self.ends[0].is_carried() && self.now.since(self.cut_since) > RESUME_MAX / 2 {
            self.resume();
        }
        for at in 0..2 {
            let was_carried = self.ends[at].is_carried();
            self.ends[at].handle_timeout(self.now);
            if was_carried && !self.ends[at].is_carried() {
                // The shell sees the same error at both ends.
                self.cut();
                self.resume();
            }
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Write(end, count) => self.write(end, count),
            Step::Read(end, count) => self.read(end, count),
            Step::Say(end, most) => {
                let piece = self.ends[end].poll_output(most, self.now);
                assert!(piece.as_ref().is_none_or(|piece| piece.len() <= most + 26), "longer than it may be");
                self.said[end].extend(piece);
            }
            Step::Hear(end) => {
                if let Some(piece) = self.said[end].pop_front() {
                    self.hear(end, &piece);
                }
            }
            Step::Lose(end) => {
                self.said[end].pop_front();
            }
            Step::Double(end) => {
                if let Some(piece) = self.said[end].front().cloned() {
                    self.hear(end, &piece);
                }
            }
            Step::Swap(end) => {
                if self.said[end].len() > 1 {
                    self.said[end].swap(0, 1);
                }
            }
            Step::Cut => self.cut(),
            Step::Resume => self.resume(),
            Step::Pass(millis) => self.pass(Duration::from_millis(millis)),
        }
        for end in &self.ends {
            assert!(end.waiting() <= WINDOW_BYTES && end.end().is_none());
        }
    }

    /// From now on nothing is lost: run until both ends have everything.
    fn settle(&mut self) {
        self.resume();
        for _ in 0..10_000 {
            for end in 0..2 {
                while let Some(piece) = self.ends[end].poll_output(100_000, self.now) {
                    self.hear(end, &piece);
                }
                self.read(end, WINDOW_BYTES);
            }
            if (0..2).all(|end| self.taken[1 - end] == self.written[end] && self.ends[end].is_flushed()) {
                return;
            }
            self.pass(Duration::from_millis(500));
        }
        panic!("not all came: {:?} of {:?}", self.taken, self.written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_lost_doubled_or_out_of_place(steps in prop::collection::vec(step(), 1..200)) {
        let mut link = Link::new();
        steps.iter().for_each(|step| link.take(step));
        link.settle();
    }

    #[test]
    fn whatever_a_path_brings_is_no_reason_to_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..40)) {
        let mut carrier = Carrier::new(Moment::default());
        carrier.handle_attached(0, Moment::default()).expect("nothing was sent");
        carrier.write(b"some bytes", Moment::default());
        for piece in &pieces {
            let _ = carrier.handle_bytes(piece, Moment::default());
            let _ = carrier.poll_output(1_000, Moment::default());
        }
        prop_assert!(carrier.waiting() <= WINDOW_BYTES);
    }
}

#[test]
fn idle_tunnels_stand_for_a_day_and_say_little() {
    const TUNNELS: usize = 100;
    const DAY: Duration = Duration::from_secs(86_400);
    let mut said_total = 0_u64;
    let mut said_bytes = 0_u64;
    for _ in 0..TUNNELS {
        let mut link = Link::new();
        while link.now < Moment(DAY) {
            let next =
                link.ends.iter().filter_map(Carrier::poll_timeout).min().expect("something is kept alive");
            link.now = next.max(link.now.plus(Duration::from_millis(1)));
            for end in 0..2 {
                link.ends[end].handle_timeout(link.now);
                while let Some(piece) = link.ends[end].poll_output(1_000, link.now) {
                    said_total += 1;
                    said_bytes += piece.len() as u64;
                    link.hear(end, &piece);
                }
            }
            assert!(link.ends.iter().all(|end| end.is_carried() && end.end().is_none()), "at {:?}", link.now);
        }
        link.write(0, 1_000);
        link.settle();
    }
    let due = 2 * TUNNELS as u64 * DAY.as_secs() / KEEP_ALIVE.as_secs();
    assert!(said_total.abs_diff(due) <= due / 100, "{said_total} words, due were {due}");
    assert!(said_bytes <= said_total * 17, "an idle word has 17 bytes");
}

#[test]
fn an_idle_path_that_dies_is_noticed_and_carried_on() {
    let mut link = Link::new();
    link.write(0, 10_000);
    // Everything that either end sends is lost from here on.
    let mut noticed = None;
    while noticed.is_none() {
        let next = link.ends.iter().filter_map(Carrier::poll_timeout).min().expect("something is due");
        link.now = next.max(link.now.plus(Duration::from_millis(1)));
        for end in &mut link.ends {
            end.handle_timeout(link.now);
            while end.poll_output(100_000, link.now).is_some() {}
        }
        noticed = link.ends.iter().all(|end| !end.is_carried()).then_some(link.now);
    }
    assert!(noticed.is_some_and(|at| at <= Moment(Duration::from_secs(15))), "{noticed:?}");
    link.settle();
}
