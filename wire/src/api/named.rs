//! Named values in order: labels of a metric, attributes of an event.
//!
//! Pure. Rule: in an answer they are a structure. The schema declares that by
//! `#[schemars(with = "BTreeMap<String, …>")]`.

use compact_str::CompactString;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Values by their names, in order. Names are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<V>(pub Vec<(CompactString, V)>);

impl<V> Default for Named<V> {
    fn default() -> Named<V> {
        Named(Vec::new())
    }
}

impl<V: Serialize> Serialize for Named<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Named<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<V>, D::Error> {
        struct Reading<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Reading<V> {
            type Value = Named<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a structure with a value for each name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<V>, A::Error> {
                let mut values = Vec::new();
                while let Some(name) = map.next_key::<CompactString>()? {
                    let value = map.next_value();
                    let value = value.map_err(|error| A::Error::custom(format!("{name}: {error}")))?;
                    values.push((name, value));
                }
                Ok(Named(values))
            }
        }

        deserializer.deserialize_map(Reading(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_refused_by_its_name() {
        let read =
            |text| serde_json::from_str::<Named<CompactString>>(text).map_err(|error| error.to_string());
        assert_eq!(
            read(r#"{"b":"x","a":"y"}"#),
            Ok(Named(vec![("b".into(), "x".into()), ("a".into(), "y".into())]))
        );
        assert!(read(r#"{"cpu":7}"#).is_err_and(|error| error.starts_with("cpu: invalid type")));
    }
}
