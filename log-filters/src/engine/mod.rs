//! Engine: runs one filter over one log.
//!
//! Pure: lines, their offsets and the time of reading are the input, events are the output. Invariant: a new
//! engine that receives the [`Change`]s of another and then the lines from [`Engine::resume_offset`] on finds
//! what the other would have found; so the sensor can stop anywhere.
//! Not here: splitting bytes into lines (`sensor::tail`), joining events to calls ([`crate::join`]).

mod events;

use crate::across::{AcrossLogs, Log};
use crate::calendar::Clock;
use crate::captures::Scratch;
use crate::fields;
use crate::filter::{Filter, Until};
use crate::found::{Change, Found};
use crate::memory::Memory;
use crate::timestamp::Stamp;
use compact_str::CompactString;
use jiff::tz::TimeZone;
use std::sync::Arc;
use wire::time::Time;

/// Longest record of several lines, in bytes; a longer one is ended there.
pub const RECORD_LEN_MAX_BYTES: usize = 1 << 20;

/// Longest header line, in bytes: all columns of sacct are a tenth of it.
const HEADER_LEN_MAX_BYTES: usize = 16 << 10;

/// Most unmatched records stored for [`Engine::take_unknown`] between two calls.
const UNKNOWN_KEPT_MAX: usize = 65_536;

/// Origin of a log.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name without folders.
    pub file_name: String,
    /// Host of the log, unless the file name or a line names another.
    pub host: String,
    /// Label of the cluster set by the operator; empty if there is only one.
    pub cluster: String,
    /// Time zone of stamps that print none.
    pub zone: TimeZone,
}

/// Counters of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lines processed.
    pub lines: u64,
    /// Records matched by a rule.
    pub taken: u64,
    /// Records matched by no rule.
    pub unknown: u64,
    /// Events found.
    pub events: u64,
    /// Keys dropped because a limit was reached.
    pub forgotten: u64,
}

/// An incomplete record of several lines.
struct Pending {
    record: usize,
    offset: u64,
    stamp: Option<Stamp>,
    text: Vec<u8>,
    lines: usize,
}

/// State of one filter running on one log.
pub struct Engine {
    pub(crate) filter: Arc<Filter>,
    pub(crate) parts: Vec<(CompactString, CompactString)>,
    pub(crate) scope: CompactString,
    pub(crate) clock: Clock,
    pub(crate) memory: Memory,
    /// Values shared with the other logs of the product.
    pub(crate) across: Log,
    /// The header line, with the names of the columns.
    header: Vec<u8>,
    pub(crate) columns: Vec<Vec<u8>>,
    pub(crate) changes: Vec<Change>,
    pub(crate) last: Last,
    /// The last time stamp contained in the emitted changes.
    emitted_last: Option<Time>,
    pub(crate) scratch: Scratch,
    pub(crate) counters: Counters,
    /// Bytes of attributes in the events of the present record.
    pub(crate) attribute_bytes: usize,
    pub(crate) taken_by: Vec<u64>,
    pending: Option<Pending>,
    unknown: Option<Vec<(u64, Vec<u8>)>>,
}

/// Last time stamp read from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    None,
    /// A stamp and its time of reading, which resolves a stamp without a year.
    Stamp(Stamp, Time),
    Known(Time),
}

impl Engine {
    /// Create an engine at the start of a log.
    #[must_use]
    pub fn new(filter: Arc<Filter>, source: &Source) -> Engine {
        Engine::among(filter, source, &AcrossLogs::default())
    }

    /// Create an engine at the start of a log, with the values shared between logs in `logs`.
    #[must_use]
    pub fn among(filter: Arc<Filter>, source: &Source, logs: &AcrossLogs) -> Engine {
        let zone = filter.zone.clone().unwrap_or_else(|| source.zone.clone());
        let scope = match source.cluster.as_str() {
            "" => filter.scope.clone(),
            cluster => compact_str::format_compact!("{}/{cluster}", filter.scope),
        };
        Engine {
            parts: parts(&filter, source),
            across: logs.log(scope.clone()),
            scope,
            clock: Clock::new(zone),
            memory: Memory::default(),
            header: Vec::new(),
            columns: Vec::new(),
            changes: Vec::new(),
            last: Last::None,
            emitted_last: None,
            scratch: Scratch::default(),
            counters: Counters::default(),
            attribute_bytes: 0,
            taken_by: vec![0; filter.program().rules.len()],
            pending: None,
            unknown: None,
            filter,
        }
    }

    /// The filter that the engine runs.
    #[must_use]
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// Counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { forgotten: self.memory.forgotten() + self.across.forgotten(), ..self.counters }
    }

    /// For each rule, its first line in the filter's file and the number of records that it matched.
    pub fn rule_counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.filter.program().rules.iter().map(|rule| rule.line).zip(self.taken_by.iter().copied())
    }

    /// From now on, store unmatched records for [`Engine::take_unknown`].
    pub fn keep_unknown(&mut self) {
        self.unknown.get_or_insert_default();
    }

    /// Unmatched records with their offsets, without their stamps.
    pub fn take_unknown(&mut self) -> Vec<(u64, Vec<u8>)> {
        self.unknown.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Process a line (without its newline) that starts at `offset` and was read at `seen`.
    pub fn line(&mut self, line: &[u8], offset: u64, seen: Time, out: &mut Vec<Found>) {
        self.counters.lines += 1;
        let (stamp, rest) = self.cut_stamp(line);
        if self.filter.records.is_empty() {
            self.record(rest, stamp, offset, seen, out);
            return;
        }
        let start = self.filter.records.iter().position(|record| record.start.is_match(rest));
        if self.pending.is_some() && self.goes_on(rest, start.is_some(), seen, out) {
            return;
        }
        match start {
            Some(record) => {
                self.pending = Some(Pending { record, offset, stamp, text: rest.to_vec(), lines: 1 });
            }
            None => self.record(rest, stamp, offset, seen, out),
        }
    }

    /// Process a pause of the log: a record that waits for further lines is ended.
    pub fn idle(&mut self, seen: Time, out: &mut Vec<Found>) {
        if let Some(pending) = self.pending.take() {
            self.record(&pending.text, pending.stamp, pending.offset, seen, out);
        }
    }

    /// Offset of a record that waits for further lines: after a restart, lines must be processed again from
    /// there.
    #[must_use]
    pub fn resume_offset(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| pending.offset)
    }

    /// Changes since the last call, in order.
    pub fn take_changes(&mut self, into: &mut Vec<Change>) {
        into.append(&mut self.changes);
        let last = self.last_time();
        if last != self.emitted_last {
            self.emitted_last = last;
            into.extend(last.map(|time| Change::Stamp { time }));
        }
    }

    /// Apply a change of another engine on the same log.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Remember { key, values, offset, time } => self.memory.remember(key, values, offset, time),
            Change::Forget { key } => {
                self.memory.forget(&key);
            }
            Change::RememberAcross { key, values, time } => self.across.remember(key, values, time),
            Change::ForgetAcross { key } => {
                self.across.forget(&key);
            }
            Change::Header { line } => self.set_header(line),
            Change::Stamp { time } => {
                self.last = Last::Known(time);
                self.emitted_last = Some(time);
            }
        }
    }

    /// Changes that bring a new engine to the state of this one.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Change> {
        let mut changes: Vec<_> = self.memory.changes().collect();
        changes.extend(self.across.changes());
        if !self.header.is_empty() {
            changes.push(Change::Header { line: self.header.clone() });
        }
        let mut clock = self.clock.clone();
        let last = match self.last {
            Last::None => None,
            Last::Stamp(stamp, seen) => clock.resolve(&stamp, seen),
            Last::Known(time) => Some(time),
        };
        changes.extend(last.map(|time| Change::Stamp { time }));
        changes
    }

    /// Set the names of the columns for the following lines.
    fn set_header(&mut self, line: Vec<u8>) {
        self.columns = fields::columns(&self.filter.cutting, &line);
        self.header = line;
    }

    /// Whether the record is a header line; if so, it becomes the present one.
    fn is_header(&mut self, text: &[u8]) -> bool {
        let is_header = text.len() <= HEADER_LEN_MAX_BYTES
            && self.filter.header.as_ref().is_some_and(|header| header.is_match(text));
        if is_header && self.header != text {
            self.changes.push(Change::Header { line: text.to_vec() });
            self.set_header(text.to_vec());
        }
        is_header
    }

    /// The last time stamp read from the log, if any, resolved once.
    pub(crate) fn last_time(&mut self) -> Option<Time> {
        if let Last::Stamp(stamp, seen) = self.last {
            // A date that does not exist counts as no time.
            self.last = self.clock.resolve(&stamp, seen).map_or(Last::None, Last::Known);
        }
        match self.last {
            Last::Known(time) => Some(time),
            Last::None | Last::Stamp(..) => None,
        }
    }

    #[inline]
    fn cut_stamp<'a>(&self, line: &'a [u8]) -> (Option<Stamp>, &'a [u8]) {
        for format in &self.filter.prefix {
            if let Some((stamp, len)) = format.read(line) {
                return (Some(stamp), &line[len..]);
            }
        }
        (None, line)
    }

    /// Whether the line belongs to the pending record; if it does not, that record is ended.
    fn goes_on(&mut self, rest: &[u8], starts_another: bool, seen: Time, out: &mut Vec<Found>) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        let record = &self.filter.records[pending.record];
        let (belongs, ends) = match &record.until {
            Until::Continues(goes_on) => (!starts_another && goes_on.is_match(rest), false),
            Until::Ends(end) if !starts_another => match end.is_match(rest) {
                true => (true, true),
                false => (true, false),
            },
            Until::Ends(_) => (false, false),
        };
        let full =
            pending.lines >= record.max_lines || pending.text.len() + rest.len() > RECORD_LEN_MAX_BYTES;
        if belongs && !ends && !full {
            pending.text.push(b'\n');
            pending.text.extend_from_slice(rest);
            pending.lines += 1;
            return true;
        }
        self.idle(seen, out);
        ends
    }

    fn record(&mut self, text: &[u8], stamp: Option<Stamp>, offset: u64, seen: Time, out: &mut Vec<Found>) {
        if let Some(stamp) = stamp {
            self.last = Last::Stamp(stamp, seen);
        }
        let before = out.len();
        self.attribute_bytes = 0;
        if self.is_header(text) || events::record(self, text, offset, seen, out) {
            self.counters.taken += 1;
            self.counters.events += (out.len() - before) as u64;
            return;
        }
        if text.is_empty() {
            return;
        }
        self.counters.unknown += 1;
        if let Some(unknown) = &mut self.unknown
            && unknown.len() < UNKNOWN_KEPT_MAX
        {
            unknown.push((offset, text.to_vec()));
        }
    }
}

/// Named parts of the file name, and the standard parts.
fn parts(filter: &Filter, source: &Source) -> Vec<(CompactString, CompactString)> {
    let mut parts: Vec<(CompactString, CompactString)> = Vec::new();
    if let Some(regex) = &filter.parts
        && let Some(captures) = regex.captures(source.file_name.as_bytes())
    {
        for name in regex.capture_names().flatten() {
            if let Some(found) = captures.name(name) {
                parts.push((name.into(), crate::expression::compact(found.as_bytes())));
            }
        }
    }
    for (name, value) in [("host", &source.host), ("cluster", &source.cluster), ("file", &source.file_name)] {
        if !value.is_empty() && !parts.iter().any(|(known, _)| known == name) {
            parts.push((name.into(), value.as_str().into()));
        }
    }
    parts
}
