//! Methods `sensor.archive` and `sensor.series_copy`: archives of the series of jobs, and how they get them.
//!
//! Pure. Not here: which archive has which host (`sensor::archive`).

use super::{Bytes, Effect, Request, Subject, UnixTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes of series in an answer.
pub const COPY_LEN_MAX_BYTES: usize = 256 << 10;

/// Most days that are requested at a time.
pub const COPY_DAYS_MAX: usize = 64;

/// Get the state of the archive on this host: whose series of jobs it has, and how new they are.
///
/// Fault not_found: there is no archive on this host (`[sensor.archive]` of its configuration).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArchiveParams {
    /// Only the series that this host measured, and each day of them [default: all hosts, without days].
    pub measured_by: Option<String>,
}

impl Request for ArchiveParams {
    const METHOD: &'static str = "sensor.archive";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = Archive;
}

/// State of an archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Archive {
    /// Host of the archive.
    pub host: String,
    /// Number of archives that are to have the series of each host.
    pub copies: u64,
    /// Archives of the domain that share the hosts, as this one knows them.
    pub archives: Vec<String>,
    /// Disk space in use, in bytes.
    pub used_bytes: u64,
    /// Disk space that may be used, in bytes.
    pub budget_bytes: u64,
    /// Number of days of series that were deleted for want of space since the start.
    pub days_deleted: u64,
    /// Hosts whose series it has or is to have.
    pub hosts: Vec<ArchivedHost>,
    /// Problem with the archive as a whole. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Series of a host in an archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArchivedHost {
    /// Host that measured them.
    pub host: String,
    /// Whether this archive is to have them; others remain until they are where they belong.
    pub is_own: bool,
    /// Length of the series, in bytes.
    pub bytes: u64,
    /// Oldest day (UTC). Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// Newest day (UTC). Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// When it last had all that the host had on disk. Absent if it has not had it since the archive was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<UnixTime>,
    /// Why it was not copied the last time. Absent if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Each day, if the host was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<DayLen>,
}

/// Length of the series of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DayLen {
    /// Day (UTC), `2026-11-30`.
    pub day: String,
    /// Length of the file, in bytes.
    pub bytes: u64,
}

/// Get series of jobs as they are stored, for an archive: what follows after what it has.
///
/// Fault refused: the caller may not. Fault not_found: nothing of the host is stored here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SeriesCopyParams {
    /// Host that measured them, of an archive [default: this host].
    pub measured_by: Option<String>,
    /// Days that are wanted, at most 64.
    pub days: Vec<ReachedDay>,
}

impl Request for SeriesCopyParams {
    const METHOD: &'static str = "sensor.series_copy";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Host;
    type Answer = SeriesCopy;
}

/// How far a day is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReachedDay {
    /// Day (UTC), `2026-11-30`.
    pub day: String,
    /// Bytes that are copied.
    pub bytes: u64,
    /// CRC-32 of the last 64 of them, or of all if they are fewer.
    pub crc: u32,
}

/// Series of jobs as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SeriesCopy {
    /// Days that are stored, the oldest first.
    pub days: Vec<DayLen>,
    /// What follows in days that were wanted, at most 256 KiB.
    pub parts: Vec<DayPart>,
}

/// Part of a day's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DayPart {
    /// Day (UTC), `2026-11-30`.
    pub day: String,
    /// Whether the file has other bytes than those that are copied; there are none in this part then.
    pub differs: bool,
    /// Bytes that follow; none if nothing follows at the moment.
    pub data: Bytes,
}
