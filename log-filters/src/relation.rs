//! Operations between two values: `${end|sub:$start}`, where the argument is another reference.
//!
//! Pure. Rule: the operation equals that of the same name with the other value as its argument, so its limits
//! are the same. Not here: the values of references (`expression`).

use crate::operation::Operation;
use crate::span;
use crate::value::Value;

/// An operation whose argument comes from the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Drop,
    Add,
    Sub,
}

impl Relation {
    /// Parse a text such as `sub:$start` into the relation and the reference name; `None` for other
    /// operations.
    pub(crate) fn parse(text: &str) -> Option<(Relation, &str)> {
        let (name, argument) = text.split_once(':')?;
        let reference = argument.strip_prefix('$').filter(|reference| !reference.is_empty())?;
        let relation = match name {
            "drop" => Relation::Drop,
            "add" => Relation::Add,
            "sub" => Relation::Sub,
            _ => return None,
        };
        Some((relation, reference))
    }

    /// Apply the relation to `value` and `other`. A duration counts in seconds.
    pub(crate) fn apply<'a>(self, value: Value<'a>, other: &Value<'_>) -> Value<'a> {
        let other = match other {
            Value::Nothing => return if self == Relation::Drop { value } else { Value::Nothing },
            Value::Text(text) => text.to_vec(),
            Value::List(list) => list.join(&b','),
        };
        let operation = match self {
            Relation::Drop => Some(Operation::Drop(other)),
            Relation::Add => span::seconds(&other).map(Operation::Add),
            Relation::Sub => span::seconds(&other).map(Operation::Sub),
        };
        operation.map_or(Value::Nothing, |operation| operation.apply(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn text(text: &str) -> Value<'_> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    fn check(operation: &str, value: &str, other: Value<'_>, expected: Option<&str>) {
        let (relation, _) = Relation::parse(operation).expect("a relation");
        assert_eq!(relation.apply(text(value), &other), expected.map_or(Value::Nothing, text), "{operation}");
    }

    #[test]
    fn two_values_are_compared() {
        check("sub:$limit", "86400", text("2"), Some("86398"));
        check("sub:$limit", "5", text("00:01:00"), Some("-55"));
        check("sub:$limit", "5", text("INFINITY"), None);
        check("sub:$limit", "5", Value::Nothing, None);
        check("add:$limit", "5", text("60.7"), Some("65"));
        check("add:$limit", "x", text("1"), None);
        check("drop:$other", "12", text("12"), None);
        check("drop:$other", "12", text("13"), Some("12"));
        check("drop:$other", "12", Value::Nothing, Some("12"));
        for plain in ["sub:5", "drop:$", "before:$x", "sub"] {
            assert_eq!(Relation::parse(plain), None, "{plain}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn the_sign_of_a_difference_is_the_order(one in 0i64..1 << 62, other in 0i64..1 << 62) {
            let (one_text, other_text) = (one.to_string(), other.to_string());
            let Value::Text(found) = Relation::Sub.apply(text(&one_text), &text(&other_text)) else {
                return Err(TestCaseError::fail("no number"));
            };
            let found: i64 = String::from_utf8_lossy(&found).parse().expect("a number");
            prop_assert_eq!(found.signum(), (one - other).signum());
        }

        #[test]
        fn no_text_is_too_odd(value in prop::collection::vec(any::<u8>(), 0..40), other in prop::collection::vec(any::<u8>(), 0..40)) {
            for relation in [Relation::Drop, Relation::Add, Relation::Sub] {
                let found = relation.apply(Value::Text(Cow::Borrowed(&value)), &Value::Text(Cow::Borrowed(&other)));
                if let (Relation::Drop, Value::Nothing) = (relation, &found) {
                    prop_assert_eq!(&value, &other);
                }
            }
        }
    }
}
