//! Batches of events for the store: what is new and permitted of a member's frame, and counts of the rest.
//!
//! Pure. Not here: how they are stored ([`super::store`]).

use super::connection::Speaker;
use super::receiver::NewEvents;
use super::store::frame::Batch;
use wire::event::Id;
use wire::id::SensorKey;
use wire::report::Run;
use wire::time::Time;

/// Sorts events into batches of those that are new and permitted; the batches also carry the counts of the
/// rest.
pub(super) fn split_into_batches(
    speaker: &mut Speaker,
    sensor: SensorKey,
    new_events: NewEvents,
    wall: Time,
) -> Vec<Batch> {
    let fresh = |first: u64| Batch {
        at: 0,
        sensor,
        first,
        next: first,
        lost: 0,
        refused: 0,
        stored: wall,
        runs: Vec::new(),
    };
    let mut batches = Vec::new();
    let mut batch = fresh(new_events.first);
    batch.lost = new_events.lost;
    for run in split_known(speaker, sensor, new_events.runs) {
        let (run, is_known) = run;
        let len = run.records.len() as u64;
        let may_say = speaker.granted.contains(&run.source.host);
        if is_known || !may_say {
            batch.next += len;
            batch.refused += if may_say { 0 } else { len };
            continue;
        }
        if batch.runs.is_empty() {
            batch.first = batch.next;
        } else if batch.first + batch.len() != batch.next {
            let next = batch.next;
            batches.push(std::mem::replace(&mut batch, fresh(next)));
        }
        batch.next += len;
        batch.runs.push(run);
    }
    batch.next = new_events.next;
    batches.push(batch);
    batches
}

/// Splits the runs by whether their events were stored before under other numbers.
fn split_known(speaker: &mut Speaker, sensor: SensorKey, runs: Vec<Run>) -> Vec<(Run, bool)> {
    if speaker.known.is_empty() {
        return runs.into_iter().map(|run| (run, false)).collect();
    }
    let mut split = Vec::new();
    for run in runs {
        let Run { generation, source, seen, records } = run;
        for record in records {
            let id = Id { sensor, generation, offset: record.offset, number: record.number };
            let is_known = speaker.known.remove(&id);
            split.push((Run { generation, source: source.clone(), seen, records: vec![record] }, is_known));
        }
    }
    split
}
