//! Acceptance of a representative's records: without it, other domains do not find this one.
//!
//! Pure. Rules: the time counts from the first record, or from the last that a directory accepted. A sensor
//! that does not represent its domain publishes nothing, and nothing is wrong with it. A problem is logged
//! once when it starts and once when it ends.
//! Not here: publishing (`registrar`), which daemons admit this one at all (health of the connections).

use std::time::Duration;
use wire::time::Moment;

/// How long it is no problem that no directory accepts a record: as long as the previous one is valid.
pub const UNTAKEN_MAX: Duration = super::LEASE;

/// When a record was last accepted, and whether a problem was logged.
#[derive(Debug, Default)]
pub struct Taken {
    /// Since when no directory has accepted a record; none while none is published.
    since: Option<Moment>,
    is_told: bool,
}

/// A change to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// No directory has accepted a record for this long.
    Untaken(Duration),
    /// A directory accepts records again.
    Again,
}

impl Taken {
    /// A record is published.
    pub fn stated(&mut self, now: Moment) {
        self.since.get_or_insert(now);
    }

    /// No record is published any more.
    pub fn rest(&mut self) {
        *self = Taken::default();
    }

    /// A directory accepted a record.
    pub fn taken(&mut self, now: Moment) -> Option<Tell> {
        if let Some(since) = &mut self.since {
            *since = now;
        }
        std::mem::take(&mut self.is_told).then_some(Tell::Again)
    }

    /// Check at `now` whether to log a problem.
    pub fn look(&mut self, now: Moment) -> Option<Tell> {
        let span = self.untaken(now).filter(|_| !self.is_told)?;
        self.is_told = true;
        Some(Tell::Untaken(span))
    }

    /// How long no directory has accepted a record; none up to [`UNTAKEN_MAX`].
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
