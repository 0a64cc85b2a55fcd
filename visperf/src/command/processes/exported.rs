//! `visperf processes --from PLACE`: processes of exported days, without a daemon.
//!
//! Not here: the files (`history_files`).

use super::{Args, past};
use crate::command::history::exported::Exported;
use crate::command::query;
use crate::exit::Failure;
use crate::output::{as_answered, note};
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

/// Length of what a row is about.
const HOUR: Duration = Duration::from_secs(history_files::processes::STEP_SECS as u64);

/// Prints the processes.
///
/// # Errors
/// If the place cannot be read, or one of its files.
pub(super) fn print(args: &Args, place: &str) -> Result<(), Failure> {
    args.between.check()?;
    let mut exported = Exported::open(place, args.place.domain.as_deref())?;
    let until = args.between.until.unwrap_or_else(|| exported.end());
    let since = args.between.since.unwrap_or_else(|| until.minus(SPAN_DEFAULT));
    exported.choose(Some(since), Some(until.minus(Duration::from_micros(1))));
    let mut found = read(&mut exported, args, (since, until));
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
        past::table(found.iter().map(|(host, process)| (Some(host.as_str()), process)), &mut output)?;
    }
    output.flush()?;
    query::note_left_out(found.len(), total as u64, "processes");
    exported.finish()
}

/// The processes of the hours that begin from the first time on, widened to whole hours, and before the second; each
/// with what it used in all of them, in the wanted order.
fn read(exported: &mut Exported, args: &Args, (since, until): (Time, Time)) -> Vec<(String, TopProcess)> {
    let host = args.place.host.as_deref().and_then(|host| HostName::try_from(host).ok());
    let mut found = BTreeMap::<(String, u32), Vec<TopProcess>>::new();
    let bar = exported.bar();
    for file in exported.files(Table::Processes) {
        let read = exported.destination.processes(&file, host.as_ref(), &mut |hour| {
            if hour.time < until && hour.time.plus(HOUR) > since && fits(args, &hour.process) {
                let HourOfProcess { host, process, .. } = hour;
                let of_pid = found.entry((host, process.pid)).or_default();
                match of_pid.iter_mut().find(|known| known.is_same(&process)) {
                    Some(known) => known.add(process),
                    None => of_pid.push(process),
                }
            }
        });
        if let Err(error) = read {
            exported.failed(&error);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let with_host = |((host, _), processes): (_, Vec<TopProcess>)| {
        processes.into_iter().map(move |process| (String::clone(&host), process))
    };
    let mut found: Vec<(String, TopProcess)> = found.into_iter().flat_map(with_host).collect();
    let order: ProcessOrder = args.order.into();
    found.sort_by(|(_, a), (_, b)| a.compare(b, order));
    found
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
