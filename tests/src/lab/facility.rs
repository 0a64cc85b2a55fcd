//! Requirements of the lab on the machine: programs of packages, and settings of the kernel.
//!
//! Rule: a missing requirement is an error that names it, and the package or setting that provides it.
//! Not here: the arguments of the programs.

use crate::program;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Programs, and the Debian packages that contain them.
const PROGRAMS: &[(&str, &str)] = &[
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
    ("ethtool", "ethtool"),
];
/// Folders of administration programs; an ordinary user's PATH lacks them.
const ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Kernel settings that forbid namespaces to an ordinary user, the forbidding value, and what to set.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ("/proc/sys/user/max_net_namespaces", "0", "user.max_net_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// Path of a program.
///
/// # Errors
/// If it is not found, or cannot be executed; names the package.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATORS.iter().map(PathBuf::from));
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    match folders.map(|folder| folder.join(name)).find(executable) {
        Some(found) => Ok(found),
        None => {
            let package = PROGRAMS.iter().find(|(known, _)| *known == name).map_or(name, |(_, of)| of);
            bail!(
                "the lab needs the program `{name}`, found none that can be run: install the package {package}"
            )
        }
    }
}

/// A command for one of the programs.
///
/// # Errors
/// As [`find`].
pub(super) fn command(name: &str) -> Result<Command> {
    Ok(program::command(find(name)?))
}

/// Run a program with arguments in one text, separated by spaces.
///
/// # Errors
/// As [`find`], or if it fails; with its output.
pub(super) fn run(name: &str, arguments: &str) -> Result<()> {
    run_with(name, arguments, "")
}

/// Run a program that reads its input from standard input.
///
/// # Errors
/// As [`run`].
pub(super) fn run_with(name: &str, arguments: &str, input: &str) -> Result<()> {
    output(name, arguments, input).map(|_| ())
}

/// Run a program; returns its standard output.
///
/// # Errors
/// As [`run`].
pub(super) fn output(name: &str, arguments: &str, input: &str) -> Result<Vec<u8>> {
    let mut child = command(name)?
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    // A program that does not read its input fails or needs none; its exit status shows which.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        bail!(
            "`{name} {arguments}` failed ({}) on Linux {}: {}; its input: {input:?}",
            output.status,
            kernel.trim(),
            complaint(&output)
        );
    }
    written.with_context(|| format!("`{name} {arguments}` did not read its input"))?;
    Ok(output.stdout)
}

/// A program's output, in one line.
pub(super) fn complaint(output: &Output) -> String {
    let text =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why namespaces cannot be created, as far as the machine shows it.
pub(super) fn why_no_namespaces(message: &str) -> String {
    let setting = |path: &str| std::fs::read_to_string(path).ok();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    explain(message, uid.split_whitespace().next() == Some("0"), setting)
}

fn explain(message: &str, is_root: bool, setting: impl Fn(&str) -> Option<String>) -> String {
    let mut reasons: Vec<String> = SETTINGS
        .iter()
        .filter(|(path, forbids, _)| setting(path).is_some_and(|value| value.trim() == *forbids))
        .map(|(path, forbids, advice)| format!("{path} is {forbids}: set it with `sysctl -w {advice}`"))
        .collect();
    if message.contains("uid_map") && is_root {
        reasons.push(
            "root without its capabilities may not map itself: run as an ordinary user, or keep CAP_SETFCAP"
                .into(),
        );
    }
    if message.contains("/proc") && message.contains("mount") {
        reasons.push("a container hides parts of /proc, so that none can be mounted: run outside of it, or with /proc unmasked".into());
    }
    if reasons.is_empty() {
        reasons.push("run as root, or allow user namespaces (sysctl user.max_user_namespaces)".into());
    }
    format!(
        "the lab needs namespaces of user, network, mount and process, found: {message}; {}",
        reasons.join("; ")
    )
}

/// Hide a program in this mount namespace, for tests of what happens without it.
///
/// # Errors
/// If it cannot be hidden.
pub(super) fn hide(name: &str, under: &Path) -> Result<()> {
    while let Ok(found) = find(name) {
        rustix::mount::mount_bind(under, &found)
            .with_context(|| format!("cannot hide {}", found.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_namespaces_is_named_with_the_setting() {
        let check = |path: &str, value: &str, expected: &str| {
            let message =
                explain("unshare failed", false, |asked| (asked == path).then(|| format!("{value}\n")));
            assert!(message.contains(expected), "{message}");
        };
        for (path, forbids, advice) in SETTINGS {
            check(path, forbids, advice);
            check(path, "7", "run as root, or allow");
        }
        assert!(explain("write failed /proc/self/uid_map", true, |_| None).contains("CAP_SETFCAP"));
        assert!(explain("mount /proc failed", false, |_| None).contains("container"));
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let message = find("visperf-is-no-such-program").unwrap_err().to_string();
        assert!(message.contains("install the package"), "{message}");
    }
}
