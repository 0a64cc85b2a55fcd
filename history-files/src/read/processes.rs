//! Processes of exported days.
//!
//! Not here: which of them are wanted (the caller), how a file is read ([`super`]).

use super::columns::{all, text_of, time_of};
use super::skip;
use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use wire::api::UnixTime;
use wire::api::process_history::TopProcess;
use wire::id::HostName;
use wire::time::Time;

const TEXTS: [&str; 5] = ["host", "user", "name", "command", "job"];
const TIMES: [&str; 5] = ["time", "start", "first", "last", "end"];
const SMALL: [&str; 5] = ["pid", "parent", "minutes", "exit_status", "signal"];
const COUNTS: [&str; 5] = ["start_ns", "uid", "rss_max_bytes", "read_bytes", "written_bytes"];
const NUMBERS: [&str; 2] = ["cpu_seconds", "cpu"];

/// A process in an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct HourOfProcess {
    /// The host.
    pub host: String,
    /// Start of the hour.
    pub time: Time,
    /// The process, and what it used in the hour.
    pub process: TopProcess,
}

impl Destination {
    /// Passes the rows of a file of the table `processes` to `each`; those of one host, if it is named.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub fn processes(
        &self,
        file: &DayFile,
        host: Option<&HostName>,
        each: &mut dyn FnMut(HourOfProcess),
    ) -> Result<(), Error> {
        let columns = [&TEXTS[..], &TIMES, &SMALL, &COUNTS, &NUMBERS].concat();
        let choose = |opened: super::Opened| match host {
            Some(host) => {
                let groups = skip::of_host(opened.metadata(), host);
                opened.with_row_groups(groups)
            }
            None => opened,
        };
        self.rows(file, &columns, choose, |batch| {
            let columns = Columns::of(batch)?;
            let rows = (0..batch.num_rows()).map(|row| columns.row(row));
            rows.filter(|row| host.is_none_or(|host| host.is_spelled(&row.host))).for_each(&mut *each);
            Some(true)
        })
    }
}

/// The columns of a batch, in the order of their names above.
struct Columns<'a> {
    texts: [&'a StringArray; TEXTS.len()],
    times: [&'a TimestampMicrosecondArray; TIMES.len()],
    small: [&'a Int32Array; SMALL.len()],
    counts: [&'a Int64Array; COUNTS.len()],
    numbers: [&'a Float64Array; NUMBERS.len()],
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Columns<'a>> {
        let column = |name: &str| batch.column_by_name(name);
        Some(Columns {
            texts: all(TEXTS, |name| column(name)?.as_string_opt::<i32>())?,
            times: all(TIMES, |name| column(name)?.as_primitive_opt::<TimestampMicrosecondType>())?,
            small: all(SMALL, |name| column(name)?.as_primitive_opt::<Int32Type>())?,
            counts: all(COUNTS, |name| column(name)?.as_primitive_opt::<Int64Type>())?,
            numbers: all(NUMBERS, |name| column(name)?.as_primitive_opt::<Float64Type>())?,
        })
    }

    fn row(&self, row: usize) -> HourOfProcess {
        let [host, user, name, command, job] = self.texts.map(|column| text_of(column, row));
        let [time, start, first, last, end] = self.times.map(|column| time_of(column, row));
        let [pid, parent, minutes, status, signal] = self.small.map(|column| {
            (!column.is_null(row)).then(|| u32::try_from(column.value(row)).unwrap_or_default())
        });
        let [start_ns, uid, rss, read, written] = self.counts.map(|column| {
            (!column.is_null(row)).then(|| u64::try_from(column.value(row)).unwrap_or_default())
        });
        let [cpu_seconds, cpu] = self.numbers.map(|column| column.value(row));
        let byte = |number: Option<u32>| number.and_then(|number| u8::try_from(number).ok());
        let known = |text: &str| (!text.is_empty()).then(|| text.into());
        let process = TopProcess {
            pid: pid.unwrap_or_default(),
            start: UnixTime(start.unwrap_or_default()),
            start_ns: start_ns.unwrap_or_default(),
            parent: parent.unwrap_or_default(),
            uid: uid.and_then(|uid| u32::try_from(uid).ok()).unwrap_or_default(),
            user: (!user.is_empty()).then(|| user.to_owned()),
            name: name.into(),
            command: known(command),
            job: known(job),
            minutes: minutes.unwrap_or_default().into(),
            first: UnixTime(first.unwrap_or_default()),
            last: UnixTime(last.unwrap_or_default()),
            cpu_seconds,
            cpu,
            rss_max_bytes: rss.unwrap_or_default(),
            read_bytes: read,
            written_bytes: written,
            end: end.map(UnixTime),
            exit_status: byte(status),
            signal: byte(signal),
        };
        HourOfProcess { host: host.to_owned(), time: time.unwrap_or_default(), process }
    }
}
