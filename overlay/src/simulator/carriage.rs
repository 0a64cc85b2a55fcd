//! Messages in transit between simulated hosts: delayed, lost, duplicated, reordered, or held back while a
//! path is cut.
//!
//! Pure. Rule: messages that a path held are delivered in order when the path is open again, as with TCP, if
//! the connection is still open.
//! Not here: connections (`connections`), which paths are cut (`network`).

use super::World;
use super::host::{Core, HostInput};
use super::world::{Event, INBOX_MAX};
use std::collections::VecDeque;
use std::time::Duration;
use wire::id::PeerKey;

/// Interval at which the messages held on a path are sent again: that of TCP's first retransmission, the
/// worst case.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Messages held on a path, each with its connection.
pub(super) type Backlog<C> = VecDeque<(u64, <C as Core>::Message)>;

impl<C: Core> World<C> {
    pub(super) fn carry(&mut self, from: usize, to: &PeerKey, message: C::Message) {
        let Some(to) = self.number(to) else { return };
        if self.measures {
            let len_bytes = C::len_bytes(&message) as u64;
            let traffic = &mut self.traffic[from];
            traffic.sent += 1;
            traffic.sent_bytes += len_bytes;
            traffic.longest_bytes = traffic.longest_bytes.max(len_bytes);
        }
        let Some(side) = self.hosts[from].sides.get(&to).copied() else { return };
        if self.network.holds && (!self.network.is_open(from, to) || self.held.contains_key(&(from, to))) {
            self.hold(from, to, side.id, message);
            return;
        }
        if !self.network.is_open(from, to) || self.dice.happens(self.network.loss_permille) {
            return;
        }
        self.deliver(from, to, side.id, message);
    }

    fn hold(&mut self, from: usize, to: usize, connection: u64, message: C::Message) {
        let backlog = self.held.entry((from, to)).or_default();
        let is_first = backlog.is_empty();
        if backlog.len() < INBOX_MAX {
            backlog.push_back((connection, message));
        }
        if is_first {
            self.plan(self.now + RETRY_INTERVAL, Event::Retry { from, to });
        }
    }

    pub(super) fn retry(&mut self, from: usize, to: usize) {
        if !self.network.is_open(from, to) {
            self.plan(self.now + RETRY_INTERVAL, Event::Retry { from, to });
            return;
        }
        for (connection, message) in self.held.remove(&(from, to)).unwrap_or_default() {
            // The messages of a closed connection are lost.
            if self.hosts[from].sides.get(&to).is_some_and(|side| side.id == connection) {
                self.deliver(from, to, connection, message);
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, connection: u64, message: C::Message) {
        let Some(side) = self.hosts[from].sides.get(&to).copied() else { return };
        let mut at = self.now + self.network.takes(&mut self.dice);
        if !self.dice.happens(self.network.reorder_permille) {
            at = at.max(side.last_arrival);
            self.hosts[from].sides.get_mut(&to).expect("just seen").last_arrival = at;
        }
        if self.dice.happens(self.network.duplicate_permille) {
            let again = at + self.network.takes(&mut self.dice);
            let what = HostInput::Message { from, connection, message: message.clone() };
            self.plan_at(to, again, what);
        }
        self.plan_at(to, at, HostInput::Message { from, connection, message });
    }
}
