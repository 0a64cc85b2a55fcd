//! The row over the table: how many sensors there are and how they are, and a field for one more domain or sensor.
//!
//! Not here: the table (`table`).

use crate::app::text::count;
use crate::app::theme::{self, Colors};
use crate::app::{App, Source};
use crate::feed::Wish;
use crate::grid::place::HostState;
use crate::sensors::{ADDRESSES_MAX, At, Row, Typed};
use egui::{Align, Key, Layout, RichText, TextEdit, Ui};

/// Width of the field, in points.
const FIELD_WIDTH: f32 = 240.0;

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    all: u32,
    silent: u32,
    troubled: u32,
}

impl Counts {
    /// One more.
    pub(super) fn add(&mut self, row: &Row) {
        self.all += 1;
        self.silent += u32::from(matches!(row.state, Some(HostState::Silent | HostState::Down)));
        self.troubled += u32::from(row.is_troubled());
    }
}

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    let counts = app.sensors.counts;
    ui.horizontal(|ui| {
        ui.label(RichText::new(count(counts.all, "sensor")).strong());
        if counts.silent > 0 {
            ui.label(RichText::new(format!("{} silent or down", counts.silent)).color(colors.failed()));
        }
        let others = counts.troubled.saturating_sub(counts.silent);
        if others > 0 {
            ui.label(RichText::new(format!("{others} to be looked at")).color(colors.warned()));
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            add(app, ui);
            ui.checkbox(&mut app.sensors.only_troubled, "Only those in trouble");
        });
    });
    if let Some(wrong) = &app.sensors.wrong {
        ui.label(RichText::new(wrong).size(theme::SMALL).color(colors.failed()));
    }
}

/// A field for a domain, or the address of a sensor.
fn add(app: &mut App, ui: &mut Ui) {
    if !matches!(app.source, Source::Daemon(_)) {
        return;
    }
    let edit = TextEdit::singleline(&mut app.sensors.typed).hint_text("Add a domain, or 127.0.0.1:PORT");
    let response = ui.add(edit.desired_width(FIELD_WIDTH)).on_hover_text(
        "A domain of the grid by its name, or a sensor of this machine by its address, which is asked itself",
    );
    if !(response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter))) {
        return;
    }
    app.sensors.wrong = match Typed::parse(&app.sensors.typed) {
        Ok(Typed::Domain(name)) => {
            match app.inbox.as_ref().is_some_and(|inbox| inbox.wish(Wish::Add(name))) {
                true => None,
                false => Some("Too much is asked for already; try again.".to_owned()),
            }
        }
        Ok(Typed::Sensor(address)) => {
            let known = &mut app.settings.sensors;
            let has_room = known.len() < ADDRESSES_MAX || known.contains(&address);
            if has_room && !known.contains(&address) {
                known.push(address);
            }
            app.sensors.chosen = Some(At::Address(address)).filter(|_| has_room);
            (!has_room)
                .then(|| format!("expected at most {ADDRESSES_MAX} sensors by address; drop one first"))
        }
        Err(wrong) => Some(wrong),
    };
    if app.sensors.wrong.is_none() {
        app.sensors.typed.clear();
    }
}
