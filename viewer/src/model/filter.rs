//! The search field's text, and which calls fit it.
//!
//! Pure. Invariant: `fits` answers for the calls of the grid that was passed last. Not here: what words mean
//! (`scene::filter`), which processes fit (`flock::chosen`).

use crate::grid::Grid;
use crate::scene::filter::Filter;

/// Filter of calls.
#[derive(Clone, Default)]
pub struct CallFilter {
    text: String,
    filter: Filter,
    /// By the calls' numbers; empty where every call fits.
    fits: Vec<bool>,
}

impl CallFilter {
    pub(super) fn search(&mut self, text: &str, grid: &Grid) {
        text.clone_into(&mut self.text);
        self.filter = Filter::parse(text);
        self.apply_to(grid);
    }

    /// Find the calls of another grid that fit.
    pub(super) fn apply_to(&mut self, grid: &Grid) {
        self.fits.clear();
        if !self.filter.is_empty() {
            self.fits = grid.calls.iter().map(|call| self.filter.fits(grid, call)).collect();
        }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether every call fits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// Whether the call of this number fits.
    #[must_use]
    pub fn fits(&self, number: usize) -> bool {
        self.fits.get(number).copied().unwrap_or(true)
    }

    /// How many calls fit, and how many there are; both 0 where the filter is empty.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.fits.iter().filter(|&&fits| fits).count(), self.fits.len())
    }

    /// The first word that has no meaning.
    #[must_use]
    pub fn unknown_word(&self) -> Option<&str> {
        self.filter.wrong.first().map(String::as_str)
    }

    /// What was expected in place of the unknown word.
    #[must_use]
    pub fn expected(&self) -> Option<String> {
        self.filter.expected()
    }

    /// What is wrong with the text.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        Some(format!("found {}, {}", self.unknown_word()?, self.expected()?))
    }
}
