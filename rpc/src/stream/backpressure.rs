//! Backpressure of a stream: shared between the connection's socket and the body that is sent on it.
//!
//! Rule: the next answer is handed to a connection only after the previous one was flushed, so that a slow client receives the
//! latest and not the oldest. HTTP between the two would keep some hundred KiB.
//! Not here: the bytes (`guarded_stream`), what is given (`body`).

use crate::dispatch::source::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Between the stream of a connection and what follows on it.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    is_following: AtomicBool,
    is_filled: AtomicBool,
    /// The longest that it was given.
    longest_bytes: AtomicUsize,
    is_cut: AtomicBool,
}

/// The connection of a request, as an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct ClientConnection {
    pub(crate) source: Source,
    pub(crate) pipe: Arc<Backpressure>,
}

impl Backpressure {
    /// A stream starts on this connection.
    pub(crate) fn begin(&self) {
        self.is_following.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_following(&self) -> bool {
        self.is_following.load(Ordering::Relaxed)
    }

    /// It was given so many bytes.
    pub(crate) fn fill(&self, len_bytes: usize) {
        self.longest_bytes.fetch_max(len_bytes, Ordering::Relaxed);
        self.is_filled.store(true, Ordering::Release);
    }

    pub(crate) fn longest_bytes(&self) -> usize {
        self.longest_bytes.load(Ordering::Relaxed)
    }

    /// The system took all that it was given.
    pub(crate) fn clear(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    pub(crate) fn is_clear(&self) -> bool {
        !self.is_filled.load(Ordering::Acquire)
    }

    /// Its client took nothing in time.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }
}
