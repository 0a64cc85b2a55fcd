//! Byte strings in messages, encoded in one piece: serde treats a `Vec<u8>` as a list of numbers, one after
//! the other, which costs a proxy more than encrypting them.
//!
//! Pure. Rule: postcard encodes both forms alike, as the length and the bytes, so either end may use this
//! module or not.
//! Use `#[serde(with = "crate::bytes")]`; or [`Borrowed`] and [`Owned`] if the whole message is bytes.
//! Not here: the limit of their length (the reader of a frame has it).

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// Serialize the bytes.
///
/// # Errors
/// The errors of `to`.
pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// Deserialize the bytes.
///
/// # Errors
/// The errors of `from`, and if the input is not a byte string.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    struct Read;
    impl Visitor<'_> for Read {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }
        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }
    from.deserialize_bytes(Read)
}

/// A message of bytes only, for encoding.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(pub &'a [u8]);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, to)
    }
}

/// A decoded message of bytes only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned(pub Vec<u8>);

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Owned, D::Error> {
        deserialize(from).map(Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_as_a_list_of_numbers_would_be() {
        for len in [0, 1, 127, 128, 70_000] {
            let bytes: Vec<u8> = (0..len).map(|at: u32| at.to_le_bytes()[0]).collect();
            let written = postcard::to_stdvec(&Borrowed(&bytes)).expect("written");
            assert_eq!(written, postcard::to_stdvec(&bytes).expect("written"), "{len}");
            assert_eq!(postcard::from_bytes::<Owned>(&written), Ok(Owned(bytes)), "{len}");
            assert!(postcard::from_bytes::<Owned>(&written[..written.len() - 1]).is_err(), "{len}");
        }
    }
}
