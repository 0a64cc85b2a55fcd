//! What is chosen: a host, a client, a call or a domain, by a click or by its name.
//!
//! Rule: it is kept by names, so that it stays chosen when the grid is put together again. Not here: what is shown of it
//! (`details`).

use super::{App, tabs};
use crate::grid::Grid;
use crate::grid::call::Call;
use crate::grid::place::{DomainId, Part, Place, PlaceId};
use std::collections::BTreeSet;

/// What is chosen, by names, so that it stays chosen when the grid is put together again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A client, scheduler or host.
    Place {
        /// The domain's name.
        domain: String,
        /// Its part.
        part: Part,
        /// Its name.
        name: String,
    },
    /// A call, by its id.
    Call(String),
    /// A domain, by its name.
    Domain(String),
}

impl Selection {
    /// A place of a grid.
    #[must_use]
    pub fn of_place(grid: &Grid, id: PlaceId) -> Selection {
        let place = grid.place(id);
        let domain = grid.domain(place.domain).name.clone();
        Selection::Place { domain, part: place.part, name: place.name.clone() }
    }

    /// What has this name: a host or client, of a domain where it is written `DOMAIN/NAME`, else a call by its id, else a domain.
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

    /// In which domains there is a place of this name, where that is more than one.
    #[must_use]
    pub fn domains_with(grid: &Grid, name: &str) -> BTreeSet<String> {
        let named = grid.places.iter().filter(|place| place.name == name);
        let domains: BTreeSet<String> = named.map(|place| grid.domain(place.domain).name.clone()).collect();
        if domains.len() > 1 { domains } else { BTreeSet::new() }
    }

    /// The place's number in this grid, where it is one and is still there.
    #[must_use]
    pub fn place(&self, grid: &Grid) -> Option<PlaceId> {
        let Selection::Place { domain, part, name } = self else { return None };
        let is_it = |place: &Place| {
            place.part == *part && place.name == *name && grid.domain(place.domain).name == *domain
        };
        (0..).map(PlaceId).zip(&grid.places).find(|(_, place)| is_it(place)).map(|(id, _)| id)
    }

    /// The domain's number in this grid, where it is one and is still there.
    #[must_use]
    pub fn domain(&self, grid: &Grid) -> Option<DomainId> {
        let Selection::Domain(name) = self else { return None };
        (0..).map(DomainId).zip(&grid.domains).find(|(_, domain)| domain.name == *name).map(|(id, _)| id)
    }
}

impl App {
    /// What is chosen.
    #[must_use]
    pub fn selection(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    /// Whether what has this name is chosen.
    #[must_use]
    pub fn is_selected(&self, name: &str) -> bool {
        self.selection.is_some() && self.selection == Selection::named(&self.drawn.grid, name)
    }

    /// Choose something, or nothing.
    pub fn select(&mut self, selection: Option<Selection>) {
        (self.selection, self.to_select) = (selection, None);
        self.find_selection();
    }

    /// Choose what has this name, and show of it what the tab in front shows; where nothing is known yet, as soon as it is there.
    /// Whether there is such a thing, or may be.
    pub fn select_named(&mut self, name: &str) -> bool {
        let Some(selection) = Selection::named(&self.drawn.grid, name) else {
            let may_come = self.drawn.grid.places.is_empty();
            self.to_select = may_come.then(|| name.to_owned());
            return may_come;
        };
        let domains = Selection::domains_with(&self.drawn.grid, name);
        if let Some(first) = domains.first() {
            let words = format!("{name} is in {} domains; {first}/{name} names one", domains.len());
            self.notify(self.now, words);
        }
        let place =
            selection.place(&self.drawn.grid).filter(|id| self.drawn.grid.place(*id).part == Part::Server);
        match (tabs::front(self), place) {
            (tabs::Tab::Sensors, Some(id)) => {
                self.to_select = None;
                self.choose_sensor_of(id);
                return true;
            }
            (tabs::Tab::Graphs, Some(id)) => self.open_graphs(id),
            (tabs::Tab::Flock, Some(id)) => self.watch_flock_of(id),
            _ => {}
        }
        self.select(Some(selection));
        if let (tabs::Tab::Flock, Some(call)) = (tabs::front(self), self.selected_call().cloned()) {
            self.follow_call(&call, None);
        }
        true
    }

    /// Choose what was to be chosen, once it is there.
    pub(super) fn select_what_came(&mut self) {
        if let Some(name) = self.to_select.take()
            && !self.select_named(&name)
        {
            self.to_select = Some(name);
        }
    }

    pub(super) fn find_selection(&mut self) {
        let grid = &self.drawn.grid;
        (self.selected_place, self.selected_call) = match &self.selection {
            Some(selection @ Selection::Place { .. }) => (selection.place(grid), None),
            Some(Selection::Call(id)) => (None, grid.call_named(id)),
            Some(Selection::Domain(_)) | None => (None, None),
        };
    }

    pub(super) fn selected_place(&self) -> Option<PlaceId> {
        self.selected_place
    }

    pub(super) fn selected_call(&self) -> Option<&Call> {
        self.selected_call.and_then(|number| self.drawn.grid.calls.get(number as usize))
    }

    pub(super) fn is_selected_domain(&self, id: DomainId) -> bool {
        matches!(&self.selection, Some(Selection::Domain(name)) if *name == self.drawn.grid.domain(id).name)
    }
}
