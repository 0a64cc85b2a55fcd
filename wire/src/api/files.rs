//! Methods about the logs of a sensor: `sensor.files`, `sensor.filters`.
//!
//! Pure. Not here: the format of filters (`log_filters`).

use super::{Effect, Renamed, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the log files that this sensor follows, with their read position.
///
/// A gap is reported as an event of kind `message` with the attributes `name` (`gap`), `reason` (`truncated`,
/// `regrown`, `missing`, `budget`), `bytes` (seen and lost), `unseen` (`possible` or `none`: whether more may
/// be lost) and `text` (the same as a sentence).
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

/// Log files of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// Log files: each configured path, and each path matched by a glob.
    pub files: Vec<LogFile>,
}

/// Path of a log file, and its read position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFile {
    /// Path of the file.
    pub path: String,
    /// Name of the filter that reads the file; for an awaited file, the filter that its name selects, or
    /// empty.
    pub filter: String,
    /// Configured cluster of the log; empty if none.
    pub cluster: String,
    /// Generation of the file, numbered by the sensor from 1: replaced, truncated or newly created content
    /// gets a new number.
    pub generation: u32,
    /// Whether the file is read.
    pub state: FileState,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Read position, in bytes.
    pub offset_bytes: u64,
    /// Data not read yet, including rotated files, in bytes.
    pub lag_bytes: u64,
    /// Number of lines read.
    pub lines: u64,
    /// Number of events found.
    pub events: u64,
    /// Number of records that no rule matched.
    pub unknown: u64,
    /// Number of gaps: places where lines were lost or may have been lost.
    pub gaps: u64,
    /// Data known to be lost in gaps, in bytes.
    pub gap_bytes: u64,
    /// Number of gaps in which an unknown number of further lines may be lost: lines written between the last
    /// read and the truncation.
    pub gaps_unknown: u64,
    /// Number of records that ended without their last line.
    pub incomplete: u64,
    /// Number of lines that exceeded the maximum length that a filter reads.
    pub oversize: u64,
    /// Number of NUL bytes skipped.
    pub skipped_nul_bytes: u64,
    /// Number of rotated files that are still being read.
    pub rotated_open: u64,
    /// Problem, as a sentence; empty if there is none.
    pub health: String,
    /// Other path of the same file, through which it is read. Absent if this path is read itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Time when the sensor noticed that the file is gone. Absent if it is not gone, or was gone before the
    /// sensor started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<UnixTime>,
}

/// State of a log file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The file is read.
    #[default]
    Following,
    /// The path is configured and no file has existed yet.
    Awaited,
    /// The file was deleted or moved away.
    Gone,
    /// The file cannot be opened or read; the sensor retries.
    Unreadable,
    /// No filter matches the file.
    NoFilter,
    /// The file is not a log: a FIFO, a device, a folder, a compressed file, or a link that leaves the
    /// allowed folders.
    NoLog,
    /// The file is not read for another reason; see `health`.
    Trouble,
    /// State that only a later version knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl FileState {
    /// The value as text.
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

/// List the log filters of this sensor.
///
/// Fault not_found: there is no filter of this name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FiltersParams {
    /// Only the filter of this name, with its text.
    pub name: Option<String>,
}

impl Request for FiltersParams {
    const METHOD: &'static str = "sensor.filters";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Filters;
}

/// Log filters of a sensor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filters {
    /// Log filters, in the order in which they are tried.
    pub filters: Vec<LogFilter>,
}

/// Log filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFilter {
    /// Name of the filter.
    pub name: String,
    /// Product whose logs it reads.
    pub product: String,
    /// Purpose of the filter.
    pub description: String,
    /// Versions of the product that it was tested with.
    pub versions: String,
    /// Origin: `shipped`, or the path of its file.
    pub origin: String,
    /// Number of rules.
    pub rules: u64,
    /// Number of embedded tests.
    pub tests: u64,
    /// Globs of the names of the files that it reads.
    pub names: Vec<String>,
    /// Paths where the sensor looks for logs of the product.
    pub paths: Vec<String>,
    /// Text of the filter. Absent unless requested by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
