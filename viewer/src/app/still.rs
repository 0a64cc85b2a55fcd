//! The contents of the window as they stand, for a thread that writes them into a file.
//!
//! Rule: what is large is shared (the grid, the figures) but for the flock, which is copied: some tens of milliseconds
//! where it is full, once a file. Not here: writing (`files`).

use super::App;

impl App {
    /// The same contents, to which nothing comes any more.
    #[must_use]
    pub fn still(&self) -> App {
        App {
            source: self.source.clone(),
            zone: self.zone.clone(),
            inbox: None,
            status: self.status.clone(),
            grid_at: self.grid_at,
            status_at: self.status_at,
            now: self.now,
            begun: self.begun,
            drawn: self.drawn.clone(),
            layout: self.layout.clone(),
            timeline: self.timeline.clone(),
            is_placed: self.is_placed,
            scene: self.scene.clone(),
            search: self.search.clone(),
            filter: self.filter.clone(),
            fits: self.fits.clone(),
            selection: self.selection.clone(),
            selected_place: self.selected_place,
            selected_call: self.selected_call,
            listed_call: self.listed_call.clone(),
            to_select: None,
            camera: self.camera,
            dragged: None,
            closed_domains: self.closed_domains.clone(),
            tabs: self.tabs.clone(),
            worked_in: self.worked_in,
            rows: self.rows.clone(),
            graphs: self.graphs.clone(),
            flock: self.flock.still(),
            sensors: self.sensors.clone(),
            served: self.served.clone(),
            notice: None,
            domain_typed: String::new(),
            wanted_file: None,
            settings: self.settings.clone(),
            focus_search: false,
        }
    }
}
