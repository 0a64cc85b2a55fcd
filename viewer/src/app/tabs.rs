//! The tabs in the middle: moved, split and stacked by hand, and kept so.
//!
//! Not here: what is in them (`map`, `calls`, `graphs`, `flock`, `sensors`).

use super::theme::Colors;
use super::{App, calls, flock, graphs, map, sensors};
use egui::{Color32, Stroke, Ui, Visuals, WidgetText};
use egui_tiles::{Behavior, SimplificationOptions, TabState, TileId, Tiles, Tree, UiResponse};
use serde::{Deserialize, Serialize};

/// What a tab shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tab {
    /// The interaction map.
    Map,
    /// The calls in rows.
    Calls,
    /// A host's graphs.
    Graphs,
    /// The flock of processes.
    Flock,
    /// The sensors, and how they are.
    Sensors,
}

/// All of them, in their usual order.
pub(super) const ALL: [Tab; 5] = [Tab::Map, Tab::Calls, Tab::Graphs, Tab::Flock, Tab::Sensors];

impl Tab {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tab::Map => "Interaction map",
            Tab::Calls => "Calls",
            Tab::Graphs => "Graphs",
            Tab::Flock => "Flock",
            Tab::Sensors => "Sensors",
        }
    }

    /// Its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Tab::Map => "map",
            Tab::Calls => "calls",
            Tab::Graphs => "graphs",
            Tab::Flock => "flock",
            Tab::Sensors => "sensors",
        }
    }
}

/// The usual arrangement: all on one another, the map in front.
#[must_use]
pub(super) fn usual() -> Tree<Tab> {
    Tree::new_tabs(egui::Id::new("tabs"), ALL.to_vec())
}

/// Whether an arrangement that was kept has every tab: one of an older viewer may lack some.
#[must_use]
pub(super) fn has_all(tree: &Tree<Tab>) -> bool {
    ALL.iter().all(|tab| tree.tiles.find_pane(tab).is_some())
}

/// The tab that is seen; where the middle is split that which somebody worked in last, else the first.
#[must_use]
pub(super) fn front(app: &App) -> Tab {
    let active = app.tabs.active_tiles();
    let panes = active.iter().filter_map(|id| match app.tabs.tiles.get(*id) {
        Some(egui_tiles::Tile::Pane(tab)) => Some(*tab),
        Some(egui_tiles::Tile::Container(_)) | None => None,
    });
    panes
        .min_by_key(|tab| (app.worked_in != Some(*tab), ALL.iter().position(|known| known == tab)))
        .unwrap_or(Tab::Map)
}

/// Bring a tab to the front.
pub(super) fn open(app: &mut App, tab: Tab) {
    app.worked_in = Some(tab);
    app.tabs.make_active(|_, tile| matches!(tile, egui_tiles::Tile::Pane(pane) if *pane == tab));
}

/// Draw them.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let mut tabs = std::mem::replace(&mut app.tabs, Tree::empty("tabs away"));
    egui::CentralPanel::no_frame().show(ui, |ui| {
        let colors = Colors::of(ui.ctx());
        tabs.ui(&mut Contents { app, colors }, ui);
    });
    app.tabs = tabs;
}

struct Contents<'a> {
    app: &'a mut App,
    colors: Colors,
}

impl Behavior<Tab> for Contents<'_> {
    fn pane_ui(&mut self, ui: &mut Ui, _: TileId, tab: &mut Tab) -> UiResponse {
        if ui.ui_contains_pointer() && ui.input(|input| input.pointer.any_pressed()) {
            self.app.worked_in = Some(*tab);
        }
        match tab {
            Tab::Map => map::show(self.app, ui),
            Tab::Calls => calls::show(self.app, ui),
            Tab::Graphs => graphs::show(self.app, ui),
            Tab::Flock => flock::show(self.app, ui),
            Tab::Sensors => sensors::show(self.app, ui),
        }
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, tab: &Tab) -> WidgetText {
        tab.name().into()
    }

    fn simplification_options(&self) -> SimplificationOptions {
        SimplificationOptions { all_panes_must_have_tabs: true, ..SimplificationOptions::default() }
    }

    fn tab_bar_height(&self, _: &egui::Style) -> f32 {
        30.0
    }

    fn gap_width(&self, _: &egui::Style) -> f32 {
        3.0
    }

    fn tab_bar_color(&self, _: &Visuals) -> Color32 {
        self.colors.panel
    }

    fn tab_bg_color(&self, _: &Visuals, _: &Tiles<Tab>, _: TileId, state: &TabState) -> Color32 {
        if state.active { self.colors.ground } else { self.colors.panel }
    }

    fn tab_outline_stroke(&self, _: &Visuals, _: &Tiles<Tab>, _: TileId, _: &TabState) -> Stroke {
        Stroke::NONE
    }

    fn tab_bar_hline_stroke(&self, _: &Visuals) -> Stroke {
        Stroke::new(1.0, self.colors.line)
    }

    fn tab_text_color(&self, _: &Visuals, _: &Tiles<Tab>, _: TileId, state: &TabState) -> Color32 {
        if state.active { self.colors.text } else { self.colors.weak }
    }
}
