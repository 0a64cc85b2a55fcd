//! Camera of the map: which part of it is seen, and how large.
//!
//! Pure. Rule: until the user moves it, it shows the whole map; what is at the pointer stays there when the
//! zoom changes. Not here: what is drawn at which zoom (`map`).

use crate::layout::{Area, Point};
use egui::{Pos2, Rect, Vec2, pos2, vec2};

/// Least and greatest zoom, in points of the screen for one of the map.
const ZOOM: std::ops::RangeInclusive<f32> = 0.004..=8.0;
/// Greatest zoom of a map that is shown whole: two hosts should not fill a screen.
const FIT_MAX: f32 = 1.7;
/// Margin around a map that is shown whole, in points of the screen.
const MARGIN: f32 = 22.0;

/// View of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Camera {
    /// The point of the map in the middle of the view.
    center: Point,
    /// Points of the screen for one of the map.
    zoom: f32,
    /// Whether the whole map is shown, also when it changes.
    whole: bool,
    view: Rect,
}

impl Default for Camera {
    fn default() -> Camera {
        Camera { center: Point::default(), zoom: 1.0, whole: true, view: Rect::ZERO }
    }
}

impl Camera {
    /// Set the rectangle of the view on the screen, and the area of the whole map.
    pub(super) fn frame(&mut self, view: Rect, whole: Area) {
        self.view = view;
        if self.whole {
            self.show(whole);
            self.whole = true;
        }
    }

    /// Show the whole map from now on.
    pub(super) fn show_whole(&mut self) {
        self.whole = true;
    }

    /// Show an area as large as fits.
    pub(super) fn show(&mut self, area: Area) {
        let free = (self.view.size() - Vec2::splat(2.0 * MARGIN)).max(Vec2::splat(1.0));
        let zoom = (free.x / area.width().max(1.0)).min(free.y / area.height().max(1.0));
        self.zoom = zoom.min(FIT_MAX).clamp(*ZOOM.start(), *ZOOM.end());
        self.center = area.center();
        self.whole = false;
    }

    /// Points of the screen for one of the map.
    #[must_use]
    pub(super) fn zoom(&self) -> f32 {
        self.zoom
    }

    /// The rectangle of the view on the screen.
    #[must_use]
    pub(super) fn view(&self) -> Rect {
        self.view
    }

    /// A point of the map on the screen.
    #[must_use]
    pub(super) fn on_screen(&self, point: Point) -> Pos2 {
        let middle = self.view.center();
        pos2(
            middle.x + (point.x - self.center.x) * self.zoom,
            middle.y + (point.y - self.center.y) * self.zoom,
        )
    }

    /// An area of the map on the screen.
    #[must_use]
    pub(super) fn area_on_screen(&self, area: Area) -> Rect {
        Rect::from_min_max(self.on_screen(area.min), self.on_screen(area.max))
    }

    /// A point of the screen on the map.
    #[must_use]
    pub(super) fn on_map(&self, pos: Pos2) -> Point {
        let from_middle = (pos - self.view.center()) / self.zoom;
        Point::new(self.center.x + from_middle.x, self.center.y + from_middle.y)
    }

    /// A vector on the screen as one on the map.
    #[must_use]
    pub(super) fn vector_on_map(&self, vector: Vec2) -> Point {
        Point::new(vector.x / self.zoom, vector.y / self.zoom)
    }

    /// Move the view with the pointer.
    pub(super) fn drag(&mut self, by: Vec2) {
        if by == Vec2::ZERO || !(by.x.is_finite() && by.y.is_finite()) {
            return;
        }
        let by = self.vector_on_map(by);
        self.center = Point::new(self.center.x - by.x, self.center.y - by.y);
        self.whole = false;
    }

    /// Enlarge by a factor; what is at `fixed` on the screen stays there.
    pub(super) fn enlarge(&mut self, factor: f32, fixed: Pos2) {
        if !(factor.is_finite() && factor > 0.0) || (factor - 1.0).abs() < 1e-6 {
            return;
        }
        let before = self.on_map(fixed);
        self.zoom = (self.zoom * factor).clamp(*ZOOM.start(), *ZOOM.end());
        let after = self.on_map(fixed);
        let by = vec2(before.x - after.x, before.y - after.y);
        self.center = self.center.plus(Point::new(by.x, by.y));
        self.whole = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: Rect = Rect { min: Pos2 { x: 100.0, y: 50.0 }, max: Pos2 { x: 900.0, y: 650.0 } };

    fn area(width: f32, height: f32) -> Area {
        Area { min: Point::new(-10.0, 20.0), max: Point::new(-10.0 + width, 20.0 + height) }
    }

    #[test]
    fn everything_is_shown_until_the_user_moves_it() {
        let mut camera = Camera::default();
        for whole in [area(10.0, 10.0), area(5_000.0, 200.0), area(0.0, 0.0)] {
            camera.frame(VIEW, whole);
            assert!(VIEW.contains_rect(camera.area_on_screen(whole)), "{whole:?}");
        }
        camera.drag(vec2(30.0, 0.0));
        let moved = camera;
        camera.frame(VIEW, area(9_000.0, 9_000.0));
        assert_eq!(camera, moved);
        camera.show_whole();
        camera.frame(VIEW, area(9_000.0, 9_000.0));
        assert!(VIEW.contains_rect(camera.area_on_screen(area(9_000.0, 9_000.0))));
    }

    #[test]
    fn what_is_at_the_pointer_stays_there() {
        let mut camera = Camera::default();
        camera.frame(VIEW, area(2_000.0, 900.0));
        let pointer = pos2(300.0, 333.0);
        let before = camera.on_map(pointer);
        for factor in [1.7, 0.3, 5.0, f32::NAN, -1.0, 0.0, 1e-9] {
            camera.enlarge(factor, pointer);
            let after = camera.on_map(pointer);
            assert!(
                (after.x - before.x).abs() < 0.6 && (after.y - before.y).abs() < 0.6,
                "{factor}: {after:?}"
            );
            assert!((camera.on_screen(after) - pointer).length() < 0.1);
        }
    }
}
