//! Colours of the screen, by meaning; without colours, text attributes instead.
//!
//! Pure.

use ratatui::style::{Color, Modifier, Style};

/// The theme.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    has_colors: bool,
}

impl Theme {
    pub(super) const fn new(has_colors: bool) -> Theme {
        Theme { has_colors }
    }

    fn in_color(self, color: Color, without: Modifier) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new().add_modifier(without) }
    }

    /// Heads of columns and titles.
    pub(super) const fn head() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) const fn marked() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Outdated or less important.
    pub(super) const fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A normal state.
    pub(super) fn good(self) -> Style {
        self.in_color(Color::Green, Modifier::empty())
    }

    /// A warning.
    pub(super) fn caution(self) -> Style {
        self.in_color(Color::Yellow, Modifier::BOLD)
    }

    /// An error.
    pub(super) fn bad(self) -> Style {
        self.in_color(Color::Red, Modifier::BOLD)
    }

    /// The name of a process.
    pub(super) fn name(self) -> Style {
        self.in_color(Color::Cyan, Modifier::empty())
    }
}
