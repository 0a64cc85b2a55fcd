//! Resumable byte stream: when the path under it fails, another path resumes it without lost or duplicate
//! bytes.
//!
//! ```text
//! one end                               the other
//! opening: token, received ──▶          (a WebSocket, or requests and answers of HTTP)
//!          ◀── answer: token, received  each end resumes at the offset of the other
//! data 0 "abc", data 3 "de" ──▶
//!          ◀── ack: received 5, taken 3
//! ```
//! Pure: callers supply bytes, the time and the paths. Every byte has an offset. Rules: bytes are buffered
//! until the other end has acknowledged them, at most [`WINDOW_BYTES`]; a sender never exceeds the room of
//! the receiver; repeated bytes are skipped, bytes after a gap are dropped and sent again; a path without
//! traffic for [`SILENCE_MAX`] is abandoned; a carrier without a path ends after [`RESUME_MAX`].
//! Not here: the check of who may open a carrier (the listening end's table), encryption: the carried bytes
//! are already encrypted.

pub mod frame;

use frame::{DATA_HEAD_LEN_BYTES, DATA_LEN_MAX_BYTES, Error as FrameError, Frame, Frames};
use std::collections::VecDeque;
use std::time::Duration;
use wire::time::Moment;

/// Most unacknowledged bytes in one direction: enough for 10 MB/s with a round trip of 100 ms.
pub const WINDOW_BYTES: usize = 1 << 20;

/// Received or read bytes after which an acknowledgement is sent at once.
const ACK_EVERY_BYTES: u64 = WINDOW_BYTES as u64 / 8;

/// Delay of the acknowledgement of fewer bytes, unless data is sent earlier.
const ACK_AFTER: Duration = Duration::from_secs(1);

/// Interval of keepalives from an idle end: shorter than the connection timeout of firewalls, which is 30 s
/// and more.
pub const KEEP_ALIVE: Duration = Duration::from_secs(3);

/// A path is abandoned when nothing was received for this long: two keepalives of the other end were missed.
/// Another path can then resume before the connection above is closed for its silence, after 13 s.
pub const SILENCE_MAX: Duration = Duration::from_secs(7);

/// How long a carrier waits for another path: longer than the timeout of the connection above, so that that
/// timeout decides.
pub const RESUME_MAX: Duration = Duration::from_secs(20);

/// Timeout of the other end's acknowledgement after a close: an end that keeps a path open without
/// acknowledging must not occupy a slot.
pub const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Unacknowledged bytes are sent again after this time; longer than [`ACK_AFTER`] and a slow path's delay.
const RESEND_AFTER: Duration = Duration::from_secs(6);

/// Why a carrier ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// One end closed it, and all bytes that it had written were received.
    #[error("the other end closed the stream")]
    Closed,
    /// No path carried it for [`RESUME_MAX`].
    #[error("nothing carried the stream for {} s", RESUME_MAX.as_secs())]
    Lost,
    /// It was aborted by the caller, or by the timeout [`CLOSE_MAX`].
    #[error("the stream was abandoned")]
    GivenUp,
}

/// Why a path cannot be used any more. The carrier can resume on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path delivered an invalid frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The other end acknowledges bytes that were never sent.
    #[error("expected an acknowledgement between {from} and {to}, found {found}")]
    Cursor {
        /// Offset acknowledged so far.
        from: u64,
        /// End of what was written.
        to: u64,
        /// Offset in the frame.
        found: u64,
    },
    /// The other end sent more than the window allows.
    #[error("expected at most {WINDOW_BYTES} unread bytes, found more")]
    Flood,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// A path is attached.
    Here,
    /// No path since this time.
    Gone(Moment),
}

/// One end of a carrier.
#[derive(Debug)]
pub struct Carrier {
    /// Bytes written and not acknowledged, from offset `acked`.
    kept: VecDeque<u8>,
    acked: u64,
    /// Bytes below this offset were given to the path.
    sent: u64,
    /// Bytes below this offset were read by the application at the other end.
    taken_there: u64,
    /// Bytes received and not yet read, up to offset `received`.
    arrived: VecDeque<u8>,
    received: u64,
    /// The values of `received` and `taken()` in the last acknowledgement.
    sent_ack: (u64, u64),
    /// When they first differed from the last acknowledgement.
    unacked_since: Option<Moment>,
    /// A gap or a repeated part came: send the position of this end now.
    must_ack: bool,
    path: Path,
    heard: Moment,
    spoke: Moment,
    /// When an acknowledgement last made progress, or the first unacknowledged byte was written.
    moved: Moment,
    /// When this end was closed. The close has an offset of its own, so it is acknowledged like a byte.
    closing_since: Option<Moment>,
    is_end_acked: bool,
    /// The close of the other end was received.
    is_closed_there: bool,
    end: Option<End>,
}

impl Carrier {
    /// Create a carrier without a path.
    #[must_use]
    pub fn new(now: Moment) -> Carrier {
        Carrier {
            kept: VecDeque::new(),
            acked: 0,
            sent: 0,
            taken_there: 0,
            arrived: VecDeque::new(),
            received: 0,
            sent_ack: (0, 0),
            unacked_since: None,
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

    /// All bytes below this offset were received: the other end resumes there on a new path.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Why the carrier ended; `None` while it is open.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether a path is attached.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        self.path == Path::Here
    }

    /// Number of bytes that may be written now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.closing_since.is_some() || self.end.is_some() { 0 } else { WINDOW_BYTES - self.kept.len() }
    }

    /// Whether everything written has reached the other end.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.kept.is_empty()
    }

    /// Write as many bytes as there is room for. Returns their number.
    pub fn write(&mut self, bytes: &[u8], now: Moment) -> usize {
        let count = bytes.len().min(self.room());
        if self.kept.is_empty() && count > 0 {
            self.moved = now;
        }
        self.kept.extend(&bytes[..count]);
        count
    }

    /// Number of bytes received and not yet read.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.arrived.len()
    }

    /// Whether nothing is left to read, now or later.
    #[must_use]
    pub fn is_read_out(&self) -> bool {
        self.arrived.is_empty() && (self.is_closed_there || self.end.is_some())
    }

    /// Read received bytes, as many as fit. Returns their number.
    pub fn read(&mut self, into: &mut [u8], now: Moment) -> usize {
        let (first, second) = self.arrived.as_slices();
        let from_first = first.len().min(into.len());
        into[..from_first].copy_from_slice(&first[..from_first]);
        let from_second = second.len().min(into.len() - from_first);
        into[from_first..from_first + from_second].copy_from_slice(&second[..from_second]);
        let count = from_first + from_second;
        self.arrived.drain(..count);
        if count > 0 {
            self.unacked_since.get_or_insert(now);
        }
        count
    }

    /// Close this end for writing. The carrier ends when all written bytes are acknowledged, or after
    /// [`CLOSE_MAX`].
    pub fn close(&mut self, now: Moment) {
        self.closing_since.get_or_insert(now);
    }

    /// Abort the carrier; unacknowledged bytes are lost.
    pub fn give_up(&mut self) {
        self.end.get_or_insert(End::GivenUp);
        self.kept.clear();
    }

    /// Attach a path, replacing any earlier one. The other end has received all bytes below `received`.
    ///
    /// # Errors
    /// If `received` is impossible: the other end belongs to another carrier.
    pub fn handle_attached(&mut self, received: u64, now: Moment) -> Result<(), Error> {
        self.acknowledge(received, now)?;
        self.sent = received.max(self.acked);
        self.path = Path::Here;
        (self.heard, self.spoke, self.moved) = (now, now, now);
        self.must_ack = true;
        Ok(())
    }

    /// Process a poll of the other end for the bytes from `received` on, on a path that only answers
    /// requests.
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

    /// The last piece given to the path was not delivered; send it again.
    pub fn handle_unsaid(&mut self) {
        self.sent = self.acked;
        self.must_ack = true;
    }

    /// Detach the path, because it ended.
    pub fn handle_detached(&mut self, now: Moment) {
        if self.path == Path::Here {
            self.path = Path::Gone(now);
        }
    }

    /// Process a piece from the path.
    ///
    /// # Errors
    /// If a frame is invalid; the frames before it were processed, and the path must be closed.
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
            // The other end no longer reads what this end writes.
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
        self.unacked_since.get_or_insert(now);
        Ok(())
    }

    fn acknowledge(&mut self, received: u64, now: Moment) -> Result<(), Error> {
        let to = self.total();
        if received > to {
            return Err(Error::Cursor { from: self.acked, to, found: received });
        }
        let fresh = received.saturating_sub(self.acked);
        if fresh == 0 {
            // An older acknowledgement, overtaken by a newer one.
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

    /// The offset after all that was written, including the close.
    fn total(&self) -> u64 {
        self.acked.saturating_add(self.kept.len() as u64).saturating_add(u64::from(self.has_end_to_come()))
    }

    /// Whether the close is still unacknowledged.
    fn has_end_to_come(&self) -> bool {
        self.closing_since.is_some() && !self.is_end_acked
    }

    fn taken(&self) -> u64 {
        self.received - self.arrived.len() as u64
    }

    /// Number of bytes that may be given to the path now.
    fn sendable(&self) -> usize {
        let to = (self.acked + self.kept.len() as u64).min(self.taken_there + WINDOW_BYTES as u64);
        usize::try_from(to.saturating_sub(self.sent)).unwrap_or(0)
    }

    /// Whether the close is the next thing to send.
    fn is_end_due(&self) -> bool {
        self.end.is_none() && self.has_end_to_come() && self.sent == self.acked + self.kept.len() as u64
    }

    fn is_ack_due(&self, now: Moment) -> bool {
        self.must_ack
            || self.received - self.sent_ack.0 >= ACK_EVERY_BYTES
            || self.taken() - self.sent_ack.1 >= ACK_EVERY_BYTES
            || self.unacked_since.is_some_and(|since| now.since(since) >= ACK_AFTER)
            || now.since(self.spoke) >= KEEP_ALIVE
    }

    /// The next piece for the path, of at most `most_bytes`, which must exceed the header of a frame.
    pub fn poll_output(&mut self, most_bytes: usize, now: Moment) -> Option<Vec<u8>> {
        if self.path != Path::Here {
            return None;
        }
        let mut piece = Vec::new();
        let is_more = self.sendable() > 0 || self.is_end_due();
        if self.is_ack_due(now) || (is_more && self.unacked_since.is_some()) {
            self.sent_ack = (self.received, self.taken());
            (self.unacked_since, self.must_ack) = (None, false);
            Frame::Ack { received: self.sent_ack.0, taken: self.sent_ack.1 }.write(&mut piece);
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

    /// Append one data frame with at most `room` bytes.
    fn send(&mut self, piece: &mut Vec<u8>, room: usize) {
        let from = usize::try_from(self.sent - self.acked).expect("no more than is kept");
        let (first, second) = self.kept.as_slices();
        let slice = first.get(from..).filter(|rest| !rest.is_empty());
        let slice = slice.unwrap_or_else(|| &second[from - first.len()..]);
        let count = slice.len().min(room).min(self.sendable()).min(DATA_LEN_MAX_BYTES);
        Frame::Data { offset: self.sent, bytes: &slice[..count] }.write(piece);
        self.sent += count as u64;
    }

    /// When to call [`Carrier::handle_timeout`] or [`Carrier::poll_output`] next if nothing is received.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let close = self.closing_since.filter(|_| self.end.is_none()).map(|since| since.plus(CLOSE_MAX));
        let since = match self.path {
            Path::Gone(_) if self.end.is_some() => return None,
            Path::Gone(since) => return [Some(since.plus(RESUME_MAX)), close].into_iter().flatten().min(),
            Path::Here => self.heard.plus(SILENCE_MAX),
        };
        let ack = self.unacked_since.map(|since| since.plus(ACK_AFTER));
        let resend = (self.sent > self.acked).then(|| self.moved.plus(RESEND_AFTER));
        [Some(since), Some(self.spoke.plus(KEEP_ALIVE)), ack, resend, close].into_iter().flatten().min()
    }

    /// Process the time `now`: abandon a silent path, send again, end the carrier after its timeouts.
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
