//! Domains and directories on lab hosts, set up as an operator would: with the commands of `docs/domains.md`.
//!
//! Rule: only commands and configuration files are used; the output of one command is the input of the next.
//! Not here: the hosts (`host`), the assertions on a grid (`system/`).

use super::daemon::Daemon;
use super::host::Host;
use super::measure::Stopwatch;
use crate::program;
use crate::query::Answer;
use crate::wait::Seen;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Timeout for daemons to agree: seconds, on a machine that builds at the same time.
pub const AGREED: Duration = Duration::from_secs(90);

/// Default port of the overlay.
pub const OVERLAY: u16 = 7318;

/// Run `visperf ARGUMENTS…` on a host; returns its standard output.
///
/// # Errors
/// If it cannot be run or fails; with its standard error.
pub fn visperf(host: &Host, arguments: &[&str]) -> Result<String> {
    visperf_by(program::visperf()?, host, arguments)
}

/// As [`visperf`], with another program than the one under test.
///
/// # Errors
/// As [`visperf`].
pub fn visperf_by(program: &Path, host: &Host, arguments: &[&str]) -> Result<String> {
    let output = host.run(|| Ok(program::command(program).args(arguments).output()?))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "visperf {arguments:?} on {}: {complaint}", host.name());
    Ok(String::from_utf8(output.stdout)?)
}

/// State folder of a host's sensor, as an argument.
#[must_use]
pub fn state(host: &Host) -> String {
    host.folder().join("sensor").display().to_string()
}

/// A directory to start: its host, and its contact for other daemons.
#[derive(Debug)]
pub struct Directory {
    pub host: Host,
    /// `KEY@HOST:PORT`.
    pub contact: String,
    port: u16,
    via: Option<String>,
}

impl Directory {
    /// Generate its key.
    ///
    /// # Errors
    /// If the command fails.
    pub fn new(host: &Host) -> Result<Directory> {
        Directory::at(host, OVERLAY)
    }

    /// As [`Directory::new`], at another port.
    ///
    /// # Errors
    /// If the command fails.
    pub fn at(host: &Host, port: u16) -> Result<Directory> {
        let state = host.folder().join("directory").display().to_string();
        let key = visperf(host, &["key", "--state", &state])?;
        Ok(Directory {
            host: host.clone(),
            contact: format!("{}@{}:{port}", key.trim(), host.ipv4()),
            port,
            via: None,
        })
    }

    /// The same directory, registered with a proxy, `KEY@HOST:PORT`, through which daemons without another
    /// route reach it.
    #[must_use]
    pub fn through(&self, proxy: &str) -> Directory {
        let key = self.contact.split_once('@').map_or(self.contact.as_str(), |(key, _)| key);
        let contact = format!("{key}@{proxy}");
        Directory { host: self.host.clone(), contact, port: self.port, via: Some(proxy.to_owned()) }
    }

    /// Start it next to the directories `all`, with these domains admitted by their root keys.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self, all: &[Directory], domains: &[&Domain]) -> Result<Daemon> {
        let mut text = String::from("[directory.domains]\n");
        for domain in domains {
            text.push_str(&format!("{} = {:?}\n", domain.name, domain.root));
        }
        text.push_str(&overlay_section(all));
        text.push_str(&format!("listen = \"0.0.0.0:{}\"\n", self.port));
        if let Some(via) = &self.via {
            text.push_str(&format!("via = [{via:?}]\n"));
        }
        let file = self.host.folder().join("directory.toml");
        std::fs::write(&file, text)?;
        let words = ["directory", "--listen", "127.0.0.1:7317", "--log", "info", "--config"];
        let words: Vec<String> =
            words.map(str::to_owned).into_iter().chain([file.display().to_string()]).collect();
        self.host.daemon(&words)
    }
}

fn overlay_section(directories: &[Directory]) -> String {
    let contacts: Vec<&str> = directories.iter().map(|directory| directory.contact.as_str()).collect();
    format!("[overlay]\ndirectories = {contacts:?}\n")
}

/// A domain; its first host is the issuer.
#[derive(Debug)]
pub struct Domain {
    pub name: String,
    pub root: String,
    hosts: Vec<Host>,
}

impl Domain {
    /// Create it on the first of `hosts`.
    ///
    /// # Errors
    /// If the command fails.
    pub fn create(name: &str, hosts: &[Host]) -> Result<Domain> {
        let first = hosts.first().context("a domain has a host")?;
        let words = ["domain", "create", name, "--json", "--host", first.name(), "--state", &state(first)];
        let answer: Value = serde_json::from_str(&visperf(first, &words)?)?;
        let root = answer["root"].as_str().context("the root is printed")?.to_owned();
        Ok(Domain { name: name.to_owned(), root, hosts: hosts.to_vec() })
    }

    /// Start the issuer's sensor, let the other hosts join by one token, and start their sensors; `options`
    /// returns extra arguments for each host's sensor.
    ///
    /// # Errors
    /// If a command fails, or a sensor does not start.
    pub fn start(
        &self,
        directories: &[Directory],
        options: impl Fn(&Host) -> Vec<String>,
    ) -> Result<Vec<Daemon>> {
        let first = &self.hosts[0];
        std::fs::write(first.folder().join("sensor.toml"), overlay_section(directories))?;
        let mut daemons = vec![sensor(first, &options(first))?];
        let words = ["token", "create", "--uses", "100", "--json", "--state", &state(first)];
        let mut words: Vec<&str> = words.to_vec();
        for directory in directories {
            words.extend(["--directory", &directory.contact]);
        }
        let answer: Value = serde_json::from_str(&visperf(first, &words)?)?;
        let token = answer["token"].as_str().context("the token is printed")?;
        for host in &self.hosts[1..] {
            visperf(host, &["join", token, "--host", host.name(), "--state", &state(host)])?;
            daemons.push(sensor(host, &options(host))?);
        }
        Ok(daemons)
    }
}

/// Start a host's sensor, with its configuration file if it has one.
///
/// # Errors
/// If it does not start.
pub fn sensor(host: &Host, more: &[String]) -> Result<Daemon> {
    sensor_by(program::visperf()?, host, more)
}

/// As [`sensor`], with another program than the one under test.
///
/// # Errors
/// As [`sensor`].
pub fn sensor_by(program: &Path, host: &Host, more: &[String]) -> Result<Daemon> {
    let mut words: Vec<String> =
        ["sensor", "--listen", "127.0.0.1:7317", "--log", "info"].map(str::to_owned).to_vec();
    let file = host.folder().join("sensor.toml");
    if file.exists() {
        words.extend(["--config".to_owned(), file.display().to_string()]);
    }
    words.extend_from_slice(more);
    host.daemon_by(program, &words)
}

/// Takes the daemon of a host out of these.
///
/// # Panics
/// If none is of that host.
pub fn take(daemons: &mut Vec<Daemon>, host: &str) -> Daemon {
    let at = daemons.iter().position(|daemon| daemon.host().name() == host);
    daemons.swap_remove(at.expect("a daemon of that host"))
}

/// The domain's representative according to each of `daemons`, if it answers; `params` may name the domain.
#[must_use]
pub fn representatives(daemons: &[Daemon], params: &Value) -> Vec<Option<String>> {
    let ask = |daemon: &Daemon| match daemon.ask("domain.summary", params) {
        Ok(Answer::Result(summary)) => summary["representative"].as_str().map(str::to_owned),
        Ok(Answer::Fault { .. }) | Err(_) => None,
    };
    daemons.iter().map(ask).collect()
}

/// The hosts that are to succeed the representative, according to `daemon`.
///
/// # Errors
/// If it does not answer.
pub fn standbys(daemon: &Daemon) -> Result<Vec<String>> {
    let hosts = daemon.result("domain.hosts", &json!({}))?;
    let rows = hosts["hosts"].as_array().context("a list of hosts is answered")?.iter();
    let standbys = rows.filter(|row| row["role"] == "standby").filter_map(|row| row["host"].as_str());
    Ok(standbys.map(ToOwned::to_owned).collect())
}

/// Wait until all name one representative other than `former`; returns it, and the time taken.
///
/// # Errors
/// If they do not agree within [`AGREED`]; with their output.
pub fn agreed(daemons: &[Daemon], former: Option<&str>) -> Result<(String, Duration)> {
    let look = || {
        let named = representatives(daemons, &json!({}));
        let all: BTreeSet<_> = named.iter().collect();
        Ok(match (all.len(), &named[0]) {
            (1, Some(one)) if Some(one.as_str()) != former => Seen::Done(one.clone()),
            _ => Seen::NotYet(format!("they name {named:?}")),
        })
    };
    let found = Stopwatch::start().until(AGREED, "one representative", look);
    let (took, one) = found.map_err(|error| {
        let outputs = daemons.iter().map(|daemon| format!("{}:\n{}", daemon.host().name(), daemon.output()));
        error.context(outputs.collect::<Vec<_>>().join("\n"))
    })?;
    Ok((one, took))
}

/// Wait until each daemon is connected to the representative and both standbys, and every daemon lists all of
/// them as hosts of the domain.
///
/// # Errors
/// If that takes longer than [`AGREED`].
pub fn settled(daemons: &[Daemon]) -> Result<()> {
    let all: BTreeSet<&str> = daemons.iter().map(|daemon| daemon.host().name()).collect();
    let look = || {
        for daemon in daemons {
            let guests = daemon.figure("overlay", "guests")?;
            // The representative may be changing.
            let hosts = daemon.result("domain.hosts", &json!({})).unwrap_or_default();
            let rows = hosts["hosts"].as_array().map_or(&[][..], Vec::as_slice);
            // The row of a host that has not reported yet has no sensor.
            let reported = rows.iter().filter(|row| row["sensor"].is_string());
            let names: BTreeSet<&str> = reported.filter_map(|row| row["host"].as_str()).collect();
            if guests < 3 || !names.is_superset(&all) {
                let name = daemon.host().name();
                return Ok(Seen::NotYet(format!("{name} has {guests} peers and reports {names:?}")));
            }
        }
        Ok(Seen::Done(()))
    };
    Stopwatch::start().until(AGREED, "members that know each other", look).map(|_| ())
}
