//! Curves along which marks move between two places.
//!
//! Pure. Rule: each pair of places and leg has exactly one curve, so that an edge and the marks on it
//! coincide.

use super::course::Leg;
use crate::layout::Point;

/// Distance of two lanes of one curve, in points at zoom 1.
const LANE_WIDTH: f32 = 4.5;
/// Maximum number of lanes on each side; further marks share the outermost.
const LANES_MAX: i32 = 6;

/// A cubic Bézier curve: start, two control points, end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve(pub [Point; 4]);

impl Curve {
    /// The curve from `from` to `to` on this leg: outbound legs leave and arrive horizontally, the return leg
    /// bends below.
    #[must_use]
    pub fn route(from: Point, to: Point, leg: Leg) -> Curve {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let handles = match leg {
            Leg::Submit | Leg::Offer | Leg::Assign => {
                let reach = dx.abs().max(40.0) * 0.5;
                [Point::new(from.x + reach, from.y), Point::new(to.x - reach, to.y)]
            }
            Leg::Return => {
                let bow = 16.0 + (0.14 * dx.hypot(dy)).min(90.0);
                [
                    Point::new(from.x + dx * 0.3, from.y + dy * 0.1 + bow),
                    Point::new(to.x - dx * 0.3, to.y - dy * 0.1 + bow),
                ]
            }
        };
        Curve([from, handles[0], handles[1], to])
    }

    /// The point at `share` of the curve, from 0 to 1.
    #[must_use]
    pub fn at(&self, share: f32) -> Point {
        let (t, u) = (share, 1.0 - share);
        let weights = [u * u * u, 3.0 * u * u * t, 3.0 * u * t * t, t * t * t];
        let sum = |part: fn(&Point) -> f32| {
            weights.iter().zip(&self.0).map(|(weight, point)| weight * part(point)).sum()
        };
        Point::new(sum(|point| point.x), sum(|point| point.y))
    }

    /// The point at `share` of the curve in a lane beside its middle.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn in_lane(&self, share: f32, lane: i32) -> Point {
        let point = self.at(share);
        if lane == 0 {
            return point;
        }
        let (ahead, behind) = (self.at((share + 0.01).min(1.0)), self.at((share - 0.01).max(0.0)));
        let (dx, dy) = (ahead.x - behind.x, ahead.y - behind.y);
        let len = dx.hypot(dy).max(1e-6);
        // Lanes diverge after the start and converge before the end.
        let apart = (4.0 * share * (1.0 - share)).clamp(0.0, 1.0).sqrt();
        let offset = lane.clamp(-LANES_MAX, LANES_MAX) as f32 * LANE_WIDTH * apart;
        Point::new(point.x - dy / len * offset, point.y + dx / len * offset)
    }
}

/// Easing: a mark is slow at both ends.
#[must_use]
pub fn eased(share: f32) -> f32 {
    share * share * (3.0 - 2.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_begins_and_ends_at_its_places() {
        let (one, other) = (Point::new(1.0, 2.0), Point::new(301.0, 52.0));
        for leg in [Leg::Submit, Leg::Offer, Leg::Assign, Leg::Return] {
            let route = Curve::route(one, other, leg);
            assert_eq!((route.at(0.0), route.at(1.0)), (one, other));
            for lane in [-99, -1, 0, 1, 3] {
                assert!((route.in_lane(0.0, lane).x - one.x).abs() < 0.01, "{leg:?} {lane}");
            }
        }
    }

    #[test]
    fn lanes_are_apart_in_the_middle() {
        let route = Curve::route(Point::new(0.0, 0.0), Point::new(200.0, 0.0), Leg::Assign);
        assert!((route.in_lane(0.5, 1).y - route.in_lane(0.5, -1).y).abs() > 1.9 * LANE_WIDTH);
        assert_eq!(route.in_lane(0.5, 0), route.at(0.5));
    }

    #[test]
    fn the_way_back_goes_below_the_way_forth() {
        let (client, host) = (Point::new(0.0, 0.0), Point::new(300.0, 0.0));
        let back = Curve::route(host, client, Leg::Return).at(0.5);
        assert!(back.y > Curve::route(client, host, Leg::Assign).at(0.5).y + 20.0);
    }
}
