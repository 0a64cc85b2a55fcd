//! Record of a day: which files it has, and what is known to be missing in them.
//!
//! Pure. Rule: a day without a record is not there, whatever files there are: its record is written last. Where files are
//! replaced, the record is marked as unfinished before. Not here: where records are stored ([`crate::destination`]).

use crate::table::{Finished, Part, SCHEMA_VERSION, Table};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use wire::api::UnixTime;
use wire::api::history::HostBehind;
use wire::time::Time;

/// Version of the record.
const VERSION: u32 = 1;

/// Folder of the records; programs that read the tables skip what begins with an underscore.
pub(crate) const FOLDER: &str = "_visperf";

/// Start and end of a day.
#[must_use]
pub fn span(date: Date) -> Range<Time> {
    let start = |date: Date| {
        let zoned = date.to_zoned(TimeZone::UTC).expect("every day begins in UTC");
        Time::from_micros(zoned.timestamp().as_microsecond())
    };
    start(date)..start(date.tomorrow().unwrap_or(date))
}

/// What is stored of a day of a domain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Day {
    /// Version of the record.
    pub version: u32,
    /// Version of the tables' columns.
    pub schema: u32,
    /// The domain.
    pub domain: String,
    /// The day, in UTC.
    pub date: Date,
    /// When it was exported.
    pub exported: UnixTime,
    /// The files.
    pub files: Vec<DayFile>,
    /// Its files are being replaced, or that was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Until when, if the day was not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixTime>,
    /// Hosts whose metrics ended before the day did when it was exported.
    pub behind: Vec<HostBehind>,
    /// Only calls of the user who exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_calls_only: bool,
    /// Only processes of the user who exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_processes_only: bool,
    /// Hosts that did not answer when their processes were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Hosts that had reported nothing to the representative, so that events of theirs may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// Number of events that could not be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed_events: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A file of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayFile {
    /// The table.
    pub table: Table,
    /// Where it is, from the place of the export.
    pub path: String,
    /// Number of rows.
    pub rows: u64,
    /// Length, in bytes.
    pub len_bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// CRC-32 of each 128 KiB of it, in hexadecimal digits: parts of a file are verified as they are read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksums: String,
}

impl Day {
    /// Record without files.
    #[must_use]
    pub fn new(domain: &str, date: Date, exported: UnixTime) -> Day {
        Day {
            version: VERSION,
            schema: SCHEMA_VERSION,
            domain: domain.to_owned(),
            date,
            exported,
            files: Vec::new(),
            unfinished: false,
            until: None,
            behind: Vec::new(),
            own_calls_only: false,
            own_processes_only: false,
            silent: Vec::new(),
            unheard: Vec::new(),
            missed_events: 0,
        }
    }

    /// Where the record of a day is, from the place of the export.
    #[must_use]
    pub fn path(domain: &str, date: Date) -> String {
        format!("{FOLDER}/domain={domain}/date={date}.json")
    }

    /// The domain and day whose record is there.
    pub(crate) fn of_path(path: &str) -> Option<(String, Date)> {
        let rest = path.strip_prefix(FOLDER)?.strip_prefix("/domain=")?.strip_suffix(".json")?;
        let (domain, date) = rest.split_once("/date=")?;
        Some((domain.to_owned(), date.parse().ok()?))
    }

    /// Start of the day, and its end, or until when there is something of a day that was not over.
    #[must_use]
    pub fn span(&self) -> Range<Time> {
        let Range { start, end } = span(self.date);
        start..self.until.map_or(end, |until| until.0.clamp(start, end))
    }

    /// The file of a table.
    #[must_use]
    pub fn file(&self, table: Table) -> Option<&DayFile> {
        self.files.iter().find(|file| file.table == table)
    }

    /// Length of all files, in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len_bytes).sum()
    }

    /// The record without what is for programs alone.
    #[must_use]
    pub fn brief(&self) -> Day {
        let mut day = self.clone();
        day.files.iter_mut().for_each(|file| file.checksums = String::new());
        day
    }

    /// Reads a record.
    ///
    /// # Errors
    /// States what is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Day, String> {
        let day: Day =
            serde_json::from_slice(bytes).map_err(|error| format!("no record of a day: {error}"))?;
        match day.version {
            VERSION if day.schema > SCHEMA_VERSION => Err(format!(
                "its columns are of version {}; this program knows version {SCHEMA_VERSION}",
                day.schema
            )),
            VERSION => Ok(day),
            later => Err(format!("a record of version {later}; this program knows version {VERSION}")),
        }
    }
}

impl DayFile {
    /// The entry of a file.
    #[must_use]
    pub fn of(file: &Finished) -> DayFile {
        let Finished { part, rows, len_bytes, sha256, checksums, .. } = file;
        DayFile {
            table: part.table,
            path: path(part),
            rows: *rows,
            len_bytes: *len_bytes,
            sha256: sha256.clone(),
            checksums: checksums.clone(),
        }
    }
}

/// Where the file of a part is, in the form that other programs read as columns `domain` and `date`.
pub(crate) fn path(Part { table, domain, date }: &Part) -> String {
    format!("{table}/domain={domain}/date={date}/{table}.parquet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut day = Day::new("physics.example", date(2026, 11, 26), UnixTime::default());
        day.files.push(DayFile {
            table: Table::Calls,
            path: path(&Part { table: Table::Calls, domain: day.domain.clone(), date: day.date }),
            rows: 7,
            len_bytes: 900,
            sha256: "ab".repeat(32),
            checksums: String::new(),
        });
        assert_eq!(day.files[0].path, "calls/domain=physics.example/date=2026-11-26/calls.parquet");
        let path = Day::path(&day.domain, day.date);
        assert_eq!(Day::of_path(&path), Some((day.domain.clone(), day.date)));
        for other in ["_visperf/lock", "_visperf/new/x", "_visperf/domain=a/date=2026-11-26.json#1"] {
            assert_eq!(Day::of_path(other), None);
        }
        let bytes = serde_json::to_vec(&day).expect("in memory");
        assert_eq!(Day::parse(&bytes), Ok(day.clone()));
        let columns = serde_json::to_vec(&Day { schema: 2, ..day.clone() }).expect("in memory");
        assert!(Day::parse(&columns).is_err_and(|text| text.starts_with("its columns are of version 2")));
        let later = serde_json::to_vec(&Day { version: 2, ..day }).expect("in memory");
        assert_eq!(Day::parse(&later), Err("a record of version 2; this program knows version 1".to_owned()));
        assert!(Day::parse(b"{").is_err_and(|text| text.starts_with("no record of a day: ")));
    }
}
