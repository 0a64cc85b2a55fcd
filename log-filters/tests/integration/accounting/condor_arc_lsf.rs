//! HTCondor's event log, the job log of NorduGrid ARC, LSF's accounting file.

use super::lsf_fields::fields;
use super::{Account, between, secs, text};
use crate::collection::moment;
use std::collections::{BTreeMap, BTreeSet};
use wire::event::Outcome;
use wire::time::Time;

fn account(key: &str) -> Account {
    Account { key: key.to_owned(), started: None, ended: None, hosts: None, outcome: Outcome::Finished }
}

/// Records end with three dots; their first line is `NNN (CLUSTER.PROC.SUB) DATE TIME TEXT`.
pub(crate) fn condor(folder: &'static str) -> Vec<Account> {
    let text = text(folder, "sub01.EventLog");
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for record in text.split("...\n").filter(|record| record.contains('(')) {
        let words: Vec<&str> = record.splitn(5, ' ').collect();
        let numbers: Vec<u32> =
            words[1].trim_matches(['(', ')']).split('.').filter_map(|number| number.parse().ok()).collect();
        let [cluster, process, ..] = numbers[..] else { continue };
        let date = words[2]
            .split_once('/')
            .map_or(words[2].to_owned(), |(month, day)| format!("2026-{month}-{day}"));
        let time = Some(moment(&format!("{date}T{}", words[3])));
        let job = format!("{cluster}.{process}");
        let own = accounts.entry(job.clone()).or_insert_with(|| account(&job));
        own.hosts.get_or_insert_default();
        match words[0] {
            "001" => {
                let host = between(record, "alias=", "&").or_else(|| between(record, "host: <", ":"));
                (own.started, own.hosts) = (time, host.map(|host| BTreeSet::from([host.to_owned()])));
            }
            "005" => {
                own.ended = time;
                let is_ok = record.contains("(return value 0)");
                own.outcome = if is_ok { Outcome::Ok } else { Outcome::Failed };
            }
            "009" if own.ended.is_none() => (own.ended, own.outcome) = (time, Outcome::Cancelled),
            _ => {}
        }
    }
    accounts.into_values().collect()
}

/// `Started` and `Finished` lines; it prints neither the start of the run nor its host.
pub(crate) fn arc(folder: &'static str) -> Vec<Account> {
    let began: BTreeMap<String, Time> = text(folder, "arex.log")
        .lines()
        .filter(|line| line.contains(": State: INLRMS from "))
        .map(|line| (between(line, "/2] ", ":").unwrap().to_owned(), stamp(&line[1..])))
        .collect();
    let mut accounts = Vec::new();
    for line in text(folder, "arex-jobs.log").lines().filter(|line| line.contains(" Finished - ")) {
        let job = between(line, "job id: ", ",").unwrap();
        accounts.push(Account {
            started: began.get(job).copied(),
            ended: Some(stamp(line)),
            outcome: match between(line, "failure: \"", "\"") {
                None => Outcome::Ok,
                Some(failure) if failure.contains("canceled") => Outcome::Cancelled,
                Some(_) => Outcome::Failed,
            },
            ..account(job)
        });
    }
    accounts
}

/// `2026-11-20 12:24:17`.
fn stamp(text: &str) -> Time {
    moment(&text[..19].replace(' ', "T"))
}

/// The records of jobs that are over; LSF numbers the fields.
pub(crate) fn lsf(folder: &'static str) -> Vec<Account> {
    let mut accounts = Vec::new();
    for line in text(folder, "lsb.acct").lines().filter(|line| line.starts_with("\"JOB_FINISH\"")) {
        let fields = fields(line);
        let number = |at: usize| fields[at].parse::<usize>().unwrap();
        let asked = number(22);
        let ran = number(23 + asked);
        let is_done = fields[24 + asked + ran] == "64";
        accounts.push(Account {
            started: secs(&fields[10]),
            ended: secs(&fields[2]),
            hosts: Some(fields[24 + asked..24 + asked + ran].iter().cloned().collect()),
            outcome: if is_done { Outcome::Ok } else { Outcome::Failed },
            ..account(&match fields[24 + asked + ran + 29].as_str() {
                "0" => fields[3].clone(),
                index => format!("{}[{index}]", fields[3]),
            })
        });
    }
    accounts
}
