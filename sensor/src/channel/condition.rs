//! A condition as it stands: true or not, with hysteresis and a time for which a change must last.
//!
//! Pure: callers pass `now`. Rule: each change is signalled once; a measure that is not known is not beyond any threshold.
//! Not here: how it is written (`wire::channel::expression`).

use super::fields::{self, Number, Seen, Unknown};
use std::time::Duration;
use wire::channel::filter::{Condition, Measure};

/// A condition, made ready.
#[derive(Debug)]
pub struct State {
    condition: Condition,
    /// Of what; none of a count.
    number: Option<&'static Number>,
    is_true: bool,
    /// Since when the measure asks for the other state.
    turning: Option<Duration>,
}

impl State {
    /// Not true yet.
    ///
    /// # Errors
    /// If its field is none.
    pub fn new(condition: Condition) -> Result<State, Unknown> {
        let number = match &condition.measure {
            Measure::Count => None,
            Measure::Sum(field) | Measure::Max(field) | Measure::Min(field) | Measure::Mean(field) => {
                Some(fields::number_named(field)?)
            }
        };
        Ok(State { condition, number, is_true: false, turning: None })
    }

    /// Whether it is true now.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.is_true
    }

    /// The measure of these processes; `None` if nothing is known of any.
    #[allow(clippy::cast_precision_loss)] // A number of processes.
    pub fn measure<'a>(&self, seen: impl Iterator<Item = Seen<'a>>) -> Option<f64> {
        let Some(number) = self.number else { return Some(seen.count() as f64) };
        let values = seen.filter_map(|seen| (number.get)(&seen));
        match &self.condition.measure {
            Measure::Count => None,
            Measure::Sum(_) => Some(values.sum()),
            Measure::Max(_) => values.reduce(f64::max),
            Measure::Min(_) => values.reduce(f64::min),
            Measure::Mean(_) => {
                let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
                (count > 0).then(|| sum / f64::from(count))
            }
        }
    }

    /// The measure is `value` at `now`; whether the condition became true or false by it.
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
    use super::*;
    use wire::channel::expression;
    use wire::process::Process;

    fn state(text: &str) -> State {
        State::new(expression::condition(text).expect("understood")).expect("its field is known")
    }

    /// At which second it changes, and to what, when the measure has these values a second each.
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
        let seen = |cpu| Seen { process: &process, cpu, command: None };
        let check = |text: &str, expected| {
            let of = [Some(1.0), None, Some(3.0)].map(seen);
            assert_eq!(state(text).measure(of.into_iter()), expected, "{text}");
        };
        check("count > 1", Some(3.0));
        check("sum cpu > 1", Some(4.0));
        check("max cpu > 1", Some(3.0));
        check("min cpu > 1", Some(1.0));
        check("mean cpu > 1", Some(2.0));
        check("max read_bytes > 1", None);
        check("sum read_bytes > 1", Some(0.0));
        assert!(State::new(expression::condition("max rss > 1").expect("understood")).is_err());
    }
}
