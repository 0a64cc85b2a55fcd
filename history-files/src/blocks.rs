//! Checksums of the blocks of a file, so that parts of it can be read and verified.
//!
//! Pure. Not here: the checksum of the whole file (`table`).

use std::ops::Range;

/// Length of a block, in bytes; the last one of a file may be shorter.
const BLOCK_BYTES: usize = 128 << 10;

/// Digits of a checksum.
const DIGITS: usize = 8;

/// Checksums of a file that is being written.
#[derive(Default)]
pub(crate) struct Blocks {
    /// Of the blocks that are complete, in hexadecimal digits.
    done: String,
    open: crc32fast::Hasher,
    open_bytes: usize,
}

impl Blocks {
    /// Appends bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.open_bytes));
            self.open.update(now);
            self.open_bytes += now.len();
            if self.open_bytes == BLOCK_BYTES {
                self.close();
            }
            bytes = rest;
        }
    }

    fn close(&mut self) {
        let sum = std::mem::take(&mut self.open).finalize();
        self.done.push_str(&format!("{sum:08x}"));
        self.open_bytes = 0;
    }

    /// The checksums of all blocks.
    pub(crate) fn finish(mut self) -> String {
        if self.open_bytes > 0 {
            self.close();
        }
        self.done
    }
}

/// The whole blocks that have these bytes of a file of this length.
fn around(bytes: &Range<u64>, len_bytes: u64) -> Range<u64> {
    let block = BLOCK_BYTES as u64;
    bytes.start / block * block..bytes.end.div_ceil(block).saturating_mul(block).min(len_bytes)
}

/// The whole blocks that have these parts of a file of this length, those that touch as one; `None` if a part is none of
/// such a file.
pub(crate) fn around_all(parts: &[Range<u64>], len_bytes: u64) -> Option<Vec<Range<u64>>> {
    let is_part = |part: &Range<u64>| part.start <= part.end && part.end <= len_bytes;
    if !parts.iter().all(is_part) {
        return None;
    }
    let mut blocks: Vec<Range<u64>> = parts.iter().map(|part| around(part, len_bytes)).collect();
    blocks.sort_by_key(|block| (block.start, block.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for block in blocks {
        match merged.last_mut() {
            Some(last) if block.start <= last.end => last.end = last.end.max(block.end),
            _ => merged.push(block),
        }
    }
    Some(merged)
}

/// Whether whole blocks that begin at `start` are those of these checksums.
pub(crate) fn are_whole(bytes: &[u8], start: u64, checksums: &str) -> bool {
    let first = usize::try_from(start / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
    bytes.chunks(BLOCK_BYTES).enumerate().all(|(number, block)| {
        let at = first.saturating_add(number).saturating_mul(DIGITS);
        let sum = checksums.get(at..at.saturating_add(DIGITS));
        sum.and_then(|sum| u32::from_str_radix(sum, 16).ok()) == Some(crc32fast::hash(block))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found() {
        let mut bytes: Vec<u8> = (0..2 * BLOCK_BYTES + 70).map(|number| (number * number) as u8).collect();
        let mut blocks = Blocks::default();
        bytes.chunks(1000).for_each(|part| blocks.update(part));
        let sums = blocks.finish();
        assert_eq!(sums.len(), 3 * DIGITS);
        let (len, block) = (bytes.len() as u64, BLOCK_BYTES as u64);
        assert_eq!(around(&(5..9), len), 0..block);
        assert_eq!(around(&(block - 1..block + 1), len), 0..2 * block);
        assert_eq!(around(&(2 * block..2 * block + 3), len), 2 * block..len);
        let all = |parts: &[(u64, u64)]| -> Option<Vec<(u64, u64)>> {
            let parts: Vec<Range<u64>> = parts.iter().map(|(start, end)| *start..*end).collect();
            Some(around_all(&parts, len)?.into_iter().map(|block| (block.start, block.end)).collect())
        };
        let apart = [(2 * block + 1, 2 * block + 2), (5, 9), (0, 3)];
        assert_eq!(all(&apart), Some(vec![(0, block), (2 * block, len)]));
        assert_eq!(
            all(&[(block, block + 1), (5, 9)]),
            Some(vec![(0, 2 * block)]),
            "neighbours are read at once"
        );
        assert_eq!((all(&[]), all(&[(0, len + 1)]), all(&[(7, 6)])), (Some(Vec::new()), None, None));
        let is_whole = |bytes: &[u8], start: usize| are_whole(&bytes[start..], start as u64, &sums);
        assert!(is_whole(&bytes, 0) && is_whole(&bytes, BLOCK_BYTES));
        for at in [0, BLOCK_BYTES - 1, BLOCK_BYTES, bytes.len() - 1] {
            bytes[at] ^= 4;
            assert!(!is_whole(&bytes, 0), "{at}");
            bytes[at] ^= 4;
        }
        bytes.push(0);
        assert!(!is_whole(&bytes, 2 * BLOCK_BYTES), "a longer file");
        assert!(!are_whole(&bytes[..9], 9 * block, &sums) && !are_whole(&[1], 0, ""));
    }
}
