//! Calls of exported days.
//!
//! Not here: which of them are wanted (`CallsParams::fit`), how a file is read ([`super`]).

use super::columns::{all, text_of, time_of};
use crate::day::DayFile;
use crate::destination::Destination;
use crate::error::Error;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, TimestampMicrosecondType};
use arrow_array::{Int32Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use wire::call::{Call, State};
use wire::event::Outcome;

const TEXTS: [&str; 9] =
    ["id", "job", "name", "user", "submitted_from", "outcome", "exit_code", "signal", "reason"];
const TIMES: [&str; 5] = ["submitted", "offered", "selected", "started", "ended"];
const LISTS: [&str; 2] = ["offers", "hosts"];
const NUMBERS: [&str; 2] = ["tries", "events"];

impl Destination {
    /// Passes the calls of a file of the table `calls` to `each`.
    ///
    /// # Errors
    /// If the file cannot be read, or is no such table.
    pub fn calls(&self, file: &DayFile, each: &mut dyn FnMut(Call)) -> Result<(), Error> {
        let columns = [&TEXTS[..], &TIMES, &LISTS, &NUMBERS].concat();
        self.rows(
            file,
            &columns,
            |opened| opened,
            |batch| {
                let columns = Columns::of(batch)?;
                (0..batch.num_rows()).for_each(|row| each(columns.call(row)));
                Some(true)
            },
        )
    }
}

/// The columns of a batch, in the order of their names above.
struct Columns<'a> {
    texts: [&'a StringArray; TEXTS.len()],
    times: [&'a TimestampMicrosecondArray; TIMES.len()],
    lists: [&'a ListArray; LISTS.len()],
    numbers: [&'a Int32Array; NUMBERS.len()],
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Columns<'a>> {
        let lists = all(LISTS, |name| batch.column_by_name(name)?.as_list_opt::<i32>())?;
        let are_texts = lists.iter().all(|list: &&ListArray| list.values().as_string_opt::<i32>().is_some());
        are_texts.then_some(Columns {
            texts: all(TEXTS, |name| batch.column_by_name(name)?.as_string_opt::<i32>())?,
            times: all(TIMES, |name| {
                batch.column_by_name(name)?.as_primitive_opt::<TimestampMicrosecondType>()
            })?,
            lists,
            numbers: all(NUMBERS, |name| batch.column_by_name(name)?.as_primitive_opt::<Int32Type>())?,
        })
    }

    fn call(&self, row: usize) -> Call {
        let list = |column: &ListArray| {
            let values = column.value(row);
            values.as_string::<i32>().iter().flatten().map(Into::into).collect()
        };
        let number = |column: &Int32Array| u32::try_from(column.value(row)).unwrap_or_default();
        let [id, job, name, user, from, outcome, code, signal, reason] =
            self.texts.map(|column| text_of(column, row));
        let [submitted, offered, selected, started, ended] = self.times.map(|column| time_of(column, row));
        let [offers, hosts] = self.lists.map(list);
        let [tries, events] = self.numbers.map(number);
        Call {
            id: id.into(),
            job: job.into(),
            name: name.into(),
            user: user.into(),
            from: from.into(),
            state: State::Ended,
            submitted,
            offered,
            selected,
            started,
            ended,
            offers,
            hosts,
            // One that only a later version knows is read as `finished`.
            outcome: (!outcome.is_empty()).then(|| Outcome::from_word(outcome).unwrap_or(Outcome::Finished)),
            code: code.into(),
            signal: signal.into(),
            reason: reason.into(),
            tries,
            events,
            details: None,
        }
    }
}
