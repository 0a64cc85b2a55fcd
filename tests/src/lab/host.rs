//! Lab host: a network namespace with loopback and one link, in which closures and daemons run.
//!
//! Rule: code for a host runs on a thread that entered its namespace and ends there; no other thread of the
//! test ever leaves the lab's own namespace. Processes started by such a thread are in the host too. Hosts
//! share processes, users, files and the clock.
//! Not here: links and faults ([`super::network`]).

use super::daemon::Daemon;
use super::held::Processes;
use crate::grid::READY;
use crate::program;
use crate::query::{self, Answer};
use anyhow::{Context, Result};
use nix::net::if_::InterfaceFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// A host; a clone is the same host.
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    number: u16,
    ipv6: Option<Ipv6Addr>,
    folder: PathBuf,
    namespace: File,
    processes: Processes,
}

impl Host {
    /// Open a host in a namespace that ip(8) created.
    pub(super) fn open(number: u16, has_ipv6: bool, lab: &Path) -> Result<Host> {
        let name = format!("h{number}");
        let path = Path::new("/run/netns").join(&name);
        let namespace = File::open(&path).with_context(|| path.display().to_string())?;
        let folder = lab.join(&name);
        std::fs::create_dir_all(&folder)?;
        let ipv6 = has_ipv6.then(|| Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number));
        Ok(Host(Arc::new(Inner { name, number, ipv6, folder, namespace, processes: Processes::default() })))
    }

    /// Its name: `h1` for the first host.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn number(&self) -> u16 {
        self.0.number
    }

    pub(super) fn processes(&self) -> Processes {
        Arc::clone(&self.0.processes)
    }

    /// Its IPv4 address on the network.
    #[must_use]
    pub fn ipv4(&self) -> Ipv4Addr {
        let [high, low] = self.0.number.to_be_bytes();
        Ipv4Addr::new(10, 77, high, low)
    }

    /// Its IPv6 address, if the kernel has IPv6.
    #[must_use]
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.0.ipv6
    }

    /// Its own folder, for configuration, logs and state; other hosts see it too, as they see all files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Run a closure in this host: the sockets it creates and the processes it starts belong to the host, and
    /// stay there whichever thread uses them afterwards.
    ///
    /// # Errors
    /// If the host cannot be entered, or those of the closure.
    ///
    /// # Panics
    /// If the closure does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let within = || {
            move_into_link_name_space(self.0.namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .with_context(|| format!("cannot enter the host {}", self.0.name))?;
            work()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(self.0.name.clone()).spawn_scoped(scope, within)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether its link has a carrier, as seen from the host.
    pub(super) fn has_carrier(&self) -> Result<bool> {
        self.run(|| {
            let interfaces = nix::ifaddrs::getifaddrs().context("cannot list interfaces")?;
            let mut link = interfaces.filter(|found| found.interface_name == "eth0");
            Ok(link.any(|found| found.flags.contains(InterfaceFlags::IFF_RUNNING)))
        })
    }

    /// Start `visperf ARGUMENTS…` in this host; it may not be ready yet. Its state is in [`Host::folder`], in
    /// a folder named by its first argument (`sensor`, `directory`, `up`), and stays there for the next
    /// start.
    ///
    /// # Errors
    /// If the program is missing or cannot be started.
    pub fn spawn<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Daemon> {
        self.spawn_by(program::visperf()?, arguments)
    }

    fn spawn_by<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Result<Daemon> {
        let arguments: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
        let state = self.0.folder.join(arguments.first().context("expected the command of a daemon")?);
        let (daemon, held) = Daemon::spawn(program, self, &state, &arguments)?;
        self.0.processes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&held));
        Ok(daemon)
    }

    /// Start `visperf ARGUMENTS…` in this host and wait until it answers there.
    ///
    /// # Errors
    /// As [`Host::spawn`], or if it is not ready in time; with its output.
    pub fn daemon<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Daemon> {
        self.daemon_by(program::visperf()?, arguments)
    }

    /// As [`Host::daemon`], with another `visperf` than the one under test.
    ///
    /// # Errors
    /// As [`Host::daemon`].
    pub fn daemon_by<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Result<Daemon> {
        let mut daemon = self.spawn_by(program, arguments)?;
        daemon.ready(READY)?;
        Ok(daemon)
    }

    /// Call a method at an address, from this host.
    ///
    /// # Errors
    /// If no well-formed answer was received.
    pub fn ask(&self, address: SocketAddr, method: &str, params: &Value) -> Result<Answer> {
        self.run(|| query::ask(address, method, params)).with_context(|| format!("from {}", self.0.name))
    }
}
