//! Output of the program: results on standard output, notes on standard error.
//!
//! Rule: a closed pipe ends the program quietly ([`Failure::Closed`]); colours only where a terminal shows
//! them; text from logs or daemons never reaches a terminal with control characters in it ([`crate::harmless`]):
//! callers clean what they quote, and each line and note is escaped here once more.

pub(crate) mod call_table;
#[cfg(test)]
pub(crate) mod capture;
pub(crate) mod event_lines;
pub(crate) mod figures;
pub(crate) mod job_curves;
pub(crate) mod job_lines;
pub(crate) mod job_page;
pub(crate) mod job_report;
pub(crate) mod job_rows;
pub(crate) mod job_table;
pub(crate) mod job_usage;
pub(crate) mod plot;
pub(crate) mod recent_ids;
pub(crate) mod sparkline;
pub(crate) mod table;
pub(crate) mod times;

use crate::exit::Failure;
use crate::harmless::{clean, clean_json, clean_lines, guarded};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use wire::query::{Form, Integers, Syntax};

/// A value in the JSON form of a daemon's answer.
///
/// # Errors
/// If its type has no such form: a defect of this program.
pub(crate) fn as_answered<T: Serialize>(value: &T) -> Result<serde_json::Value, Failure> {
    let form = Form { syntax: Syntax::Json, integers: Integers::Number };
    let text = rpc::codec::document(form, value, &[]);
    let text = text.map_err(|error| Failure::of("a value cannot be written as JSON", error))?;
    serde_json::from_str(&text).map_err(|error| Failure::of("a value cannot be written as JSON", error))
}

/// The colours, by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Good,
    Bad,
    Caution,
    Name,
    Dim,
    Head,
    /// One of several lines in a plot, by its place.
    Series(u8),
}

/// Codes of the colours of lines: cyan, yellow, magenta, green, blue, red.
const SERIES: [&str; 6] = ["36", "33", "35", "32", "34", "31"];

pub(crate) struct Output {
    out: Box<dyn Write + Send>,
    colors: bool,
    /// Columns of the terminal, if tables must fit it.
    width: Option<usize>,
}

impl Output {
    /// The program's standard output, with colours where a terminal shows them and `NO_COLOR` is unset.
    pub(crate) fn stdout() -> Output {
        let stdout = io::stdout();
        let colors = stdout.is_terminal() && colors_wanted();
        let width = terminal_width(&stdout);
        Output { out: Box::new(BufWriter::with_capacity(1 << 16, stdout)), colors, width }
    }

    pub(crate) fn has_colors(&self) -> bool {
        self.colors
    }

    /// The same, with nothing shortened to fit a terminal.
    pub(crate) fn whole(self) -> Output {
        Output { width: None, ..self }
    }

    /// Columns that tables and lines must fit, if any.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// Output into memory, for tests.
    #[cfg(test)]
    pub(crate) fn into_writer(out: impl Write + Send + 'static, width: Option<usize>) -> Output {
        Output { out: Box::new(out), colors: false, width }
    }

    /// Print a line.
    ///
    /// # Errors
    /// [`Failure::Closed`] if the reader closed the pipe, another if writing fails.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        let text = guarded(text, self.colors);
        check_written(self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n")))
    }

    /// Print a value as one line of JSON.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&clean_json(&value.to_string()))
    }

    /// Print a value as JSON over several lines.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn json_lines(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&clean_json(&format!("{value:#}")))
    }

    /// Flush the buffer.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        check_written(self.out.flush())
    }

    /// `text` in a colour, if colours are enabled.
    pub(crate) fn paint<'a>(&self, color: Color, text: &'a str) -> Cow<'a, str> {
        if !self.colors || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match color {
            Color::Good => "32",
            Color::Bad => "31",
            Color::Caution => "33",
            Color::Name => "36",
            Color::Dim => "2",
            Color::Head => "1",
            Color::Series(place) => SERIES[usize::from(place) % SERIES.len()],
        };
        Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
    }
}

fn check_written(written: io::Result<()>) -> Result<(), Failure> {
    written.map_err(|error| match error.kind() == io::ErrorKind::BrokenPipe {
        true => Failure::Closed,
        false => Failure::of("cannot write to standard output", error),
    })
}

/// The width of the terminal, if it is one and reports it.
fn terminal_width(stdout: &io::Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

fn colors_wanted() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether standard error shows colours.
pub(crate) fn colors_on_stderr() -> bool {
    io::stderr().is_terminal() && colors_wanted()
}

/// Print a line, or several, on standard error, cleaned; errors of writing are ignored.
pub(crate) fn note(text: &str) {
    report(&clean_lines(text));
}

/// The same for a text that has colours, or was cleaned before, such as the message of a [`Failure`].
pub(crate) fn report(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", guarded(text, colors_on_stderr()));
}

/// At most `chars` characters of `text`, cleaned; a cut is marked by an ellipsis.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    let cleaned = clean(text);
    match cleaned.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &cleaned[..at]),
        None => cleaned.into_owned(),
    }
}

/// `text` in at most `chars` characters, cut in the middle: names of calls and files differ at both ends.
pub(crate) fn shortened_within(text: &str, chars: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= chars {
        return Cow::Borrowed(text);
    }
    let kept = chars.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// The end of `text` in at most `chars` characters.
pub(crate) fn shortened_to_end(text: &str, chars: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= chars {
        return Cow::Borrowed(text);
    }
    let end: String = text.chars().skip(count - chars.saturating_sub(1)).collect();
    Cow::Owned(format!("…{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ClosedPipe;
    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_distinguished() {
        let mut output = Output::into_writer(ClosedPipe, None);
        assert_eq!(output.line("x"), Err(Failure::Closed));
    }

    #[test]
    fn colours_are_only_where_wanted() {
        let plain = Output::into_writer(Vec::new(), None);
        assert_eq!(plain.paint(Color::Bad, "x"), "x");
        let colored = Output { colors: true, ..Output::into_writer(Vec::new(), None) };
        assert_eq!(colored.paint(Color::Bad, "x"), "\x1b[31mx\x1b[0m");
    }

    #[test]
    fn control_characters_are_shown() {
        let kept = capture::Capture::default();
        let mut output = Output::into_writer(kept.clone(), None);
        output.line("a\u{2028}\x7f\u{61c}").unwrap();
        output.json(&serde_json::json!("a\u{2028}\x7f\u{61c}\u{9b}")).unwrap();
        output.json_lines(&serde_json::json!(["\u{200f}"])).unwrap();
        let expected = "a\\u{2028}\\u{7f}\\u{61c}\n\"a\\u2028\\u007f\\u061c\\u009b\"\n[\n  \"\\u200f\"\n]\n";
        assert_eq!(kept.text(), expected);
        assert_eq!(shortened("abcdef", 3), "abc…");
        assert_eq!(shortened("abc", 3), "abc");
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(shortened_within("gridftp:se01@3-29857", 11), "gridf…29857");
        assert_eq!(shortened_within("gridftp:se01@3-29857", 10), "gridf…9857");
        assert_eq!(shortened_within("äöü", 3), "äöü");
        assert_eq!(shortened_within("äöüß", 3), "ä…ß");
        assert_eq!(shortened_to_end("/var/log/se01.log", 10), "…/se01.log");
        assert_eq!(shortened_to_end("äöü", 3), "äöü");
    }
}
