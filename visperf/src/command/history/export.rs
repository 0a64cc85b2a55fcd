//! `visperf history export`: days that are over, as Parquet files.
//!
//! Rule: a day that was exported is not exported again, unless more is known of it now. Not here: the rows
//! (`source`), the files (`history_files`).

use super::days::{Reach, Walk, is_over};
use super::exported::{days_bar, place};
use super::source::Source;
use super::{day, failed};
use crate::command::interrupt::Interrupt;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{OfDomain, Query};
use crate::output::{as_answered, note, report, times};
use history_files::Error;
use history_files::day::{Day, DayFile, span};
use history_files::destination::Destination;
use history_files::table::{Finished, Part, Rows, Table, TableFile};
use history_files::{calls, events, metrics, processes};
use indicatif::ProgressBar;
use jiff::civil::Date;
use wire::api::UnixTime;
use wire::api::calls::Calls;
use wire::api::events::Events;
use wire::api::history::{DomainHistory, HostBehind};
use wire::shown::{count, whole_bytes};

/// Export the days that are over as Parquet files
///
/// Every day from the oldest that is stored until yesterday (UTC) that is not there yet. Interrupted, it goes on
/// with the next start. Calls and processes of other users are exported by root and by operators of the domain only.
///
/// An object store that speaks S3 is named s3://BUCKET/PREFIX; its endpoint and credentials are read from the
/// variables AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf history export /srv/grid-history
  visperf history export /srv/grid-history --since 2026-11-01 --until 2026-11-07
  visperf history export ./history --today
  AWS_ENDPOINT_URL=http://127.0.0.1:3900 AWS_REGION=garage \\
      visperf history export s3://grid-history/physics

For every day: a timer or cron job that runs it once a day, shortly after
midnight UTC.")]
pub(super) struct Args {
    /// Folder, which is created if it does not exist, or s3://BUCKET/PREFIX
    #[arg(value_name = "PLACE", value_parser = place)]
    place: String,
    /// Only this day (UTC) and later ones
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<Date>,
    /// Only this day (UTC) and earlier ones
    #[arg(long, value_name = "DAY", value_parser = day)]
    until: Option<Date>,
    /// Also what there is of a day that is not over; the next export writes it again
    #[arg(long)]
    today: bool,
    /// Export days again that are there already
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
}

/// Export.
///
/// # Errors
/// If no daemon is reached, or something cannot be written.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if let (Some(since), Some(until)) = (args.since, args.until)
        && since > until
    {
        return Err(Failure::Usage(format!(
            "--since {since} is later than --until {until}: exchange the two"
        )));
    }
    // What is exported may concern persons: it is for its owner and group.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o027));
    let destination = Destination::open(&args.place, true).map_err(failed)?;
    let _interrupt = Interrupt::catch(|| note("interrupted; the next export goes on"))?;
    let _lock = destination.lock(|| note("waiting for another export to this place")).map_err(failed)?;
    let mut source = Source::new(&args.query.target, &args.whose)?;
    let reach = source.reach()?;
    let walk = Walk { since: args.since, until: args.until, open: args.today, now: times::now() };
    let days = source.days(&reach, &walk)?;
    if days.is_empty() {
        // Whether the place can be used is not left for the first day that is over.
        destination.dates().map_err(failed)?;
    }
    let bar = days_bar(days.len());
    let mut output = args.query.width.output();
    let (mut exported, mut problems) = (Vec::new(), Vec::new());
    for date in days.iter().copied() {
        let known = match destination.day(&source.domain, date) {
            Err(Error::Record { .. }) if args.again => None,
            Err(error @ Error::Record { .. }) => {
                // The days after it are exported all the same.
                problems.push(error.to_string());
                continue;
            }
            Err(error) => return Err(failed(error)),
            Ok(known) => known,
        };
        if args.again || known.as_ref().is_none_or(|known| has_more(known, &reach)) {
            let day = one(&mut source, &destination, (date, known.as_ref()), &reach, &bar)?;
            bar.suspend(|| match args.query.json {
                true => output.json(&as_answered(&day.brief())?),
                false => output.line(&line(&day)),
            })?;
            exported.push(day);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    output.flush()?;
    if !args.query.json && (days.is_empty() || problems.len() < days.len()) {
        note(&summary(&exported, (days.len() - problems.len(), args.today), &destination));
    }
    note_left_out(&exported);
    problems.iter().for_each(|problem| report(problem));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::Printed(Kind::Failed)),
    }
}

/// Says what the caller may not see.
fn note_left_out(exported: &[Day]) {
    let calls = exported.iter().any(|day| day.own_calls_only).then_some("stored calls");
    let processes = exported.iter().any(|day| day.own_processes_only).then_some("processes");
    let parts: Vec<&str> = calls.into_iter().chain(processes).collect();
    if !parts.is_empty() {
        note(&format!(
            "{} of other users are left out: root, over the daemon's local socket, and operators of the domain export all",
            parts.join(" and ")
        ));
    }
}

/// Whether more can be exported of a day than was: it was not over, or not all was seen, or a host that was behind or
/// silent has more now.
pub(super) fn has_more(known: &Day, reach: &Reach) -> bool {
    known.unfinished
        || (known.own_calls_only && !reach.own_calls_only)
        || known.until.is_some()
        // Exported by a version without events.
        || known.file(Table::Events).is_none()
        // Exported by a version without processes, which are stored still.
        || (known.file(Table::Processes).is_none()
            && reach.processes.is_some_and(|UnixTime(oldest)| oldest < known.span().end))
        || (known.own_processes_only && !reach.own_processes_only)
        || known.silent.iter().any(|host| reach.hosts.get(host) == Some(&true))
        || known.unheard.iter().any(|host| !reach.unheard.contains(host))
        || known
            .behind
            .iter()
            .any(|HostBehind { host, until }| reach.behind.get(host).is_none_or(|now| now > until))
}

/// Exports a day; the bar shows how far. What is there already stays if it has more rows: minutes that are no longer
/// stored, calls that the caller may not see.
fn one(
    source: &mut Source,
    destination: &Destination,
    (date, known): (Date, Option<&Day>),
    reach: &Reach,
    bar: &ProgressBar,
) -> Result<Day, Failure> {
    let show = |what: &str| bar.set_message(clean(&format!("{date}: {what}")).into_owned());
    let now = times::now();
    let mut day = Day::new(&source.domain, date, UnixTime(now));
    day.until = (!is_over(date, now)).then_some(UnixTime(now));
    let mut of_metrics = Growing::new(Table::Metrics, &day);
    show("metrics");
    source.metrics(date, |DomainHistory { history, behind }| {
        day.behind.clone_from(behind);
        let host = history.series.last().and_then(|series| series.host.as_deref());
        show(&format!("metrics of {}", host.unwrap_or_default()));
        of_metrics.write(&metrics::rows(history))
    })?;
    let of_processes = processes_of(source, &mut day, reach, &show)?;
    show("calls");
    let mut of_calls = Growing::new(Table::Calls, &day);
    source.calls(date, |Calls { calls, stored_own_only, .. }| {
        day.own_calls_only |= stored_own_only;
        of_calls.write(&calls::rows(calls))
    })?;
    show("events");
    let mut of_events = Growing::new(Table::Events, &day);
    day.missed_events = source.events(date, reach.deleted_events, |Events { events, unheard, .. }| {
        day.unheard.clone_from(unheard);
        of_events.write(&events::rows(events))
    })?;
    let files = [of_metrics, of_processes, of_calls, of_events]
        .into_iter()
        .map(Growing::finish)
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(known) = known {
        destination.record(&Day { unfinished: true, ..known.clone() }).map_err(failed)?;
    }
    for file in files {
        let there = known.and_then(|known| Some((known, known.file(file.part.table)?)));
        // What is damaged is replaced, even by less.
        let kept = there.filter(|(known, there)| {
            has_less(&day, &file, known, there) && destination.verify(there).is_ok()
        });
        let stored = match kept {
            Some((known, there)) => {
                keep(&mut day, known, there.table);
                let now = count(file.rows, "row");
                let text = format!("{}: kept, as only {now} of it are stored and seen now", there.path);
                bar.suspend(|| note(&text));
                there.clone()
            }
            None => destination.put(file).map_err(failed)?,
        };
        day.files.push(stored);
    }
    destination.record(&day).map_err(failed)?;
    Ok(day)
}

/// The processes of a day, host by host.
fn processes_of(
    source: &mut Source,
    day: &mut Day,
    reach: &Reach,
    show: &dyn Fn(&str),
) -> Result<Growing, Failure> {
    let mut file = Growing::new(Table::Processes, day);
    file.write(&processes::rows("", span(day.date).start, &[]))?;
    for (host, is_live) in &reach.hosts {
        show(&format!("processes of {host}"));
        let has_answered = *is_live
            && source.processes(day.date, host, |hour, answer| {
                day.own_processes_only |= answer.own_only;
                file.write(&processes::rows(host, hour, &answer.processes))
            })?;
        if !has_answered {
            day.silent.push(host.clone());
        }
    }
    Ok(file)
}

/// What is missing in a table that is kept is missing in the day.
fn keep(day: &mut Day, known: &Day, table: Table) {
    match table {
        Table::Metrics => {
            day.until = known.until.or(day.until);
            day.behind.clone_from(&known.behind);
        }
        Table::Processes => {
            day.own_processes_only = known.own_processes_only;
            // Once a host has answered, it has no more.
            day.silent.retain(|host| known.silent.contains(host));
        }
        Table::Calls => day.own_calls_only &= known.own_calls_only,
        Table::Events => {
            day.unheard.clone_from(&known.unheard);
            day.missed_events = known.missed_events;
        }
    }
}

/// Whether a file has less than the one that is there: fewer rows, or not the calls of all.
fn has_less(day: &Day, file: &Finished, known: &Day, there: &DayFile) -> bool {
    let is_own = |day: &Day| match there.table {
        Table::Processes => day.own_processes_only,
        Table::Calls => day.own_calls_only,
        Table::Metrics | Table::Events => false,
    };
    there.rows > file.rows || (is_own(day) && !is_own(known))
}

/// A file that begins with its first rows.
struct Growing {
    part: Part,
    file: Option<TableFile>,
}

impl Growing {
    fn new(table: Table, Day { domain, date, .. }: &Day) -> Growing {
        Growing { part: Part { table, domain: domain.clone(), date: *date }, file: None }
    }

    fn write(&mut self, rows: &Rows) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => file.write(rows).map_err(failed),
            None => {
                self.file = Some(TableFile::create(self.part.clone(), rows).map_err(failed)?);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Finished, Failure> {
        let file = self.file.ok_or_else(|| Failure::Failed("the daemon answered with no page".to_owned()))?;
        file.finish().map_err(failed)
    }
}

/// Line about a day.
fn line(day: &Day) -> String {
    let rows = |file: &DayFile| format!("{} {}", file.table, count(file.rows, "row"));
    let files: Vec<String> = day.files.iter().map(rows).collect();
    let behind = match day.behind.len() {
        0 => String::new(),
        hosts => format!(", behind: {}", count(hosts as u64, "host")),
    };
    let missed = match day.missed_events {
        0 => String::new(),
        missed => format!(", {} missed", count(missed, "event")),
    };
    let open = if day.until.is_some() { ", not over" } else { "" };
    format!("{}  {}, {}{behind}{missed}{open}", day.date, files.join(", "), whole_bytes(day.len_bytes()))
}

fn summary(exported: &[Day], (days, is_open): (usize, bool), destination: &Destination) -> String {
    let there = days - exported.len();
    match (days, exported.len()) {
        (0, _) if is_open => "nothing is stored of these days".to_owned(),
        (0, _) => {
            "no day is over and stored that fits; a day (UTC) is exported when it is over, or with --today"
                .to_owned()
        }
        (_, 0) => format!("nothing to do: {} in {destination} already", count(there as u64, "day")),
        (_, new) => {
            let bytes: u64 = exported.iter().map(Day::len_bytes).sum();
            format!(
                "{} exported to {destination}, {}; {there} there already",
                count(new as u64, "day"),
                whole_bytes(bytes)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use wire::time::Time;

    fn at(minute: i64) -> UnixTime {
        UnixTime(Time::from_micros(minute * 60_000_000))
    }

    #[test]
    fn a_day_is_exported_again_once_more_is_known_of_a_host() {
        let mut day = Day::new("physics", date(2026, 11, 26), at(0));
        let reach = |behind: &[(&str, i64)]| Reach {
            behind: behind
                .iter()
                .map(|(host, until)| ((*host).to_owned(), at(*until)))
                .collect::<BTreeMap<_, _>>(),
            ..Reach::default()
        };
        assert!(has_more(&day, &reach(&[])), "it has no events");
        day.files = vec![events_file()];
        assert!(!has_more(&day, &reach(&[("wn02", 7)])), "it was complete");
        day.until = Some(at(1));
        assert!(has_more(&day, &reach(&[])), "it was not over");
        (day.until, day.own_calls_only) = (None, true);
        assert!(has_more(&day, &reach(&[])), "now all calls are seen");
        assert!(!has_more(&day, &Reach { own_calls_only: true, ..Reach::default() }));
        day.own_calls_only = false;
        day.behind = vec![HostBehind { host: "wn01".to_owned(), until: at(5) }];
        assert!(!has_more(&day, &reach(&[("wn01", 5), ("wn02", 7)])), "it is still away");
        assert!(has_more(&day, &reach(&[("wn01", 6)])));
        assert!(has_more(&day, &reach(&[])), "it is complete now");
        (day.behind, day.unheard) = (Vec::new(), vec!["wn02".to_owned()]);
        assert!(!has_more(&day, &Reach { unheard: vec!["wn02".to_owned()], ..Reach::default() }));
        assert!(has_more(&day, &Reach::default()), "it has reported");
        (day.unheard, day.silent) = (Vec::new(), vec!["wn02".to_owned()]);
        let of_hosts = |hosts: &[(&str, bool)]| Reach {
            hosts: hosts.iter().map(|(host, is_live)| ((*host).to_owned(), *is_live)).collect(),
            ..Reach::default()
        };
        assert!(!has_more(&day, &of_hosts(&[("wn01", true), ("wn02", false)])), "it is still silent");
        assert!(!has_more(&day, &of_hosts(&[("wn01", true)])), "it has left the domain");
        assert!(has_more(&day, &of_hosts(&[("wn02", true)])), "it may answer now");
        day.silent.clear();
        let reaches_to = |time| Reach { processes: Some(UnixTime(time)), ..Reach::default() };
        let end = day.span().end;
        assert!(
            has_more(&day, &reaches_to(end.minus(Duration::from_secs(60)))),
            "its processes are stored still"
        );
        assert!(!has_more(&day, &reaches_to(end)), "they are not");
        day.files.push(DayFile { table: Table::Processes, ..events_file() });
        assert!(!has_more(&day, &reaches_to(Time::default())));
        day.own_processes_only = true;
        assert!(has_more(&day, &Reach::default()), "now all are seen");
        assert!(!has_more(&day, &Reach { own_processes_only: true, ..Reach::default() }));
    }

    fn events_file() -> DayFile {
        DayFile {
            table: Table::Events,
            path: String::new(),
            rows: 0,
            len_bytes: 0,
            sha256: String::new(),
            checksums: String::new(),
        }
    }
}
