//! What is to be seen at a time: marks on their ways, edges that carry them, what waits and works at each place.
//!
//! Pure. Rule: a function of the grid, the time, the length of a flight and the filter, and of nothing that was seen
//! before; scrubbing to a time and waiting for it give one picture. Not here: places and colours.

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

/// Most marks that are drawn at once; beyond them a screen shows no more.
pub const MARKS_MAX: usize = 20_000;
/// How many flights long an edge is still seen after its last call.
const GLOW_FLIGHTS: i64 = 3;
/// Marks nearer to each other on one way than this share of it get lanes of their own.
const LANE_SHARE: f32 = 0.025;

/// What a mark, an edge or a place says by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tone {
    /// Handed in, not at work yet.
    Asking,
    /// At work.
    Working,
    /// Over, so.
    Over(Outcome),
}

impl Tone {
    /// That of a call at a stand.
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
    /// Of which call.
    pub call: u32,
    /// On which leg.
    pub leg: Leg,
    /// From where.
    pub from: PlaceId,
    /// To where.
    pub to: PlaceId,
    /// How far, from 0 to 1.
    pub share: f32,
    /// Beside the middle of the way, where several go together.
    pub lane: i32,
    /// Its colour.
    pub tone: Tone,
}

/// A way that carries calls now, or did a moment ago.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// From where.
    pub from: PlaceId,
    /// To where.
    pub to: PlaceId,
    /// On which leg.
    pub leg: Leg,
    /// How many calls.
    pub calls: u32,
    /// The colour of most weight: what went wrong before what went well.
    pub tone: Tone,
    /// From 1 (now) to 0 (gone).
    pub fresh: f32,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// Calls that wait here, wherever their marks are.
    pub waiting: u32,
    /// Calls at work here, wherever their marks are.
    pub working: u32,
    /// Marks that wait here.
    pub queued: u32,
    /// Marks that go around here.
    pub circling: u32,
    /// How the last call that ended here a moment ago did, and how fresh that is.
    pub over: Option<(Outcome, f32)>,
}

/// Calls by where they stand, all that fit the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Handed in, not started.
    pub waiting: u32,
    /// At work.
    pub running: u32,
    /// Ended well.
    pub ok: u32,
    /// Ended as no one wanted.
    pub failed: u32,
    /// Ended otherwise.
    pub ended: u32,
}

/// What is to be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// Moving marks.
    pub marks: Vec<Mark>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// What is at each place, by its number.
    pub places: Vec<Standing>,
    /// Sums.
    pub counts: Counts,
    /// Those of each domain, by its number.
    pub domains: Vec<Counts>,
    /// Marks beyond [`MARKS_MAX`], which are not there.
    pub left_out: u64,
}

/// What is to be seen of `grid` at `time`, where flights last `flight_micros`; of calls only those that `fits`.
#[must_use]
pub fn scene(grid: &Grid, time: Time, flight_micros: i64, fits: &dyn Fn(u32) -> bool) -> Scene {
    let places = vec![Standing::default(); grid.places.len()];
    let domains = vec![Counts::default(); grid.domains.len()];
    let mut scene = Scene { places, domains, ..Scene::default() };
    for (number, call) in (0..).zip(&grid.calls) {
        // Calls stand in the order in which they are first heard of.
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

    /// A call that just ended: its marks go back, and its hosts show how it was.
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

    /// The ways of a call that ended a moment ago, which fade.
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

    fn mark(&mut self, number: u32, call: &Call, leg: Leg, way: (PlaceId, PlaceId), share: f32) {
        let (from, to) = way;
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

/// One edge for each way.
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

/// Which of two colours is seen where both would be.
fn weight(tone: Tone) -> u8 {
    match tone {
        Tone::Over(Outcome::NodeFail | Outcome::Failed | Outcome::Timeout) => 3,
        Tone::Working => 2,
        Tone::Asking => 1,
        Tone::Over(_) => 0,
    }
}

/// Marks that go side by side on one way get lanes: 0, 1, -1, 2, -2 and so on.
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
