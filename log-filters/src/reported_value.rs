//! Reported value with its authority, and the choice between two reports.
//!
//! Pure. Rule: the value of the better authority replaces that of a poorer one; but a time in whole seconds
//! never replaces a finer one of the same second, and represents any moment of it where an order must be
//! preserved.
//! Not here: the values of a call (`progress`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::Authority;
use wire::time::Time;

/// Tolerance of times: accounting rounds to whole seconds, and a scheduler writes its line after the event.
const LINE_LATE_MICROS: i64 = 1_000_000;

/// A value with the authority that reported it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReportedValue<T> {
    pub(crate) value: T,
    pub(crate) by: Option<Authority>,
}

impl<T> ReportedValue<T> {
    /// An inferred value, which no log reported.
    pub(crate) fn supposed(value: T) -> ReportedValue<T> {
        ReportedValue { value, by: None }
    }
}

impl<T: Default> Default for ReportedValue<T> {
    fn default() -> ReportedValue<T> {
        ReportedValue::supposed(T::default())
    }
}

pub(crate) fn set_text(own: &mut ReportedValue<CompactString>, text: &str, by: Authority) {
    if !text.is_empty() && (own.value.is_empty() || own.by < Some(by)) {
        *own = ReportedValue { value: text.into(), by: Some(by) };
    }
}

/// Update a time. A better authority's time replaces a poorer one's, except that a time in whole seconds does
/// not replace a finer one of the same second; of one authority the earliest is used.
pub(crate) fn set_time(own: &mut Option<ReportedValue<Time>>, time: Time, by: Authority) {
    let Some(own) = own else {
        *own = Some(ReportedValue { value: time, by: Some(by) });
        return;
    };
    let known = own.value;
    let same_second = second(known) == second(time);
    if Some(by) > own.by {
        own.by = Some(by);
        own.value = if same_second && is_whole(time) { known } else { time };
    } else if same_second && is_whole(known) != is_whole(time) {
        own.value = if is_whole(known) { time } else { known };
    } else if Some(by) == own.by {
        own.value = known.min(time);
    }
}

/// Indexes in the order of [`in_order`] for times that are only known from when a line was written.
const OFFERED: usize = 1;
const SELECTED: usize = 2;

/// Adjust the times of submission, offer, selection, start and end to the order in which they must have been,
/// as far as the precision of the stamps allows.
pub(crate) fn in_order(times: &mut [Option<Time>; 5]) {
    let mut before: Option<usize> = None;
    for at in 0..times.len() {
        let Some(time) = times[at] else { continue };
        if let Some(last) = before
            && let Some(earlier) = times[last].filter(|earlier| *earlier > time)
        {
            if is_whole(time) && second(earlier) == second(time) {
                times[at] = Some(earlier);
            } else if matches!(last, OFFERED | SELECTED)
                && earlier.micros() - end_of(time) <= LINE_LATE_MICROS
            {
                let floor = times[..last].iter().flatten().max().copied();
                let met = floor.filter(|&floor| is_whole(time) && second(floor) == second(time));
                times[last] = Some(met.unwrap_or(time));
                times[at] = times[last];
            }
        }
        before = Some(at);
    }
}

fn second(time: Time) -> i64 {
    time.micros().div_euclid(1_000_000)
}

/// The last moment that a stamp may represent.
fn end_of(time: Time) -> i64 {
    time.micros() + if is_whole(time) { 999_999 } else { 0 }
}

fn is_whole(time: Time) -> bool {
    time.micros() % 1_000_000 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(times: [i64; 5], expected: [i64; 5]) {
        // Milliseconds; 0 means not reported.
        let time = |millis: i64| (millis > 0).then(|| Time::from_micros(millis * 1_000));
        let mut found = times.map(time);
        in_order(&mut found);
        assert_eq!(found, expected.map(time), "{times:?}");
    }

    #[test]
    fn whole_seconds_stand_for_any_moment_of_theirs() {
        check([1_100, 0, 5_530, 5_000, 5_000], [1_100, 0, 5_530, 5_530, 5_530]);
        check([1_100, 0, 1_530, 1_000, 9_000], [1_100, 0, 1_530, 1_530, 9_000]);
        // The line about the selection was written in the next second.
        check([1_100, 0, 6_010, 5_000, 8_000], [1_100, 0, 5_000, 5_000, 8_000]);
        // Times that are really out of order stay as reported.
        check([1_100, 0, 9_010, 5_000, 8_000], [1_100, 0, 9_010, 5_000, 8_000]);
        check([1_100, 0, 0, 5_500, 5_400], [1_100, 0, 0, 5_500, 5_400]);
        // Not before the submission, either.
        check([5_900, 0, 6_000, 5_000, 8_000], [5_900, 0, 5_900, 5_900, 8_000]);
    }
}
