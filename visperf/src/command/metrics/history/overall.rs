//! Figures of a series over the whole requested time: of its samples, however long the steps are.
//!
//! Pure. Not here: the table that shows them (`rows`).

use super::mean;
use wire::api::history::{HistorySeries, StepSummary, unit_of_rate};
use wire::api::metrics::{Sample, Semantics, Value};
use wire::sample::Number;

/// Minimum, mean, maximum and last value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overall {
    pub(super) min: f64,
    pub(super) avg: f64,
    pub(super) max: f64,
    pub(super) last: f64,
}

/// Returns the figures of a series whose steps are summaries, and replaces these by the values of its trend: the
/// rates of a counter, means of a gauge, last values of a state. The figures of a counter are those of the rates of
/// the steps; a series that several were merged to has no last value but that of its trend.
#[allow(clippy::cast_precision_loss)]
pub(super) fn of(series: &mut HistorySeries, is_merged: bool) -> Overall {
    let summaries = std::mem::take(&mut series.summaries);
    let sample = |step: &StepSummary| {
        let value = match series.semantics {
            Semantics::Counter => Value(Number::Real(step.rate?)),
            Semantics::Gauge => Value(Number::Real(step.sum.as_f64() / step.count.max(1) as f64)),
            Semantics::State | Semantics::Unknown => step.last,
        };
        Some(Sample { time: step.time, value })
    };
    series.samples = summaries.iter().filter_map(sample).collect();
    let of_trend = of_values(series);
    if series.semantics == Semantics::Counter {
        series.unit = unit_of_rate(&series.unit);
        return of_trend;
    }
    let all = || summaries.iter();
    let count: u64 = all().map(|step| step.count).sum();
    let last = summaries.last().filter(|_| !is_merged).map_or(of_trend.last, |step| step.last.as_f64());
    Overall {
        min: all().map(|step| step.min.as_f64()).fold(f64::INFINITY, f64::min),
        avg: all().map(|step| step.sum.as_f64()).sum::<f64>() / count.max(1) as f64,
        max: all().map(|step| step.max.as_f64()).fold(f64::NEG_INFINITY, f64::max),
        last,
    }
}

/// Returns the figures of the values of a series.
pub(super) fn of_values(series: &HistorySeries) -> Overall {
    let values = || series.samples.iter().map(|sample| sample.value.as_f64());
    Overall {
        min: values().fold(f64::INFINITY, f64::min),
        avg: mean(series),
        max: values().fold(f64::NEG_INFINITY, f64::max),
        last: values().next_back().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;
    use wire::time::Time;

    fn step(nth: i64, [min, max, sum, last]: [f64; 4], rate: Option<f64>) -> StepSummary {
        let [min, max, sum, last] = [min, max, sum, last].map(|value| Value(Number::Real(value)));
        let time = UnixTime(Time::from_micros(nth * 60_000_000));
        StepSummary {
            time,
            count: if nth == 0 { 2 } else { 4 },
            min,
            max,
            sum,
            last,
            increase: None,
            increase_secs: None,
            rate,
        }
    }

    fn series(semantics: Semantics) -> HistorySeries {
        let summaries = vec![
            step(0, [1.0, 9.0, 10.0, 1.0], None),
            step(1, [2.0, 3.0, 8.0, 3.0], Some(5.0)),
            step(2, [2.0, 4.0, 12.0, 4.0], Some(7.0)),
        ];
        HistorySeries { semantics, unit: "seconds".into(), summaries, ..HistorySeries::default() }
    }

    fn trend(series: &HistorySeries) -> Vec<f64> {
        series.samples.iter().map(|sample| sample.value.as_f64()).collect()
    }

    #[test]
    fn a_peak_within_a_step_is_the_maximum_and_the_mean_is_that_of_all_samples() {
        let mut gauge = series(Semantics::Gauge);
        let overall = of(&mut gauge, false);
        assert_eq!(overall, Overall { min: 1.0, avg: 3.0, max: 9.0, last: 4.0 });
        assert_eq!((trend(&gauge), gauge.summaries.len()), (vec![5.0, 2.0, 3.0], 0));
        assert_eq!(of(&mut series(Semantics::Gauge), true).last, 3.0, "merged series have no last value");
        let mut state = series(Semantics::State);
        of(&mut state, false);
        assert_eq!((trend(&state), state.unit.as_str()), (vec![1.0, 3.0, 4.0], "seconds"));
    }

    #[test]
    fn figures_of_a_counter_are_those_of_its_rates() {
        let mut counter = series(Semantics::Counter);
        assert_eq!(of(&mut counter, false), Overall { min: 5.0, avg: 6.0, max: 7.0, last: 7.0 });
        assert_eq!((trend(&counter), counter.unit.as_str()), (vec![5.0, 7.0], "seconds/s"));
    }
}
