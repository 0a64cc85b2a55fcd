//! Addresses for a token, at which joining hosts dial this host: its name and the addresses of its
//! interfaces.
//!
//! Rule: an address that means another host elsewhere (loopback, `localhost`) is left out; the name comes
//! first.
//! Not here: listing the interfaces (`serve::interfaces`), whether a daemon listens there.

use crate::exit::Failure;
use crate::serve::interfaces;
use std::net::{IpAddr, SocketAddr};
use wire::address::Address;
use wire::join::ADDRESSES_MAX;

/// Addresses of this host with `port`, its name first.
///
/// # Errors
/// If there is none.
pub(crate) fn find(host: &str, port: u16) -> Result<Vec<Address>, Failure> {
    let found = chosen(host, interfaces::addresses(), port);
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "this host has no address that others could reach; give one: --address HOST:{port}"
        )));
    }
    Ok(found)
}

fn chosen(host: &str, ips: Vec<IpAddr>, port: u16) -> Vec<Address> {
    let named = Address::try_from(format!("{host}:{port}").as_str()).ok().filter(|_| !is_local_name(host));
    let all = ips.into_iter().map(|ip| Address::from(SocketAddr::new(ip, port)));
    named.into_iter().chain(all).take(ADDRESSES_MAX).collect()
}

fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.starts_with("localhost.") || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_first_unless_it_means_another_host_elsewhere() {
        let ips = || vec![IpAddr::from([10, 0, 0, 5]), "2001:db8::5".parse().unwrap()];
        let check = |host: &str, expected: &[&str]| {
            let found = chosen(host, ips(), 7318);
            assert_eq!(found.iter().map(Address::as_str).collect::<Vec<_>>(), expected);
        };
        check("head", &["head:7318", "10.0.0.5:7318", "[2001:db8::5]:7318"]);
        for host in ["localhost", "localhost.localdomain", "no name"] {
            check(host, &["10.0.0.5:7318", "[2001:db8::5]:7318"]);
        }
        let many = (1..20).map(|n| IpAddr::from([10, 0, 0, n])).collect();
        assert_eq!(chosen("head", many, 1).len(), ADDRESSES_MAX);
    }

    #[test]
    fn this_host_is_found() {
        let found = find("head", 7318).unwrap();
        assert_eq!(found[0].as_str(), "head:7318");
        assert!(found.iter().all(|address| address.port() == 7318 && address.host() != "127.0.0.1"));
    }
}
