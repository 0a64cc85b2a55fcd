//! Mark: something that happened to a host between two rows of samples.
//!
//! Pure.

use serde::{Deserialize, Serialize};
use wire::time::Time;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mark {
    /// The sensor was started; before it nothing was sampled for a while.
    Started(Time),
    /// The calendar clock was set back: this row has an earlier time than the row before it.
    ClockSetBack {
        /// Time of the row before.
        from: Time,
        /// Time of the row.
        to: Time,
    },
}

impl Mark {
    /// When it happened.
    #[must_use]
    pub const fn time(self) -> Time {
        match self {
            Mark::Started(time) | Mark::ClockSetBack { to: time, .. } => time,
        }
    }
}
