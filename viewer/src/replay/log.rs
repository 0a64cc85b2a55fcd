//! Log replay: turns lines of middleware logs into a grid with the same filters and the same joining as a
//! sensor, so that the map shows the calls that `visperf calls` lists.
//!
//! Pure: bytes and the time of reading go in. Bounded: the joiner stores at most [`CALLS_MAX`] calls, a line
//! at most [`LINE_LEN_MAX_BYTES`]. Not here: files (`replay`).

use super::call_events::Collector;
use crate::grid::Grid;
use crate::grid::builder::{AHEAD, Builder, CALLS_MAX};
use crate::grid::place::HostState;
use crate::grid::refused::Reason;
use compact_str::CompactString;
use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use log_filters::found::{Change, Found};
use log_filters::join::Joiner;
use std::sync::Arc;
use wire::event::{Content, Id, Kind, Value};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// Maximum length of a line in bytes, as in the sensor; the rest of a longer line is ignored.
pub const LINE_LEN_MAX_BYTES: usize = 1 << 20;
/// State changes of hosts stored over all logs; each is a line of the middleware that names hosts.
const CHANGES_MAX: usize = 100_000;
/// Number of lines after which the engine's queue of changes, which only a sensor needs, is drained.
const CHANGES_EVERY_LINES: u64 = 1_024;

/// Logs that are read into one grid.
pub struct Logs {
    logs: Vec<Log>,
    /// Number of files so far, over all logs.
    generations: u32,
    joiner: Joiner,
    changes: Vec<(Time, String, HostState)>,
    changes_left_out: u64,
    /// Displayed name of the domain.
    domain: String,
    seen: Time,
    /// Collects the events of a call, if requested.
    collector: Option<Collector>,
}

/// State of one log.
struct Log {
    engine: Engine,
    /// Name of its file.
    name: Arc<str>,
    generation: Generation,
    offset: u64,
    /// Start of a line whose end was not read yet.
    partial: Vec<u8>,
    /// Length of that line so far, including bytes beyond the limit.
    partial_len: usize,
    partial_at: u64,
    lines: u64,
}

impl Logs {
    /// Without any log; `seen` is the time of reading.
    #[must_use]
    pub fn new(seen: Time) -> Logs {
        Logs {
            logs: Vec::new(),
            generations: 0,
            joiner: Joiner::new(CALLS_MAX),
            changes: Vec::new(),
            changes_left_out: 0,
            domain: String::new(),
            seen,
            collector: None,
        }
    }

    /// Add a log that this filter reads; returns its index for [`Logs::bytes`].
    pub fn add(&mut self, filter: Arc<Filter>, source: &Source) -> usize {
        self.domain = common_name(&self.domain, filter.product());
        self.generations += 1;
        self.logs.push(Log::new(filter, source, Generation(self.generations)));
        self.logs.len() - 1
    }

    /// Continue a log with another file at its path, from the start; what was read from the previous file
    /// stays.
    pub fn renew(&mut self, log: usize, filter: Arc<Filter>, source: &Source, seen: Time) {
        self.pause(log, true, seen);
        self.generations += 1;
        let generation = Generation(self.generations);
        let Some(log) = self.logs.get_mut(log) else { return };
        let lines = log.lines;
        *log = Log { lines, ..Log::new(filter, source, generation) };
    }

    /// Process more bytes of a log, read at `seen`.
    pub fn bytes(&mut self, log: usize, bytes: &[u8], seen: Time) {
        self.seen = self.seen.max(seen);
        let Some(log) = self.logs.get_mut(log) else { return };
        let mut found = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            log.part(part, seen, &mut found);
        }
        let source = (log.generation, log.name.clone());
        self.take(found, &source);
    }

    /// End of the available data: records that wait for their end are closed. With `whole`, a last line
    /// without a newline is processed too.
    pub fn pause(&mut self, log: usize, whole: bool, seen: Time) {
        let Some(log) = self.logs.get_mut(log) else { return };
        let mut found = Vec::new();
        if whole && log.partial_len > 0 {
            log.line(seen, &mut found);
        }
        log.engine.idle(seen, &mut found);
        let source = (log.generation, log.name.clone());
        self.take(found, &source);
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.logs.iter().map(|log| log.lines).sum()
    }

    /// Build the grid from what was read.
    #[must_use]
    pub fn grid(&self) -> Grid {
        let mut builder = Builder::new(self.seen.plus(AHEAD));
        let name = if self.domain.is_empty() { "log" } else { &self.domain };
        if let Some(domain) = builder.domain(name) {
            self.joiner.calls().for_each(|call| builder.call(domain, &call));
            for (time, host, state) in &self.changes {
                builder.host_change(domain, host, *time, *state);
            }
        }
        let mut grid = builder.build();
        grid.refused.add_many(Reason::Calls, self.joiner.dropped());
        grid.refused.add_many(Reason::Changes, self.changes_left_out);
        grid
    }

    /// Collect the events of a call from what is read from now on.
    pub(super) fn collect_into(&mut self, collector: Collector) {
        self.collector = Some(collector);
    }

    /// The collected events.
    pub(super) fn into_collector(self) -> Option<Collector> {
        self.collector
    }

    /// Every id under which events of this call are known.
    pub(super) fn ids(&self, call: &str) -> Vec<CompactString> {
        self.joiner.ids(call)
    }

    fn take(&mut self, found: Vec<Found>, (generation, name): &(Generation, Arc<str>)) {
        for one in found {
            let id =
                Id { sensor: SensorKey(0), generation: *generation, offset: one.offset, number: one.number };
            let call = self.joiner.join(&one, id);
            if let Some(collector) = &mut self.collector {
                collector.joined(&call, &one, name);
            }
            let Some(state) = implied_state(one.content.kind) else { continue };
            for host in hosts_named(&one.content) {
                if self.changes.len() >= CHANGES_MAX {
                    self.changes_left_out += 1;
                    continue;
                }
                self.changes.push((one.content.time, host, state));
            }
        }
    }
}

impl Log {
    fn new(filter: Arc<Filter>, source: &Source, generation: Generation) -> Log {
        let engine = Engine::new(filter, source);
        let name = source.file_name.as_str().into();
        Log {
            engine,
            name,
            generation,
            offset: 0,
            partial: Vec::new(),
            partial_len: 0,
            partial_at: 0,
            lines: 0,
        }
    }

    /// Process bytes up to the end of a line, or up to where reading stopped.
    fn part(&mut self, part: &[u8], seen: Time, found: &mut Vec<Found>) {
        if self.partial_len == 0 {
            // In a file that was truncated while its writer continued, NUL bytes precede the next line.
            let nuls = part.iter().take_while(|&&byte| byte == 0).count();
            self.offset += nuls as u64;
            self.partial_at = self.offset;
            if nuls > 0 {
                return if nuls < part.len() {
                    self.part(&part[nuls..], seen, found)
                };
            }
        }
        self.offset += part.len() as u64;
        self.partial_len += part.len();
        let ends = part.last() == Some(&b'\n');
        let text = &part[..part.len() - usize::from(ends)];
        let room = LINE_LEN_MAX_BYTES.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&text[..text.len().min(room)]);
        if ends {
            self.line(seen, found);
        }
    }

    fn line(&mut self, seen: Time, found: &mut Vec<Found>) {
        let text = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        self.engine.line(text, self.partial_at, seen, found);
        self.partial.clear();
        self.partial_len = 0;
        self.lines += 1;
        if self.lines.is_multiple_of(CHANGES_EVERY_LINES) {
            let mut changes: Vec<Change> = Vec::new();
            self.engine.take_changes(&mut changes);
        }
    }
}

/// Common prefix of two product names: `Slurm` for the controller and its hosts; without one, the first name.
fn common_name(one: &str, other: &str) -> String {
    if one.is_empty() {
        return other.to_owned();
    }
    let same = one.split(' ').zip(other.split(' ')).take_while(|(one, other)| one == other);
    let same: Vec<&str> = same.map(|(word, _)| word).collect();
    if same.is_empty() { one.to_owned() } else { same.join(" ") }
}

/// The host state that an event implies, if any.
fn implied_state(kind: Kind) -> Option<HostState> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "of many kinds three concern hosts")]
    match kind {
        Kind::NodeUp => Some(HostState::Live),
        Kind::NodeDown => Some(HostState::Down),
        Kind::NodeDrain => Some(HostState::Draining),
        _ => None,
    }
}

/// The hosts that an event is about: the attribute `hosts`, else `host`, else the receiver.
fn hosts_named(content: &Content) -> Vec<String> {
    match (content.attribute("hosts"), content.attribute("host")) {
        (Some(Value::List(hosts)), _) => hosts.iter().map(ToString::to_string).collect(),
        (_, Some(Value::Text(host))) => vec![host.to_string()],
        _ => content.to.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTER: &str = r#"
[filter]
name = "t"
product = "T"
[[rule]]
match = '^(?P<at>\d+) submit (?P<job>\d+) by (?P<user>\S+)'
event = "job_submit"
job = "${job}"
user = "${user}"
[calls]
names = ["${.job}"]
[[rule]]
match = '^down (?P<host>\S+)'
event = "node_down"
to = "${host}"
"#;

    fn logs() -> (Logs, usize) {
        let mut logs = Logs::new(Time::from_secs_f64(1.7e9));
        let filter = Filter::parse("t", FILTER).unwrap_or_else(|error| panic!("{error}"));
        let zone = jiff::tz::TimeZone::UTC;
        let source = Source { file_name: "x".into(), host: "h".into(), cluster: String::new(), zone };
        let log = logs.add(Arc::new(filter), &source);
        (logs, log)
    }

    #[test]
    fn where_reading_stops_does_not_matter() {
        let text = b"1 submit 7 by ada\r\n\0\0\x002 submit 8 by bob\ndown wn01,wn02\n3 submit 9 by eve";
        let seen = Time::from_secs_f64(1.7e9);
        let read = |sizes: &[usize]| {
            let (mut logs, log) = logs();
            let (mut rest, mut sizes) = (&text[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let (part, more) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                logs.bytes(log, part, seen);
                rest = more;
            }
            logs.pause(log, false, seen);
            let before = logs.grid().calls.len();
            logs.pause(log, true, seen);
            (before, logs.lines(), logs.grid())
        };
        let whole = read(&[1_000]);
        assert_eq!((whole.0, whole.1, whole.2.calls.len()), (2, 4, 3));
        let down: Vec<&str> = whole
            .2
            .places
            .iter()
            .filter(|place| !place.changes.is_empty())
            .map(|place| place.name.as_str())
            .collect();
        assert_eq!(down, ["wn01", "wn02"]);
        for sizes in [&[1][..], &[3, 7], &[19, 2]] {
            assert_eq!(read(sizes), whole, "{sizes:?}");
        }
    }

    #[test]
    fn logs_of_one_product_have_its_name() {
        assert_eq!(common_name("", "Slurm controller"), "Slurm controller");
        assert_eq!(common_name("Slurm controller", "Slurm job completion file"), "Slurm");
        assert_eq!(common_name("Slurm", "GridFTP"), "Slurm");
    }

    #[test]
    fn of_a_line_too_long_the_beginning_is_read() {
        let (mut logs, log) = logs();
        let seen = Time::from_secs_f64(1.7e9);
        let mut text = b"1 submit 7 by ada ".to_vec();
        text.resize(3 * LINE_LEN_MAX_BYTES, b'x');
        text.extend_from_slice(b"\n2 submit 8 by bob\n");
        text.chunks(100_000).for_each(|part| logs.bytes(log, part, seen));
        assert_eq!((logs.lines(), logs.grid().calls.len()), (2, 2));
    }
}
