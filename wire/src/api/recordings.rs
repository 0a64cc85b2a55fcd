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

/// Longest part of a file in one answer, in bytes: encoded as text, it fits in an answer.
const PART_LEN_MAX_BYTES: u64 = 1 << 20;

const RENAMED: &[Renamed] = &[("rate_hz", "hz"), ("size_bytes", "size")];

/// List the recordings of this sensor's host, newest first, and the state of the flight recorder.
///
/// A recording contains every process of the host at the full rate, before and after a trigger or a request.
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

/// Recordings, and the state of the flight recorder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recordings {
    /// Recordings, newest first.
    pub recordings: Vec<Recording>,
    /// Whether the flight recorder is enabled.
    pub on: bool,
    /// Time span of the sweeps in memory, in seconds.
    pub reaches_back_secs: f64,
    /// Memory used by the sweeps, in bytes.
    pub memory_bytes: u64,
    /// Number of sweeps in memory.
    pub sweeps: u64,
    /// Number of memory segments dropped early since the sensor's start because the limit of 16 MiB was
    /// reached.
    pub squeezed: u64,
    /// Number of recordings deleted since the sensor's start to make room.
    pub deleted: u64,
    /// Triggers of the recorder.
    pub triggers: Vec<Trigger>,
    /// Problem of the recorder. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Trigger of the flight recorder, with its counters since the sensor's start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Trigger {
    /// Name in the configuration.
    pub name: String,
    /// Type of the trigger: `line`, `call-start`, `call-end` or `condition`.
    pub on: String,
    /// Number of recordings started.
    pub fired: u64,
    /// Number of matches without a recording: during the cool-down (`cool_down_s`), or already recorded by
    /// another trigger.
    pub suppressed: u64,
    /// Number of matches that happened before the time span in memory.
    pub late: u64,
    /// Number of matches for which no recording could be started.
    pub refused: u64,
}

/// Recording of all processes of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Recording {
    /// Id of the recording.
    pub id: String,
    /// State of the recording.
    pub state: RecordingState,
    /// Name of the trigger that started it; empty if it was started by a request.
    pub trigger: String,
    /// Note: the text of the request, or what the trigger matched.
    pub note: String,
    /// Id of the call that the recording is about; empty if none.
    #[schemars(with = "String")]
    pub call: CompactString,
    /// Id of the event that started it; empty if none.
    #[schemars(with = "String")]
    pub event: CompactString,
    /// Time of the trigger or request.
    pub time: UnixTime,
    /// Start of the recorded time.
    pub from: UnixTime,
    /// End of the recorded time.
    pub to: UnixTime,
    /// Rate, in sweeps per second.
    pub rate_hz: f64,
    /// Source of the process data: `procfs`, `bpf-sweep` or `bpf-changed`.
    pub source: String,
    /// Name of the host.
    pub host: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
}

/// State of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// In progress.
    Recording,
    /// Complete.
    #[default]
    Whole,
    /// Incomplete: the sensor was stopped.
    Stopped,
    /// Incomplete: the sensor crashed.
    Crashed,
    /// State that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl RecordingState {
    /// The value as text.
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
///
/// Fault unavailable: the flight recorder is disabled or busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordParams {
    /// Time before now to record, limited by what is in memory; at most the time span of the recorder.
    pub before_s: Span,
    /// Time after now to record; at most the time span of the recorder.
    pub after_s: Span,
    /// Note to store with the recording, at most 1000 bytes.
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

/// Recording that was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordAnswer {
    /// Id of the recording.
    pub id: String,
    /// Time until the recording is complete, in seconds.
    pub ready_in_secs: f64,
}

/// Return the samples of a recording: each process in each sweep.
///
/// Fault not_found: there is no such recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingParams {
    /// Id of the recording, as in sensor.recordings.
    pub id: String,
    /// Filters for samples.
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
    /// Matching samples, in the order of their sweeps.
    pub samples: Vec<Sample>,
    /// Matching processes that ended during the recording, at most 10000.
    pub ended: Vec<EndedProcess>,
    /// Number of matching samples.
    pub total: u64,
    /// Offset of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Number of segments of the recording that cannot be read.
    pub unreadable: u64,
    /// Number of damaged blocks in the file.
    pub damaged: u64,
    /// Description of the recording.
    pub recording: Recording,
    /// Events during the recording.
    pub events: Vec<Event>,
}

/// Return a part of a recording's file. Only for root and the user that runs the sensor.
///
/// Fault unavailable: the recording is still in progress. Fault forbidden: the caller is another user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingFileParams {
    /// Id of the recording, as in sensor.recordings.
    pub id: String,
    /// Offset of the first byte.
    #[serde(default)]
    pub offset: u64,
    /// Maximum number of bytes.
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

/// Part of a recording's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordingPart {
    /// Offset of the part in the file, in bytes.
    pub offset: u64,
    /// Size of the whole file, in bytes.
    pub size_bytes: u64,
    /// Content of the part; empty after the end of the file.
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
