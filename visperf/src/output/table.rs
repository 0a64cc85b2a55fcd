//! Tables with columns as wide as needed.
//!
//! Pure. A table that is printed whole measures its rows first ([`Table`]); streamed rows share widths that
//! only grow ([`Columns`]). The last column is never padded.

use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::{Color, Output, note, shortened_to_end, shortened_within};

/// Maximum width to which a streamed column grows: one long name must not shift all later rows.
const STREAMED_WIDTH_MAX: usize = 24;
/// Length from which a streamed name is shortened on a terminal.
const STREAMED_SHOWN_CHARS: usize = 40;
/// Minimum width of a shortened column of names: shorter names would not be recognizable.
const SHORTENED_WIDTH_MIN: usize = 20;
/// Gap between two columns.
const BETWEEN: &str = "  ";

/// A cell of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    color: Option<Color>,
    right: bool,
    /// Never shortened: half a figure or a time is a wrong one.
    whole: bool,
    /// Shortened at its beginning: paths differ at their ends.
    keeps_end: bool,
    /// A time: the head of its column shows the offset from UTC.
    is_time: bool,
}

impl Cell {
    /// Text, aligned left.
    pub(crate) fn text(text: impl AsRef<str>) -> Cell {
        Cell { text: clean(text.as_ref()).into_owned(), ..Cell::default() }
    }

    /// A figure, aligned right.
    pub(crate) fn figure(text: impl AsRef<str>) -> Cell {
        Cell { right: true, ..Cell::whole(text) }
    }

    /// Text that is shown whole or not at all.
    pub(crate) fn whole(text: impl AsRef<str>) -> Cell {
        Cell { whole: true, ..Cell::text(text) }
    }

    /// A time as tables have it (`times::in_table`).
    pub(crate) fn time(text: impl AsRef<str>) -> Cell {
        Cell { is_time: true, ..Cell::whole(text) }
    }

    /// A path: of a long one the end is shown.
    pub(crate) fn path(path: impl AsRef<str>) -> Cell {
        Cell { keeps_end: true, ..Cell::text(path) }
    }

    pub(crate) fn color(mut self, color: Color) -> Cell {
        self.color = Some(color);
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn within(self, width: usize) -> Cell {
        if self.whole || self.width() <= width {
            return self;
        }
        let text = match self.keeps_end {
            true => shortened_to_end(&self.text, width),
            false => shortened_within(&self.text, width),
        };
        Cell { text: text.into_owned(), ..self }
    }

    fn padded(&self, width: usize, last: bool, output: &Output) -> String {
        let shown = match self.color {
            Some(color) => output.paint(color, &self.text).into_owned(),
            None => self.text.clone(),
        };
        let blanks = " ".repeat(width.saturating_sub(self.width()));
        match (self.right, last) {
            (true, _) => blanks + shown.as_str(),
            (false, true) => shown,
            (false, false) => shown + blanks.as_str(),
        }
    }
}

fn row(cells: &[Cell], widths: &[usize], output: &Output) -> String {
    let mut line = String::new();
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push_str(BETWEEN);
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
    spared: Vec<&'static str>,
    /// The offset from UTC of the times, for the heads of their columns.
    offset: Option<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these heads; columns that turn out empty are left out.
    pub(crate) fn new(heads: &[&'static str]) -> Table {
        Table { heads: heads.to_vec(), spared: Vec::new(), offset: None, rows: Vec::new() }
    }

    /// The columns to leave out on a narrow terminal, in this order.
    pub(crate) fn spares(mut self, heads: &[&'static str]) -> Table {
        self.spared = heads.to_vec();
        self
    }

    /// The offset from UTC of the times: on a terminal it is added to the heads of their columns.
    pub(crate) fn offset(mut self, offset: String) -> Table {
        self.offset = Some(offset);
        self
    }

    /// Add a row, with a cell for every head.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.heads.len(), "a cell for every head");
        self.rows.push(cells);
    }

    /// Print the table. On a terminal, columns of names are shortened until it fits.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print(self, output: &mut Output) -> Result<(), Failure> {
        let used = |at: &usize| self.rows.iter().any(|row| !row[*at].text.is_empty());
        let mut columns: Vec<Column> =
            (0..self.heads.len()).filter(used).map(|at| self.column(at, output)).collect();
        let mut left_out = Vec::new();
        if let Some(width) = output.width() {
            for &spared in &self.spared {
                if narrowest(&columns) <= width {
                    break;
                }
                if let Some(at) = columns.iter().position(|column| self.heads[column.at] == spared) {
                    columns.remove(at);
                    left_out.push(spared);
                }
            }
            fit(&mut columns, width);
        }
        let widths: Vec<usize> = columns.iter().map(|column| column.width).collect();
        let heads: Vec<Cell> = columns.iter().map(|column| column.head.clone()).collect();
        output.line(&row(&heads, &widths, output))?;
        for cells in &self.rows {
            let cells: Vec<Cell> =
                columns.iter().map(|column| cells[column.at].clone().within(column.width)).collect();
            output.line(&row(&cells, &widths, output))?;
        }
        if !left_out.is_empty() {
            output.flush()?;
            note(&format!("--wide shows {} too", left_out.join(", ")));
        }
        Ok(())
    }

    fn column(&self, at: usize, output: &Output) -> Column {
        let cells = || self.rows.iter().map(|row| &row[at]).filter(|cell| !cell.text.is_empty());
        let offset =
            self.offset.as_ref().filter(|_| output.width().is_some() && cells().any(|cell| cell.is_time));
        let head =
            offset.map_or_else(|| self.heads[at].to_owned(), |offset| format!("{} {offset}", self.heads[at]));
        let head = Cell { right: cells().all(|cell| cell.right), ..Cell::text(head).color(Color::Head) };
        Column {
            at,
            width: cells().map(Cell::width).max().unwrap_or(0).max(head.width()),
            shortens: !cells().any(|cell| cell.whole),
            head,
        }
    }
}

/// A printed column.
struct Column {
    /// Its index in a row.
    at: usize,
    head: Cell,
    width: usize,
    shortens: bool,
}

impl Column {
    fn narrowest(&self) -> usize {
        if self.shortens { self.width.min(SHORTENED_WIDTH_MIN) } else { self.width }
    }
}

fn narrowest(columns: &[Column]) -> usize {
    columns.iter().map(Column::narrowest).sum::<usize>() + BETWEEN.len() * columns.len().saturating_sub(1)
}

/// Narrow the widest columns, one character at a time, until all fit or none may be narrower.
fn fit(columns: &mut [Column], width: usize) {
    loop {
        let total = columns.iter().map(|column| column.width).sum::<usize>();
        if total + BETWEEN.len() * columns.len().saturating_sub(1) <= width {
            return;
        }
        let widest = columns
            .iter_mut()
            .filter(|column| column.width > column.narrowest())
            .max_by_key(|column| column.width);
        match widest {
            Some(column) => column.width -= 1,
            None => return,
        }
    }
}

/// Streamed rows.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// Columns with these initial widths.
    pub(crate) fn new(widths: &[usize]) -> Columns {
        Columns { widths: widths.to_vec() }
    }

    /// Format a row as a line; the widths grow where it needs more, up to a limit. On a terminal longer cells
    /// are shortened, except in the last column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>, output: &Output) -> String {
        let cells = self.fitted(cells, output);
        row(&cells, &self.widths, output)
    }

    /// As [`Columns::row`], with the number of visible characters, and the position at which the next column
    /// would start.
    pub(crate) fn row_and_end(&mut self, cells: Vec<Cell>, output: &Output) -> (String, usize, usize) {
        let cells = self.fitted(cells, output);
        let text = row(&cells, &self.widths, output);
        // Colours take no space on the screen.
        let plain: Vec<Cell> = cells.into_iter().map(|cell| Cell { color: None, ..cell }).collect();
        let chars = row(&plain, &self.widths, output).chars().count();
        let next = self.widths.iter().map(|width| width + BETWEEN.len()).sum::<usize>();
        (text, chars, next.max(chars + BETWEEN.len()))
    }

    /// The cells as they are shown; the widths grow with them.
    fn fitted(&mut self, mut cells: Vec<Cell>, output: &Output) -> Vec<Cell> {
        self.widths.resize(self.widths.len().max(cells.len()), 0);
        if let (Some(_), Some((_, all_but_last))) = (output.width(), cells.split_last_mut()) {
            for cell in all_but_last {
                *cell = std::mem::take(cell).within(STREAMED_SHOWN_CHARS);
            }
        }
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(cell.width().min(STREAMED_WIDTH_MAX));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;

    #[test]
    fn columns_fit_their_cells_and_empty_ones_are_left_out() {
        let shared = Capture::default();
        let mut output = Output::into_writer(shared.clone(), None);
        let mut table = Table::new(&["HOST", "NOTHING", "LOAD", "STATE"]);
        table.row(vec![Cell::text("wn01"), Cell::default(), Cell::figure("0.5"), Cell::text("live")]);
        table.row(vec![Cell::text("x"), Cell::default(), Cell::figure("12.25"), Cell::text("")]);
        table.print(&mut output).unwrap();
        let printed = shared.text();
        assert_eq!(printed, "HOST   LOAD  STATE\nwn01    0.5  live\nx     12.25\n");
    }

    #[test]
    fn streamed_columns_grow_up_to_a_limit() {
        let output = Output::into_writer(Vec::new(), None);
        let mut columns = Columns::new(&[4]);
        let cells = |first: &str| vec![Cell::text(first), Cell::text("z")];
        assert_eq!(columns.row(cells("ab"), &output), "ab    z");
        assert_eq!(columns.row(cells("abcdef"), &output), "abcdef  z");
        assert_eq!(columns.row(cells("ab"), &output), "ab      z");
        let long = "x".repeat(40);
        assert_eq!(columns.row(cells(&long), &output), format!("{long}  z"));
        assert_eq!(columns.row(cells("ab"), &output), format!("ab{}z", " ".repeat(24)));
    }

    #[test]
    fn a_terminal_shortens_names_in_the_middle_and_goes_without_spared_columns() {
        let check = |width: Option<usize>, expected: &str| {
            let shared = Capture::default();
            let mut output = Output::into_writer(shared.clone(), width);
            let mut table = Table::new(&["CALL", "CODE", "TIME", "N"]).spares(&["CODE"]);
            let id = "gridftp:se01//srv/gridftp/se01/data@3-29857";
            table.row(vec![
                Cell::text(id),
                Cell::text("226"),
                Cell::whole("2026-11-20T12:00:00"),
                Cell::figure("12345"),
            ]);
            table.print(&mut output).unwrap();
            let printed = shared.text();
            let last = printed.lines().last().unwrap();
            assert_eq!(last, expected);
            assert!(width.is_none_or(|width| last.chars().count() <= width), "{last}");
        };
        let whole = "gridftp:se01//srv/gridftp/se01/data@3-29857  226   2026-11-20T12:00:00  12345";
        check(None, whole);
        check(Some(80), whole);
        check(Some(60), "gridftp:se01/…data@3-29857  226   2026-11-20T12:00:00  12345");
        check(Some(50), "gridftp:se0…ta@3-29857  2026-11-20T12:00:00  12345");
    }

    #[test]
    fn the_head_of_times_says_their_offset_on_a_terminal() {
        let printed = |width: Option<usize>| {
            let shared = Capture::default();
            let mut output = Output::into_writer(shared.clone(), width);
            let mut table = Table::new(&["CALL", "SUBMITTED"]).offset("+01:00".to_owned());
            table.row(vec![Cell::text("a"), Cell::time("12:00:00.000")]);
            table.print(&mut output).unwrap();
            shared.text()
        };
        assert_eq!(printed(Some(80)), "CALL  SUBMITTED +01:00\na     12:00:00.000\n");
        assert_eq!(printed(None), "CALL  SUBMITTED\na     12:00:00.000\n");
    }

    #[test]
    fn a_terminal_shortens_streamed_columns_too_but_not_the_last() {
        let output = Output::into_writer(Vec::new(), Some(80));
        let long = "x".repeat(60);
        let line = Columns::new(&[4]).row(vec![Cell::text(&long), Cell::text(&long)], &output);
        assert_eq!(line, format!("{}…{}  {long}", "x".repeat(20), "x".repeat(19)));
    }
}
