//! Pool of streams for questions: one stream carries questions one after the other, like a keep-alive
//! connection of HTTP.
//!
//! Opening a stream takes the event loops of both daemons, timers and a negotiation: more than an ordinary
//! question does.
//! Rules: a stream carries one question at a time; it is used for [`AGE_MAX`] after it was opened, so
//! questions soon use a better connection, and an unneeded circuit is soon free; at most [`IDLE_MAX`] idle
//! streams to one peer are pooled. A peer of the previous version, which takes one question on a stream, is
//! remembered for [`OLD_MAX`].
//! The lock is held for one look-up or change, never across an await. Not here: the exchange on a stream
//! (`handle`, `accept`).

use super::stream::Stream;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Context;
use std::time::Duration;
use tokio::io::{AsyncRead as _, ReadBuf};
use wire::id::PeerKey;
use wire::time::Moment;

/// Time after its opening in which a stream is used.
const AGE_MAX: Duration = Duration::from_secs(2);

/// Most idle streams to one peer: further ones are closed.
const IDLE_MAX: usize = 8;

/// Time for which a peer counts as one of the previous version: it may have been updated after it.
const OLD_MAX: Duration = Duration::from_secs(600);

/// Most peers of the previous version that are remembered.
const OLD_PEERS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct QuestionPool(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    idle: BTreeMap<PeerKey, VecDeque<Pooled>>,
    old: BTreeMap<PeerKey, Moment>,
}

#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) stream: Stream,
    pub(super) opened: Moment,
}

impl Pooled {
    fn is_usable(&mut self, now: Moment) -> bool {
        now.since(self.opened) < AGE_MAX && is_open(&mut self.stream)
    }
}

/// Whether an idle stream can still be used: it has not ended, and holds no unexpected bytes.
fn is_open(stream: &mut Stream) -> bool {
    let mut context = Context::from_waker(futures::task::noop_waker_ref());
    Pin::new(stream).poll_read(&mut context, &mut ReadBuf::new(&mut [0; 1])).is_pending()
}

impl QuestionPool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Both tables are caches, and each change is one step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Take the newest usable idle stream to `peer`.
    pub(super) fn take(&self, peer: PeerKey, now: Moment) -> Option<Pooled> {
        loop {
            let mut pooled = self.lock().idle.get_mut(&peer)?.pop_back()?;
            if pooled.is_usable(now) {
                return Some(pooled);
            }
        }
    }

    /// Return a stream whose last question was answered to the pool.
    pub(super) fn put(&self, peer: PeerKey, pooled: Pooled, now: Moment) {
        if now.since(pooled.opened) >= AGE_MAX {
            return;
        }
        let mut state = self.lock();
        let idle = state.idle.entry(peer).or_default();
        if idle.len() < IDLE_MAX {
            idle.push_back(pooled);
        }
    }

    /// Drop idle streams and remembered peers that are too old.
    pub(super) fn sweep(&self, now: Moment) {
        let mut state = self.lock();
        for idle in state.idle.values_mut() {
            idle.retain(|pooled| now.since(pooled.opened) < AGE_MAX);
        }
        state.idle.retain(|_, idle| !idle.is_empty());
        state.old.retain(|_, since| now.since(*since) < OLD_MAX);
    }

    /// Remember that `peer` takes one question on a stream.
    pub(super) fn note_old(&self, peer: PeerKey, now: Moment) {
        let mut state = self.lock();
        if state.old.len() >= OLD_PEERS_MAX {
            state.old.pop_first();
        }
        state.old.insert(peer, now);
    }

    /// Whether `peer` is remembered as one of the previous version.
    pub(super) fn is_old(&self, peer: PeerKey, now: Moment) -> bool {
        self.lock().old.get(&peer).is_some_and(|since| now.since(*since) < OLD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    #[test]
    fn a_peer_is_old_until_it_may_have_been_updated() {
        let pool = QuestionPool::default();
        let peer = |number: u32| {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            PeerKey(key)
        };
        assert!(!pool.is_old(peer(1), at(0)));
        pool.note_old(peer(1), at(0));
        assert!(
            pool.is_old(peer(1), at(599)) && !pool.is_old(peer(2), at(599)) && !pool.is_old(peer(1), at(600))
        );
        pool.sweep(at(600));
        assert!(pool.lock().old.is_empty());
        (0..2000).for_each(|number| pool.note_old(peer(number), at(601)));
        assert_eq!(pool.lock().old.len(), OLD_PEERS_MAX);
    }
}
