//! Fold from the frames of a segment to the ledger at its end.
//!
//! Pure. Not here: whether frames are whole and follow each other ([`crate::segments::recovery`]).

use super::frame::{Batch, Body};
use super::ledger::Ledger;
use crate::segments::recovery::{self, Damage};
use crate::segments::unreadable::{Content, Mark};
use wire::id::Generation;
use wire::version::{DOMAIN_STORE, Format};

/// Receives what the store holds beside its [`Ledger`].
pub trait Replay {
    /// Restores the calls as of the head; empty in a new store.
    fn calls(&mut self, snapshot: &[u8]);
    /// Adds events that are after the head; `lanes` are the generations under which each run was joined.
    fn batch(&mut self, batch: &Batch, lanes: &[Generation]);
    /// Returns the present calls, in the form that [`Replay::calls`] takes.
    fn snapshot(&self) -> Vec<u8>;
}

/// Fold of one segment.
#[derive(Debug, Default)]
pub struct Fold {
    ledger: Option<Ledger>,
    is_whole: bool,
    calls: Vec<u8>,
}

impl<R: Replay + ?Sized> recovery::Fold<R> for Fold {
    type Body = Body;
    type State = Ledger;
    const CONTENT: Content = Content {
        what: "the domain's store of events",
        beside: "members then send again what their journals still hold, and followers of the domain may miss the rest",
    };
    const FORMAT: Format = DOMAIN_STORE;

    fn mark(body: &Body) -> Mark {
        match body {
            Body::Batch(batch) => {
                Mark { written: Some(batch.stored), next: Some(batch.at + batch.len()), received: None }
            }
            Body::Head(head) => Mark { next: Some(head.next), ..Mark::default() },
            Body::Member(_) | Body::Calls(_) | Body::HeadEnd | Body::Forgotten(_) => Mark::default(),
        }
    }

    fn step(&mut self, body: Body, replay: &mut R) -> Result<(), Damage> {
        let Some(ledger) = &mut self.ledger else {
            let Body::Head(head) = body else { return Err(Damage::Order) };
            if !DOMAIN_STORE.reads(head.version.0) {
                return Err(Damage::Version { found: head.version.0 });
            }
            self.ledger = Some(Ledger::from_head(&head));
            return Ok(());
        };
        match body {
            Body::Member(member) => ledger.apply_member(member),
            Body::Calls(part) if !self.is_whole => self.calls.extend_from_slice(&part),
            Body::HeadEnd if !self.is_whole => {
                self.is_whole = true;
                replay.calls(&std::mem::take(&mut self.calls));
            }
            Body::Batch(batch) if self.is_whole => {
                ledger.apply_batch(&batch).map_err(|error| Damage::Contradiction(error.to_string()))?;
                let lanes = batch.runs.iter().map(|run| ledger.lane(batch.sensor, run.generation));
                let lanes: Vec<Generation> = lanes.collect();
                replay.batch(&batch, &lanes);
            }
            Body::Forgotten(sensor) if self.is_whole => {
                ledger.members.remove(&sensor);
            }
            Body::Head(_) | Body::Calls(_) | Body::HeadEnd | Body::Batch(_) | Body::Forgotten(_) => {
                return Err(Damage::Order);
            }
        }
        Ok(())
    }

    fn is_past_head(&self) -> bool {
        self.is_whole
    }

    fn finish(self) -> Option<Ledger> {
        self.ledger.filter(|_| self.is_whole)
    }
}
