//! Bit streams in bytes, the lowest bit first.
//!
//! Pure. Reading never goes past the end: missing bits give `None`.

/// Most bits of one [`Writer::put`] or [`Reader::get`].
pub(super) const AT_ONCE_MAX: u32 = 56;

/// Longest run of ones in a Rice code; a larger quotient is written as a whole number, which is then shorter.
const ONES_MAX: u32 = 20;

/// Appends bits to bytes.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    /// Number of bits in `held`: fewer than eight between calls.
    count: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, held: 0, count: 0 }
    }

    /// Append the lowest `bits` bits of a value, at most [`AT_ONCE_MAX`]; the others must be zero.
    pub(super) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= AT_ONCE_MAX && value >> bits == 0);
        self.held |= value << self.count;
        self.count += bits;
        let whole = self.count / 8;
        self.out.extend_from_slice(&self.held.to_le_bytes()[..whole as usize]);
        self.held = self.held.checked_shr(whole * 8).unwrap_or(0);
        self.count %= 8;
    }

    /// Append any number of bits up to 64.
    pub(super) fn put_long(&mut self, value: u64, bits: u32) {
        if bits <= AT_ONCE_MAX {
            return self.put(value, bits);
        }
        self.put(value & 0xffff_ffff, 32);
        self.put(value >> 32, bits - 32);
    }

    /// Append a number in Rice code: the quotient by 2^`low` in ones, then `low` bits.
    pub(super) fn put_rice(&mut self, value: u64, low: u32) {
        let quotient = value >> low;
        if quotient < u64::from(ONES_MAX) {
            let ones = u32::try_from(quotient).expect("below the most ones");
            self.put((1 << ones) - 1, ones + 1);
            self.put_long(value & ((1 << low) - 1), low);
        } else {
            self.put((1 << ONES_MAX) - 1, ONES_MAX);
            self.put_long(value, 64);
        }
    }

    /// Fill the last byte with zeros.
    pub(super) fn finish(self) {
        if self.count > 0 {
            self.out.push(self.held.to_le_bytes()[0]);
        }
    }
}

/// Reads bits from bytes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, held: 0, count: 0 }
    }

    fn fill(&mut self) {
        if let Some(eight) = self.rest.first_chunk::<8>() {
            self.held |= u64::from_le_bytes(*eight) << self.count;
            let taken = (63 - self.count) / 8;
            self.rest = &self.rest[taken as usize..];
            self.count += taken * 8;
            // Bits beyond the counted ones are read again later.
            self.held &= u64::MAX >> (64 - self.count);
            return;
        }
        while self.count < AT_ONCE_MAX {
            let Some((&byte, after)) = self.rest.split_first() else { return };
            self.held |= u64::from(byte) << self.count;
            self.count += 8;
            self.rest = after;
        }
    }

    /// Read this many bits, at most [`AT_ONCE_MAX`].
    pub(super) fn get(&mut self, bits: u32) -> Option<u64> {
        debug_assert!(bits <= AT_ONCE_MAX);
        if self.count < bits {
            self.fill();
            if self.count < bits {
                return None;
            }
        }
        let value = self.held & ((1 << bits) - 1);
        self.held >>= bits;
        self.count -= bits;
        Some(value)
    }

    /// Read any number of bits up to 64.
    pub(super) fn get_long(&mut self, bits: u32) -> Option<u64> {
        if bits <= AT_ONCE_MAX {
            return self.get(bits);
        }
        let low = self.get(32)?;
        Some(low | (self.get(bits - 32)? << 32))
    }

    /// Read the output of [`Writer::put_rice`].
    pub(super) fn get_rice(&mut self, low: u32) -> Option<u64> {
        if self.count < ONES_MAX {
            self.fill();
        }
        let ones = (!self.held).trailing_zeros();
        if ones >= ONES_MAX {
            self.get(ONES_MAX)?;
            return self.get_long(64);
        }
        self.get(ones + 1)?;
        let rest = self.get_long(low)?;
        Some((u64::from(ones) << low) | rest)
    }

    /// Whether only the padding of the last byte is left.
    pub(super) fn is_finished(&self) -> bool {
        self.rest.is_empty() && self.count < 8 && self.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_got(numbers in proptest::collection::vec((any::<u64>(), 0u32..=64, 0u32..56), 0..200)) {
            let mut out = vec![9];
            let mut writer = Writer::new(&mut out);
            for (number, bits, low) in &numbers {
                let cut = number.checked_shr(64 - bits).unwrap_or(0);
                writer.put_long(cut, *bits);
                writer.put_rice(number >> (number % 64), *low);
            }
            writer.finish();
            let mut reader = Reader::new(&out[1..]);
            for (number, bits, low) in &numbers {
                prop_assert_eq!(reader.get_long(*bits), Some(number.checked_shr(64 - bits).unwrap_or(0)));
                prop_assert_eq!(reader.get_rice(*low), Some(number >> (number % 64)));
            }
            prop_assert!(reader.is_finished());
            prop_assert_eq!(reader.get(8), None);
        }
    }
}
