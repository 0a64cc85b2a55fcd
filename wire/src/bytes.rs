//! Bytes within a message, written and read at once: serde takes a `Vec<u8>` for a list of numbers, one after the other,
//! which costs a proxy more than encrypting them.
//!
//! Pure. Rule: postcard writes both alike, the length and the bytes, so that either end may know this or not.
//! For `#[serde(with = "crate::bytes")]`; [`Borrowed`] and [`Owned`] where the whole message is bytes.
//! Not here: how many may come (the reader of a frame limits that).

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// Write them.
///
/// # Errors
/// Those of `to`.
pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

/// Read them.
///
/// # Errors
/// Those of `from`, and if what is there are no bytes.
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

/// A message that is nothing but bytes, to be written.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(pub &'a [u8]);

impl Serialize for Borrowed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, to)
    }
}

/// The same, as read.
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
