//! XRootD and Work Queue: the executed commands are the calls, each once, in any order of the logs.
//!
//! The logs were printed by XRootD 5.5.3 (a redirector, two data servers, `cms.trace redirect`,
//! `ofs.trace open close`) and by makeflow of cctools 8.0 with one worker. The expected calls are the
//! commands that the clients ran, with their outcomes. Host names, paths and the kernel's release are
//! anonymized; lines of the configuration are omitted.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::Read;
use log_filters::across::AcrossLogs;
use std::path::Path;
use wire::call::{Call, State};
use wire::event::Outcome;

/// Read the logs of a product, in this order, with shared values.
fn read(product: &str, names: &[&str]) -> Vec<Read> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured").join(product);
    let (registry, across) = (collection::registry(), AcrossLogs::default());
    // Engines exist as long as the sensor reads their logs.
    let mut engines = Vec::new();
    names
        .iter()
        .map(|name| {
            let bytes = std::fs::read(folder.join(name)).unwrap();
            let (read, engine) = collection::read_among(registry, name, &bytes, &across).expect("a filter");
            engines.push(engine);
            assert_eq!(read.unknown, Vec::<String>::new(), "{name}");
            read
        })
        .collect()
}

fn calls(product: &str, names: &[&str]) -> Vec<Call> {
    let logs = read(product, names);
    let mut calls = collection::join(&logs);
    calls.sort_by(|a, b| a.id.cmp(&b.id));
    calls
}

/// Requests of clients: process and file, whether through the redirector, the server, and the outcome.
const COPIES: [(&str, bool, &[&str], Outcome); 6] = [
    ("root.16516@ui1 /data/run2/a.dat", true, &["se01"], Outcome::Ok),
    ("root.16851@ui1 /data/run2/b.dat", true, &["se02"], Outcome::Ok),
    ("root.17081@ui1 /data/run2/a.dat", true, &["se01"], Outcome::Ok),
    ("root.17097@ui1 /data/priv/x.dat", true, &["se01"], Outcome::Failed),
    ("root.17144@ui1 /data/run2/big.dat", false, &["se02"], Outcome::Failed),
    ("root.17154@ui1 /data/run2/none.dat", true, &[], Outcome::Failed),
];

#[test]
fn every_copy_is_one_call_with_its_server() {
    for names in [
        ["xr-head.cmsd.log", "xr-head.xrootd.log", "se01.xrootd.log", "se02.xrootd.log"],
        ["se02.xrootd.log", "xr-head.cmsd.log", "se01.xrootd.log", "xr-head.xrootd.log"],
    ] {
        let calls = calls("xrootd", &names);
        let (sessions, copies): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.id.contains(" on se0"));
        assert_eq!(copies.len(), COPIES.len(), "{copies:#?}");
        for (call, (name, is_redirected, hosts, outcome)) in copies.iter().zip(COPIES) {
            let is_right = call.id == format!("xrootd:{name}")
                && call.state == State::Ended
                && call.submitted.is_some() == is_redirected
                && call.selected.is_some() == (is_redirected && !hosts.is_empty())
                && call.hosts == hosts
                && call.outcome == Some(outcome)
                && call.from == "ui1"
                && call.user == "root";
            assert!(is_right, "{name}: {call:#?}");
        }
        assert_eq!(sessions.len(), 7, "{sessions:#?}");
        assert!(sessions.iter().all(|call| call.state == State::Ended), "{sessions:#?}");
    }
}

#[test]
fn a_server_whose_name_was_not_read_yet_is_its_address() {
    let calls = calls("xrootd", &["xr-head.xrootd.log", "xr-head.cmsd.log"]);
    let hosts: Vec<String> = calls.iter().map(|call| call.hosts.join(",")).collect();
    assert_eq!(hosts, ["10.9.0.2", "10.9.0.3", "10.9.0.2", "10.9.0.2", ""]);
}

#[test]
fn every_task_is_one_call_of_both_logs() {
    for names in [["manager.wqlog.tr", "manager.wq.debug"], ["manager.wq.debug", "manager.wqlog.tr"]] {
        let calls = calls("workqueue", &names);
        let shown: Vec<_> =
            calls.iter().map(|call| (call.job.as_str(), call.outcome.unwrap(), call.code.as_str())).collect();
        let failed = Outcome::Failed;
        let expected = [
            ("1", Outcome::Ok, "0"),
            ("2", Outcome::Ok, "0"),
            ("3", failed, "3"),
            ("4", failed, "3"),
            ("5", Outcome::Ok, "0"),
        ];
        assert_eq!(shown, expected, "{names:?}");
        for call in &calls {
            let times = (call.submitted.unwrap(), call.started.unwrap(), call.ended.unwrap());
            assert!(times.0 <= times.1 && times.1 < times.2, "{call:#?}");
        }
        // The commands: `sleep 3`, `sleep 2`, and three that end at once.
        let ran =
            |at: usize| (calls[at].ended.unwrap().micros() - calls[at].started.unwrap().micros()) / 1_000_000;
        assert_eq!([ran(0), ran(1), ran(2), ran(3), ran(4)], [3, 2, 0, 0, 0]);
    }
}
