//! Over what span of time the graphs reach: one for all of them, moved and widened together.
//!
//! Pure. Rule: it ends at the time that is looked at, or so far before it; nothing of it is in the future, whoever kept it.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::time::Time;

/// What is seen until somebody zooms, in seconds.
const USUAL_SECS: f64 = 300.0;
/// The narrowest and the widest, in seconds.
const SECS: std::ops::RangeInclusive<f64> = 2.0..=3_600.0;
/// How far before the time that is looked at it may end, in seconds.
const BACK_SECS_MAX: f64 = 86_400.0;

/// The span.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Span {
    secs: f64,
    /// Not kept: who restarts looks at what is now.
    #[serde(skip)]
    back_secs: f64,
}

impl Default for Span {
    fn default() -> Span {
        Span { secs: USUAL_SECS, back_secs: 0.0 }
    }
}

impl Span {
    /// Its seconds.
    #[must_use]
    pub fn secs(&self) -> f64 {
        clamp(self.secs, SECS, USUAL_SECS)
    }

    /// How many seconds before the time that is looked at it ends.
    #[must_use]
    pub fn back_secs(&self) -> f64 {
        clamp(self.back_secs, 0.0..=BACK_SECS_MAX, 0.0)
    }

    /// From when to when, at a time that is looked at.
    #[must_use]
    pub fn range(&self, at: Time) -> (Time, Time) {
        let end = at.minus(Duration::from_secs_f64(self.back_secs()));
        (end.minus(Duration::from_secs_f64(self.secs())), end)
    }

    /// Have it this wide, up to the time that is looked at.
    pub fn set_secs(&mut self, secs: f64) {
        *self = Span { secs: clamp(secs, SECS, USUAL_SECS), back_secs: 0.0 };
    }

    /// Move it by a share of its width, into the past where that is more than nothing.
    pub fn pan(&mut self, share: f64) {
        *self = Span { secs: self.secs(), back_secs: self.back_secs() + share * self.secs() };
        self.back_secs = self.back_secs();
    }

    /// Make it narrower by a factor; what stands at this share of its width stays there. One that follows the time goes on
    /// following it.
    pub fn zoom(&mut self, factor: f64, share: f64) {
        if !(factor.is_finite() && factor > 0.0) {
            return;
        }
        let (secs, back) = (self.secs(), self.back_secs());
        let narrower = clamp(secs / factor, SECS, USUAL_SECS);
        let after = 1.0 - share.clamp(0.0, 1.0);
        let moved = if back > 0.0 || factor > 1.0 && after > 0.1 { after * (secs - narrower) } else { 0.0 };
        *self = Span { secs: narrower, back_secs: back + moved };
        self.back_secs = self.back_secs();
    }

    /// Whether it is as no one changed it.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Span::default()
    }
}

fn clamp(secs: f64, within: std::ops::RangeInclusive<f64>, otherwise: f64) -> f64 {
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
        // 75 seconds before the end are a quarter of the way from the right.
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
            assert!(from - to >= 2.0 && from - to <= 3_600.0 && to >= 0.0, "{odd:?}");
            span.pan(f64::NAN);
            span.zoom(0.0, 0.5);
            span.zoom(f64::NAN, 2.0);
            let (from, to) = ends(&span);
            assert!(from > to && to >= 0.0, "{odd:?}");
        }
    }
}
