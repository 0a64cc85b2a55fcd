//! Firewalls of hosts of the lab, as the administrators of sites have them: rules of nft in the hosts' own namespaces.
//!
//! Rule: a wall stays until the lab ends; a story shows that it holds before it goes on.
//! Not here: faults of the network between hosts (`lab::network`).

use super::facility::run_with;
use super::host::Host;
use anyhow::Result;
use std::net::Ipv4Addr;

/// A firewall of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wall {
    /// Connections come in from these alone; answers to its own pass.
    NoInbound {
        /// Its own site.
        but: Vec<Ipv4Addr>,
    },
    /// Connections go out to these ports alone; nothing comes in but from its own site.
    OnlyOut {
        /// Which ports.
        ports: Vec<u16>,
        /// Its own site.
        but: Vec<Ipv4Addr>,
    },
    /// As [`Wall::OnlyOut`] to one port, and what goes there passes a host that looks into it.
    Looked {
        /// Which port.
        port: u16,
        /// Where that host listens.
        at: (Ipv4Addr, u16),
        /// Its own site.
        but: Vec<Ipv4Addr>,
    },
}

/// Addresses of a private network of two.
#[derive(Clone, Copy, Debug)]
pub struct Private {
    /// Of its head, which has another one outside.
    pub head: Ipv4Addr,
    /// Of its worker, which has no other.
    pub worker: Ipv4Addr,
}

impl Wall {
    /// Put it up before `host`.
    ///
    /// # Errors
    /// If nft cannot do so.
    pub fn put_up(&self, host: &Host) -> Result<()> {
        host.run(|| run_with("nft", "-f -", &self.rules()))
    }

    /// Take the wall of `host` down.
    ///
    /// # Errors
    /// If there is none.
    pub fn take_down(host: &Host) -> Result<()> {
        host.run(|| run_with("nft", "-f -", "delete table inet wall\n"))
    }

    /// Move `worker` into a private network behind `head`: no other has a way to it, and it has a way to the head.
    ///
    /// # Errors
    /// If ip cannot do so.
    pub fn private(head: &Host, worker: &Host) -> Result<Private> {
        Wall::private_within(9, head, worker)
    }

    /// The same, of that number: one may lie within another.
    ///
    /// # Errors
    /// If ip cannot do so.
    pub fn private_within(number: u8, head: &Host, worker: &Host) -> Result<Private> {
        let at = |host| Ipv4Addr::new(192, 168, number, host);
        let private = Private { head: at(1), worker: at(2) };
        head.run(|| run_with("ip", "-batch -", &format!("addr add {}/24 dev eth0\n", private.head)))?;
        let mut batch = format!("addr flush dev eth0\naddr add {}/24 dev eth0\n", private.worker);
        batch.push_str("link set eth0 up\n");
        worker.run(|| run_with("ip", "-batch -", &batch))?;
        Ok(private)
    }

    /// Let `worker` out of the private network: `head` passes its connections on as its own, and none in.
    ///
    /// # Errors
    /// If ip, nft or the kernel cannot do so.
    pub fn translate(private: Private, head: &Host, worker: &Host) -> Result<()> {
        Wall::translate_by("masquerade", None, private, head, worker)
    }

    /// The same in the words of nft, `masquerade random` perhaps; what comes to `port` of the head, if one is given, is led to
    /// the worker.
    ///
    /// # Errors
    /// If ip, nft or the kernel cannot do so.
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
            // Both networks are on one wire: the worker would be told to go round its head.
            for name in ["all", "eth0"] {
                std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/send_redirects"), "0")?;
            }
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            run_with("nft", "-f -", &rules)
        })?;
        worker.run(|| run_with("ip", "-batch -", &format!("route add default via {}\n", private.head)))
    }

    /// Let `host` forget a connection that was idle for `secs`, and take nothing of one that it does not know.
    ///
    /// # Errors
    /// If nft or the kernel cannot do so.
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
