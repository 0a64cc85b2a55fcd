//! Scene: what is visible at a time: moving marks, the edges they move along, and the waiting and working
//! calls of each place.
//!
//! Pure. Rule: a function of the grid, the time, the duration of a flight and the filter, and of nothing
//! shown before; a jump to a time and playback until it give the same picture. Not here: positions and
//! colours.

pub mod course;
pub mod curve;
pub mod filter;

use crate::grid::Grid;
use crate::grid::call::Call;
use crate::grid::place::PlaceId;
use course::{Leg, Stand, offering, stand};
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Maximum number of marks; a screen cannot show more.
pub const MARKS_MAX: usize = 20_000;
/// How long an edge stays visible after its last call, in flights.
const GLOW_FLIGHTS: i64 = 3;
/// Marks on one curve that are closer than this share of it get separate lanes.
const LANE_SHARE: f32 = 0.025;

/// Meaning of the colour of a mark or an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    /// Submitted, but not started.
    Asking,
    Working,
    /// Ended, with this outcome.
    Over(Outcome),
}

impl Tone {
    /// The tone of a call on a leg.
    #[must_use]
    pub fn of(call: &Call, leg: Leg) -> Tone {
        match leg {
            Leg::Submit | Leg::Offer => Tone::Asking,
            Leg::Assign => Tone::Working,
            Leg::Return => Tone::Over(call.outcome.unwrap_or(Outcome::Finished)),
        }
    }
}

/// A moving mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Index of the call.
    pub call: u32,
    pub leg: Leg,
    pub from: PlaceId,
    pub to: PlaceId,
    /// Progress, from 0 to 1.
    pub share: f32,
    /// Lane beside the middle of the curve, where several marks move together.
    pub lane: i32,
    pub tone: Tone,
}

/// A connection that has calls now, or had some recently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub from: PlaceId,
    pub to: PlaceId,
    pub leg: Leg,
    /// Number of calls.
    pub calls: u32,
    /// The tone with the highest priority: failures come first.
    pub tone: Tone,
    /// From 1 (now) to 0 (invisible).
    pub fresh: f32,
}

/// Calls and marks at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlaceStatus {
    /// Waiting calls, wherever their marks are.
    pub waiting: u32,
    /// Running calls, wherever their marks are.
    pub working: u32,
    /// Marks that wait here.
    pub queued: u32,
    /// Marks that circle here.
    pub circling: u32,
    /// Outcome of the last call that ended here recently, and its freshness from 1 to 0.
    pub over: Option<(Outcome, f32)>,
}

/// Number of calls by state, of those that match the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Submitted, but not started.
    pub waiting: u32,
    pub running: u32,
    /// Ended successfully.
    pub ok: u32,
    /// Ended with a failure.
    pub failed: u32,
    /// Ended in another way.
    pub ended: u32,
}

/// The scene.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Moving marks.
    pub marks: Vec<Mark>,
    pub edges: Vec<Edge>,
    /// Calls and marks at each place, by its number.
    pub places: Vec<PlaceStatus>,
    /// Totals.
    pub counts: Counts,
    /// Totals of each domain, by its number.
    pub domains: Vec<Counts>,
    /// Marks beyond [`MARKS_MAX`], which are not drawn.
    pub left_out: u64,
}

/// The scene of `grid` at `time`, with flights of `flight_micros`, of the calls for which `fits` returns
/// true.
#[must_use]
pub fn scene(grid: &Grid, time: Time, flight_micros: i64, fits: &dyn Fn(u32) -> bool) -> Scene {
    let places = vec![PlaceStatus::default(); grid.places.len()];
    let domains = vec![Counts::default(); grid.domains.len()];
    let mut scene = Scene { places, domains, ..Scene::default() };
    for (number, call) in (0..).zip(&grid.calls) {
        // Calls are sorted by their first known time.
        if call.first().is_none_or(|first| first > time) {
            match call.first() {
                Some(_) => break,
                None => continue,
            }
        }
        if fits(number) {
            scene.counts.add(call, time);
            scene.domains[call.domain.at()].add(call, time);
            scene.call(number, call, time, flight_micros);
        }
    }
    scene.edges = merged(std::mem::take(&mut scene.edges));
    give_lanes(&mut scene.marks);
    scene
}

impl Counts {
    fn add(&mut self, call: &Call, time: Time) {
        let count = match (call.state_at(time), call.outcome) {
            (None, _) => return,
            (Some(State::Waiting), _) => &mut self.waiting,
            (Some(State::Running), _) => &mut self.running,
            (Some(State::Ended), Some(Outcome::Ok)) => &mut self.ok,
            (Some(State::Ended), _) if call.has_failed() => &mut self.failed,
            (Some(State::Ended), _) => &mut self.ended,
        };
        *count += 1;
    }
}

impl Scene {
    fn call(&mut self, number: u32, call: &Call, time: Time, flight: i64) {
        let source = call.scheduler.unwrap_or(call.client);
        if let (Some(share), Some(scheduler)) = (offering(call, time, flight), call.scheduler) {
            call.offers
                .iter()
                .for_each(|&offer| self.mark(number, call, Leg::Offer, (scheduler, offer), share));
        }
        match call.state_at(time) {
            Some(State::Waiting) => self.places[source.at()].waiting += 1,
            Some(State::Running) => call.hosts.iter().for_each(|host| self.places[host.at()].working += 1),
            Some(State::Ended) | None => {}
        }
        match stand(call, time, flight) {
            Stand::Nowhere => {}
            Stand::Waiting => self.places[source.at()].queued += 1,
            Stand::Moving(Leg::Submit | Leg::Offer, share) => {
                if let Some(scheduler) = call.scheduler {
                    self.mark(number, call, Leg::Submit, (call.client, scheduler), share);
                }
            }
            Stand::Moving(Leg::Assign, share) => {
                for &host in &call.hosts {
                    self.mark(number, call, Leg::Assign, (source, host), share);
                }
            }
            Stand::Moving(Leg::Return, share) => self.end(number, call, source, share),
            Stand::Working => {
                for &host in &call.hosts {
                    self.places[host.at()].circling += 1;
                    self.edge(source, host, Leg::Assign, Tone::Working, 1.0);
                }
            }
        }
        self.glow(call, source, time, flight);
    }

    /// A call that just ended: its marks return, and its hosts show the outcome.
    fn end(&mut self, number: u32, call: &Call, source: PlaceId, share: f32) {
        let outcome = call.outcome.unwrap_or(Outcome::Finished);
        for &host in &call.hosts {
            self.mark(number, call, Leg::Return, (host, call.client), share);
            let over = &mut self.places[host.at()].over;
            let fresh = 1.0 - share;
            if over.is_none_or(|(known, freshness)| (fresh, outcome) > (freshness, known)) {
                *over = Some((outcome, fresh));
            }
        }
        if call.hosts.is_empty() && source != call.client {
            self.mark(number, call, Leg::Return, (source, call.client), share);
        }
    }

    /// The edges of a call that ended recently, which fade.
    #[allow(clippy::cast_precision_loss)]
    fn glow(&mut self, call: &Call, source: PlaceId, time: Time, flight: i64) {
        let Some(ended) = call.ended else { return };
        let (age, whole) =
            (time.micros().saturating_sub(ended.micros()), flight.saturating_mul(GLOW_FLIGHTS));
        if age < 0 || age >= whole {
            return;
        }
        let fresh = 1.0 - age as f32 / whole as f32;
        let tone = Tone::of(call, Leg::Return);
        for &host in &call.hosts {
            self.edge(source, host, Leg::Assign, tone, fresh);
        }
    }

    fn mark(&mut self, number: u32, call: &Call, leg: Leg, route: (PlaceId, PlaceId), share: f32) {
        let (from, to) = route;
        let tone = Tone::of(call, leg);
        self.edge(from, to, leg, tone, if leg == Leg::Offer { 1.0 - share } else { 1.0 });
        if self.marks.len() >= MARKS_MAX {
            self.left_out += 1;
            return;
        }
        self.marks.push(Mark { call: number, leg, from, to, share, lane: 0, tone });
    }

    fn edge(&mut self, from: PlaceId, to: PlaceId, leg: Leg, tone: Tone, fresh: f32) {
        self.edges.push(Edge { from, to, leg, calls: 1, tone, fresh });
    }
}

/// Merge the edges of each pair of places and leg.
fn merged(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort_by(|one, other| {
        let key = |edge: &Edge| (edge.from, edge.to, edge.leg);
        key(one)
            .cmp(&key(other))
            .then(weight(other.tone).cmp(&weight(one.tone)))
            .then(other.fresh.total_cmp(&one.fresh))
    });
    let mut merged: Vec<Edge> = Vec::new();
    for edge in edges {
        match merged.last_mut() {
            Some(last) if (last.from, last.to, last.leg) == (edge.from, edge.to, edge.leg) => {
                last.calls += 1;
                last.fresh = last.fresh.max(edge.fresh);
            }
            _ => merged.push(edge),
        }
    }
    merged
}

/// Priority of a tone where several share an edge.
fn weight(tone: Tone) -> u8 {
    match tone {
        Tone::Over(Outcome::NodeFail | Outcome::Failed | Outcome::Timeout) => 3,
        Tone::Working => 2,
        Tone::Asking => 1,
        Tone::Over(_) => 0,
    }
}

/// Assign lanes to marks that move side by side: 0, 1, -1, 2, -2 and so on.
fn give_lanes(marks: &mut [Mark]) {
    marks.sort_by(|one, other| {
        let key = |mark: &Mark| (mark.from, mark.to, mark.leg);
        key(one).cmp(&key(other)).then(one.share.total_cmp(&other.share)).then(one.call.cmp(&other.call))
    });
    let mut together = 0;
    for at in 1..marks.len() {
        let (before, mark) = (marks[at - 1], &mut marks[at]);
        let near = (before.from, before.to, before.leg) == (mark.from, mark.to, mark.leg)
            && mark.share - before.share < LANE_SHARE;
        together = if near { together + 1 } else { 0 };
        let side = if together % 2 == 1 { 1 } else { -1 };
        mark.lane = side * ((together + 1) / 2);
    }
}

#[cfg(test)]
mod tests;
