//! Proxy on a lab host, set up as its operator would: with the commands of `docs/firewalls.md`; and the
//! smallest site that has one.
//!
//! Rule: only commands and configuration files are used; the output of one command is the input of the next.
//! Not here: domains and directories (`domains`), firewalls (`walls`).

use super::daemon::Daemon;
use super::domains::{Directory, Domain, OVERLAY, state, visperf};
use super::host::Host;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::PathBuf;

/// Port of its listener for clients.
pub const DOOR: u16 = 7321;

/// A proxy that has a certificate of a domain.
#[derive(Debug)]
pub struct Proxy {
    pub host: Host,
    /// `KEY@HOST:PORT`, with which daemons inside register.
    pub contact: String,
    port: u16,
    door: u16,
}

impl Proxy {
    /// Generate its key, and certify it by the root key of `domain`, which needs no connection between the
    /// two. Daemons reach it at `port`.
    ///
    /// # Errors
    /// If a command fails.
    pub fn join(host: &Host, port: u16, domain: &Domain, issuer: &Host) -> Result<Proxy> {
        let own = own_state(host);
        let key = visperf(host, &["key", "--state", &own])?;
        let name = format!("proxy-{}", host.name());
        let (key, of) = (key.trim(), state(issuer));
        let words = ["domain", "certify", key, "--host", &name, "--role", "viewer", "--state", &of];
        let certificate = host.folder().join(format!("{}.cert", domain.name));
        std::fs::write(&certificate, visperf(issuer, &words)?)?;
        visperf(host, &["join", &certificate.display().to_string(), "--state", &own])?;
        Ok(Proxy { host: host.clone(), contact: format!("{key}@{}:{port}", host.ipv4()), port, door: DOOR })
    }

    /// The same proxy with its client listener at `port`, which daemons inside then also register with.
    #[must_use]
    pub fn with_door(self, port: u16) -> Proxy {
        let at = self.contact.rsplit_once(':').map_or(self.contact.as_str(), |(at, _)| at);
        Proxy { contact: format!("{at}:{port}"), door: port, ..self }
    }

    /// Add an account; returns its secret. `more` are options of `visperf account add`.
    ///
    /// # Errors
    /// If the command fails.
    pub fn account(&self, name: &str, more: &[&str]) -> Result<String> {
        let own = own_state(&self.host);
        let words = [&["account", "add", name, "--json", "--state", &own], more].concat();
        let answer: Value = serde_json::from_str(&visperf(&self.host, &words)?)?;
        Ok(answer["secret"].as_str().context("the secret is printed")?.to_owned())
    }

    /// Start it next to `directories`, listening for clients from every host, with more lines for the section
    /// `[proxy]`.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self, directories: &[Directory], section: &str) -> Result<Daemon> {
        let contacts: Vec<&str> = directories.iter().map(|directory| directory.contact.as_str()).collect();
        let names = [self.host.ipv4().to_string()];
        let text = format!(
            "[overlay]\nlisten = \"0.0.0.0:{}\"\ndirectories = {contacts:?}\n[proxy]\nnames = {names:?}\n{section}\n",
            self.port
        );
        let file = self.host.folder().join("proxy.toml");
        std::fs::write(&file, text)?;
        let door = format!("0.0.0.0:{}", self.door);
        let words = ["proxy", "--door", &door, "--listen", "127.0.0.1:7317", "--log", "info", "--config"];
        let words: Vec<String> =
            words.map(str::to_owned).into_iter().chain([file.display().to_string()]).collect();
        self.host.daemon(&words)
    }

    /// URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.host.ipv4(), self.door)
    }

    /// Certificate that its clients trust.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.host.folder().join("proxy/proxy/certificate.pem")
    }
}

/// A domain with a proxy, and a directory outside that both know.
#[derive(Debug)]
pub struct Site {
    pub directory: Directory,
    pub proxy: Proxy,
    pub domain: Domain,
}

/// Running daemons of a site.
#[derive(Debug)]
pub struct Running {
    pub directory: Daemon,
    /// The sensors of the domain, the issuer's first.
    pub sensors: Vec<Daemon>,
    pub proxy: Daemon,
}

impl Site {
    /// The domain `UT-ICL` with the single host `head`, its proxy on `gate`, the directory on `outside`;
    /// nothing is started yet.
    ///
    /// # Errors
    /// If a command fails.
    pub fn prepare(outside: &Host, gate: &Host, head: &Host) -> Result<Site> {
        let domain = Domain::create("UT-ICL", std::slice::from_ref(head))?;
        let proxy = Proxy::join(gate, OVERLAY, &domain, head)?;
        Ok(Site { directory: Directory::new(outside)?, proxy, domain })
    }

    /// Start all daemons; `section` is added to the proxy's section `[proxy]`.
    ///
    /// # Errors
    /// If a daemon does not start.
    pub fn start(&self, section: &str) -> Result<Running> {
        let directory = self.directory.start(&[], &[&self.domain])?;
        let sensors = self.domain.start(std::slice::from_ref(&self.directory), |_| Vec::new())?;
        Ok(Running { directory, sensors, proxy: self.start_proxy(section)? })
    }

    /// Start only the proxy, as [`Site::start`] does.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_proxy(&self, section: &str) -> Result<Daemon> {
        self.proxy.start(std::slice::from_ref(&self.directory), section)
    }
}

fn own_state(host: &Host) -> String {
    host.folder().join("proxy").display().to_string()
}
