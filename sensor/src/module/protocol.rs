//! Protocol between the sensor and a module: one line of JSON for each call, and one line for each answer.
//!
//! ```text
//! sensor: {"hello":{"protocols":[1],"module":"gpu","host":"wn07","domain":"UT-ICL","version":"0.1.0"}}
//! module: {"protocol":1,"name":"nvidia-counters","kind":"collector","rate":1}
//! sensor: {"collect":{"time":1790166257.25,"sweep":1}}
//! module: {"figures":[{"name":"utilization","unit":"ratio","labels":{"gpu":"0"},"value":0.93}]}
//! handler: {"protocol":1,"name":"gnuplot","kind":"handler","metrics":["node_load*"],"events":["job_end"]}
//! sensor: {"handle":{"entries":[{"what":"event","event":{…}},{"what":"figures","time":…,"figures":[…]}]}}
//! handler: {}
//! ```
//! Pure. Rules: the sensor speaks first, and a module only answers calls; the length of an answer is checked
//! before it is parsed; an invalid answer is rejected as a whole, with what was expected.
//! Not here: transport of the lines (`child`, `wasm`), the entries for a handler (`feed`).

mod object;

use self::object::Object;
use super::spec::is_name;
use compact_str::CompactString;
use serde::Deserialize;
use serde_json::{Number as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use wire::channel::{self, ChannelRequest, expression};
use wire::event::Kind;
use wire::harmless::is_harmless;
use wire::sample::{Number, Semantics};
use wire::version::MODULE;

/// Version of this protocol.
pub const VERSION: u32 = MODULE.written as u32;
/// Longest line from a module, in bytes: the most figures with long labels.
pub const ANSWER_LEN_MAX_BYTES: usize = 256 << 10;
/// Longest line to a module, in bytes.
pub const CALL_LEN_MAX_BYTES: usize = 1 << 20;
/// Most figures of one answer: a report has 16384 metrics in all, for the host and all its modules.
pub const FIGURES_MAX: usize = 256;
/// Most labels of a figure.
pub const LABELS_MAX: usize = 8;
/// Longest name of a figure or label, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 64;
/// Longest value of a label, and longest unit, in bytes.
pub const LABEL_LEN_MAX_BYTES: usize = 128;
/// Most names or globs of metrics that a handler may request.
pub const METRICS_MAX: usize = 64;
/// Slowest rate of a collector, in Hz: about one call an hour.
pub const RATE_MIN_HZ: f64 = 0.0003;
/// Fastest rate of a collector, in Hz: that of the host's own metrics.
pub const RATE_MAX_HZ: f64 = crate::sample::schedule::RATE_MAX_HZ;
/// Characters of an invalid line that an error shows.
const SHOWN_CHARS: usize = 80;
/// Characters of a parser's message that an error shows.
const WHY_CHARS: usize = 300;

/// Invalid line of a module.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not the expected JSON.
    #[error("expected {expected}, found {found} ({why})")]
    Line {
        expected: &'static str,
        /// Start of the line.
        found: String,
        /// Message of the JSON parser.
        why: String,
    },
    /// Unsupported version.
    #[error("expected protocol {expected} in its hello, found {0}; this sensor speaks no other", expected = MODULE.expected())]
    Version(u32),
    /// A part of it is invalid or exceeds a limit.
    #[error("{0}")]
    Part(String),
}

/// Answer of a module to the first call.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// Name that the module gives itself.
    pub name: CompactString,
    /// Its kind and its requests.
    pub wants: ModuleRequest,
}

/// Kind of a module, and what it requests.
#[derive(Clone, Debug, PartialEq)]
pub enum ModuleRequest {
    /// Requests to be called for figures at a rate.
    Collector {
        /// Calls per second, [`RATE_MIN_HZ`] to [`RATE_MAX_HZ`].
        rate_hz: f64,
    },
    /// Requests entries, events or metrics.
    Handler(Box<Flow>),
}

/// What a handler requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Subscription to processes.
    pub processes: Option<ChannelRequest>,
    /// Events of these kinds; all kinds if the list is empty.
    pub events: Option<Vec<Kind>>,
    /// Metrics of the host with these names; `*` matches any characters.
    pub metrics: Vec<CompactString>,
}

/// A figure that a module returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name within the module.
    pub name: CompactString,
    /// Sorted by name.
    pub labels: Vec<(CompactString, CompactString)>,
    pub unit: CompactString,
    pub semantics: Semantics,
    pub value: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHello {
    protocol: u32,
    name: String,
    kind: RawKind,
    rate: Option<f64>,
    processes: Option<Object<RawProcesses>>,
    events: Option<Vec<String>>,
    metrics: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawKind {
    Collector,
    Handler,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawProcesses {
    rate: Option<f64>,
    filter: String,
    condition: Option<String>,
    only_signals: bool,
    changes: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    #[serde(default)]
    figures: Vec<Object<RawFigure>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    name: String,
    value: Json,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    semantics: RawSemantics,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    pid: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawSemantics {
    Counter,
    #[default]
    Gauge,
    State,
}

/// Builds the first call.
#[must_use]
pub fn call_hello(module: &str, host: &str, domain: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let protocols = [VERSION];
    let hello =
        json!({"protocols": protocols, "module": module, "host": host, "domain": domain, "version": version});
    json!({ "hello": hello }).to_string()
}

/// Builds a call to a collector; `time` is in seconds since 1970, and `sweep` counts the calls, from 1.
#[must_use]
pub fn call_collect(time: f64, sweep: u64) -> String {
    json!({"collect": {"time": time, "sweep": sweep}}).to_string()
}

/// Builds a call to a handler from entries in JSON: as many of the first ones as fit, at least one. Returns
/// their number too.
pub fn call_handle<'a>(entries: impl Iterator<Item = &'a String>) -> (String, usize) {
    let (mut line, mut taken) = ("{\"handle\":{\"entries\":[".to_owned(), 0);
    for entry in entries {
        if taken > 0 && line.len() + entry.len() + 4 > CALL_LEN_MAX_BYTES {
            break;
        }
        if taken > 0 {
            line.push(',');
        }
        line.push_str(entry);
        taken += 1;
    }
    line.push_str("]}}");
    (line, taken)
}

/// Parses the answer to the first call.
///
/// # Errors
/// If it is not a valid hello.
pub fn hello(line: &[u8]) -> Result<Hello, Error> {
    const EXPECTED: &str =
        "a hello such as {\"protocol\":1,\"name\":\"gpu\",\"kind\":\"collector\",\"rate\":1}";
    let raw: RawHello = read(line, EXPECTED)?;
    if !u16::try_from(raw.protocol).is_ok_and(|version| MODULE.reads(version)) {
        return Err(Error::Version(raw.protocol));
    }
    if raw.name.is_empty() || raw.name.len() > NAME_LEN_MAX_BYTES || !raw.name.chars().all(is_harmless) {
        let found = shown(raw.name.as_bytes());
        return Err(Error::Part(format!("name: expected 1 to {NAME_LEN_MAX_BYTES} bytes, found {found}")));
    }
    let wants = match raw.kind {
        RawKind::Collector => collector(&raw)?,
        RawKind::Handler => ModuleRequest::Handler(Box::new(flow(&raw)?)),
    };
    Ok(Hello { name: raw.name.into(), wants })
}

/// Parses the figures of an answer. Each must have another name or other labels.
///
/// # Errors
/// If the answer or one of its figures is invalid.
pub fn answer(line: &[u8]) -> Result<Vec<Figure>, Error> {
    const EXPECTED: &str =
        "an answer such as {} or {\"figures\":[{\"name\":\"heat\",\"unit\":\"celsius\",\"value\":41.5}]}";
    let raw: RawAnswer = read(line, EXPECTED)?;
    if raw.figures.len() > FIGURES_MAX {
        let found = raw.figures.len();
        return Err(Error::Part(format!("figures: expected at most {FIGURES_MAX}, found {found}")));
    }
    let figures = raw.figures.into_iter().map(|Object(raw)| figure(raw)).collect::<Result<Vec<_>, _>>()?;
    let mut known = BTreeSet::new();
    for figure in &figures {
        if !known.insert((&figure.name, &figure.labels)) {
            let name = &figure.name;
            let message = format!("figures: expected each name with its labels once, found {name} twice");
            return Err(Error::Part(message));
        }
    }
    Ok(figures)
}

fn read<'a, T: Deserialize<'a>>(line: &'a [u8], expected: &'static str) -> Result<T, Error> {
    let failed = |why: String| Error::Line { expected, found: shown(line), why };
    if line.len() > ANSWER_LEN_MAX_BYTES {
        return Err(failed(format!("longer than {ANSWER_LEN_MAX_BYTES} bytes")));
    }
    serde_json::from_slice(line).map(|Object(read)| read).map_err(|error| {
        // Most languages print these for values that are not finite numbers, but JSON does not have them.
        let is_no_number = ["NaN", "Infinity"]
            .iter()
            .any(|word| line.windows(word.len()).any(|part| part == word.as_bytes()));
        let hint = if is_no_number { "; JSON has no NaN and no Infinity: leave the figure out" } else { "" };
        failed(format!("{}{hint}", plain(&error.to_string())))
    })
}

/// Message of a parser made safe to print: it may repeat text of the module.
fn plain(message: &str) -> String {
    message.chars().take(WHY_CHARS).map(|c| if is_harmless(c) { c } else { ' ' }).collect()
}

/// Start of a line, made safe to print.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN_CHARS)]);
    let mut message: String = text.chars().take(SHOWN_CHARS).collect();
    if message.len() < line.len() {
        message.push('…');
    }
    format!("{message:?}")
}

fn collector(raw: &RawHello) -> Result<ModuleRequest, Error> {
    let of_handlers = [
        ("processes", raw.processes.is_some()),
        ("events", raw.events.is_some()),
        ("metrics", raw.metrics.is_some()),
    ];
    if let Some((word, _)) = of_handlers.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Part(format!("{word}: expected none from a collector; a handler may want it")));
    }
    let rate_hz = raw.rate.unwrap_or(1.0);
    rate(rate_hz).map_err(|message| Error::Part(format!("rate: {message}")))?;
    Ok(ModuleRequest::Collector { rate_hz })
}

/// Checks the rate of a collector.
///
/// # Errors
/// If it is out of range; says what was expected.
pub fn rate(hz: f64) -> Result<f64, String> {
    match (RATE_MIN_HZ..=RATE_MAX_HZ).contains(&hz) {
        true => Ok(hz),
        false => Err(format!("expected {RATE_MIN_HZ} to {RATE_MAX_HZ} calls a second, found {hz}")),
    }
}

fn flow(raw: &RawHello) -> Result<Flow, Error> {
    if raw.rate.is_some() {
        let message =
            "rate: expected none from a handler beside processes; its interval is that of the events";
        return Err(Error::Part(message.to_owned()));
    }
    let processes = raw.processes.as_ref().map(|Object(raw)| processes(raw)).transpose()?;
    let events = raw.events.as_ref().map(|words| words.iter().map(kind).collect()).transpose()?;
    let metrics = raw.metrics.iter().flatten();
    let metrics: Vec<CompactString> = metrics.map(CompactString::from).collect();
    if metrics.len() > METRICS_MAX || metrics.iter().any(|name| name.len() > LABEL_LEN_MAX_BYTES) {
        let message =
            format!("metrics: expected at most {METRICS_MAX} names of at most {LABEL_LEN_MAX_BYTES} bytes");
        return Err(Error::Part(message));
    }
    if processes.is_none() && events.is_none() && metrics.is_empty() {
        let message =
            "expected processes, events or metrics from a handler, found none: it would never be called";
        return Err(Error::Part(message.to_owned()));
    }
    Ok(Flow { processes, events, metrics })
}

fn processes(raw: &RawProcesses) -> Result<ChannelRequest, Error> {
    let within = |what: &str, message: String| Error::Part(format!("processes.{what}: {}", plain(&message)));
    let rate = raw.rate.map_or(Ok(channel::Rate::default()), channel::Rate::try_from);
    let condition = raw.condition.as_deref().map(expression::condition).transpose();
    Ok(ChannelRequest {
        rate: rate.map_err(|error| within("rate", error.to_string()))?,
        filter: expression::filter(&raw.filter).map_err(|error| within("filter", error.to_string()))?,
        condition: condition.map_err(|error| within("condition", error.to_string()))?,
        only_signals: raw.only_signals,
        changes: raw.changes,
        ..ChannelRequest::default()
    })
}

fn kind(word: &String) -> Result<Kind, Error> {
    Kind::from_word(word).ok_or_else(|| {
        let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::Part(format!(
            "events: expected some of {}, found {}",
            known.join(", "),
            shown(word.as_bytes())
        ))
    })
}

fn figure(raw: RawFigure) -> Result<Figure, Error> {
    let wrong = |message: String| Error::Part(format!("figure {}: {message}", shown(raw.name.as_bytes())));
    if !is_figure_name(&raw.name) {
        return Err(wrong(format!(
            "expected a name of letters, digits and _, at most {NAME_LEN_MAX_BYTES}, not beginning with a digit"
        )));
    }
    let mut labels = raw.labels;
    if let Some(pid) = raw.pid
        && labels.insert("pid".to_owned(), pid.to_string()).is_some()
    {
        return Err(wrong("expected pid once, found it among the labels too".to_owned()));
    }
    if labels.len() > LABELS_MAX {
        return Err(wrong(format!("expected at most {LABELS_MAX} labels, found {}", labels.len())));
    }
    for text in labels.values().chain([&raw.unit]) {
        if text.len() > LABEL_LEN_MAX_BYTES || !text.chars().all(is_harmless) {
            return Err(wrong(format!(
                "expected labels and units of at most {LABEL_LEN_MAX_BYTES} bytes without control characters, line separators and marks of direction, found {}",
                shown(text.as_bytes())
            )));
        }
    }
    if let Some(name) = labels.keys().find(|name| !is_figure_name(name)) {
        return Err(wrong(format!("expected labels named as figures are, found {}", shown(name.as_bytes()))));
    }
    let value = match (raw.value.as_u64(), raw.value.as_f64()) {
        (Some(whole), _) => Number::Whole(whole),
        (None, Some(real)) if real.is_finite() => Number::Real(real),
        _ => {
            return Err(wrong(format!(
                "expected a finite number, found {}",
                shown(raw.value.to_string().as_bytes())
            )));
        }
    };
    let semantics = match raw.semantics {
        RawSemantics::Counter => Semantics::Counter,
        RawSemantics::Gauge => Semantics::Gauge,
        RawSemantics::State => Semantics::State,
    };
    let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Figure { name: raw.name.into(), labels, unit: raw.unit.into(), semantics, value })
}

fn is_figure_name(name: &str) -> bool {
    name.len() <= NAME_LEN_MAX_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Name of a module's figure among the metrics of the host.
#[must_use]
pub fn metric_name(module: &str, figure: &str) -> String {
    debug_assert!(is_name(module), "it was checked when its file was read");
    format!("module.{module}.{figure}")
}

#[cfg(test)]
mod tests;
