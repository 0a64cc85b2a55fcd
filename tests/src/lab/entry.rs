//! Entry into the lab: a test runs itself again as the first process of new namespaces.
//!
//! Rule: the outer process only waits and forwards the output. The end of either process ends the other: the
//! inner one ends when its standard input, which the outer one holds, is closed; and when the inner one ends,
//! which is the first process of its process namespace, the kernel kills all processes there and frees the
//! namespaces.
//! Not here: the hosts ([`super::network`]).

use super::facility;
use super::network::Network;
use crate::program;
use anyhow::{Context, Result, bail, ensure};
use rustix::mount::MountFlags;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable that names the lab's folder for the inner process, and marks it as such.
const FOLDER: &str = "VISPERF_LAB";
/// File that the inner process writes to show that the test was found there.
const ENTERED: &str = "entered";
/// Namespaces to unshare. The first process is the test itself, and ends with unshare(1).
const NAMESPACES: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Numbers of the capabilities needed to create namespaces and links, as in `CapEff`.
const SYS_ADMIN: u32 = 21;
const NET_ADMIN: u32 = 12;

/// The lab of one test, seen from inside.
#[derive(Debug)]
pub struct Lab {
    folder: PathBuf,
}

impl Lab {
    /// Folder of this test, removed after it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Create hosts h1 to hN, all linked. A lab has one network.
    ///
    /// # Errors
    /// If the machine lacks something, which the error names.
    pub fn network(&self, hosts: u16) -> Result<Network> {
        Network::make(&self.folder, hosts)
    }

    /// Hide a program (`nft`, `unshare`) for the rest of the test, to see what happens without it.
    ///
    /// # Errors
    /// If it cannot be hidden.
    pub fn hide(&self, program: &str) -> Result<()> {
        let nothing = self.folder.join("nothing");
        std::fs::write(&nothing, "")?;
        facility::hide(program, &nothing)
    }
}

/// Enter the lab for a test: `story` is the name of the calling test, as the test program knows it
/// (`file::function`). Outside, it runs the test again inside, forwards its output, and returns `None` if it
/// passed there; inside, it returns the lab.
///
/// ```no_run
/// # use system_tests::lab;
/// let Some(lab) = lab::enter("lab_network::hosts_reach_each_other").unwrap() else { return };
/// let network = lab.network(2).unwrap();
/// ```
///
/// # Errors
/// If the machine lacks something, which the error names, or the test failed inside.
pub fn enter(story: &str) -> Result<Option<Lab>> {
    match std::env::var_os(FOLDER) {
        Some(folder) if std::process::id() == 1 => inside(PathBuf::from(folder)).map(Some),
        Some(_) | None => outside(story).map(|()| None),
    }
}

fn outside(story: &str) -> Result<()> {
    let way = way_in()?;
    let folder = tempfile::tempdir()?;
    let (output, writer) = std::io::pipe()?;
    let mut command = unshare(&way)?;
    command.arg(std::env::current_exe()?);
    command.args(["--exact", story, "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder.path());
    // Found, and built if needed, before the network is gone.
    command.env("VISPERF_BIN", program::visperf()?);
    let mut child = command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the writing end of the pipe; without it the output ends with the last process inside.
    drop(command);
    for line in BufReader::new(output).split(b'\n') {
        super::report(&format!("    {}", String::from_utf8_lossy(&line?)));
    }
    let ended = child.wait()?;
    ensure!(ended.success(), "the story {story} failed in the lab ({ended}); what it said stands above");
    ensure!(
        folder.path().join(ENTERED).exists(),
        "the story {story} did not enter the lab: that must be the name of the test itself"
    );
    Ok(())
}

/// Arguments of unshare(1) with which namespaces can be created here: with root's capabilities if present,
/// else with a user namespace.
fn way_in() -> Result<Vec<&'static str>> {
    let mut way = if has_capabilities() { vec![] } else { vec!["--user", "--map-root-user"] };
    way.extend(NAMESPACES);
    let probe = unshare(&way)?.arg("true").stdin(Stdio::null()).output()?;
    if !probe.status.success() {
        bail!(facility::why_no_namespaces(&facility::complaint(&probe)));
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
    // The ends of the links outside the hosts only forward frames, and send none themselves.
    for which in ["all", "default"] {
        let setting = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        if Path::new(&setting).exists() {
            std::fs::write(&setting, "1").with_context(|| setting)?;
        }
    }
    Ok(Lab { folder })
}

/// End this process, the first of its process namespace, when the outer one ends; the kernel then kills all
/// others.
fn end_with_the_outside() -> Result<()> {
    let watch = || {
        let mut byte = [0];
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {}
        std::process::exit(1);
    };
    std::thread::Builder::new().name("outside".into()).spawn(watch)?;
    Ok(())
}
