//! Users of one host and a sensor that runs as root: each sees what `/proc` would show to that user.

use crate::control::Sensor;
use crate::program::{Home, Ran};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const NOBODY: &str = "65534";

/// Number of root's processes in the output, and how many of them have I/O counters.
fn of_root(mut command: Command) -> (usize, usize) {
    let ran = Ran::from(command.output().unwrap()).ok();
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let root: Vec<&Value> = rows.iter().filter(|row| row["uid"] == 0).collect();
    (root.len(), root.iter().filter(|row| row.get("read_bytes").is_some()).count())
}

#[test]
fn root_the_io_counters_of_root_are_roots_on_the_socket_and_on_loopback() {
    // Only root may become another user, and not where that was taken from it.
    let nothing = Command::new("true");
    if !rustix::process::geteuid().is_root() || !as_nobody(&nothing).status().unwrap().success() {
        return;
    }
    let home = Home::new();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let socket = home.path().join("s.sock");
    let _sensor = Sensor::start(&home, &["sensor", "--socket", socket.to_str().unwrap()]);
    let (all, socket) = (["processes", "--json", "--limit", "1000"], format!("unix:{}", socket.display()));
    let by = |address: &str| home.command(&[&all[..], &["--connect", address]].concat());
    let (rows, counted) = of_root(by(&socket));
    assert!(rows > 0 && counted > 0, "{rows} {counted}");
    let (rows, counted) = of_root(as_nobody(&by(&socket)));
    assert!(rows > 0 && counted == 0, "{rows} {counted}");
    let listen = std::fs::read_to_string(home.path().join("own/listen")).unwrap();
    let (rows, counted) = of_root(by(listen.lines().next().unwrap()));
    assert!(rows > 0 && counted == 0, "a client on TCP is not identified: {rows} {counted}");
    // The state folder names the socket.
    assert!(of_root(home.command(&[&all[..], &["--state", "own"]].concat())).1 > 0);
}

/// The same command as another user.
fn as_nobody(command: &Command) -> Command {
    let mut other = Command::new("setpriv");
    other.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(command.get_program());
    other.args(command.get_args()).current_dir("/").env_clear();
    other
}
