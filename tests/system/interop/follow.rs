//! Followed answers: by curl, by Python's urllib and by the program itself, which prints until it is ended.

use super::Sides;
use serde_json::{Value, json};
use system_tests::program;

#[test]
fn curl_prints_events_as_they_come() {
    let sides = Sides::start();
    let [sensor, _] = sides.addresses();
    let output = program::command("curl")
        .args(["--silent", "--show-error", "--no-buffer", "--max-time", "3"])
        .arg(format!("{sensor}/api/v1/daemon.info?follow=0.2"))
        .output()
        .expect("curl must be installed");
    assert_eq!(output.status.code(), Some(28), "it goes on until curl has enough: {output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let data: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(printed.starts_with("retry: ") && data.len() >= 5, "{printed}");
    let last: Value = serde_json::from_str(data[data.len() - 1]).unwrap();
    assert_eq!((&last["skipped"], &last["answer"]["name"]), (&json!(0), &json!("visperf")), "{last}");
    assert_eq!(last["answer"]["statistics"]["queries"]["followers"], 1, "{last}");
}

#[test]
fn python_reads_line_by_line() {
    let sides = Sides::start();
    let [sensor, _] = sides.addresses();
    let script = program::workspace().join("tests/clients/follow.py");
    let output =
        program::command("python3").arg(script).arg(sensor).output().expect("python3 must be installed");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(seen, json!([[0, true, "visperf"], [0, true, "visperf"], [0, true, "visperf"]]));
}
