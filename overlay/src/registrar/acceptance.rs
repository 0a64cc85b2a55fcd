//! Acceptance of a representative's records: without it, other domains do not find this one.
//!
//! Pure. Rules: the time counts from the first record, or from the last that a directory accepted. A sensor
//! that does not represent its domain publishes nothing, and nothing is wrong with it. A problem is logged
//! once when it starts and once when it ends.
//! Not here: publishing (`registrar`), which daemons admit this one at all (health of the connections).

use std::time::Duration;
use wire::time::Moment;

/// How long it is no problem that no directory accepts a record: as long as the previous one is valid.
pub const UNACCEPTED_MAX: Duration = super::LEASE;

/// When a record was last accepted, and whether a problem was logged.
#[derive(Debug, Default)]
pub struct Acceptance {
    /// Since when no directory has accepted a record; none while none is published.
    since: Option<Moment>,
    is_logged: bool,
}

/// A change to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No directory has accepted a record for this long.
    Unaccepted(Duration),
    /// A directory accepts records again.
    Again,
}

impl Acceptance {
    /// A record is published.
    pub fn published(&mut self, now: Moment) {
        self.since.get_or_insert(now);
    }

    /// No record is published any more.
    pub fn rest(&mut self) {
        *self = Acceptance::default();
    }

    /// A directory accepted a record.
    pub fn accepted(&mut self, now: Moment) -> Option<Change> {
        if let Some(since) = &mut self.since {
            *since = now;
        }
        std::mem::take(&mut self.is_logged).then_some(Change::Again)
    }

    /// Check at `now` whether to log a problem.
    pub fn look(&mut self, now: Moment) -> Option<Change> {
        let span = self.unaccepted(now).filter(|_| !self.is_logged)?;
        self.is_logged = true;
        Some(Change::Unaccepted(span))
    }

    /// How long no directory has accepted a record; none up to [`UNACCEPTED_MAX`].
    #[must_use]
    pub fn unaccepted(&self, now: Moment) -> Option<Duration> {
        self.since.map(|since| now.since(since)).filter(|span| *span > UNACCEPTED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn a_record_that_no_directory_accepts_is_logged_once() {
        let mut acceptance = Acceptance::default();
        assert_eq!(
            (acceptance.unaccepted(at(99)), acceptance.look(at(99))),
            (None, None),
            "nothing was published"
        );
        for secs in [100, 105, 110] {
            acceptance.published(at(secs));
        }
        assert_eq!(
            (acceptance.unaccepted(at(115)), acceptance.look(at(115))),
            (None, None),
            "the lease holds"
        );
        assert_eq!(acceptance.look(at(116)), Some(Change::Unaccepted(Duration::from_secs(16))));
        assert_eq!(acceptance.look(at(117)), None, "once");
        assert_eq!(acceptance.unaccepted(at(160)), Some(Duration::from_secs(60)));
        assert_eq!(acceptance.accepted(at(161)), Some(Change::Again));
        assert_eq!(acceptance.accepted(at(162)), None, "once");
        assert_eq!(
            (acceptance.unaccepted(at(177)), acceptance.unaccepted(at(178))),
            (None, Some(Duration::from_secs(16)))
        );
    }

    #[test]
    fn a_sensor_that_no_longer_represents_has_no_problem() {
        let mut acceptance = Acceptance::default();
        acceptance.published(at(1));
        assert!(acceptance.look(at(50)).is_some());
        acceptance.rest();
        assert_eq!(
            (acceptance.unaccepted(at(99)), acceptance.look(at(99)), acceptance.accepted(at(99))),
            (None, None, None)
        );
    }
}
