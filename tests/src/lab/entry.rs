//! The way into the lab: a test runs itself again as the first process of its own namespaces.
//!
//! Rule: whoever is outside only waits and hands on the output. The end of either side ends the other: the
//! inside ends when its standard input does, which the outside holds, and with the inside, the first of its
//! process namespace, the kernel ends all that ran there and frees the namespaces.
//! Not here: the hosts ([`super::network`]).

use super::facility;
use super::network::Network;
use crate::program;
use anyhow::{Context, Result, bail, ensure};
use rustix::mount::MountFlags;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the folder of the lab to the inside, and marks it as such.
const FOLDER: &str = "VISPERF_LAB";
/// The file by which the inside shows that the story was found there.
const ENTERED: &str = "entered";
/// What is unshared. The first process is the test itself, and ends with unshare(1).
const NAMESPACES: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Numbers of the capabilities that making namespaces and links needs, as in `CapEff`.
const SYS_ADMIN: u32 = 21;
const NET_ADMIN: u32 = 12;

/// The lab of one story, seen from inside.
#[derive(Debug)]
pub struct Lab {
    folder: PathBuf,
}

impl Lab {
    /// A folder of this story, which is gone after it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes hosts h1 to hN, all linked. A lab has one network.
    ///
    /// # Errors
    /// If the machine lacks something, which is named.
    pub fn network(&self, hosts: u16) -> Result<Network> {
        Network::make(&self.folder, hosts)
    }

    /// Hides a program (`nft`, `unshare`) from the rest of the story, to see what happens without it.
    ///
    /// # Errors
    /// If it cannot be hidden.
    pub fn hide(&self, program: &str) -> Result<()> {
        let nothing = self.folder.join("nothing");
        std::fs::write(&nothing, "")?;
        facility::hide(program, &nothing)
    }
}

/// Enters the lab for a story: `story` is the name of the test that calls this, as the test program knows it
/// (`file::function`). Outside it runs the test again inside, hands on its output, and gives `None` when it
/// passed there; inside it gives the lab.
///
/// ```no_run
/// # use system_tests::lab;
/// let Some(lab) = lab::enter("lab_network::hosts_reach_each_other").unwrap() else { return };
/// let network = lab.network(2).unwrap();
/// ```
///
/// # Errors
/// If the machine lacks something, which is named, or the story failed inside.
pub fn enter(story: &str) -> Result<Option<Lab>> {
    match std::env::var_os(FOLDER) {
        Some(folder) if std::process::id() == 1 => inside(PathBuf::from(folder)).map(Some),
        Some(_) | None => outside(story).map(|()| None),
    }
}

fn outside(story: &str) -> Result<()> {
    let way = way_in()?;
    let folder = tempfile::tempdir()?;
    let (output, told) = std::io::pipe()?;
    let mut command = unshare(&way)?;
    command.arg(std::env::current_exe()?);
    command.args(["--exact", story, "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder.path());
    // Found, and built where needed, before there is no network any more.
    command.env("VISPERF_BIN", program::visperf()?);
    let mut child = command.stdin(Stdio::piped()).stdout(told.try_clone()?).stderr(told).spawn()?;
    // The command holds the writing end; without it the output ends with the last process inside.
    drop(command);
    for line in BufReader::new(output).split(b'\n') {
        super::tell(&format!("    {}", String::from_utf8_lossy(&line?)));
    }
    let ended = child.wait()?;
    ensure!(ended.success(), "the story {story} failed in the lab ({ended}); what it said stands above");
    ensure!(
        folder.path().join(ENTERED).exists(),
        "the story {story} did not enter the lab: that must be the name of the test itself"
    );
    Ok(())
}

/// How namespaces can be made here, as arguments of unshare(1): with root's capabilities as they are, else
/// with those of a user namespace.
fn way_in() -> Result<Vec<&'static str>> {
    let mut way = if has_capabilities() { vec![] } else { vec!["--user", "--map-root-user"] };
    way.extend(NAMESPACES);
    let probe = unshare(&way)?.arg("true").stdin(Stdio::null()).output()?;
    if !probe.status.success() {
        bail!(facility::why_no_namespaces(&facility::said(&probe)));
    }
    Ok(way)
}

fn has_capabilities() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    [SYS_ADMIN, NET_ADMIN].iter().all(|capability| bits & (1 << capability) != 0)
}

fn unshare(way: &[&str]) -> Result<Command> {
    let mut command = facility::command("unshare")?;
    command.args(way);
    Ok(command)
}

fn inside(folder: PathBuf) -> Result<Lab> {
    std::fs::write(folder.join(ENTERED), "")?;
    end_with_the_outside()?;
    rustix::mount::mount("lab", "/run", "tmpfs", MountFlags::empty(), None)
        .context("the lab needs a tmpfs of its own on /run")?;
    facility::run("ip", "link set lo up")?;
    // The ends of the links that are not in a host only pass frames on, and say nothing themselves.
    for which in ["all", "default"] {
        let setting = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        if Path::new(&setting).exists() {
            std::fs::write(&setting, "1").with_context(|| setting)?;
        }
    }
    Ok(Lab { folder })
}

/// The first process of a process namespace takes all others with it.
fn end_with_the_outside() -> Result<()> {
    let watch = || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        std::process::exit(1);
    };
    std::thread::Builder::new().name("outside".into()).spawn(watch)?;
    Ok(())
}
