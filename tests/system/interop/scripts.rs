//! Clients in Python, Perl, Ruby and Node: scripts in `clients/` that each print one line of JSON.

use super::{Sides, check};
use std::path::PathBuf;
use system_tests::program;

/// Run a script with the addresses of both servers; returns its output.
fn run(interpreter: &str, script: &str) -> serde_json::Value {
    let sides = Sides::start();
    let path = program::workspace().join("tests/clients").join(script);
    let output = program::command(interpreter)
        .arg(path)
        .args(sides.addresses())
        .env("NODE_PATH", node_path())
        .output()
        .unwrap_or_else(|error| panic!("{interpreter} must be installed: {error}"));
    let (printed, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} ended with {}: {complaint}", output.status);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{script}: {error}: {printed}{complaint}"))
}

/// Folder where `.ci/run` installs Node's package: `VISPERF_NODE_PATH`, else `target/clients`.
fn node_path() -> PathBuf {
    let otherwise = || program::workspace().join("target/clients/node_modules").into_os_string();
    std::env::var_os("VISPERF_NODE_PATH").unwrap_or_else(otherwise).into()
}

#[test]
fn python_sees_what_all_see() {
    check("Python", &run("python3", "client.py"));
}

#[test]
fn perl_sees_what_all_see() {
    check("Perl", &run("perl", "client.pl"));
}

#[test]
fn ruby_sees_what_all_see() {
    check("Ruby", &run("ruby", "client.rb"));
}

#[test]
fn node_sees_what_all_see() {
    check("Node", &run("node", "client.js"));
}
