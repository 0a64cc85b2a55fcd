//! Accounting files of Grid Engine and Torque, transfer logs of GridFTP: one record per line.

use super::{Account, secs, text};
use crate::collection::moment;
use std::collections::{BTreeMap, BTreeSet};
use wire::event::Outcome;
use wire::time::Time;

/// The last record of each job or task; records of earlier runs are skipped.
pub(crate) fn gridengine(folder: &'static str) -> Vec<Account> {
    let mut accounts = Vec::new();
    for line in text(folder, "accounting").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(':').collect();
        let number = |at: usize| fields[at - 1].parse::<u32>().unwrap();
        accounts.push(Account {
            key: match number(36) {
                0 => fields[5].to_owned(),
                task => format!("{}.{task}", fields[5]),
            },
            started: secs(fields[9]),
            ended: secs(fields[10]),
            hosts: Some(BTreeSet::from([fields[1].to_owned()])),
            outcome: match (number(12), number(13)) {
                (24 | 25 | 30, _) | (1..=11, _) => continue,
                (0, 0) => Outcome::Ok,
                (100, 137) => Outcome::Cancelled,
                _ => Outcome::Failed,
            },
        });
    }
    accounts
}

/// The E records; a deleted job has a D record before.
pub(crate) fn torque(folder: &'static str) -> Vec<Account> {
    let text = text(folder, "accounting.20261120");
    let (mut accounts, mut deleted) = (BTreeMap::new(), BTreeSet::new());
    for line in text.lines() {
        let [_, kind, job, words] = line.splitn(4, ';').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let value = |key: &str| words.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        if kind == "D" {
            deleted.insert(job);
        }
        if kind != "E" {
            continue;
        }
        let slots = value("exec_host").unwrap_or_default().split('+');
        let outcome = match value("Exit_status") {
            _ if deleted.contains(job) => Outcome::Cancelled,
            Some("0") => Outcome::Ok,
            _ => Outcome::Failed,
        };
        let account = Account {
            key: job.to_owned(),
            started: value("start").and_then(secs),
            ended: value("end").and_then(secs),
            hosts: Some(slots.map(|slot| slot.split('/').next().unwrap().to_owned()).collect()),
            outcome,
        };
        accounts.insert(job, account);
    }
    accounts.into_values().collect()
}

/// `20261120122417.446` and UTC.
fn compact(stamp: &str) -> Option<Time> {
    let part = |from: usize, to: usize| &stamp[from..to];
    let date = format!("{}-{}-{}", part(0, 4), part(4, 6), part(6, 8));
    Some(moment(&format!("{date}T{}:{}:{}", part(8, 10), part(10, 12), &stamp[12..])))
}

/// The records of both servers; only successful transfers have one.
pub(crate) fn gridftp(folder: &'static str) -> Vec<Account> {
    let account = |server: &str, line: &str| {
        let words: BTreeMap<&str, &str> = line.split(' ').filter_map(|word| word.split_once('=')).collect();
        Account {
            key: server.to_owned(),
            started: compact(words["START"]),
            ended: compact(words["DATE"]),
            hosts: Some(BTreeSet::from([words["HOST"].to_owned()])),
            outcome: if words["CODE"].starts_with('2') { Outcome::Ok } else { Outcome::Failed },
        }
    };
    let records = |server: &'static str| {
        let text = text(folder, &format!("{server}.transfer.log"));
        text.lines().map(|line| account(server, line)).collect::<Vec<_>>()
    };
    ["se01", "se02"].into_iter().flat_map(records).collect()
}
