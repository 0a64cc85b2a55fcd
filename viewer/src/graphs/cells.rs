//! Grid of small plots: how many columns and rows, and the size of each plot.
//!
//! Pure. Rule: all plots have the same size, none overlaps another or exceeds the width; if the height is too
//! small, the grid scrolls, and plots stay legible. Not here: the contents.

use crate::layout::{Area, Point};
use std::ops::Range;

/// Minimum width of a small plot: a name of some fifteen letters, and two time labels below.
pub const WIDTH_MIN: f32 = 168.0;
/// Minimum height: the name, and a recognizable curve.
pub const HEIGHT_MIN: f32 = 84.0;
/// Gap between two plots.
pub const GAP: f32 = 10.0;
/// Ratio of width to height at which a curve is easy to read.
const ASPECT: f32 = 2.4;

/// The grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cells {
    count: usize,
    pub columns: usize,
    pub rows: usize,
    /// Width of one plot.
    pub width: f32,
    /// Height of one plot.
    pub height: f32,
}

impl Cells {
    /// Lay out `count` plots in this space, as large as possible; `group` of them, those of one host, share a
    /// row if it is wide enough.
    #[must_use]
    pub fn fit(count: usize, group: usize, width: f32, height: f32) -> Cells {
        let count = count.max(1);
        let most = to_count((width + GAP) / (WIDTH_MIN + GAP)).clamp(1, count);
        let whole = |columns: usize| group <= 1 || most < group || columns.is_multiple_of(group);
        let of = |columns: usize| {
            let rows = count.div_ceil(columns);
            let cell = |room: f32, count: usize| (room + GAP) / to_f32(count) - GAP;
            Cells { count, columns, rows, width: cell(width, columns).max(1.0), height: cell(height, rows) }
        };
        let size = |cells: &Cells| (cells.width / ASPECT).min(cells.height);
        let fitting = (1..=most).filter(|&columns| whole(columns)).map(of);
        let best = fitting
            .filter(|cells| cells.height >= HEIGHT_MIN)
            .reduce(|best, next| if size(&next) > size(&best) { next } else { best });
        best.unwrap_or_else(|| {
            let columns = (1..=most).rev().find(|&columns| whole(columns)).unwrap_or(most);
            Cells { height: HEIGHT_MIN, ..of(columns) }
        })
    }

    /// Position of one plot, relative to the upper left corner of the grid.
    #[must_use]
    pub fn area(&self, at: usize) -> Area {
        let (column, row) = (at % self.columns, at / self.columns);
        let min = Point::new(to_f32(column) * (self.width + GAP), to_f32(row) * (self.height + GAP));
        Area { min, max: min.plus(Point::new(self.width, self.height)) }
    }

    /// Total height.
    #[must_use]
    pub fn whole_height(&self) -> f32 {
        to_f32(self.rows) * (self.height + GAP) - GAP
    }

    /// The plots that are at least partly visible between two heights.
    #[must_use]
    pub fn visible(&self, top: f32, bottom: f32) -> Range<usize> {
        let pitch = self.height + GAP;
        let first = to_count(top.max(0.0) / pitch) * self.columns;
        let end = to_count((bottom / pitch).max(0.0).ceil()) * self.columns;
        first.min(self.count)..end.min(self.count)
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_f32(count: usize) -> f32 {
    count as f32
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_count(number: f32) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_cover_nothing_and_stay_inside(
            count in 1_usize..600, group in 1_usize..9, width in 60_f32..5_000.0, height in 20_f32..3_000.0,
        ) {
            let cells = Cells::fit(count, group, width, height);
            let areas: Vec<Area> = (0..count).map(|at| cells.area(at)).collect();
            for (at, area) in areas.iter().enumerate() {
                prop_assert!(area.min.x >= 0.0 && area.max.x <= width.max(WIDTH_MIN) + 0.5, "{area:?}");
                prop_assert!(area.max.y <= cells.whole_height() + 0.5);
                prop_assert!(area.height() >= HEIGHT_MIN - 0.5, "legible");
                let next = areas.iter().skip(at + 1).take(cells.columns + 1);
                for other in next {
                    let apart = other.min.x + 0.5 >= area.max.x + GAP || other.min.y + 0.5 >= area.max.y + GAP
                        || other.max.x + GAP <= area.min.x + 0.5;
                    prop_assert!(apart, "{area:?} {other:?}");
                }
            }
            let (top, bottom) = (height * 0.3, height * 1.3);
            let seen = cells.visible(top, bottom);
            for (at, area) in areas.iter().enumerate() {
                let is_seen = area.max.y > top && area.min.y < bottom;
                prop_assert!(!is_seen || seen.contains(&at), "{at} of {seen:?}");
            }
        }
    }

    #[test]
    fn a_screen_is_filled() {
        let check = |count: usize, group: usize, width: f32, height: f32, expected: (usize, usize)| {
            let cells = Cells::fit(count, group, width, height);
            assert_eq!((cells.columns, cells.rows), expected, "{count} in {width}x{height}");
        };
        check(1, 1, 1_000.0, 600.0, (1, 1));
        check(2, 1, 1_000.0, 600.0, (1, 2));
        check(16, 1, 1_000.0, 600.0, (4, 4));
        check(64, 1, 3_400.0, 1_900.0, (7, 10));
        // Too many for the height: as many columns as are legible, and scrolling.
        check(64, 1, 800.0, 500.0, (4, 16));
        check(10, 5, 1_000.0, 600.0, (5, 2));
    }
}
