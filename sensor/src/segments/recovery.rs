//! Recovery: opens a log after a crash, a power loss or an orderly stop.
//!
//! Rule: a frame counts only if it is whole, undamaged, follows the frame before it by checksum, and does not
//! contradict the frames before it; the log ends at the first frame that fails. The last segment with a whole
//! head becomes the live one. What follows its last good frame is cut off, and the cut is durable before
//! anything is appended. A segment with a damaged head is renamed, never deleted.
//! Not here: what frames mean (each log has its own [`Fold`]).

use super::disk::Disk;
use super::packed::pack;
use super::segment::{Legend, Segment, Table, firsts, name};
use super::unreadable::{Content, Mark, Moment, Reason, UnreadableLog};
use super::window::Window;
use super::{Error, chain};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use wire::version::Format;

/// Fold of the frames of one segment into the state at its end; what else they hold goes to an `R`.
pub trait Fold<R: ?Sized>: Default {
    type Body: DeserializeOwned;
    /// The state at the end of the segment.
    type State;
    /// Texts about the log, for messages.
    const CONTENT: Content;
    /// The version of the content of the frames.
    const FORMAT: Format;

    /// Returns what a frame says about the events before it and in it.
    fn mark(body: &Self::Body) -> Mark;

    /// Applies a frame.
    ///
    /// # Errors
    /// If the frame cannot follow; the fold is then unchanged.
    fn step(&mut self, body: Self::Body, replay: &mut R) -> Result<(), Damage>;

    /// Whether the head is complete.
    fn is_past_head(&self) -> bool;

    /// Returns the state after all frames so far; `None` before the head is complete.
    fn finish(self) -> Option<Self::State>;
}

/// Why bytes are not the next frame of the log.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Not a frame: too long, damaged, or of another version.
    #[error(transparent)]
    Frame(#[from] wire::codec::Error),
    /// A whole frame that was written after a different frame.
    #[error("frame does not follow the one before it")]
    Chain,
    /// A head of another version.
    #[error("head has version {found}")]
    Version {
        /// The unsupported version.
        found: u16,
    },
    /// A whole frame out of order: the head of a segment comes first, once and complete.
    #[error("frame is out of place: the head of a segment comes first, once and whole")]
    Order,
    /// A frame that contradicts those before it.
    #[error("{0}")]
    Contradiction(String),
}

/// Result of a recovery.
pub struct Recovered<S, L> {
    /// The segment to append to; `None` if there is none yet.
    pub live: Option<Live<S, L>>,
    /// The segments before it, the oldest first.
    pub older: Vec<Arc<Segment<L>>>,
    /// Notes for the operator, in sentences.
    pub notes: Vec<String>,
    /// A segment with a damaged head was renamed: its event numbers may be used again.
    pub is_shorter: bool,
}

/// The segment to append to.
pub struct Live<S, L> {
    /// The state at its end.
    pub state: S,
    pub segment: Arc<Segment<L>>,
    /// Its length, in bytes.
    pub len: u64,
    /// The length of its head, in bytes.
    pub head_len: u64,
    /// Checksum of its last frame.
    pub chain: u32,
}

/// Recovers the log on this disk.
///
/// # Errors
/// If the disk refuses, or another version of the program wrote the log.
pub fn recover<F, L, R>(at: &Arc<dyn Disk>, replay: &mut R) -> Result<Recovered<F::State, L>, Error>
where
    F: Fold<R>,
    L: Legend<Body = F::Body>,
    R: ?Sized,
{
    let disk = &**at;
    let refused = |name, source| UnreadableLog::refused::<F, R>(disk, name, source);
    let open = |first| Segment::open(at, first).map_err(|source| refused(Some(name(first)), source));
    let names = disk.names().map_err(|source| refused(None, source))?;
    for unfinished in names.iter().filter(|name| name.ends_with(".new")) {
        // A head that was never completed: nothing depends on it.
        disk.remove(unfinished).map_err(Error::disk(format!("remove {unfinished}")))?;
    }
    let mut firsts = firsts(&names);
    let mut recovered = Recovered { live: None, older: Vec::new(), notes: Vec::new(), is_shorter: false };
    while let Some(first) = firsts.pop() {
        let mut newest = open(first)?;
        if newest.file().packed().is_some() {
            // The segments after it have damaged heads: the log goes on in this one.
            pack::expand(disk, first, newest.file())?;
            newest = open(first)?;
        }
        recovered.live = fold::<F, L, R>(disk, newest, replay, &mut recovered.notes)?;
        if recovered.live.is_some() {
            break;
        }
        let aside = format!("{}.damaged", name(first));
        disk.rename(&name(first), &aside).map_err(Error::disk(format!("set {aside} aside")))?;
        let (what, folder) = (name(first), disk.folder().display());
        let until =
            disk.written(&aside).map(|at| format!(", the last at {}", Moment(at))).unwrap_or_default();
        recovered.notes.push(format!(
            "the head of {what} in {folder} is damaged; the segment is stored as {aside}: its events, from number {first} \
             on{until}, are read again where their logs still hold them, and are lost to queries and followers elsewhere"
        ));
        recovered.is_shorter = true;
    }
    for first in firsts {
        recovered.older.push(Arc::new(open(first)?));
    }
    Ok(recovered)
}

fn fold<F, L, R>(
    disk: &dyn Disk,
    segment: Segment<L>,
    replay: &mut R,
    notes: &mut Vec<String>,
) -> Result<Option<Live<F::State, L>>, Error>
where
    F: Fold<R>,
    L: Legend<Body = F::Body>,
    R: ?Sized,
{
    let what = name(segment.first);
    let (file, len) = (Arc::clone(segment.file()), segment.size()?);
    let mut window = Window::new(Arc::clone(&file), 0, len);
    let (mut folding, mut table) = (Folding::<F>::default(), Table::<L>::default());
    while let Some((at, frame)) = window.frame()? {
        match folding.step(frame, replay, |body| table.legend_mut().note(body)) {
            Ok(Some(taken)) => {
                table.len = at + taken as u64;
                if let Ok(Some(first)) = chain::batch_first(frame) {
                    table.add_batch(first, at);
                }
            }
            Ok(None) => break,
            Err(Damage::Frame(wire::codec::Error::Version { found })) => {
                let (found, expected) = (u16::from(found), wire::version::FRAME.to_string());
                let reason = Reason::Version { name: what, of: "its frames", found, expected };
                return Err(UnreadableLog::error::<F, R>(disk, reason));
            }
            Err(Damage::Version { found }) => {
                let (of, expected) = ("its content", F::FORMAT.expected().to_string());
                let reason = Reason::Version { name: what, of, found, expected };
                return Err(UnreadableLog::error::<F, R>(disk, reason));
            }
            Err(damage) => {
                notes.push(format!("{what} is good up to byte {} of {len}: {damage}", table.len));
                break;
            }
        }
    }
    let Folding { fold, chain, head_len } = folding;
    let Some(state) = fold.finish() else { return Ok(None) };
    let good = table.len;
    if good < len {
        file.truncate(good).and_then(|()| file.sync()).map_err(Error::disk(format!("cut {what}")))?;
        notes.push(format!(
            "{} bytes at the end of {what} were not whole and were cut off; what they held comes again",
            len - good
        ));
    }
    segment.publish(|published| *published = table);
    Ok(Some(Live { state, segment: Arc::new(segment), len: good, head_len, chain }))
}

/// Fold that checks that each frame follows the frame before it.
#[derive(Default)]
pub struct Folding<F> {
    fold: F,
    chain: u32,
    head_len: u64,
}

impl<F> Folding<F> {
    /// Applies the frame at the start of `bytes`, after passing its body to `look`. Returns its length, or
    /// `None` if more bytes are needed.
    ///
    /// # Errors
    /// If it is not the next frame of the log; the state folded so far is then unchanged.
    pub fn step<R: ?Sized>(
        &mut self,
        bytes: &[u8],
        replay: &mut R,
        look: impl FnOnce(&F::Body),
    ) -> Result<Option<usize>, Damage>
    where
        F: Fold<R>,
    {
        let Some(((previous, body), len)) = wire::codec::decode::<(u32, F::Body)>(bytes)? else {
            return Ok(None);
        };
        if previous != self.chain {
            return Err(Damage::Chain);
        }
        if !self.fold.is_past_head() {
            self.head_len += len as u64;
        }
        look(&body);
        self.fold.step(body, replay)?;
        self.chain = chain::checksum(bytes);
        Ok(Some(len))
    }
}
