//! Limits of open connections, in all and per source.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Invariant: each admitted connection is released exactly once; a source without connections takes no space.
//! Not here: the sockets (`server`).

use crate::dispatch::source::SourceKey;
use crate::limits::Limits;
use std::collections::HashMap;

/// Number of open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    open: usize,
    by_source: HashMap<SourceKey, usize>,
    at_most: usize,
    at_most_per_address: usize,
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Connections {
        Connections {
            open: 0,
            by_source: HashMap::new(),
            at_most: limits.connections,
            at_most_per_address: limits.connections_per_address,
        }
    }

    /// Admit one more connection from `source`, if the limits allow it. `following` is the number of its
    /// connections with a stream: these do not count here, because they have limits of their own.
    #[must_use]
    pub(crate) fn admit(&mut self, source: impl Into<SourceKey>, following: usize) -> bool {
        if self.open.saturating_sub(following) >= self.at_most {
            return false;
        }
        let from_here = self.by_source.entry(source.into()).or_insert(0);
        if *from_here >= self.at_most_per_address {
            return false;
        }
        *from_here += 1;
        self.open += 1;
        true
    }

    /// Release a connection from `source`.
    pub(crate) fn leave(&mut self, source: impl Into<SourceKey>) {
        let source = source.into();
        let Some(from_here) = self.by_source.get_mut(&source) else { return };
        *from_here -= 1;
        if *from_here == 0 {
            self.by_source.remove(&source);
        }
        self.open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let limits = Limits { connections: 3, connections_per_address: 2, ..Limits::default() };
        let mut connections = Connections::new(&limits);
        let (one, two, three) = (address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.3"));
        assert!(connections.admit(one, 0) && connections.admit(one, 0));
        assert!(!connections.admit(one, 0), "its share is used up");
        assert!(connections.admit(two, 0));
        assert!(!connections.admit(three, 0), "all are used up");
        connections.leave(one);
        assert!(connections.admit(three, 0));
        connections.leave(address("10.0.0.9"));
        assert_eq!(connections.open, 3);
        let four = address("10.0.0.4");
        assert!(!connections.admit(four, 0));
        assert!(connections.admit(four, 1), "one of them carries a stream");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let limits = Limits { connections_per_address: 1, ..Limits::default() };
        let mut connections = Connections::new(&limits);
        assert!(connections.admit(address("2001:db8::1"), 0));
        assert!(!connections.admit(address("2001:db8::2"), 0));
        assert!(connections.admit(address("2001:db8:0:1::2"), 0));
        assert!(connections.admit(address("::1"), 0) && connections.admit(address("127.0.0.1"), 0));
        assert!(!connections.admit(address("::ffff:127.0.0.1"), 0));
        connections.leave(address("2001:db8::3"));
        assert!(connections.admit(address("2001:db8::2"), 0));
    }
}
