//! Listening address, as a user writes it.
//!
//! Pure: parsing opens no socket and resolves no name, so a listener never depends on DNS.
//! Not here: whether an address other than loopback is allowed (the daemons decide, by their credentials).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// Default port of daemons.
pub const PORT_DEFAULT: u16 = 7317;

/// An address to listen on: `127.0.0.1:7317`, `[::1]:7317`, `localhost:0` (0: any free port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Listen(SocketAddr);

/// Why a listening address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port is missing.
    #[error(
        "expected ADDRESS:PORT such as 127.0.0.1:{PORT_DEFAULT} or [::1]:{PORT_DEFAULT}, found {0:?} without a port; add one, or :0 for any free port"
    )]
    NoPort(String),
    /// The port is not a number from 0 to 65535.
    #[error("expected a port from 0 to 65535 after the last colon, found {0:?}")]
    Port(String),
    /// The address is not an IP address.
    #[error(
        "expected an IP address (127.0.0.1, [::1], 0.0.0.0 for every address) or localhost before the port, found {0:?}; host names are not looked up"
    )]
    Address(String),
}

impl Listen {
    /// Socket address to bind.
    #[must_use]
    pub fn address(self) -> SocketAddr {
        self.0
    }

    /// Whether only this host can reach it.
    #[must_use]
    pub fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Listen {
        Listen(address)
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Listen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Listen, Error> {
        let trimmed = text.trim();
        if let Ok(address) = trimmed.parse::<SocketAddr>() {
            return Ok(Listen(address));
        }
        let bare = trimmed.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() || trimmed.eq_ignore_ascii_case("localhost") {
            return Err(Error::NoPort(text.to_owned()));
        }
        let Some((host, port)) = trimmed.rsplit_once(':') else {
            return Err(Error::NoPort(text.to_owned()));
        };
        let port = port.parse::<u16>().map_err(|_| Error::Port(port.to_owned()))?;
        if host.eq_ignore_ascii_case("localhost") {
            return Ok(Listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        Err(Error::Address(host.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let check = |text: &str, expected: &str, loopback: bool| {
            let listen: Listen = text.parse().unwrap();
            assert_eq!((listen.to_string().as_str(), listen.is_loopback()), (expected, loopback), "{text}");
        };
        check("127.0.0.1:0", "127.0.0.1:0", true);
        check(" [::1]:7007 ", "[::1]:7007", true);
        check("localhost:7007", "127.0.0.1:7007", true);
        check("0.0.0.0:80", "0.0.0.0:80", false);
        check("[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true);
        check("[::]:80", "[::]:80", false);
    }

    #[test]
    fn other_text_is_refused_with_the_part_that_is_wrong() {
        let check = |text: &str, expected: Error| assert_eq!(text.parse::<Listen>(), Err(expected), "{text}");
        check("127.0.0.1", Error::NoPort("127.0.0.1".into()));
        check("::1", Error::NoPort("::1".into()));
        check("7007", Error::NoPort("7007".into()));
        check("localhost", Error::NoPort("localhost".into()));
        check("127.0.0.1:70000", Error::Port("70000".into()));
        check("127.0.0.1:", Error::Port(String::new()));
        check(":7007", Error::Address(String::new()));
        check("grid.example:7007", Error::Address("grid.example".into()));
    }
}
