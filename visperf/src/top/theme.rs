//! Every colour of the screen, by what it means; without colours the same by weight.
//!
//! Pure.

use ratatui::style::{Color, Modifier, Style};

/// How things look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    has_colors: bool,
}

impl Theme {
    /// With colours or without.
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

    /// The marked row.
    pub(super) const fn marked() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What is old, or matters less.
    pub(super) const fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// As it should be.
    pub(super) fn good(self) -> Style {
        self.in_color(Color::Green, Modifier::empty())
    }

    /// To be looked at.
    pub(super) fn caution(self) -> Style {
        self.in_color(Color::Yellow, Modifier::BOLD)
    }

    /// Wrong.
    pub(super) fn bad(self) -> Style {
        self.in_color(Color::Red, Modifier::BOLD)
    }

    /// What a process is called.
    pub(super) fn name(self) -> Style {
        self.in_color(Color::Cyan, Modifier::empty())
    }
}
