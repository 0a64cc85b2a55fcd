//! One simulated host: its core, its clock, its disk.
//!
//! Pure. The clock runs at its own rate from its own start; the disk holds what was synced, and a write in
//! progress is lost with the process.
//! Not here: the order of events (`world`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// A pure core that the simulator can drive.
pub trait Core {
    /// Message between cores.
    type Message: Clone;
    /// What a core reads from disk after a crash.
    type Disk: Clone;

    /// A connection to `peer` is up.
    fn connected(&mut self, peer: PeerKey, now: Moment);
    /// The connection to `peer` is closed, or a dial failed.
    fn disconnected(&mut self, peer: PeerKey, now: Moment);
    /// A message arrived.
    fn message(&mut self, from: PeerKey, message: Self::Message, now: Moment);
    /// The deadline of `poll_timeout` passed.
    fn timeout(&mut self, now: Moment);
    /// This is on disk.
    fn persisted(&mut self, disk: Self::Disk, now: Moment);
    /// The next effect; called until `None`.
    fn poll_effect(&mut self) -> Option<Effect<Self::Message, Self::Disk>>;
    /// When `timeout` is due.
    fn poll_timeout(&self) -> Option<Moment>;
    /// Encoded length of a message, in bytes; called only where that is measured.
    fn len_bytes(message: &Self::Message) -> usize;
}

/// An effect of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<M, D> {
    /// Send to a connected peer.
    Send(PeerKey, M),
    /// Dial a peer.
    Connect(PeerKey),
    /// Close a connection.
    Disconnect(PeerKey),
    /// Dial the configured seeds.
    DialSeeds,
    /// Write to disk and sync.
    Persist(D),
}

/// Input of a host; it waits while the process is suspended.
#[derive(Debug)]
pub(super) enum HostInput<M, D> {
    Message { from: usize, connection: u64, message: M },
    Closed { peer: usize, connection: u64 },
    DialFailed { peer: usize },
    Written(D),
}

/// One side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub id: u64,
    /// Pings missed in a row.
    pub missed: u8,
    /// When the last message sent on it arrives at the other side.
    pub last_arrival: Duration,
}

#[derive(Debug)]
pub(super) struct Host<C: Core> {
    pub key: PeerKey,
    pub core: Option<C>,
    /// Number of its starts.
    pub life: u64,
    /// Whether the machine runs: then a dial of a dead process is refused at once.
    pub powered: bool,
    pub disk: Option<C::Disk>,
    /// Its clock at virtual time zero.
    pub boot: Duration,
    /// How fast its clock runs, in millionths above the rate of virtual time.
    pub rate_ppm: i64,
    pub paused_until: Option<Duration>,
    pub paused_since: Duration,
    /// It runs for the first time span and is suspended for the second, repeatedly.
    pub starved: Option<(Duration, Duration)>,
    /// Input that arrived while it was suspended.
    pub inbox: VecDeque<HostInput<C::Message, C::Disk>>,
    pub sides: BTreeMap<usize, Side>,
    /// When its timer fires, in virtual time.
    pub timer: Option<Duration>,
    pub seeds: Vec<usize>,
    /// Minimum and maximum time its disk takes to sync.
    pub sync: (Duration, Duration),
    /// When the last requested write is on disk, in virtual time.
    pub last_write: Duration,
}

impl<C: Core> Host<C> {
    pub(super) fn new(key: PeerKey) -> Host<C> {
        Host {
            key,
            core: None,
            life: 0,
            powered: true,
            disk: None,
            boot: Duration::from_secs(1000),
            rate_ppm: 0,
            paused_until: None,
            paused_since: Duration::ZERO,
            starved: None,
            inbox: VecDeque::new(),
            sides: BTreeMap::new(),
            timer: None,
            seeds: Vec::new(),
            sync: (Duration::from_millis(2), Duration::from_millis(20)),
            last_write: Duration::ZERO,
        }
    }

    /// Its clock at virtual time `now`.
    pub(super) fn clock(&self, now: Duration) -> Moment {
        Moment(self.boot + scale(now, 1_000_000 + self.rate_ppm, 1_000_000))
    }

    /// The virtual time at which its clock has reached `moment`.
    pub(super) fn when(&self, moment: Moment) -> Duration {
        let shown = moment.0.saturating_sub(self.boot);
        scale(shown, 1_000_000, 1_000_000 + self.rate_ppm) + Duration::from_micros(1)
    }
}

fn scale(span: Duration, by: i64, of: i64) -> Duration {
    let nanos = span.as_nanos() * u128::from(by.unsigned_abs()) / u128::from(of.unsigned_abs());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::Sensor;
    use super::*;

    #[test]
    fn a_fast_clock_shows_more_and_is_set_back_exactly() {
        let mut host: Host<Sensor> = Host::new(PeerKey([1; 32]));
        host.rate_ppm = 30_000;
        let now = Duration::from_secs(100);
        let shown = host.clock(now);
        assert_eq!(shown.0, host.boot + Duration::from_secs(103));
        let back = host.when(shown);
        assert!(back >= now && back < now + Duration::from_millis(1), "{back:?}");
    }
}
