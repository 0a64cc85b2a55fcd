//! Events of one call: its logs are read a second time, and the events that join to the call are collected.
//!
//! Rule: other events are stored neither in the first pass nor in this one; of more events than the limit the
//! last are returned. Not here: parsing of lines (`log`).

use super::log::Logs;
use super::{Error, PIECE_LEN_BYTES, Reader, unreadable};
use crate::grid::text::shown;
use crate::live::call_events::{ATTRIBUTES_MAX, EVENTS_MAX, attribute_words, by_time};
use crate::served::{Event, ServedBy};
use compact_str::CompactString;
use log_filters::found::Found;
use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::FileExt as _;
use wire::event::Value;
use wire::time::Time;

/// Collector of the second pass.
pub(super) struct Collector {
    /// Every id under which the call is known.
    ids: BTreeSet<CompactString>,
    events: VecDeque<Event>,
}

impl Collector {
    /// Store an event from `source` that joined to the call of this id.
    pub(super) fn joined(&mut self, id: &CompactString, found: &Found, source: &str) {
        if self.ids.contains(id) {
            if self.events.len() >= EVENTS_MAX {
                self.events.pop_front();
            }
            self.events.push_back(event(found, source));
        }
    }
}

impl Reader {
    /// The events of a call that the user selected, or the error.
    #[must_use]
    pub fn answer(&self, call: &str, now: Time) -> ServedBy {
        match self.events_of(call, now) {
            Ok(events) => ServedBy { events: Some(events), ..ServedBy::default() },
            Err(error) => ServedBy::troubled(&error.to_string()),
        }
    }

    /// The last events of a call, by time, from the files that are open now.
    ///
    /// # Errors
    /// If one can no longer be read.
    pub fn events_of(&self, call: &str, now: Time) -> Result<Vec<Event>, Error> {
        let collector = Collector { ids: self.logs.ids(call).into_iter().collect(), events: VecDeque::new() };
        let mut again = Logs::new(now);
        again.collect_into(collector);
        let mut piece = vec![0; PIECE_LEN_BYTES];
        for opened in &self.files {
            let log = again.add(opened.filter.clone(), &opened.source);
            let mut offset = 0;
            while offset < opened.offset {
                let read = opened.file.read_at(&mut piece, offset);
                let read = read.map_err(|error| unreadable("the log", &opened.path, &error))?;
                if read == 0 {
                    break;
                }
                let most = usize::try_from(opened.offset - offset).unwrap_or(usize::MAX);
                again.bytes(log, &piece[..read.min(most)], now);
                offset += read as u64;
            }
            again.pause(log, self.is_whole, now);
        }
        let mut events: Vec<Event> =
            again.into_collector().map(|collector| collector.events.into()).unwrap_or_default();
        by_time(&mut events);
        Ok(events)
    }
}

fn event(found: &Found, source: &str) -> Event {
    let content = &found.content;
    let text = |text: &str| shown(text).text;
    let attribute = |(name, value): &(CompactString, Value)| {
        let value = match value {
            Value::Text(text) => text.to_string(),
            Value::List(texts) => texts.join(", "),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        };
        attribute_words(name, &value)
    };
    Event {
        time: content.time,
        kind: content.kind,
        from: text(&content.from),
        to: text(&content.to),
        outcome: content.outcome.map_or_else(String::new, |outcome| outcome.as_str().to_owned()),
        source: source.to_owned(),
        attributes: content.attributes.iter().take(ATTRIBUTES_MAX).map(attribute).collect(),
    }
}
