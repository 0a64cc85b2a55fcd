//! What a file says of its rows before they are read: which groups and pages can have wanted ones.
//!
//! Pure. Rule: bounds of long texts are shorter than they, but are bounds. Not here: the rows ([`super::metrics`], [`super::processes`]).

use super::metrics::Wanted;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use wire::id::HostName;
use wire::time::Time;

/// The groups of rows that can have any of this time, the end included.
pub(crate) fn within(metadata: &ParquetMetaData, since: Option<Time>, until: Option<Time>) -> Vec<usize> {
    let may_have = |number: &usize| {
        times(metadata.row_group(*number)).is_none_or(|(min, max)| {
            since.is_none_or(|since| max >= since) && until.is_none_or(|until| min <= until)
        })
    };
    (0..metadata.num_row_groups()).filter(may_have).collect()
}

/// The first and the last time of a group, if it says so.
fn times(group: &RowGroupMetaData) -> Option<(Time, Time)> {
    let (min, max) = bounds(group.column(place(group, "time")?).statistics()?)?;
    let time = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).map(Time::from_micros).ok();
    time(min).zip(time(max))
}

/// The groups of rows that can have any of this host.
pub(crate) fn of_host(metadata: &ParquetMetaData, host: &HostName) -> Vec<usize> {
    (0..metadata.num_row_groups()).filter(|number| may_be_of(metadata.row_group(*number), host)).collect()
}

/// The groups of rows that can have what is wanted.
pub(crate) fn groups(metadata: &ParquetMetaData, wanted: &Wanted) -> Vec<usize> {
    (0..metadata.num_row_groups()).filter(|number| may_fit(metadata.row_group(*number), wanted)).collect()
}

fn may_fit(group: &RowGroupMetaData, wanted: &Wanted) -> bool {
    let statistics = |column: &str| group.column(place(group, column)?).statistics();
    let times = times(group).is_none_or(|(min, max)| min < wanted.until && max >= wanted.since);
    let names = statistics("name").and_then(bounds).is_none_or(|(min, max)| may_be_named(wanted, min, max));
    times && names && wanted.host.as_ref().is_none_or(|host| may_be_of(group, host))
}

/// Whether a group can have rows of this host: one of an export has those of one host.
fn may_be_of(group: &RowGroupMetaData, host: &HostName) -> bool {
    let statistics = place(group, "host").and_then(|column| group.column(column).statistics());
    let exact = statistics.filter(|one| one.min_is_exact() && one.max_is_exact()).and_then(bounds);
    let one = exact.and_then(|(min, max)| std::str::from_utf8(min).ok().filter(|_| min == max));
    one.is_none_or(|one| host.is_spelled(one))
}

/// The rows of these groups whose pages can have what is wanted; `None` if the file does not say what its pages have.
pub(crate) fn rows(metadata: &ParquetMetaData, groups: &[usize], wanted: &Wanted) -> Option<RowSelection> {
    let mut selectors = Vec::new();
    for number in groups {
        let group = metadata.row_group(*number);
        let (pages, column) = (metadata.page_index_for_row_group(*number), place(group, "name")?);
        let ColumnIndexMetaData::BYTE_ARRAY(names) = pages.column_index(column)? else { return None };
        let starts: Vec<i64> =
            pages.page_locations(column)?.iter().map(|page| page.first_row_index).collect();
        if starts.len() != usize::try_from(names.num_pages()).ok()? {
            return None;
        }
        let ends = starts.iter().skip(1).copied().chain([group.num_rows()]);
        for (page, (start, end)) in starts.iter().zip(ends).enumerate() {
            let bounds = names.min_value(page).zip(names.max_value(page));
            let fits = bounds.is_none_or(|(min, max)| may_be_named(wanted, min, max));
            let count = usize::try_from(end.checked_sub(*start)?).ok()?;
            selectors.push(if fits { RowSelector::select(count) } else { RowSelector::skip(count) });
        }
    }
    Some(selectors.into())
}

/// Whether a wanted name can lie between these two.
fn may_be_named(wanted: &Wanted, min: &[u8], max: &[u8]) -> bool {
    let start = wanted.name_start.as_bytes();
    max >= start && (min <= start || min.starts_with(start))
}

fn bounds(statistics: &Statistics) -> Option<(&[u8], &[u8])> {
    statistics.min_bytes_opt().zip(statistics.max_bytes_opt())
}

/// Number of a column.
fn place(group: &RowGroupMetaData, column: &str) -> Option<usize> {
    group.columns().iter().position(|one| one.column_path().string() == column)
}
