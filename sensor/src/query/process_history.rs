//! `sensor.process_history`: the processes that used most in a past time.
//!
//! Rule: a row of another user is absent, unless the caller may inspect it: root and operators see all. An answer
//! is computed from a bounded number of processes. Not here: what is stored (`process_history`).

use super::past::between;
use super::processes::wanted_uid;
use super::samples::is_one_boot;
use crate::history::writing::calendar;
use crate::process::details::Users;
use crate::process::visibility::Visibility;
use crate::process_history::minute::{ProcessMinute, ProcessRow};
use crate::process_history::worker::Handle;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::HashMap;
use std::time::Duration;
use store::daily::DailyReader;
use wire::api::UnixTime;
use wire::api::process_history::{ProcessHistory, ProcessHistoryParams, TopProcess};
use wire::name_match;
use wire::process::{self, ProcessKey};
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 2;

/// Processes from which an answer is computed, at most.
const PROCESSES_MAX: usize = 200_000;

/// Span of time by default.
const SPAN_DEFAULT: Duration = Duration::from_secs(3600);

/// A minute.
const MINUTE: Duration = Duration::from_secs(60);

/// Creates the method; without a process history it says so.
#[must_use]
pub fn method(history: Option<Handle>) -> Method {
    let pool = BlockingPool::new("reading the process history", AT_ONCE_MAX);
    typed::method(move |caller, params: ProcessHistoryParams| {
        let (history, pool) = (history.clone(), pool.clone());
        let visibility = Visibility::of(caller.viewer);
        async move {
            let history = history.ok_or_else(|| {
                Fault::not_found(
                    "the process history is turned off in the configuration of this sensor ([sensor.history] on, \
                     process_budget_mib)",
                )
            })?;
            pool.run(move || answer(history.reader(), &params, visibility, calendar())).await
        }
    })
}

fn answer(
    history: &DailyReader,
    params: &ProcessHistoryParams,
    visibility: Visibility,
    now: Time,
) -> Result<ProcessHistory, Fault> {
    let (since, until) = between((params.since, params.until), SPAN_DEFAULT, now)?;
    let mut found = Found { query: Query::new(params, visibility)?, ..Found::default() };
    let unreadable =
        |error: std::io::Error| Fault::unavailable(format!("the process history cannot be read: {error}"));
    // The minute in which the time starts is named by its own start.
    let read =
        history.each(since.minus(MINUTE).plus(Duration::from_micros(1)), until, |_, bytes| found.add(bytes));
    found.answer.own_only = !visibility.is_all();
    found.answer.damaged_bytes += read.map_err(unreadable)?;
    if found.is_full {
        return Err(Fault::invalid_params(format!(
            "more than {PROCESSES_MAX} processes are stored for this time; choose a shorter one, a name or a user"
        )));
    }
    found.answer.oldest = history.oldest().map_err(unreadable)?.map(UnixTime);
    Ok(found.end(params))
}

/// Requested processes.
#[derive(Default)]
struct Query {
    name: Option<String>,
    uid: Option<u32>,
    pid: Option<u32>,
    job: Option<String>,
    visibility: Option<Visibility>,
}

impl Query {
    fn new(params: &ProcessHistoryParams, visibility: Visibility) -> Result<Query, Fault> {
        let ProcessHistoryParams { name, user, pid, job, .. } = params.clone();
        Ok(Query { name, uid: wanted_uid(user.as_deref())?, pid, job, visibility: Some(visibility) })
    }

    fn fits(&self, row: &ProcessRow) -> bool {
        self.visibility.is_some_and(|visibility| visibility.inspects(row.uid))
            && self.name.as_ref().is_none_or(|name| name_match::matches(name, &row.name))
            && self.uid.is_none_or(|uid| uid == row.uid)
            && self.pid.is_none_or(|pid| pid == row.key.pid)
            && self.job.as_ref().is_none_or(|job| row.job.as_deref() == Some(job))
    }
}

/// Processes as they are found, minute by minute.
#[derive(Default)]
struct Found {
    query: Query,
    answer: ProcessHistory,
    /// Place in the answer of each process, by boot.
    places: HashMap<(usize, ProcessKey), usize>,
    /// Time observed of the minutes of each process.
    covered: Vec<Duration>,
    boots: Vec<Time>,
    is_full: bool,
}

impl Found {
    /// Adds a minute; returns whether there is room for more.
    fn add(&mut self, bytes: &[u8]) -> bool {
        let Some(minute) = ProcessMinute::unpack(bytes) else {
            self.answer.damaged_bytes += bytes.len() as u64;
            return true;
        };
        self.answer.minutes += 1;
        self.answer.missed += minute.missed;
        let known = self.boots.iter().position(|boot| is_one_boot(*boot, minute.booted));
        let boot = known.unwrap_or_else(|| {
            self.boots.push(minute.booted);
            self.boots.len() - 1
        });
        for row in &minute.rows {
            if self.query.fits(row) {
                self.add_row(boot, &minute, row);
            }
        }
        self.is_full = self.answer.processes.len() > PROCESSES_MAX;
        !self.is_full
    }

    fn add_row(&mut self, boot: usize, minute: &ProcessMinute, row: &ProcessRow) {
        let next = self.answer.processes.len();
        let place = *self.places.entry((boot, row.key)).or_insert(next);
        let time = |ns| UnixTime(self.boots[boot].plus(Duration::from_nanos(ns)));
        if place == next {
            self.covered.push(Duration::ZERO);
            self.answer.processes.push(TopProcess {
                pid: row.key.pid,
                start: time(row.key.start_ns),
                start_ns: row.key.start_ns,
                first: UnixTime(minute.start),
                ..TopProcess::default()
            });
        }
        let process = &mut self.answer.processes[place];
        self.covered[place] += Duration::from_micros(minute.covered_us);
        // What it became is what it is known by.
        (process.parent, process.uid, process.name) = (row.parent, row.uid, row.name.clone());
        process.command =
            Some(&row.command).filter(|command| !command.is_empty()).cloned().or(process.command.take());
        process.job = row.job.clone().or(process.job.take());
        process.minutes += 1;
        process.last = UnixTime(minute.start);
        process.cpu_seconds += Duration::from_nanos(row.cpu_ns).as_secs_f64();
        process.rss_max_bytes = process.rss_max_bytes.max(row.rss_kib.saturating_mul(1024));
        if let Some((read, written)) = row.io_bytes {
            process.read_bytes = Some(process.read_bytes.unwrap_or_default().saturating_add(read));
            process.written_bytes = Some(process.written_bytes.unwrap_or_default().saturating_add(written));
        }
        if let Some((end_ns, code)) = row.end {
            process.end = Some(time(end_ns));
            process.exit_status = process::exit_status(code);
            process.signal = process::signal(code);
        }
    }

    fn end(self, params: &ProcessHistoryParams) -> ProcessHistory {
        let Found { mut answer, covered, .. } = self;
        for (process, covered) in answer.processes.iter_mut().zip(covered) {
            process.cpu = process.cpu_seconds / covered.as_secs_f64().max(1.0);
        }
        answer.total = answer.processes.len() as u64;
        answer.processes.sort_by(|a, b| a.compare(b, params.order));
        answer.processes.truncate(usize::try_from(params.limit).unwrap_or(usize::MAX));
        let mut users = Users::default();
        for process in &mut answer.processes {
            process.user = users.name(process.uid).map(ToOwned::to_owned);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::daily::{DailyLimit, DailyLog};
    use wire::query::Viewer;
    use wire::version::PROCESS_HISTORY;

    const START: Time = Time::from_micros(1_795_737_600_000_000);
    const BOOTED: Time = Time::from_micros(1_795_000_000_000_000);

    fn row(pid: u32, uid: u32, cpu_ms: u64) -> ProcessRow {
        ProcessRow {
            key: ProcessKey { pid, start_ns: u64::from(pid) },
            uid,
            name: "work".into(),
            cpu_ns: cpu_ms * 1_000_000,
            rss_kib: cpu_ms,
            ..ProcessRow::default()
        }
    }

    /// Ten minutes in which pid 1 of root uses a second each and pid 2 of user 1000 two, which ends in the last.
    fn stored(folder: &std::path::Path) -> DailyReader {
        let limit = DailyLimit { bytes: 1 << 20, days: 9 };
        let mut log = DailyLog::open(folder, PROCESS_HISTORY, limit).expect("a folder");
        for number in 0..10u32 {
            let mut rows = vec![row(1, 0, 1000), row(2, 1000, 2000)];
            rows[0].job = Some("slurm:17".into());
            rows[1].end = (number == 9).then_some((5_000_000_000, 9));
            let start = START.plus(MINUTE * number);
            // After a reboot the same ids are other processes.
            let booted = if number < 5 { BOOTED } else { START };
            let minute =
                ProcessMinute { start, covered_us: 60_000_000, booted, processes: 2, missed: 1, rows };
            log.append(start, &minute.pack().expect("memory")).expect("there is room");
        }
        log.reader()
    }

    fn ask(reader: &DailyReader, params: &ProcessHistoryParams, viewer: Viewer) -> ProcessHistory {
        let now = START.plus(MINUTE * 10);
        answer(reader, params, Visibility::with(viewer, false), now).expect("an answer")
    }

    #[test]
    fn usage_is_summed_over_the_minutes_of_each_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let reader = stored(folder.path());
        let found = ask(&reader, &ProcessHistoryParams::default(), Viewer::Trusted);
        assert_eq!((found.minutes, found.total, found.missed), (10, 4, 10));
        assert_eq!(found.oldest, Some(UnixTime(START)));
        let [most, ..] = found.processes.as_slice() else { panic!("{found:?}") };
        assert_eq!((most.pid, most.minutes, most.cpu_seconds), (2, 5, 10.0));
        assert!((most.cpu - 2.0 / 60.0).abs() < 1e-9, "{}", most.cpu);
        let ended: Vec<_> = found.processes.iter().filter_map(|process| process.signal).collect();
        assert_eq!(ended, [9]);
        let two = ProcessHistoryParams {
            since: Some(UnixTime(START.plus(MINUTE * 2 + Duration::from_secs(30)))),
            until: Some(UnixTime(START.plus(MINUTE * 4))),
            ..ProcessHistoryParams::default()
        };
        assert_eq!(ask(&reader, &two, Viewer::Trusted).minutes, 2, "widened to whole minutes");
        let job = ProcessHistoryParams { job: Some("slurm:17".into()), ..ProcessHistoryParams::default() };
        assert!(ask(&reader, &job, Viewer::Trusted).processes.iter().all(|process| process.pid == 1));
    }

    #[test]
    fn processes_of_others_are_absent() {
        let folder = tempfile::tempdir().expect("a folder");
        let reader = stored(folder.path());
        let uids = |viewer| {
            let found = ask(&reader, &ProcessHistoryParams::default(), viewer);
            assert_eq!(found.total, found.processes.len() as u64);
            assert_eq!(found.own_only, viewer != Viewer::Trusted);
            found.processes.iter().map(|process| process.uid).collect::<Vec<_>>()
        };
        assert_eq!(uids(Viewer::User(1000)), [1000, 1000]);
        assert_eq!(uids(Viewer::Trusted).len(), 4);
        assert!(uids(Viewer::User(1001)).is_empty() && uids(Viewer::Anonymous).is_empty());
    }
}
