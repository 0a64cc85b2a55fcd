//! Columns of a batch that was read, as values of its rows.
//!
//! Pure. Not here: columns that are written (`crate::column`).

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, MapArray, RecordBatch, StringArray, TimestampMicrosecondArray};
use wire::time::Time;

/// The columns of these names; `None` if one lacks or has other values.
pub(super) fn all<'a, T, const N: usize>(
    names: [&str; N],
    column: impl Fn(&str) -> Option<&'a T>,
) -> Option<[&'a T; N]> {
    names.into_iter().map(column).collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// The text of a row; empty if it has none.
pub(super) fn text_of(column: &StringArray, row: usize) -> &str {
    if column.is_null(row) { "" } else { column.value(row) }
}

/// The time of a row, if it has one.
pub(super) fn time_of(column: &TimestampMicrosecondArray, row: usize) -> Option<Time> {
    (!column.is_null(row)).then(|| Time::from_micros(column.value(row)))
}

/// A column of maps of texts.
pub(super) struct Maps<'a> {
    maps: &'a MapArray,
    /// Names of all rows, and their values.
    names: &'a StringArray,
    values: &'a StringArray,
}

impl<'a> Maps<'a> {
    /// The column of this name; `None` if it lacks or has other values.
    pub(super) fn of(batch: &'a RecordBatch, name: &str) -> Option<Maps<'a>> {
        let maps: &MapArray = batch.column_by_name(name)?.as_map_opt()?;
        Some(Maps { maps, names: maps.keys().as_string_opt()?, values: maps.values().as_string_opt()? })
    }

    /// Names and values of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = (&str, &str)> {
        let offset = |row: usize| usize::try_from(self.maps.value_offsets()[row]).unwrap_or_default();
        (offset(row)..offset(row + 1)).map(|at| (self.names.value(at), self.values.value(at)))
    }
}
