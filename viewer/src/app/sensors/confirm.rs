//! Questions before something is stopped or no longer shown.
//!
//! Rule: nothing is ordered before the person has confirmed it by its name. Not here: how a question is
//! answered (`app::question`), orders (`live::control`).

use crate::app::command::{Answer, Command, Question};
use crate::model::SensorsChange;
use crate::sensors::Order;
use std::net::SocketAddr;

/// Ask before a domain is no longer shown.
pub(super) fn drop_domain(name: &str) -> Question {
    let note = "Its hosts and calls are asked for no more. It can be added again by its name.";
    let commands = vec![SensorsChange::Select(None).into(), Command::DropDomain(name.to_owned())];
    question(format!("Show {name} no more?"), note, "Drop it", commands)
}

/// Ask before a sensor is no longer watched.
pub(super) fn drop_sensor(address: SocketAddr) -> Question {
    let note = "It is asked no more. It can be added again by its address.";
    let title = format!("Show the sensor at {address} no more?");
    question(title, note, "Drop it", vec![SensorsChange::Drop(address).into()])
}

/// Ask before an order that stops something.
pub(super) fn order(order: Order) -> Question {
    let (title, note, yes) = match &order {
        Order::Module { name, .. } => (
            format!("Stop {name}?"),
            "A call under way is answered first. It stays stopped until it is started, its file changes or the \
             sensor restarts.",
            "Stop it",
        ),
        Order::End { .. } | Order::Alter { .. } => (
            "End this channel?".to_owned(),
            "Its client receives nothing any more, and what waits in it is dropped.",
            "End it",
        ),
    };
    question(title, note, yes, vec![Command::Order(order)])
}

fn question(title: String, note: &'static str, yes: &'static str, commands: Vec<Command>) -> Question {
    let answers = vec![
        Answer { text: yes, hint: "Return", is_dangerous: true, commands },
        Answer { text: "Leave it", hint: "Esc", is_dangerous: false, commands: Vec::new() },
    ];
    Question { kind: "stop something", title, lines: Vec::new(), note, answers }
}
