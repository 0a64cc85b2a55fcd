//! One simulated host: its core, its clock, its disk.
//!
//! Pure. The clock runs at its own rate from its own start; the disk holds what was synced, and what is being
//! written is lost with the host.
//! Not here: what happens when (`world`).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// A pure core, as the simulator drives it.
pub trait Core {
    /// What cores tell each other.
    type Message: Clone;
    /// What a core keeps over a crash.
    type Disk: Clone;

    /// A connection to `peer` is up.
    fn connected(&mut self, peer: PeerKey, now: Moment);
    /// It is gone, or a dial failed.
    fn disconnected(&mut self, peer: PeerKey, now: Moment);
    /// A message came.
    fn message(&mut self, from: PeerKey, message: Self::Message, now: Moment);
    /// The moment of `poll_timeout` came or passed.
    fn timeout(&mut self, now: Moment);
    /// What was to be written is on disk.
    fn persisted(&mut self, disk: Self::Disk, now: Moment);
    /// What to do next.
    fn poll_effect(&mut self) -> Option<Effect<Self::Message, Self::Disk>>;
    /// When to call `timeout`.
    fn poll_timeout(&self) -> Option<Moment>;
    /// How long a message is on the wire, in bytes, where that is measured.
    fn len_bytes(message: &Self::Message) -> usize;
}

/// What a core does.
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
    /// Write and sync.
    Persist(D),
}

/// Something that happens to a host, or waits until it runs again.
#[derive(Debug)]
pub(super) enum Happening<M, D> {
    Message { from: usize, connection: u64, message: M },
    Closed { peer: usize, connection: u64 },
    DialFailed { peer: usize },
    Written(D),
}

/// Its side of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub id: u64,
    /// Pings missed in a row.
    pub missed: u8,
    /// When the last message on it arrives at the other side.
    pub last_arrival: Duration,
}

/// One host.
#[derive(Debug)]
pub(super) struct Host<C: Core> {
    pub key: PeerKey,
    pub core: Option<C>,
    /// Counts its starts.
    pub life: u64,
    /// Whether the machine runs, so that a dial of a dead process is refused at once.
    pub powered: bool,
    pub disk: Option<C::Disk>,
    /// What its clock says at virtual time zero.
    pub boot: Duration,
    /// By how many millionths its clock runs fast.
    pub rate_ppm: i64,
    pub paused_until: Option<Duration>,
    pub paused_since: Duration,
    /// It runs for so long, and stands still for so long, again and again.
    pub starved: Option<(Duration, Duration)>,
    /// What came while it stood still.
    pub inbox: VecDeque<Happening<C::Message, C::Disk>>,
    pub sides: BTreeMap<usize, Side>,
    /// When its timer is set to, in virtual time.
    pub timer: Option<Duration>,
    pub seeds: Vec<usize>,
    /// How long its disk takes to sync.
    pub sync: (Duration, Duration),
    /// When the last write asked for is on disk, in virtual time.
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

    /// What its clock says at virtual time `now`.
    pub(super) fn clock(&self, now: Duration) -> Moment {
        Moment(self.boot + scale(now, 1_000_000 + self.rate_ppm, 1_000_000))
    }

    /// The virtual time at which its clock says at least `moment`.
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
