//! Runs one test again in a process of its own with fewer resources: without root's privileges, or with few
//! watches.

use std::process::Command;

/// Environment variable that is set in the confined process.
const INSIDE: &str = "VISPERF_TEST_CONFINED";

/// Whether this is the confined process.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Whether this process has the privileges of root.
pub fn has_rights() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() != 0
}

/// Whether a program can be started and succeeds.
pub fn succeeds(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = command(program);
    let run = command.args(arguments).output().map_err(|error| format!("cannot start {program}: {error}"))?;
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    if run.status.success() { Ok(()) } else { Err(format!("{program} {}: {text}", arguments.join(" "))) }
}

/// Runs this test, by its full name, through a program that confines what it starts. The test must pass
/// there, and must have run.
pub fn run_again(test: &str, program: &str, arguments: &[&str]) {
    let own = std::env::current_exe().unwrap();
    let mut command = command(program);
    command.args(arguments).arg(own).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
    let run = command.output().unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
    let output =
        [run.stdout, run.stderr].map(|output| String::from_utf8_lossy(&output).into_owned()).concat();
    assert!(
        run.status.success() && output.contains("1 passed"),
        "confined by {program} {arguments:?}:\n{output}"
    );
}

#[allow(clippy::disallowed_methods)] // Programs of the system drop the privileges.
fn command(program: &str) -> Command {
    Command::new(program)
}
