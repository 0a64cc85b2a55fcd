//! Events of the journal in their form on the way, and back in the form that joining takes.
//!
//! Pure.

use crate::journal::frame;
use compact_str::CompactString;
use log_filters::found::Found;
use log_filters::join::Joiner;
use wire::call::Keys;
use wire::event::{Content, Id};
use wire::report::Record;

/// Most names of a call.
pub const NAMES_MAX: usize = 16;
/// Longest name or scope of a call, in bytes.
pub const NAME_LEN_BYTES: usize = 1024;

/// The form on the way of a journal's record.
#[must_use]
pub fn to_wire(record: frame::Record) -> Record {
    let Found { offset, number, content, keys } = record.found;
    Record { offset, number, call: CompactString::default(), content, keys }
}

/// The form that joining takes.
#[must_use]
pub fn to_found(record: &Record) -> Found {
    Found {
        offset: record.offset,
        number: record.number,
        content: record.content.clone(),
        keys: record.keys.clone(),
    }
}

/// Join a record to its call among the domain's, and name that call in it. Keys beyond what any filter gives
/// ([`NAMES_MAX`], [`NAME_LEN_BYTES`]) are those of no call.
pub fn joined(record: &mut Record, id: Id, joiner: &mut Joiner) {
    record.call = CompactString::default();
    let is_sane = |keys: &Keys| {
        let len = |name: &CompactString| name.len() <= NAME_LEN_BYTES;
        (1..=NAMES_MAX).contains(&keys.names.len()) && len(&keys.scope) && keys.names.iter().all(len)
    };
    if record.keys.as_ref().is_some_and(|keys| !is_sane(keys)) {
        record.keys = None;
    }
    let Some(keys) = record.keys.take() else { return };
    let blank = Content::new(record.content.kind, record.content.time);
    let found = Found {
        offset: record.offset,
        number: record.number,
        content: std::mem::replace(&mut record.content, blank),
        keys: Some(keys),
    };
    record.call = joiner.join(&found, id);
    (record.content, record.keys) = (found.content, found.keys);
}
