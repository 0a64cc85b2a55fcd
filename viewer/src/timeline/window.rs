//! The part of the timeline that is on the line: all that the grid has, or a span that the user zoomed to.
//!
//! Pure. Rule: it stays within what is stored, and has the shown time in it. Not here: how time passes (`timeline`).

use std::time::Duration;
use wire::time::Time;

/// Shortest window, in seconds.
const SECS_MIN: f64 = 5.0;
/// A window that ends within this share of its width before the newest moment follows it.
const FOLLOWS_WITHIN: f64 = 0.02;

/// A window of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    secs: f64,
    /// Its end; the newest moment for `None`.
    end: Option<Time>,
}

impl Window {
    /// A window of this width with a time in its middle; at the end of the span it follows the newest moment.
    pub(super) fn around(time: Time, secs: f64, span: (Time, Time)) -> Window {
        let secs = fitting(secs, span);
        Window { secs, end: Some(time.plus(Duration::from_secs_f64(secs / 2.0))) }.within(span)
    }

    /// Start and end.
    pub(super) fn range(&self, span: (Time, Time)) -> (Time, Time) {
        let end = self.end.unwrap_or(span.1);
        (end.minus(Duration::from_secs_f64(self.secs)), end)
    }

    /// The window that a range becomes when it is zoomed in by a factor; a time keeps its position.
    pub(super) fn zoomed((from, to): (Time, Time), factor: f64, at: Time, span: (Time, Time)) -> Window {
        let before = to.since(from).as_secs_f64().max(1e-6);
        let share = (at.since(from).as_secs_f64() / before).clamp(0.0, 1.0);
        let factor = if factor.is_finite() && factor > 0.0 { factor } else { 1.0 };
        let secs = fitting(before / factor, span);
        Window { secs, end: Some(at.plus(Duration::from_secs_f64(secs * (1.0 - share)))) }.within(span)
    }

    /// Move it so that it has a time in it.
    pub(super) fn keep(&mut self, time: Time, span: (Time, Time)) {
        let (from, to) = self.range(span);
        if time < from || time > to {
            *self = Window::around(time, self.secs, span);
        }
    }

    fn within(self, (first, last): (Time, Time)) -> Window {
        let secs = fitting(self.secs, (first, last));
        let follows = Duration::from_secs_f64(secs * FOLLOWS_WITHIN);
        let end = self.end.filter(|end| end.plus(follows) < last);
        let end = end.map(|end| end.max(first.plus(Duration::from_secs_f64(secs))));
        Window { secs, end: end.filter(|end| *end < last) }
    }
}

fn fitting(secs: f64, (first, last): (Time, Time)) -> f64 {
    let most = last.since(first).as_secs_f64().max(SECS_MIN);
    if secs.is_finite() { secs.clamp(SECS_MIN, most) } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    #[test]
    fn what_is_pointed_at_stays_and_the_end_is_followed() {
        let span = (at(0.0), at(1_000_000.0));
        let window = Window::zoomed(span, 100.0, at(250_000.0), span);
        assert_eq!(window.range(span), (at(247_500.0), at(257_500.0)));
        let window = Window::zoomed(span, 100.0, at(1_000_000.0), span);
        let later = (span.0, at(1_000_500.0));
        assert_eq!(window.range(later), (at(990_500.0), at(1_000_500.0)), "it follows");
        let mut window = Window::around(at(500.0), 100.0, span);
        assert_eq!(window.range(span), (at(450.0), at(550.0)));
        window.keep(at(540.0), span);
        assert_eq!(window.range(span), (at(450.0), at(550.0)));
        window.keep(at(10_000.0), span);
        assert_eq!(window.range(span), (at(9_950.0), at(10_050.0)));
    }

    proptest! {
        #[test]
        fn a_window_stays_within_the_span(
            last in 10.0_f64..2e8, zooms in proptest::collection::vec((0.0_f64..50.0, -0.5_f64..1.5), 1..20),
        ) {
            let span = (at(0.0), at(last));
            let mut range = span;
            for (factor, share) in zooms {
                let width = range.1.since(range.0).as_secs_f64();
                let pointed = at((range.0.secs_f64() + width * share).max(0.0)).min(span.1);
                range = Window::zoomed(range, factor, pointed, span).range(span);
                let width = range.1.since(range.0).as_secs_f64();
                prop_assert!(range.0.secs_f64() >= -1e-3 && range.1 <= span.1, "{range:?} of {span:?}");
                prop_assert!(width >= SECS_MIN - 1e-3 && width <= last + 1e-3, "{width}");
            }
        }
    }
}
