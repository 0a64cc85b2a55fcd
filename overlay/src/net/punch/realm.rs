//! Address filter of hole punching: which address that a peer names is dialled.
//!
//! Pure. Rule: an address must not be further inside than that of the proxy through which both daemons are
//! connected. A peer that is seen by a proxy on the public network is dialled there, not in private networks,
//! and an address of this host is dialled only if the proxy is on this host. So a peer cannot make a daemon
//! dial what the peer itself cannot reach.
//! Not here: whether the peer is there at all (its proxy confirms that, `exchange`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Classes of networks, from the outside to the inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Realm {
    Public,
    /// RFC 1918, RFC 4193, and shared address space of providers (RFC 6598).
    Private,
    /// Loopback addresses.
    Host,
}

/// Whether a peer at `at` may be dialled if the proxy is at `proxy`.
pub(super) fn may_dial(at: SocketAddr, proxy: IpAddr) -> bool {
    match (realm(at.ip()), realm(proxy)) {
        (Some(at_realm), Some(proxy)) => at.port() != 0 && at_realm <= proxy,
        (None, _) | (_, None) => false,
    }
}

/// The class of an address; `None` for one that is no single host of a network: multicast, link-local,
/// unassigned, and IPv6 that translates to IPv4.
fn realm(ip: IpAddr) -> Option<Realm> {
    match ip.to_canonical() {
        IpAddr::V4(ip) => realm_v4(ip),
        IpAddr::V6(ip) => realm_v6(ip),
    }
}

fn realm_v4(ip: Ipv4Addr) -> Option<Realm> {
    match ip.octets() {
        [127, ..] => Some(Realm::Host),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(Realm::Private),
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [224..=255, ..] => None,
        _ => Some(Realm::Public),
    }
}

fn realm_v6(ip: Ipv6Addr) -> Option<Realm> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Realm::Host),
        [0xfc00..=0xfdff, ..] => Some(Realm::Private),
        // Teredo and 6to4.
        [0x2001, 0, ..] | [0x2002, ..] => None,
        [0x2000..=0x3fff, ..] => Some(Realm::Public),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peer_is_dialled_further_inside_than_the_proxy() {
        let check = |at: &str, expected: [bool; 3]| {
            let at: SocketAddr = at.parse().expect("an address");
            let proxies = ["198.51.100.1", "10.0.0.1", "127.0.0.1"];
            let found = proxies.map(|proxy| may_dial(at, proxy.parse().expect("an address")));
            assert_eq!(found, expected, "{at}");
        };
        check("203.0.113.7:7318", [true, true, true]);
        check("[2400:cb00::1]:7318", [true, true, true]);
        for private in ["10.1.2.3:22", "172.16.0.1:22", "192.168.1.1:80", "100.64.0.1:80", "[fd00::1]:22"] {
            check(private, [false, true, true]);
        }
        for host in ["127.0.0.1:22", "127.1.2.3:22", "[::1]:22", "[::ffff:127.0.0.1]:22"] {
            check(host, [false, false, true]);
        }
        check("[::ffff:10.0.0.1]:22", [false, true, true]);
        for unreachable in [
            "0.0.0.0:80",
            "[::]:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[ff02::1]:80",
            "203.0.113.7:0",
            "[64:ff9b::a00:1]:22",
            "[2002:a00:1::1]:22",
        ] {
            check(unreachable, [false, false, false]);
        }
    }

    #[test]
    fn a_proxy_at_no_place_leads_nowhere() {
        let at = "203.0.113.7:7318".parse().expect("an address");
        assert!(!may_dial(at, IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    }
}
