//! Span of time whose jobs are listed.
//!
//! Pure. Rule: jobs that wait or run are always in it, unless it ends before now.

use crate::timeline::{Mode, Timeline};
use std::time::Duration;
use wire::time::Time;

const DAY_SECS: u64 = 86_400;

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobsRange {
    #[default]
    Day,
    Week,
    Month,
    Year,
    /// All that is stored.
    All,
    /// The part that is on the line below.
    Timeline,
}

/// Start and end; open where there is none.
pub(super) type Bounds = (Option<Time>, Option<Time>);

impl JobsRange {
    pub const ALL: [JobsRange; 6] = [
        JobsRange::Day,
        JobsRange::Week,
        JobsRange::Month,
        JobsRange::Year,
        JobsRange::All,
        JobsRange::Timeline,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            JobsRange::Day => "last day",
            JobsRange::Week => "last week",
            JobsRange::Month => "last month",
            JobsRange::Year => "last year",
            JobsRange::All => "all times",
            JobsRange::Timeline => "the line below",
        }
    }

    /// Its start and end.
    pub(super) fn bounds(self, now: Time, timeline: &Timeline) -> Bounds {
        let days = match self {
            JobsRange::Day => 1,
            JobsRange::Week => 7,
            JobsRange::Month => 31,
            JobsRange::Year => 366,
            JobsRange::All => return (None, None),
            JobsRange::Timeline => {
                let (from, to) = timeline.shown();
                return (Some(from), (!ends_now(to, timeline)).then_some(to));
            }
        };
        (Some(now.minus(Duration::from_secs(days * DAY_SECS))), None)
    }
}

/// Whether a time is at the end of a live timeline, which moves.
fn ends_now(to: Time, timeline: &Timeline) -> bool {
    timeline.mode() == Mode::Live || to >= timeline.span().1
}

/// Whether bounds differ by so much that jobs are to be searched again: by a fiftieth of the span.
pub(super) fn differ(one: Bounds, other: Bounds, now: Time) -> bool {
    let apart = |one: Option<Time>, other: Option<Time>, most: Duration| match (one, other) {
        (Some(one), Some(other)) => one.since(other).max(other.since(one)) > most,
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    let width = |(from, to): Bounds| from.map_or(Duration::ZERO, |from| to.unwrap_or(now).since(from));
    let most = width(one) / 50;
    apart(one.0, other.0, most) || apart(one.1, other.1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    #[test]
    fn spans_end_now_unless_the_line_ends_before() {
        let mut timeline = Timeline::live(at(1_000_000));
        timeline.reach(at(0), at(1_000_000));
        let now = at(1_000_000);
        assert_eq!(JobsRange::Day.bounds(now, &timeline), (Some(at(913_600)), None));
        assert_eq!(JobsRange::All.bounds(now, &timeline), (None, None));
        assert_eq!(JobsRange::Timeline.bounds(now, &timeline), (Some(at(0)), None));
        timeline.scrub(at(500_000));
        timeline.pause();
        timeline.show_secs(Some(1_000.0));
        let (from, to) = JobsRange::Timeline.bounds(now, &timeline);
        assert!(from.is_some_and(|from| from > at(499_000)) && to.is_some_and(|to| to < at(501_001)));
    }

    #[test]
    fn jobs_are_not_searched_again_for_a_small_change() {
        let now = at(1_000);
        assert!(!differ((Some(at(0)), None), (Some(at(10)), None), now));
        assert!(differ((Some(at(0)), None), (Some(at(30)), None), now));
        assert!(differ((Some(at(0)), None), (Some(at(0)), Some(at(900))), now));
        assert!(!differ((None, None), (None, None), now));
    }
}
