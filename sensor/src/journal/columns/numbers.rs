//! Variable-length numbers in byte streams: LEB128, and zigzag for differences.
//!
//! Pure. Reading never panics: the end of a stream, or a number that is too long, is `None`.
//! Not here: what the numbers mean.

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a difference: small ones of both signs are short.
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends a text with its length.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Read position in a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(part)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_a_cut_one_is_noticed() {
        let mut out = Vec::new();
        for value in [0, 127, 128, u64::MAX] {
            put(&mut out, value);
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            put_signed(&mut out, value);
        }
        put_bytes(&mut out, b"text");
        let mut cursor = Cursor(&out);
        for value in [0, 127, 128, u64::MAX] {
            assert_eq!(cursor.number(), Some(value));
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(cursor.signed(), Some(value));
        }
        assert_eq!(cursor.bytes(), Some(&b"text"[..]));
        assert_eq!((cursor.number(), cursor.bytes()), (None, None));
        assert_eq!(Cursor(&[0xff; 20]).number(), None);
        assert_eq!(Cursor(&[9, 1]).bytes(), None);
    }
}
