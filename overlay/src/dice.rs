//! Pseudo-random numbers from a seed: jitter of timers, choices of the simulator, generated values.
//!
//! Pure. Rule: the same seed gives the same numbers on every machine, and with every release of every library:
//! simulated elections and drawn pictures are compared with those of earlier versions.
//! Not here: secrets (`getrandom`, outside of the pure cores).

use std::time::Duration;
use wire::backoff;
use wire::id::PeerKey;

/// A number in which each bit depends on every bit of `number` (the final step of splitmix64, Steele and
/// others 2014).
#[must_use]
pub const fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Pseudo-random number generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The generator of a daemon's key, so that the daemon's choices differ from those of others.
    #[must_use]
    pub const fn of(key: PeerKey) -> Dice {
        let [a, b, c, d, e, f, g, h, ..] = key.0;
        Dice::new(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    /// Whether an event with this probability, in thousandths, happens.
    pub fn happens(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    /// A random duration from `low` to `high`, both included.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        backoff::between(low, high, self.draw())
    }

    /// Put `all` in a random order; each order is equally likely.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(last);
            all.swap(last, other);
        }
    }

    /// `span` plus or minus up to `percent` of it, so that many timers do not fire together.
    pub fn jittered(&mut self, span: Duration, percent: u32) -> Duration {
        backoff::jittered(span, percent, self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_stream_and_another_seed_another() {
        let stream = |seed| {
            let mut dice = Dice::new(seed);
            (0..8).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(stream(7), stream(7));
        assert_ne!(stream(7), stream(8));
    }

    #[test]
    fn the_stream_is_splitmix64() {
        // Output of Vigna's splitmix64.c for this seed.
        let mut dice = Dice::new(1_234_567);
        let drawn = [(); 3].map(|()| dice.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn spans_keep_their_bounds() {
        let mut dice = Dice::new(1);
        let span = Duration::from_millis(500);
        for _ in 0..1000 {
            let jittered = dice.jittered(span, 10);
            assert!(jittered >= Duration::from_millis(450) && jittered <= Duration::from_millis(550));
        }
        assert_eq!(dice.below(0), 0);
        assert!(!dice.happens(0) && dice.happens(1000));
    }
}
