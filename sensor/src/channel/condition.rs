//! State of a condition: true or false, with hysteresis and a time that a change must last.
//!
//! Pure: callers pass `now`. Rule: each change is signalled once; an unknown measure is beyond no threshold.
//! Not here: the syntax of conditions (`wire::channel::expression`).

use super::fields::{self, Number, Subject, Unknown};
use std::time::Duration;
use wire::channel::filter::{Condition, Measure};

/// A compiled condition with its state.
#[derive(Debug)]
pub struct State<S: Subject> {
    condition: Condition,
    /// The measured field; `None` for a count.
    number: Option<&'static Number<S>>,
    is_true: bool,
    /// Since when the measure has been beyond the threshold for the other state.
    turning: Option<Duration>,
}

/// Aggregate of the records of one measure, added one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    records: u64,
    /// Records whose number is known.
    known: u64,
    sum: f64,
    /// Minimum and maximum.
    ends: Option<(f64, f64)>,
}

impl<S: Subject> State<S> {
    /// Compiles a condition; it starts false.
    ///
    /// # Errors
    /// If the field is unknown.
    pub fn new(condition: Condition) -> Result<State<S>, Unknown> {
        let number = match &condition.measure {
            Measure::Count => None,
            Measure::Sum(field) | Measure::Max(field) | Measure::Min(field) | Measure::Mean(field) => {
                Some(fields::number_named(field)?)
            }
        };
        Ok(State { condition, number, is_true: false, turning: None })
    }

    #[must_use]
    pub fn is_true(&self) -> bool {
        self.is_true
    }

    /// Adds a record.
    pub fn add(&self, tally: &mut Tally, view: &S::View<'_>) {
        tally.records += 1;
        let Some(value) = self.number.and_then(|number| (number.get)(view)) else { return };
        tally.known += 1;
        tally.sum += value;
        let (least, most) = tally.ends.unwrap_or((value, value));
        tally.ends = Some((least.min(value), most.max(value)));
    }

    /// The measure of the records that were added; `None` if it is a minimum, maximum or mean and no number
    /// is known.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // A number of records.
    pub fn measure(&self, tally: &Tally) -> Option<f64> {
        match &self.condition.measure {
            Measure::Count => Some(tally.records as f64),
            Measure::Sum(_) => Some(tally.sum),
            Measure::Max(_) => tally.ends.map(|(_, most)| most),
            Measure::Min(_) => tally.ends.map(|(least, _)| least),
            Measure::Mean(_) => (tally.known > 0).then(|| tally.sum / tally.known as f64),
        }
    }

    /// Updates the state with the measure at `now`; returns the new state if it changed.
    pub fn update(&mut self, value: Option<f64>, now: Duration) -> Option<bool> {
        if self.wants_to_be(value) == self.is_true {
            self.turning = None;
            return None;
        }
        let since = *self.turning.get_or_insert(now);
        if now.saturating_sub(since).as_secs_f64() < self.condition.hold_secs {
            return None;
        }
        self.turning = None;
        self.is_true = !self.is_true;
        Some(self.is_true)
    }

    fn wants_to_be(&self, value: Option<f64>) -> bool {
        let Condition { is_high, on, off, .. } = self.condition;
        let bound = if self.is_true { off } else { on };
        value.is_some_and(|value| if is_high { value > bound } else { value < bound })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::process::{ProcessView, Processes};
    use super::*;
    use wire::channel::expression;
    use wire::process::Process;

    fn state(text: &str) -> State<Processes> {
        State::new(expression::condition(text).expect("understood")).expect("its field is known")
    }

    /// Feeds one value per second; expects these changes, each with its second.
    fn check(text: &str, values: &[f64], expected: &[(u64, bool)]) {
        let mut state = state(text);
        let changes = (0..).zip(values).filter_map(|(second, value)| {
            let value = Some(*value).filter(|value| !value.is_nan());
            Some((second, state.update(value, Duration::from_secs(second))?))
        });
        assert_eq!(changes.collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn it_signals_each_change_once_and_not_between_its_thresholds() {
        let values = [1.0, 5.0, 6.0, 4.0, 5.5, 3.0, 4.0, 5.1];
        check("sum cpu > 5 until 3", &values, &[(2, true), (5, false), (7, true)]);
        check("sum cpu > 5", &values, &[(2, true), (3, false), (4, true), (5, false), (7, true)]);
        check("sum cpu < 3.5 until 5", &values, &[(0, true), (1, false), (5, true), (7, false)]);
    }

    #[test]
    fn a_change_must_last() {
        check(
            "max cpu > 1 for 2 s",
            &[2.0, 2.0, 0.0, 2.0, 2.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0],
            &[(5, true), (10, false)],
        );
    }

    #[test]
    fn what_is_not_known_is_beyond_nothing() {
        check("min cpu < 1", &[f64::NAN, 0.5, f64::NAN], &[(1, true), (2, false)]);
    }

    #[test]
    fn measures_are_of_what_is_known() {
        let process = Process::default();
        let view = |cpu| ProcessView {
            process: &process,
            cpu,
            command: None,
            visibility: crate::process::visibility::Visibility::ALL,
        };
        let check = |text: &str, expected| {
            let (state, mut tally) = (state(text), Tally::default());
            [Some(1.0), None, Some(3.0)].map(view).iter().for_each(|view| state.add(&mut tally, view));
            assert_eq!(state.measure(&tally), expected, "{text}");
        };
        check("count > 1", Some(3.0));
        check("sum cpu > 1", Some(4.0));
        check("max cpu > 1", Some(3.0));
        check("min cpu > 1", Some(1.0));
        check("mean cpu > 1", Some(2.0));
        check("max read_bytes > 1", None);
        check("sum read_bytes > 1", Some(0.0));
        assert!(State::<Processes>::new(expression::condition("max rss > 1").expect("understood")).is_err());
    }
}
