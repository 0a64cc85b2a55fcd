//! Events of exported days.
//!
//! Rule: attributes are texts, as they are written. Not here: which of them are wanted (`EventsParams::fit`), how a file
//! is read ([`super`]).

use super::columns::{Maps, all, text_of, time_of};
use super::skip;
use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::cast::AsArray as _;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{RecordBatch, StringArray, TimestampMicrosecondArray};
use wire::event::{Content, Event, Id, Kind, Outcome, Source, Value};
use wire::time::Time;

const TEXTS: [&str; 11] =
    ["id", "kind", "call", "job", "user", "from", "to", "outcome", "host", "file", "filter"];
const TIMES: [&str; 5] = ["time", "seen", "submitted", "started", "ended"];
const ATTRIBUTES: &str = "attributes";

impl Destination {
    /// Passes the events of a file of the table `events` to `each`, in the order in which they were stored, until it
    /// returns `false`; parts of the file without any of this time, the end included, are left out.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub fn events(
        &self,
        file: &DayFile,
        (since, until): (Option<Time>, Option<Time>),
        each: &mut dyn FnMut(Event) -> bool,
    ) -> Result<(), Error> {
        let columns = [&TEXTS[..], &TIMES, &[ATTRIBUTES]].concat();
        self.rows(
            file,
            &columns,
            |opened| {
                let groups = skip::within(opened.metadata(), since, until);
                opened.with_row_groups(groups)
            },
            |batch| {
                let columns = Columns::of(batch)?;
                for row in 0..batch.num_rows() {
                    if !each(columns.event(row)?) {
                        return Some(false);
                    }
                }
                Some(true)
            },
        )
    }
}

/// The columns of a batch, in the order of their names above.
struct Columns<'a> {
    texts: [&'a StringArray; TEXTS.len()],
    times: [&'a TimestampMicrosecondArray; TIMES.len()],
    attributes: Maps<'a>,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Columns<'a>> {
        let column = |name: &str| batch.column_by_name(name);
        Some(Columns {
            texts: all(TEXTS, |name| column(name)?.as_string_opt::<i32>())?,
            times: all(TIMES, |name| column(name)?.as_primitive_opt::<TimestampMicrosecondType>())?,
            attributes: Maps::of(batch, ATTRIBUTES)?,
        })
    }

    /// The event of a row; `None` if it has no id of an event, or no time.
    fn event(&self, row: usize) -> Option<Event> {
        let [id, kind, call, job, user, from, to, outcome, host, file, filter] =
            self.texts.map(|column| text_of(column, row));
        let [time, seen, submitted, started, ended] = self.times.map(|column| time_of(column, row));
        Some(Event {
            id: Id::parse(id)?,
            seen: seen?,
            call: call.into(),
            content: Content {
                kind: Kind::from_word(kind).unwrap_or(Kind::Message),
                time: time?,
                job: job.into(),
                user: user.into(),
                from: from.into(),
                to: to.into(),
                // One that only a later version knows is read as `finished`.
                outcome: (!outcome.is_empty())
                    .then(|| Outcome::from_word(outcome).unwrap_or(Outcome::Finished)),
                attributes: self
                    .attributes
                    .row(row)
                    .map(|(name, value)| (name.into(), Value::Text(value.into())))
                    .collect(),
                submitted,
                started,
                ended,
            },
            source: Source { host: host.into(), file: file.into(), filter: filter.into() },
        })
    }
}
