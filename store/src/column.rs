//! Column codec: the values of one field over the rows of a block, by `pco`, as differences or by a rule.
//!
//! Pure. Decoding damaged bytes is an error, never a panic or an allocation beyond the number of rows.

use crate::bytes::{Cursor, Damaged, put, unzigzag, zigzag};
use pco::ChunkConfig;
use pco::data_types::Number;
use pco::wrapped::{FileCompressor, FileDecompressor};

/// The values of a column are all this one.
const CONSTANT: u8 = 0;
/// The values are compressed.
const COMPRESSED: u8 = 1;
/// Each value differs from the one before by the same amount. Since version 2.
const EVEN: u8 = 2;
/// Differences from one value to the next. Since version 2.
const DIFFERENCES: u8 = 3;

/// Columns of fewer rows are stored as differences: `pco` takes some microseconds a column for its tables, however
/// short the column is.
const COMPRESSED_ROWS_MIN: usize = 128;

/// Numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Unsigned,
    Signed,
    Real,
}

/// Appends one value, given by its bits.
pub(crate) fn put_one(kind: Type, bits: u64, out: &mut Vec<u8>) {
    match kind {
        Type::Unsigned => put(bits, out),
        Type::Signed => put(zigzag(bits.cast_signed()), out),
        Type::Real => out.extend_from_slice(&bits.to_le_bytes()),
    }
}

/// Reads one value.
pub(crate) fn take_one(kind: Type, from: &mut Cursor) -> Result<u64, Damaged> {
    Ok(match kind {
        Type::Unsigned => from.number()?,
        Type::Signed => unzigzag(from.number()?).cast_unsigned(),
        Type::Real => u64::from_le_bytes(from.array()?),
    })
}

/// Appends the first value and the differences of the others; doubles as they are.
fn put_differences(kind: Type, bits: &[u64], out: &mut Vec<u8>) {
    let mut before = 0;
    for value in bits {
        match kind {
            Type::Real => put_one(kind, *value, out),
            Type::Unsigned | Type::Signed => put_one(Type::Signed, value.wrapping_sub(before), out),
        }
        before = *value;
    }
}

fn take_differences(kind: Type, rows: usize, from: &mut Cursor) -> Result<Vec<u64>, Damaged> {
    let mut before = 0u64;
    let mut next = || {
        before = match kind {
            Type::Real => take_one(kind, from)?,
            Type::Unsigned | Type::Signed => before.wrapping_add(take_one(Type::Signed, from)?),
        };
        Ok(before)
    };
    (0..rows).map(|_| next()).collect()
}

/// Encoder, for all columns of a block.
pub(crate) struct Encoder {
    pco: FileCompressor,
    config: ChunkConfig,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder { pco: FileCompressor::default(), config: ChunkConfig::default() }
    }

    /// Head that the decoder of this block's columns needs: the version of the compression.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.pco.write_header(Vec::new()).expect("writing to memory does not fail")
    }

    /// Appends a column of at least one value, given by its bits.
    pub(crate) fn encode(&self, kind: Type, bits: &[u64], out: &mut Vec<u8>) {
        let first = bits[0];
        if bits.iter().all(|value| *value == first) {
            out.push(CONSTANT);
            put_one(kind, first, out);
            return;
        }
        let step = bits[1].wrapping_sub(first);
        if kind != Type::Real && bits.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step) {
            out.push(EVEN);
            put_one(kind, first, out);
            put_one(Type::Signed, step, out);
            return;
        }
        if bits.len() < COMPRESSED_ROWS_MIN {
            out.push(DIFFERENCES);
            put_differences(kind, bits, out);
            return;
        }
        out.push(COMPRESSED);
        let packed = match kind {
            Type::Unsigned => self.compress(bits),
            Type::Signed => self.compress(&bits.iter().map(|bits| bits.cast_signed()).collect::<Vec<_>>()),
            Type::Real => self.compress(&bits.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>()),
        };
        put(packed.len() as u64, out);
        out.extend_from_slice(&packed);
    }

    fn compress<T: Number>(&self, values: &[T]) -> Vec<u8> {
        let mut chunk =
            self.pco.chunk_compressor(values, &self.config).expect("the default configuration is valid");
        let mut packed = Vec::with_capacity(chunk.meta_size_hint() + chunk.page_size_hint(0));
        chunk.write_meta(&mut packed).expect("writing to memory does not fail");
        chunk.write_page(0, &mut packed).expect("writing to memory does not fail");
        packed
    }
}

/// Decoder of the columns of a block.
pub(crate) struct Decoder(FileDecompressor);

impl Decoder {
    /// Decoder for a block with this head.
    pub(crate) fn new(head: &[u8]) -> Result<Decoder, Damaged> {
        let read =
            FileDecompressor::new(head).map_err(|_| Damaged("an unknown version of its compression"))?;
        Ok(Decoder(read.0))
    }

    /// Reads the bits of the `rows` values of a column.
    pub(crate) fn decode(&self, kind: Type, rows: usize, from: &mut Cursor) -> Result<Vec<u64>, Damaged> {
        match from.byte()? {
            CONSTANT => Ok(vec![take_one(kind, from)?; rows]),
            EVEN => {
                let (first, step) = (take_one(kind, from)?, take_one(Type::Signed, from)?);
                Ok((0..rows as u64).map(|row| first.wrapping_add(step.wrapping_mul(row))).collect())
            }
            DIFFERENCES => take_differences(kind, rows, from),
            COMPRESSED => {
                let len = from.size(usize::MAX)?;
                let packed = from.take(len)?;
                match kind {
                    Type::Unsigned => self.expand::<u64>(packed, rows),
                    Type::Signed => {
                        let values = self.expand::<i64>(packed, rows)?;
                        Ok(values.into_iter().map(i64::cast_unsigned).collect())
                    }
                    Type::Real => {
                        Ok(self.expand::<f64>(packed, rows)?.into_iter().map(f64::to_bits).collect())
                    }
                }
            }
            _ => Err(Damaged("an unknown form of a column")),
        }
    }

    fn expand<T: Number>(&self, packed: &[u8], rows: usize) -> Result<Vec<T>, Damaged> {
        let damaged = |_| Damaged("a column that cannot be decompressed");
        let (mut chunk, rest) = self.0.chunk_decompressor::<T, _>(packed).map_err(damaged)?;
        let mut page = chunk.page_decompressor(rest, rows).map_err(damaged)?;
        let mut values = vec![T::default(); rows];
        let progress = page.read(&mut values).map_err(damaged)?;
        match progress.n_processed == rows {
            true => Ok(values),
            false => Err(Damaged("a column with fewer values than the block has rows")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(kind: Type, bits: &[u64]) -> (Vec<u64>, usize) {
        let encoder = Encoder::new();
        let mut out = Vec::new();
        encoder.encode(kind, bits, &mut out);
        let decoder = Decoder::new(&encoder.head()).expect("its own head");
        let mut cursor = Cursor(&out);
        let back = decoder.decode(kind, bits.len(), &mut cursor).expect("just encoded");
        assert!(cursor.0.is_empty());
        (back, out.len())
    }

    #[test]
    fn constants_cost_next_to_nothing() {
        assert_eq!(there_and_back(Type::Unsigned, &[5; 1024]).1, 2);
        assert_eq!(there_and_back(Type::Real, &[0.1f64.to_bits(); 1024]).1, 9);
        let regular: Vec<u64> = (0..1024).map(|row| 1_795_178_489_000_000 + row * 1_000_000).collect();
        assert_eq!(there_and_back(Type::Signed, &regular).1, 12);
        let noise: Vec<u64> = (0..100).map(|row: u64| row * row % 53).collect();
        assert!(there_and_back(Type::Unsigned, &noise).1 < 200, "less than two bytes a value");
    }

    proptest! {
        #[test]
        fn columns_are_read_as_they_were_written(
            bits in proptest::collection::vec(any::<u64>(), 1..300),
            small in proptest::collection::vec(0..3u64, 1..300),
        ) {
            for kind in [Type::Unsigned, Type::Signed, Type::Real] {
                prop_assert_eq!(&there_and_back(kind, &bits).0, &bits);
                prop_assert_eq!(&there_and_back(kind, &small).0, &small);
            }
        }

        #[test]
        fn damaged_columns_are_refused_or_read_without_a_panic(
            bits in proptest::collection::vec(0..1000u64, 2..300),
            at in any::<proptest::sample::Index>(),
            flip in 1..=255u8,
        ) {
            let encoder = Encoder::new();
            let mut out = Vec::new();
            encoder.encode(Type::Unsigned, &bits, &mut out);
            let at = at.index(out.len());
            out[at] ^= flip;
            let decoder = Decoder::new(&encoder.head()).expect("its own head");
            let _ = decoder.decode(Type::Unsigned, bits.len(), &mut Cursor(&out));
        }
    }
}
