//! Lasso selection: a line drawn around marks, and the processes inside.
//!
//! Pure. Rule: a point is inside if a ray from it crosses the line an odd number of times (the even-odd
//! rule); the line is closed automatically.

use super::chosen::Chosen;
use super::measure::{Measure, Spot};
use super::{Flock, Member};
use std::collections::BTreeSet;
use wire::time::Time;

/// Maximum number of points, more than a hand draws; further points are ignored.
pub const POINTS_MAX: usize = 2_000;
/// Points nearer than this to the previous one, as a share of the chart, are ignored.
const STEP_MIN: f32 = 0.002;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lasso {
    points: Vec<Spot>,
}

impl Lasso {
    /// Append a point.
    pub fn to(&mut self, point: Spot) {
        let is_near =
            |last: &Spot| (last.x - point.x).abs() < STEP_MIN && (last.y - point.y).abs() < STEP_MIN;
        let is_sound = point.x.is_finite() && point.y.is_finite();
        if is_sound && self.points.len() < POINTS_MAX && !self.points.last().is_some_and(is_near) {
            self.points.push(point);
        }
    }

    #[must_use]
    pub fn points(&self) -> &[Spot] {
        &self.points
    }

    /// Whether a point is inside.
    #[must_use]
    pub fn contains(&self, point: Spot) -> bool {
        let Some(mut before) = self.points.last().copied() else { return false };
        let mut inside = false;
        for &after in &self.points {
            let straddles = (before.y > point.y) != (after.y > point.y);
            if straddles
                && point.x < before.x + (point.y - before.y) / (after.y - before.y) * (after.x - before.x)
            {
                inside = !inside;
            }
            before = after;
        }
        inside
    }

    /// The processes with a drawn mark inside at `time`. `shown` returns the position of a mark on the chart.
    #[must_use]
    pub fn members(
        &self,
        flock: &Flock,
        chosen: &Chosen,
        time: Time,
        shown: impl Fn(Member, Measure, Spot) -> Spot,
    ) -> BTreeSet<Member> {
        let mut members = BTreeSet::new();
        flock.each(time, |member, track, spots| {
            let is_inside = || {
                Measure::ALL.into_iter().zip(spots).any(|(measure, spot)| {
                    chosen.has(measure) && self.contains(shown(member, measure, *spot))
                })
            };
            if chosen.fits(flock, track.name, track.pid, flock.host_of(member)) && is_inside() {
                members.insert(member);
            }
        });
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasso(points: &[(f32, f32)]) -> Lasso {
        let mut lasso = Lasso::default();
        points.iter().for_each(|&(x, y)| lasso.to(Spot { x, y }));
        lasso
    }

    #[test]
    fn inside_is_inside_whatever_way_it_is_drawn() {
        let square = [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8)];
        let mut backward = square;
        backward.reverse();
        for points in [square, backward] {
            let lasso = lasso(&points);
            let inside = |x: f32, y: f32| lasso.contains(Spot { x, y });
            assert!(inside(0.5, 0.5) && inside(0.21, 0.79));
            assert!(!inside(0.1, 0.5) && !inside(0.9, 0.5) && !inside(0.5, 0.9) && !inside(0.0, 0.2));
        }
        // A horseshoe: the area between its arms is outside.
        let shoe = lasso(&[
            (0.0, 0.0),
            (1.0, 0.0),
            (1.0, 1.0),
            (0.7, 1.0),
            (0.7, 0.3),
            (0.3, 0.3),
            (0.3, 1.0),
            (0.0, 1.0),
        ]);
        assert!(shoe.contains(Spot { x: 0.1, y: 0.9 }) && !shoe.contains(Spot { x: 0.5, y: 0.9 }));
    }

    #[test]
    fn a_lasso_is_bounded_and_takes_only_places() {
        let mut lasso = Lasso::default();
        assert!(!lasso.contains(Spot { x: 0.0, y: 0.0 }));
        lasso.to(Spot { x: f32::NAN, y: 0.0 });
        assert!(lasso.points().is_empty());
        for at in 0..3 * POINTS_MAX {
            lasso.to(Spot { x: (at % 100) as f32 / 10.0, y: at as f32 });
        }
        assert_eq!(lasso.points().len(), POINTS_MAX);
    }
}
