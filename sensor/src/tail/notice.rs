//! The sensor's own notices about a log: gaps, incomplete last lines, lines too long, filters too slow.
//!
//! Pure. They are `message` events beside those of the filter, with the attribute `name` telling which.
//! Invariant: their numbers within a record are the highest there are, so that they never take the number
//! of a filter's event, and one place of a file has at most one notice of each name.

use super::lines::Cut;
use compact_str::{CompactString, ToCompactString, format_compact};
use log_filters::found::Found;
use wire::event::{Content, Kind, Value};
use wire::time::Time;

/// Number of an `oversize` notice.
const OVERSIZE: u16 = u16::MAX;
/// Number of an `incomplete` notice.
const INCOMPLETE: u16 = u16::MAX - 1;
/// Number of a `gap` notice.
const GAP: u16 = u16::MAX - 2;
/// Number of a `quarantine` notice.
const QUARANTINE: u16 = u16::MAX - 3;

/// Why a part of a log could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file is shorter than what was read of it.
    Truncated,
    /// The file has other content where reading stopped.
    Regrown,
    /// The file is no longer there, by any name: deleted or compressed while it was not open.
    Missing,
    /// Too much was held back in deleted files.
    Budget,
}

impl Reason {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Truncated => "truncated",
            Reason::Regrown => "regrown",
            Reason::Missing => "missing",
            Reason::Budget => "budget",
        }
    }
}

/// Lines may be missing here: why, and how many bytes if that can be known.
#[must_use]
pub fn gap(offset: u64, seen: Time, reason: Reason, bytes: Option<u64>) -> Found {
    let bytes = bytes.map_or_else(|| "unknown".into(), |bytes| bytes.to_compact_string());
    notice(offset, GAP, seen, "gap", vec![("reason", reason.as_str().into()), ("bytes", bytes)])
}

/// The last line has no end for some time now, or will never have one.
#[must_use]
pub fn incomplete(offset: u64, seen: Time, len_bytes: u64) -> Found {
    notice(offset, INCOMPLETE, seen, "incomplete", vec![("bytes", len_bytes.to_compact_string())])
}

/// A line is longer than what is given to the filter.
#[must_use]
pub fn oversize(offset: u64, seen: Time, cut: Cut) -> Found {
    let hash = format_compact!("{:016x}", cut.hash);
    let about = vec![("bytes", cut.len_bytes.to_compact_string()), ("xxh3", hash)];
    notice(offset, OVERSIZE, seen, "oversize", about)
}

/// The filter is too slow for this log, which is no longer read.
#[must_use]
pub fn quarantine(offset: u64, seen: Time, filter: &str, bytes_per_sec: u64) -> Found {
    let about = vec![("filter", filter.into()), ("bytes_per_second", bytes_per_sec.to_compact_string())];
    notice(offset, QUARANTINE, seen, "quarantine", about)
}

fn notice(
    offset: u64,
    number: u16,
    seen: Time,
    name: &'static str,
    about: Vec<(&'static str, CompactString)>,
) -> Found {
    let mut content = Content::new(Kind::Message, seen);
    let name = std::iter::once(("name", name.into()));
    content.attributes = name.chain(about).map(|(key, value)| (key.into(), Value::Text(value))).collect();
    Found { offset, number, content, keys: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_tells_why_and_how_much() {
        let text = |found: &Found, name: &str| {
            found.content.attribute(name).and_then(Value::as_text).unwrap_or_default().to_owned()
        };
        let found = gap(7, Time::default(), Reason::Missing, Some(12));
        assert_eq!(
            [text(&found, "name"), text(&found, "reason"), text(&found, "bytes")],
            ["gap", "missing", "12"]
        );
        assert_eq!(text(&gap(7, Time::default(), Reason::Truncated, None), "bytes"), "unknown");
    }
}
