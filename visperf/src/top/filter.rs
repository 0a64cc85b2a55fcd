//! Filter of the rows: search terms, or an expression as in `visperf watch --filter`.
//!
//! Pure. Rule: a text with a comparison is an expression. A round has no history, so comparisons with earlier
//! values are refused.
//! Not here: evaluation of expressions (`wire::channel::expression`, `sensor::channel`).

use super::rows::Process;
use sensor::channel::fields::Subject;
use sensor::channel::fields::process::Processes;
use sensor::channel::predicate::CompiledFilter;
use sensor::process::table::Table;
use wire::channel::expression;

/// A filter of rows.
#[derive(Debug)]
pub(crate) enum Filter {
    /// Rows that contain all of these, in lower case.
    Words(Vec<String>),
    /// Rows that match.
    Expression(Box<CompiledFilter<Processes>>),
}

impl Filter {
    /// Parse a filter.
    ///
    /// # Errors
    /// If it is an invalid expression, or compares with earlier values.
    pub(crate) fn new(text: &str) -> Result<Filter, String> {
        if !text.contains(['<', '>', '=', '~']) {
            return Ok(Filter::Words(text.to_lowercase().split_whitespace().map(str::to_owned).collect()));
        }
        let read = expression::filter(text).map_err(|error| error.to_string())?;
        let ready = CompiledFilter::<Processes>::new(&read).map_err(|error| error.to_string())?;
        if ready.slots() > 0 || ready.top().is_some() {
            return Err("expected a filter of one moment, found changes, rate of or top; see visperf watch"
                .to_owned());
        }
        Ok(Filter::Expression(Box::new(ready)))
    }

    /// Whether a process matches.
    pub(crate) fn passes(&self, process: &Process) -> bool {
        match self {
            Filter::Words(words) => process.fits(words),
            Filter::Expression(ready) => {
                let mut seen = Processes::view(&process.record);
                seen.command = Some(process.command.as_str());
                ready.passes(&seen, &[], 0.0, &Table::default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rows::Place;
    use serde_json::json;

    fn process() -> Process {
        let place = Place { domain: "UT-ICL".to_owned(), host: "wn01".to_owned() };
        let fields = json!({"pid": 7, "start_ns": 5, "parent": 1, "uid": 1000, "user": "ada", "state": "running",
            "name": "burn", "command": "burn --hot", "cpu": 0.9, "cpu_seconds": 61.0, "user_seconds": 60.0,
            "rss_bytes": 1 << 30, "threads": 2, "minor_faults": 8, "read_bytes": 4096, "written_bytes": 1024});
        Process::of(&place, &serde_json::from_value(fields).expect("a process"))
    }

    #[test]
    fn a_row_passes_by_words_or_by_an_expression() {
        for (text, expected) in [
            ("", true),
            ("BURN ada", true),
            ("burn eve", false),
            ("cpu > 0.5 and name ~ \"^bu\"", true),
            ("cpu > 0.95", false),
            ("state = \"running\" and command ~ \"hot\" and child of 1 and uid = 1000", true),
            ("rss_bytes >= 1Gi and io_bytes = 5ki and threads = 2 and minor_faults > 7", true),
            ("cpu_seconds > 60 and start_seconds < 1 and voluntary_switches >= 0", false),
        ] {
            assert_eq!(Filter::new(text).expect(text).passes(&process()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_or_of_the_past_is_refused() {
        for (text, expected) in [
            ("cpu >", "expected a number, found the end"),
            ("warmth > 3", "expected a number of a process"),
            ("state = \"runing\"", "expected one of running"),
            ("rate of cpu_seconds > 1", "visperf watch"),
            ("cpu > 0 top 3 by cpu", "visperf watch"),
        ] {
            let message = Filter::new(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
