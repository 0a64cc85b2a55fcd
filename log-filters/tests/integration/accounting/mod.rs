//! Comparison of calls with a middleware's accounting: how many jobs have a call, how many calls have a job,
//! and which fields agree.
//!
//! Rule: the accounting is parsed here independently of the filters. A time agrees within [`NEAR_MICROS`],
//! because accounting and daemons round to seconds; hosts agree as sets, without their domains; an outcome
//! must be equal.

pub(crate) mod condor_arc_lsf;
pub(crate) mod gridengine_torque_gridftp;
pub(crate) mod lsf_fields;
pub(crate) mod slurm;

use crate::collection;
use std::collections::BTreeSet;
use std::path::PathBuf;
use wire::call::Call;
use wire::event::Outcome;
use wire::time::Time;

/// Tolerance between two daemons' stamps of one moment.
const NEAR_MICROS: i64 = 1_000_000;

/// A job, task or transfer in the accounting.
#[derive(Debug)]
pub(crate) struct Account {
    /// Key of its call, see [`Site::key`].
    pub(crate) key: String,
    pub(crate) started: Option<Time>,
    pub(crate) ended: Option<Time>,
    /// `None` if the accounting does not print them.
    pub(crate) hosts: Option<BTreeSet<String>>,
    pub(crate) outcome: Outcome,
}

/// The logs of one run of a product, and its accounting.
pub(crate) struct Site {
    /// Folder in the collection.
    pub(crate) folder: &'static str,
    /// The accounting files; all others are logs of daemons.
    pub(crate) accounting: &'static [&'static str],
    pub(crate) accounts: fn(&'static str) -> Vec<Account>,
    pub(crate) key: fn(&Call) -> String,
    /// Which calls the accounting must contain: some products account only for jobs that ran.
    pub(crate) is_accounted: fn(&Call, &[Call]) -> bool,
}

/// Which logs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logs {
    Daemons,
    Accounting,
    All,
}

/// Row of the table: numbers of jobs, of calls, of pairs, and of pairs that agree.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) folder: &'static str,
    pub(crate) logs: Logs,
    jobs: usize,
    calls: usize,
    pairs: usize,
    outcome: usize,
    hosts: Option<usize>,
    start: usize,
    end: usize,
}

impl Site {
    /// Compare the calls of these logs with the accounting; `None` if there is no such log.
    pub(crate) fn measure(&self, logs: Logs) -> Option<Row> {
        let files: Vec<PathBuf> = self.files().into_iter().filter(|file| self.is_of(file, logs)).collect();
        let read = |file: &PathBuf| collection::read(collection::registry(), file);
        let logs_read: Vec<_> = files.iter().filter_map(read).collect();
        if logs_read.is_empty() {
            return None;
        }
        let accounts = (self.accounts)(self.folder);
        let all = collection::join(&logs_read);
        let calls: Vec<Call> = all.iter().filter(|call| (self.is_accounted)(call, &all)).cloned().collect();
        let pairs = self.pairs(&accounts, &calls);
        let count = |agrees: &dyn Fn(&Account, &Call) -> bool| {
            pairs.iter().filter(|(account, call)| agrees(account, call)).count()
        };
        Some(Row {
            folder: self.folder,
            logs,
            jobs: accounts.len(),
            calls: calls.len(),
            pairs: pairs.len(),
            outcome: count(&|account, call| call.outcome == Some(account.outcome)),
            hosts: accounts.iter().all(|account| account.hosts.is_some()).then(|| {
                count(&|account, call| account.hosts.as_ref().map(labels) == Some(labels(&call.hosts)))
            }),
            start: count(&|account, call| is_near(account.started, call.started)),
            end: count(&|account, call| is_near(account.ended, call.ended)),
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        let about = ["json", "jsonl"].map(std::ffi::OsStr::new);
        let mut files = collection::files(&collection::folder().join(self.folder));
        files.retain(|file| !file.extension().is_some_and(|extension| about.contains(&extension)));
        files
    }

    fn is_of(&self, file: &std::path::Path, logs: Logs) -> bool {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_accounting = self.accounting.iter().any(|own| name == *own || file.ends_with(own))
            || (self.accounting.contains(&"joblogs")
                && file.components().any(|part| part.as_os_str() == "joblogs"));
        match logs {
            Logs::Daemons => !is_accounting,
            Logs::Accounting => is_accounting,
            Logs::All => true,
        }
    }

    /// Pairs of an account and the call with its key, each call once; with several of one key the nearest in
    /// time first.
    fn pairs<'a>(&self, accounts: &'a [Account], calls: &'a [Call]) -> Vec<(&'a Account, &'a Call)> {
        let keys: Vec<String> = calls.iter().map(self.key).collect();
        let mut candidates: Vec<(i64, usize, usize)> = Vec::new();
        for (at, account) in accounts.iter().enumerate() {
            let own = (0..calls.len()).filter(|call| keys[*call] == account.key);
            candidates.extend(own.map(|call| (apart(account, &calls[call]), at, call)));
        }
        candidates.sort_unstable();
        let (mut paired, mut taken) = (BTreeSet::new(), BTreeSet::new());
        candidates.retain(|(_, at, call)| {
            let is_free = !paired.contains(at) && !taken.contains(call);
            if is_free {
                paired.insert(*at);
                taken.insert(*call);
            }
            is_free
        });
        candidates.into_iter().map(|(_, at, call)| (&accounts[at], &calls[call])).collect()
    }
}

/// Distance of a call's start and end from the accounting, in microseconds.
fn apart(account: &Account, call: &Call) -> i64 {
    let far = |one: Option<Time>, other: Option<Time>| match (one, other) {
        (Some(one), Some(other)) => (one.micros() - other.micros()).abs(),
        _ => i64::MAX / 4,
    };
    far(account.started, call.started) + far(account.ended, call.ended)
}

/// Hosts without their domains.
fn labels<H: AsRef<str>>(hosts: impl IntoIterator<Item = H>) -> BTreeSet<String> {
    let label = |host: H| host.as_ref().split('.').next().unwrap_or_default().to_owned();
    hosts.into_iter().map(label).collect()
}

fn is_near(one: Option<Time>, other: Option<Time>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one.micros() - other.micros()).abs() <= NEAR_MICROS,
        (one, other) => one == other,
    }
}

impl Row {
    /// Whether every job has a call, every call a job, and all fields agree.
    pub(crate) fn is_exact(&self) -> bool {
        let all =
            [self.calls, self.pairs, self.outcome, self.hosts.unwrap_or(self.jobs), self.start, self.end];
        all.iter().all(|count| *count == self.jobs)
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |part: usize, of: usize| match (part, of) {
            (_, 0) => "-".to_owned(),
            (part, of) if part == of => "100 %".to_owned(),
            (part, of) => format!("{:.1} % ({part} of {of})", 100.0 * part as f64 / of as f64),
        };
        let logs = match self.logs {
            Logs::Daemons => "daemons'",
            Logs::Accounting => "accounting",
            Logs::All => "all",
        };
        write!(
            f,
            "| `{}` | {logs} | {} | {} | {} | {} | {} | {} | {} |",
            self.folder,
            self.jobs,
            share(self.pairs, self.jobs),
            share(self.pairs, self.calls),
            share(self.outcome, self.pairs),
            self.hosts.map_or("not printed".to_owned(), |hosts| share(hosts, self.pairs)),
            share(self.start, self.pairs),
            share(self.end, self.pairs),
        )
    }
}

/// The text of a file of a folder of the collection.
pub(crate) fn text(folder: &str, file: &str) -> String {
    let path = collection::folder().join(folder).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text between two others.
pub(crate) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after)?])
}

pub(crate) fn secs(number: &str) -> Option<Time> {
    number.parse::<i64>().ok().filter(|secs| *secs > 0).map(|secs| Time::from_micros(secs * 1_000_000))
}
