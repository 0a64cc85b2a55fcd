//! Packed sweeps: rows of samples in the order in which they arrive, each value as the difference to the row before.
//!
//! Pure. In this form rows are in memory and in the log of the head until they are sealed into a block. A run
//! of unchanged values takes a byte, most others one or two.

use crate::bytes::{Cursor, Damaged, put, unzigzag, zigzag};
use crate::exact::{Exact, Kind};
use wire::time::Time;

/// Tag of a run of values equal to those of the row before; other tags are kinds.
const RUN: u64 = 3;

/// State from which the next row is packed or unpacked.
#[derive(Clone, Debug)]
pub(crate) struct Last {
    time: i64,
    values: Vec<Exact>,
}

impl Last {
    /// State before the first row of `columns` values.
    pub(crate) fn new(columns: usize) -> Last {
        Last { time: 0, values: vec![Exact::Whole(0); columns] }
    }

    /// The last row.
    pub(crate) fn values(&self) -> &[Exact] {
        &self.values
    }

    /// Appends a row.
    pub(crate) fn pack(&mut self, time: Time, row: impl Iterator<Item = Exact>, out: &mut Vec<u8>) {
        put(zigzag(time.micros().wrapping_sub(self.time)), out);
        self.time = time.micros();
        let mut run = 0u64;
        for (last, value) in self.values.iter_mut().zip(row) {
            if *last == value {
                run += 1;
                continue;
            }
            close_run(&mut run, out);
            put_changed(*last, value, out);
            *last = value;
        }
        close_run(&mut run, out);
    }

    /// Reads the next row.
    pub(crate) fn unpack(&mut self, from: &mut Cursor) -> Result<Time, Damaged> {
        self.time = self.time.wrapping_add(unzigzag(from.number()?));
        let mut at = 0;
        while at < self.values.len() {
            let low = from.0.first().map_or(0, |byte| u64::from(byte & 3));
            if low == RUN {
                at += from.size(usize::MAX)? >> 2;
                continue;
            }
            self.values[at] = take_changed(self.values[at], low, from)?;
            at += 1;
        }
        match at == self.values.len() {
            true => Ok(Time::from_micros(self.time)),
            false => Err(Damaged("a run beyond the last column")),
        }
    }
}

fn close_run(run: &mut u64, out: &mut Vec<u8>) {
    if *run > 0 {
        put((*run << 2) | RUN, out);
        *run = 0;
    }
}

/// Whole numbers and millionths are stored as their difference, whose two top bits may need a byte more.
fn put_changed(last: Exact, value: Exact, out: &mut Vec<u8>) {
    let tag = value.kind() as u64;
    if value.kind() == Kind::Real {
        out.push(tag as u8);
        out.extend_from_slice(&value.bits().to_le_bytes());
        return;
    }
    let folded = zigzag(value.bits().wrapping_sub(last.bits()).cast_signed());
    // Five bits beside the tag, then the rest as an ordinary number.
    let more = folded >> 5;
    out.push((tag | ((folded & 0x1f) << 2)) as u8 | if more > 0 { 0x80 } else { 0 });
    if more > 0 {
        put(more, out);
    }
}

fn take_changed(last: Exact, tag: u64, from: &mut Cursor) -> Result<Exact, Damaged> {
    let kind = Kind::of_bits(tag as u8).ok_or(Damaged("an unknown kind of number"))?;
    let first = from.byte()?;
    if kind == Kind::Real {
        return Ok(Exact::of_bits(kind, u64::from_le_bytes(from.array()?)));
    }
    let more = if first < 0x80 { 0 } else { from.number()? };
    let folded = u64::from((first >> 2) & 0x1f) | (more << 5);
    Ok(Exact::of_bits(kind, last.bits().wrapping_add(unzigzag(folded).cast_unsigned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::sample::Number;

    fn exact() -> impl Strategy<Value = Exact> {
        prop_oneof![
            any::<u64>().prop_map(Exact::Whole),
            (0..40u64).prop_map(Exact::Whole),
            any::<i32>().prop_map(|ticks| Exact::from(Number::Real(f64::from(ticks) / 100.0))),
            any::<f64>().prop_map(|real| Exact::from(Number::Real(real))),
        ]
    }

    fn packed(rows: &[(i64, Vec<Exact>)], columns: usize) -> Vec<u8> {
        let (mut last, mut out) = (Last::new(columns), Vec::new());
        for (time, row) in rows {
            last.pack(Time::from_micros(*time), row.iter().copied(), &mut out);
        }
        out
    }

    #[test]
    fn quiet_rows_take_a_few_bytes() {
        let row: Vec<Exact> = (0..200).map(Exact::Whole).collect();
        let rows: Vec<_> = (0..100).map(|second| (second * 1_000_000, row.clone())).collect();
        let first = packed(&rows[..1], 200).len();
        assert_eq!(packed(&rows, 200).len() - first, 99 * (3 + 2), "time and one run a row");
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in proptest::collection::vec((any::<i64>(), proptest::collection::vec(exact(), 5)), 1..40),
            repeats in 1..4usize,
        ) {
            let rows: Vec<_> = rows.into_iter().flat_map(|row| vec![row; repeats]).collect();
            let bytes = packed(&rows, 5);
            let (mut last, mut from) = (Last::new(5), Cursor(&bytes));
            for (time, row) in &rows {
                prop_assert_eq!(last.unpack(&mut from), Ok(Time::from_micros(*time)));
                prop_assert_eq!(last.values(), row.as_slice());
            }
            prop_assert!(from.0.is_empty());
        }

        #[test]
        fn damaged_rows_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut last, mut from) = (Last::new(20), Cursor(&bytes));
            while last.unpack(&mut from).is_ok() && !from.0.is_empty() {}
        }
    }
}
