//! Backpressure of a stream: state shared between the connection's socket and the response body on it.
//!
//! Rule: the next answer is passed to a connection only after the previous one was flushed, so that a slow
//! client receives the latest and not the oldest one. HTTP in between would buffer some hundred KiB.
//! Not here: the bytes (`guarded_stream`), the events (`body`).

use crate::dispatch::source::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// State of the stream on one connection.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    is_following: AtomicBool,
    is_filled: AtomicBool,
    /// Length of the longest event so far.
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

    /// `len_bytes` were passed to the connection.
    pub(crate) fn fill(&self, len_bytes: usize) {
        self.longest_bytes.fetch_max(len_bytes, Ordering::Relaxed);
        self.is_filled.store(true, Ordering::Release);
    }

    pub(crate) fn longest_bytes(&self) -> usize {
        self.longest_bytes.load(Ordering::Relaxed)
    }

    /// The kernel accepted all bytes.
    pub(crate) fn clear(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    pub(crate) fn is_clear(&self) -> bool {
        !self.is_filled.load(Ordering::Acquire)
    }

    /// The client read nothing within its deadline.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }
}
