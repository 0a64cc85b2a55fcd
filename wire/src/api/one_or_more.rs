//! A parameter that is a single value or a list.
//!
//! Pure. Rule: a single value is written as itself, because the previous version does not accept a list here.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Single value, or a list of alternatives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneOrMore<T>(pub Vec<T>);

impl<T> OneOrMore<T> {
    /// Whether it contains no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for OneOrMore<T> {
    fn default() -> OneOrMore<T> {
        OneOrMore(Vec::new())
    }
}

impl<T: Serialize> Serialize for OneOrMore<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMore<T>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<T> {
            More(Vec<T>),
            One(T),
        }
        Either::deserialize(deserializer).map(|either| match either {
            Either::More(several) => OneOrMore(several),
            Either::One(one) => OneOrMore(vec![one]),
        })
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMore<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMore{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // The list first: the description of parameters by this schema is then a list that also accepts one
        // value.
        let (list, one) = (generator.subschema_for::<Vec<T>>(), generator.subschema_for::<T>());
        json_schema!({ "anyOf": [list, one] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_written_as_itself_and_several_as_a_list() {
        for (text, values) in [("7", vec![7]), ("[7,8]", vec![7, 8]), ("[]", vec![])] {
            assert_eq!(
                serde_json::from_str::<OneOrMore<u8>>(text).expect("it is read"),
                OneOrMore(values.clone())
            );
            assert_eq!(serde_json::to_string(&OneOrMore(values)).expect("it is written"), text);
        }
        assert_eq!(serde_json::from_str::<OneOrMore<u8>>("[7]").expect("it is read"), OneOrMore(vec![7]));
    }
}
