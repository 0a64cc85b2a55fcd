//! How a path stands: followed, awaited, gone, unreadable, or not read for another reason.
//!
//! Pure. Rule: whoever looks at a path says what stands there; what that means for people and for the health of
//! the sensor is said here, in one place.
//! Not here: the looking (`settle`, `probe`), what is told of a sensor as a whole ([`super::board`]).

use std::fmt::Display;
use wire::api::files::FileState;
use wire::time::Time;

/// How a path stands now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It is read, or it is another name of a file that is.
    #[default]
    Following,
    /// It was named and there never was a file.
    Awaited,
    /// There was a file and the path names none any more.
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
    /// What is there is no log, such as a FIFO or a compressed file: why.
    NoLog(String),
    /// It is not read for another reason, and nothing but a change brings it back: why.
    Trouble(String),
}

/// What became of a file that its path names no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It has no name any more.
    Deleted,
    /// It has another name, and is read on.
    Moved,
    /// No one looked when it happened.
    Unseen,
}

impl Standing {
    /// It is there, and reading it fails.
    pub(super) fn unreadable(error: &impl Display) -> Standing {
        Standing::Unreadable(format!("cannot read it: {error}"))
    }

    /// As answers have it.
    #[must_use]
    pub const fn state(&self) -> FileState {
        match self {
            Standing::Following => FileState::Following,
            Standing::Awaited => FileState::Awaited,
            Standing::Gone { .. } => FileState::Gone,
            Standing::Unreadable(_) => FileState::Unreadable,
            Standing::NoFilter(_) => FileState::NoFilter,
            Standing::NoLog(_) => FileState::NoLog,
            Standing::Trouble(_) => FileState::Trouble,
        }
    }

    /// What is to be said of it, empty if nothing is.
    #[must_use]
    pub fn told(&self) -> String {
        let new = "a new file of this name is read as soon as it comes";
        match self {
            Standing::Following => String::new(),
            Standing::Awaited => "there is no such file yet; it is read as soon as it comes".into(),
            Standing::Gone { departure: Departure::Deleted, .. } => format!("the file was deleted; {new}"),
            Standing::Gone { departure: Departure::Moved, .. } => {
                format!("the file was moved away, and is read on under its other name; {new}")
            }
            Standing::Gone { departure: Departure::Unseen, .. } => format!("the file is gone; {new}"),
            Standing::Unreadable(why) => format!("{why}; it is read as soon as that is mended"),
            Standing::NoFilter(why) | Standing::NoLog(why) | Standing::Trouble(why) => why.clone(),
        }
    }

    /// Whether what was started is read on: a file that is gone may be open still.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Standing::Following | Standing::Awaited | Standing::Gone { .. })
    }

    /// Whether something is wrong with the sensor. `is_meant`: the operator named this very path, or its name says
    /// which filter reads it; what a glob found besides is a note.
    #[must_use]
    pub const fn is_ill(&self, is_meant: bool) -> bool {
        match self {
            Standing::Following | Standing::Awaited | Standing::Gone { .. } => false,
            Standing::Unreadable(_) | Standing::NoFilter(_) | Standing::NoLog(_) => is_meant,
            Standing::Trouble(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_awaited_or_a_stranger_is_no_ill_health() {
        let gone = |departure| Standing::Gone { since: None, departure };
        for standing in [Standing::Following, Standing::Awaited, gone(Departure::Deleted)] {
            assert!(!standing.is_ill(true) && standing.is_read(), "{standing:?}");
        }
        let why = || "why".to_owned();
        for standing in [Standing::Unreadable(why()), Standing::NoFilter(why()), Standing::NoLog(why())] {
            assert!(standing.is_ill(true) && !standing.is_ill(false) && !standing.is_read(), "{standing:?}");
            assert!(standing.told().starts_with("why"));
        }
        assert!(Standing::Trouble(why()).is_ill(false));
        for (departure, word) in
            [(Departure::Deleted, "deleted"), (Departure::Moved, "moved"), (Departure::Unseen, "is gone")]
        {
            assert!(gone(departure).told().contains(word));
        }
    }
}
