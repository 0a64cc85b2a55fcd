//! `visperf processes --from PLACE`: processes of exported days, without a daemon.
//!
//! Not here: the files (`history_files`).

use super::{Args, past};
use crate::command::history::exported::Exported;
use crate::command::query;
use crate::exit::Failure;
use crate::output::{as_answered, note};
use history_files::processes::STEP_SECS;
use history_files::read::processes::HourOfProcess;
use history_files::table::Table;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::process_history::TopProcess;
use wire::api::processes::ProcessOrder;
use wire::id::HostName;
use wire::name_match;
use wire::time::Time;

/// Span of time by default.
const SPAN_DEFAULT: Duration = Duration::from_secs(86_400);

/// Processes that are read, at most.
const PROCESSES_MAX: usize = 1_000_000;

/// Length of what a row is about.
const HOUR: Duration = Duration::from_secs(STEP_SECS as u64);

/// Prints the processes.
///
/// # Errors
/// If the place cannot be read, or one of its files.
pub(super) fn print(args: &Args, place: &str) -> Result<(), Failure> {
    args.between.check()?;
    let mut exported = Exported::open(place, args.place.domain.as_deref())?;
    let until = args.between.until.unwrap_or_else(|| exported.end());
    let since = args.between.since.unwrap_or_else(|| until.min(exported.end()).minus(SPAN_DEFAULT));
    note_hours(&mut exported, args);
    exported.choose(Some(since), Some(until.minus(Duration::from_micros(1))));
    let mut found = read(&mut exported, args, (since, until))?;
    let total = found.len();
    found.truncate(usize::try_from(args.limit).unwrap_or(usize::MAX));
    let mut output = args.query.width.output();
    if args.query.json {
        for (host, process) in &found {
            let mut raw = as_answered(process)?;
            if let Value::Object(fields) = &mut raw {
                fields.insert("host".to_owned(), host.as_str().into());
            }
            output.json(&raw)?;
        }
    } else if found.is_empty() {
        note("no process of this time fits");
    } else {
        let found = found.iter().map(|(host, process)| (Some(host.as_str()), process));
        past::table(found, args.order, &mut output)?;
    }
    output.flush()?;
    query::note_left_out(found.len(), total as u64, "processes");
    exported.finish()
}

/// Notes that what is asked for in minutes is answered in hours.
fn note_hours(exported: &mut Exported, args: &Args) {
    let is_within =
        |time: &Time| !time.micros().unsigned_abs().is_multiple_of(1_000_000 * u64::from(STEP_SECS));
    if args.between.since.iter().chain(&args.between.until).any(is_within) {
        exported.notes.push("processes are exported by the hour: these are those of whole hours".to_owned());
    }
}

/// The processes of the hours that begin from the first time on, widened to whole hours, and before the second; each
/// with what it used in all of them, in the wanted order.
///
/// # Errors
/// If they are too many.
fn read(
    exported: &mut Exported,
    args: &Args,
    (since, until): (Time, Time),
) -> Result<Vec<(String, TopProcess)>, Failure> {
    let host = args.place.host.as_deref().map(HostName::try_from).transpose();
    let host = host.map_err(|error| Failure::Usage(format!("--host: {error}")))?;
    let mut found = BTreeMap::<(String, u32), Vec<TopProcess>>::new();
    let (mut count, files) = (0, exported.files(Table::Processes));
    if files.len() < exported.days.len() {
        let days = exported.days.len() - files.len();
        exported.notes.push(format!("of {days} of these days no processes are exported"));
    }
    let bar = exported.bar();
    for file in files {
        let read = exported.destination.processes(&file, host.as_ref(), &mut |hour| {
            if hour.time < until && hour.time.plus(HOUR) > since && fits(args, &hour.process) {
                let HourOfProcess { host, process, .. } = hour;
                let of_pid = found.entry((host, process.pid)).or_default();
                match of_pid.iter_mut().find(|known| known.is_same(&process)) {
                    Some(known) => known.add(process),
                    None => {
                        count += 1;
                        if count <= PROCESSES_MAX {
                            of_pid.push(process);
                        }
                    }
                }
            }
        });
        if let Err(error) = read {
            exported.failed(&error);
        }
        bar.inc(1);
        if count > PROCESSES_MAX {
            break;
        }
    }
    bar.finish_and_clear();
    if count > PROCESSES_MAX {
        return Err(Failure::Usage(format!(
            "more than {PROCESSES_MAX} processes are exported for this time; choose a shorter one, a host, a name or \
             a user"
        )));
    }
    let with_host = |((host, _), processes): (_, Vec<TopProcess>)| {
        processes.into_iter().map(move |process| (String::clone(&host), process))
    };
    let mut found: Vec<(String, TopProcess)> = found.into_iter().flat_map(with_host).collect();
    let order: ProcessOrder = args.order.into();
    found.sort_by(|(_, a), (_, b)| a.compare(b, order));
    Ok(found)
}

fn fits(args: &Args, process: &TopProcess) -> bool {
    args.name.as_ref().is_none_or(|name| name_match::matches(name, &process.name))
        && args.user.as_ref().is_none_or(|user| is_of(user, process))
        && args.pid.is_none_or(|pid| pid == u64::from(process.pid))
        && args.job.as_ref().is_none_or(|job| process.job.as_deref() == Some(job))
}

/// Whether a process belongs to this user: a name, or a user id.
fn is_of(user: &str, process: &TopProcess) -> bool {
    process.user.as_deref() == Some(user) || user.parse() == Ok(process.uid)
}
