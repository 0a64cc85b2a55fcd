//! Conversion of reported events to the form that joining takes.
//!
//! Pure. Not here: the form in which a member sends them (`report`).

use compact_str::CompactString;
use log_filters::found::Found;
use log_filters::join::Joiner;
use wire::call::Keys;
use wire::call::usage::Usage;
use wire::event::{Content, Id};
use wire::id::Generation;
use wire::report::Record;

/// Most names of a call.
const NAMES_MAX: usize = 16;
/// Longest name or scope of a call, in bytes.
const NAME_LEN_BYTES: usize = 1024;

/// Converts a record to the form that joining takes.
#[must_use]
pub(super) fn to_found(record: &Record) -> Found {
    Found {
        offset: record.offset,
        number: record.number,
        content: record.content.clone(),
        keys: record.keys.clone(),
    }
}

/// Joins a record to its call among the domain's calls, and sets that call's id in it. Keys beyond the limits
/// of any filter ([`NAMES_MAX`], [`NAME_LEN_BYTES`]) are dropped; the record then has no call.
pub(super) fn joined(record: &mut Record, (id, lane): (Id, Generation), joiner: &mut Joiner) {
    record.call = CompactString::default();
    let is_sane = |keys: &Keys| {
        let len = |name: &CompactString| name.len() <= NAME_LEN_BYTES;
        (1..=NAMES_MAX).contains(&keys.names.len()) && len(&keys.scope) && keys.names.iter().all(len)
    };
    if record.keys.as_ref().is_some_and(|keys| !is_sane(keys)) {
        record.keys = None;
    }
    if record.keys.is_none() && !Usage::is_event(&record.content) {
        return;
    }
    let blank = Content::new(record.content.kind, record.content.time);
    let found = Found {
        offset: record.offset,
        number: record.number,
        content: std::mem::replace(&mut record.content, blank),
        keys: record.keys.take(),
    };
    record.call = joiner.join_in_lane(&found, id, lane);
    (record.content, record.keys) = (found.content, found.keys);
}
