//! Parts of a recording as they are written: segments of the ring, events of the journal, and processes with
//! the jobs that they serve.
//!
//! Shell. Rule: a recording without what the journal cannot return is still worth having; only one segment is
//! copied at a time.
//! Not here: when they are written (`worker`).

use super::ring::StoredSegment as Held;
use super::store::{self, Writing};
use crate::journal::reader::Reader;
use crate::serving::job_table::ServedJob;
use std::sync::Arc;
use wire::event::Event;
use wire::process::ProcessKey;
use wire::recording::{Block, EVENTS_MAX, Serving};

/// Events per block of a recording: its frame stays far below the longest allowed.
const EVENTS_OF_A_BLOCK: usize = 2048;

/// A process, once for each name of the job that it serves.
pub(super) fn serving_of((key, serves): (ProcessKey, ServedJob)) -> impl Iterator<Item = Serving> {
    let known_by = serves.by.as_str();
    serves.jobs.into_iter().map(move |job| Serving { key, job, known_by: known_by.into() })
}

pub(super) fn put(writing: &mut Writing, held: Vec<Held>) -> Result<(), store::Error> {
    for held in held {
        // Copies one segment at a time.
        writing.put(&Block::Segment(Arc::unwrap_or_clone(held.segment)))?;
    }
    Ok(())
}

/// Writes the events whose lines were read within the window.
pub(super) fn put_events(writing: &mut Writing, reader: &Reader, from: u64) -> Result<(), store::Error> {
    let header = writing.header().clone();
    let (mut cursor, mut left) = (from, EVENTS_MAX);
    let is_within = |event: &&Event| (header.from_ns..=header.to_ns).contains(&header.moment_ns(event.seen));
    while left > 0 {
        let keep = |event: &Event| Some(event).filter(is_within).cloned();
        let page = reader.read_some(cursor, left.min(EVENTS_OF_A_BLOCK), usize::MAX, keep);
        // A recording without what the journal cannot return is still worth having.
        let Ok(page) = page else { return Ok(()) };
        if page.events.is_empty() {
            return Ok(());
        }
        (cursor, left) = (page.cursor, left - page.events.len());
        writing.put(&Block::Events(page.events))?;
    }
    Ok(())
}
