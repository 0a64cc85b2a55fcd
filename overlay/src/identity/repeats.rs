//! Repeated messages of peers that retry forever: each is logged once and then counted.
//!
//! Pure: callers pass `now`. Rule: a reason is logged when it is new for its peer, and then once per
//! [`LOGGED_EACH`], with the number of repetitions that were left out.
//! Not here: the log.

use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Interval at which an unchanged reason is logged again.
pub const LOGGED_EACH: Duration = Duration::from_secs(600);

/// Peers stored: more than a domain has, about 500 KiB with long reasons. Above this number, all are dropped
/// and logged again: the total rate of messages about unknown peers is limited where they are refused
/// (`audit`).
pub const PEERS_MAX: usize = 2048;

#[derive(Clone, Debug)]
struct LoggedReason {
    at: Moment,
    reason: String,
    unlogged: u64,
}

/// The last reason of each peer.
#[derive(Clone, Debug, Default)]
pub struct Repeats(BTreeMap<PeerKey, LoggedReason>);

impl Repeats {
    /// Whether to log this now, and how many repetitions were left out since it was last logged.
    pub fn take(&mut self, peer: PeerKey, reason: &str, now: Moment) -> Option<u64> {
        match self.0.get_mut(&peer) {
            Some(logged) if logged.reason == reason && now.since(logged.at) < LOGGED_EACH => {
                logged.unlogged += 1;
                return None;
            }
            Some(logged) if logged.reason == reason => {
                logged.at = now;
                return Some(std::mem::take(&mut logged.unlogged));
            }
            Some(_) | None => {}
        }
        if self.0.len() >= PEERS_MAX {
            self.0.clear();
        }
        self.0.insert(peer, LoggedReason { at: now, reason: reason.to_owned(), unlogged: 0 });
        Some(0)
    }

    /// The reason was not logged after all: its next occurrence counts as new.
    pub fn forget(&mut self, peer: PeerKey) {
        self.0.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_reported_once_and_then_counted() {
        let (mut repeats, peer) = (Repeats::default(), PeerKey([1; 32]));
        let mut at = |secs: u64, reason: &str| repeats.take(peer, reason, Moment(Duration::from_secs(secs)));
        assert_eq!(at(0, "revoked"), Some(0));
        for secs in 1..600 {
            assert_eq!(at(secs, "revoked"), None, "{secs}");
        }
        assert_eq!(at(600, "revoked"), Some(599));
        assert_eq!(at(601, "revoked"), None);
        assert_eq!(at(602, "of another version"), Some(0), "news is reported at once");
        assert_eq!(at(603, "revoked"), Some(0));
    }

    #[test]
    fn the_memory_is_bounded_and_a_forgotten_reason_is_new() {
        let mut repeats = Repeats::default();
        for number in 0..PEERS_MAX * 2 + 7 {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(number as u64).to_le_bytes());
            assert_eq!(repeats.take(PeerKey(key), "x", Moment::default()), Some(0));
            assert!(repeats.0.len() <= PEERS_MAX);
        }
        repeats.take(PeerKey([9; 32]), "x", Moment::default());
        repeats.forget(PeerKey([9; 32]));
        assert_eq!(repeats.take(PeerKey([9; 32]), "x", Moment::default()), Some(0));
    }
}
