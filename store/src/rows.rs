//! Rows of blocks, read whole: to restore what a crash left, and to copy minutes.
//!
//! Rule: what is damaged is left out and counted. Not here: single series (`reader`).

use crate::block::{HostNo, Place, SeriesNo};
use crate::bytes::Damaged;
use crate::chunk::Cell;
use crate::segment::{Entry, Segment};
use std::sync::Arc;
use wire::time::Time;

/// Series with their values, one for each row.
pub(crate) type Columns<C> = Vec<(SeriesNo, Vec<Option<C>>)>;

/// Reads a whole block; chunks that are damaged are left out.
pub(crate) fn columns<C: Cell>(segment: &Segment, entry: &Entry) -> Result<(Vec<Time>, Columns<C>), Damaged> {
    let opened = segment.open_block(entry, |_| true)?;
    let column = |place: &Place| {
        let bytes = segment.chunk(entry, place).ok()?;
        opened.chunk(place, &bytes).ok().map(|cells| (place.series, cells))
    };
    let columns = opened.places.iter().filter_map(column).collect();
    Ok((opened.times, columns))
}

/// The values of a row, in the order of their series.
pub(crate) fn row<C: Cell>(columns: &Columns<C>, row: usize) -> Vec<(SeriesNo, C)> {
    columns.iter().filter_map(|(series, cells)| Some((*series, cells[row]?))).collect()
}

/// Visits the rows of a host from this number on: time, number, values. Returns the number of damaged blocks.
pub(crate) fn each_row<'a, C: Cell>(
    segments: impl IntoIterator<Item = &'a Arc<Segment>>,
    host: HostNo,
    first: u64,
    mut visit: impl FnMut(Time, u64, &[(SeriesNo, C)]),
) -> u64 {
    let mut damaged = 0;
    for segment in segments {
        for entry in segment.entries(|extent| extent.host == host && extent.next_row() > first) {
            let Ok((times, columns)) = columns::<C>(segment, &entry) else {
                damaged += 1;
                continue;
            };
            for (at, time) in times.iter().enumerate() {
                let number = entry.extent.first_row + at as u64;
                if number >= first {
                    visit(*time, number, &row(&columns, at));
                }
            }
        }
    }
    damaged
}
