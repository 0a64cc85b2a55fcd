//! The question before something is stopped or shown no more.
//!
//! Rule: nothing is ordered before the person has said yes to what is named. Not here: how a question is
//! answered (`app::question`), giving orders (`live::control`).

use crate::app::theme::{self, Colors};
use crate::app::{App, question};
use crate::feed::Wish;
use crate::sensors::{At, Order};
use egui::{RichText, Ui};
use std::net::SocketAddr;

/// What is asked about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    /// Show a domain no more.
    Domain(String),
    /// Show a sensor no more that is asked at its address.
    Sensor(SocketAddr),
    /// An order that stops something: a channel's end, a collector's stop.
    Order(Order),
}

impl Asked {
    /// The question, what follows, and what the button says.
    fn words(&self) -> (String, &'static str, &'static str) {
        match self {
            Asked::Domain(name) => (
                format!("Show {name} no more?"),
                "Its hosts and calls are asked for no more. It can be added again by its name.",
                "Drop it",
            ),
            Asked::Sensor(address) => (
                format!("Show the sensor at {address} no more?"),
                "It is asked no more. It can be added again by its address.",
                "Drop it",
            ),
            Asked::Order(Order::Module { name, .. }) => (
                format!("Stop {name}?"),
                "A call under way is answered first. It stays stopped until it is started, its file changes or the \
                 sensor starts anew.",
                "Stop it",
            ),
            Asked::Order(Order::End { .. } | Order::Alter { .. }) => (
                "End this channel?".to_owned(),
                "Whoever takes from it gets nothing any more, and what waits in it is given up.",
                "End it",
            ),
        }
    }
}

/// Draw the question, where there is one.
pub(super) fn show(app: &mut App, ui: &Ui, colors: Colors) {
    let Some(asked) = app.sensors.asked.clone() else { return };
    let (question, follows, yes) = asked.words();
    let draw = |ui: &mut Ui| {
        ui.label(RichText::new(question).strong().size(15.0));
        ui.add_space(4.0);
        ui.label(RichText::new(follows).size(theme::SMALL).color(colors.weak));
    };
    let choices = [(RichText::new(yes).color(colors.failed()), "Return"), (RichText::new("Leave it"), "Esc")];
    let Some(answer) = question::ask(ui.ctx(), "stop something", draw, &choices) else { return };
    app.sensors.asked = None;
    if answer == 0 {
        act(app, asked);
    }
}

fn act(app: &mut App, asked: Asked) {
    match asked {
        Asked::Domain(name) => {
            app.sensors.chosen = None;
            if !app.inbox.as_ref().is_some_and(|inbox| inbox.wish(Wish::Drop(name))) {
                app.notify(app.now, "Too much is asked for already; try again.".to_owned());
            }
        }
        Asked::Sensor(address) => {
            app.settings.sensors.retain(|known| *known != address);
            app.sensors.known.remove(&At::Address(address));
            app.sensors.chosen = None;
        }
        Asked::Order(order) => app.order(order),
    }
}
