//! Plot: lines over time, drawn with characters.
//!
//! Rule: only neighbouring values are joined; a gap in the values is a gap in the line. Not here: which lines are
//! drawn together.

use super::{Color, Output};
use crate::exit::Failure;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color as Shade, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line as Label;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget};

/// Rows of a plot, with those of its time axis.
const HEIGHT: u16 = 14;
/// Columns where the output is no terminal.
const WIDTH_DEFAULT: usize = 100;
/// Columns of a plot: in fewer there is no room for the figures beside it.
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 400;
/// Values farther apart than this multiple of their usual distance are not joined.
const JOINED: f64 = 1.5;

/// Lines over time.
pub(crate) struct Plot<'a> {
    /// Seconds and value of the points of each line, oldest first.
    pub(crate) lines: Vec<Vec<(f64, f64)>>,
    /// Start and end of the time axis, in seconds.
    pub(crate) span: [f64; 2],
    /// Start and end of the time axis, as text.
    pub(crate) times: [String; 2],
    /// A value as text.
    pub(crate) figure: &'a dyn Fn(f64) -> String,
}

impl Plot<'_> {
    /// Prints the plot; the lines have the colours [`Color::Series`] of their places.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let width = output.width().unwrap_or(WIDTH_DEFAULT).clamp(WIDTH_MIN, WIDTH_MAX);
        let buffer = self.drawn(u16::try_from(width).unwrap_or(u16::MAX));
        // The last row is that of the times.
        for y in 0..buffer.area.height.saturating_sub(1) {
            let mut line = String::new();
            let cells: Vec<_> = (0..buffer.area.width).map(|x| &buffer[(x, y)]).collect();
            for run in cells.chunk_by(|a, b| a.fg == b.fg) {
                let text: String = run.iter().map(|cell| cell.symbol()).collect();
                if let Shade::Indexed(place) = run[0].fg {
                    line.push_str(&output.paint(Color::Series(place), &text));
                } else {
                    line.push_str(&text);
                }
            }
            output.line(line.trim_end())?;
        }
        let [start, end] = &self.times;
        let width = width.saturating_sub(start.chars().count());
        output.line(&format!("{start}{end:>width$}"))
    }

    fn drawn(&self, width: u16) -> Buffer {
        let area = Rect::new(0, 0, width, HEIGHT);
        let mut buffer = Buffer::empty(area);
        let runs: Vec<(usize, &[(f64, f64)])> = self
            .lines
            .iter()
            .enumerate()
            .flat_map(|(place, line)| runs(line).into_iter().map(move |run| (place, run)))
            .collect();
        let sets = runs.iter().map(|(place, run)| {
            let shade = Shade::Indexed(u8::try_from(*place).unwrap_or(u8::MAX));
            let set = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line);
            set.style(Style::new().fg(shade)).data(run)
        });
        let [low, high] = self.bounds();
        let values = [low, f64::midpoint(low, high), high].map(|value| Label::from((self.figure)(value)));
        let chart = Chart::new(sets.collect())
            // With times here, the figures would be as far from the axis as a time is long.
            .x_axis(Axis::default().bounds(self.span).labels(["", ""]))
            .y_axis(Axis::default().bounds([low, high]).labels(values))
            .legend_position(None);
        chart.render(area, &mut buffer);
        buffer
    }

    /// Lowest and highest value of the axis: from 0, unless that would leave more than half of the plot empty.
    fn bounds(&self) -> [f64; 2] {
        let values =
            || self.lines.iter().flatten().map(|(_, value)| *value).filter(|value| value.is_finite());
        let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        match () {
            () if min > max => [0.0, 1.0],
            () if min >= 0.0 && min <= max / 2.0 && max > 0.0 => [0.0, max],
            () if max > min => [min, max],
            () if min == 0.0 => [0.0, 1.0],
            () => [min - min.abs() / 10.0, min + min.abs() / 10.0],
        }
    }
}

/// Parts of a line whose points are neighbours; a point that is not a number is a gap.
fn runs(line: &[(f64, f64)]) -> Vec<&[(f64, f64)]> {
    let mut distances: Vec<f64> = line.windows(2).map(|two| two[1].0 - two[0].0).collect();
    distances.sort_by(f64::total_cmp);
    let usual = distances.get(distances.len() / 2).copied().unwrap_or_default();
    let is_joined =
        |a: &(f64, f64), b: &(f64, f64)| b.0 - a.0 <= usual * JOINED && a.1.is_finite() && b.1.is_finite();
    let parts = line.chunk_by(is_joined);
    parts.filter(|part| part.iter().all(|(_, value)| value.is_finite())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(lines: Vec<Vec<(f64, f64)>>) -> Vec<String> {
        let figure = |value: f64| format!("{value:.1}");
        let times = ["from".to_owned(), "to".to_owned()];
        let buffer = Plot { lines, span: [0.0, 100.0], times, figure: &figure }.drawn(60);
        let row = |y| (0..60).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..HEIGHT).map(row).collect()
    }

    #[test]
    fn a_line_rises_from_corner_to_corner_between_its_figures() {
        let rows = plot(vec![(0..=100).map(|at| (f64::from(at), f64::from(at))).collect()]);
        assert!(
            rows[0].starts_with("100.0│")
                && rows[0].ends_with(['⡠', '⠔', '⡔', '⠊', '⢀', '⠎', '⣀', '⡰', '⠤', '⠒', '⠉']),
            "{rows:#?}"
        );
        assert!(rows[usize::from(HEIGHT) - 3].trim_start().starts_with("0.0"), "{rows:#?}");
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let line: Vec<(f64, f64)> =
            (0..=100).filter(|at| !(40..60).contains(at)).map(|at| (f64::from(at), 5.0)).collect();
        let rows = plot(vec![line]);
        let drawn = rows
            .iter()
            .find(|row| row.contains('⠒') || row.contains('⠤') || row.contains('⣀') || row.contains('⠉'))
            .expect("a line");
        let inner: String =
            drawn.chars().skip_while(|shown| *shown != '│' && *shown != '┤').skip(1).collect();
        let blanks = inner.trim().chars().filter(|shown| *shown == ' ').count();
        assert!((8..=12).contains(&blanks), "a fifth of 54 columns: {drawn:?}");
    }

    #[test]
    fn what_is_not_a_number_is_a_gap_and_nothing_is_an_empty_plot() {
        let nan = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, 1.0)];
        let lens: Vec<usize> = runs(&nan).iter().map(|run| run.len()).collect();
        assert_eq!(lens, [1, 2]);
        assert!(runs(&[]).is_empty());
        assert_eq!(plot(Vec::new()).len(), usize::from(HEIGHT));
    }

    #[test]
    fn the_axis_starts_at_zero_where_that_wastes_no_more_than_half() {
        let figure = |value: f64| value.to_string();
        let bounds = |values: &[f64]| {
            let line = values.iter().map(|value| (0.0, *value)).collect();
            let times = [String::new(), String::new()];
            Plot { lines: vec![line], span: [0.0, 1.0], times, figure: &figure }.bounds()
        };
        assert_eq!(bounds(&[1.0, 4.0]), [0.0, 4.0]);
        assert_eq!(bounds(&[3.0, 4.0]), [3.0, 4.0]);
        assert_eq!(bounds(&[-1.0, 4.0]), [-1.0, 4.0]);
        assert_eq!(
            (bounds(&[10.0]), bounds(&[0.0]), bounds(&[f64::NAN])),
            ([9.0, 11.0], [0.0, 1.0], [0.0, 1.0])
        );
    }
}
