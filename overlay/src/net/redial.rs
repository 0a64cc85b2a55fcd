//! Which daemons to hold a connection to, and when to try again.
//!
//! Pure. Invariant: a wanted daemon is tried for ever, ever more rarely up to [`PAUSE_MAX`], never twice at
//! once; the pauses are jittered, so that a thousand daemons whose directory comes back do not arrive in
//! one second.
//! Not here: looking names up, dialling (`event_loop`).

use crate::dice::Dice;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::address::Address;
use wire::id::PeerKey;
use wire::time::Moment;

/// The pause after the first failure.
pub const PAUSE_MIN: Duration = Duration::from_millis(250);

/// The longest pause: a site that comes back is found again within it.
pub const PAUSE_MAX: Duration = Duration::from_secs(15);

/// A connection that held so long counts as having worked: the next pause is short again.
const HELD_WELL: Duration = Duration::from_secs(10);

/// Most daemons wanted at a time: a representative dials nobody, a member three, a directory seven; the
/// rest is room.
pub const WANTED_MAX: usize = 256;

/// Most addresses kept of one daemon.
pub const ENDPOINTS_MAX: usize = 16;

/// Whom to reach: a daemon by its key, or whoever answers at a seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// This daemon and no other.
    Peer(PeerKey),
    /// Whoever is there; its certificate decides.
    Seed(Address),
}

/// Try this now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// Whom.
    pub target: Target,
    /// Where, in this order.
    pub endpoints: Vec<Address>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting { until: Moment },
    Dialling,
    Connected { since: Moment },
}

#[derive(Debug)]
struct Wanted {
    endpoints: Vec<Address>,
    state: State,
    failures: u32,
}

/// The table of wanted daemons.
#[derive(Debug)]
pub struct Redial {
    wanted: BTreeMap<Target, Wanted>,
    dice: Dice,
}

/// No place for another wanted daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("already {WANTED_MAX} daemons are dialled, the most that are")]
pub struct Full;

impl Redial {
    /// An empty table; `seed` decides the jitter.
    #[must_use]
    pub fn new(seed: u64) -> Redial {
        Redial { wanted: BTreeMap::new(), dice: Dice::new(seed) }
    }

    /// Hold a connection to `target` at one of `endpoints`, which replace those known before.
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
        if let Some(wanted) = self.wanted.get_mut(&target) {
            wanted.endpoints = endpoints;
            return Ok(());
        }
        if self.wanted.len() >= WANTED_MAX {
            return Err(Full);
        }
        let state = if connected { State::Connected { since: now } } else { State::Waiting { until: now } };
        self.wanted.insert(target, Wanted { endpoints, state, failures: 0 });
        Ok(())
    }

    /// No longer.
    pub fn forget(&mut self, target: &Target) {
        self.wanted.remove(target);
    }

    /// Whether a connection to `target` is to be held.
    #[must_use]
    pub fn wants(&self, target: &Target) -> bool {
        self.wanted.contains_key(target)
    }

    /// A connection to `target` stands.
    pub fn handle_connected(&mut self, target: &Target, now: Moment) {
        if let Some(wanted) = self.wanted.get_mut(target) {
            wanted.state = State::Connected { since: now };
        }
    }

    /// The connection is gone, or the attempt failed.
    pub fn handle_failed(&mut self, target: &Target, now: Moment) {
        let roll = self.dice.draw();
        let Some(wanted) = self.wanted.get_mut(target) else { return };
        let held_well = matches!(wanted.state, State::Connected { since } if now.since(since) >= HELD_WELL);
        wanted.failures = if held_well { 0 } else { wanted.failures.saturating_add(1) };
        let until = now.plus(pause(wanted.failures, roll));
        wanted.state = State::Waiting { until };
    }

    /// The next attempt that is due at `now`.
    pub fn poll_dial(&mut self, now: Moment) -> Option<Dial> {
        let due = |wanted: &&mut Wanted| matches!(wanted.state, State::Waiting { until } if until <= now);
        let (target, wanted) = self.wanted.iter_mut().find(|(_, wanted)| due(wanted))?;
        wanted.state = State::Dialling;
        Some(Dial { target: target.clone(), endpoints: wanted.endpoints.clone() })
    }

    /// When the next attempt is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.wanted
            .values()
            .filter_map(|wanted| match wanted.state {
                State::Waiting { until } => Some(until),
                State::Dialling | State::Connected { .. } => None,
            })
            .min()
    }
}

/// Doubling up to [`PAUSE_MAX`], then between half and the whole of it by `roll`.
fn pause(failures: u32, roll: u64) -> Duration {
    let whole = PAUSE_MIN.saturating_mul(1 << failures.min(6)).min(PAUSE_MAX);
    let half_millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX) / 2;
    Duration::from_millis(half_millis + roll % half_millis.max(1))
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
    fn what_is_forgotten_is_not_dialled() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        redial.keep(target.clone(), endpoints, false, at(0)).expect("room");
        redial.forget(&target);
        redial.handle_failed(&target, at(0));
        assert_eq!((redial.poll_dial(at(1000)), redial.poll_timeout()), (None, None));
    }
}
