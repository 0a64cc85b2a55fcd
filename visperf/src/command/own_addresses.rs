//! Where others can reach this host: its name and the addresses of its interfaces.
//!
//! Rule: what only this host can reach (loopback, link-local addresses, bridges to its own containers and virtual
//! machines) is left out.
//! Not here: whether something listens there.

use crate::exit::Failure;
use nix::ifaddrs::getifaddrs;
use std::net::{IpAddr, SocketAddr};
use wire::address::Address;
use wire::join::ADDRESSES_MAX;

/// What the names of interfaces begin with that lead to this host's own containers and virtual machines.
const INNER: [&str; 7] = ["docker", "veth", "virbr", "br-", "cni", "lxc", "vnet"];

/// Addresses of this host with `port`, its name first.
///
/// # Errors
/// If the system does not tell, or there is none.
pub(crate) fn find(host: &str, port: u16) -> Result<Vec<Address>, Failure> {
    let interfaces =
        getifaddrs().map_err(|error| Failure::of("cannot list this host's interfaces", error))?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let ip = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(four), _) => IpAddr::V4(four.ip()),
            (None, Some(six)) => IpAddr::V6(six.ip()),
            (None, None) => return None,
        };
        Some((interface.interface_name, ip))
    });
    let found = chosen(host, addresses.collect(), port);
    if found.is_empty() {
        return Err(Failure::Usage(format!(
            "this host has no address that others could reach; tell them where to dial it: --address HOST:{port}"
        )));
    }
    Ok(found)
}

fn chosen(host: &str, mut interfaces: Vec<(String, IpAddr)>, port: u16) -> Vec<Address> {
    let named = Address::try_from(format!("{host}:{port}").as_str()).ok().filter(|_| !is_local_name(host));
    interfaces.retain(|(name, ip)| is_outer(*ip) && !INNER.iter().any(|inner| name.starts_with(inner)));
    // Addresses of version 4 first: nearly every site has them everywhere.
    interfaces.sort_by_key(|(_, ip)| ip.is_ipv6());
    let mut found: Vec<Address> = Vec::new();
    let all = interfaces.into_iter().map(|(_, ip)| Address::from(SocketAddr::new(ip, port)));
    for address in named.into_iter().chain(all) {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found.truncate(ADDRESSES_MAX);
    found
}

fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.starts_with("localhost.") || host.parse::<IpAddr>().is_ok()
}

fn is_outer(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !(ip.is_loopback() || ip.is_link_local() || ip.is_unspecified() || ip.is_multicast())
        }
        IpAddr::V6(ip) => {
            !(ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified() || ip.is_multicast())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_host_can_reach_is_left_out() {
        let interfaces = [
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth0", "2001:db8::5"),
            ("eth0", "fe80::5"),
            ("eth0", "10.0.0.5"),
            ("eth1", "169.254.1.1"),
            ("docker0", "172.17.0.1"),
            ("eth0", "10.0.0.5"),
        ];
        let interfaces: Vec<(String, IpAddr)> =
            interfaces.map(|(name, ip)| (name.to_owned(), ip.parse().unwrap())).to_vec();
        let check = |host: &str, expected: &[&str]| {
            let found = chosen(host, interfaces.clone(), 7318);
            assert_eq!(found.iter().map(Address::as_str).collect::<Vec<_>>(), expected);
        };
        check("head", &["head:7318", "10.0.0.5:7318", "[2001:db8::5]:7318"]);
        check("localhost", &["10.0.0.5:7318", "[2001:db8::5]:7318"]);
        check("no name", &["10.0.0.5:7318", "[2001:db8::5]:7318"]);
        let many: Vec<(String, IpAddr)> =
            (1..20).map(|n| ("e".to_owned(), IpAddr::from([10, 0, 0, n]))).collect();
        assert_eq!(chosen("head", many, 1).len(), ADDRESSES_MAX);
    }

    #[test]
    fn this_host_is_found() {
        let found = find("head", 7318).unwrap();
        assert_eq!(found[0].as_str(), "head:7318");
        assert!(found.iter().all(|address| address.port() == 7318 && address.host() != "127.0.0.1"));
    }
}
