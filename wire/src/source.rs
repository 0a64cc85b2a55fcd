//! Source of connections: the unit of limits per address.
//!
//! Pure. Rule: an IPv4 address is one source; of IPv6 a whole /64 is, because a host there chooses its
//! addresses from that many (RFC 4291, section 2.5.4); an IPv4 address written as IPv6 is the IPv4 address.
//! Not here: the limits.

use std::net::{IpAddr, Ipv6Addr};

/// The source of an address, represented by its first address.
#[must_use]
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        plain @ (IpAddr::V4(_) | IpAddr::V6(_)) => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_one_source_and_an_address_of_ipv4_another() {
        let of = |text: &str| source(text.parse().expect("an address")).to_string();
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1", "the same, written as IPv6");
        assert_eq!(of("2001:db8:0:1:aaaa::1"), of("2001:db8:0:1:bbbb::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::1"), "::1");
    }
}
