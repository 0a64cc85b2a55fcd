//! Variable-length numbers: seven bits per byte, the lowest first; the high bit of a byte means that another
//! follows.
//!
//! Pure. Reading never goes past the end. Not here: the meaning of the numbers.

use super::Error;

/// Append a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Zig-zag encoding of a difference, so that small ones of either sign are small.
pub(super) const fn fold(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    (signed << 1 ^ signed >> 63).cast_unsigned()
}

/// Inverse of [`fold`].
pub(super) const fn unfold(folded: u64) -> u64 {
    folded >> 1 ^ (folded & 1).wrapping_neg()
}

/// Reads the output of [`put`].
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.rest.split_first().ok_or(Error::Length)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Error::Length)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Read a number. One that does not fit in 64 bits is an error.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Error::Length);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, number);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.number(), reader.is_at_end()), (Ok(number), true));
            assert_eq!(unfold(fold(number)), number);
        }
        assert_eq!(Reader::new(&[0x80; 12]).number(), Err(Error::Length), "without an end");
        let mut beyond = [0x80; 10];
        beyond[9] = 2;
        assert_eq!(Reader::new(&beyond).number(), Err(Error::Length), "65 bits");
    }

    #[test]
    fn small_differences_of_either_sign_are_short() {
        for (difference, folded) in [(0_i64, 0), (-1, 1), (1, 2), (-2, 3)] {
            assert_eq!(fold(difference.cast_unsigned()), folded);
        }
    }
}
