//! Rate limiter, per peer and in all.
//!
//! Pure: callers pass `now`; a peer is identified by its daemon's key or by another type of key. Invariants:
//! no more than the burst at once, and one per interval after that, per peer and in all. At most
//! [`PEERS_MAX`] peers are stored; if there is no room, the peer that is nearest to a full burst is dropped.

use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Most peers stored: about 200 KiB. New keys cost nothing, so the limit in all is what stops a flood.
pub const PEERS_MAX: usize = 4096;

/// A burst at once, then one per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once; at least 1.
    pub burst: u32,
    /// Time until one more is allowed.
    pub interval: Duration,
}

/// State of one limit: when the full burst is available again (the generic cell rate algorithm).
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Moment,
}

impl Bucket {
    fn wait(self, rate: Rate, now: Moment) -> Duration {
        let owed = self.full_at.since(now);
        owed.saturating_sub(rate.interval.saturating_mul(rate.burst.saturating_sub(1)))
    }

    fn take(&mut self, rate: Rate, now: Moment) {
        self.full_at = self.full_at.max(now).plus(rate.interval);
    }
}

/// The limits, and how much of them is used.
#[derive(Clone, Debug)]
pub struct Throttle<Peer = PeerKey> {
    each: Rate,
    all: Rate,
    peers: BTreeMap<Peer, Bucket>,
    total: Bucket,
}

impl<Peer: Ord + Clone> Throttle<Peer> {
    /// A limiter with these limits for each peer and in all.
    #[must_use]
    pub fn new(each: Rate, all: Rate) -> Throttle<Peer> {
        Throttle { each, all, peers: BTreeMap::new(), total: Bucket::default() }
    }

    /// How long `peer` has to wait because of its own limit; zero if not at all.
    #[must_use]
    pub fn wait_of(&self, peer: &Peer, now: Moment) -> Duration {
        self.peers.get(peer).map_or(Duration::ZERO, |bucket| bucket.wait(self.each, now))
    }

    /// How long every peer has to wait because of the limit in all; zero if not at all.
    #[must_use]
    pub fn wait_of_all(&self, now: Moment) -> Duration {
        self.total.wait(self.all, now)
    }

    /// Count one event of `peer`, if both limits allow it.
    ///
    /// # Errors
    /// How long to wait; nothing is counted then.
    pub fn take(&mut self, peer: Peer, now: Moment) -> Result<(), Duration> {
        let wait = self.wait_of(&peer, now).max(self.wait_of_all(now));
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.total.take(self.all, now);
        self.count(peer, now);
        Ok(())
    }

    /// Count one event of `peer` that has happened, even beyond the limits. A limit that is exhausted counts
    /// no further, so that a flood makes no peer wait for longer than one interval.
    pub fn count_anyhow(&mut self, peer: Peer, now: Moment) {
        if self.wait_of_all(now) == Duration::ZERO {
            self.total.take(self.all, now);
        }
        if self.wait_of(&peer, now) == Duration::ZERO {
            self.count(peer, now);
        }
    }

    fn count(&mut self, peer: Peer, now: Moment) {
        if !self.peers.contains_key(&peer) && self.peers.len() >= PEERS_MAX {
            self.make_room(now);
        }
        self.peers.entry(peer).or_default().take(self.each, now);
    }

    fn make_room(&mut self, now: Moment) {
        self.peers.retain(|_, bucket| bucket.full_at > now);
        if self.peers.len() >= PEERS_MAX {
            let first =
                self.peers.iter().min_by_key(|(_, bucket)| bucket.full_at).map(|(peer, _)| peer.clone());
            first.map(|peer| self.peers.remove(&peer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Rate = Rate { burst: 3, interval: Duration::from_secs(10) };
    const ALL: Rate = Rate { burst: 5, interval: Duration::from_secs(1) };

    fn peer(number: u16) -> PeerKey {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&number.to_be_bytes());
        PeerKey(key)
    }

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn a_burst_and_then_one_per_interval_for_each_and_in_all() {
        let mut throttle = Throttle::new(EACH, ALL);
        let taken = (0..5).filter(|_| throttle.take(peer(1), at(0)).is_ok()).count();
        assert_eq!(taken, 3);
        assert_eq!(throttle.take(peer(1), at(0)), Err(Duration::from_secs(10)));
        assert_eq!(throttle.take(peer(2), at(0)), Ok(()));
        assert_eq!(throttle.take(peer(3), at(0)), Ok(()));
        assert_eq!(throttle.take(peer(4), at(0)), Err(Duration::from_secs(1)), "five in all");
        assert_eq!(throttle.take(peer(4), at(1)), Ok(()));
        assert!(throttle.take(peer(1), at(9)).is_err());
        assert_eq!(throttle.take(peer(1), at(10)), Ok(()));
        assert!(throttle.take(peer(1), at(19)).is_err());
        assert_eq!(
            (0..5).filter(|_| throttle.take(peer(1), at(100)).is_ok()).count(),
            3,
            "refilled, no more"
        );
    }

    #[test]
    fn a_flood_of_new_peers_costs_bounded_memory_and_forgets_the_calmest() {
        let mut throttle = Throttle::new(EACH, Rate { burst: u32::MAX, interval: Duration::from_nanos(1) });
        for _ in 0..3 {
            throttle.take(peer(9), at(0)).expect("allowed");
        }
        for number in 100..100 + u16::try_from(PEERS_MAX).expect("fits") + 50 {
            throttle.take(peer(number), at(0)).expect("allowed");
        }
        assert_eq!(throttle.peers.len(), PEERS_MAX);
        assert!(throttle.take(peer(9), at(0)).is_err(), "the one that did most is remembered");
    }
}
