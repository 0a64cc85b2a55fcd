//! Sparkline: a row of numbers as small bars.
//!
//! Pure.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the values from their minimum to their maximum, neighbours merged to `width` bars at most; what is not a number is a gap.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    drawn(values, width, f64::INFINITY)
}

/// As [`sparkline`], from zero on.
pub(crate) fn sparkline_from_zero(values: &[f64], width: usize) -> String {
    drawn(values, width, 0.0)
}

/// Draws from the minimum, or from `low` if that is less.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn drawn(values: &[f64], width: usize, low: f64) -> String {
    let count = values.len().min(width.max(1));
    let bar = |at: usize| {
        let (from, to) = (at * values.len() / count, (at + 1) * values.len() / count);
        let part: Vec<f64> = values[from..to].iter().copied().filter(|value| !value.is_nan()).collect();
        part.iter().sum::<f64>() / part.len() as f64
    };
    let bars: Vec<f64> = (0..count).map(bar).collect();
    let min = bars.iter().copied().fold(low, f64::min);
    let max = bars.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let height = |value: f64| match max > min {
        true => ((value - min) / (max - min) * (BARS.len() - 1) as f64).round() as usize,
        false => 0,
    };
    let bar = |value: f64| if value.is_nan() { ' ' } else { BARS[height(value).min(BARS.len() - 1)] };
    bars.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_reach_from_the_minimum_to_the_maximum() {
        assert_eq!(sparkline(&[0.0, 7.0, 3.5], 40), "▁█▅");
        assert_eq!(sparkline(&[5.0; 3], 40), "▁▁▁", "a constant is flat");
        assert_eq!(sparkline_from_zero(&[5.0, 2.5, 5.0], 40), "█▅█");
        assert_eq!(sparkline_from_zero(&[0.0; 3], 40), "▁▁▁");
        assert_eq!(sparkline(&[1.0, 1.0, 9.0, 9.0], 2), "▁█", "neighbours are merged");
        assert_eq!(sparkline(&[], 40), "");
        assert_eq!(sparkline(&[f64::NAN, 1.0], 40), " ▁", "what is not known is a gap");
        assert_eq!(sparkline(&[f64::NAN, 1.0, 1.0, 9.0], 2), "▁█");
    }
}
