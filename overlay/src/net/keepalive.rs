//! Keepalive of connections: when each one last answered a ping, and which have been silent too long.
//!
//! Rules: pure; time in which this daemon itself was stopped does not count as silence, so a daemon that was
//! paused, starved or suspended does not close all connections when it resumes; a silent connection is
//! reported once.
//! Not here: pinging itself (`libp2p::ping`; it swallows the first failure, and its next try may take ten
//! seconds, so its failures come too late), closing (`swarm_events`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Moment;

/// Pause between an answered ping and the next one.
pub(super) const PING_INTERVAL: Duration = Duration::from_millis(3500);

/// Timeout of a ping. Connections lose nothing and keep the order, so a second ping would arrive later than
/// the first, and an answer may be delayed by data queued on a slow path. Two more pings would be due within
/// it.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(9);

/// A connection is closed after this time without an answer: the ping after 3.5 s and the two that would
/// follow were missed. With the interval of the check (a second) it is still less than 15 s.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(13);

/// The last answer of each connection.
#[derive(Debug)]
pub(super) struct Keepalive<Id> {
    heard: BTreeMap<Id, Moment>,
    looked: Moment,
    look_interval: Duration,
}

impl<Id: Ord + Copy> Keepalive<Id> {
    /// A table without connections; [`Keepalive::take_silent`] is to be called every `look_interval` from `now`
    /// on.
    pub(super) fn new(look_interval: Duration, now: Moment) -> Keepalive<Id> {
        Keepalive { heard: BTreeMap::new(), looked: now, look_interval }
    }

    /// The connection was established, or answered.
    pub(super) fn handle_heard(&mut self, connection: Id, now: Moment) {
        self.heard.insert(connection, now);
    }

    pub(super) fn handle_closed(&mut self, connection: Id) {
        self.heard.remove(&connection);
    }

    /// Remove and return the connections that have been silent for [`SILENCE_MAX`] or longer.
    pub(super) fn take_silent(&mut self, now: Moment) -> Vec<Id> {
        let own_lag = now.since(self.looked).saturating_sub(self.look_interval);
        self.looked = now;
        if own_lag > Duration::ZERO {
            // An answer after the last check is not moved beyond now.
            self.heard.values_mut().for_each(|heard| *heard = heard.plus(own_lag).min(now));
        }
        let silent = self.heard.iter().filter(|(_, heard)| now.since(**heard) >= SILENCE_MAX);
        let silent: Vec<Id> = silent.map(|(connection, _)| *connection).collect();
        silent.iter().for_each(|connection| self.handle_closed(*connection));
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(1_000_000 + millis))
    }

    /// The check, in milliseconds, that reports connection 7 as silent; `looks` are the times of the checks.
    fn silent_at(heard: &[u64], looks: impl Iterator<Item = u64>) -> Option<u64> {
        let mut silence = Keepalive::new(LOOK, at(0));
        let mut heard = heard.iter().copied().peekable();
        for look in looks {
            while let Some(answered) = heard.next_if(|answered| *answered <= look) {
                silence.handle_heard(7, at(answered));
            }
            if silence.take_silent(at(look)) == [7] {
                return Some(look);
            }
        }
        None
    }

    #[test]
    fn who_answers_nothing_is_given_up_within_fifteen_seconds() {
        let each_second = || (1..60).map(|nth| nth * 1000);
        assert_eq!(silent_at(&[10], each_second()), Some(14_000));
        assert_eq!(silent_at(&[0, 3_500, 7_000], each_second()), Some(20_000));
        // One missed ping is not enough.
        let answers: Vec<u64> = (0..8).map(|nth| nth * 10_500).collect();
        assert_eq!(silent_at(&answers, each_second()), None);
    }

    #[test]
    fn a_daemon_that_stood_still_gives_no_peer_up() {
        // The daemon was stopped for a minute, and receives the next answer two seconds later.
        let looks = || (1..4).chain(64..90).map(|second| second * 1000);
        assert_eq!(silent_at(&[0, 66_000], looks()), Some(79_000));
        // The silence before and after the stop counts.
        assert_eq!(silent_at(&[0], looks()), Some(73_000));
        // A late answer does not get a time in the future.
        assert_eq!(silent_at(&[0, 63_900], looks()), Some(77_000));
    }

    #[test]
    fn a_closed_or_reported_connection_is_not_reported_again() {
        let mut silence = Keepalive::new(LOOK, at(0));
        silence.handle_heard(1, at(0));
        silence.handle_heard(2, at(0));
        silence.handle_closed(1);
        (1..13).for_each(|second| assert!(silence.take_silent(at(second * 1000)).is_empty()));
        assert_eq!(silence.take_silent(at(13_000)), [2]);
        assert!(silence.take_silent(at(14_000)).is_empty());
    }
}
