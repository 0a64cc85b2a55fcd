//! The tabs in the middle, which the user moves, splits and stacks.
//!
//! Invariant: every tab is there once. Not here: what is in them (`map`, `calls`, `graphs`, `flock`,
//! `sensors`, `jobs`).

use super::calls::CallsPanel;
use super::command::Commands;
use super::flock::FlockPanel;
use super::graphs::GraphsPanel;
use super::jobs::JobsPanel;
use super::map::MapPanel;
use super::sensors::SensorsPanel;
use super::tab::{ALL, Tab};
use super::theme::Colors;
use crate::export::table::Table;
use crate::model::Model;
use egui::{Color32, Stroke, Ui, Visuals, WidgetText};
use egui_tiles::{Behavior, SimplificationOptions, TabState, TileId, Tiles, Tree, UiResponse};

/// The tabs, their arrangement, and what is in each.
pub(super) struct Tabs {
    tree: Tree<Tab>,
    /// The tab in which the user pressed the pointer last, or that was opened.
    last_used: Option<Tab>,
    panes: Panes,
}

/// Contents of each tab.
#[derive(Default)]
struct Panes {
    map: MapPanel,
    calls: CallsPanel,
    graphs: GraphsPanel,
    flock: FlockPanel,
    sensors: SensorsPanel,
    jobs: JobsPanel,
}

impl Tabs {
    /// Tabs in a saved arrangement; in the default one where a tab is missing, as in one of an older viewer.
    pub(super) fn new(saved: Option<Tree<Tab>>) -> Tabs {
        let has_all = |tree: &Tree<Tab>| ALL.iter().all(|tab| tree.tiles.find_pane(tab).is_some());
        let tree = saved.filter(has_all).unwrap_or_else(default_arrangement);
        Tabs { tree, last_used: None, panes: Panes::default() }
    }

    /// A copy for a picture.
    pub(super) fn still(&self) -> Tabs {
        let panes = Panes {
            map: self.panes.map.still(),
            calls: self.panes.calls.clone(),
            graphs: self.panes.graphs.clone(),
            flock: self.panes.flock.still(),
            sensors: self.panes.sensors.clone(),
            jobs: self.panes.jobs.clone(),
        };
        Tabs { tree: self.tree.clone(), last_used: self.last_used, panes }
    }

    /// The arrangement, if it is not the default one.
    pub(super) fn changed_arrangement(&self) -> Option<Tree<Tab>> {
        (self.tree != default_arrangement()).then(|| self.tree.clone())
    }

    /// The tabs that are drawn.
    pub(super) fn visible(&self) -> Vec<Tab> {
        let pane = |id: &TileId| match self.tree.tiles.get(*id) {
            Some(egui_tiles::Tile::Pane(tab)) => Some(*tab),
            Some(egui_tiles::Tile::Container(_)) | None => None,
        };
        self.tree.active_tiles().iter().filter_map(pane).collect()
    }

    /// The visible tab; of several the one that was used last, else the first.
    pub(super) fn front(&self) -> Tab {
        let order = |tab: &Tab| ALL.iter().position(|known| known == tab);
        let visible = self.visible().into_iter();
        visible.min_by_key(|tab| (self.last_used != Some(*tab), order(tab))).unwrap_or(Tab::Map)
    }

    pub(super) fn open(&mut self, tab: Tab) {
        self.last_used = Some(tab);
        self.tree.make_active(|_, tile| matches!(tile, egui_tiles::Tile::Pane(pane) if *pane == tab));
    }

    pub(super) fn map(&mut self) -> &mut MapPanel {
        &mut self.panes.map
    }

    pub(super) fn flock(&mut self) -> &mut FlockPanel {
        &mut self.panes.flock
    }

    pub(super) fn sensors(&mut self) -> &mut SensorsPanel {
        &mut self.panes.sensors
    }

    pub(super) fn jobs(&mut self) -> &mut JobsPanel {
        &mut self.panes.jobs
    }

    pub(super) fn sensors_table(&self, model: &Model) -> Table {
        self.panes.sensors.table(model)
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui) -> Commands {
        let mut commands = Commands::default();
        egui::CentralPanel::no_frame().show(ui, |ui| {
            let colors = Colors::of(ui.ctx());
            let (panes, last_used) = (&mut self.panes, &mut self.last_used);
            let mut contents = Contents { panes, last_used, model, colors, commands: &mut commands };
            self.tree.ui(&mut contents, ui);
        });
        commands
    }
}

/// All tabs on top of each other, the map in front.
pub(super) fn default_arrangement() -> Tree<Tab> {
    Tree::new_tabs(egui::Id::new("tabs"), ALL.to_vec())
}

/// What egui_tiles draws the tabs with.
struct Contents<'a> {
    panes: &'a mut Panes,
    last_used: &'a mut Option<Tab>,
    model: &'a Model,
    colors: Colors,
    commands: &'a mut Commands,
}

impl Behavior<Tab> for Contents<'_> {
    fn pane_ui(&mut self, ui: &mut Ui, _: TileId, tab: &mut Tab) -> UiResponse {
        if ui.ui_contains_pointer() && ui.input(|input| input.pointer.any_pressed()) {
            *self.last_used = Some(*tab);
        }
        match tab {
            Tab::Map => self.panes.map.show(self.model, ui, self.commands),
            Tab::Calls => self.panes.calls.show(self.model, ui, self.commands),
            Tab::Graphs => self.panes.graphs.show(self.model, ui, self.commands),
            Tab::Flock => self.panes.flock.show(self.model, ui, self.commands),
            Tab::Sensors => self.panes.sensors.show(self.model, ui, self.commands),
            Tab::Jobs => self.panes.jobs.show(self.model, ui, self.commands),
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
