//! Counters of a server since its start.
//!
//! Pure: plain atomic counters; each is exact, but two values read in succession need not be consistent.
//! Not here: the counters of a daemon's own work (the daemons have them).

use crate::codec::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one server, shared with `daemon.info`.
#[derive(Debug, Default)]
pub struct Statistics {
    pub(crate) connections_total: Counter,
    pub(crate) connections_open: Counter,
    pub(crate) connections_refused_total: Counter,
    pub(crate) requests_total: Counter,
    pub(crate) requests_refused_total: Counter,
    pub(crate) calls_total: Counter,
    pub(crate) calls_in_work: Counter,
    pub(crate) faults_total: Counter,
    pub(crate) panics_total: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) followers: Counter,
    pub(crate) follows_total: Counter,
    pub(crate) follows_refused_total: Counter,
    pub(crate) followers_cut_total: Counter,
    pub(crate) updates_total: Counter,
    pub(crate) updates_skipped_total: Counter,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Connections accepted and served.
    pub connections_total: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections refused because a limit was reached.
    pub connections_refused_total: u64,
    /// HTTP requests answered, including refused ones.
    pub requests_total: u64,
    /// HTTP requests refused before any call: ambiguous, too large, too late, from a web page.
    pub requests_refused_total: u64,
    /// Calls started, including each call of a multicall.
    pub calls_total: u64,
    /// Calls running now.
    pub calls_in_work: u64,
    /// Faults returned.
    pub faults_total: u64,
    /// Handlers that panicked (each is also a fault).
    pub panics_total: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Open streams.
    pub followers: u64,
    /// Streams started.
    pub follows_total: u64,
    /// Streams refused because of a limit.
    pub follows_refused_total: u64,
    /// Streams closed because the client read nothing, was too far behind, or lost its permission.
    pub followers_cut_total: u64,
    /// Answers and faults sent to streams.
    pub updates_total: u64,
    /// Answers that slow streams skipped.
    pub updates_skipped_total: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Add `more`. Returns the previous value.
    pub(crate) fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed)
    }

    pub(crate) fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Statistics {
    /// The counters at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            connections_total: self.connections_total.get(),
            connections_open: self.connections_open.get(),
            connections_refused_total: self.connections_refused_total.get(),
            requests_total: self.requests_total.get(),
            requests_refused_total: self.requests_refused_total.get(),
            calls_total: self.calls_total.get(),
            calls_in_work: self.calls_in_work.get(),
            faults_total: self.faults_total.get(),
            panics_total: self.panics_total.get(),
            received_bytes: self.received_bytes.get(),
            sent_bytes: self.sent_bytes.get(),
            followers: self.followers.get(),
            follows_total: self.follows_total.get(),
            follows_refused_total: self.follows_refused_total.get(),
            followers_cut_total: self.followers_cut_total.get(),
            updates_total: self.updates_total.get(),
            updates_skipped_total: self.updates_skipped_total.get(),
        }
    }
}

impl From<Snapshot> for Value {
    fn from(snapshot: Snapshot) -> Value {
        Value::object([
            ("connections_total", snapshot.connections_total),
            ("connections_open", snapshot.connections_open),
            ("connections_refused_total", snapshot.connections_refused_total),
            ("requests_total", snapshot.requests_total),
            ("requests_refused_total", snapshot.requests_refused_total),
            ("calls_total", snapshot.calls_total),
            ("calls_in_work", snapshot.calls_in_work),
            ("faults_total", snapshot.faults_total),
            ("panics_total", snapshot.panics_total),
            ("received_bytes", snapshot.received_bytes),
            ("sent_bytes", snapshot.sent_bytes),
            ("followers", snapshot.followers),
            ("follows_total", snapshot.follows_total),
            ("follows_refused_total", snapshot.follows_refused_total),
            ("followers_cut_total", snapshot.followers_cut_total),
            ("updates_total", snapshot.updates_total),
            ("updates_skipped_total", snapshot.updates_skipped_total),
        ])
    }
}
