//! Columns of numbers, packed: for records of other crates in a log by the day.
//!
//! Pure. Not here: the blocks of metrics (`block`), which have the same columns.

use crate::bytes::{Cursor, put};
use crate::column::{Decoder, Encoder, Type};

/// Longest head of the compression, in bytes.
const HEAD_LEN_MAX: usize = 64;

/// Most rows of a column.
pub const ROWS_MAX: usize = 1 << 16;

/// Packs columns of equal length, which are not empty: constant and regular ones take next to nothing, others about what
/// their differences do.
#[must_use]
pub fn pack(columns: &[Vec<u64>]) -> Vec<u8> {
    let encoder = Encoder::new();
    let (head, mut out) = (encoder.head(), Vec::new());
    put(head.len() as u64, &mut out);
    out.extend_from_slice(&head);
    columns.iter().for_each(|column| encoder.encode(Type::Unsigned, column, &mut out));
    out
}

/// Unpacks that many columns of that many rows; `None` if they are damaged.
#[must_use]
pub fn unpack(bytes: &[u8], columns: usize, rows: usize) -> Option<Vec<Vec<u64>>> {
    if !(1..=ROWS_MAX).contains(&rows) {
        return None;
    }
    let mut from = Cursor(bytes);
    let head_len = from.size(HEAD_LEN_MAX).ok()?;
    let decoder = Decoder::new(from.take(head_len).ok()?).ok()?;
    (0..columns).map(|_| decoder.decode(Type::Unsigned, rows, &mut from).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_they_were_packed_and_damage_does_no_harm() {
        let columns: Vec<Vec<u64>> = vec![
            (0..300).map(|row| 1_795_178_489_000 + row * 1000 + row % 3).collect(),
            (0..300).map(|row| row * row * 1000).collect(),
            vec![4; 300],
        ];
        let packed = pack(&columns);
        assert!(packed.len() < 900, "{}", packed.len());
        assert_eq!(unpack(&packed, 3, 300), Some(columns));
        assert_eq!((unpack(&packed, 3, 0), unpack(&packed, 3, ROWS_MAX + 1)), (None, None));
        for at in 0..packed.len() {
            assert_eq!(unpack(&packed[..at], 3, 300), None, "cut at {at}");
            let mut damaged = packed.clone();
            damaged[at] ^= 0x55;
            let _ = unpack(&damaged, 3, 300);
        }
    }
}
