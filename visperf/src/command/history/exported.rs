//! Exported days that a command reads instead of asking a daemon (`--from PLACE`).
//!
//! Not here: what is read of them (`metrics::history`, `calls`, `events`).

use super::failed;
use super::list::incomplete;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::moment;
use crate::output::times::shown;
use crate::output::{note, report};
use history_files::day::{Day, DayFile, span};
use history_files::destination::Destination;
use history_files::table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use wire::shell::quoted;
use wire::shown::count;
use wire::time::Time;

/// Days that a note names, the newest.
const NOTED_MAX: usize = 3;

/// Value parser for the place of an export.
///
/// # Errors
/// If it is none, or a time was meant.
pub(crate) fn place(text: &str) -> Result<String, String> {
    let place = text.trim().to_owned();
    if place.is_empty() {
        return Err("expected a folder or s3://BUCKET/PREFIX".to_owned());
    }
    match moment(&place) {
        Ok(_) if !Path::new(&place).exists() => {
            Err("expected the folder or s3://BUCKET/PREFIX of an export, found a time; was --since meant?"
                .to_owned())
        }
        _ => Ok(place),
    }
}

/// The days of a domain at a place.
pub(crate) struct Exported {
    pub(crate) destination: Destination,
    /// Those that have a record, oldest first.
    dates: Vec<(String, Date)>,
    /// Those that are read.
    pub(crate) days: Vec<Day>,
    /// What a user should know of what is read.
    pub(crate) notes: Vec<String>,
    /// Records and files that cannot be read.
    problems: Vec<String>,
}

impl Exported {
    /// Finds the days of a domain, which must be named if there are several.
    ///
    /// # Errors
    /// If the place cannot be read, or has no such day.
    pub(crate) fn open(place: &str, domain: Option<&str>) -> Result<Exported, Failure> {
        let destination = Destination::open(place, false).map_err(failed)?;
        let dates = of_domain(destination.dates().map_err(failed)?, domain, place)?;
        Ok(Exported { destination, dates, days: Vec::new(), notes: Vec::new(), problems: Vec::new() })
    }

    /// Until when the days reach.
    pub(crate) fn end(&self) -> Time {
        let Some((domain, date)) = self.dates.last() else { return Time::default() };
        let day = self.destination.day(domain, *date).ok().flatten();
        day.and_then(|day| day.until).map_or(span(*date).end, |until| until.0)
    }

    /// Chooses the days that have any of this time, the end included; notes what is there, and what is not.
    pub(crate) fn choose(&mut self, since: Option<Time>, until: Option<Time>) {
        let there = reach(self.dates.iter().map(|(_, date)| *date));
        self.dates.retain(|(_, date)| {
            let day = span(*date);
            since.is_none_or(|since| since < day.end) && until.is_none_or(|until| until >= day.start)
        });
        let (days, problems) = self.destination.days(&self.dates);
        self.days = days;
        problems.iter().for_each(|problem| self.failed(problem));
        let place = &self.destination;
        if self.dates.is_empty() {
            self.notes.push(format!("no day of this time is exported to {place}, which has {there}"));
            return;
        }
        self.notes.push(format!(
            "read from {} exported to {place}: {}",
            count(self.days.len() as u64, "day"),
            reach(self.dates.iter().map(|(_, date)| *date)),
        ));
        self.notes.extend(gaps(&self.dates));
        self.notes.extend(incomplete_days(&self.days));
    }

    /// Notes a file that cannot be read; the others are.
    pub(crate) fn failed(&mut self, error: &history_files::Error) {
        self.problems.push(error.to_string());
    }

    /// The files of a table, oldest first.
    pub(crate) fn files(&self, table: Table) -> Vec<DayFile> {
        self.days.iter().filter_map(|day| day.file(table).cloned()).collect()
    }

    /// Shows on a terminal how many days were read.
    pub(crate) fn bar(&self) -> ProgressBar {
        days_bar(self.days.len())
    }

    /// Says what a user should know of what was read.
    ///
    /// # Errors
    /// If a record or a file could not be read: all others were.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.notes.iter().for_each(|text| note(&clean(text)));
        if self.problems.is_empty() {
            return Ok(());
        }
        self.problems.iter().for_each(|problem| report(&clean(problem)));
        let place = quoted(&self.destination.to_string());
        note(&clean(&format!(
            "visperf history list {place} --verify reads every file, visperf history export {place} --again writes days again"
        )));
        Err(Failure::Printed(Kind::Failed))
    }
}

/// The first and the last of these days.
fn reach(mut dates: impl DoubleEndedIterator<Item = Date>) -> String {
    let Some(first) = dates.next() else { return "none".to_owned() };
    dates.next_back().map_or(first.to_string(), |last| format!("{first} to {last}"))
}

/// Note on days between others that are not there.
fn gaps(dates: &[(String, Date)]) -> Option<String> {
    let gap = |pair: &[(String, Date)]| {
        let (first, last) = (pair[0].1.tomorrow().ok()?, pair[1].1.yesterday().ok()?);
        (first <= last).then(|| if first == last { first.to_string() } else { format!("{first} to {last}") })
    };
    let gaps: Vec<String> = dates.windows(2).filter_map(gap).collect();
    (!gaps.is_empty()).then(|| format!("not exported, or nothing was stored: {}", newest(&gaps)))
}

/// Note on days that lack something.
fn incomplete_days(days: &[Day]) -> Option<String> {
    let days: Vec<String> = days
        .iter()
        .map(|day| (day, incomplete(day)))
        .filter(|(_, missing)| !missing.is_empty())
        .map(|(day, missing)| {
            let until = day.until.map(|until| format!(", until {}", shown(until.0, &TimeZone::system())));
            format!("{} ({}{})", day.date, missing.join(", "), until.unwrap_or_default())
        })
        .collect();
    (!days.is_empty()).then(|| format!("incomplete: {}", newest(&days)))
}

/// The last of these texts, and how many others there are.
fn newest(texts: &[String]) -> String {
    let others = texts.len().saturating_sub(NOTED_MAX);
    let last = texts[others..].join(", ");
    if others > 0 { format!("{others} others, {last}") } else { last }
}

/// The days of a domain, which must be named if there are several.
fn of_domain(
    dates: Vec<(String, Date)>,
    domain: Option<&str>,
    place: &str,
) -> Result<Vec<(String, Date)>, Failure> {
    let all: BTreeSet<&str> = dates.iter().map(|(domain, _)| domain.as_str()).collect();
    let (several, all) = (all.len() > 1, all.into_iter().collect::<Vec<_>>().join(", "));
    if dates.is_empty() {
        return Err(Failure::Failed(format!("no day is exported to {place}")));
    }
    let Some(domain) = domain else {
        return match several {
            true => Err(Failure::Usage(format!(
                "several domains are exported to {place}: {all}; choose one with --domain"
            ))),
            false => Ok(dates),
        };
    };
    let dates: Vec<_> = dates.into_iter().filter(|(of, _)| of == domain).collect();
    match dates.is_empty() {
        true => {
            Err(Failure::Usage(format!("no day of domain {domain} is exported to {place}, but of {all}")))
        }
        false => Ok(dates),
    }
}

/// Progress over days.
pub(super) fn days_bar(days: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} days {wide_msg}");
    ProgressBar::new(days as u64).with_style(style.expect("a constant template"))
}
