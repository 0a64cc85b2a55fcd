//! Grid Engine: every job and task of the accounting has one call that agrees with it, whichever files are
//! read, in any order; so has every job that was deleted before it ran.
//!
//! Rule: the expected values are computed here from the accounting file, independently of the filter.
#![allow(clippy::unwrap_used)]

use crate::collection;

use crate::collection::Read;
use log_filters::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use wire::call::{Call, State};
use wire::event::Outcome;
use wire::time::Time;

const FOLDER: &str = "gridengine/8.1.9-alpha";
const FILES: &[&str] = &[
    "accounting",
    "reporting",
    "qmaster.messages",
    "execd.ex01.messages",
    "execd.ex02.messages",
    "execd.ex03.messages",
];

/// Accounting of a job or task.
#[derive(Clone, Debug, PartialEq)]
struct Account {
    submitted: Time,
    started: Time,
    ended: Time,
    host: String,
    user: String,
    name: String,
    outcome: Outcome,
    code: String,
    tries: u32,
}

/// Records by (job, task); a record of an earlier run only increments the number of tries.
fn accounts(text: &str) -> BTreeMap<(u32, u32), Account> {
    let mut accounts = BTreeMap::new();
    let mut tries: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(':').collect();
        let number = |at: usize| fields[at - 1].parse::<u32>().unwrap();
        let time = |at: usize| Time::from_micros(fields[at - 1].parse::<i64>().unwrap() * 1_000_000);
        let id = (number(6), number(36));
        let tries = tries.entry(id).or_default();
        *tries += 1;
        let outcome = match (number(12), number(13)) {
            (24 | 25 | 30, _) | (1..=11, _) => continue,
            (0, 0) => Outcome::Ok,
            (100, 137) => Outcome::Cancelled,
            _ => Outcome::Failed,
        };
        let account = Account {
            submitted: time(9),
            started: time(10),
            ended: time(11),
            host: fields[1].to_owned(),
            user: fields[3].to_owned(),
            name: fields[4].to_owned(),
            outcome,
            code: fields[12].to_owned(),
            tries: *tries,
        };
        assert_eq!(accounts.insert(id, account), None, "{id:?} ends twice");
    }
    accounts
}

fn text(file: &str) -> String {
    fs::read_to_string(collection::folder().join(FOLDER).join(file)).unwrap()
}

fn truth() -> BTreeMap<(u32, u32), Account> {
    let accounts = accounts(&text("accounting"));
    let totals: serde_json::Value = serde_json::from_str(&text("totals.json")).unwrap();
    assert_eq!(Some(accounts.len() as u64), totals["files"]["accounting"]["records"].as_u64());
    accounts
}

/// Submitted jobs, from the reporting file.
fn submitted() -> BTreeSet<u32> {
    text("reporting")
        .lines()
        .filter_map(|line| line.split_once(":new_job:"))
        .map(|(_, rest)| rest.split(':').nth(1).unwrap().parse().unwrap())
        .collect()
}

fn read(files: &[&str]) -> Vec<Read> {
    let registry = Registry::shipped();
    let log =
        |file: &&str| collection::read(&registry, &collection::folder().join(FOLDER).join(file)).unwrap();
    let logs: Vec<Read> = files.iter().map(log).collect();
    for log in &logs {
        assert!(log.filter.starts_with("gridengine-"), "{}", log.filter);
        assert_eq!(log.unknown, Vec::<String>::new(), "{}", log.filter);
    }
    logs
}

/// Name of a job, or of an array's task, in `qacct -j` and `qstat`.
fn shown((job, task): (u32, u32)) -> String {
    if task == 0 { job.to_string() } else { format!("{job}.{task}") }
}

/// Calls of a job that is not an array, or of a task.
fn calls_of(calls: &[Call], (job, task): (u32, u32)) -> Vec<&Call> {
    let ids = match task {
        // Early messages print 5.1 for a job that is not an array.
        0 => vec![format!("gridengine:{job}"), format!("gridengine:{job}.1")],
        _ => vec![format!("gridengine:{job}.{task}")],
    };
    calls.iter().filter(|call| ids.iter().any(|id| *id == call.id)).collect()
}

fn check(calls: &[Call], accounts: &BTreeMap<(u32, u32), Account>, what: &str) {
    for (&id, account) in accounts {
        let [call] = calls_of(calls, id)[..] else {
            panic!("{what}: {id:?} has the calls {:#?}", calls_of(calls, id));
        };
        let hosts: Vec<&str> = call.hosts.iter().map(|host| host.as_str()).collect();
        let found = Account {
            submitted: call.submitted.expect("submitted"),
            started: call.started.expect("started"),
            ended: call.ended.expect("ended"),
            host: hosts.join(","),
            user: call.user.to_string(),
            name: call.name.to_string(),
            outcome: call.outcome.expect("outcome"),
            code: call.code.to_string(),
            tries: call.tries,
        };
        assert_eq!(&found, account, "{what}: {id:?}: {call:#?}");
        assert_eq!(call.job, shown(id), "{what}: {call:#?}");
    }
}

/// Check the calls that the accounting lacks: arrays as a whole, and jobs deleted before they ran.
fn check_others(calls: &[Call], accounts: &BTreeMap<(u32, u32), Account>, what: &str) {
    let submitted = submitted();
    let arrays: BTreeSet<u32> = accounts.keys().filter(|id| id.1 > 0).map(|id| id.0).collect();
    let dropped: Vec<u32> =
        submitted.iter().copied().filter(|job| accounts.keys().all(|id| id.0 != *job)).collect();
    assert_eq!((submitted.len(), arrays.len(), dropped.len()), (97, 8, 8), "{what}");
    for &job in &dropped {
        let [call] = calls_of(calls, (job, 0))[..] else { panic!("{what}: {job} has not one call") };
        assert_eq!((call.state, call.outcome), (State::Ended, Some(Outcome::Cancelled)), "{what}: {call:#?}");
        assert_eq!((call.started, call.tries), (None, 0), "{what}: {call:#?}");
    }
    for &array in &arrays {
        let tasks = || accounts.iter().filter(|(id, _)| id.0 == array).map(|(_, task)| task);
        let id = format!("gridengine:{array}");
        let call = calls.iter().find(|call| call.id == id).unwrap_or_else(|| panic!("{what}: no {id}"));
        assert_eq!((call.job.as_str(), call.state), (array.to_string().as_str(), State::Ended), "{what}");
        assert_eq!(call.started, tasks().map(|task| task.started).min(), "{what}: {call:#?}");
        assert_eq!(call.ended, tasks().map(|task| task.ended).max(), "{what}: {call:#?}");
        let all_well = tasks().all(|task| task.outcome == Outcome::Ok);
        assert_eq!(call.outcome == Some(Outcome::Ok), all_well, "{what}: {call:#?}");
        assert!(tasks().all(|task| call.hosts.iter().any(|host| *host == task.host)), "{what}: {call:#?}");
    }
    let open: Vec<&Call> = calls.iter().filter(|call| call.state != State::Ended).collect();
    assert!(open.is_empty(), "{what}: {open:#?}");
    assert_eq!(calls.len(), accounts.len() + arrays.len() + dropped.len(), "{what}");
}

#[test]
fn the_accounting_alone_gives_each_job_its_call() {
    let truth = truth();
    let calls = collection::join(&read(&["accounting"]));
    check(&calls, &truth, "accounting");
    assert_eq!(calls.len(), truth.len());
}

#[test]
fn the_reporting_file_alone_gives_each_job_its_call() {
    let calls = collection::join(&read(&["reporting"]));
    check(&calls, &truth(), "reporting");
    check_others(&calls, &truth(), "reporting");
}

#[test]
fn the_messages_alone_end_each_job_once() {
    let calls = collection::join(&read(&["qmaster.messages"]));
    for ((job, task), account) in truth() {
        let of_job = calls_of(&calls, (job, task));
        let [call] = of_job[..] else { panic!("{job}.{task} has the calls {of_job:#?}") };
        let expected =
            if account.outcome == Outcome::Cancelled { Outcome::Cancelled } else { Outcome::Finished };
        assert_eq!(call.outcome, Some(expected), "{call:#?}");
        assert_eq!(call.hosts, [account.host.as_str()], "{call:#?}");
    }
    assert_eq!(calls.len(), truth().len() + 8, "and the jobs deleted while they waited");
}

#[test]
fn all_logs_together_agree_with_the_accounting_in_any_order() {
    let logs = read(FILES);
    let truth = truth();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let calls = collection::join(order.iter().map(|&at| &logs[at]).chain(&logs[3..]));
        check(&calls, &truth, &format!("{order:?}"));
        check_others(&calls, &truth, &format!("{order:?}"));
    }
}

const MESSAGES: &str = "\
11/20/2026 12:40:21|worker|qm|W|job 7.1 failed on host wn1 rescheduling because: job was rescheduled
11/20/2026 12:40:21|worker|qm|I|job 8.1 finished on host wn1
11/20/2026 12:40:40|worker|qm|I|aliu has deleted job 9
11/20/2026 12:40:51|worker|qm|I|job 7.1 finished on host wn2
11/20/2026 12:41:11|worker|qm|W|job 8.2 failed on host wn2 assumedly after job because: job 8.2 died through signal KILL (9)
";

/// A job that is run again after code 99, an array with a task killed by its limit, a job that is deleted
/// while it waits: in all three logs.
#[test]
fn jobs_that_are_run_again_and_arrays_are_one_call_each() {
    const TAIL: &str = "5:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:NONE:defaultdepartment:NONE:1";
    let record = |host: &str, name: &str, job: &str, times: &str, how: &str, task: u32, category: &str| {
        format!(
            "all.q:{host}:users:aliu:{name}:{job}:sge:0:{times}:{how}:{TAIL}:{task}:0:0:0:{category}:0:NONE:0:0:0\n"
        )
    };
    let records = [
        record("wn1", "again", "7", "1795178400:1795178410:1795178420", "25:99", 0, "NONE"),
        record("wn2", "again", "7", "1795178400:1795178430:1795178450", "0:0", 0, "NONE"),
        record("wn1", "sweep", "8", "1795178400:1795178410:1795178420", "0:0", 1, "NONE"),
        record("wn2", "sweep", "8", "1795178400:1795178410:1795178470", "100:137", 2, "-l h_rt=60"),
    ];
    let log = |time: u64, event: &str, job: u32, task: u32, state: &str, by: &str, host: &str, text: &str| {
        let name = ["again", "sweep", "late"][job as usize - 7];
        format!(
            "{time}:job_log:{time}:{event}:{job}:{task}:NONE:{state}:{by}:{host}:0:1024:1795178400:{name}:aliu:users::d:sge:{text}\n"
        )
    };
    let acct = |time: u64, at: usize| format!("{time}:acct:{}", records[at]);
    let new = |job: u32, name: &str| {
        format!("1795178400:new_job:1795178400:{job}:-1:NONE:{name}:aliu:users::d:sge:1024\n")
    };
    let reporting = [
        new(7, "again"),
        new(8, "sweep"),
        new(9, "late"),
        log(1795178410, "delivered", 7, 0, "r", "master", "qm", "job received by execd"),
        log(1795178410, "delivered", 8, 1, "r", "master", "qm", "job received by execd"),
        log(1795178410, "delivered", 8, 2, "r", "master", "qm", "job received by execd"),
        acct(1795178421, 0),
        log(
            1795178421,
            "restart",
            7,
            0,
            "Rq",
            "execution daemon",
            "wn1",
            "job rerun/checkpoint specified -> schedule it again",
        ),
        acct(1795178421, 2),
        log(1795178430, "delivered", 7, 0, "r", "master", "qm", "job received by execd"),
        log(1795178440, "deleted", 9, 0, "", "aliu", "qm", "job deleted"),
        log(1795178440, "finished", 9, 0, "", "master", "qm", "job exited"),
        acct(1795178451, 1),
        log(1795178451, "finished", 7, 0, "r", "execution daemon", "wn2", "job exited"),
        acct(1795178471, 3),
    ]
    .concat();
    let mut truth = accounts(&records.concat());
    truth.get_mut(&(8, 2)).unwrap().outcome = Outcome::Timeout;
    assert_eq!((truth.len(), truth[&(7, 0)].tries), (3, 2));
    let registry = Registry::shipped();
    let accounting = records.concat();
    let logs: Vec<Read> =
        [("accounting", accounting.as_str()), ("reporting", &reporting), ("qmaster.messages", MESSAGES)]
            .iter()
            .map(|(name, text)| collection::read_bytes(&registry, name, text.as_bytes()).unwrap())
            .collect();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let calls = collection::join(order.map(|at| &logs[at]));
        check(&calls, &truth, &format!("{order:?}"));
        let [late] = calls_of(&calls, (9, 0))[..] else { panic!("{order:?}: {calls:#?}") };
        assert_eq!((late.outcome, late.started), (Some(Outcome::Cancelled), None), "{order:?}");
        assert_eq!(calls.len(), 5, "{order:?}: three accounted, the array, the one that waited");
    }
}
