//! Slurm's job completion file.

use super::{Account, between, text};
use crate::collection::moment;
use std::collections::BTreeMap;
use wire::event::Outcome;

/// Expand `wn[01-02,04]` to its hosts, which is all that these clusters need.
fn hosts(list: &str) -> Vec<String> {
    let Some((stem, ranges)) = list.strip_suffix(']').and_then(|list| list.split_once('[')) else {
        return vec![list.to_owned()];
    };
    let range = |range: &str| {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let width = low.len();
        let numbers = low.parse::<u32>().unwrap()..=high.parse::<u32>().unwrap();
        numbers.map(|number| format!("{stem}{number:0width$}")).collect::<Vec<_>>()
    };
    ranges.split(',').flat_map(range).collect()
}

/// The job numbers of array tasks, from the controller's log: `13` is `9_0`.
fn task_names(folder: &str) -> BTreeMap<String, String> {
    let controller = text(folder, "slurmctld.log");
    let words = controller.split_ascii_whitespace();
    words
        .filter_map(|word| word.split_once('=')?.1.strip_suffix(')')?.split_once('('))
        .filter(|(name, _)| name.contains('_'))
        .map(|(name, number)| (number.to_owned(), name.to_owned()))
        .collect()
}

pub(crate) fn accounts(folder: &'static str) -> Vec<Account> {
    let tasks = task_names(folder);
    let account = |line: &str| {
        let number = between(line, "JobId=", " ").unwrap();
        let list = between(line, " NodeList=", " ").filter(|list| *list != "(null)");
        let time = |before: &str| between(line, before, " ").map(moment);
        Account {
            key: tasks.get(number).map_or(number, String::as_str).to_owned(),
            started: time(" StartTime=").filter(|_| list.is_some()),
            ended: time(" EndTime="),
            hosts: Some(list.map(hosts).unwrap_or_default().into_iter().collect()),
            outcome: match between(line, " JobState=", " ").unwrap() {
                "COMPLETED" => Outcome::Ok,
                "CANCELLED" => Outcome::Cancelled,
                "TIMEOUT" => Outcome::Timeout,
                "NODE_FAIL" => Outcome::NodeFail,
                _ => Outcome::Failed,
            },
        }
    };
    text(folder, "jobcomp.log").lines().map(account).collect()
}
