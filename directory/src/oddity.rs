//! What a record must be before the table looks at it: possible, and short.
//!
//! Pure. Not here: whether it is newer than what is held, whether its sender may state it.

use wire::registration::Record;

/// Most addresses of a record: the interfaces of a multi-homed host.
pub const ADDRESSES_MAX: usize = 8;

/// Longest address, in bytes.
pub const ADDRESS_LEN_MAX_BYTES: usize = 128;

/// Highest term and sequence accepted. A record at the end of the range could never be followed by
/// another, so one forged record would hold its domain for ever; at this bound there is room left for
/// the operator to correct it.
pub const NUMBER_MAX: u64 = 1 << 62;

/// What cannot be right in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Odd {
    /// Port 0.
    #[error("port is 0; expected 1 to 65535")]
    Port,
    /// No address, or too many.
    #[error("{found} addresses; expected 1 to {ADDRESSES_MAX}")]
    AddressCount {
        /// How many.
        found: usize,
    },
    /// An address that is not one.
    #[error("address {found:?}; expected http://HOST:PORT of at most {ADDRESS_LEN_MAX_BYTES} bytes")]
    Address {
        /// Its beginning.
        found: String,
    },
    /// A term or sequence that leaves no room for a later one.
    #[error("{what} {found}; expected at most {NUMBER_MAX}")]
    Number {
        /// `term` or `sequence`.
        what: &'static str,
        /// Stated.
        found: u64,
    },
}

/// Whether the record is possible.
///
/// # Errors
/// With the first thing that cannot be right.
pub fn check(record: &Record) -> Result<(), Odd> {
    if record.port == 0 {
        return Err(Odd::Port);
    }
    if record.addresses.is_empty() || record.addresses.len() > ADDRESSES_MAX {
        return Err(Odd::AddressCount { found: record.addresses.len() });
    }
    for address in &record.addresses {
        if !is_address(address) {
            return Err(Odd::Address { found: address.chars().take(80).collect() });
        }
    }
    for (what, found) in [("term", record.term), ("sequence", record.sequence)] {
        if found > NUMBER_MAX {
            return Err(Odd::Number { what, found });
        }
    }
    Ok(())
}

/// `http://HOST:PORT`; the host a name, an IPv4 address or an IPv6 address in brackets.
fn is_address(address: &str) -> bool {
    let Some((host, port)) = address.strip_prefix("http://").and_then(|rest| rest.rsplit_once(':')) else {
        return false;
    };
    let host_fits = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse::<core::net::Ipv6Addr>().is_ok(),
        None => wire::id::HostName::try_from(host).is_ok(),
    };
    let port_fits = port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0);
    address.len() <= ADDRESS_LEN_MAX_BYTES && host_fits && port_fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::{DomainName, HostName};
    use wire::registration::SensorType;
    use wire::time::Time;

    fn good() -> Record {
        Record {
            domain: DomainName::try_from("a").expect("a name"),
            host: HostName::try_from("n1").expect("a name"),
            port: 7741,
            sensor_type: SensorType::Representative,
            addresses: vec!["http://127.0.0.1:7741".to_owned()],
            term: 1,
            sequence: 1,
            stated: Time::from_micros(0),
            reach: None,
        }
    }

    #[test]
    fn odd_records_are_refused() {
        let addressed = |address: &str| Record { addresses: vec![address.to_owned()], ..good() };
        let odd = [
            Record { port: 0, ..good() },
            Record { addresses: vec![], ..good() },
            Record { addresses: vec!["http://h:1".to_owned(); ADDRESSES_MAX + 1], ..good() },
            addressed("127.0.0.1:80"),
            addressed("http://h"),
            addressed("http://h:0"),
            addressed("http://h:70000"),
            addressed("http://h:+80"),
            addressed("http://a b:80"),
            addressed("http://[::zz]:80"),
            addressed("http://h:80/path"),
            addressed("file:///etc/passwd"),
            addressed(&format!("http://{}:80", "h".repeat(ADDRESS_LEN_MAX_BYTES))),
            Record { term: u64::MAX, ..good() },
            Record { sequence: NUMBER_MAX + 1, ..good() },
        ];
        for record in odd {
            assert!(check(&record).is_err(), "{record:?}");
        }
        for address in ["http://[::1]:80", "http://wn-1.example:7741", "http://10.0.0.1:1"] {
            assert_eq!(check(&addressed(address)), Ok(()), "{address}");
        }
    }
}
