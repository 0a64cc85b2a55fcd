//! Intake of statements from representatives: admitted, on their own connection, in time.
//!
//! Pure. Rule: a lease starts only here, with a number that its representative has not used before. If this
//! directory was paused while a statement waited, the pause is subtracted from its lease.
//! Not here: what other directories bring (`replicate`), the table (`registry`).

use crate::opened::{Opened, OpenedDenial, OpenedLeave};
use crate::registry::outcome::Accepted;
use crate::replicate::{HINT_DELAY, Refused, Replicas, TICK_INTERVAL};
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::time::Moment;

/// A gap longer than this after a tick means that the process was paused or overloaded. A statement may have
/// waited as long.
const AWAY: Duration = Duration::from_secs(1);

/// Statements that waited during a pause are processed within this time after it.
const CATCH_UP: Duration = Duration::from_secs(1);

impl Replicas {
    /// Process the record that a representative sent on the connection of `from`.
    ///
    /// # Errors
    /// If it is not admitted or the table refuses it.
    pub fn state(&mut self, from: PeerKey, opened: Opened, now: Moment) -> Result<Accepted, Refused> {
        self.check_own(from, opened.peer())?;
        let domain = opened.record().domain.clone();
        let root = opened.record().reach.as_ref().map_or(from, |reach| reach.root);
        self.admission.admit(&domain, root, now)?;
        let waited = self.look_at_clock(now);
        let accepted = self.registry.register_waited(opened, waited, now)?;
        if accepted != Accepted::Unchanged {
            self.schedule_hint(domain, now);
        }
        Ok(accepted)
    }

    /// Process the leave of a domain, sent by its representative. Returns whether it is new.
    ///
    /// # Errors
    /// As [`Replicas::state`].
    pub fn leave(&mut self, from: PeerKey, left: OpenedLeave, now: Moment) -> Result<bool, Refused> {
        self.check_own(from, left.leave.peer)?;
        let domain = left.leave.domain.clone();
        self.admission.admit(&domain, left.leave.root, now)?;
        let is_new = self.registry.leave(left, Duration::ZERO, now)?;
        if is_new {
            self.schedule_hint(domain, now);
        }
        Ok(is_new)
    }

    /// Process a revocation list. Returns whether it is new. Any peer may send it.
    ///
    /// # Errors
    /// As [`Replicas::state`].
    pub fn deny(&mut self, denial: OpenedDenial, now: Moment) -> Result<bool, Refused> {
        let domain = denial.domain.clone();
        self.admission.admit(&domain, denial.root, now)?;
        let is_new = self.registry.deny(denial)?;
        if is_new {
            self.schedule_hint(domain, now);
        }
        Ok(is_new)
    }

    /// Check the clock for a pause. Returns how long a statement processed now may have waited: as long as
    /// the pause.
    pub(crate) fn look_at_clock(&mut self, now: Moment) -> Duration {
        if let Some(ticked) = self.ticked {
            let away = now.since(ticked);
            if away > TICK_INTERVAL + AWAY {
                self.away = Some((away, now.plus(CATCH_UP)));
            }
        }
        self.ticked = Some(now);
        match self.away {
            Some((away, until)) if now < until => away,
            Some(_) | None => {
                self.away = None;
                Duration::ZERO
            }
        }
    }

    fn check_own(&self, from: PeerKey, signer: PeerKey) -> Result<(), Refused> {
        if from == signer { Ok(()) } else { Err(Refused::NotOwn { from, signer }) }
    }

    fn schedule_hint(&mut self, domain: DomainName, now: Moment) {
        if !self.peers.is_empty() {
            self.changed.insert(domain);
            self.hint_at.get_or_insert(now.plus(HINT_DELAY));
        }
    }
}
