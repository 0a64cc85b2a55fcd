//! Half-open connections: inbound, accepted, and not yet encrypted and multiplexed.
//!
//! [`Table`] is the core, which has no clock; [`HalfOpen`] is shared by the layers of the transport:
//! `outbound` admits or refuses, `handshake` runs the admitted handshakes and ends one when its place is
//! taken.
//! Rules: there are [`IN_ALL_MAX`] places. When they are full, the source with the most loses its oldest, so
//! a newcomer from a source with fewer gets in at once, whatever one source does. A newcomer from a source
//! that has the most itself takes the place of its own oldest handshake if that has stalled, and is refused
//! otherwise. Circuits have no address and count as one source.
//! Not here: established connections (`libp2p::connection_limits`), and which may stay (`connected_peers`).

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use wire::time::Moment;

/// Most handshakes at a time, of all sources together.
pub(super) const IN_ALL_MAX: usize = 128;

/// After this time a handshake has stalled: it takes a few round trips.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// Most connections that are being sent a refusal; further ones are closed without one.
const REFUSALS_MAX: usize = 64;

/// Source of connections; each is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An IPv4 address, or the network of an IPv6 address.
    Address(IpAddr),
    /// All circuits through proxies.
    Circuits,
}

impl Source {
    /// The source of a connection from this address.
    pub(super) fn of(from: &Multiaddr) -> Source {
        let mut parts = from.iter();
        let host = parts.next();
        let address = if let Some(Protocol::Ip4(address)) = host {
            IpAddr::from(address)
        } else if let Some(Protocol::Ip6(address)) = host {
            IpAddr::from(address)
        } else {
            return Source::Circuits;
        };
        match parts.any(|part| matches!(part, Protocol::P2pCircuit)) {
            true => Source::Circuits,
            false => Source::Address(wire::source::source(address)),
        }
    }
}

/// Handshakes in progress, numbered in the order in which they started. Pure.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    all: BTreeMap<u64, (Source, Moment)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It gets a place, and `evicted` loses its own.
    Enters { number: u64, evicted: Option<u64> },
    /// It gets no place.
    Full,
}

impl Table {
    fn enter(&mut self, source: Source, now: Moment) -> Verdict {
        let mut evicted = None;
        if self.all.len() >= IN_ALL_MAX {
            let Some(number) = self.loser(source, now) else { return Verdict::Full };
            self.all.remove(&number);
            evicted = Some(number);
        }
        let number = self.next;
        self.next += 1;
        self.all.insert(number, (source, now));
        Verdict::Enters { number, evicted }
    }

    fn leave(&mut self, number: u64) {
        self.all.remove(&number);
    }

    /// The handshake that makes room for one of `newcomer`.
    fn loser(&self, newcomer: Source, now: Moment) -> Option<u64> {
        // The number of handshakes of each source, and its oldest.
        let mut sources: BTreeMap<Source, (usize, u64)> = BTreeMap::new();
        for (number, (source, _)) in &self.all {
            sources.entry(*source).or_insert((0, *number)).0 += 1;
        }
        let (most, oldest) = *sources.values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)))?;
        let (own, own_oldest) = sources.get(&newcomer).copied().unwrap_or((0, oldest));
        if own < most {
            return Some(oldest);
        }
        let (_, since) = self.all.get(&own_oldest)?;
        (now.since(*since) >= STALLED_AFTER).then_some(own_oldest)
    }
}

/// Half-open connections, shared by the layers of the transport.
#[derive(Clone, Debug, Default)]
pub(super) struct HalfOpen {
    state: Arc<Mutex<State>>,
    /// Decision of the layer below about the connection that it passes to the layer above in the same call.
    decided: Arc<Mutex<Option<Decision>>>,
}

#[derive(Debug, Default)]
struct State {
    table: Table,
    /// Senders that evict a handshake.
    evictions: BTreeMap<u64, oneshot::Sender<()>>,
    refusals: usize,
}

/// Decision about an inbound connection.
#[derive(Debug)]
pub(super) enum Decision {
    /// It has a place, and this timeout.
    Handshake(Place, Duration),
    /// It has none: the layer below closes it.
    Refused,
}

/// Place of a handshake; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    state: Arc<Mutex<State>>,
    number: u64,
    evicted: oneshot::Receiver<()>,
}

/// Permit to send a refusal, returned when it is dropped.
#[derive(Debug)]
pub(super) struct Refusal(Arc<Mutex<State>>);

impl HalfOpen {
    /// Take a place for a connection from `source`; `None` if there is none.
    pub(super) fn enter(&self, source: Source, now: Moment) -> Option<Place> {
        let mut state = lock(&self.state);
        let Verdict::Enters { number, evicted: loser } = state.table.enter(source, now) else { return None };
        let (evict, evicted) = oneshot::channel();
        state.evictions.insert(number, evict);
        if let Some(evict) = loser.and_then(|loser| state.evictions.remove(&loser)) {
            // A handshake that ended at this moment does not receive it.
            let _ended = evict.send(());
        }
        Some(Place { state: Arc::clone(&self.state), number, evicted })
    }

    /// Take a permit to send a refusal; `None` while [`REFUSALS_MAX`] are in use.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let mut state = lock(&self.state);
        let may = state.refusals < REFUSALS_MAX;
        state.refusals += usize::from(may);
        may.then(|| Refusal(Arc::clone(&self.state)))
    }

    /// Pass the decision about a connection to the layer above.
    pub(super) fn hand_up(&self, decision: Decision) {
        *lock(&self.decided) = Some(decision);
    }

    /// Take the decision of the layer below about the current connection; `None` for one through a circuit.
    pub(super) fn take(&self) -> Option<Decision> {
        lock(&self.decided).take()
    }
}

impl Place {
    /// Return when another handshake has taken the place.
    pub(super) async fn evicted(&mut self) {
        if (&mut self.evicted).await.is_err() {
            // The sender is gone, so it cannot be evicted any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.table.leave(self.number);
        state.evictions.remove(&self.number);
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        lock(&self.0).refusals -= 1;
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Changed by single steps, each complete.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u8) -> Source {
        Source::Address(IpAddr::from([10, 0, 0, number]))
    }

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    /// A table with this many handshakes of each source, one source after the other.
    fn full(each: &[(u8, usize)], now: Moment) -> Table {
        let mut table = Table::default();
        for (number, count) in each {
            for _ in 0..*count {
                assert!(matches!(table.enter(source(*number), now), Verdict::Enters { evicted: None, .. }));
            }
        }
        assert_eq!(table.all.len(), IN_ALL_MAX);
        table
    }

    #[test]
    fn the_source_with_the_most_loses_its_oldest_to_others_at_once() {
        let mut table = full(&[(1, 28), (2, 60), (3, 40)], at(0));
        let evicted = |verdict| match verdict {
            Verdict::Enters { evicted, .. } => evicted,
            Verdict::Full => panic!("refused"),
        };
        assert_eq!(evicted(table.enter(source(9), at(0))), Some(28), "the oldest of 2");
        assert_eq!(evicted(table.enter(source(1), at(0))), Some(29));
        let mut count = 0;
        while let Verdict::Enters { .. } = table.enter(source(9), at(0)) {
            count += 1;
        }
        let of = |number: u8| table.all.values().filter(|(of, _)| *of == source(number)).count();
        assert_eq!((of(1), of(2), of(3), of(9)), (29, 33, 33, 33), "after {count} more all have as many");
    }

    #[test]
    fn a_newcomer_of_the_source_that_has_the_most_waits_for_one_that_stalled() {
        let mut table = full(&[(1, 100), (2, 28)], at(0));
        assert_eq!(table.enter(source(1), at(999)), Verdict::Full);
        assert!(matches!(table.enter(source(1), at(1000)), Verdict::Enters { evicted: Some(0), .. }));
        let mut alone = full(&[(1, 128)], at(0));
        assert_eq!(alone.enter(source(1), at(1)), Verdict::Full);
        assert!(matches!(alone.enter(source(2), at(1)), Verdict::Enters { evicted: Some(0), .. }));
    }

    #[test]
    fn where_every_source_has_one_the_oldest_goes() {
        let mut table = full(&(0..128).map(|number| (number, 1)).collect::<Vec<_>>(), at(0));
        assert!(matches!(table.enter(source(200), at(1)), Verdict::Enters { evicted: Some(0), .. }));
        assert_eq!(table.enter(source(5), at(1)), Verdict::Full, "it has one already");
    }

    #[tokio::test]
    async fn a_place_that_is_taken_is_noticed_and_one_that_is_left_is_free() {
        let half_open = HalfOpen::default();
        let enter = |number: u8| half_open.enter(source(number), at(0));
        let mut places: Vec<Place> = (0..IN_ALL_MAX).map(|_| enter(1).expect("a place")).collect();
        assert!(enter(1).is_none());
        let _other = enter(2).expect("a place");
        places[0].evicted().await;
        places.truncate(100);
        assert_eq!(lock(&half_open.state).table.all.len(), 100);
        assert!(enter(1).is_some());
        let refusals: Vec<_> = (0..=REFUSALS_MAX).map(|_| half_open.refusal()).collect();
        assert_eq!(refusals.iter().flatten().count(), REFUSALS_MAX);
        drop(refusals);
        assert!(half_open.refusal().is_some());
    }

    #[test]
    fn a_source_is_an_address_a_network_or_the_circuits() {
        let of = |text: &str| Source::of(&text.parse().expect("an address"));
        assert_eq!(of("/ip4/10.0.0.1/tcp/9"), source(1));
        assert_eq!(of("/ip4/10.0.0.1/tcp/9/https"), source(1));
        assert_eq!(of("/ip6/2001:db8::1/tcp/9"), of("/ip6/2001:db8::2/tcp/8"));
        assert_ne!(of("/ip6/2001:db8::1/tcp/9"), of("/ip6/2001:db8:0:1::1/tcp/9"));
        let through = libp2p::PeerId::random();
        assert_eq!(of(&format!("/ip4/10.0.0.1/tcp/9/p2p/{through}/p2p-circuit")), Source::Circuits);
        assert_eq!(of(&format!("/p2p/{through}")), Source::Circuits);
    }
}
