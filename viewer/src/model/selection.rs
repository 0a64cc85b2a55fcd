//! The selection: a host, client, call or domain, by a click or by its name.
//!
//! Pure. Invariant: a selection is stored by names, so that it survives a new grid; the numbers beside it are
//! those of the grid that was passed last. Not here: what is shown of it (`app::details`).

use crate::grid::Grid;
use crate::grid::call::Call;
use crate::grid::place::{DomainId, Part, Place, PlaceId};
use std::collections::BTreeSet;

/// A place, call or domain, by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A client, scheduler or host.
    Place { domain: String, part: Part, name: String },
    /// A call, by its id.
    Call(String),
    /// A domain, by its name.
    Domain(String),
}

impl Selection {
    #[must_use]
    pub fn of_place(grid: &Grid, id: PlaceId) -> Selection {
        let place = grid.place(id);
        let domain = grid.domain(place.domain).name.clone();
        Selection::Place { domain, part: place.part, name: place.name.clone() }
    }

    /// Find a host or client by `NAME` or `DOMAIN/NAME`, else a call by its id, else a domain.
    #[must_use]
    pub fn named(grid: &Grid, name: &str) -> Option<Selection> {
        let of_domain = name.rsplit_once('/');
        let is_it = |place: &Place| {
            let in_domain = |(domain, name)| place.name == name && grid.domain(place.domain).name == domain;
            place.name == name || of_domain.is_some_and(in_domain)
        };
        let place = (0..).map(PlaceId).zip(&grid.places).find(|(_, place)| is_it(place));
        match place {
            Some((id, _)) => Some(Selection::of_place(grid, id)),
            None if grid.call_named(name).is_some() => Some(Selection::Call(name.to_owned())),
            None if grid.domains.iter().any(|domain| domain.name == name) => {
                Some(Selection::Domain(name.to_owned()))
            }
            None => None,
        }
    }

    /// The domains that have a place of this name, where they are more than one.
    #[must_use]
    pub fn domains_with(grid: &Grid, name: &str) -> BTreeSet<String> {
        let named = grid.places.iter().filter(|place| place.name == name);
        let domains: BTreeSet<String> = named.map(|place| grid.domain(place.domain).name.clone()).collect();
        if domains.len() > 1 { domains } else { BTreeSet::new() }
    }

    /// The number of the selected place in this grid, if it is there.
    #[must_use]
    pub fn place(&self, grid: &Grid) -> Option<PlaceId> {
        let Selection::Place { domain, part, name } = self else { return None };
        let is_it = |place: &Place| {
            place.part == *part && place.name == *name && grid.domain(place.domain).name == *domain
        };
        (0..).map(PlaceId).zip(&grid.places).find(|(_, place)| is_it(place)).map(|(id, _)| id)
    }

    /// The number of the selected domain in this grid, if it is there.
    #[must_use]
    pub fn domain(&self, grid: &Grid) -> Option<DomainId> {
        let Selection::Domain(name) = self else { return None };
        (0..).map(DomainId).zip(&grid.domains).find(|(_, domain)| domain.name == *name).map(|(id, _)| id)
    }
}

/// What is selected, and its numbers in the grid.
#[derive(Clone, Default)]
pub struct Selected {
    selection: Option<Selection>,
    place: Option<PlaceId>,
    call: Option<u32>,
    /// The name to select once the grid has it.
    pending: Option<String>,
}

impl Selected {
    #[must_use]
    pub fn get(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    #[must_use]
    pub fn place(&self) -> Option<PlaceId> {
        self.place
    }

    #[must_use]
    pub fn call_number(&self) -> Option<usize> {
        self.call.map(|number| number as usize)
    }

    /// The selected call of this grid.
    #[must_use]
    pub fn call<'a>(&self, grid: &'a Grid) -> Option<&'a Call> {
        grid.calls.get(self.call_number()?)
    }

    /// Whether the domain of this number is selected.
    #[must_use]
    pub fn is_domain(&self, grid: &Grid, id: DomainId) -> bool {
        matches!(&self.selection, Some(Selection::Domain(name)) if *name == grid.domain(id).name)
    }

    /// Whether a call belongs to the selection; every call does where nothing is selected.
    #[must_use]
    pub fn includes(&self, grid: &Grid, call: &Call) -> bool {
        match &self.selection {
            None => true,
            Some(Selection::Call(id)) => call.id == *id,
            Some(Selection::Domain(name)) => grid.domain(call.domain).name == *name,
            Some(Selection::Place { .. }) => self.place.is_some_and(|place| {
                call.client == place || call.scheduler == Some(place) || call.hosts.contains(&place)
            }),
        }
    }

    pub(super) fn set(&mut self, selection: Option<Selection>, grid: &Grid) {
        (self.selection, self.pending) = (selection, None);
        self.find_in(grid);
    }

    /// Find the numbers in another grid.
    pub(super) fn find_in(&mut self, grid: &Grid) {
        (self.place, self.call) = match &self.selection {
            Some(selection @ Selection::Place { .. }) => (selection.place(grid), None),
            Some(Selection::Call(id)) => (None, grid.call_named(id)),
            Some(Selection::Domain(_)) | None => (None, None),
        };
    }

    pub(super) fn set_pending(&mut self, name: Option<String>) {
        self.pending = name;
    }

    pub(super) fn take_pending(&mut self) -> Option<String> {
        self.pending.take()
    }
}
