//! The tabs by name.
//!
//! Pure. Not here: their arrangement (`tabs`), their contents (`map`, `calls`, `graphs`, `flock`,
//! `sensors`, `jobs`).

use serde::{Deserialize, Serialize};

/// A tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tab {
    Map,
    Calls,
    Graphs,
    Flock,
    Sensors,
    Jobs,
}

/// All of them, in their usual order.
pub(super) const ALL: [Tab; 6] = [Tab::Map, Tab::Calls, Tab::Graphs, Tab::Flock, Tab::Sensors, Tab::Jobs];

impl Tab {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tab::Map => "Interaction map",
            Tab::Calls => "Calls",
            Tab::Graphs => "Graphs",
            Tab::Flock => "Flock",
            Tab::Sensors => "Sensors",
            Tab::Jobs => "Jobs",
        }
    }

    /// Keyword on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Tab::Map => "map",
            Tab::Calls => "calls",
            Tab::Graphs => "graphs",
            Tab::Flock => "flock",
            Tab::Sensors => "sensors",
            Tab::Jobs => "jobs",
        }
    }
}
