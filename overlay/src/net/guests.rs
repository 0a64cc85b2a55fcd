//! The peers that are connected, who they are, and how many streams each has open.
//!
//! Rule: the one lock of the overlay is in here, held for the length of a look-up, never across an await.
//! Not here: deciding who they are ([`super::hello::Admission`]).

use crate::clock;
use crate::contacts::ASKED_MAX;
use crate::identity::admission::Principal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Most streams that one admitted peer may have open towards us: its lasting ones and [`ASKED_MAX`] questions.
pub const STREAMS_MAX: usize = ASKED_MAX + 8;

/// Most streams of a peer that has not shown a certificate: its hello, a join, and one of each again.
pub const STRANGER_STREAMS_MAX: usize = 4;

/// What a greeting changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The peer was not let in.
    pub is_refused: bool,
    /// Both sides have welcomed each other now, and had not before.
    pub is_ready: bool,
    /// The peer has been started again since it was last heard.
    pub is_restarted: bool,
}

#[derive(Debug, Default)]
struct Guest {
    principal: Option<Arc<Principal>>,
    start: Option<u64>,
    has_welcomed_us: bool,
    /// Streams that it opened.
    inbound: usize,
    /// Streams that we opened.
    outbound: usize,
    /// When a stream was opened or closed last.
    used: Moment,
}

impl Guest {
    fn is_ready(&self) -> bool {
        self.has_welcomed_us && self.principal.is_some()
    }
}

/// The table.
#[derive(Debug, Default)]
pub struct Guests(Mutex<BTreeMap<PeerKey, Guest>>);

/// No further stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl Guests {
    /// It is connected.
    pub fn arrive(&self, peer: PeerKey) {
        self.lock().entry(peer).or_default();
    }

    /// It showed a certificate that is good. Nothing of one whose connection ended meanwhile is kept.
    pub fn admit(&self, peer: PeerKey, principal: Arc<Principal>, start: u64) -> Change {
        let mut all = self.lock();
        let Some(guest) = all.get_mut(&peer) else { return Change::default() };
        guest.used = clock::now();
        let was_ready = guest.is_ready();
        let is_restarted = guest.start.is_some_and(|before| before != start);
        if is_restarted {
            guest.has_welcomed_us = false;
        }
        guest.principal = Some(principal);
        guest.start = Some(start);
        Change { is_refused: false, is_ready: !was_ready && guest.is_ready(), is_restarted }
    }

    /// It welcomed us.
    pub fn welcomed_by(&self, peer: PeerKey) -> Change {
        let mut all = self.lock();
        let Some(guest) = all.get_mut(&peer) else { return Change::default() };
        let was_ready = guest.is_ready();
        guest.has_welcomed_us = true;
        Change { is_refused: false, is_ready: !was_ready && guest.is_ready(), is_restarted: false }
    }

    /// Its last connection ended; whether it had been ready.
    pub fn leave(&self, peer: PeerKey) -> bool {
        self.lock().remove(&peer).is_some_and(|guest| guest.is_ready())
    }

    /// Who it is, if it showed a certificate.
    #[must_use]
    pub fn principal(&self, peer: PeerKey) -> Option<Arc<Principal>> {
        self.lock().get(&peer).and_then(|guest| guest.principal.clone())
    }

    /// Whether it is connected.
    #[must_use]
    pub fn is_here(&self, peer: PeerKey) -> bool {
        self.lock().contains_key(&peer)
    }

    /// Whether it has taken our certificate.
    #[must_use]
    pub fn has_welcomed_us(&self, peer: PeerKey) -> bool {
        self.lock().get(&peer).is_some_and(|guest| guest.has_welcomed_us)
    }

    /// Whether both sides have welcomed each other.
    #[must_use]
    pub fn is_ready(&self, peer: PeerKey) -> bool {
        self.lock().get(&peer).is_some_and(Guest::is_ready)
    }

    /// Everybody who is ready.
    #[must_use]
    pub fn ready(&self) -> Vec<Arc<Principal>> {
        let all = self.lock();
        all.values().filter(|guest| guest.is_ready()).filter_map(|guest| guest.principal.clone()).collect()
    }

    /// How many are ready.
    #[must_use]
    pub fn ready_len(&self) -> usize {
        self.lock().values().filter(|guest| guest.is_ready()).count()
    }

    /// One more stream that `peer` opened, until what is returned is dropped.
    ///
    /// # Errors
    /// If it has as many as it may: none, where its connection ended.
    pub fn enter(self: &Arc<Guests>, peer: PeerKey) -> Result<Seat, TooMany> {
        let mut all = self.lock();
        let guest = all.get_mut(&peer).ok_or(TooMany)?;
        let most = if guest.principal.is_some() { STREAMS_MAX } else { STRANGER_STREAMS_MAX };
        if guest.inbound >= most {
            return Err(TooMany);
        }
        guest.inbound += 1;
        guest.used = clock::now();
        Ok(Seat { guests: Arc::clone(self), peer, side: Side::Inbound })
    }

    /// One more stream that we opened to `peer`.
    #[must_use]
    pub fn visit(self: &Arc<Guests>, peer: PeerKey) -> Seat {
        if let Some(guest) = self.lock().get_mut(&peer) {
            guest.outbound += 1;
            guest.used = clock::now();
        }
        Seat { guests: Arc::clone(self), peer, side: Side::Outbound }
    }

    /// Whether nothing has been open between it and us for `span`.
    #[must_use]
    pub fn is_idle(&self, peer: PeerKey, span: Duration) -> bool {
        let idle =
            |guest: &Guest| guest.inbound + guest.outbound == 0 && clock::now().since(guest.used) >= span;
        self.lock().get(&peer).is_none_or(idle)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, Guest>> {
        // Each change above is whole before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Inbound,
    Outbound,
}

/// A stream counted to its peer.
#[derive(Debug)]
pub struct Seat {
    guests: Arc<Guests>,
    peer: PeerKey,
    side: Side,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(guest) = self.guests.lock().get_mut(&self.peer) {
            let count = match self.side {
                Side::Inbound => &mut guest.inbound,
                Side::Outbound => &mut guest.outbound,
            };
            *count = count.saturating_sub(1);
            guest.used = clock::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_whoever_is_gone() {
        let (guests, peer) = (Arc::new(Guests::default()), PeerKey([1; 32]));
        let nobody = |when: &str| assert!(guests.lock().is_empty(), "{when}");
        assert_eq!(guests.enter(peer).err(), Some(TooMany), "a stream of a connection that ended");
        drop(guests.visit(peer));
        assert_eq!(guests.welcomed_by(peer), Change::default());
        nobody("who never was here");
        guests.arrive(peer);
        let seats = [guests.enter(peer).ok(), Some(guests.visit(peer))];
        assert!(guests.is_here(peer) && seats[0].is_some());
        assert!(!guests.leave(peer), "it was never ready");
        nobody("its streams are still held");
        drop(seats);
        nobody("after its last stream");
    }
}
