//! Methods about recordings: `sensor.recordings`, `sensor.record`, `sensor.recording`, `sensor.recording_file`.
//!
//! Pure. Not here: the file of a recording ([`crate::recording`]).

use super::events::Event;
use super::samples::{EndedProcess, Sample, SampleChoice};
use super::{Bytes, Effect, Renamed, Request, Span, Subject, UnixTime};
use crate::recording::End;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest part of a file in one answer, in bytes: within what an answer may be, written as text.
const PART_LEN_MAX_BYTES: u64 = 1 << 20;

const RENAMED: &[Renamed] = &[("rate_hz", "hz"), ("size_bytes", "size")];

/// The recordings of this sensor's host, the newest first, and the flight recorder.
///
/// A recording holds every process of the host at the full rate around something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingsParams {}

impl Request for RecordingsParams {
    const METHOD: &'static str = "sensor.recordings";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = &[
        ("rate_hz", "hz"),
        ("size_bytes", "size"),
        ("reaches_back_secs", "reaches_back"),
        ("memory_bytes", "bytes"),
    ];
    type Answer = Recordings;
}

/// Recordings, and the recorder that makes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recordings {
    /// Each of them, the newest first.
    pub recordings: Vec<Recording>,
    /// Whether the flight recorder is on.
    pub on: bool,
    /// How far back from now sweeps are in memory.
    pub reaches_back_secs: f64,
    /// The memory that they take.
    pub memory_bytes: u64,
    /// The sweeps in memory.
    pub sweeps: u64,
    /// Pieces of memory that were dropped early because 16 MiB were not enough, since the sensor's start.
    pub squeezed: u64,
    /// Recordings that were deleted to make room, since the sensor's start.
    pub deleted: u64,
    /// What makes it record.
    pub triggers: Vec<Trigger>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What makes a recorder record, and how often it did since the sensor's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trigger {
    /// Its name, as configured.
    pub name: String,
    /// What it waits for: `line`, `call-start`, `call-end` or `condition`.
    pub on: String,
    /// Recordings that it started.
    pub fired: u64,
    /// Times that it fitted while it was quiet after another (`cool_down_s`).
    pub suppressed: u64,
    /// Times that it fitted what had happened too long ago.
    pub late: u64,
    /// Times that it fitted and no recording could be started.
    pub refused: u64,
}

/// A recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recording {
    /// By which it is asked for.
    pub id: String,
    /// How far it is.
    pub state: RecordingState,
    /// The trigger that started it; empty where it was ordered.
    pub trigger: String,
    /// Why, as the order has it.
    pub note: String,
    /// The call that it is about, if it is about one.
    #[schemars(with = "String")]
    pub call: CompactString,
    /// The event that started it, if one did.
    #[schemars(with = "String")]
    pub event: CompactString,
    /// When what started it happened.
    pub time: UnixTime,
    /// Its first moment.
    pub from: UnixTime,
    /// Its last moment.
    pub to: UnixTime,
    /// Sweeps a second.
    pub rate_hz: f64,
    /// How processes were read.
    pub source: String,
    /// The host.
    pub host: String,
    /// The size of its file.
    pub size_bytes: u64,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// It is under way.
    Recording,
    /// All of it is there.
    #[default]
    Whole,
    /// The sensor was stopped within it.
    Stopped,
    /// The sensor crashed within it.
    Crashed,
    /// A state that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl RecordingState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RecordingState::Recording => "recording",
            RecordingState::Whole => "whole",
            RecordingState::Stopped => "stopped",
            RecordingState::Crashed => "crashed",
            RecordingState::Unknown => "unknown",
        }
    }
}

impl From<Option<End>> for RecordingState {
    fn from(end: Option<End>) -> RecordingState {
        match end {
            None => RecordingState::Recording,
            Some(End::Whole) => RecordingState::Whole,
            Some(End::Stopped) => RecordingState::Stopped,
            Some(End::Crashed) => RecordingState::Crashed,
        }
    }
}

/// Record all processes of this daemon's host, from before now to after now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordParams {
    /// So long before now, as far as memory reaches back; at most what the recorder keeps.
    pub before_s: Span,
    /// So long after now; at most what the recorder keeps.
    pub after_s: Span,
    /// Why, to be found again by it.
    pub note: String,
}

impl Default for RecordParams {
    fn default() -> RecordParams {
        let span = |secs| Span(Duration::from_secs(secs));
        RecordParams { before_s: span(30), after_s: span(10), note: String::new() }
    }
}

impl Request for RecordParams {
    const METHOD: &'static str = "sensor.record";
    const EFFECT: Effect = Effect::Changes;
    const SUBJECT: Subject = Subject::Daemon;
    const RENAMED: &'static [Renamed] = &[("ready_in_secs", "ready_in")];
    type Answer = RecordAnswer;
}

/// A recording that was ordered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordAnswer {
    /// By which it is asked for.
    pub id: String,
    /// When it will be there.
    pub ready_in_secs: f64,
}

/// The samples of a recording: each process in each sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingParams {
    /// Which, as sensor.recordings has it.
    pub id: String,
    /// Which of its samples.
    #[serde(flatten)]
    pub samples: SampleChoice,
}

impl Request for RecordingParams {
    const METHOD: &'static str = "sensor.recording";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = RENAMED;
    type Answer = RecordingSamples;
}

/// Samples of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordingSamples {
    /// Those that fit, in the order of their sweeps.
    pub samples: Vec<Sample>,
    /// The processes that ended within it.
    pub ended: Vec<EndedProcess>,
    /// All samples that fit.
    pub total: u64,
    /// The offset at which to go on, where there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Parts of it that cannot be read.
    pub unreadable: u64,
    /// Blocks of its file that are damaged.
    pub damaged: u64,
    /// The recording.
    pub recording: Recording,
    /// The events within it.
    pub events: Vec<Event>,
}

/// A recording's file, part by part; for root, and the user that runs the sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingFileParams {
    /// Which, as sensor.recordings has it.
    pub id: String,
    /// From this byte on.
    #[serde(default)]
    pub offset: u64,
    /// At most so many bytes.
    #[serde(default = "part_len_max")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub limit: u64,
}

fn part_len_max() -> u64 {
    PART_LEN_MAX_BYTES
}

impl Default for RecordingFileParams {
    fn default() -> RecordingFileParams {
        RecordingFileParams { id: String::new(), offset: 0, limit: PART_LEN_MAX_BYTES }
    }
}

impl Request for RecordingFileParams {
    const METHOD: &'static str = "sensor.recording_file";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] = &[("size_bytes", "size")];
    type Answer = RecordingPart;
}

/// A part of a recording's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordingPart {
    /// Where in the file it begins.
    pub offset: u64,
    /// The size of the whole file.
    pub size_bytes: u64,
    /// Its bytes.
    pub data: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_as_the_schema_has_it() {
        assert_eq!(PART_LEN_MAX_BYTES, 1_048_576);
    }
}
