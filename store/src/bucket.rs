//! Bucket: the values of a metric during a span of time, summarized.
//!
//! Pure. Invariant: buckets of parts of a span, merged in their order, equal the bucket of the whole span; for
//! exact numbers to the last digit. NaN is not counted.

use crate::exact::Exact;
use wire::time::Time;

/// The values of a metric in a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: Exact,
    /// Largest value.
    pub max: Exact,
    /// Sum of all values.
    pub sum: Exact,
    /// Last value.
    pub last: Exact,
    /// By how much a counter increased, corrected for resets: from the value before the span to the last
    /// value of the span. Zero for the first value that is known of a counter; `None` for other metrics.
    pub increase: Option<Exact>,
    /// Time in which the counter increased so much, in milliseconds: between the value before the span and its
    /// last value. 0 for other metrics.
    pub increase_millis: u64,
}

impl Bucket {
    /// Bucket of one value.
    #[must_use]
    pub fn of(value: Exact) -> Bucket {
        let (min, max, sum, last) = (value, value, value, value);
        Bucket { count: 1, min, max, sum, last, increase: None, increase_millis: 0 }
    }

    /// Adds the values of a later span.
    pub fn merge(&mut self, later: &Bucket) {
        self.count += later.count;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.sum = self.sum.plus(later.sum);
        self.last = later.last;
        self.increase_millis += later.increase_millis;
        self.increase = match (self.increase, later.increase) {
            (Some(earlier), Some(later)) => Some(earlier.plus(later)),
            (increase, None) | (None, increase) => increase,
        };
    }

    /// Mean of the values.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn mean(&self) -> f64 {
        self.sum.as_f64() / self.count as f64
    }

    /// Increase of a counter per second; `None` for other metrics, and where only one value is known.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn rate(&self) -> Option<f64> {
        let secs = self.increase_millis as f64 / 1e3;
        self.increase.filter(|_| secs > 0.0).map(|increase| increase.as_f64() / secs)
    }
}

/// Merges `later` into a bucket that may not exist yet.
#[cfg(test)]
pub(crate) fn merge_into(bucket: &mut Option<Bucket>, later: &Bucket) {
    match bucket {
        Some(bucket) => bucket.merge(later),
        None => *bucket = Some(*later),
    }
}

/// Converts samples to buckets of one value; remembers the previous value of a counter, and its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Previous(pub(crate) Option<(Exact, Time)>);

impl Previous {
    /// Returns the bucket of the next sample; `None` if it is not a number.
    pub fn next(&mut self, value: Exact, time: Time, is_counter: bool) -> Option<Bucket> {
        if value.as_f64().is_nan() {
            return None;
        }
        let bucket = Bucket::of(value);
        if !is_counter {
            return Some(bucket);
        }
        let (previous, before) = self.0.replace((value, time)).unwrap_or((value, time));
        // Both are rounded down before they are subtracted, so that sums of many spans are exact.
        let millis = |time: Time| time.micros().div_euclid(1000);
        let increase_millis = u64::try_from(millis(time).saturating_sub(millis(before))).unwrap_or(0);
        let increase = Some(value.increase_since(previous));
        Some(Bucket { increase, increase_millis, ..bucket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;
    use wire::sample::Number;

    /// The bucket of these values, one after another.
    fn bucket(values: &[Exact], previous: &mut Previous, is_counter: bool) -> Option<Bucket> {
        let mut all = None;
        for value in values {
            let time =
                previous.0.map_or(Time::default(), |(_, time)| time.plus(Duration::from_micros(1_000_300)));
            if let Some(next) = previous.next(*value, time, is_counter) {
                merge_into(&mut all, &next);
            }
        }
        all
    }

    #[test]
    fn resets_are_corrected_and_the_first_value_is_no_increase() {
        let values = [10, 15, 3, 3, 8].map(Exact::Whole);
        let all = bucket(&values, &mut Previous::default(), true).expect("five values");
        assert_eq!(all.increase, Some(Exact::Whole(5 + 3 + 5)));
        assert_eq!((all.increase_millis, all.rate()), (4001, Some(13.0 / 4.001)));
        let first = bucket(&values[..1], &mut Previous::default(), true).expect("a value");
        assert_eq!(
            (first.increase, first.rate()),
            (Some(Exact::Whole(0)), None),
            "of one value nothing follows"
        );
        assert_eq!((all.count, all.min, all.max), (5, Exact::Whole(3), Exact::Whole(15)));
        assert_eq!((all.sum, all.last, all.mean()), (Exact::Whole(39), Exact::Whole(8), 7.8));
        assert_eq!(bucket(&values, &mut Previous::default(), false).expect("five").increase, None);
        let nothing = bucket(&[Exact::Real(f64::NAN)], &mut Previous::default(), true);
        assert_eq!(nothing, None, "NaN is not counted");
    }

    proptest! {
        #[test]
        fn parts_merge_to_the_whole(
            ticks in proptest::collection::vec(0..10_000i32, 1..60),
            cut in 0..60usize,
            is_real in any::<bool>(),
        ) {
            let values: Vec<Exact> = ticks.iter().map(|&ticks| Exact::from(match is_real {
                true => Number::Real(f64::from(ticks) / 100.0),
                false => Number::Whole(ticks.unsigned_abs().into()),
            })).collect();
            let whole = bucket(&values, &mut Previous::default(), true);
            let (first, second) = values.split_at(cut.min(values.len()));
            let mut previous = Previous::default();
            let mut merged = bucket(first, &mut previous, true);
            if let Some(second) = bucket(second, &mut previous, true) {
                merge_into(&mut merged, &second);
            }
            prop_assert_eq!(merged, whole);
        }
    }
}
