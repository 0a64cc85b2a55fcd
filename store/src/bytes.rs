//! Bytes of blocks: variable-length numbers, and a reader that never reads past its end.
//!
//! Pure. Numbers are little-endian base 128, as in protocol buffers; signed ones are zigzag-encoded first.

/// Error of reading bytes that do not have the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged block: {0}")]
pub(crate) struct Damaged(pub(crate) &'static str);

/// Appends a number in as many bytes as it needs.
pub(crate) fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps signed numbers to unsigned ones, small absolute values to small numbers.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    ((value >> 1) ^ (value & 1).wrapping_neg()).cast_signed()
}

/// Reader over bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn number(&mut self) -> Result<u64, Damaged> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(Damaged("a number of more than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A number that counts or measures something in memory, at most `max`.
    pub(crate) fn size(&mut self, max: usize) -> Result<usize, Damaged> {
        let value = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if value > max { Err(Damaged("a size beyond its bound")) } else { Ok(value) }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        let (&byte, rest) = self.0.split_first().ok_or(Damaged("it ends within a number"))?;
        self.0 = rest;
        Ok(byte)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damaged("it ends within a column"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        Ok(self.take(N)?.try_into().expect("as long as was taken"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(value, &mut bytes);
            assert_eq!(Cursor(&bytes).number(), Ok(value));
            assert!(Cursor(&bytes[..bytes.len() - 1]).number().is_err(), "{value} cut");
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert!(zigzag(-3) < 8, "small numbers stay small");
        assert!(Cursor(&[0xff; 10]).number().is_err(), "a number of 70 bits");
    }
}
