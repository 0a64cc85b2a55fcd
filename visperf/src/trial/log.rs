//! One log run through one filter: events with their line numbers, and the lines that no rule matched.
//!
//! Pure: lines and the time of reading go in.

use crate::trial::line_numbers::LineNumbers;
use log_filters::across::AcrossLogs;
use log_filters::engine::{Counters, Engine, Source};
use log_filters::filter::Filter;
use log_filters::found::{Change, Found};
use std::sync::Arc;
use wire::time::Time;

/// Number of lines after which the engine's changes are drained; they say which earlier records it may refer
/// to.
const CHANGES_EVERY_LINES: u64 = 1_024;

/// Result of a line.
pub(crate) enum LineResult<'a> {
    /// An event; the first and last lines of its record.
    Event(&'a Found, u64, u64),
    /// A record that no rule matched, without its timestamp; its first line.
    Unknown(u64, &'a [u8]),
}

/// A log being read.
pub(crate) struct Log {
    engine: Engine,
    numbers: LineNumbers,
    last: u64,
    unknown_reported: u64,
    found: Vec<Found>,
    changes: Vec<Change>,
}

impl Log {
    /// A log at its start.
    pub(crate) fn new(filter: Arc<Filter>, source: &Source) -> Log {
        Log::among(filter, source, &AcrossLogs::default())
    }

    /// A log at its start that is read together with others.
    pub(crate) fn among(filter: Arc<Filter>, source: &Source, logs: &AcrossLogs) -> Log {
        let mut engine = Engine::among(filter, source, logs);
        engine.keep_unknown();
        Log {
            engine,
            numbers: LineNumbers::default(),
            last: 0,
            unknown_reported: 0,
            found: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Process the next line, at `offset`; results are passed to `take`.
    ///
    /// # Errors
    /// Errors of `take`.
    pub(crate) fn line<E>(
        &mut self,
        bytes: &[u8],
        offset: u64,
        seen: Time,
        take: &mut impl FnMut(LineResult<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.last = self.numbers.push(offset);
        let open = self.engine.resume_offset();
        let before = records(&self.engine.counters());
        self.engine.line(bytes, offset, seen, &mut self.found);
        if !self.found.is_empty() || self.engine.counters().unknown > self.unknown_reported {
            let counters = records(&self.engine.counters()) - before;
            // The line may have ended an open record by itself; otherwise the record ended at the line
            // before.
            let own_end = counters == 1 && self.engine.resume_offset().is_none() && !bytes.is_empty();
            let open_end = if own_end { self.last } else { self.last.saturating_sub(1) };
            self.report(open.map(|start| (start, open_end)), take)?;
        }
        if self.last.is_multiple_of(CHANGES_EVERY_LINES) {
            self.take_changes();
        }
        Ok(())
    }

    /// Process the end of the log.
    ///
    /// # Errors
    /// Errors of `take`.
    pub(crate) fn end<E>(
        &mut self,
        seen: Time,
        take: &mut impl FnMut(LineResult<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let open = self.engine.resume_offset();
        self.engine.idle(seen, &mut self.found);
        self.report(open.map(|start| (start, self.last)), take)
    }

    /// The counters so far.
    pub(crate) fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// For each rule its line in the filter and the number of records it matched.
    pub(crate) fn rule_counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.engine.rule_counts()
    }

    /// Pass on the engine's results; `open` is the record that was open before, with its last line.
    fn report<E>(
        &mut self,
        open: Option<(u64, u64)>,
        take: &mut impl FnMut(LineResult<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for found in std::mem::take(&mut self.found) {
            let first = self.numbers.of(found.offset);
            let last = match open {
                Some((start, end)) if start == found.offset => end.max(first),
                _ => first,
            };
            take(LineResult::Event(&found, first, last))?;
        }
        for (offset, text) in self.engine.take_unknown() {
            take(LineResult::Unknown(self.numbers.of(offset), &text))?;
        }
        self.unknown_reported = self.engine.counters().unknown;
        Ok(())
    }

    fn take_changes(&mut self) {
        self.changes.clear();
        self.engine.take_changes(&mut self.changes);
        for change in &self.changes {
            if let Change::Remember { offset, .. } = change {
                self.numbers.remember(*offset);
            }
        }
    }
}

fn records(counters: &Counters) -> u64 {
    counters.taken + counters.unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTER: &str = r#"
[filter]
name = "t"
product = "T"
[[record]]
start = '^list'
continue = '^ '
[[record]]
start = '^begin'
end = '^end'
[[rule]]
match = '^list (?P<job>\d+)'
event = "server_list"
job = "${job}"
[[rule]]
match = '^begin (?P<job>\d+)'
event = "job_submit"
job = "${job}"
remember = { key = "${job}", values = { j = "${job}" } }
[[rule]]
match = '^later (?P<k>\d+)'
recall = "${k}"
event = "job_start"
origin = "recalled"
job = "${<j}"
[[rule]]
match = '^one (?P<job>\d+)'
event = "job_end"
outcome = "ok"
job = "${job}"
"#;

    fn run(lines: &[&str]) -> Vec<String> {
        let source = Source {
            file_name: "x".into(),
            host: "h".into(),
            cluster: String::new(),
            zone: jiff::tz::TimeZone::UTC,
        };
        let mut log = Log::new(Arc::new(Filter::parse("t", FILTER).unwrap()), &source);
        let (mut met, mut offset) = (Vec::new(), 0);
        let mut take = |one: LineResult<'_>| {
            met.push(match one {
                LineResult::Event(found, first, last) => format!("{} {first}-{last}", found.content.kind),
                LineResult::Unknown(line, text) => format!("? {line} {}", String::from_utf8_lossy(text)),
            });
            Ok::<(), ()>(())
        };
        for line in lines {
            log.line(line.as_bytes(), offset, Time::default(), &mut take).unwrap();
            offset += line.len() as u64 + 1;
        }
        log.end(Time::default(), &mut take).unwrap();
        met
    }

    #[test]
    fn records_know_their_lines() {
        assert_eq!(run(&["list 1", " a", " b", "one 1"]), ["server_list 1-3", "job_end 4-4"]);
        assert_eq!(run(&["begin 2", "x", "end", "what"]), ["job_submit 1-3", "? 4 what"]);
        assert_eq!(run(&["list 1", " a"]), ["server_list 1-2"], "ended by the log's end");
        assert_eq!(run(&["list 1", " a", "list 2"]), ["server_list 1-2", "server_list 3-3"]);
        assert_eq!(run(&["list 1", "", "one 1"]), ["server_list 1-1", "job_end 3-3"]);
    }

    #[test]
    fn a_recalled_event_stands_where_it_was_remembered_however_long_ago() {
        let mut lines = vec!["one 0", "begin 7", "end"];
        lines.extend(std::iter::repeat_n("?", 20_000));
        lines.push("later 7");
        let met = run(&lines);
        assert_eq!(met[..2], ["job_end 1-1", "job_submit 2-3"]);
        assert_eq!(met.last().map(String::as_str), Some("job_start 2-2"));
    }
}
