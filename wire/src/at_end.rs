//! Optional last field of a value, which an older version neither writes nor reads.
//!
//! Pure. Rule: nothing follows the field, in the value or around it, so an older reader ignores it and a
//! newer one detects that it is missing.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Encoded without a flag: if the value ends before it, it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtEnd<T>(pub Option<T>);

impl<T: Serialize> Serialize for AtEnd<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(value) => value.serialize(serializer),
            None => ().serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AtEnd<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AtEnd<T>, D::Error> {
        // Nothing follows it, so an error means that it is missing.
        Ok(AtEnd(T::deserialize(deserializer).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_version_reads_the_value_without_it_and_its_own_is_read() {
        let with = postcard::to_stdvec(&(7_u64, AtEnd(Some((1_u16, "two"))))).expect("short");
        assert_eq!(postcard::from_bytes(&with), Ok(7_u64));
        assert_eq!(postcard::from_bytes(&with), Ok((7_u64, AtEnd(Some((1_u16, "two"))))));
        let without = postcard::to_stdvec(&7_u64).expect("short");
        assert_eq!(postcard::from_bytes(&without), Ok((7_u64, AtEnd::<(u16, &str)>(None))));
        assert_eq!(postcard::to_stdvec(&(7_u64, AtEnd::<u16>(None))), Ok(without));
    }

    #[test]
    fn a_later_version_adds_to_what_an_earlier_one_added() {
        let earlier = (7_u64, AtEnd(Some(true)));
        let later = (7_u64, AtEnd(Some((true, AtEnd(Some(false))))));
        let bytes = postcard::to_stdvec(&later).expect("short");
        assert_eq!(postcard::from_bytes(&bytes), Ok(earlier));
        let bytes = postcard::to_stdvec(&earlier).expect("short");
        assert_eq!(postcard::from_bytes(&bytes), Ok((7_u64, AtEnd(Some((true, AtEnd::<bool>(None)))))));
    }
}
