//! Delay queue of a late link: when each frame is forwarded, in which order, how often.
//!
//! Pure: callers pass the time. Rule: frames keep their order, except those drawn to be forwarded at once;
//! everything follows from the seed and the arrival times of the frames. The queue is bounded: a frame that
//! arrives while it is full is dropped and counted. Not here: where frames come from ([`super::wire`]).

use crate::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most frames in one direction's queue: half a second of a link that is as fast as the machine. More would
/// only use memory, and no network holds more.
const WAITING_MAX: usize = 50_000;
/// Resolution of the random draws for jitter and probabilities.
const GRAIN: u64 = 1_000_000;

/// Delay of a link, applied to each direction separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Delay of a frame.
    pub time: Duration,
    /// Longest deviation from the delay, up or down, uniformly distributed; the delay is never negative.
    pub jitter: Duration,
    /// Percentage of frames that are forwarded at once and so overtake others.
    pub reorder_percent: u32,
    /// Percentage of frames that are duplicated.
    pub duplicate_percent: u32,
}

#[derive(Debug)]
pub(super) struct Line {
    delay: Delay,
    random: Random,
    /// Queued frames, by the time at which they are forwarded and their arrival order.
    waiting: BTreeMap<(Instant, u64), Vec<u8>>,
    came: u64,
    /// Earliest time for the next frame that keeps its order.
    last: Option<Instant>,
    dropped: u64,
}

impl Line {
    pub(super) fn new(delay: Delay, seed: u64) -> Line {
        let random = Random::new(seed);
        Line { delay, random, waiting: BTreeMap::new(), came: 0, last: None, dropped: 0 }
    }

    /// Set the delay of frames from now on; queued frames keep their times.
    pub(super) fn set(&mut self, delay: Delay) {
        self.delay = delay;
        self.last = None;
    }

    /// Number of frames dropped because the queue was full.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn push(&mut self, now: Instant, frame: &[u8]) {
        let copies = 1 + usize::from(self.draws(self.delay.duplicate_percent));
        for _ in 0..copies {
            if self.waiting.len() >= WAITING_MAX {
                self.dropped += 1;
                continue;
            }
            let due = self.due(now);
            self.came += 1;
            self.waiting.insert((due, self.came), frame.to_owned());
        }
    }

    /// Time at which the next frame is to be forwarded.
    pub(super) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Next frame to be forwarded, if it is due.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Vec<u8>> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn due(&mut self, now: Instant) -> Instant {
        if self.draws(self.delay.reorder_percent) {
            return now;
        }
        let part = u32::try_from(self.random.below(GRAIN + 1)).expect("a grain is small");
        let grain = u32::try_from(GRAIN).expect("a grain is small");
        let late = self.delay.time + self.delay.jitter * 2 / grain * part;
        let due = now + late.saturating_sub(self.delay.jitter);
        let due = self.last.map_or(due, |last| due.max(last));
        self.last = Some(due);
        due
    }

    fn draws(&mut self, percent: u32) -> bool {
        percent > 0 && self.random.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;

    const MS: Duration = Duration::from_millis(1);

    /// Send frames 0 to 249, one each millisecond; returns which came out, and after what delay.
    fn through(delay: Delay) -> Vec<(u8, Duration)> {
        let (mut line, begin) = (Line::new(delay, 3), wait::now());
        let mut out = Vec::new();
        for at in 0..1000_u32 {
            let now = begin + MS * at;
            if let Ok(number @ 0..250) = u8::try_from(at) {
                line.push(now, &[number]);
            }
            while let Some(frame) = line.pop(now) {
                out.push((frame[0], now - begin - MS * u32::from(frame[0])));
            }
        }
        assert_eq!(line.next(), None);
        out
    }

    #[test]
    fn a_frame_takes_its_time_and_jitter_keeps_the_order() {
        let delay = Delay { time: MS * 50, jitter: MS * 30, ..Delay::default() };
        let out = through(delay);
        assert!(out.iter().map(|(frame, _)| *frame).eq(0..250), "each once, in order");
        let late =
            |order: fn(Duration, Duration) -> Duration| out.iter().map(|(_, late)| *late).reduce(order);
        // Keeping the order holds frames back, but never beyond the longest delay.
        assert!(late(Duration::max).is_some_and(|late| late > MS * 70 && late <= MS * 81), "{out:?}");
        assert!(late(Duration::min).is_some_and(|late| late >= MS * 20), "{out:?}");
        assert_eq!(through(delay), out, "a seed gives one order");
    }

    #[test]
    fn some_overtake_and_some_come_twice_where_that_is_asked_for() {
        let plain = Delay { time: MS * 20, ..Delay::default() };
        assert!(through(plain).iter().all(|(_, late)| *late == MS * 20));
        let overtaking = through(Delay { reorder_percent: 25, ..plain });
        let at_once = overtaking.iter().filter(|(_, late)| late.is_zero()).count();
        assert!((40..90).contains(&at_once) && overtaking.len() == 250, "{at_once}");
        let twice = through(Delay { duplicate_percent: 20, ..plain });
        assert!((280..320).contains(&twice.len()), "{}", twice.len());
    }

    #[test]
    fn a_full_line_drops_and_counts() {
        let (mut line, now) = (Line::new(Delay { time: MS, ..Delay::default() }, 1), wait::now());
        (0..WAITING_MAX + 7).for_each(|_| line.push(now, &[]));
        assert_eq!((line.waiting.len(), line.dropped()), (WAITING_MAX, 7));
    }
}
