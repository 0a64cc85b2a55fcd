//! A byte stream that outlives what carries it: one path ends, another carries it on, and no byte is lost or doubled.
//!
//! ```text
//! one end                               the other
//! opening: token, received ──▶          (a WebSocket, or requests and answers of HTTP)
//!          ◀── answer: token, received  each goes on from what the other has
//! data 0 "abc", data 3 "de" ──▶
//!          ◀── ack: received 5, taken 3
//! ```
//! Pure: callers bring bytes, the time and the paths. Every byte has a number. Rules: what the other end has not said that it
//! has is kept, at most [`WINDOW_BYTES`]; no more is sent than its reader left room for; what comes twice is passed over,
//! what leaves a gap is dropped and sent again; a path that says nothing for [`SILENCE_MAX`] is given up, a carrier without
//! a path ends after [`RESUME_MAX`].
//! Not here: who may open one (the listening end's table), and secrets: what it carries is encrypted already.

pub mod frame;

use frame::{DATA_HEAD_LEN_BYTES, DATA_LEN_MAX_BYTES, Error as FrameError, Frame, Frames};
use std::collections::VecDeque;
use std::time::Duration;
use wire::time::Moment;

/// Most bytes under way in one direction, kept until the other end has them: 10 MB/s where an answer takes 100 ms.
pub const WINDOW_BYTES: usize = 1 << 20;

/// So many bytes that came or were taken are acknowledged at once.
const ACK_EVERY_BYTES: u64 = WINDOW_BYTES as u64 / 8;

/// Fewer are acknowledged after so long, or with what is sent anyway.
const ACK_AFTER: Duration = Duration::from_secs(1);

/// An end that was silent for so long sends a keepalive: less than firewalls forget a connection after, 30 s and more.
pub const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// A path on which nothing came for so long is given up: two words of the other end were missed.
/// There is time then to go on by another before the connection above is given up for its silence, after 13 s.
pub const SILENCE_MAX: Duration = Duration::from_secs(7);

/// How long a carrier waits for another path: longer than pings let the connection above stay silent, so that those
/// decide.
pub const RESUME_MAX: Duration = Duration::from_secs(20);

/// How long the other end may take to say that it has what was written before the end: an end that keeps a path up and sends nothing
/// of the end must not keep a place.
pub const CLOSE_MAX: Duration = Duration::from_secs(5);

/// What was not acknowledged for so long is sent again; longer than [`ACK_AFTER`] and a slow path's way.
const RESEND_AFTER: Duration = Duration::from_secs(6);

/// Why a carrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// An end closed it, and all that it had written came over.
    #[error("the other end closed the stream")]
    Closed,
    /// No path carried it for [`RESUME_MAX`].
    #[error("nothing carried the stream for {} s", RESUME_MAX.as_secs())]
    Lost,
    /// It was given up from outside.
    #[error("the stream was given up")]
    GivenUp,
}

/// Why a path cannot go on. The carrier can, by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What came is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// It acknowledges what was never sent, or takes back what it acknowledged.
    #[error("expected an acknowledgement between {from} and {to}, found {found}")]
    Cursor {
        /// What was acknowledged last.
        from: u64,
        /// What was written.
        to: u64,
        /// What came.
        found: u64,
    },
    /// More than there is room for.
    #[error("expected at most {WINDOW_BYTES} unread bytes, found more")]
    Flood,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// It is carried.
    Here,
    /// It is not, since then.
    Gone(Moment),
}

/// One end.
#[derive(Debug)]
pub struct Carrier {
    /// Written, and not acknowledged: from `acked` on.
    kept: VecDeque<u8>,
    acked: u64,
    /// Given to the path up to here.
    sent: u64,
    /// The other end's reader took everything before this.
    taken_there: u64,
    /// Came, and was not taken: up to `received`.
    arrived: VecDeque<u8>,
    received: u64,
    /// The last values of `received` and of what was taken that were sent to the other end.
    told: (u64, u64),
    /// When it became worth telling.
    untold_since: Option<Moment>,
    /// A gap or a repeated part came: send the position of this end now.
    must_ack: bool,
    path: Path,
    heard: Moment,
    spoke: Moment,
    /// When something was acknowledged last, or began to be under way.
    moved: Moment,
    /// This end writes no more. The end has a number too, so that it comes over as surely as a byte.
    closing_since: Option<Moment>,
    is_end_acked: bool,
    /// The other end's end came over.
    is_closed_there: bool,
    end: Option<End>,
}

impl Carrier {
    /// A new one, which no path carries yet.
    #[must_use]
    pub fn new(now: Moment) -> Carrier {
        Carrier {
            kept: VecDeque::new(),
            acked: 0,
            sent: 0,
            taken_there: 0,
            arrived: VecDeque::new(),
            received: 0,
            told: (0, 0),
            untold_since: None,
            must_ack: false,
            path: Path::Gone(now),
            heard: now,
            spoke: now,
            moved: now,
            closing_since: None,
            is_end_acked: false,
            is_closed_there: false,
            end: None,
        }
    }

    /// Every byte before this one is here: where the other end goes on from on a new path.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Why it ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether a path carries it.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        self.path == Path::Here
    }

    /// Bytes that may be written now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.closing_since.is_some() || self.end.is_some() { 0 } else { WINDOW_BYTES - self.kept.len() }
    }

    /// Whether everything written has reached the other end.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.kept.is_empty()
    }

    /// Write what there is room for; how much that was.
    pub fn write(&mut self, bytes: &[u8], now: Moment) -> usize {
        let count = bytes.len().min(self.room());
        if self.kept.is_empty() && count > 0 {
            self.moved = now;
        }
        self.kept.extend(&bytes[..count]);
        count
    }

    /// Bytes that came and were not taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.arrived.len()
    }

    /// Whether nothing comes any more.
    #[must_use]
    pub fn is_read_out(&self) -> bool {
        self.arrived.is_empty() && (self.is_closed_there || self.end.is_some())
    }

    /// Take what came, as much as fits; how much that was.
    pub fn read(&mut self, into: &mut [u8], now: Moment) -> usize {
        let (first, second) = self.arrived.as_slices();
        let from_first = first.len().min(into.len());
        into[..from_first].copy_from_slice(&first[..from_first]);
        let from_second = second.len().min(into.len() - from_first);
        into[from_first..from_first + from_second].copy_from_slice(&second[..from_second]);
        let count = from_first + from_second;
        self.arrived.drain(..count);
        if count > 0 {
            self.untold_since.get_or_insert(now);
        }
        count
    }

    /// Write no more. It ends when all that was written has come over, or after [`CLOSE_MAX`].
    pub fn close(&mut self, now: Moment) {
        self.closing_since.get_or_insert(now);
    }

    /// End it now, whatever is under way.
    pub fn give_up(&mut self) {
        self.end.get_or_insert(End::GivenUp);
        self.kept.clear();
    }

    /// A path carries it from now on, in place of one before; the other end has every byte before `received`.
    ///
    /// # Errors
    /// If it cannot have: it is another carrier's other end.
    pub fn handle_attached(&mut self, received: u64, now: Moment) -> Result<(), Error> {
        self.acknowledge(received, now)?;
        self.sent = received.max(self.acked);
        self.path = Path::Here;
        (self.heard, self.spoke, self.moved) = (now, now, now);
        self.must_ack = true;
        Ok(())
    }

    /// The other end asks for what comes behind `received`, by a path that answers such questions alone.
    ///
    /// # Errors
    /// As [`Carrier::handle_attached`].
    pub fn handle_asked(&mut self, received: u64, now: Moment) -> Result<(), Error> {
        self.acknowledge(received, now)?;
        self.sent = received.max(self.acked);
        self.path = Path::Here;
        self.heard = now;
        Ok(())
    }

    /// What was given to the path last did not come over: it is given to it again.
    pub fn handle_unsaid(&mut self) {
        self.sent = self.acked;
        self.must_ack = true;
    }

    /// The path ended.
    pub fn handle_detached(&mut self, now: Moment) {
        if self.path == Path::Here {
            self.path = Path::Gone(now);
        }
    }

    /// A piece came.
    ///
    /// # Errors
    /// If it is not what the other end may say; the frames before the wrong one were heard, and the path is of no more use.
    pub fn handle_bytes(&mut self, bytes: &[u8], now: Moment) -> Result<(), Error> {
        self.heard = now;
        let mut frames = Frames::new(bytes);
        while let Some(frame) = frames.next_frame()? {
            match frame {
                Frame::Data { offset, bytes } => self.handle_data(offset, bytes, now)?,
                Frame::Ack { received, taken } => {
                    self.acknowledge(received, now)?;
                    self.taken_there = self.taken_there.max(taken.min(self.acked));
                }
                Frame::Close { offset } => {
                    if offset == self.received && !self.is_closed_there {
                        self.is_closed_there = true;
                        self.received += 1;
                    }
                    self.must_ack = true;
                }
            }
        }
        if self.is_closed_there || self.is_end_acked {
            // No one reads what this end still writes.
            self.end.get_or_insert(End::Closed);
        }
        Ok(())
    }

    fn handle_data(&mut self, offset: u64, bytes: &[u8], now: Moment) -> Result<(), Error> {
        let known = self.received.saturating_sub(offset);
        let fresh = usize::try_from(known).ok().and_then(|known| bytes.get(known..)).unwrap_or_default();
        if offset > self.received || fresh.is_empty() || self.is_closed_there {
            self.must_ack = true;
            return Ok(());
        }
        if self.arrived.len() + fresh.len() > WINDOW_BYTES {
            return Err(Error::Flood);
        }
        self.arrived.extend(fresh);
        self.received += fresh.len() as u64;
        self.untold_since.get_or_insert(now);
        Ok(())
    }

    fn acknowledge(&mut self, received: u64, now: Moment) -> Result<(), Error> {
        let to = self.total();
        if received > to {
            return Err(Error::Cursor { from: self.acked, to, found: received });
        }
        let fresh = received.saturating_sub(self.acked);
        if fresh == 0 {
            // An older word, overtaken by a newer one.
            return Ok(());
        }
        let bytes = usize::try_from(fresh).map_or(self.kept.len(), |fresh| fresh.min(self.kept.len()));
        self.kept.drain(..bytes);
        self.is_end_acked |= fresh > bytes as u64;
        self.acked = received;
        self.sent = self.sent.max(received);
        self.moved = now;
        Ok(())
    }

    /// The number behind what was written.
    fn total(&self) -> u64 {
        self.acked.saturating_add(self.kept.len() as u64).saturating_add(u64::from(self.has_end_to_come()))
    }

    /// Whether the end itself is not acknowledged.
    fn has_end_to_come(&self) -> bool {
        self.closing_since.is_some() && !self.is_end_acked
    }

    fn taken(&self) -> u64 {
        self.received - self.arrived.len() as u64
    }

    /// Bytes that may be given to the path now.
    fn sendable(&self) -> usize {
        let to = (self.acked + self.kept.len() as u64).min(self.taken_there + WINDOW_BYTES as u64);
        usize::try_from(to.saturating_sub(self.sent)).unwrap_or(0)
    }

    /// Everything written was given to the path, the end was not.
    fn is_end_due(&self) -> bool {
        self.end.is_none() && self.has_end_to_come() && self.sent == self.acked + self.kept.len() as u64
    }

    fn is_ack_due(&self, now: Moment) -> bool {
        self.must_ack
            || self.received - self.told.0 >= ACK_EVERY_BYTES
            || self.taken() - self.told.1 >= ACK_EVERY_BYTES
            || self.untold_since.is_some_and(|since| now.since(since) >= ACK_AFTER)
            || now.since(self.spoke) >= KEEP_ALIVE
    }

    /// The next piece for the path, of at most `most_bytes`, which is more than the head of a frame.
    pub fn poll_output(&mut self, most_bytes: usize, now: Moment) -> Option<Vec<u8>> {
        if self.path != Path::Here {
            return None;
        }
        let mut piece = Vec::new();
        let is_more = self.sendable() > 0 || self.is_end_due();
        if self.is_ack_due(now) || (is_more && self.untold_since.is_some()) {
            self.told = (self.received, self.taken());
            (self.untold_since, self.must_ack) = (None, false);
            Frame::Ack { received: self.told.0, taken: self.told.1 }.write(&mut piece);
        }
        while self.sendable() > 0 && piece.len() + DATA_HEAD_LEN_BYTES < most_bytes {
            let room = most_bytes - piece.len() - DATA_HEAD_LEN_BYTES;
            self.send(&mut piece, room);
        }
        if self.is_end_due() {
            Frame::Close { offset: self.sent }.write(&mut piece);
            self.sent += 1;
        }
        if piece.is_empty() {
            return None;
        }
        self.spoke = now;
        Some(piece)
    }

    /// One frame of data with at most `room` bytes.
    fn send(&mut self, piece: &mut Vec<u8>, room: usize) {
        let from = usize::try_from(self.sent - self.acked).expect("no more than is kept");
        let (first, second) = self.kept.as_slices();
        let slice = first.get(from..).filter(|rest| !rest.is_empty());
        let slice = slice.unwrap_or_else(|| &second[from - first.len()..]);
        let count = slice.len().min(room).min(self.sendable()).min(DATA_LEN_MAX_BYTES);
        Frame::Data { offset: self.sent, bytes: &slice[..count] }.write(piece);
        self.sent += count as u64;
    }

    /// When [`Carrier::handle_timeout`] or [`Carrier::poll_output`] has something to do although nothing came.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let close = self.closing_since.filter(|_| self.end.is_none()).map(|since| since.plus(CLOSE_MAX));
        let since = match self.path {
            Path::Gone(_) if self.end.is_some() => return None,
            Path::Gone(since) => return [Some(since.plus(RESUME_MAX)), close].into_iter().flatten().min(),
            Path::Here => self.heard.plus(SILENCE_MAX),
        };
        let ack = self.untold_since.map(|since| since.plus(ACK_AFTER));
        let resend = (self.sent > self.acked).then(|| self.moved.plus(RESEND_AFTER));
        [Some(since), Some(self.spoke.plus(KEEP_ALIVE)), ack, resend, close].into_iter().flatten().min()
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        if self.end.is_none() && self.closing_since.is_some_and(|since| now.since(since) >= CLOSE_MAX) {
            self.give_up();
        }
        match self.path {
            Path::Here if now.since(self.heard) >= SILENCE_MAX => self.path = Path::Gone(now),
            Path::Here if self.sent > self.acked && now.since(self.moved) >= RESEND_AFTER => {
                self.sent = self.acked;
                self.moved = now;
            }
            Path::Gone(since) if now.since(since) >= RESUME_MAX => {
                self.end.get_or_insert(End::Lost);
            }
            Path::Here | Path::Gone(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
