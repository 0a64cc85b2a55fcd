//! Recovery of the domain's calls from the store.
//!
//! Pure. It loads the calls at the head of the last segment and joins the events after it again.

use super::record::to_found;
use super::store::fold::Replay;
use super::store::frame::Batch;
use log_filters::join::Joiner;
use wire::event::Id;
use wire::id::Generation;

/// Joins the events that a store holds.
pub struct CallReplay(pub Joiner);

impl CallReplay {
    /// Encodes the calls in the form in which a head stores them.
    #[must_use]
    pub fn snapshot_of(joiner: &Joiner) -> Vec<u8> {
        postcard::to_stdvec(joiner).expect("calls can be written to memory")
    }
}

impl Replay for CallReplay {
    fn calls(&mut self, snapshot: &[u8]) {
        if snapshot.is_empty() {
            return;
        }
        match postcard::from_bytes(snapshot) {
            Ok(joiner) => self.0 = joiner,
            Err(error) => {
                tracing::warn!(%error, "the domain's open calls cannot be read; starting without them")
            }
        }
    }

    fn batch(&mut self, batch: &Batch, lanes: &[Generation]) {
        for (run, lane) in batch.runs.iter().zip(lanes) {
            for record in &run.records {
                let id = Id {
                    sensor: batch.sensor,
                    generation: run.generation,
                    offset: record.offset,
                    number: record.number,
                };
                self.0.join_in_lane(&to_found(record), id, *lane);
            }
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        CallReplay::snapshot_of(&self.0)
    }
}
