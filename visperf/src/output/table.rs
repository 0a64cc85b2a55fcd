//! Tables for people: columns as wide as they need to be.
//!
//! Pure. A table that is printed whole measures its rows first ([`Table`]); rows that come one by one
//! share widths that only grow ([`Columns`]). The last column is never padded.

use crate::exit::Failure;
use crate::output::{Color, Output, clean};

/// Widest a streamed column may grow: one long name must not push all later rows aside.
const STREAMED_WIDTH_MAX: usize = 24;

/// One place of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    color: Option<Color>,
    right: bool,
}

impl Cell {
    /// Text, to the left.
    pub(crate) fn text(text: impl AsRef<str>) -> Cell {
        Cell { text: clean(text.as_ref()).into_owned(), ..Cell::default() }
    }

    /// A figure, to the right.
    pub(crate) fn figure(text: impl AsRef<str>) -> Cell {
        Cell { right: true, ..Cell::text(text) }
    }

    /// In this colour.
    pub(crate) fn color(mut self, color: Color) -> Cell {
        self.color = Some(color);
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn padded(&self, width: usize, last: bool, output: &Output) -> String {
        let shown = match self.color {
            Some(color) => output.paint(color, &self.text).into_owned(),
            None => self.text.clone(),
        };
        let blanks = " ".repeat(width.saturating_sub(self.width()));
        match (self.right, last) {
            (true, _) => blanks + &shown,
            (false, true) => shown,
            (false, false) => shown + &blanks,
        }
    }
}

fn row(cells: &[Cell], widths: &[usize], output: &Output) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push_str("  ");
        }
        line.push_str(&cell.padded(widths[at], at + 1 == cells.len(), output));
    }
    line.truncate(line.trim_end().len());
    line
}

/// A table that is printed whole.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these heads; columns that turn out empty are left out.
    pub(crate) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// One more row, with a cell for every head.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.heads.len(), "a cell for every head");
        self.rows.push(cells);
    }

    /// Print it.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print(self, output: &mut Output) -> Result<(), Failure> {
        let used = |at: usize| self.rows.iter().any(|row| !row[at].text.is_empty());
        let columns: Vec<usize> = (0..self.heads.len()).filter(|&at| used(at)).collect();
        let heads = columns.iter().map(|&at| {
            let right = self.rows.iter().all(|row| row[at].right || row[at].text.is_empty());
            Cell { right, ..Cell::text(self.heads[at]).color(Color::Head) }
        });
        let mut lines: Vec<Vec<Cell>> = vec![heads.collect()];
        for row in &self.rows {
            lines.push(columns.iter().map(|&at| row[at].clone()).collect());
        }
        let widths: Vec<usize> = (0..columns.len())
            .map(|at| lines.iter().map(|line| line[at].width()).max().unwrap_or(0))
            .collect();
        for line in &lines {
            output.line(&row(line, &widths, output))?;
        }
        Ok(())
    }
}

/// Rows that come one by one.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// Columns that begin with these widths.
    pub(crate) fn new(widths: &[usize]) -> Columns {
        Columns { widths: widths.to_vec() }
    }

    /// The row as a line; the widths grow where it needs more.
    pub(crate) fn row(&mut self, cells: &[Cell], output: &Output) -> String {
        self.widths.resize(self.widths.len().max(cells.len()), 0);
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.width().min(STREAMED_WIDTH_MAX));
        }
        row(cells, &self.widths, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn columns_fit_their_cells_and_empty_ones_are_left_out() {
        let shared = Shared::default();
        let mut output = Output { out: Box::new(shared.clone()), colors: false };
        let mut table = Table::new(&["HOST", "NOTHING", "LOAD", "STATE"]);
        table.row(vec![Cell::text("wn01"), Cell::default(), Cell::figure("0.5"), Cell::text("live")]);
        table.row(vec![Cell::text("x"), Cell::default(), Cell::figure("12.25"), Cell::text("")]);
        table.print(&mut output).unwrap();
        let printed = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
        assert_eq!(printed, "HOST   LOAD  STATE\nwn01    0.5  live\nx     12.25\n");
    }

    #[test]
    fn streamed_columns_grow_up_to_a_limit() {
        let output = Output { out: Box::new(Vec::new()), colors: false };
        let mut columns = Columns::new(&[4]);
        let cells = |first: &str| [Cell::text(first), Cell::text("z")];
        assert_eq!(columns.row(&cells("ab"), &output), "ab    z");
        assert_eq!(columns.row(&cells("abcdef"), &output), "abcdef  z");
        assert_eq!(columns.row(&cells("ab"), &output), "ab      z");
        let long = "x".repeat(40);
        assert_eq!(columns.row(&cells(&long), &output), format!("{long}  z"));
        assert_eq!(columns.row(&cells("ab"), &output), format!("ab{}z", " ".repeat(24)));
    }
}
