//! Firewalls of lab hosts, as administrators of sites set them up: nft rules in the hosts' own namespaces.
//!
//! Rule: a firewall stays until the lab ends; a test verifies that it is effective before it continues.
//! Not here: faults of the network between hosts (`lab::network`).

use super::facility::run_with;
use super::host::Host;
use anyhow::Result;
use std::net::Ipv4Addr;

/// Firewall of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wall {
    /// Inbound connections only from these addresses; replies to its own connections pass.
    NoInbound {
        /// Addresses of its own site.
        but: Vec<Ipv4Addr>,
    },
    /// Outbound connections only to these ports; inbound ones only from its own site.
    OnlyOut {
        /// Allowed TCP ports.
        ports: Vec<u16>,
        /// Addresses of its own site.
        but: Vec<Ipv4Addr>,
    },
    /// As [`Wall::OnlyOut`] with one port, whose connections are redirected to an inspecting host.
    Looked {
        /// Allowed TCP port.
        port: u16,
        /// Address and port of the inspecting host.
        at: (Ipv4Addr, u16),
        /// Addresses of its own site.
        but: Vec<Ipv4Addr>,
    },
}

/// Addresses in a private network of two hosts.
#[derive(Clone, Copy, Debug)]
pub struct Private {
    /// Address of its head, which also has one outside.
    pub head: Ipv4Addr,
    /// Address of its worker, which has no other.
    pub worker: Ipv4Addr,
}

impl Wall {
    /// Install it on `host`.
    ///
    /// # Errors
    /// If nft fails.
    pub fn put_up(&self, host: &Host) -> Result<()> {
        host.run(|| run_with("nft", "-f -", &self.rules()))
    }

    /// Remove the firewall of `host`.
    ///
    /// # Errors
    /// If there is none.
    pub fn take_down(host: &Host) -> Result<()> {
        host.run(|| run_with("nft", "-f -", "delete table inet wall\n"))
    }

    /// Move `worker` into a private network behind `head`: only the head has a route to it, and it has one
    /// only to the head.
    ///
    /// # Errors
    /// If ip(8) fails.
    pub fn private(head: &Host, worker: &Host) -> Result<Private> {
        Wall::private_within(9, head, worker)
    }

    /// As [`Wall::private`], in the network of that number: private networks may be nested.
    ///
    /// # Errors
    /// If ip(8) fails.
    pub fn private_within(number: u8, head: &Host, worker: &Host) -> Result<Private> {
        let at = |host| Ipv4Addr::new(192, 168, number, host);
        let private = Private { head: at(1), worker: at(2) };
        head.run(|| run_with("ip", "-batch -", &format!("addr add {}/24 dev eth0\n", private.head)))?;
        let mut batch = format!("addr flush dev eth0\naddr add {}/24 dev eth0\n", private.worker);
        batch.push_str("link set eth0 up\n");
        worker.run(|| run_with("ip", "-batch -", &batch))?;
        Ok(private)
    }

    /// Give `worker` NAT out of the private network: `head` forwards its connections as its own, and none in.
    ///
    /// # Errors
    /// If ip(8), nft or the kernel refuses.
    pub fn translate(private: Private, head: &Host, worker: &Host) -> Result<()> {
        Wall::translate_by("masquerade", None, private, head, worker)
    }

    /// As [`Wall::translate`], with the NAT statement of nft in `how`, such as `masquerade random`;
    /// connections to `port` of the head, if given, are redirected to the worker.
    ///
    /// # Errors
    /// If ip(8), nft or the kernel refuses.
    pub fn translate_by(
        how: &str,
        port: Option<u16>,
        private: Private,
        head: &Host,
        worker: &Host,
    ) -> Result<()> {
        let led = port.map(|port| {
            let to = private.worker;
            format!(
                "chain led {{\ntype nat hook prerouting priority -100\nip saddr != {to} tcp dport {port} dnat to {to}\n}}\n"
            )
        });
        let rules = format!(
            "table ip nat {{\n{}chain out {{\ntype nat hook postrouting priority 100\nip saddr {} {how}\n}}\n}}\n",
            led.unwrap_or_default(),
            private.worker
        );
        head.run(|| {
            // Both networks are on one wire: the kernel would send the worker redirects that bypass its head.
            for name in ["all", "eth0"] {
                std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/send_redirects"), "0")?;
            }
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            run_with("nft", "-f -", &rules)
        })?;
        worker.run(|| run_with("ip", "-batch -", &format!("route add default via {}\n", private.head)))
    }

    /// Make `host` drop its state of a connection that was idle for `secs`, and discard packets of unknown
    /// connections.
    ///
    /// # Errors
    /// If nft or the kernel refuses.
    pub fn forget_idle(host: &Host, secs: u32) -> Result<()> {
        let rules = "table inet forgetful {\nchain pass {\ntype filter hook forward priority 0\nct state invalid drop\n}\n}\n";
        host.run(|| {
            let settings = "/proc/sys/net/netfilter";
            std::fs::write(format!("{settings}/nf_conntrack_tcp_timeout_established"), secs.to_string())?;
            std::fs::write(format!("{settings}/nf_conntrack_tcp_loose"), "0")?;
            run_with("nft", "-f -", rules)
        })
    }

    fn rules(&self) -> String {
        let site = |but: &[Ipv4Addr]| {
            let all: Vec<String> = but.iter().map(Ipv4Addr::to_string).collect();
            match all.is_empty() {
                true => String::new(),
                false => format!("ip saddr {{ {} }} accept", all.join(", ")),
            }
        };
        let chain = |hook: &str, rules: &str| {
            format!(
                "chain {hook} {{\ntype filter hook {hook} priority 0; policy drop;\nct state established,related accept\n\
                 meta l4proto ipv6-icmp accept\n{rules}\n}}\n"
            )
        };
        let input = |but: &[Ipv4Addr]| chain("input", &format!("iif lo accept\n{}", site(but)));
        let chains = match self {
            Wall::NoInbound { but } => input(but),
            Wall::OnlyOut { ports, but } => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                let out = format!(
                    "oif lo accept\n{}\ntcp dport {{ {} }} accept",
                    site(but).replace("saddr", "daddr"),
                    ports.join(", ")
                );
                input(but) + &chain("output", &out)
            }
            Wall::Looked { port, at: (host, there), but } => {
                let nat = format!(
                    "chain led {{\ntype nat hook output priority -100\ntcp dport {port} dnat ip to {host}:{there}\n}}\n"
                );
                let out = format!(
                    "oif lo accept\n{}\nip daddr {host} tcp dport {there} accept",
                    site(but).replace("saddr", "daddr")
                );
                nat + &input(but) + &chain("output", &out)
            }
        };
        format!("table inet wall {{\n{chains}}}\n")
    }
}
