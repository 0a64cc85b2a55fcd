//! Opening a journal that a crash, a power loss or an orderly stop left behind.
//!
//! Rule: the last segment with a whole head counts; what follows its last good frame is cut off and the
//! cut is durable before anything is appended. A segment with a damaged head is set aside, never deleted.
//! Not here: what frames mean ([`super::fold`]).

use super::Error;
use super::disk::{Disk, Stored};
use super::fold::{Added, Damage, Fold, Replay};
use super::segment::{Segment, Table, Window, first_of, name};
use super::state::State;
use std::sync::Arc;

/// What was found.
pub struct Recovered {
    /// Everything known at the end; `None` if there is no journal yet.
    pub live: Option<Live>,
    /// The segments before the live one, the oldest first.
    pub older: Vec<Arc<Segment>>,
    /// What a person should be told, in sentences.
    pub notes: Vec<String>,
}

/// The segment that goes on.
pub struct Live {
    /// Everything known at its end.
    pub state: State,
    /// The segment.
    pub segment: Arc<Segment>,
    /// Its length, in bytes.
    pub len: u64,
    /// The length of its head, in bytes.
    pub head_len: u64,
    /// Checksum of its last frame.
    pub chain: u32,
}

/// Read what is there.
///
/// # Errors
/// If the disk refuses, or the journal was written by another version of the program.
pub fn recover(disk: &dyn Disk, replay: &mut impl Replay) -> Result<Recovered, Error> {
    let mut firsts = Vec::new();
    for found in disk.names().map_err(Error::disk("list the journal"))? {
        if found.ends_with(".new") {
            // A head that was never finished: nothing depends on it.
            disk.remove(&found).map_err(Error::disk(format!("remove {found}")))?;
        } else if let Some(first) = first_of(&found) {
            firsts.push(first);
        }
    }
    firsts.sort_unstable();
    let mut recovered = Recovered { live: None, older: Vec::new(), notes: Vec::new() };
    while let Some(first) = firsts.pop() {
        let file = disk.open(&name(first)).map_err(Error::disk(format!("open {}", name(first))))?;
        if let Some(live) = fold(first, file, replay, &mut recovered.notes)? {
            recovered.live = Some(live);
            break;
        }
        let aside = format!("{}.damaged", name(first));
        disk.rename(&name(first), &aside).map_err(Error::disk(format!("set {aside} aside")))?;
        recovered.notes.push(format!("the head of {} is damaged; it was kept as {aside}", name(first)));
    }
    for first in firsts {
        let file = disk.open(&name(first)).map_err(Error::disk(format!("open {}", name(first))))?;
        recovered.older.push(Arc::new(Segment::new(first, file, None)));
    }
    Ok(recovered)
}

fn fold(
    first: u64,
    file: Arc<dyn Stored>,
    replay: &mut impl Replay,
    notes: &mut Vec<String>,
) -> Result<Option<Live>, Error> {
    let what = name(first);
    let len = file.size().map_err(Error::disk(format!("measure {what}")))?;
    let mut window = Window::new(file.clone(), 0, len);
    let (mut fold, mut table, mut good, mut head_len) = (Fold::default(), Table::default(), 0, 0);
    while let Some((at, frame)) = window.frame()? {
        let is_head = !fold.is_past_head();
        match fold.step(frame, replay) {
            Ok(Some((taken, added))) => {
                good = at + taken as u64;
                head_len = if is_head { good } else { head_len };
                match added {
                    Added::Events(first, _) => table.add_batch(first, at),
                    Added::Source(generation, source) => table.add_source(generation, source),
                    Added::Other => {}
                }
            }
            Ok(None) => break,
            Err(Damage::Frame(wire::codec::Error::Version { found })) => {
                return Err(Error::Version { name: what, found });
            }
            Err(damage) => {
                notes.push(format!("{what} is good up to byte {good} of {len}: {damage}"));
                break;
            }
        }
    }
    let Some((state, chain)) = fold.finish() else { return Ok(None) };
    if good < len {
        file.truncate(good).and_then(|()| file.sync()).map_err(Error::disk(format!("cut {what}")))?;
        notes.push(format!(
            "{} bytes at the end of {what} were not whole and were cut off; their lines are read again",
            len - good
        ));
    }
    (table.len, table.next) = (good, state.head.next);
    let segment = Arc::new(Segment::new(first, file, Some(table)));
    Ok(Some(Live { state, segment, len: good, head_len, chain }))
}
