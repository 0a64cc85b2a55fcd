//! Opening a store that a crash, a power loss or an orderly stop left behind.
//!
//! Rule: the last segment with a whole head counts; what follows its last good frame is cut off and the cut
//! is durable before anything is appended. A segment with a damaged head is set aside, never deleted.

use super::Error;
use super::frame::{Batch, Body, checksum};
use super::ledger::Ledger;
use super::segment::{Segment, Table, first_of, name};
use crate::journal::disk::{Disk, Stored};
use crate::journal::segment::Window;
use std::sync::Arc;
use wire::id::Generation;

/// Takes what the store holds beside its [`Ledger`].
pub trait Replay {
    /// The calls as they stood at the head; empty in a new store.
    fn calls(&mut self, snapshot: &[u8]);
    /// Events that came after the head; `lanes` are the generations under which each run was joined.
    fn batch(&mut self, batch: &Batch, lanes: &[Generation]);
    /// The calls as they stand now, in the form of [`Replay::calls`].
    fn snapshot(&self) -> Vec<u8>;
}

pub(super) struct Recovered {
    pub(super) live: Option<Live>,
    pub(super) older: Vec<Arc<Segment>>,
    /// What a person should be told, in sentences.
    pub(super) notes: Vec<String>,
    /// A segment was set aside: numbers may be given again.
    pub(super) is_shorter: bool,
}

pub(super) struct Live {
    pub(super) ledger: Ledger,
    pub(super) segment: Arc<Segment>,
    pub(super) len: u64,
    pub(super) chain: u32,
}

pub(super) fn recover(disk: &dyn Disk, replay: &mut dyn Replay) -> Result<Recovered, Error> {
    let mut firsts = Vec::new();
    for found in disk.names().map_err(Error::disk("list the domain's events"))? {
        if found.ends_with(".new") {
            disk.remove(&found).map_err(Error::disk(format!("remove {found}")))?;
        } else if let Some(first) = first_of(&found) {
            firsts.push(first);
        }
    }
    firsts.sort_unstable();
    let mut recovered = Recovered { live: None, older: Vec::new(), notes: Vec::new(), is_shorter: false };
    while let Some(first) = firsts.pop() {
        let file = disk.open(&name(first)).map_err(Error::disk(format!("open {}", name(first))))?;
        if let Some(live) = fold(first, file, replay, &mut recovered.notes)? {
            recovered.live = Some(live);
            break;
        }
        let aside = format!("{}.damaged", name(first));
        disk.rename(&name(first), &aside).map_err(Error::disk(format!("set {aside} aside")))?;
        recovered.notes.push(format!("the head of {} is damaged; it was kept as {aside}", name(first)));
        recovered.is_shorter = true;
    }
    for first in firsts {
        let file = disk.open(&name(first)).map_err(Error::disk(format!("open {}", name(first))))?;
        recovered.older.push(Arc::new(Segment::new(first, file, None)));
    }
    Ok(recovered)
}

/// The fold of one segment.
#[derive(Default)]
struct Fold {
    ledger: Option<Ledger>,
    table: Table,
    is_whole: bool,
    chain: u32,
    calls: Vec<u8>,
}

fn fold(
    first: u64,
    file: Arc<dyn Stored>,
    replay: &mut dyn Replay,
    notes: &mut Vec<String>,
) -> Result<Option<Live>, Error> {
    let what = name(first);
    let len = file.size().map_err(Error::disk(format!("measure {what}")))?;
    let mut window = Window::new(Arc::clone(&file), 0, len);
    let (mut fold, mut good) = (Fold::default(), 0);
    while let Some((at, frame)) = window.frame()? {
        match wire::codec::decode::<(u32, Body)>(frame) {
            Ok(Some(((previous, body), taken))) if previous == fold.chain => {
                if !fold.step(body, at, replay) {
                    notes.push(format!("{what} contradicts itself at byte {at}"));
                    break;
                }
                fold.chain = checksum(frame);
                good = at + taken as u64;
            }
            Err(wire::codec::Error::Version { found }) => return Err(Error::Version { name: what, found }),
            Ok(_) | Err(_) => {
                notes.push(format!("{what} is good up to byte {good} of {len}"));
                break;
            }
        }
    }
    let (Some(ledger), true) = (fold.ledger, fold.is_whole) else { return Ok(None) };
    if good < len {
        file.truncate(good).and_then(|()| file.sync()).map_err(Error::disk(format!("cut {what}")))?;
        notes.push(format!("{} bytes at the end of {what} were not whole and were cut off", len - good));
    }
    fold.table.len = good;
    let segment = Arc::new(Segment::new(first, file, Some(fold.table)));
    Ok(Some(Live { ledger, segment, len: good, chain: fold.chain }))
}

impl Fold {
    /// Take a frame; `false` if it cannot follow.
    fn step(&mut self, body: Body, at: u64, replay: &mut dyn Replay) -> bool {
        let Some(ledger) = &mut self.ledger else {
            let Body::Head(head) = body else { return false };
            self.ledger = Some(Ledger::from_head(&head));
            return true;
        };
        match body {
            Body::Member(member) => ledger.apply_member(member),
            Body::Calls(part) if !self.is_whole => self.calls.extend_from_slice(&part),
            Body::HeadEnd if !self.is_whole => {
                self.is_whole = true;
                let members = ledger.members.values().map(|member| (member.sensor, member.next));
                self.table.members = Arc::new(members.collect());
                replay.calls(&std::mem::take(&mut self.calls));
            }
            Body::Batch(batch) if self.is_whole => {
                if ledger.apply_batch(&batch).is_err() {
                    return false;
                }
                self.table.add_batch(batch.at, at);
                let lanes = batch.runs.iter().map(|run| ledger.lane(batch.sensor, run.generation));
                let lanes: Vec<Generation> = lanes.collect();
                replay.batch(&batch, &lanes);
            }
            Body::Forgotten(sensor) if self.is_whole => {
                ledger.members.remove(&sensor);
            }
            Body::Head(_) | Body::Calls(_) | Body::HeadEnd | Body::Batch(_) | Body::Forgotten(_) => {
                return false;
            }
        }
        true
    }
}
