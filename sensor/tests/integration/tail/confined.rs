//! One test run again in a process of its own that has less than this one: without root's rights, or with few
//! watches.

use std::process::Command;

/// Set in the other process.
const INSIDE: &str = "VISPERF_TEST_CONFINED";

/// Whether this is the other process.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Whether this process has rights that others lack: root's, where they were not taken away.
pub fn has_rights() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() != 0
}

/// Whether a program runs here and succeeds.
pub fn succeeds(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = command(program);
    let run = command.args(arguments).output().map_err(|error| format!("cannot start {program}: {error}"))?;
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    if run.status.success() { Ok(()) } else { Err(format!("{program} {}: {told}", arguments.join(" "))) }
}

/// Run this test, named in full, through a program that confines what it starts. It must pass there, and must
/// have run.
pub fn run_again(test: &str, program: &str, arguments: &[&str]) {
    let own = std::env::current_exe().unwrap();
    let mut command = command(program);
    command.args(arguments).arg(own).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
    let run = command.output().unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
    let told = [run.stdout, run.stderr].map(|told| String::from_utf8_lossy(&told).into_owned()).concat();
    assert!(
        run.status.success() && told.contains("1 passed"),
        "confined by {program} {arguments:?}:\n{told}"
    );
}

#[allow(clippy::disallowed_methods)] // What takes rights away are programs of the system.
fn command(program: &str) -> Command {
    Command::new(program)
}
