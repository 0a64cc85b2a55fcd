//! Exported days that a command reads instead of asking a daemon (`--from PLACE`).
//!
//! Not here: what is read of them (`metrics::history`, `calls`).

use super::days::span;
use super::failed;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::moment;
use crate::output::figures::count;
use crate::output::times::shown;
use crate::output::{note, report};
use history_files::day::{Day, DayFile};
use history_files::destination::Destination;
use history_files::table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use wire::time::Time;

/// Gaps between days that are noted, the newest.
const GAPS_SHOWN: usize = 3;

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
    /// Oldest first.
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
        let (days, problems) = destination.days().map_err(failed)?;
        let days = of_domain(days, domain, place)?;
        let problems = problems.iter().map(ToString::to_string).collect();
        Ok(Exported { destination, days, notes: Vec::new(), problems })
    }

    /// The files of a table, oldest first.
    pub(crate) fn files(&self, table: Table) -> Vec<DayFile> {
        self.days.iter().filter_map(|day| day.file(table).cloned()).collect()
    }

    /// Until when the days reach.
    pub(crate) fn end(&self) -> Time {
        let end = |day: &Day| day.until.map_or(span(day.date).end, |until| until.0);
        self.days.iter().map(end).max().unwrap_or_default()
    }

    /// Leaves the days that have any of this time, the end included; notes what is there, and what is not.
    pub(crate) fn leave(&mut self, since: Option<Time>, until: Option<Time>) {
        let there = reach(&self.days);
        self.days.retain(|day| {
            let day = span(day.date);
            since.is_none_or(|since| since < day.end) && until.is_none_or(|until| until >= day.start)
        });
        self.notes.push(match self.days.as_slice() {
            [] => format!("no day of this time is exported to {}, which has {there}", self.destination),
            days => format!(
                "read from {} exported to {}: {}",
                count(days.len() as u64, "day"),
                self.destination,
                reach(days)
            ),
        });
        self.notes.extend(gaps(&self.days));
    }

    /// Notes a file that cannot be read; the others are.
    pub(crate) fn failed(&mut self, error: &history_files::Error) {
        self.problems.push(error.to_string());
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
        note(
            "visperf history list PLACE --verify reads every file, visperf history export PLACE --again writes days again",
        );
        Err(Failure::Printed(Kind::Failed))
    }
}

/// The first and the last day, and until when if it was not over.
fn reach(days: &[Day]) -> String {
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return "no day".to_owned() };
    let until = last.until.map(|until| format!(", until {}", shown(until.0, &TimeZone::system())));
    let until = until.unwrap_or_default();
    match first.date == last.date {
        true => format!("{}{until}", first.date),
        false => format!("{} to {}{until}", first.date, last.date),
    }
}

/// Note on days between others that are not there.
fn gaps(days: &[Day]) -> Option<String> {
    let gap = |pair: &[Day]| {
        let (first, last) = (pair[0].date.tomorrow().ok()?, pair[1].date.yesterday().ok()?);
        (first <= last).then(|| if first == last { first.to_string() } else { format!("{first} to {last}") })
    };
    let gaps: Vec<String> = days.windows(2).filter_map(gap).collect();
    let newest = &gaps[gaps.len().saturating_sub(GAPS_SHOWN)..];
    (!gaps.is_empty()).then(|| format!("not exported, or nothing was stored: {}", newest.join(", ")))
}

/// The days of a domain, which must be named if there are several.
fn of_domain(days: Vec<Day>, domain: Option<&str>, place: &str) -> Result<Vec<Day>, Failure> {
    let all: BTreeSet<&str> = days.iter().map(|day| day.domain.as_str()).collect();
    let all = all.into_iter().collect::<Vec<_>>().join(", ");
    let days: Vec<Day> =
        days.into_iter().filter(|day| domain.is_none_or(|domain| day.domain == domain)).collect();
    match (days.first(), domain) {
        (None, Some(domain)) if !all.is_empty() => {
            Err(Failure::Usage(format!("no day of domain {domain} is exported to {place}, but of {all}")))
        }
        (None, _) => Err(Failure::Failed(format!("no day is exported to {place}"))),
        (Some(first), _) if days.iter().all(|day| day.domain == first.domain) => Ok(days),
        _ => Err(Failure::Usage(format!(
            "several domains are exported to {place}: {all}; choose one with --domain"
        ))),
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
