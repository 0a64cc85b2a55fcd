//! Exported days that a command reads instead of asking a daemon (`--from PLACE`).
//!
//! Not here: what is read of them (`metrics::history`, `calls`).

use super::days::span;
use super::failed;
use crate::exit::Failure;
use crate::options::{chosen, moment};
use crate::output::figures::count;
use history_files::day::Day;
use history_files::destination::Destination;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::Path;
use wire::time::Time;

/// Value parser for the place of an export.
///
/// # Errors
/// If it is none, or a time was meant.
pub(crate) fn place(text: &str) -> Result<String, String> {
    let place = chosen(text)?;
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
    /// Records that cannot be read.
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
        Ok(Exported { destination, days, problems })
    }

    /// Until when the days reach.
    pub(crate) fn end(&self) -> Time {
        let end = |day: &Day| day.until.map_or(span(day.date).end, |until| until.0);
        self.days.iter().map(end).max().unwrap_or_default()
    }

    /// Leaves the days that have any of this time, the end included.
    pub(crate) fn leave(&mut self, since: Option<Time>, until: Option<Time>) {
        self.days.retain(|day| {
            let day = span(day.date);
            since.is_none_or(|since| since < day.end) && until.is_none_or(|until| until >= day.start)
        });
    }

    /// Shows on a terminal how many days were read.
    pub(crate) fn bar(&self) -> ProgressBar {
        days_bar(self.days.len())
    }

    /// What a user should know of what was read.
    pub(crate) fn notes(&self) -> Vec<String> {
        let gap = |pair: &[Day]| pair[0].date.tomorrow().is_ok_and(|next| next != pair[1].date);
        let gaps: Vec<String> =
            self.days.windows(2).filter(|pair| gap(pair)).map(|pair| pair[0].date.to_string()).collect();
        let mut notes = self.problems.clone();
        notes.push(format!(
            "read from {} exported to {}",
            count(self.days.len() as u64, "day"),
            self.destination
        ));
        if !gaps.is_empty() {
            notes.push(format!("days are missing after {}", gaps.join(", ")));
        }
        notes
    }
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
