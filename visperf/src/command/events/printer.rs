//! Prints events, as lines or as JSON.
//!
//! Not here: the format of a line (`output::event_lines`).

use crate::exit::Failure;
use crate::options::Query;
use crate::output::Output;
use crate::output::event_lines::EventLines;
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::api::events::Event;

/// Prints one event after the other.
pub(super) struct Printer {
    output: Output,
    lines: EventLines,
    is_json: bool,
}

impl Printer {
    pub(super) fn new(query: &Query) -> Printer {
        let output = query.width.output();
        Printer { lines: EventLines::new(TimeZone::system(), &output), output, is_json: query.json }
    }

    /// Prints an event of an answer, in which it is `raw`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn print_answered(&mut self, event: &Event, raw: &Value) -> Result<(), Failure> {
        match self.is_json {
            true => self.output.json(raw),
            false => self.print_line(event),
        }
    }

    /// Prints an event as if it were of an answer.
    ///
    /// # Errors
    /// If it cannot be written.
    #[cfg(feature = "export")]
    pub(super) fn print(&mut self, event: &Event) -> Result<(), Failure> {
        match self.is_json {
            true => self.output.json(&crate::output::as_answered(event)?),
            false => self.print_line(event),
        }
    }

    fn print_line(&mut self, event: &Event) -> Result<(), Failure> {
        let line = self.lines.line(event, &self.output);
        self.output.line(&line)
    }

    /// # Errors
    /// If what is printed cannot be written.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }
}
