//! Chunk: one series within a block, in pieces without gaps.
//!
//! Pure.
//! ```text
//! number of pieces | piece …
//! piece: rows without a value before it | rows | form | column of each field
//! ```
//! The form is the kind of the numbers, whether the sums are doubles, and whether there are increases. Fields of a
//! bucket are stored relative to its last value where that is exact: last, last − min, max − last,
//! sum − count · last, count, increase, time of the increase. Most of these are small or constant.

use crate::bucket::Bucket;
use crate::bytes::{Cursor, Damaged, put};
use crate::column::{Decoder, Encoder, Type};
use crate::exact::{Exact, Kind};

/// Rows of a block at most: a bound on the memory that a damaged block can request.
pub(crate) const ROWS_MAX: usize = 1 << 16;

const KIND: u8 = 0b11;
const REAL_SUM: u8 = 0b100;
pub(crate) const INCREASE: u8 = 0b1000;
/// Bits of a form; others are free.
pub(crate) const FORM: u8 = KIND | REAL_SUM | INCREASE;

/// A value in a row of a series.
pub(crate) trait Cell: Copy {
    /// Form of the piece that the value fits in.
    fn form(&self) -> u8;
    /// Appends the columns of a piece of this form.
    fn encode(cells: &[Self], form: u8, encoder: &Encoder, out: &mut Vec<u8>);
    /// Reads the columns of a piece.
    fn decode(form: u8, rows: usize, decoder: &Decoder, from: &mut Cursor) -> Result<Vec<Self>, Damaged>;
}

/// Encodes the rows of a series; `None` is a gap.
pub(crate) fn encode<C: Cell>(rows: &[Option<C>], encoder: &Encoder, out: &mut Vec<u8>) {
    let mut pieces: Vec<(usize, u8, Vec<C>)> = Vec::new();
    let mut gap = 0;
    let mut is_open = false;
    for row in rows {
        let Some(cell) = row else {
            (gap, is_open) = (gap + 1, false);
            continue;
        };
        match pieces.last_mut() {
            Some((_, form, cells)) if is_open && *form == cell.form() => cells.push(*cell),
            _ => pieces.push((std::mem::take(&mut gap), cell.form(), vec![*cell])),
        }
        is_open = true;
    }
    put(pieces.len() as u64, out);
    for (gap, form, cells) in pieces {
        put(gap as u64, out);
        put(cells.len() as u64, out);
        out.push(form);
        C::encode(&cells, form, encoder, out);
    }
}

/// Decodes the rows of a series.
pub(crate) fn decode<C: Cell>(
    bytes: &[u8],
    rows: usize,
    decoder: &Decoder,
) -> Result<Vec<Option<C>>, Damaged> {
    let mut from = Cursor(bytes);
    let mut cells = Vec::with_capacity(rows);
    for _ in 0..from.size(rows)? {
        let gap = from.size(rows - cells.len())?;
        cells.resize(cells.len() + gap, None);
        let len = from.size(rows - cells.len())?;
        let form = from.byte()?;
        if len == 0 {
            return Err(Damaged("an empty piece"));
        }
        cells.extend(C::decode(form, len, decoder, &mut from)?.into_iter().map(Some));
    }
    cells.resize(rows, None);
    Ok(cells)
}

fn kind(form: u8) -> Result<Kind, Damaged> {
    Kind::of_bits(form & KIND).ok_or(Damaged("an unknown kind of number"))
}

fn values(kind: Kind) -> Type {
    match kind {
        Kind::Whole => Type::Unsigned,
        Kind::Micro => Type::Signed,
        Kind::Real => Type::Real,
    }
}

impl Cell for Exact {
    fn form(&self) -> u8 {
        self.kind() as u8
    }

    fn encode(cells: &[Exact], form: u8, encoder: &Encoder, out: &mut Vec<u8>) {
        let kind = kind(form).expect("made by form()");
        encoder.encode(values(kind), &cells.iter().map(|cell| cell.bits()).collect::<Vec<_>>(), out);
    }

    fn decode(form: u8, rows: usize, decoder: &Decoder, from: &mut Cursor) -> Result<Vec<Exact>, Damaged> {
        let kind = kind(form)?;
        let bits = decoder.decode(values(kind), rows, from)?;
        Ok(bits.into_iter().map(|bits| Exact::of_bits(kind, bits)).collect())
    }
}

impl Bucket {
    /// Kind that all numbers of the bucket but the sum have; doubles if they differ.
    fn kind(&self) -> Kind {
        let kind = self.last.kind();
        let others = [Some(self.min), Some(self.max), self.increase];
        match others.into_iter().flatten().all(|number| number.kind() == kind) {
            true => kind,
            false => Kind::Real,
        }
    }
}

/// The number in this kind, which is its own or that of doubles.
fn bits_as(kind: Kind, number: Exact) -> u64 {
    if kind == Kind::Real { number.as_f64().to_bits() } else { number.bits() }
}

/// Fields of a bucket as they are stored, in the order of the columns.
pub(crate) struct Fields {
    pub(crate) last: u64,
    pub(crate) below: u64,
    pub(crate) above: u64,
    pub(crate) sum: u64,
    pub(crate) count: u64,
    pub(crate) increase: Option<u64>,
    pub(crate) increase_millis: u64,
}

impl Fields {
    /// Fields in a form that [`Cell::form`] made. Differences of integers wrap, so they are exact whatever the numbers.
    pub(crate) fn of(bucket: &Bucket, form: u8) -> Fields {
        let kind = kind(form).expect("made by form()");
        let bits = |number| bits_as(kind, number);
        let last = bits(bucket.last);
        let is_real = kind == Kind::Real;
        Fields {
            last,
            below: if is_real { bits(bucket.min) } else { last.wrapping_sub(bits(bucket.min)) },
            above: if is_real { bits(bucket.max) } else { bits(bucket.max).wrapping_sub(last) },
            sum: match form & REAL_SUM {
                0 => bucket.sum.bits().wrapping_sub(last.wrapping_mul(bucket.count)),
                _ => bucket.sum.as_f64().to_bits(),
            },
            count: bucket.count,
            increase: bucket.increase.map(bits),
            increase_millis: bucket.increase_millis,
        }
    }

    /// The bucket of fields in this form.
    pub(crate) fn bucket(&self, form: u8) -> Result<Bucket, Damaged> {
        let kind = kind(form)?;
        let is_real_sum = form & REAL_SUM != 0;
        let number = |bits| Exact::of_bits(kind, bits);
        let is_real = kind == Kind::Real;
        Ok(Bucket {
            count: self.count,
            min: number(if is_real { self.below } else { self.last.wrapping_sub(self.below) }),
            max: number(if is_real { self.above } else { self.last.wrapping_add(self.above) }),
            sum: match is_real_sum {
                true => Exact::Real(f64::from_bits(self.sum)),
                false => number(self.sum.wrapping_add(self.last.wrapping_mul(self.count))),
            },
            last: number(self.last),
            increase: self.increase.map(number),
            increase_millis: self.increase_millis,
        })
    }
}

/// Types of the columns of a piece of buckets.
pub(crate) fn types(form: u8) -> Result<[Type; 7], Damaged> {
    let kind = kind(form)?;
    let value = values(kind);
    let difference = if kind == Kind::Real { Type::Real } else { Type::Signed };
    let sum = if form & REAL_SUM == 0 { Type::Signed } else { Type::Real };
    Ok([value, difference, difference, sum, Type::Unsigned, value, Type::Unsigned])
}

impl Cell for Bucket {
    fn form(&self) -> u8 {
        let kind = self.kind();
        let is_exact_sum = kind != Kind::Real && self.sum.kind() == kind;
        let sum = if is_exact_sum { 0 } else { REAL_SUM };
        kind as u8 | sum | if self.increase.is_some() { INCREASE } else { 0 }
    }

    fn encode(cells: &[Bucket], form: u8, encoder: &Encoder, out: &mut Vec<u8>) {
        let fields: Vec<Fields> = cells.iter().map(|bucket| Fields::of(bucket, form)).collect();
        let [value, difference, _, sum, count, increase, _] = types(form).expect("made by form()");
        let mut column = |kind, field: fn(&Fields) -> u64| {
            encoder.encode(kind, &fields.iter().map(field).collect::<Vec<_>>(), out);
        };
        column(value, |fields| fields.last);
        column(difference, |fields| fields.below);
        column(difference, |fields| fields.above);
        column(sum, |fields| fields.sum);
        column(count, |fields| fields.count);
        if form & INCREASE != 0 {
            column(increase, |fields| fields.increase.unwrap_or_default());
            column(Type::Unsigned, |fields| fields.increase_millis);
        }
    }

    fn decode(form: u8, rows: usize, decoder: &Decoder, from: &mut Cursor) -> Result<Vec<Bucket>, Damaged> {
        let types = types(form)?;
        let mut column = |field: usize| decoder.decode(types[field], rows, from);
        let (last, below, above, sum, count) = (column(0)?, column(1)?, column(2)?, column(3)?, column(4)?);
        let increases = if form & INCREASE == 0 { None } else { Some((column(5)?, column(6)?)) };
        let bucket = |row: usize| {
            let increase = increases.as_ref().map(|(increase, millis)| (increase[row], millis[row]));
            let fields = Fields {
                last: last[row],
                below: below[row],
                above: above[row],
                sum: sum[row],
                count: count[row],
                increase: increase.map(|(increase, _)| increase),
                increase_millis: increase.map_or(0, |(_, millis)| millis),
            };
            fields.bucket(form)
        };
        (0..rows).map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{Previous, merge_into};
    use proptest::prelude::*;
    use wire::sample::Number;
    use wire::time::Time;

    fn there_and_back<C: Cell>(rows: &[Option<C>]) -> Vec<Option<C>> {
        let encoder = Encoder::new();
        let mut out = Vec::new();
        encode(rows, &encoder, &mut out);
        decode(&out, rows.len(), &Decoder::new(&encoder.head()).expect("its own head")).expect("just encoded")
    }

    fn exact() -> impl Strategy<Value = Exact> {
        prop_oneof![
            any::<u64>().prop_map(Exact::Whole),
            (0..1000u64).prop_map(Exact::Whole),
            any::<i32>().prop_map(|ticks| Exact::from(Number::Real(f64::from(ticks) / 100.0))),
            any::<f64>().prop_map(|real| Exact::from(Number::Real(real))),
        ]
    }

    fn buckets(values: &[Exact], is_counter: bool, size: usize) -> Vec<Option<Bucket>> {
        let mut previous = Previous::default();
        let of = |chunk: &[Exact]| {
            let mut all = None;
            for value in chunk {
                let time = Time::from_micros(1_234_567);
                if let Some(next) = previous.next(*value, time, is_counter) {
                    merge_into(&mut all, &next);
                }
            }
            all
        };
        values.chunks(size).map(of).collect()
    }

    proptest! {
        #[test]
        fn samples_and_their_gaps_are_unchanged(
            rows in proptest::collection::vec(proptest::option::weighted(0.8, exact()), 1..200)
        ) {
            prop_assert_eq!(there_and_back(&rows), rows);
        }

        #[test]
        fn buckets_of_one_kind_are_unchanged(
            values in proptest::collection::vec(0..u64::MAX / 100, 1..300),
            is_counter in any::<bool>(),
            is_micro in any::<bool>(),
        ) {
            let values: Vec<Exact> = values.iter().map(|&value| match is_micro {
                true => Exact::Micro((value >> 12).cast_signed()),
                false => Exact::Whole(value),
            }).collect();
            let rows = buckets(&values, is_counter, 7);
            prop_assert_eq!(there_and_back(&rows), rows);
        }

        #[test]
        fn buckets_of_several_kinds_are_the_nearest_doubles(
            values in proptest::collection::vec(exact(), 1..100),
        ) {
            let rows = buckets(&values, true, 5);
            for (back, row) in there_and_back(&rows).iter().zip(&rows) {
                let (Some(back), Some(row)) = (back, row) else {
                    prop_assert_eq!(back.is_some(), row.is_some());
                    continue;
                };
                prop_assert_eq!(back.count, row.count);
                for (back, row) in [(back.min, row.min), (back.max, row.max), (back.sum, row.sum), (back.last, row.last)] {
                    prop_assert_eq!(back.as_f64().to_bits(), row.as_f64().to_bits());
                }
            }
        }

        #[test]
        fn damaged_chunks_do_no_harm(
            rows in proptest::collection::vec(proptest::option::weighted(0.8, exact()), 1..100),
            at in any::<proptest::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let encoder = Encoder::new();
            let mut out = Vec::new();
            encode(&rows, &encoder, &mut out);
            let at = at.index(out.len());
            out[at] ^= flip;
            let decoder = Decoder::new(&encoder.head()).expect("its own head");
            let _ = decode::<Exact>(&out, rows.len(), &decoder);
            let _ = decode::<Bucket>(&out, rows.len(), &decoder);
        }
    }
}
