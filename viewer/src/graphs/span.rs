//! Time span of the graphs: shared by all of them, for panning and zooming.
//!
//! Pure. Rule: it ends at the shown time or before it; it never reaches into the future, whatever a settings
//! file contains.

use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;
use wire::time::Time;

/// Default width, in seconds.
const USUAL_SECS: f64 = 300.0;
/// Maximum distance of its end from the shown time, in seconds.
const BACK_SECS_MAX: f64 = *Span::WIDTH_SECS.end();

/// The span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    secs: f64,
    /// Not stored: after a restart the graphs show the present.
    #[serde(skip)]
    back_secs: f64,
}

impl Default for Span {
    fn default() -> Span {
        Span { secs: USUAL_SECS, back_secs: 0.0 }
    }
}

impl Span {
    /// Minimum and maximum width, in seconds: five years, as hours are retained by default.
    pub const WIDTH_SECS: RangeInclusive<f64> = 2.0..=5.0 * 366.0 * 86_400.0;

    /// Its width in seconds.
    #[must_use]
    pub fn secs(&self) -> f64 {
        clamp(self.secs, Span::WIDTH_SECS, USUAL_SECS)
    }

    /// Seconds between its end and the shown time.
    #[must_use]
    pub fn back_secs(&self) -> f64 {
        clamp(self.back_secs, 0.0..=BACK_SECS_MAX, 0.0)
    }

    /// Start and end, for a shown time.
    #[must_use]
    pub fn range(&self, at: Time) -> (Time, Time) {
        let end = at.minus(Duration::from_secs_f64(self.back_secs()));
        (end.minus(Duration::from_secs_f64(self.secs())), end)
    }

    /// Set the width; the span then ends at the shown time.
    pub fn set_secs(&mut self, secs: f64) {
        *self = Span { secs: clamp(secs, Span::WIDTH_SECS, USUAL_SECS), back_secs: 0.0 };
    }

    /// Pan by a share of its width; a positive share moves into the past.
    pub fn pan(&mut self, share: f64) {
        *self = Span { secs: self.secs(), back_secs: self.back_secs() + share * self.secs() };
        self.back_secs = self.back_secs();
    }

    /// Zoom in by a factor; the time at this share of its width keeps its position. A span that follows the
    /// shown time continues to follow it.
    pub fn zoom(&mut self, factor: f64, share: f64) {
        if !(factor.is_finite() && factor > 0.0) {
            return;
        }
        let (secs, back) = (self.secs(), self.back_secs());
        let narrower = clamp(secs / factor, Span::WIDTH_SECS, USUAL_SECS);
        let after = 1.0 - share.clamp(0.0, 1.0);
        let moved = if back > 0.0 || factor > 1.0 && after > 0.1 { after * (secs - narrower) } else { 0.0 };
        *self = Span { secs: narrower, back_secs: back + moved };
        self.back_secs = self.back_secs();
    }

    /// Whether it is the default.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Span::default()
    }
}

fn clamp(secs: f64, within: RangeInclusive<f64>, otherwise: f64) -> f64 {
    if secs.is_finite() { secs.clamp(*within.start(), *within.end()) } else { otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(span: &Span) -> (f64, f64) {
        let at = Time::from_micros(1_000_000_000_000);
        let (from, to) = span.range(at);
        (at.since(from).as_secs_f64(), at.since(to).as_secs_f64())
    }

    #[test]
    fn it_is_moved_and_comes_back_to_the_time_that_is_looked_at() {
        let mut span = Span::default();
        assert_eq!(ends(&span), (300.0, 0.0));
        span.pan(0.5);
        assert_eq!(ends(&span), (450.0, 150.0));
        span.pan(-2.0);
        assert_eq!(ends(&span), (300.0, 0.0), "nothing of it is in the future");
    }

    #[test]
    fn what_is_pointed_at_stays_where_it_is() {
        let mut span = Span::default();
        // 75 seconds before the end: a quarter of the width from the right.
        span.zoom(2.0, 0.75);
        let (from, to) = ends(&span);
        assert!((from - (75.0 + 112.5)).abs() < 1e-6 && (to - 37.5).abs() < 1e-6, "{from} {to}");
        span.zoom(0.5, 0.75);
        assert_eq!(ends(&span), (300.0, 0.0));
        span.zoom(2.0, 0.97);
        assert_eq!(ends(&span), (150.0, 0.0), "at the right border it goes on following");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        for odd in [(f64::NAN, f64::INFINITY), (-5.0, -5.0), (1e300, 1e300)] {
            let mut span = Span { secs: odd.0, back_secs: odd.1 };
            let (from, to) = ends(&span);
            assert!(from - to >= 2.0 && from - to <= 5.0 * 366.0 * 86_400.0 + 1.0 && to >= 0.0, "{odd:?}");
            span.pan(f64::NAN);
            span.zoom(0.0, 0.5);
            span.zoom(f64::NAN, 2.0);
            let (from, to) = ends(&span);
            assert!(from > to && to >= 0.0, "{odd:?}");
        }
    }
}
