//! Repeated hellos: where an answer is missing, every six hours, and when the clock of this host was set.
//!
//! Not here: the first hello on a connection (`swarm_events`), its content (`hello`).

use super::event_loop::{Connected, EventLoop};
use crate::clock;
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Retry interval of a hello without an answer.
const GREET_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Longest interval between two hellos, for the time in them: see `identity::peer_clocks::RECENT`.
const GREET_AT_LEAST_EACH: Duration = Duration::from_secs(6 * 3600);

/// The wall clock counts as set if it moved by more than this against the monotonic clock.
const CALENDAR_SET_MICROS: i64 = 60_000_000;

impl EventLoop {
    /// Detect that the wall clock was set. The validity of certificates is then decided again, so earlier
    /// refusals are dropped.
    pub(super) fn look_at_calendar(&mut self, now: Moment) {
        let ahead = clock::calendar_ahead_micros();
        let moved = ahead.saturating_sub(self.calendar_ahead);
        if moved.saturating_abs() > CALENDAR_SET_MICROS {
            tracing::warn!(by_secs = moved / 1_000_000, "the clock of this host was set");
            self.redial.forgive(now);
            self.calendar_ahead = ahead;
        }
    }

    /// Repeat hellos. One may be lost with its connection while another connection is open, and the time in
    /// it is wrong once the clock was set.
    pub(super) fn greet_again(&mut self, now: Moment) {
        let connected_peers = &self.acceptor.connected_peers;
        let unheard = |(peer, connected): &(&PeerKey, &Connected)| {
            let since = now.since(connected.greeted);
            let moved = self.calendar_ahead.saturating_sub(connected.greeted_ahead).saturating_abs();
            (since >= GREET_AGAIN_AFTER && !connected_peers.has_admitted_us(**peer))
                || since >= GREET_AT_LEAST_EACH
                || moved > CALENDAR_SET_MICROS
        };
        let mut again = Vec::new();
        again.extend(self.connected.iter().filter(unheard).map(|(peer, _)| *peer));
        again.into_iter().for_each(|peer| self.greet_peer(peer));
    }
}
