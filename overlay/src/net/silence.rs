//! When each connection was heard last, by its answered pings, and which are silent too long.
//!
//! Rules: pure; nothing is silent for as long as this daemon itself stood still, so that one that was paused, starved or suspended
//! does not hang up on everybody when it goes on; a connection told as silent is told once.
//! Not here: pinging itself (`libp2p::ping`, whose first failure is kept to itself and whose next try may take ten seconds, so
//! that its failures say too little too late), closing (`swarm_events`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Moment;

/// From an answered ping to the next one.
pub(super) const PING_INTERVAL: Duration = Duration::from_millis(3500);

/// How long an answer is waited for: connections lose nothing and keep the order, so that another ping would come later than the
/// first, and behind what waits on a slow path an answer may take its time. Two more pings would be due by then.
pub(super) const PING_TIMEOUT: Duration = Duration::from_secs(9);

/// A connection is closed when nothing was answered for so long: the ping after 3.5 s was, and two that would follow were missed;
/// with the time until it is looked for (a second) it is still less than 15 s.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(13);

/// The connections, and when each was heard last.
#[derive(Debug)]
pub(super) struct Silence<Id> {
    heard: BTreeMap<Id, Moment>,
    looked: Moment,
    look_interval: Duration,
}

impl<Id: Ord + Copy> Silence<Id> {
    /// No connection yet; [`Silence::take_silent`] will be called each `look_interval` from `now` on.
    pub(super) fn new(look_interval: Duration, now: Moment) -> Silence<Id> {
        Silence { heard: BTreeMap::new(), looked: now, look_interval }
    }

    /// It stands, or has answered.
    pub(super) fn handle_heard(&mut self, connection: Id, now: Moment) {
        self.heard.insert(connection, now);
    }

    /// It is no more.
    pub(super) fn handle_closed(&mut self, connection: Id) {
        self.heard.remove(&connection);
    }

    /// Those that are silent for [`SILENCE_MAX`] and longer; they are forgotten here.
    pub(super) fn take_silent(&mut self, now: Moment) -> Vec<Id> {
        let own_lag = now.since(self.looked).saturating_sub(self.look_interval);
        self.looked = now;
        if own_lag > Duration::ZERO {
            // What was heard after the last look is not moved beyond now.
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

    /// When connection 7 is told as silent, looked for at each of `looks`, in milliseconds.
    fn silent_at(heard: &[u64], looks: impl Iterator<Item = u64>) -> Option<u64> {
        let mut silence = Silence::new(LOOK, at(0));
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
        // One ping missed is not enough.
        let answers: Vec<u64> = (0..8).map(|nth| nth * 10_500).collect();
        assert_eq!(silent_at(&answers, each_second()), None);
    }

    #[test]
    fn a_daemon_that_stood_still_gives_nobody_up() {
        // It stood still for a minute, and hears the next answer two seconds after.
        let looks = || (1..4).chain(64..90).map(|second| second * 1000);
        assert_eq!(silent_at(&[0, 66_000], looks()), Some(79_000));
        // The silence from before and after it counts.
        assert_eq!(silent_at(&[0], looks()), Some(73_000));
        // What was heard late is not heard in the future.
        assert_eq!(silent_at(&[0, 63_900], looks()), Some(77_000));
    }

    #[test]
    fn one_that_closed_or_was_told_is_not_told_again() {
        let mut silence = Silence::new(LOOK, at(0));
        silence.handle_heard(1, at(0));
        silence.handle_heard(2, at(0));
        silence.handle_closed(1);
        (1..13).for_each(|second| assert!(silence.take_silent(at(second * 1000)).is_empty()));
        assert_eq!(silence.take_silent(at(13_000)), [2]);
        assert!(silence.take_silent(at(14_000)).is_empty());
    }
}
