//! Display of times and durations in refusals and health messages.
//!
//! Pure.

use std::fmt;
use std::time::Duration;
use wire::time::Time;

/// A time as text, `2026-11-21T06:08:07Z`.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) Time);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.micros().div_euclid(1_000_000)) {
            Ok(at) => at.fmt(f),
            Err(_) => write!(f, "{} s after 1970", self.0.micros().div_euclid(1_000_000)),
        }
    }
}

/// A duration as text, `16 days`, `3 h`, `12 min`.
#[derive(Clone, Copy)]
pub(super) struct Span(pub(super) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.as_secs() / 60;
        match minutes {
            2880.. => write!(f, "{} days", minutes / 1440),
            120.. => write!(f, "{} h", minutes / 60),
            _ => write!(f, "{minutes} min"),
        }
    }
}
