//! `sensor.archive` and `sensor.series_copy`: the state of the archive, and what archives copy.
//!
//! Rules: series are copied for daemons of the domain and for root alone, as they are of all users. An answer has a bounded
//! number of bytes. Not here: the archive itself (`archive`).

use crate::archive::Archive;
use crate::job_series::log::Handle;
use jiff::civil::Date;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::io;
use store::daily::DailyReader;
use store::daily_copy::{Following, Reached};
use wire::api::Bytes;
use wire::api::archive::{
    ArchiveParams, COPY_DAYS_MAX, COPY_LEN_MAX_BYTES, DayLen, DayPart, ReachedDay, SeriesCopy,
    SeriesCopyParams,
};
use wire::fault;
use wire::id::HostName;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 2;

/// Creates `sensor.archive`.
#[must_use]
pub fn method(archive: Option<Archive>) -> Method {
    typed::method(move |_, params: ArchiveParams| {
        let archive = archive.clone();
        async move {
            let archive = archive.ok_or_else(no_archive)?;
            let host = params.measured_by.as_deref().map(host).transpose()?;
            Ok(archive.state(host.as_ref()))
        }
    })
}

/// Creates `sensor.series_copy`.
#[must_use]
pub fn copy_method(series: Option<Handle>, archive: Option<Archive>) -> Method {
    let pool = BlockingPool::new("reading series of jobs", AT_ONCE_MAX);
    typed::method(move |caller, params: SeriesCopyParams| {
        let (series, archive, pool) = (series.clone(), archive.clone(), pool.clone());
        let is_trusted = caller.viewer.is_trusted();
        async move {
            if !is_trusted {
                let text = "series are copied for archives of the domain alone; sensor.job_series has those of a job";
                return Err(Fault::new(fault::REFUSED, text));
            }
            let reader = match &params.measured_by {
                None => series.ok_or_else(no_series)?.reader(),
                Some(name) => archived(archive.as_ref(), name)?.remove(0),
            };
            let wanted = params.days.iter().map(reached).collect::<Result<Vec<_>, Fault>>()?;
            if wanted.len() > COPY_DAYS_MAX {
                let found = wanted.len();
                return Err(Fault::invalid_params(format!(
                    "days: expected at most {COPY_DAYS_MAX}, found {found}"
                )));
            }
            pool.run(move || answer(&reader, &wanted).map_err(unreadable)).await
        }
    })
}

fn answer(reader: &DailyReader, wanted: &[Reached]) -> io::Result<SeriesCopy> {
    let (mut parts, mut room) = (Vec::new(), COPY_LEN_MAX_BYTES);
    for reached in wanted {
        let (differs, data) = match reader.following(reached, room)? {
            Following::Bytes(data) => (false, data),
            Following::Differs => (true, Vec::new()),
            Following::Gone => continue,
        };
        room -= data.len();
        parts.push(DayPart { day: reached.date.to_string(), differs, data: Bytes(data) });
        if room == 0 {
            break;
        }
    }
    // Read last, so that no part is of a day that is not there.
    let days = reader.lens()?;
    let days = days.into_iter().map(|day| DayLen { day: day.date.to_string(), bytes: day.len }).collect();
    Ok(SeriesCopy { days, parts })
}

/// Returns readers of the series that a host measured, of the archive on this host; at least one.
pub(super) fn archived(archive: Option<&Archive>, name: &str) -> Result<Vec<DailyReader>, Fault> {
    let archive = archive.ok_or_else(no_archive)?;
    let readers = archive.readers(&host(name)?);
    match readers.is_empty() {
        true => Err(Fault::not_found(format!("the archive on this host has no series of {name}"))),
        false => Ok(readers),
    }
}

/// The fault of series that cannot be read.
pub(super) fn unreadable(error: io::Error) -> Fault {
    Fault::unavailable(format!("the series of jobs cannot be read: {error}"))
}

/// The fault of a sensor that stores no series.
pub(super) fn no_series() -> Fault {
    Fault::not_found(
        "series of jobs are turned off in the configuration of this sensor ([sensor.history] on, \
         job_series_budget_mib)",
    )
}

fn no_archive() -> Fault {
    Fault::not_found("there is no archive on this host ([sensor.archive] on in its configuration)")
}

fn host(name: &str) -> Result<HostName, Fault> {
    HostName::try_from(name).map_err(|error| Fault::invalid_params(format!("measured_by: {error}")))
}

fn reached(day: &ReachedDay) -> Result<Reached, Fault> {
    let date: Date = day.day.parse().map_err(|_| {
        Fault::invalid_params(format!("days: expected a day such as 2026-11-30, found {:?}", day.day))
    })?;
    Ok(Reached { date, len: day.bytes, end: day.crc })
}
