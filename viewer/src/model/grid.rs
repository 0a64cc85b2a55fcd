//! The grid that is shown, and where its places are on the map.
//!
//! Pure. Invariant: the layout is that of the grid with the user's moves applied. Not here: how a grid is
//! laid out (`layout`).

use crate::feed::Drawn;
use crate::flock::sweep::HostName;
use crate::grid::Grid;
use crate::grid::place::{DomainId, Part, Place, PlaceId};
use crate::layout::{Layout, Moves, Point, layout};
use crate::live::cache::THIS_MACHINE;
use std::sync::Arc;
use wire::time::Time;

/// Grid, layout and moves.
#[derive(Clone, Default)]
pub struct PlacedGrid {
    drawn: Arc<Drawn>,
    received_at: Option<Time>,
    layout: Layout,
    moves: Moves,
}

impl PlacedGrid {
    pub(super) fn new(moves: Moves) -> PlacedGrid {
        PlacedGrid { moves, ..PlacedGrid::default() }
    }

    /// The grid as it arrived, with its layout without moves.
    #[must_use]
    pub fn drawn(&self) -> &Arc<Drawn> {
        &self.drawn
    }

    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.drawn.grid
    }

    /// The layout with the user's moves.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    #[must_use]
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    #[must_use]
    pub fn received_at(&self) -> Option<Time> {
        self.received_at
    }

    /// All hosts.
    pub fn servers(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        let places = (0..).map(PlaceId).zip(&self.drawn.grid.places);
        places.filter(|(_, place)| place.part == Part::Server)
    }

    /// The names of all hosts in queries.
    pub fn server_names(&self) -> impl Iterator<Item = (PlaceId, HostName)> {
        self.servers().map(|(id, _)| (id, self.host_name(id)))
    }

    /// The place of a host.
    #[must_use]
    pub fn host(&self, name: &HostName) -> Option<PlaceId> {
        let is_it = |(_, place): &(PlaceId, &Place)| {
            *place.name == *name.host && *self.domain_name(place.domain) == *name.domain
        };
        self.servers().find(is_it).map(|(id, _)| id)
    }

    /// The name of a host in queries.
    #[must_use]
    pub fn host_name(&self, id: PlaceId) -> HostName {
        let place = self.drawn.grid.place(id);
        HostName::new(self.domain_name(place.domain), &place.name)
    }

    /// The name of a domain in queries; empty for a queried daemon that is in no domain.
    #[must_use]
    pub fn domain_name(&self, id: DomainId) -> &str {
        let name = self.drawn.grid.domain(id).name.as_str();
        if name == THIS_MACHINE { "" } else { name }
    }

    pub(super) fn replace(&mut self, drawn: Arc<Drawn>, at: Time) {
        self.layout = match self.moves.is_empty() {
            true => drawn.layout.clone(),
            false => layout(&drawn.grid, &self.moves),
        };
        (self.drawn, self.received_at) = (drawn, Some(at));
    }

    pub(super) fn move_place(&mut self, id: PlaceId, by: Point) {
        self.moves.place(&self.drawn.grid, id, by);
        self.layout = layout(&self.drawn.grid, &self.moves);
    }

    pub(super) fn move_domain(&mut self, id: DomainId, by: Point) {
        self.moves.domain(&self.drawn.grid, id, by);
        self.layout = layout(&self.drawn.grid, &self.moves);
    }

    pub(super) fn undo_moves(&mut self) {
        self.moves.clear();
        self.layout = self.drawn.layout.clone();
    }
}
