//! Axes of graphs: ticks at round times and round values, and short labels of values.
//!
//! Pure. Not here: labels of times (`app::text`).

use wire::time::Time;

/// Maximum number of ticks on an axis.
const MARKS_MAX: usize = 24;

/// Round times between two times, at most `most` of them.
#[must_use]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
pub fn moments(from: Time, to: Time, most: usize) -> Vec<Time> {
    let steps = [
        0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0,
        3_600.0, 7_200.0, 14_400.0, 86_400.0,
    ];
    let most = most.clamp(1, MARKS_MAX);
    let width = to.since(from).as_secs_f64();
    let step = steps.into_iter().find(|step| width / step <= most as f64).unwrap_or(604_800.0);
    let step = (step * 1e6) as i64;
    let first = from.micros().div_euclid(step) + 1;
    let moments = (first..).map(|number| Time::from_micros(number.saturating_mul(step)));
    moments.take(most).take_while(|moment| *moment <= to).collect()
}

/// Round values from `low` to `high`, about `most` of them, including one other than zero if possible.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn round(low: f64, high: f64, most: usize) -> Vec<f64> {
    let most = most.clamp(1, MARKS_MAX);
    let rough = ((high - low) / most as f64).max(1e-12);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [0.5, 1.0, 2.0, 5.0, 10.0].map(|by| by * power);
    let at = steps.iter().position(|step| *step >= rough).unwrap_or(steps.len() - 1);
    // If not even one step fits into the plot, use the next smaller.
    let at = if steps[at] > high.max(-low) { at.saturating_sub(1) } else { at };
    let step = steps[at];
    let first = (low / step).ceil();
    (0_u32..24).map(|number| (first + f64::from(number)) * step).take_while(|value| *value <= high).collect()
}

/// Range of a plot: from zero to a little beyond the extreme values.
#[must_use]
pub fn reach(figures: impl Iterator<Item = f64>, at_least: f64) -> (f64, f64) {
    let finite = figures.filter(|figure| figure.is_finite());
    let (low, high) =
        finite.fold((0.0_f64, at_least.max(0.0)), |(low, high), figure| (low.min(figure), high.max(figure)));
    if low < high { (low * 1.06, high * 1.06) } else { (0.0, 1.0) }
}

/// A value in at most four characters and a unit; a very small or very large one as a power of ten.
#[must_use]
pub fn short(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value.abs() >= 1e15 || (value != 0.0 && value.abs() < 0.01) {
        return format!("{value:.1e}");
    }
    match units.iter().find(|(unit, _)| value.abs() >= *unit) {
        Some((unit, word)) => {
            let digits: String = format!("{:.3}", value / unit).chars().take(4).collect();
            digits.trim_end_matches('.').to_owned() + word
        }
        None if value.fract() == 0.0 => format!("{value:.0}"),
        None => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn marks_stand_at_whole_moments_and_round_figures() {
        let from = Time::from_micros(1_000_000_007_500_000);
        let marks = moments(from, from.plus(Duration::from_secs(300)), 6);
        assert_eq!(marks.len(), 5);
        assert!(marks.iter().all(|mark| mark.micros() % 60_000_000 == 0 && *mark > from));
        assert_eq!(moments(from, from.plus(Duration::from_secs(300)), 2).len(), 1);
        assert_eq!(round(0.0, 270.0, 4), [0.0, 100.0, 200.0]);
        assert_eq!(round(0.0, 1.06, 2), [0.0, 1.0]);
        assert_eq!(round(0.0, 45e6, 2), [0.0, 20e6, 40e6], "not nothing alone");
        assert!(round(0.0, 0.0, 4).len() <= MARKS_MAX && round(f64::NAN, 1.0, 4).len() <= MARKS_MAX);
        assert!(moments(from, Time::from_micros(i64::MAX), 99).len() <= MARKS_MAX);
    }

    #[test]
    fn plots_reach_from_nothing_to_a_little_beyond_the_greatest() {
        assert_eq!(reach([0.2, 0.4].into_iter(), 1.0), (0.0, 1.06));
        assert_eq!(reach([f64::NAN, 100.0, -50.0].into_iter(), 0.0), (-53.0, 106.0));
        assert_eq!(reach([0.0, f64::INFINITY].into_iter(), 0.0), (0.0, 1.0));
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.25, 12.0, 1_000.0, 123_456.0, 1.5e9, 0.001, -0.002, 1.7e18].map(short);
        assert_eq!(shown, ["0", "0.25", "12", "1.00k", "123k", "1.50G", "1.0e-3", "-2.0e-3", "1.7e18"]);
    }
}
