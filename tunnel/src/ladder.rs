//! Schedule of the transports to a proxy: a ladder that starts the transport that worked before first.
//!
//! ```text
//! nothing known    direct at once · WebSocket after 1 s · polling after 3 s     the first that connects is used
//! polling worked   polling at once · direct after 1 s · WebSocket after 2 s
//! ```
//! Pure; callers pass the time. Every transport is started within [`SPREAD_MAX`], which bounds a cold start.
//! Invariant: the memory is bounded, and entries expire after [`REMEMBERED_FOR`], so that a better transport
//! is found again.
//! Not here: dialling; the site's own HTTP proxy, which can be below each transport (`connect`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Moment;

/// Delay between two transports: a round trip around the world and a handshake, so that the better one wins
/// where it works.
const STEP: Duration = Duration::from_secs(1);

/// Delay of polling: it costs the proxy most.
const BEFORE_POLLING: Duration = Duration::from_secs(3);

/// The last transport is started within this time.
pub const SPREAD_MAX: Duration = Duration::from_secs(4);

/// How long the transport that worked goes first.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// Most destinations with a remembered transport: as many as are dialled.
pub const REMEMBERED_MAX: usize = 256;

/// Transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransportKind {
    /// Direct TCP.
    Direct,
    /// TCP by simultaneous open through NATs and firewalls at both ends, coordinated over an existing
    /// circuit.
    Punched,
    /// A circuit through a proxy.
    Circuit,
    /// A WebSocket over HTTPS.
    WebSocket,
    /// TCP through the site's own HTTP proxy.
    Connect,
    /// Polling by HTTPS requests and answers.
    Polling,
}

impl TransportKind {
    /// All transports, in the order of the ladder.
    pub const ALL: [TransportKind; 6] = [
        TransportKind::Direct,
        TransportKind::Punched,
        TransportKind::Circuit,
        TransportKind::WebSocket,
        TransportKind::Connect,
        TransportKind::Polling,
    ];

    /// The transports to a proxy itself.
    pub const TO_PROXY: [TransportKind; 3] =
        [TransportKind::Direct, TransportKind::WebSocket, TransportKind::Polling];

    /// Name in outputs and counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TransportKind::Direct => "direct",
            TransportKind::Punched => "punched",
            TransportKind::Circuit => "circuit",
            TransportKind::WebSocket => "websocket",
            TransportKind::Connect => "connect",
            TransportKind::Polling => "polling",
        }
    }

    /// Delay if nothing is known about the destination.
    const fn usual(self) -> Duration {
        match self {
            TransportKind::Direct
            | TransportKind::Punched
            | TransportKind::Circuit
            | TransportKind::Connect => Duration::ZERO,
            TransportKind::WebSocket => STEP,
            TransportKind::Polling => BEFORE_POLLING,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Worked {
    transport: TransportKind,
    at: Moment,
}

/// Transports that worked, by destination.
#[derive(Debug, Default)]
pub struct Ladder {
    worked: BTreeMap<String, Worked>,
}

impl Ladder {
    /// Delay before `transport` is tried to `place`.
    #[must_use]
    pub fn delay(&self, place: &str, transport: TransportKind, now: Moment) -> Duration {
        match self.best(place, now) {
            None
            | Some(
                TransportKind::Direct
                | TransportKind::Punched
                | TransportKind::Circuit
                | TransportKind::Connect,
            ) => transport.usual(),
            Some(best) if best == transport => Duration::ZERO,
            Some(_) => transport.usual() + STEP,
        }
    }

    /// The transport that worked last to `place`, unless it has expired.
    #[must_use]
    pub fn best(&self, place: &str, now: Moment) -> Option<TransportKind> {
        let worked = self.worked.get(place)?;
        (now.since(worked.at) < REMEMBERED_FOR).then_some(worked.transport)
    }

    /// Record a connection to `place` by `transport`.
    pub fn handle_connected(&mut self, place: &str, transport: TransportKind, now: Moment) {
        if !self.worked.contains_key(place) && self.worked.len() >= REMEMBERED_MAX {
            let oldest =
                self.worked.iter().min_by_key(|(_, worked)| worked.at).map(|(place, _)| place.clone());
            oldest.map(|place| self.worked.remove(&place));
        }
        self.worked.insert(place.to_owned(), Worked { transport, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    /// The transports to a proxy in the order in which they are started.
    fn order(ladder: &Ladder, now: Moment) -> Vec<TransportKind> {
        let mut all = TransportKind::TO_PROXY.to_vec();
        all.sort_by_key(|transport| ladder.delay("p:443", *transport, now));
        all
    }

    #[test]
    fn transports_are_tried_in_their_order_and_in_time() {
        let mut ladder = Ladder::default();
        assert_eq!(order(&ladder, at(0)), TransportKind::TO_PROXY);
        assert_eq!(ladder.delay("p:443", TransportKind::Direct, at(0)), Duration::ZERO);
        for best in TransportKind::ALL {
            ladder.handle_connected("p:443", best, at(0));
            let delays = TransportKind::TO_PROXY.map(|transport| ladder.delay("p:443", transport, at(1)));
            assert!(delays.iter().all(|delay| *delay <= SPREAD_MAX), "{best:?}: {delays:?}");
            assert!(delays.contains(&Duration::ZERO), "{best:?}: something begins at once");
        }
    }

    #[test]
    fn what_worked_goes_first_until_it_is_forgotten() {
        let mut ladder = Ladder::default();
        ladder.handle_connected("p:443", TransportKind::Polling, at(10));
        assert_eq!(
            order(&ladder, at(11)),
            [TransportKind::Polling, TransportKind::Direct, TransportKind::WebSocket]
        );
        assert_eq!(ladder.delay("other:443", TransportKind::Polling, at(11)), BEFORE_POLLING);
        let forgotten = at(10).plus(REMEMBERED_FOR);
        assert_eq!(
            (ladder.best("p:443", forgotten), order(&ladder, forgotten)),
            (None, TransportKind::TO_PROXY.to_vec())
        );
    }

    #[test]
    fn no_more_is_remembered_than_may_be() {
        let mut ladder = Ladder::default();
        for number in 0..2 * REMEMBERED_MAX as u64 {
            ladder.handle_connected(&format!("p{number}:443"), TransportKind::WebSocket, at(number));
        }
        assert_eq!(ladder.worked.len(), REMEMBERED_MAX);
        let now = at(2 * REMEMBERED_MAX as u64);
        assert_eq!(ladder.best("p511:443", now), Some(TransportKind::WebSocket));
        assert_eq!(ladder.best("p0:443", now), None, "the oldest goes first");
    }
}
