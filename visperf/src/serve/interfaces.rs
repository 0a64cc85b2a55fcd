//! The addresses of this host that others may reach.
//!
//! Rule: loopback and link-local addresses are left out: they mean another host to their readers.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::net::IpAddr;

/// Addresses of interfaces that are up, IPv4 first; none if the system does not list them.
pub(crate) fn addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let up = interfaces.filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP));
    let mut all: Vec<IpAddr> =
        up.filter_map(|interface| ip_of(&interface.address?)).filter(reaches_others).collect();
    all.sort_by_key(|ip| (ip.is_ipv6(), *ip));
    all.dedup();
    all
}

fn ip_of(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip())))
}

fn reaches_others(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_another_host_elsewhere_is_left_out() {
        for (ip, expected) in [
            ("127.0.0.1", false),
            ("169.254.3.4", false),
            ("::1", false),
            ("fe80::1", false),
            ("10.0.0.5", true),
            ("2001:db8::5", true),
        ] {
            assert_eq!(reaches_others(&ip.parse().expect("an address")), expected, "{ip}");
        }
        assert!(addresses().iter().all(reaches_others));
    }
}
