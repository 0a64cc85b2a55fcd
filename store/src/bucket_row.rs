//! Row of buckets: the buckets of all series of a host in one span, packed.
//!
//! Pure. In this form closed minutes and hours wait in memory until they are sealed into a block, are in the
//! log of copied minutes, and travel to other hosts. Most buckets take 3 to 12 bytes.
//! ```text
//! per bucket: series (difference) | form and flags | last | [last - min | max - last | sum - count * last]
//!             | [count] | [increase] | [time of the increase]
//! ```
//! Left out are the differences of a single or constant value, and numbers equal to those of the bucket before.

use crate::block::SeriesNo;
use crate::bucket::Bucket;
use crate::bytes::{Cursor, Damaged, put};
use crate::chunk::{Cell as _, FORM, Fields, INCREASE, types};
use crate::column::{put_one, take_one};

/// All values are the last one: the three differences are zero.
const CONSTANT: u8 = 0b1_0000;
/// The count is that of the bucket before.
const SAME_COUNT: u8 = 0b10_0000;
/// The time of the increase is that of the last bucket that had one.
const SAME_MILLIS: u8 = 0b100_0000;

/// What later buckets of a row refer to.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    series: SeriesNo,
    count: u64,
    millis: u64,
}

/// Packs buckets, whose series must ascend.
pub(crate) fn pack<'a>(buckets: impl Iterator<Item = (SeriesNo, &'a Bucket)>) -> Box<[u8]> {
    let mut packer = Packer::default();
    buckets.for_each(|(series, bucket)| packer.push(series, bucket));
    packer.finish()
}

/// Packs the buckets of a row one by one.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    before: Before,
    out: Vec<u8>,
}

impl Packer {
    /// Adds a bucket; series must ascend.
    pub(crate) fn push(&mut self, series: SeriesNo, bucket: &Bucket) {
        let Packer { before, out } = self;
        let form = bucket.form();
        let fields = Fields::of(bucket, form);
        let [value, difference, _, sum, count, increase, millis] = types(form).expect("made by form()");
        let is_constant = [fields.below, fields.above, fields.sum] == [0; 3];
        let has_increase = form & INCREASE != 0;
        let mut flags = form;
        flags |= if is_constant { CONSTANT } else { 0 };
        flags |= if fields.count == before.count { SAME_COUNT } else { 0 };
        flags |= if fields.increase_millis == before.millis { SAME_MILLIS } else { 0 };
        put(u64::from(series.wrapping_sub(before.series)), out);
        out.push(flags);
        put_one(value, fields.last, out);
        if !is_constant {
            put_one(difference, fields.below, out);
            put_one(difference, fields.above, out);
            put_one(sum, fields.sum, out);
        }
        if flags & SAME_COUNT == 0 {
            put_one(count, fields.count, out);
        }
        if has_increase {
            put_one(increase, fields.increase.unwrap_or_default(), out);
            if flags & SAME_MILLIS == 0 {
                put_one(millis, fields.increase_millis, out);
            }
            before.millis = fields.increase_millis;
        }
        (before.series, before.count) = (series, fields.count);
    }

    /// The packed row.
    pub(crate) fn finish(self) -> Box<[u8]> {
        self.out.into_boxed_slice()
    }
}

/// Reads the buckets of a packed row.
#[derive(Clone, Debug)]
pub(crate) struct Unpack<'a> {
    from: Cursor<'a>,
    before: Before,
    is_first: bool,
}

impl<'a> Unpack<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Unpack<'a> {
        Unpack { from: Cursor(packed), before: Before::default(), is_first: true }
    }

    fn take(&mut self) -> Result<(SeriesNo, Bucket), Damaged> {
        let from = &mut self.from;
        let step = u32::try_from(from.number()?).map_err(|_| Damaged("a series beyond the last number"))?;
        let series = self.before.series.checked_add(step).filter(|_| step > 0 || self.is_first);
        let series = series.ok_or(Damaged("series that do not ascend"))?;
        self.is_first = false;
        let flags = from.byte()?;
        let form = flags & FORM;
        let [value, difference, _, sum, count, increase, millis] = types(form)?;
        let last = take_one(value, from)?;
        let [below, above, sum] = match flags & CONSTANT {
            0 => [take_one(difference, from)?, take_one(difference, from)?, take_one(sum, from)?],
            _ => [0; 3],
        };
        let count = if flags & SAME_COUNT == 0 { take_one(count, from)? } else { self.before.count };
        let mut fields = Fields { last, below, above, sum, count, increase: None, increase_millis: 0 };
        if form & INCREASE != 0 {
            fields.increase = Some(take_one(increase, from)?);
            let is_same = flags & SAME_MILLIS != 0;
            fields.increase_millis = if is_same { self.before.millis } else { take_one(millis, from)? };
            self.before.millis = fields.increase_millis;
        }
        (self.before.series, self.before.count) = (series, count);
        Ok((series, fields.bucket(form)?))
    }
}

impl Iterator for Unpack<'_> {
    type Item = Result<(SeriesNo, Bucket), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.from.0.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.from = Cursor(&[]);
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Previous;
    use crate::exact::Exact;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use wire::sample::Number;
    use wire::time::Time;

    fn bucket() -> impl Strategy<Value = Bucket> {
        let value = prop_oneof![
            any::<u64>().prop_map(|whole| Exact::Whole(whole >> 8)),
            (0..1000u64).prop_map(Exact::Whole),
            any::<i32>().prop_map(|ticks| Exact::from(Number::Real(f64::from(ticks) / 100.0))),
        ];
        (value, 0..1000u64, 1..100u64, any::<bool>()).prop_map(|(first, step, count, is_counter)| {
            let mut previous = Previous::default();
            let mut all = None;
            for nth in 0..count {
                let value = match first {
                    Exact::Whole(whole) => Exact::Whole(whole + nth * step),
                    Exact::Micro(_) | Exact::Real(_) => first,
                };
                let time = Time::from_micros((nth * 1_000_300).cast_signed());
                let next = previous.next(value, time, is_counter).expect("a number");
                crate::bucket::merge_into(&mut all, &next);
            }
            all.expect("one at least")
        })
    }

    #[test]
    fn a_quiet_row_takes_few_bytes() {
        let row: BTreeMap<SeriesNo, Bucket> =
            (0..200).map(|series| (series, Bucket::of(Exact::Whole(7)))).collect();
        let packed = pack(row.iter().map(|(series, bucket)| (*series, bucket)));
        assert_eq!(packed.len(), 200 * 3 + 1, "series, flags and value, and one count");
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_packed(
            row in proptest::collection::btree_map(any::<SeriesNo>(), bucket(), 0..40),
        ) {
            let packed = pack(row.iter().map(|(series, bucket)| (*series, bucket)));
            let back: Result<BTreeMap<SeriesNo, Bucket>, Damaged> = Unpack::new(&packed).collect();
            prop_assert_eq!(back, Ok(row));
        }

        #[test]
        fn damaged_rows_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Unpack::new(&bytes).count() <= bytes.len());
        }
    }
}
