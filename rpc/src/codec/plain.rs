//! Length of the prefix of a text that needs no escapes, eight bytes at a time: most of an answer is text.
//!
//! Pure.

/// Number of leading bytes that are neither control characters nor in `special`.
#[inline]
pub(crate) fn plain_len<const N: usize>(bytes: &[u8], special: [u8; N]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let is_plain = |word: &&[u8; 8]| is_plain(u64::from_le_bytes(**word), special);
    let plain = words.iter().take_while(is_plain).count() * 8;
    let rest = &bytes[plain..];
    let found = rest.iter().position(|byte| *byte < b' ' || special.contains(byte));
    plain + found.unwrap_or(rest.len())
}

/// Whether none of eight bytes is a control character or in `special`.
#[inline]
fn is_plain<const N: usize>(word: u64, special: [u8; N]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // For bytes less than `most` (at most 128), the high bit of at least the first one is set; it is set in
    // none if there is no such byte.
    let less = |word: u64, most: u8| word.wrapping_sub(EACH * u64::from(most)) & !word & (EACH << 7);
    let found = special.iter().fold(0, |found, byte| found | less(word ^ (EACH * u64::from(*byte)), 1));
    less(word, b' ') | found == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_look_at_each_byte_finds(bytes in prop::collection::vec(prop_oneof![b'a'..=b'z', any::<u8>()], 0..40)) {
            let special = [b'&', b'"', 0xEF];
            let expected = bytes.iter().position(|byte| *byte < b' ' || special.contains(byte)).unwrap_or(bytes.len());
            prop_assert_eq!(plain_len(&bytes, special), expected);
        }
    }
}
