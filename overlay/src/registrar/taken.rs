//! Whether directories take what a representative states: one that states without success is not found by other domains.
//!
//! Pure. Rules: it counts from the first statement, or from the last that a directory took; a sensor that represents
//! nothing states nothing, and nothing is wrong with it. Said once when it begins and once when it is over.
//! Not here: stating (`registrar`), which daemons let this one in at all (health of the connections).

use std::time::Duration;
use wire::time::Moment;

/// So long no one need take it: as long as the one before holds.
pub const UNTAKEN_MAX: Duration = super::LEASE;

/// What was taken, and what was said of it.
#[derive(Debug, Default)]
pub struct Taken {
    /// Since when no directory took anything that was stated; none while nothing is.
    since: Option<Moment>,
    is_told: bool,
}

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// No one took it for so long.
    Untaken(Duration),
    /// Somebody takes it again.
    Again,
}

impl Taken {
    /// Something is stated.
    pub fn stated(&mut self, now: Moment) {
        self.since.get_or_insert(now);
    }

    /// Nothing is stated any more.
    pub fn rest(&mut self) {
        *self = Taken::default();
    }

    /// A directory took it.
    pub fn taken(&mut self, now: Moment) -> Option<Tell> {
        if let Some(since) = &mut self.since {
            *since = now;
        }
        std::mem::take(&mut self.is_told).then_some(Tell::Again)
    }

    /// Time passed.
    pub fn look(&mut self, now: Moment) -> Option<Tell> {
        let span = self.untaken(now).filter(|_| !self.is_told)?;
        self.is_told = true;
        Some(Tell::Untaken(span))
    }

    /// For how long no directory took it; none while that is no longer than [`UNTAKEN_MAX`].
    #[must_use]
    pub fn untaken(&self, now: Moment) -> Option<Duration> {
        self.since.map(|since| now.since(since)).filter(|span| *span > UNTAKEN_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn what_nobody_takes_is_told_once_and_counted_on() {
        let mut taken = Taken::default();
        assert_eq!((taken.untaken(at(99)), taken.look(at(99))), (None, None), "nothing was stated");
        for secs in [100, 105, 110] {
            taken.stated(at(secs));
        }
        assert_eq!((taken.untaken(at(115)), taken.look(at(115))), (None, None), "the lease holds");
        assert_eq!(taken.look(at(116)), Some(Tell::Untaken(Duration::from_secs(16))));
        assert_eq!(taken.look(at(117)), None, "once");
        assert_eq!(taken.untaken(at(160)), Some(Duration::from_secs(60)));
        assert_eq!(taken.taken(at(161)), Some(Tell::Again));
        assert_eq!(taken.taken(at(162)), None, "once");
        assert_eq!((taken.untaken(at(177)), taken.untaken(at(178))), (None, Some(Duration::from_secs(16))));
    }

    #[test]
    fn who_represents_nothing_any_more_states_nothing_in_vain() {
        let mut taken = Taken::default();
        taken.stated(at(1));
        assert!(taken.look(at(50)).is_some());
        taken.rest();
        assert_eq!((taken.untaken(at(99)), taken.look(at(99)), taken.taken(at(99))), (None, None, None));
    }
}
