//! Status of a path: followed, awaited, gone, unreadable, or not read for another reason.
//!
//! Pure. Rule: what a status means for people and for the health of the sensor is decided here, in one place.
//! Not here: looking at the path (`track`), the status of the sensor's logs as a whole ([`super::status`]).

use std::fmt::{self, Display, Formatter};
use wire::api::files::FileState;
use wire::time::Time;

/// Status of a path now. Its text is empty if there is nothing to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// It is read, or it is another name of a file that is.
    #[default]
    Following,
    /// It is configured, and there never was a file.
    Awaited,
    /// There was a file, and the path names none any more.
    Gone {
        /// When that was seen; `None`: before this start.
        since: Option<Time>,
        /// What became of the file, where that is known.
        departure: Departure,
    },
    /// The system does not let it be read: why.
    Unreadable(String),
    /// No filter reads it: why.
    NoFilter(String),
    /// It is no log but, for example, a FIFO or a compressed file: why.
    NoLog(String),
    /// It is not read for another reason, and does not recover without a change: why.
    Trouble(String),
}

/// What became of a file that its path does not name any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It has no name any more.
    Deleted,
    /// It has another name, and is read on.
    Moved,
    /// The sensor did not look when it happened.
    Unseen,
}

impl PathStatus {
    /// It is there, and reading it fails.
    pub(super) fn unreadable(error: &impl Display) -> PathStatus {
        PathStatus::Unreadable(format!("cannot read it: {error}"))
    }

    /// The state in answers.
    #[must_use]
    pub const fn state(&self) -> FileState {
        match self {
            PathStatus::Following => FileState::Following,
            PathStatus::Awaited => FileState::Awaited,
            PathStatus::Gone { .. } => FileState::Gone,
            PathStatus::Unreadable(_) => FileState::Unreadable,
            PathStatus::NoFilter(_) => FileState::NoFilter,
            PathStatus::NoLog(_) => FileState::NoLog,
            PathStatus::Trouble(_) => FileState::Trouble,
        }
    }

    /// Whether files that were started are read on: one that is gone may still be open.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, PathStatus::Following | PathStatus::Awaited | PathStatus::Gone { .. })
    }

    /// Whether something is wrong with the sensor. `is_expected`: the operator named this very path, or its
    /// name selects a filter; what a glob matches besides is only a note.
    #[must_use]
    pub const fn is_unhealthy(&self, is_expected: bool) -> bool {
        match self {
            PathStatus::Following | PathStatus::Awaited | PathStatus::Gone { .. } => false,
            PathStatus::Unreadable(_) | PathStatus::NoFilter(_) | PathStatus::NoLog(_) => is_expected,
            PathStatus::Trouble(_) => true,
        }
    }
}

impl Display for PathStatus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let new = "a new file of this name is read as soon as it comes";
        match self {
            PathStatus::Following => Ok(()),
            PathStatus::Awaited => f.write_str("there is no such file yet; it is read as soon as it comes"),
            PathStatus::Gone { departure: Departure::Deleted, .. } => {
                write!(f, "the file was deleted; {new}")
            }
            PathStatus::Gone { departure: Departure::Moved, .. } => {
                write!(f, "the file was moved away, and is read on under its other name; {new}")
            }
            PathStatus::Gone { departure: Departure::Unseen, .. } => write!(f, "the file is gone; {new}"),
            PathStatus::Unreadable(why) => write!(f, "{why}; it is read as soon as that is mended"),
            PathStatus::NoFilter(why) | PathStatus::NoLog(why) | PathStatus::Trouble(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_awaited_or_a_stranger_is_no_ill_health() {
        let gone = |departure| PathStatus::Gone { since: None, departure };
        for status in [PathStatus::Following, PathStatus::Awaited, gone(Departure::Deleted)] {
            assert!(!status.is_unhealthy(true) && status.is_read(), "{status:?}");
        }
        let why = || "why".to_owned();
        for status in [PathStatus::Unreadable(why()), PathStatus::NoFilter(why()), PathStatus::NoLog(why())] {
            assert!(
                status.is_unhealthy(true) && !status.is_unhealthy(false) && !status.is_read(),
                "{status:?}"
            );
            assert!(status.to_string().starts_with("why"));
        }
        assert!(PathStatus::Trouble(why()).is_unhealthy(false));
        for (departure, word) in
            [(Departure::Deleted, "deleted"), (Departure::Moved, "moved"), (Departure::Unseen, "is gone")]
        {
            assert!(gone(departure).to_string().contains(word));
        }
    }
}
