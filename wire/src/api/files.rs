//! Methods about the logs of a sensor: `sensor.files`, `sensor.filters`.
//!
//! Pure. Not here: the format of filters (`log_filters`).

use super::{Effect, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The log files this sensor follows, and how far each is read.
///
/// A gap is an event of kind `message` with the attributes `name` `gap`, `reason` (`truncated`, `regrown`, `missing`, `budget`), `bytes` (seen and
/// lost), `unseen` (`possible` or `none`: whether more may be lost) and `text`, the same in a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesParams {}

impl Request for FilesParams {
    const METHOD: &'static str = "sensor.files";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    const RENAMED: &'static [Renamed] =
        &[("size_bytes", "size"), ("offset_bytes", "offset"), ("lag_bytes", "lag")];
    type Answer = Files;
}

/// The log files of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// Each path that was named or that a glob found.
    pub files: Vec<LogFile>,
}

/// A path at which a log is or is awaited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFile {
    /// The path.
    pub path: String,
    /// The filter that reads it; of one that is awaited, the one that will, if it is known from the name.
    pub filter: String,
    /// The cluster whose log it is, as configured; empty if none is.
    pub cluster: String,
    /// Which of the files that had this path it is.
    pub generation: u32,
    /// Whether it is read.
    pub state: FileState,
    /// Its size.
    pub size_bytes: u64,
    /// How far it is read.
    pub offset_bytes: u64,
    /// What is not read yet, rotated files included.
    pub lag_bytes: u64,
    /// Lines that were read.
    pub lines: u64,
    /// Events that were found in them.
    pub events: u64,
    /// Records that no rule took.
    pub unknown: u64,
    /// Gaps: places where lines were lost, or may have been.
    pub gaps: u64,
    /// What was seen and not read before it was gone.
    pub gap_bytes: u64,
    /// Gaps before which lines may have been written, and lost, that were never seen: the end of what was read and the truncation are
    /// never one moment.
    pub gaps_unknown: u64,
    /// Records that ended without their last line.
    pub incomplete: u64,
    /// Lines that were longer than is read of one.
    pub oversize: u64,
    /// NUL bytes that were passed over.
    pub skipped_nul_bytes: u64,
    /// Rotated files that are read on.
    pub rotated_open: u64,
    /// What is wrong, in a sentence; empty if nothing is.
    pub health: String,
    /// The other path through which this file is read: then this one is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Of one that is gone, when that was seen; left out where it was before this start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<UnixTime>,
}

/// Whether a path is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// It is read.
    #[default]
    Following,
    /// It was named, and there has been no file yet.
    Awaited,
    /// There was a file, and the path names none any more: it was deleted or moved away.
    Gone,
    /// The system does not let it be read; it is tried again all the time.
    Unreadable,
    /// No filter reads it.
    NoFilter,
    /// It is no log: a FIFO, a device, a folder, a compressed file, or a link out of the allowed folders.
    NoLog,
    /// It is not read for another reason, which `health` says.
    Trouble,
    /// A state that a later version has.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl FileState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FileState::Following => "following",
            FileState::Awaited => "awaited",
            FileState::Gone => "gone",
            FileState::Unreadable => "unreadable",
            FileState::NoFilter => "no_filter",
            FileState::NoLog => "no_log",
            FileState::Trouble => "trouble",
            FileState::Unknown => "unknown",
        }
    }
}

/// The log filters of this sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FiltersParams {
    /// Only this filter, with its text.
    pub name: Option<String>,
}

impl Request for FiltersParams {
    const METHOD: &'static str = "sensor.filters";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Filters;
}

/// The log filters of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filters {
    /// Each of them, in the order in which they are tried.
    pub filters: Vec<LogFilter>,
}

/// A log filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFilter {
    /// Its name.
    pub name: String,
    /// The product whose logs it reads.
    pub product: String,
    /// What it is for.
    pub description: String,
    /// The versions of the product that it was tried with.
    pub versions: String,
    /// `shipped`, or the file that it is read from.
    pub origin: String,
    /// Its rules.
    pub rules: u64,
    /// Its embedded tests.
    pub tests: u64,
    /// Globs of the file names that it reads.
    pub names: Vec<String>,
    /// The paths at which it is looked for.
    pub paths: Vec<String>,
    /// Its text, where one filter was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
