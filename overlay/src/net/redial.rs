//! Retry schedule of dials: which daemons to hold a connection to, and when to dial each again.
//!
//! Pure. Invariant: a target is dialled for ever, with pauses that grow up to [`PAUSE_MAX`], never twice at
//! once; the pauses are jittered, so that a thousand daemons whose directory comes back do not arrive in one
//! second. A target that refuses this daemon, or is refused by it, is dialled with longer pauses, up to
//! [`REFUSED_PAUSE_MAX`], however often it is removed and added meanwhile.
//! Not here: resolving names, dialling (`dialling`).

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::address::Address;
use wire::backoff::{self, Backoff};
use wire::id::PeerKey;
use wire::time::Moment;

/// Base of the pauses, which are doubled: the first failure is followed by one to two of these, a lost
/// connection that had lasted by half to one.
pub const PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest pause: a site that comes back is connected again within it.
pub const PAUSE_MAX: Duration = Duration::from_secs(15);

/// The longest pause after a refusal: a directory that now admits the domain is connected within a minute,
/// and a revoked daemon asks no more often than that.
pub const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Before the jitter, the pauses after failures and lost connections, and those after refusals.
const PAUSES: Backoff = Backoff::new(PAUSE_MIN, PAUSE_MAX);
const REFUSED_PAUSES: Backoff = Backoff::new(PAUSE_MIN, REFUSED_PAUSE_MAX);

/// Most refusals remembered, of current and of removed targets; beyond them the one that ends soonest is
/// dropped.
const REFUSED_MAX: usize = TARGETS_MAX;

/// A connection that lasted this long counts as having worked: the next pause is short again.
const HELD_WELL: Duration = Duration::from_secs(10);

/// Most targets at a time: a representative dials no daemon, a member three, a directory seven; the rest is
/// room.
pub const TARGETS_MAX: usize = 256;

/// Most addresses stored of one target.
pub const ENDPOINTS_MAX: usize = 16;

/// Target of a dial: a daemon by its key, or whatever daemon answers at a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// This daemon and no other.
    Peer(PeerKey),
    /// Any daemon at this address; its certificate decides.
    Seed(Address),
}

/// A dial that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    pub target: Target,
    /// Addresses, in this order.
    pub endpoints: Vec<Address>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting { until: Moment },
    Dialling,
    Connected { since: Moment },
}

#[derive(Debug)]
struct DialEntry {
    endpoints: Vec<Address>,
    state: State,
    failures: u32,
}

/// Refusals between a target and this daemon, in either direction.
#[derive(Clone, Copy, Debug)]
struct RefusalEntry {
    times: u32,
    until: Moment,
}

/// The table of targets and refusals.
#[derive(Debug)]
pub struct Redial {
    entries: BTreeMap<Target, DialEntry>,
    refused: BTreeMap<Target, RefusalEntry>,
    dice: Dice,
}

/// No place for another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("already {TARGETS_MAX} daemons are dialled, the most that are")]
pub struct Full;

impl Redial {
    /// An empty table; `seed` decides the jitter.
    #[must_use]
    pub fn new(seed: u64) -> Redial {
        Redial { entries: BTreeMap::new(), refused: BTreeMap::new(), dice: Dice::new(seed) }
    }

    /// Hold a connection to `target` at one of `endpoints`, which replace the previous ones.
    ///
    /// # Errors
    /// If the table is full; it is then as before.
    pub fn keep(
        &mut self,
        target: Target,
        mut endpoints: Vec<Address>,
        connected: bool,
        now: Moment,
    ) -> Result<(), Full> {
        endpoints.truncate(ENDPOINTS_MAX);
        if let Some(entries) = self.entries.get_mut(&target) {
            entries.endpoints = endpoints;
            return Ok(());
        }
        if self.entries.len() >= TARGETS_MAX {
            return Err(Full);
        }
        let until = self.refused.get(&target).map_or(now, |refused| refused.until.max(now));
        let state = if connected { State::Connected { since: now } } else { State::Waiting { until } };
        self.entries.insert(target, DialEntry { endpoints, state, failures: 0 });
        Ok(())
    }

    /// Stop holding a connection to `target`.
    pub fn forget(&mut self, target: &Target) {
        self.entries.remove(target);
    }

    /// Whether a connection to `target` is to be held.
    #[must_use]
    pub fn wants(&self, target: &Target) -> bool {
        self.entries.contains_key(target)
    }

    /// A connection to `target` is established.
    pub fn handle_connected(&mut self, target: &Target, now: Moment) {
        if let Some(entries) = self.entries.get_mut(target) {
            entries.state = State::Connected { since: now };
        }
    }

    /// The connection ended, or the dial failed.
    pub fn handle_failed(&mut self, target: &Target, now: Moment) {
        let roll = self.dice.draw();
        let Some(entries) = self.entries.get_mut(target) else { return };
        let held_well = matches!(entries.state, State::Connected { since } if now.since(since) >= HELD_WELL);
        entries.failures = if held_well { 0 } else { entries.failures.saturating_add(1) };
        let refused = self.refused.get(target).map_or(now, |refused| refused.until);
        let until = now.plus(jittered(PAUSES.pause(entries.failures), roll)).max(refused);
        entries.state = State::Waiting { until };
    }

    /// The target answered, and one side refused the other.
    pub fn handle_refused(&mut self, target: &Target, now: Moment) {
        let roll = self.dice.draw();
        if !self.refused.contains_key(target) && self.refused.len() >= REFUSED_MAX {
            let soonest = self.refused.iter().min_by_key(|(_, refused)| refused.until);
            if let Some(soonest) = soonest.map(|(target, _)| target.clone()) {
                self.refused.remove(&soonest);
            }
        }
        let refused = self.refused.entry(target.clone()).or_insert(RefusalEntry { times: 0, until: now });
        // Both sides report the refusal on one connection: it counts once.
        if refused.until > now {
            return;
        }
        refused.times = refused.times.saturating_add(1);
        refused.until = now.plus(jittered(REFUSED_PAUSES.pause(refused.times.saturating_add(1)), roll));
        if let Some(entries) = self.entries.get_mut(target)
            && let State::Waiting { until } = &mut entries.state
        {
            *until = refused.until.max(*until);
        }
    }

    /// Drop all refusals: their reasons no longer hold. The refused targets are dialled now.
    pub fn forgive(&mut self, now: Moment) {
        for target in std::mem::take(&mut self.refused).into_keys() {
            if let Some(entries) = self.entries.get_mut(&target)
                && let State::Waiting { until } = &mut entries.state
            {
                *until = now.min(*until);
            }
        }
    }

    /// The target admits this daemon, or is admitted by it.
    pub fn handle_welcomed(&mut self, target: &Target) {
        self.refused.remove(target);
    }

    /// The next dial that is due at `now`.
    pub fn poll_dial(&mut self, now: Moment) -> Option<Dial> {
        let due =
            |entries: &&mut DialEntry| matches!(entries.state, State::Waiting { until } if until <= now);
        let (target, entries) = self.entries.iter_mut().find(|(_, entries)| due(entries))?;
        entries.state = State::Dialling;
        Some(Dial { target: target.clone(), endpoints: entries.endpoints.clone() })
    }

    /// When the next dial is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.entries
            .values()
            .filter_map(|entries| match entries.state {
                State::Waiting { until } => Some(until),
                State::Dialling | State::Connected { .. } => None,
            })
            .min()
    }
}

/// A random time between half of `whole` and the whole of it.
fn jittered(whole: Duration, roll: u64) -> Duration {
    backoff::between(whole / 2, whole, roll)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn peer() -> (Target, Vec<Address>) {
        (Target::Peer(PeerKey([1; 32])), vec!["127.0.0.1:1".parse().expect("good")])
    }

    #[test]
    fn a_dead_daemon_is_tried_for_ever_and_ever_more_rarely() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        redial.keep(target.clone(), endpoints.clone(), false, at(0)).expect("room");
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..20 {
            assert_eq!(
                redial.poll_dial(now),
                Some(Dial { target: target.clone(), endpoints: endpoints.clone() })
            );
            assert_eq!(redial.poll_dial(now), None, "never twice at once");
            redial.handle_failed(&target, now);
            let next = redial.poll_timeout().expect("tried again");
            pauses.push(next.since(now));
            assert_eq!(redial.poll_dial(at(next.0.as_millis() as u64 - 1)), None);
            now = next;
        }
        assert!(pauses[0] <= PAUSE_MIN * 2 && pauses[19] >= PAUSE_MAX / 2, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= PAUSE_MAX));
        assert!(pauses[10..].windows(2).any(|two| two[0] != two[1]), "jittered");
    }

    #[test]
    fn a_connection_that_held_is_sought_again_at_once() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        redial.keep(target.clone(), endpoints, false, at(0)).expect("room");
        for _ in 0..10 {
            redial.handle_failed(&target, at(0));
        }
        redial.handle_connected(&target, at(60_000));
        assert_eq!(redial.poll_timeout(), None);
        redial.handle_failed(&target, at(75_000));
        assert!(redial.poll_timeout().expect("tried again") <= at(75_250));
    }

    #[test]
    fn a_flapping_connection_is_not() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        redial.keep(target.clone(), endpoints, false, at(0)).expect("room");
        for _ in 0..10 {
            redial.handle_connected(&target, at(0));
            redial.handle_failed(&target, at(100));
        }
        assert!(redial.poll_timeout().expect("tried again") >= at(7500));
    }

    #[test]
    fn a_refusing_peer_is_dialled_ever_more_rarely_though_it_is_requested_each_time() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        let (mut now, mut dials) = (at(0), Vec::new());
        while now < at(600_000) {
            // Like the election: the target is held for four seconds, forgotten, and held again.
            redial.keep(target.clone(), endpoints.clone(), false, now).expect("room");
            if redial.poll_dial(now).is_some() {
                dials.push(now);
                redial.handle_connected(&target, now);
                redial.handle_refused(&target, now);
                redial.handle_failed(&target, now);
            }
            now = now.plus(Duration::from_millis(100));
            if now.0.as_millis() % 4000 == 0 {
                redial.forget(&target);
            }
        }
        let pauses: Vec<Duration> = dials.windows(2).map(|two| two[1].since(two[0])).collect();
        assert!(dials.len() <= 26, "{} dials in ten minutes: {pauses:?}", dials.len());
        assert!(pauses[0] <= Duration::from_secs(2), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= REFUSED_PAUSE_MAX * 11 / 10), "{pauses:?}");
        redial.handle_welcomed(&target);
        redial.forget(&target);
        redial.keep(target.clone(), endpoints, false, now).expect("room");
        assert!(redial.poll_dial(now).is_some(), "welcomed, it is dialled at once");
    }

    #[test]
    fn what_is_forgotten_is_not_dialled() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        redial.keep(target.clone(), endpoints, false, at(0)).expect("room");
        redial.forget(&target);
        redial.handle_failed(&target, at(0));
        assert_eq!((redial.poll_dial(at(1000)), redial.poll_timeout()), (None, None));
    }
}
