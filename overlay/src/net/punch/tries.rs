//! Attempts at hole punching: with which peers, how often, and their outcome.
//!
//! ```text
//! try: agreed, both dial, TCP and handshake within 10 s ─ connected, or the next try 150 s later
//! round: [`TRIES`] tries; failed ─ 10 min ─ round ─ 20 min ─ … ─ 320 min ─ round …   for the initiator
//! ```
//! Pure. Invariants: with one peer at most one try is in progress, and at most [`TRIES`] start within
//! [`ANSWERING_PAUSE`] of the first, whichever side initiates; at most [`UNDER_WAY_MAX`] are in progress in
//! all; the memory is bounded.
//! Not here: the messages and the dialling (`exchange`, the shell in `mod`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::backoff::Backoff;
use wire::id::PeerKey;
use wire::time::Moment;

/// Tries of a round: a stalled machine may miss the moment of one.
pub(super) const TRIES: u32 = 3;

/// Pause between two tries: by then translators have dropped the state of the previous one (Linux: 120 s,
/// `nf_conntrack_tcp_timeout_syn_sent`), which would let a packet of the next try in too early.
const AGAIN_AFTER: Duration = Duration::from_secs(150);

/// For the initiator, time from the start of a failed round to the start of the next one; doubled after each
/// further failed round, up to 32 times this.
pub(super) const PAUSE: Duration = Duration::from_secs(600);

/// The same for the responder: shorter, so that it refuses no peer whose clock runs ahead.
pub(super) const ANSWERING_PAUSE: Duration = Duration::from_secs(300);

const PAUSES: Backoff = Backoff::new(PAUSE, PAUSE.saturating_mul(32));

/// Timeout of the exchange before both dial.
pub(super) const EXCHANGE_MAX: Duration = Duration::from_secs(10);

/// A dial succeeds or fails within this time: the transport's timeout is 10 s. The responder's is a little
/// shorter, so it is ready when the initiator comes again.
const BEGINNER_DIALS: Duration = Duration::from_secs(13);
const ANSWERER_DIALS: Duration = Duration::from_secs(11);

pub(super) const UNDER_WAY_MAX: usize = 16;

/// Most peers that are remembered; the oldest is dropped.
const REMEMBERED_MAX: usize = 512;

/// This daemon's part in the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Initiator: it decides when to dial, and is the listener of the connection.
    Begins,
    /// Responder: it dials when the initiator's `Sync` arrives.
    Answers,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// Tries of the current round.
    tries: u32,
    /// Start of its first try.
    since: Moment,
    /// Start of its last try.
    last: Moment,
    /// End of the current try.
    until: Option<Moment>,
    /// Rounds that failed one after another.
    failed: u32,
}

/// The state of each peer.
#[derive(Debug, Default)]
pub(super) struct Tries {
    rows: BTreeMap<PeerKey, Row>,
}

impl Tries {
    /// Start a try with `peer` now, if it is allowed; returns whether it was started.
    pub(super) fn begin(&mut self, peer: PeerKey, part: Part, now: Moment) -> bool {
        let under_way = self.rows.values().filter(|row| row.until.is_some()).count();
        let row = self.rows.get(&peer).copied();
        let mut row = row.unwrap_or(Row { tries: 0, since: now, last: now, until: None, failed: 0 });
        if row.until.is_some_and(|until| until > now) || under_way >= UNDER_WAY_MAX {
            return false;
        }
        if now.since(row.since) >= pause(part, row.failed) {
            row = Row { tries: 0, since: now, ..row };
        }
        let is_soon = part == Part::Begins && row.tries > 0 && now.since(row.last) < AGAIN_AFTER;
        if row.tries >= TRIES || is_soon {
            return false;
        }
        row.tries += 1;
        row.last = now;
        row.until = Some(now.plus(EXCHANGE_MAX));
        self.make_place(peer);
        self.rows.insert(peer, row);
        true
    }

    fn make_place(&mut self, peer: PeerKey) {
        if self.rows.len() < REMEMBERED_MAX || self.rows.contains_key(&peer) {
            return;
        }
        let settled = self.rows.iter().filter(|(_, row)| row.until.is_none());
        if let Some(oldest) = settled.min_by_key(|(_, row)| row.since).map(|(peer, _)| *peer) {
            self.rows.remove(&oldest);
        }
    }

    /// Both sides dial now; returns whether the try is still in progress.
    pub(super) fn handle_agreed(&mut self, peer: PeerKey, part: Part, now: Moment) -> bool {
        let Some(row) = self.rows.get_mut(&peer).filter(|row| row.until.is_some()) else { return false };
        let dials = match part {
            Part::Begins => BEGINNER_DIALS,
            Part::Answers => ANSWERER_DIALS,
        };
        row.until = Some(now.plus(dials));
        true
    }

    pub(super) fn handle_failed(&mut self, peer: PeerKey, now: Moment) {
        if let Some(until) = self.rows.get_mut(&peer).and_then(|row| row.until.as_mut()) {
            *until = now;
        }
    }

    /// A direct connection with `peer` is established; returns whether a try was in progress.
    pub(super) fn handle_stands(&mut self, peer: PeerKey) -> bool {
        let Some(row) = self.rows.get_mut(&peer) else { return false };
        let is_own = row.until.take().is_some();
        if is_own {
            row.failed = 0;
        }
        is_own
    }

    /// The number of tries that ended without a connection since the last call.
    pub(super) fn take_failed(&mut self, now: Moment) -> u64 {
        let mut count = 0;
        for row in self.rows.values_mut().filter(|row| row.until.is_some_and(|until| until <= now)) {
            row.until = None;
            row.failed += u32::from(row.tries == TRIES);
            count += 1;
        }
        count
    }
}

fn pause(part: Part, failed: u32) -> Duration {
    match part {
        Part::Begins => PAUSES.pause(failed.saturating_sub(1)),
        Part::Answers => ANSWERING_PAUSE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn key(number: usize) -> PeerKey {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        PeerKey(key)
    }

    /// The start times, within `hours`, of tries with one peer that all fail; checked each second.
    fn started(part: Part, hours: u64) -> Vec<u64> {
        let mut tries = Tries::default();
        let mut started = Vec::new();
        for second in 0..hours * 3600 {
            tries.take_failed(at(second));
            if tries.begin(key(1), part, at(second)) {
                assert!(!tries.begin(key(1), part, at(second)), "one at a time");
                assert!(tries.handle_agreed(key(1), part, at(second)));
                started.push(second);
            }
        }
        started
    }

    #[test]
    fn rounds_of_three_become_ever_rarer() {
        let started = started(Part::Begins, 24);
        assert_eq!(started[..6], [0, 150, 300, 600, 750, 900]);
        let rounds: Vec<u64> = started.iter().step_by(3).copied().collect();
        let pauses: Vec<u64> = rounds.windows(2).map(|two| (two[1] - two[0]) / 60).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 320, 320]);
    }

    #[test]
    fn who_answers_dials_three_times_in_five_minutes_however_often_it_is_asked() {
        let started = started(Part::Answers, 1);
        assert_eq!(started[..4], [0, 11, 22, 300]);
        assert_eq!(started.len(), 3 * 12);
    }

    #[test]
    fn a_connection_that_stands_ends_the_try_and_the_rounds() {
        let mut tries = Tries::default();
        assert!(!tries.handle_stands(key(1)), "no try was made for it");
        (0..3).for_each(|nth| {
            assert!(tries.begin(key(1), Part::Begins, at(nth * 150)));
            assert_eq!(tries.take_failed(at(nth * 150 + 15)), 1);
        });
        assert!(tries.begin(key(1), Part::Begins, at(600)));
        assert!(tries.handle_stands(key(1)));
        assert_eq!((tries.take_failed(at(700)), tries.handle_stands(key(1))), (0, false));
        assert!(!tries.handle_agreed(key(1), Part::Begins, at(600)), "it is over");
        assert!(tries.begin(key(1), Part::Begins, at(1200)), "ten minutes again");
    }

    #[test]
    fn what_failed_early_is_counted_early_and_tried_again_no_sooner() {
        let mut tries = Tries::default();
        assert!(tries.begin(key(1), Part::Begins, at(0)));
        tries.handle_failed(key(1), at(1));
        tries.handle_failed(key(2), at(1));
        assert_eq!((tries.take_failed(at(1)), tries.take_failed(at(2))), (1, 0));
        assert!(!tries.begin(key(1), Part::Begins, at(149)) && tries.begin(key(1), Part::Begins, at(150)));
    }

    #[test]
    fn no_more_are_under_way_or_remembered_than_may_be() {
        let mut tries = Tries::default();
        let started = (0..100).filter(|nth| tries.begin(key(*nth), Part::Answers, at(0)));
        assert_eq!(started.count(), UNDER_WAY_MAX);
        for nth in 0..2 * REMEMBERED_MAX {
            let now = at(100 + 20 * nth as u64);
            tries.take_failed(now);
            assert!(tries.begin(key(1000 + nth), Part::Begins, now), "{nth}");
        }
        assert_eq!(tries.rows.len(), REMEMBERED_MAX);
    }
}
