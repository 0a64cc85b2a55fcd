//! Screen of `visperf up`: scrolling lines, and on a terminal a status line below them.
//!
//! Not here: the text of the lines (`text`), which calls are printed (`ended`).

use super::ended::Ended;
use crate::exit::Failure;
use crate::harmless::guarded;
use crate::output::Output;
use crate::output::event_lines::EventLines;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use std::io::IsTerminal as _;

/// Ticks between status lines on a standard output that is not a terminal.
const STATUS_LINE_EVERY: u32 = 10;

/// Scrolling lines, and on a terminal a status line below them.
pub(super) struct Screen {
    pub(super) output: Output,
    pub(super) lines: EventLines,
    bar: Option<(MultiProgress, ProgressBar)>,
    pub(super) ended: Ended,
}

impl Screen {
    /// A screen on standard output.
    pub(super) fn new(json: bool) -> Screen {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let bar = (terminal && !json).then(|| {
            let several = MultiProgress::new();
            let bar = several.add(ProgressBar::new_spinner());
            bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("a constant template"));
            (several, bar)
        });
        let output = Output::stdout();
        Screen { lines: EventLines::new(TimeZone::system(), &output), output, bar, ended: Ended::default() }
    }

    /// Whether the status line is redrawn in place instead of printed as another line.
    pub(super) fn is_redrawn(&self) -> bool {
        self.bar.is_some()
    }

    /// Print a scrolling line.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(super) fn line(&mut self, text: &str) -> Result<(), Failure> {
        match &self.bar {
            Some((several, _)) => several
                .println(guarded(text, self.output.has_colors()))
                .map_err(|error| Failure::of("cannot write to the terminal", error)),
            None => self.output.line(text),
        }
    }

    /// Redraw the status line; without a terminal, print it from time to time.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(super) fn status(&mut self, text: &str, ticks: u32) -> Result<(), Failure> {
        match &self.bar {
            Some((_, bar)) => {
                bar.set_message(guarded(text, self.output.has_colors()).into_owned());
                Ok(())
            }
            None if ticks == 2 || ticks.is_multiple_of(STATUS_LINE_EVERY) => {
                self.output.line(&format!("-- {text}"))
            }
            None => Ok(()),
        }
    }
}
