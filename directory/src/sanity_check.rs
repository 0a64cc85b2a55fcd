//! Sanity checks of a record, before the table processes it: its values are possible and short.
//!
//! Pure. Not here: whether the record is newer than the stored one, whether its sender may state it.

use wire::registration::{Coverage, PART_HOSTS_MAX, REACH_ADDRESSES_MAX, Reach, Record};
use wire::replication::Number;

/// Most addresses of a record: the interfaces of a multi-homed host.
pub const ADDRESSES_MAX: usize = 8;

/// Longest address, in bytes.
pub const ADDRESS_LEN_MAX_BYTES: usize = 128;

/// Highest term and sequence accepted. No record could follow one at the end of the `u64` range, so a single
/// forged record would block its domain for ever; above this bound the operator still has room to correct it.
pub const NUMBER_MAX: u64 = 1 << 62;

/// Invalid value in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The port is 0.
    #[error("port is 0; expected 1 to 65535")]
    Port,
    /// No address, or too many.
    #[error("{found} addresses; expected 1 to {ADDRESSES_MAX}")]
    AddressCount {
        /// Number of addresses.
        found: usize,
    },
    /// An address is not a valid URL.
    #[error("address {found:?}; expected http://HOST:PORT of at most {ADDRESS_LEN_MAX_BYTES} bytes")]
    Address {
        /// Start of the address.
        found: String,
    },
    /// No overlay address, or too many.
    #[error("{found} addresses in the overlay; expected 1 to {REACH_ADDRESSES_MAX}")]
    ReachCount {
        /// Number of overlay addresses.
        found: usize,
    },
    /// A part of a domain names too many hosts.
    #[error("{found} hosts by name; expected at most {PART_HOSTS_MAX} and the number of all")]
    HostCount {
        /// Number of host names.
        found: usize,
    },
    /// A term or sequence above [`NUMBER_MAX`].
    #[error("{what} {found}; expected at most {NUMBER_MAX}")]
    Number {
        /// `term` or `sequence`.
        what: &'static str,
        found: u64,
    },
}

/// Check that the values of a record are possible.
///
/// # Errors
/// The first invalid value.
pub fn check(record: &Record) -> Result<(), Violation> {
    if record.port == 0 {
        return Err(Violation::Port);
    }
    if record.addresses.is_empty() || record.addresses.len() > ADDRESSES_MAX {
        return Err(Violation::AddressCount { found: record.addresses.len() });
    }
    for address in &record.addresses {
        if !is_address(address) {
            return Err(Violation::Address { found: address.chars().take(80).collect() });
        }
    }
    if let Some(reach) = &record.reach {
        check_reach(reach)?;
    }
    check_numbers(record.term, record.sequence)
}

/// Check that the number of a leave leaves room for a later one.
///
/// # Errors
/// The first part of it that is too high.
pub fn check_number(number: Number) -> Result<(), Violation> {
    check_numbers(number.term, number.sequence)
}

fn check_numbers(term: u64, sequence: u64) -> Result<(), Violation> {
    let numbers = [("term", term), ("sequence", sequence)];
    match numbers.into_iter().find(|(_, found)| *found > NUMBER_MAX) {
        Some((what, found)) => Err(Violation::Number { what, found }),
        None => Ok(()),
    }
}

fn check_reach(reach: &Reach) -> Result<(), Violation> {
    let found = reach.addresses.len();
    if found == 0 || found > REACH_ADDRESSES_MAX {
        return Err(Violation::ReachCount { found });
    }
    match &reach.coverage {
        Coverage::Part { hosts, .. } if hosts.len() > PART_HOSTS_MAX => {
            Err(Violation::HostCount { found: hosts.len() })
        }
        Coverage::Part { .. } | Coverage::Whole { .. } => Ok(()),
    }
}

/// Whether `address` is `http://HOST:PORT`, where the host is a name, an IPv4 address or an IPv6 address in
/// brackets.
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
        let reached = |addresses: usize, coverage: Coverage| {
            let address = "h:7742".parse().expect("an address");
            let key = wire::id::PeerKey([1; 32]);
            let addresses = vec![address; addresses];
            Record { reach: Some(Reach { root: key, peer: key, addresses, coverage }), ..good() }
        };
        let hosts = |count: usize| Coverage::Part { hosts: vec![good().host; count], hosts_total: 5000 };
        assert_eq!(check(&reached(REACH_ADDRESSES_MAX, hosts(PART_HOSTS_MAX))), Ok(()));
        let more = [
            reached(0, hosts(1)),
            reached(REACH_ADDRESSES_MAX + 1, hosts(1)),
            reached(1, hosts(PART_HOSTS_MAX + 1)),
        ];
        for record in odd.into_iter().chain(more) {
            assert!(check(&record).is_err(), "{record:?}");
        }
        for address in ["http://[::1]:80", "http://wn-1.example:7741", "http://10.0.0.1:1"] {
            assert_eq!(check(&addressed(address)), Ok(()), "{address}");
        }
    }
}
