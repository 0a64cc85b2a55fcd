//! Address of a daemon in the overlay: `HOST:PORT`, where the host is a DNS name, an IPv4 or a bracketed IPv6
//! address; or `KEY@HOST:PORT`, through the proxy with that key, which listens there.
//!
//! Pure: names are not resolved here. An address is checked where it enters from outside; a value of the type
//! is valid.
//! Not here: the addresses of the query interface, which are URLs (`registration::Record::addresses`).

use crate::id::PeerKey;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};

/// Longest address in bytes: a key, a DNS name and a port, with their separators.
pub const ADDRESS_LEN_MAX_BYTES: usize = 53 + 253 + 6;

/// Error of an invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no address; expected HOST:PORT, such as head.example:7318, 10.0.0.5:7318 or [2001:db8::5]:7318"
)]
pub struct Error {
    /// The text, truncated to the length of an address.
    pub found: String,
}

/// An address in the overlay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "CompactString", into = "CompactString")]
pub struct Address(CompactString);

impl Address {
    /// The address as text, `HOST:PORT` or `KEY@HOST:PORT`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Key of the proxy through which it is reached; `None` if it is dialled directly.
    #[must_use]
    pub fn via(&self) -> Option<PeerKey> {
        self.0.split_once('@').and_then(|(key, _)| key.parse().ok())
    }

    /// The address of a daemon behind the proxy with this key, which listens at this address.
    ///
    /// # Errors
    /// If the address already goes through a proxy.
    pub fn through(&self, proxy: PeerKey) -> Result<Address, Error> {
        Address::try_from(compact_str::format_compact!("{proxy}@{self}"))
    }

    /// The host without brackets, a name or an IP address; for an address through a proxy, the proxy's host.
    #[must_use]
    pub fn host(&self) -> &str {
        let dialled = self.0.split_once('@').map_or(&*self.0, |(_, dialled)| dialled);
        let host = dialled.rsplit_once(':').map_or(dialled, |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, never 0.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("checked when it was made")
    }
}

impl TryFrom<&str> for Address {
    type Error = Error;
    fn try_from(text: &str) -> Result<Address, Error> {
        if is_address(text) { Ok(Address(text.into())) } else { Err(refusal(text)) }
    }
}

impl TryFrom<CompactString> for Address {
    type Error = Error;
    fn try_from(text: CompactString) -> Result<Address, Error> {
        if is_address(&text) { Ok(Address(text)) } else { Err(refusal(&text)) }
    }
}

impl std::str::FromStr for Address {
    type Err = Error;
    fn from_str(text: &str) -> Result<Address, Error> {
        Address::try_from(text)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        // A scope identifier has no meaning on another host.
        let address = SocketAddr::new(address.ip(), address.port());
        Address(compact_str::format_compact!("{address}"))
    }
}

impl From<Address> for CompactString {
    fn from(address: Address) -> CompactString {
        address.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refusal(text: &str) -> Error {
    Error { found: text.chars().take(ADDRESS_LEN_MAX_BYTES).collect() }
}

fn is_address(text: &str) -> bool {
    let dialled = match text.split_once('@') {
        None => text,
        Some((key, dialled)) if key.parse::<PeerKey>().is_ok() => dialled,
        Some(_) => return false,
    };
    let Some((host, port)) = dialled.rsplit_once(':').filter(|_| text.len() <= ADDRESS_LEN_MAX_BYTES) else {
        return false;
    };
    is_port(port) && is_host(host)
}

fn is_port(port: &str) -> bool {
    port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[') {
        return inside.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            && !label.starts_with('-')
    };
    let digits = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let is_ipv4 = host.parse::<std::net::Ipv4Addr>().is_ok();
    is_ipv4 || (!digits && host.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        for good in ["h:1", "head.example:7742", "10.0.0.5:65535", "[2001:db8::5]:7742", "wn_1.a-b:80"] {
            assert_eq!(Address::try_from(good).expect(good).as_str(), good);
        }
        let long = format!("{}:80", "a.".repeat(150));
        for bad in [
            "",
            "h",
            ":80",
            "h:",
            "h:0",
            "h:65536",
            "h:+8",
            "h:8 ",
            "a b:8",
            "2001:db8::5:80",
            "[x]:80",
            "[::1:80",
            "10.0.0:80",
            "256.0.0.1:80",
            "h..x:80",
            "-h:80",
            "http://h:80",
            "h/x:80",
            &long,
        ] {
            assert!(Address::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_may_lead_through_a_proxy() {
        let key = PeerKey([7; 32]);
        let plain = Address::try_from("[2001:db8::5]:7318").expect("an address");
        let through = plain.through(key).expect("an address");
        assert_eq!((through.via(), through.host(), through.port()), (Some(key), "2001:db8::5", 7318));
        assert_eq!(through.as_str(), format!("{key}@[2001:db8::5]:7318"));
        assert_eq!(plain.via(), None);
        assert!(through.through(key).is_err(), "through one proxy, not two");
        assert!(Address::try_from("x@head.example:7318").is_err());
        assert!(Address::try_from("@head.example:7318").is_err());
    }

    #[test]
    fn an_address_gives_its_parts() {
        let six = Address::try_from("[::1]:80").expect("an address");
        assert_eq!((six.host(), six.port()), ("::1", 80));
        let named = Address::try_from("a.b:7").expect("an address");
        assert_eq!((named.host(), named.port()), ("a.b", 7));
        let socket: SocketAddr = "[fe80::1%3]:9".parse().expect("an address");
        assert_eq!(Address::from(socket).as_str(), "[fe80::1]:9");
    }
}
