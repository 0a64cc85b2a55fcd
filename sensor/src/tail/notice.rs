//! Notices of the sensor about a log: gaps, incomplete last lines, lines too long, filters too slow.
//!
//! Pure. They are `message` events beside those of the filter; the attribute `name` is the kind of notice.
//! Invariant: they have the highest numbers within a record, so they never have the number of a filter's
//! event, and one offset of a file has at most one notice of each kind.

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
    /// The file has other content before the reading position.
    Regrown,
    /// The file was not found again under any name: it was deleted or compressed while it was not open.
    Missing,
    /// Deleted files had too many unread bytes.
    Budget,
}

impl Reason {
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

/// Lines are missing here, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub reason: Reason,
    /// Bytes that were seen and not read.
    pub lost_bytes: u64,
}

impl Gap {
    /// Whether lines that were never seen may be lost: those written after the last look.
    #[must_use]
    pub fn may_be_more(&self) -> bool {
        self.reason != Reason::Budget
    }

    /// The notice at this offset of the file.
    #[must_use]
    pub fn notice(&self, offset: u64, seen: Time) -> Found {
        let about = vec![
            ("reason", self.reason.as_str().into()),
            ("bytes", self.lost_bytes.to_compact_string()),
            ("unseen", if self.may_be_more() { "possible" } else { "none" }.into()),
            ("text", self.to_compact_string()),
        ];
        notice(offset, GAP, seen, "gap", about)
    }
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let event = match self.reason {
            Reason::Truncated => "the truncation",
            Reason::Regrown => "the rewrite",
            Reason::Missing => "the deletion",
            Reason::Budget => {
                return write!(
                    f,
                    "{} bytes of a deleted file were dropped, for too much was held",
                    self.lost_bytes
                );
            }
        };
        match self.lost_bytes {
            0 => write!(
                f,
                "nothing that was seen is lost; lines written between the last read and {event} may be"
            ),
            bytes => write!(
                f,
                "{bytes} bytes that were seen are lost; lines written between the last look and {event} may be, too"
            ),
        }
    }
}

/// The last line has had no end for some time, or will never have one.
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

/// The filter is too slow for this log, which is therefore not read for a while.
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
    fn a_gap_says_why_and_how_much() {
        let text = |found: &Found, name: &str| {
            found.content.attribute(name).and_then(Value::as_text).unwrap_or_default().to_owned()
        };
        let texts = |reason, lost_bytes| {
            let found = Gap { reason, lost_bytes }.notice(7, Time::default());
            ["name", "reason", "bytes", "unseen", "text"].map(|name| text(&found, name))
        };
        assert_eq!(texts(Reason::Budget, 12)[..4], ["gap", "budget", "12", "none"]);
        let [.., bytes, unseen, sentence] = texts(Reason::Truncated, 0);
        assert_eq!([bytes, unseen], ["0", "possible"]);
        assert_eq!(
            sentence,
            "nothing that was seen is lost; lines written between the last read and the truncation may be"
        );
        assert!(texts(Reason::Missing, 3)[4].starts_with("3 bytes that were seen are lost; "));
    }
}
