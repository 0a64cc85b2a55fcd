//! Which daemons to hold a connection to, and when to try again.
//!
//! Pure. Invariant: a wanted daemon is tried for ever, ever more rarely up to [`PAUSE_MAX`], never twice at
//! once; the pauses are jittered, so that a thousand daemons whose directory comes back do not arrive in
//! one second. One that is there and does not let this daemon in, or is not let in by it, is tried more rarely still,
//! up to [`REFUSED_PAUSE_MAX`], however often it is wanted again meanwhile.
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

/// The longest pause after a refusal: a directory that admits a domain now is found within a minute, and whoever was
/// put out asks no more often than that.
pub const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Refusals remembered, of wanted daemons and of those that are no longer; beyond them the one that is over soonest goes.
const REFUSED_MAX: usize = WANTED_MAX;

/// A connection that held so long counts as having worked: the next pause is short again.
const HELD_WELL: Duration = Duration::from_secs(10);

/// Most daemons wanted at a time: a representative dials no one, a member three, a directory seven; the
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

/// A daemon that did not let this one in, or was not let in.
#[derive(Clone, Copy, Debug)]
struct Refused {
    times: u32,
    until: Moment,
}

/// The table of wanted daemons.
#[derive(Debug)]
pub struct Redial {
    wanted: BTreeMap<Target, Wanted>,
    refused: BTreeMap<Target, Refused>,
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
        Redial { wanted: BTreeMap::new(), refused: BTreeMap::new(), dice: Dice::new(seed) }
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
        let until = self.refused.get(&target).map_or(now, |refused| refused.until.max(now));
        let state = if connected { State::Connected { since: now } } else { State::Waiting { until } };
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
        let refused = self.refused.get(target).map_or(now, |refused| refused.until);
        let until = now.plus(pause(wanted.failures, roll)).max(refused);
        wanted.state = State::Waiting { until };
    }

    /// It is there, and either side does not let the other in.
    pub fn handle_refused(&mut self, target: &Target, now: Moment) {
        let roll = self.dice.draw();
        if !self.refused.contains_key(target) && self.refused.len() >= REFUSED_MAX {
            let soonest = self.refused.iter().min_by_key(|(_, refused)| refused.until);
            if let Some(soonest) = soonest.map(|(target, _)| target.clone()) {
                self.refused.remove(&soonest);
            }
        }
        let refused = self.refused.entry(target.clone()).or_insert(Refused { times: 0, until: now });
        // Both sides say so on one connection.
        if refused.until > now {
            return;
        }
        refused.times = refused.times.saturating_add(1);
        let whole = PAUSE_MIN.saturating_mul(2 << refused.times.min(8)).min(REFUSED_PAUSE_MAX);
        refused.until = now.plus(jittered(whole, roll));
        if let Some(wanted) = self.wanted.get_mut(target)
            && let State::Waiting { until } = &mut wanted.state
        {
            *until = refused.until.max(*until);
        }
    }

    /// What daemons were refused for holds no longer: try them now.
    pub fn forgive(&mut self, now: Moment) {
        for target in std::mem::take(&mut self.refused).into_keys() {
            if let Some(wanted) = self.wanted.get_mut(&target)
                && let State::Waiting { until } = &mut wanted.state
            {
                *until = now.min(*until);
            }
        }
    }

    /// It lets this daemon in, or is let in.
    pub fn handle_welcomed(&mut self, target: &Target) {
        self.refused.remove(target);
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
    jittered(whole, roll)
}

/// Between half and the whole of `whole`.
fn jittered(whole: Duration, roll: u64) -> Duration {
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
    fn who_refuses_is_asked_ever_more_rarely_though_it_is_wanted_anew_each_time() {
        let mut redial = Redial::new(1);
        let (target, endpoints) = peer();
        let (mut now, mut dials) = (at(0), Vec::new());
        while now < at(600_000) {
            // As the election does: wanted for four seconds, forgotten, wanted again.
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
