//! Compressed sweeps of a host's metrics: a whole one first, then only the changes.
//!
//! Pure. A whole sweep contains every value; the following ones contain which values differ from the
//! expectation, and by how much:
//!
//! ```text
//! whole    1 | columns | time | per column: kind, value
//! changes  2 | time    | columns of another kind: how many, (gap, kind, value) … | bits:
//!              per 8 columns: 0, or 1 and which of them differ; per such column the difference
//! ```
//!
//! The expectation of a column is its last value, or its last value plus its last step, whichever was cheaper
//! recently; differences are written in Rice code with a parameter that adapts to the column. Measures are
//! stored as decimal fractions if that is exact (as for everything that kernels count in ticks, milliseconds
//! or microseconds), otherwise as bit patterns.
//! Invariant: encoder and decoder make the same decisions from the same integers.
//! Not here: the metric of each column ([`super::Shape`]).

use super::bits::{Reader, Writer};
use crate::sample::Number;
use crate::time::Time;

/// Most columns of a sweep: a host of 4,096 CPUs with a thousand devices fits.
pub const COLUMNS_MAX: usize = 1 << 16;

/// Number of changes after which a whole sweep is written, so that a history can be cut there.
pub const CHANGES_MAX: u32 = 120;

const WHOLE_SWEEP: u8 = 1;
const CHANGES: u8 = 2;

/// Most decimal places: microseconds.
const PLACES_MAX: u8 = 6;
const POWERS: [f64; PLACES_MAX as usize + 1] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// A double represents all whole numbers below this exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Why bytes are not the next sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The sweep needs fewer or more bytes.
    #[error("sweep is cut short or too long")]
    Length,
    /// The frame is of neither form.
    #[error("sweep of form {found}; expected {WHOLE_SWEEP} or {CHANGES}")]
    Form {
        /// The first byte of the frame.
        found: u8,
    },
    /// The number of columns differs from the shape.
    #[error("sweep of {found} columns; its shape has {expected}")]
    Columns {
        /// Number of columns in the frame.
        found: u64,
        /// Number of columns in the shape.
        expected: usize,
    },
    /// Unknown kind of number.
    #[error("column of kind {found}; expected at most {RAW}")]
    Kind {
        /// The kind in the frame.
        found: u8,
    },
    /// Changes without a whole sweep before them.
    #[error("changes without a whole sweep before them")]
    Unfounded,
}

// Kinds of a column: whole numbers, decimal fractions with this many places, bit patterns.
const WHOLE: u8 = 0;
const DECIMAL: u8 = 1;
const RAW: u8 = DECIMAL + PLACES_MAX + 1;

/// State of a column at both ends.
#[derive(Clone, Copy, Debug)]
struct Column {
    value: u64,
    step: u64,
    /// Sum and number of the last differences, for the parameter of the Rice code.
    sum: u64,
    count: u32,
    /// Recent cost of the two expectations, in eighths of bits.
    cost_level: u16,
    cost_step: u16,
    kind: u8,
}

impl Column {
    fn new(kind: u8, value: u64) -> Column {
        Column { value, step: 0, sum: 8, count: 1, cost_level: 0, cost_step: 0, kind }
    }

    fn number(&self) -> Number {
        #[allow(clippy::cast_precision_loss)] // Below 2^53 by the encoder; a hostile one only spoils its own.
        match self.kind {
            WHOLE => Number::Whole(self.value),
            RAW => Number::Real(f64::from_bits(self.value)),
            decimal => Number::Real(self.value.cast_signed() as f64 / POWERS[usize::from(decimal - DECIMAL)]),
        }
    }

    fn expected(&self) -> u64 {
        if self.cost_step < self.cost_level { self.value.wrapping_add(self.step) } else { self.value }
    }

    /// Difference of a value from the expectation, zig-zag encoded so that small ones of either sign are
    /// small.
    fn difference(&self, value: u64) -> u64 {
        if self.kind == RAW { value ^ self.value } else { fold(value.wrapping_sub(self.expected())) }
    }

    /// The value with this difference.
    fn value_of(&self, difference: u64) -> u64 {
        if self.kind == RAW {
            self.value ^ difference
        } else {
            self.expected().wrapping_add(unfold(difference))
        }
    }

    fn settle(&mut self, value: u64) {
        let step = value.wrapping_sub(self.value);
        if self.kind != RAW && (step | self.step) != 0 {
            let (level, more) = (cost(step), cost(step.wrapping_sub(self.step)));
            self.cost_level = self.cost_level - (self.cost_level >> 3) + level;
            self.cost_step = self.cost_step - (self.cost_step >> 3) + more;
        }
        (self.value, self.step) = (value, step);
    }

    /// Parameter of the Rice code: the number of low bits, from the mean of the last differences.
    fn low(&self) -> u32 {
        (self.sum / u64::from(self.count)).checked_ilog2().unwrap_or(0).min(54)
    }

    fn learn(&mut self, difference: u64) {
        self.sum += difference.min(1 << 50);
        self.count += 1;
        if self.count > 16 {
            (self.sum, self.count) = (self.sum / 2, self.count / 2);
        }
    }
}

fn fold(difference: u64) -> u64 {
    (difference << 1) ^ ((difference.cast_signed() >> 63).cast_unsigned())
}

fn unfold(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

/// Approximate cost of a difference in bits; zero for no difference.
fn cost(difference: u64) -> u16 {
    let bits = 64 - fold(difference).leading_zeros();
    if bits == 0 { 0 } else { u16::try_from(bits).expect("at most 64") + 2 }
}

/// The measure as a decimal fraction with this many places, if that is exact.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // Both below 2^53.
fn decimal(real: f64, places: u8) -> Option<u64> {
    let power = POWERS[usize::from(places)];
    let scaled = (real * power).round();
    if scaled.abs() >= EXACT || scaled.is_nan() {
        return None;
    }
    let whole = scaled as i64;
    ((whole as f64 / power).to_bits() == real.to_bits()).then_some(whole.cast_unsigned())
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

fn get_varint(rest: &mut &[u8]) -> Result<u64, Error> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(Error::Length)?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::Length)
}

fn get_byte(rest: &mut &[u8]) -> Result<u8, Error> {
    let (&byte, after) = rest.split_first().ok_or(Error::Length)?;
    *rest = after;
    Ok(byte)
}

/// Encoder of sweeps.
#[derive(Debug, Default)]
pub struct Encoder {
    columns: Vec<Column>,
    /// Decimal places that each column has needed so far, across whole sweeps.
    places: Vec<u8>,
    time: i64,
    step: i64,
    changes: u32,
    retyped: Vec<(usize, u8, u64)>,
}

impl Encoder {
    /// Start again with a whole sweep, because the columns change or the decoder lost its state.
    pub fn restart(&mut self) {
        self.columns.clear();
        self.places.clear();
    }

    /// Encode the next sweep and append it to `out`.
    ///
    /// # Panics
    /// If there are more than [`COLUMNS_MAX`] values.
    pub fn encode(&mut self, time: Time, values: &[Number], out: &mut Vec<u8>) {
        assert!(values.len() <= COLUMNS_MAX, "a table has at most as many rows");
        if self.columns.len() != values.len() || self.changes == CHANGES_MAX {
            return self.encode_whole(time, values, out);
        }
        self.changes += 1;
        out.push(CHANGES);
        let step = time.micros().wrapping_sub(self.time);
        put_varint(fold(step.wrapping_sub(self.step).cast_unsigned()), out);
        (self.time, self.step) = (time.micros(), step);
        self.retype(values);
        put_varint(self.retyped.len() as u64, out);
        let mut before = 0;
        for (at, kind, value) in self.retyped.drain(..) {
            put_varint((at - before) as u64, out);
            out.push(kind);
            out.extend_from_slice(&value.to_le_bytes());
            before = at;
        }
        let mut bits = Writer::new(out);
        for (columns, values) in self.columns.chunks_mut(8).zip(values.chunks(8)) {
            put_group(columns, values, &mut bits);
        }
        bits.finish();
    }

    fn encode_whole(&mut self, time: Time, values: &[Number], out: &mut Vec<u8>) {
        self.places.resize(values.len(), 0);
        self.columns.clear();
        (self.time, self.step, self.changes) = (time.micros(), 0, 0);
        out.push(WHOLE_SWEEP);
        put_varint(values.len() as u64, out);
        put_varint(fold(time.micros().cast_unsigned()), out);
        for (number, places) in values.iter().zip(&mut self.places) {
            let (kind, value) = typed(*number, places);
            self.columns.push(Column::new(kind, value));
            out.push(kind);
            if kind == RAW {
                out.extend_from_slice(&value.to_le_bytes());
            } else {
                put_varint(fold(value), out);
            }
        }
    }

    /// Change the kind of columns whose new value does not fit it.
    fn retype(&mut self, values: &[Number]) {
        for (at, (number, column)) in values.iter().zip(&mut self.columns).enumerate() {
            let fits = match (number, column.kind) {
                (Number::Whole(_), kind) => kind == WHOLE,
                (Number::Real(_), RAW) => true,
                (Number::Real(_), WHOLE) => false,
                (Number::Real(real), kind) => {
                    Number::Real(*real) == column.number() && real.to_bits() != (-0.0f64).to_bits()
                        || decimal(*real, kind - DECIMAL).is_some()
                }
            };
            if !fits {
                let (kind, value) = typed(*number, &mut self.places[at]);
                *column = Column::new(kind, value);
                self.retyped.push((at, kind, value));
            }
        }
    }
}

/// The kind of a number, and its encoded value: with at least the places that the column has needed.
fn typed(number: Number, places: &mut u8) -> (u8, u64) {
    match number {
        Number::Whole(whole) => (WHOLE, whole),
        Number::Real(real) => {
            let exact = (*places..=PLACES_MAX).find_map(|some| Some((some, decimal(real, some)?)));
            match exact {
                Some((some, value)) => {
                    *places = some;
                    (DECIMAL + some, value)
                }
                None => (RAW, real.to_bits()),
            }
        }
    }
}

fn put_group(columns: &mut [Column], values: &[Number], bits: &mut Writer<'_>) {
    let (mut differences, mut mask) = ([0; 8], 0);
    for (at, (column, number)) in columns.iter_mut().zip(values).enumerate() {
        let value = match number {
            Number::Whole(whole) => *whole,
            Number::Real(real) if column.kind == RAW => real.to_bits(),
            // Most values equal the last one: avoid a division for those.
            Number::Real(_) if *number == column.number() => column.value,
            Number::Real(real) => decimal(*real, column.kind - DECIMAL)
                .expect("columns of another kind were given one that fits"),
        };
        differences[at] = column.difference(value);
        mask |= u64::from(differences[at] != 0) << at;
        column.settle(value);
    }
    if mask == 0 {
        return bits.put(0, 1);
    }
    bits.put(mask << 1 | 1, 9);
    for (column, difference) in columns.iter_mut().zip(differences) {
        if difference == 0 {
            continue;
        }
        if column.kind == RAW {
            let (before, after) = (difference.leading_zeros(), difference.trailing_zeros());
            bits.put(u64::from(before) | u64::from(after) << 6, 12);
            bits.put_long(difference >> after, 64 - before - after);
        } else {
            bits.put_rice(difference - 1, column.low());
            column.learn(difference - 1);
        }
    }
}

/// Decoder of sweeps. After an error it accepts only a whole sweep.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    columns: Vec<Column>,
    time: i64,
    step: i64,
    is_founded: bool,
}

impl Decoder {
    /// Decode the next sweep, of a shape with this many columns. Returns its time and its form.
    ///
    /// # Errors
    /// If it is invalid; the decoder then accepts only a whole sweep.
    pub fn decode(&mut self, bytes: &[u8], columns: usize) -> Result<(Time, Form), Error> {
        let founded = std::mem::replace(&mut self.is_founded, false);
        let mut rest = bytes;
        let form = match get_byte(&mut rest)? {
            WHOLE_SWEEP => {
                self.decode_whole(rest, columns)?;
                Form::Whole
            }
            CHANGES if !founded => return Err(Error::Unfounded),
            CHANGES if self.columns.len() != columns => {
                return Err(Error::Columns { found: self.columns.len() as u64, expected: columns });
            }
            CHANGES => {
                self.decode_changes(rest)?;
                Form::Changes
            }
            found => return Err(Error::Form { found }),
        };
        self.is_founded = true;
        Ok((Time::from_micros(self.time), form))
    }

    /// Values of the last sweep, by column.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Number> + '_ {
        self.columns.iter().map(Column::number)
    }

    /// Value of one column in the last sweep.
    #[must_use]
    pub fn value(&self, column: usize) -> Option<Number> {
        self.columns.get(column).map(Column::number)
    }

    fn decode_whole(&mut self, mut rest: &[u8], columns: usize) -> Result<(), Error> {
        let found = get_varint(&mut rest)?;
        if found != columns as u64 {
            return Err(Error::Columns { found, expected: columns });
        }
        self.time = unfold(get_varint(&mut rest)?).cast_signed();
        self.step = 0;
        self.columns.clear();
        for _ in 0..columns {
            let kind = get_byte(&mut rest)?;
            let value = match kind {
                RAW => get_raw(&mut rest)?,
                kind if kind < RAW => unfold(get_varint(&mut rest)?),
                found => return Err(Error::Kind { found }),
            };
            self.columns.push(Column::new(kind, value));
        }
        if rest.is_empty() { Ok(()) } else { Err(Error::Length) }
    }

    fn decode_changes(&mut self, mut rest: &[u8]) -> Result<(), Error> {
        let change = unfold(get_varint(&mut rest)?).cast_signed();
        self.step = self.step.wrapping_add(change);
        self.time = self.time.wrapping_add(self.step);
        let mut at = 0u64;
        for _ in 0..get_varint(&mut rest)? {
            at = at.saturating_add(get_varint(&mut rest)?);
            let kind = get_byte(&mut rest)?;
            let value = get_raw(&mut rest)?;
            let column = usize::try_from(at).ok().and_then(|at| self.columns.get_mut(at));
            let column = column.ok_or(Error::Length)?;
            if kind > RAW {
                return Err(Error::Kind { found: kind });
            }
            *column = Column::new(kind, value);
        }
        let mut bits = Reader::new(rest);
        for columns in self.columns.chunks_mut(8) {
            get_group(columns, &mut bits).ok_or(Error::Length)?;
        }
        if bits.is_finished() { Ok(()) } else { Err(Error::Length) }
    }
}

/// Form of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Contains every value.
    Whole,
    /// Contains the changes since the previous one.
    Changes,
}

fn get_raw(rest: &mut &[u8]) -> Result<u64, Error> {
    let (eight, after) = rest.split_first_chunk().ok_or(Error::Length)?;
    *rest = after;
    Ok(u64::from_le_bytes(*eight))
}

fn get_group(columns: &mut [Column], bits: &mut Reader<'_>) -> Option<()> {
    let mask = if bits.get(1)? == 0 { 0 } else { bits.get(8)? };
    for (at, column) in columns.iter_mut().enumerate() {
        if mask >> at & 1 == 0 {
            // As expected; for a bit pattern that means unchanged.
            let value = column.value_of(0);
            column.settle(value);
            continue;
        }
        if column.kind == RAW {
            let ends = bits.get(12)?;
            let (before, after) = ((ends & 63) as u32, (ends >> 6) as u32);
            let len = 64u32.checked_sub(before + after)?;
            let difference = bits.get_long(len)? << after;
            column.settle(column.value_of(difference));
        } else {
            let difference = bits.get_rice(column.low())?;
            column.settle(column.value_of(difference.wrapping_add(1)));
            column.learn(difference);
        }
    }
    Some(())
}
