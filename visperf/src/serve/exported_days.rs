//! Exported days from which the sensor answers what it does not store any more (`[sensor.history] exported`).
//!
//! Shell. Rule: queries never wait for the list of days: it is read again in the background, and a place that cannot be
//! read is said in the answers and the daemon's health. Not here: which times are read (`sensor::query`), the files
//! (`history_files`).

use super::info::Sources;
use history_files::day::Day;
use history_files::destination::Destination;
use history_files::read::metrics::Wanted;
use history_files::table::Table;
use jiff::civil::Date;
use sensor::config::DOMAIN_DEFAULT;
use sensor::history::exported::{ExportedDays, TakeMinute, WantedMinutes};
use sensor::run::Sensor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::HostName;
use wire::time::Time;

/// Interval at which the days are listed.
const LIST_EVERY: Duration = Duration::from_secs(300);

/// The newest days may be exported again, with more.
const READ_AGAIN: usize = 3;

/// The days; cheap to clone.
#[derive(Clone)]
pub(crate) struct Days(Arc<Inner>);

struct Inner {
    place: String,
    domain: String,
    listed: Mutex<Listed>,
}

/// What the place had when it was last listed.
struct Listed {
    /// Records of days, by date.
    days: BTreeMap<Date, Arc<Day>>,
    /// The place itself could not be read.
    is_away: bool,
    /// Days with a file that is not what its record says, so that the record is read again.
    replaced: BTreeSet<Date>,
    problem: Option<String>,
}

/// Lets a sensor read the exported days that its configuration names; list them by [`Days::run`].
pub(crate) fn open(sensor: &Sensor, sources: &mut Sources) -> Option<Days> {
    let config = sensor.config();
    // As they are exported.
    let domain = match config.domain.as_str() {
        DOMAIN_DEFAULT => config.host.as_str(),
        domain => domain,
    };
    let days = Days::new(config.exported.as_ref()?, domain);
    sensor.set_exported(Box::new(days.clone()));
    let health = days.clone();
    sources.health.push(Box::new(move || health.health()));
    Some(days)
}

impl Days {
    /// The days of a domain at a place; none until they are listed.
    fn new(place: &str, domain: &str) -> Days {
        let problem = Some(format!("the exported days of {place} are not listed yet"));
        let listed = Listed { days: BTreeMap::new(), is_away: false, replaced: BTreeSet::new(), problem };
        let listed = Mutex::new(listed);
        Days(Arc::new(Inner { place: place.to_owned(), domain: domain.to_owned(), listed }))
    }

    /// The current problem, as a sentence.
    fn health(&self) -> Vec<String> {
        self.listed().problem.iter().cloned().collect()
    }

    /// Lists the days again and again until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut list = tokio::time::interval(LIST_EVERY);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = list.tick() => {}
            }
            let days = self.clone();
            let listing = tokio::task::spawn_blocking(move || days.list());
            tokio::select! {
                // A place that does not answer stops nothing.
                () = shutdown.cancelled() => return,
                done = listing => if done.is_err() { return },
            }
        }
    }

    fn list(&self) {
        let found = self.found();
        let mut listed = self.listed();
        let before = listed.problem.take();
        match found {
            Ok(found) => *listed = found,
            Err(problem) => (listed.is_away, listed.problem) = (true, Some(problem)),
        }
        match &listed.problem {
            Some(problem) if before.as_ref() != Some(problem) => tracing::warn!("{problem}"),
            Some(_) | None => {}
        }
    }

    /// The records that are there, and the first of those that cannot be read.
    fn found(&self) -> Result<Listed, String> {
        let Inner { place, domain, .. } = &*self.0;
        let failed = |error: history_files::Error| format!("exported days cannot be read: {error}");
        let destination = Destination::open(place, false).map_err(failed)?;
        let mut dates = destination.dates().map_err(failed)?;
        dates.retain(|(of, _)| of == domain);
        let (known, replaced) = {
            let listed = self.listed();
            (listed.days.clone(), listed.replaced.clone())
        };
        let newest = dates.len().saturating_sub(READ_AGAIN);
        let (mut days, mut problem) = (BTreeMap::new(), None);
        for (at, (_, date)) in dates.iter().enumerate() {
            let is_as_before = at < newest && !replaced.contains(date);
            let day = match known.get(date).filter(|day| is_as_before && !day.unfinished) {
                Some(day) => Ok(Some(Arc::clone(day))),
                None => destination.day(domain, *date).map(|day| day.map(Arc::new)),
            };
            match day {
                Ok(day) => days.extend(day.map(|day| (*date, day))),
                Err(error) => drop(problem.get_or_insert_with(|| failed(error))),
            }
        }
        Ok(Listed { days, is_away: false, replaced: BTreeSet::new(), problem })
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.0.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    /// Times of the wanted days that have metrics.
    fn spans(&self, is_wanted: impl Fn(&Day) -> bool) -> Vec<(Time, Time)> {
        let mut spans: Vec<(Time, Time)> = Vec::new();
        let wanted = self.days.values().filter(|day| day.file(Table::Metrics).is_some() && is_wanted(day));
        for span in wanted.map(|day| day.span()) {
            match spans.last_mut() {
                Some((_, last)) if *last == span.start => *last = span.end,
                Some(_) | None => spans.push((span.start, span.end)),
            }
        }
        spans
    }
}

impl ExportedDays for Days {
    fn spans(&self) -> (Vec<(Time, Time)>, Option<String>) {
        let listed = self.listed();
        (listed.spans(|_| true), listed.problem.clone())
    }

    fn whole(&self, host: Option<&HostName>) -> Vec<(Time, Time)> {
        let is_behind = |day: &Day| {
            day.behind.iter().any(|behind| host.is_some_and(|host| host.is_spelled(&behind.host)))
        };
        self.listed().spans(|day| day.until.is_none() && !day.unfinished && !is_behind(day))
    }

    fn read(&self, wanted: &WantedMinutes, each: &mut TakeMinute<'_>) -> Result<(), String> {
        let days: Vec<Arc<Day>> = {
            let listed = self.listed();
            // No query waits for a place that did not answer the last time.
            if let Some(problem) = listed.problem.as_ref().filter(|_| listed.is_away) {
                return Err(problem.clone());
            }
            let is_wanted = |day: &&Arc<Day>| {
                let span = day.span();
                span.start < wanted.until && span.end > wanted.since
            };
            listed.days.values().filter(is_wanted).cloned().collect()
        };
        let destination = Destination::open(&self.0.place, false).map_err(|error| error.to_string())?;
        let rows = Wanted {
            since: wanted.since,
            until: wanted.until,
            host: wanted.host.clone(),
            name_start: wanted.name_start.clone(),
            name: Arc::clone(&wanted.name),
        };
        let mut problem = None;
        for day in days {
            let Some(file) = day.file(Table::Metrics) else { continue };
            let mut is_full = false;
            let read = destination.metrics(file, &rows, &mut |row| {
                is_full = !each(row.host, row.metric, row.time, &row.bucket);
                !is_full
            });
            if let Err(error) = read {
                self.listed().replaced.insert(day.date);
                problem.get_or_insert_with(|| error.to_string());
            }
            if is_full {
                break;
            }
        }
        problem.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history_files::day::DayFile;
    use jiff::civil::date;
    use wire::api::UnixTime;
    use wire::api::history::HostBehind;

    #[test]
    fn a_day_of_which_something_is_missing_is_not_exported_whole() {
        let day = |number: i8, change: &dyn Fn(&mut Day)| {
            let date = date(2026, 11, number);
            let mut day = Day::new("UT-ICL", date, UnixTime(Time::default()));
            let (path, sha256, checksums) = (String::new(), String::new(), String::new());
            day.files.push(DayFile { table: Table::Metrics, path, rows: 1, len_bytes: 1, sha256, checksums });
            change(&mut day);
            (date, Arc::new(day))
        };
        let until = UnixTime(Time::default());
        let behind = || vec![HostBehind { host: "wn01".to_owned(), until }];
        let days = [
            day(1, &|_| {}),
            day(2, &|_| {}),
            day(3, &|day| day.behind = behind()),
            day(4, &|day| day.unfinished = true),
            day(5, &|day| day.files.clear()),
            day(6, &|_| {}),
            day(7, &|day| day.until = Some(until)),
        ];
        let exported = Days::new("/exported", "UT-ICL");
        exported.listed().days = days.into();
        let starts = |host: Option<&str>| -> Vec<(i64, i64)> {
            let host = host.map(|host| HostName::try_from(host).expect("a name"));
            let first =
                date(2026, 11, 1).to_zoned(jiff::tz::TimeZone::UTC).expect("a day").timestamp().as_second();
            let of = |time: Time| (time.micros() / 1_000_000 - first) / 86_400 + 1;
            exported.whole(host.as_ref()).into_iter().map(|(start, end)| (of(start), of(end))).collect()
        };
        assert_eq!(starts(Some("wn01")), [(1, 3), (6, 7)]);
        assert_eq!(starts(Some("wn02")), [(1, 4), (6, 7)]);
        assert_eq!(starts(None), [(1, 4), (6, 7)]);
        assert_eq!(exported.spans().0.len(), 2, "queries read all of them");
    }
}
