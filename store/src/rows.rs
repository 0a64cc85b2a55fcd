//! Rows of blocks, read whole: to restore what a crash left, and to copy minutes.
//!
//! Rule: what is damaged is left out and counted. Not here: single series (`reader`).

use crate::block::SeriesNo;
use crate::bucket::Bucket;
use crate::bucket_row::{Packer, Unpack};
use crate::bytes::Damaged;
use crate::exact::Exact;
use crate::segment::{Entry, Segment};
use std::sync::Arc;
use wire::time::Time;

/// A block of a host, and its segment.
pub(crate) type HostBlock = (Arc<Segment>, Entry);

/// Visits the samples of a host from the row with this number on: time, number, values. Returns the number of damaged
/// blocks.
pub(crate) fn each_sweep(
    blocks: &[HostBlock],
    first: u64,
    mut visit: impl FnMut(Time, u64, &[(SeriesNo, Exact)]),
) -> u64 {
    each_block(blocks, first, |segment, entry| {
        let opened = segment.open_block(entry, |_| true)?;
        let mut columns: Vec<(SeriesNo, Vec<Option<Exact>>)> = Vec::new();
        for place in &opened.places {
            let cells = segment.column(entry, &opened, place);
            columns.extend(cells.ok().map(|cells| (place.series, cells)));
        }
        for (at, (number, time)) in (entry.extent.first_row..).zip(&opened.times).enumerate() {
            let values = || columns.iter().filter_map(|(series, cells)| Some((*series, cells[at]?)));
            if number >= first {
                visit(*time, number, &values().collect::<Vec<_>>());
            }
        }
        Ok(())
    })
}

/// Visits the minutes of a host from the row with this number on: start, number, buckets. Returns the number of damaged
/// blocks.
pub(crate) fn each_minute(
    blocks: &[HostBlock],
    first: u64,
    mut visit: impl FnMut(Time, u64, &[(SeriesNo, Bucket)]),
) -> u64 {
    each_block(blocks, first, |segment, entry| {
        let skipped = usize::try_from(first.saturating_sub(entry.extent.first_row)).unwrap_or(usize::MAX);
        for (at, time, packed) in packed_rows(segment, entry, |at, _| at >= skipped)? {
            let buckets: Vec<_> = Unpack::new(&packed).flatten().collect();
            visit(time, entry.extent.first_row + at as u64, &buckets);
        }
        Ok(())
    })
}

/// Visits the blocks that have rows from this one on. Returns the number of those that cannot be read.
fn each_block(
    blocks: &[HostBlock],
    first: u64,
    mut visit: impl FnMut(&Segment, &Entry) -> Result<(), Damaged>,
) -> u64 {
    let wanted = blocks.iter().filter(|(_, entry)| entry.extent.next_row() > first);
    wanted.map(|(segment, entry)| u64::from(visit(segment, entry).is_err())).sum()
}

/// A row of a block: its place in it, its start and its packed buckets.
pub(crate) type PackedRow = (usize, Time, Box<[u8]>);

/// Reads the wanted rows of a block of buckets, by their place in it and their start. Packed, since the buckets of a long
/// block take twenty times the memory; chunks that are damaged are left out.
pub(crate) fn packed_rows(
    segment: &Segment,
    entry: &Entry,
    is_wanted: impl Fn(usize, Time) -> bool,
) -> Result<Vec<PackedRow>, Damaged> {
    let opened = segment.open_block(entry, |_| true)?;
    let wanted = opened.times.iter().copied().enumerate().filter(|(at, time)| is_wanted(*at, *time));
    let mut rows: Vec<(usize, Time, Packer)> =
        wanted.map(|(at, time)| (at, time, Packer::default())).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    for place in &opened.places {
        let Ok(cells) = segment.column::<Bucket>(entry, &opened, place) else { continue };
        for (at, _, packer) in &mut rows {
            if let Some(bucket) = &cells[*at] {
                packer.push(place.series, bucket);
            }
        }
    }
    Ok(rows.into_iter().map(|(at, time, packer)| (at, time, packer.finish())).collect())
}

/// Visits the last bucket of each series of a block that was stored, with the start of its row.
pub(crate) fn each_last(
    segment: &Segment,
    entry: &Entry,
    mut visit: impl FnMut(SeriesNo, &Bucket, Time),
) -> Result<(), Damaged> {
    let opened = segment.open_block(entry, |_| true)?;
    for place in &opened.places {
        let Ok(cells) = segment.column::<Bucket>(entry, &opened, place) else { continue };
        if let Some((bucket, start)) =
            cells.iter().zip(&opened.times).rev().find_map(|(cell, time)| Some((cell.as_ref()?, *time)))
        {
            visit(place.series, bucket, start);
        }
    }
    Ok(())
}
