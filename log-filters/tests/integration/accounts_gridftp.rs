//! GridFTP: every record of the transfer logs is one call, and the session log's entry for the same transfer
//! is joined to it.
//!
//! The transfer log is parsed here independently of the filters; every call must have the same user, start
//! and end, in any order of reading.
#![allow(clippy::unwrap_used)]

use crate::collection;

use log_filters::registry::Registry;
use std::collections::BTreeMap;
use wire::call::{Call, State};
use wire::event::Outcome;

const PRODUCT: &str = "gridftp/13.24-alpha";
const SERVERS: [(&str, usize, usize); 2] = [("se01", 103, 3), ("se02", 124, 9)];

fn path(file: &str) -> std::path::PathBuf {
    collection::folder().join(PRODUCT).join(file)
}

fn read(files: &[String]) -> Vec<collection::Read> {
    let registry = Registry::shipped();
    files.iter().map(|file| collection::read(&registry, &path(file)).expect(file)).collect()
}

/// User, start and end in microseconds, of each record.
type Record = (String, i64, i64);

fn micros(compact: &str) -> i64 {
    let (y, m, d) = (&compact[..4], &compact[4..6], &compact[6..8]);
    let (h, min, s) = (&compact[8..10], &compact[10..12], &compact[12..]);
    collection::moment(&format!("{y}-{m}-{d}T{h}:{min}:{s}")).micros()
}

fn records(server: &str) -> Vec<Record> {
    let text = std::fs::read_to_string(path(&format!("{server}.transfer.log"))).unwrap();
    let mut records: Vec<Record> = text
        .lines()
        .map(|line| {
            let words: BTreeMap<&str, &str> =
                line.split(' ').filter_map(|word| word.split_once('=')).collect();
            (words["USER"].to_owned(), micros(words["START"]), micros(words["DATE"]))
        })
        .collect();
    records.sort();
    records
}

fn transfers(calls: &[Call]) -> Vec<Record> {
    let mut records: Vec<Record> = calls
        .iter()
        .filter(|call| call.outcome == Some(Outcome::Ok))
        .map(|call| (call.user.to_string(), call.started.unwrap().micros(), call.ended.unwrap().micros()))
        .collect();
    records.sort();
    records
}

#[test]
fn every_record_is_one_call() {
    for (server, count, _) in SERVERS {
        let calls = collection::join(&read(&[format!("{server}.transfer.log")]));
        assert_eq!(calls.len(), count);
        assert_eq!(transfers(&calls), records(server), "{server}");
    }
}

/// With the session log: the same calls, and the failures that only it reports.
fn check(files: &[String]) {
    let mut expected: Vec<Record> = SERVERS
        .iter()
        .filter(|(server, ..)| files.iter().any(|file| file.starts_with(server)))
        .flat_map(|(server, ..)| records(server))
        .collect();
    expected.sort();
    let failures: usize = SERVERS
        .iter()
        .filter(|(server, ..)| files.iter().any(|file| file.starts_with(server)))
        .map(|(_, _, failures)| failures)
        .sum();
    let calls = collection::join(&read(files));
    assert!(calls.iter().all(|call| call.state == State::Ended), "{files:?}");
    assert_eq!(calls.len(), expected.len() + failures, "{files:?}");
    assert_eq!(transfers(&calls), expected, "{files:?}");
}

#[test]
fn a_transfer_that_both_logs_report_is_one_call() {
    for (server, ..) in SERVERS {
        let (session, transfer) = (format!("{server}.gridftp.log"), format!("{server}.transfer.log"));
        check(&[session.clone(), transfer.clone()]);
        check(&[transfer, session]);
    }
}

#[test]
fn two_servers_keep_their_transfers_apart_in_any_order() {
    let mut files: Vec<String> = SERVERS
        .iter()
        .flat_map(|(s, ..)| [format!("{s}.gridftp.log"), format!("{s}.transfer.log")])
        .collect();
    check(&files);
    files.reverse();
    check(&files);
    files.swap(0, 3);
    check(&files);
}

#[test]
fn the_session_log_alone_reports_every_transfer() {
    for (server, count, failures) in SERVERS {
        let log = read(&[format!("{server}.gridftp.log")]).remove(0);
        assert_eq!(log.unknown, Vec::<String>::new());
        let count_of =
            |kind: &str| log.found.iter().filter(|found| found.content.kind.as_str() == kind).count();
        assert_eq!((count_of("transfer_start"), count_of("transfer_end")), (count, count + failures));
        let calls = collection::join([&log]);
        assert_eq!(calls.len(), count + failures, "{server}");
        let failed = calls.iter().filter(|call| call.outcome == Some(Outcome::Failed)).count();
        assert_eq!(failed, failures, "{server}");
        assert!(calls.iter().all(|call| !call.user.is_empty()), "{server}");
    }
}
