//! Network of the lab: hosts on one bridge, and the faults that a test injects.
//!
//! Rule: faults stay until they are healed, and are injected and healed from outside the hosts, on threads of
//! the test itself; a fault is in effect when its function returns.
//! Not here: cuts and losses as a filter ([`super::faults`]); late links ([`super::wire`]).

use super::delay::Delay;
use super::facility::{output, run, run_with};
use super::faults::Faults;
use super::held::Starver;
use super::host::Host;
use super::wire::Wire;
use crate::wait::{self, Seen};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most hosts of a network: each is a namespace of some hundred kilobytes of kernel memory, and results from
/// a machine that runs more daemons than this are meaningless.
pub const HOSTS_MAX: u16 = 200;
/// Queue limit of a rate-limited link, in milliseconds of its rate.
const QUEUE_MS: u32 = 400;
/// Smallest burst of a rate-limited link, in bytes: a few whole frames.
const BURST_MIN: u32 = 16_000;

/// Timeout for links that were set up to carry frames: the kernel takes up to a second for that.
const CARRIES: Duration = Duration::from_secs(20);

/// Hosts h1 to hN, each linked to all others.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    names: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    wires: BTreeMap<String, Wire>,
    limited: BTreeSet<String>,
    down: BTreeSet<String>,
    starvers: BTreeMap<String, Starver>,
}

impl State {
    /// The end of a host's link that is outside the host.
    fn near_end(&self, host: &Host) -> String {
        let letter = if self.wires.contains_key(host.name()) { 'w' } else { 'h' };
        format!("{letter}{}", host.number())
    }
}

impl Network {
    pub(super) fn make(folder: &Path, hosts: u16) -> Result<Network> {
        ensure!((1..=HOSTS_MAX).contains(&hosts), "expected 1 to {HOSTS_MAX} hosts, found {hosts}");
        let mut batch = "link add lab type bridge stp_state 0 mcast_snooping 0\nlink set lab up\n".to_owned();
        for host in 1..=hosts {
            let _ = writeln!(batch, "netns add h{host}");
            let _ = writeln!(batch, "link add h{host} type veth peer name eth0 netns h{host}");
            let _ = writeln!(batch, "link set h{host} master lab up");
        }
        run_with("ip", "-batch -", &batch)?;
        let has_ipv6 = Path::new("/proc/sys/net/ipv6").exists();
        let hosts: Vec<Host> =
            (1..=hosts).map(|number| Host::open(number, has_ipv6, folder)).collect::<Result<_>>()?;
        for host in &hosts {
            let mut batch = format!("link set lo up\naddr add {}/16 dev eth0\n", host.ipv4());
            if let Some(ipv6) = host.ipv6() {
                let _ = writeln!(batch, "addr add {ipv6}/64 dev eth0 nodad");
            }
            batch.push_str("link set eth0 up\n");
            host.run(|| run_with("ip", "-batch -", &batch))?;
        }
        let names = folder.join("hosts");
        std::fs::write(&names, "")?;
        rustix::mount::mount_bind(&names, "/etc/hosts")
            .context("cannot put the names of the hosts in place")?;
        let network = Network { hosts, names, state: Mutex::default() };
        network.know_names()?;
        network.apply(|_| ())?;
        await_links(&network.hosts)?;
        Ok(network)
    }

    /// All hosts in the order of their numbers.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host with this name.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn host(&self, name: &str) -> &Host {
        let found = self.hosts.iter().find(|host| host.name() == name);
        found.unwrap_or_else(|| panic!("expected a host from h1 to h{}, found {name}", self.hosts.len()))
    }

    /// Run a closure for all hosts concurrently; returns the results in the order of the hosts.
    ///
    /// # Errors
    /// The first host's error, with the host's name.
    ///
    /// # Panics
    /// If the closure does.
    pub fn each<T: Send>(&self, work: impl Fn(&Host) -> Result<T> + Sync) -> Result<Vec<T>> {
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> =
                self.hosts.iter().map(|host| (host, scope.spawn(move || work(host)))).collect();
            let joined = threads.into_iter().map(|(host, thread)| {
                let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                done.with_context(|| host.name().to_owned())
            });
            joined.collect()
        })
    }

    /// Block all frames between two hosts.
    ///
    /// # Errors
    /// If the filter cannot be set.
    pub fn cut(&self, one: &str, other: &str) -> Result<()> {
        self.apply(|faults| faults.cut(self.host(one).name(), self.host(other).name()))
    }

    /// Block all frames from one host to another; the other direction stays open.
    ///
    /// # Errors
    /// If the filter cannot be set.
    pub fn cut_one_way(&self, from: &str, to: &str) -> Result<()> {
        self.apply(|faults| faults.cut_one_way(self.host(from).name(), self.host(to).name()))
    }

    /// Undo the cuts between two hosts.
    ///
    /// # Errors
    /// If the filter cannot be set.
    pub fn heal(&self, one: &str, other: &str) -> Result<()> {
        self.apply(|faults| faults.heal(self.host(one).name(), self.host(other).name()))
    }

    /// Cut each group of hosts from all other groups; a host in no group stays linked to all.
    ///
    /// # Errors
    /// If the filter cannot be set.
    pub fn partition(&self, groups: &[&[&str]]) -> Result<()> {
        groups.iter().flat_map(|group| group.iter()).for_each(|name| _ = self.host(name));
        self.apply(|faults| faults.partition(groups))
    }

    /// Drop this percentage of the frames to a host, and of those from it; 0 drops none. Between two such
    /// hosts both drop.
    ///
    /// # Errors
    /// If the filter cannot be set.
    pub fn loss(&self, host: &str, percent: u32) -> Result<()> {
        ensure!(percent <= 100, "expected a loss of 0 to 100 percent, found {percent}");
        self.apply(|faults| faults.set_loss(self.host(host).name(), percent))
    }

    /// Unplug a host's cable.
    ///
    /// # Errors
    /// If the link cannot be changed.
    pub fn link_down(&self, host: &str) -> Result<()> {
        let (host, mut state) = (self.host(host), self.state());
        run("ip", &format!("link set {} down", state.near_end(host)))?;
        state.down.insert(host.name().to_owned());
        Ok(())
    }

    /// Plug it in again.
    ///
    /// # Errors
    /// If the link cannot be changed.
    pub fn link_up(&self, host: &str) -> Result<()> {
        let (host, mut state) = (self.host(host), self.state());
        run("ip", &format!("link set {} up", state.near_end(host)))?;
        state.down.remove(host.name());
        await_links(std::slice::from_ref(host))
    }

    /// Limit a host's link, in each direction, to this many kilobits a second. Frames that would be queued
    /// for longer than 400 ms are dropped.
    ///
    /// # Errors
    /// If the limit cannot be set.
    pub fn rate(&self, host: &str, kbit: u32) -> Result<()> {
        ensure!(kbit > 0, "expected a rate, found 0; to cut a link is another thing");
        let (host, mut state) = (self.host(host), self.state());
        // The bytes of 10 ms, so that the kernel's clock does not slow down a fast link.
        let burst = (kbit.saturating_mul(1000) / 8 / 100).max(BURST_MIN);
        let limit = |end: &str| {
            run(
                "tc",
                &format!(
                    "qdisc replace dev {end} root tbf rate {kbit}kbit burst {burst} latency {QUEUE_MS}ms"
                ),
            )
        };
        host.run(|| limit("eth0"))?;
        limit(&state.near_end(host))?;
        state.limited.insert(host.name().to_owned());
        Ok(())
    }

    /// Remove the limit of a host's link.
    ///
    /// # Errors
    /// If there is none, or it cannot be removed.
    pub fn full_rate(&self, host: &str) -> Result<()> {
        let (host, mut state) = (self.host(host), self.state());
        host.run(|| run("tc", "qdisc del dev eth0 root"))?;
        run("tc", &format!("qdisc del dev {} root", state.near_end(host)))?;
        state.limited.remove(host.name());
        Ok(())
    }

    /// Delay a host's link in each direction; a zero delay heals it. On the first call the cable is unplugged
    /// and plugged in again for some milliseconds.
    ///
    /// # Errors
    /// If the link cannot be changed, or has failed.
    pub fn delay(&self, host: &str, delay: Delay) -> Result<()> {
        let (host, mut state) = (self.host(host), self.state());
        if !state.wires.contains_key(host.name()) {
            ensure!(!state.down.contains(host.name()), "expected the link of {} to be up", host.name());
            let wire = lay_wire(host)?;
            state.wires.insert(host.name().to_owned(), wire);
        }
        state.wires[host.name()].set(delay)
    }

    /// Heal all faults of the network: cuts, losses, links that are down, limited or late, and names.
    /// Throttled hosts stay throttled.
    ///
    /// # Errors
    /// If a fault cannot be healed.
    pub fn heal_all(&self) -> Result<()> {
        let (down, limited) = {
            let state = self.state();
            state.wires.values().try_for_each(|wire| wire.set(Delay::default()))?;
            (state.down.clone(), state.limited.clone())
        };
        down.iter().try_for_each(|host| self.link_up(host))?;
        limited.iter().try_for_each(|host| self.full_rate(host))?;
        self.know_names()?;
        self.apply(|faults| *faults = Faults::default())
    }

    /// Limit each daemon of a host, also those started later, to this percentage of one core.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn starve(&self, host: &str, percent: u32) -> Result<()> {
        ensure!((1..=100).contains(&percent), "expected 1 to 100 percent of a core, found {percent}");
        let (host, mut state) = (self.host(host), self.state());
        // Two throttles would disagree on which process may run.
        state.starvers.remove(host.name());
        let starver = Starver::start(host.processes(), percent)?;
        state.starvers.insert(host.name().to_owned(), starver);
        Ok(())
    }

    /// Remove the processor limit of a host's daemons.
    pub fn feed(&self, host: &str) {
        self.state().starvers.remove(self.host(host).name());
    }

    /// Make the names h1 to hN resolve to their hosts' addresses, as they do initially.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn know_names(&self) -> Result<()> {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for host in &self.hosts {
            let _ = writeln!(text, "{} {}", host.ipv4(), host.name());
        }
        self.write_names(&text)
    }

    /// Make the names of the hosts unresolvable, as if DNS had failed. The resolver fails at once: no name
    /// server can be reached from a host.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget_names(&self) -> Result<()> {
        self.write_names("127.0.0.1 localhost\n::1 localhost\n")
    }

    fn write_names(&self, text: &str) -> Result<()> {
        // The file is a mount point, so it is overwritten and not replaced.
        std::fs::write(&self.names, text).with_context(|| self.names.display().to_string())
    }

    fn apply(&self, change: impl FnOnce(&mut Faults)) -> Result<()> {
        let mut state = self.state();
        let mut faults = state.faults.clone();
        change(&mut faults);
        run_with("nft", "-f -", &faults.filter())?;
        state.faults = faults;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Insert a wire between a host and its port of the bridge. The port keeps its name, which the filter uses.
fn lay_wire(host: &Host) -> Result<Wire> {
    let number = host.number();
    let steps = [
        format!("link set h{number} down"),
        format!("link set h{number} nomaster"),
        format!("link set h{number} name w{number}"),
        format!("link add h{number} type veth peer name x{number}"),
        format!("link set x{number} up"),
        format!("link set h{number} master lab up"),
    ];
    run_with("ip", "-batch -", &steps.join("\n"))?;
    // Frames that the wire reads must be complete, with checksums, and no longer than the link allows.
    let whole = |end: &str| run("ethtool", &format!("-K {end} tx off tso off gso off"));
    host.run(|| whole("eth0"))?;
    whole(&format!("h{number}"))?;
    run("ip", &format!("link set w{number} up"))?;
    await_links(std::slice::from_ref(host))?;
    Wire::start(&format!("w{number}"), &format!("x{number}"), u64::from(number))
}

/// Wait until these hosts see a carrier and the bridge forwards to them: before that, frames are dropped.
fn await_links(hosts: &[Host]) -> Result<()> {
    wait::until(CARRIES, "links that carry frames", || {
        let ports: Value = serde_json::from_slice(&output("ip", "-j -d link show master lab", "")?)?;
        let forwards = |host: &&Host| {
            let port = ports.as_array()?.iter().find(|port| port["ifname"] == json!(host.name()))?;
            Some(port["linkinfo"]["info_slave_data"]["state"] == json!("forwarding"))
        };
        let waits = hosts.iter().find(|host| forwards(host) != Some(true));
        if let Some(host) = waits {
            return Ok(Seen::NotYet(format!("the bridge does not forward to {}", host.name())));
        }
        for host in hosts {
            if !host.has_carrier()? {
                return Ok(Seen::NotYet(format!("{} sees no carrier", host.name())));
            }
        }
        Ok(Seen::Done(()))
    })
}
