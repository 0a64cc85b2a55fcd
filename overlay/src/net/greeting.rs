//! Hellos that are said again: where one was lost, and where the calendar of this host was set.
//!
//! Not here: the first one on a connection (`swarm_events`), what is in it (`hello`).

use super::event_loop::{Connected, EventLoop};
use crate::clock;
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// After so long without an answer a hello is said again.
const GREET_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A hello is said at least so often, for the time in it: see `identity::peer_clocks::RECENT`.
const GREET_AT_LEAST_EACH: Duration = Duration::from_secs(6 * 3600);

/// A calendar that moved by more against the clock that never goes back was set.
const CALENDAR_SET_MICROS: i64 = 60_000_000;

impl EventLoop {
    /// A calendar that was set decides again which certificates hold, so refusals of before mean nothing.
    pub(super) fn look_at_calendar(&mut self, now: Moment) {
        let ahead = clock::calendar_ahead_micros();
        let moved = ahead.saturating_sub(self.calendar_ahead);
        if moved.saturating_abs() > CALENDAR_SET_MICROS {
            tracing::warn!(by_secs = moved / 1_000_000, "the clock of this host was set");
            self.redial.forgive(now);
            self.calendar_ahead = ahead;
        }
    }

    /// A hello may be lost with the connection on which it was said, while another stands; and the time in one is wrong
    /// once the calendar was set.
    pub(super) fn greet_again(&mut self, now: Moment) {
        let guests = &self.door.guests;
        let unheard = |(peer, connected): &(&PeerKey, &Connected)| {
            let since = now.since(connected.greeted);
            let moved = self.calendar_ahead.saturating_sub(connected.greeted_ahead).saturating_abs();
            (since >= GREET_AGAIN_AFTER && !guests.has_welcomed_us(**peer))
                || since >= GREET_AT_LEAST_EACH
                || moved > CALENDAR_SET_MICROS
        };
        let mut again = Vec::new();
        again.extend(self.connected.iter().filter(unheard).map(|(peer, _)| *peer));
        again.into_iter().for_each(|peer| self.greet_peer(peer));
    }
}
