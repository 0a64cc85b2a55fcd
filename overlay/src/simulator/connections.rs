//! Connections between simulated hosts: dialled, established, pinged, closed.
//!
//! Pure. Each side has its own record of a connection, so one side may take it for open when the other does
//! not; two missed pings close it. A handshake needs both directions open and both processes running.
//! Not here: messages on them (`carriage`).

use super::World;
use super::host::{Core, HostInput, Side};
use super::world::Event;
use std::time::Duration;

/// Interval of pings on a connection; two missed ones close it.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Time after which an unanswered dial fails.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

impl<C: Core> World<C> {
    pub(super) fn dial(&mut self, dialler: usize, listener: usize) {
        if dialler == listener || self.hosts[dialler].sides.contains_key(&listener) {
            return;
        }
        let trip = self.network.takes(&mut self.dice) + self.network.takes(&mut self.dice);
        let open = self.network.is_open_both(dialler, listener);
        if open && self.hosts[listener].core.is_some() {
            let lives = (self.hosts[dialler].life, self.hosts[listener].life);
            let deadline = self.now + DIAL_TIMEOUT;
            self.plan(self.now + trip * 3 / 2, Event::Established { dialler, listener, lives, deadline });
        } else {
            let refused = open && self.hosts[listener].powered;
            let at = self.now + if refused { trip } else { DIAL_TIMEOUT };
            self.plan_at(dialler, at, HostInput::DialFailed { peer: listener });
        }
    }

    pub(super) fn establish(
        &mut self,
        dialler: usize,
        listener: usize,
        lives: (u64, u64),
        deadline: Duration,
    ) -> Option<usize> {
        let same = (self.hosts[dialler].life, self.hosts[listener].life) == lives;
        let open = self.network.is_open_both(dialler, listener);
        let alive = self.hosts[dialler].core.is_some() && self.hosts[listener].core.is_some();
        if !same || !open || !alive || self.now >= deadline {
            let at = self.now.max(deadline);
            self.plan_at(dialler, at, HostInput::DialFailed { peer: listener });
            return None;
        }
        if !self.is_running(dialler) || !self.is_running(listener) {
            // The handshake waits for the process.
            let at = self.now + Duration::from_millis(50);
            self.plan(at, Event::Established { dialler, listener, lives, deadline });
            return None;
        }
        let known = self.hosts[dialler].sides.get(&listener).map(|side| side.id);
        if known.is_some() && known == self.hosts[listener].sides.get(&dialler).map(|side| side.id) {
            return None;
        }
        self.connections += 1;
        for (one, other) in [(dialler, listener), (listener, dialler)] {
            let (now, peer) = (self.clock(one), self.hosts[other].key);
            let side = Side { id: self.connections, missed: 0, last_arrival: self.now };
            if self.hosts[one].sides.insert(other, side).is_some() {
                // An earlier connection that the other side no longer knew.
                self.core_mut(one).disconnected(peer, now);
            }
        }
        for (one, other) in [(dialler, listener), (listener, dialler)] {
            let (now, peer) = (self.clock(one), self.hosts[other].key);
            self.core_mut(one).connected(peer, now);
            self.drain(one);
        }
        Some(dialler)
    }

    /// Ping every connection; two missed pings close it.
    pub(super) fn ping(&mut self) {
        for host in 0..self.hosts.len() {
            if !self.is_running(host) {
                continue;
            }
            let peers: Vec<_> = self.hosts[host].sides.iter().map(|(peer, side)| (*peer, side.id)).collect();
            for (peer, id) in peers {
                let known = self.hosts[peer].sides.get(&host).is_some_and(|side| side.id == id);
                let at = &self.hosts[peer];
                let still = at.paused_until.is_some() && self.now - at.paused_since >= PING_INTERVAL;
                let answered = known && !still && self.network.is_open_both(host, peer);
                let side = self.hosts[host].sides.get_mut(&peer).expect("just listed");
                side.missed = if answered { 0 } else { side.missed + 1 };
                if side.missed >= 2 {
                    self.plan_at(host, self.now, HostInput::Closed { peer, connection: id });
                    self.notify_closed(host, peer, id);
                }
            }
        }
    }

    /// Notify the other side of a connection that was closed here, if a message gets there.
    pub(super) fn notify_closed(&mut self, from: usize, to: usize, connection: u64) {
        if self.network.is_open(from, to) {
            let at = self.now + self.network.takes(&mut self.dice);
            self.plan_at(to, at, HostInput::Closed { peer: from, connection });
        }
    }
}
