//! Regular expression of a query, for the texts of events.
//!
//! Pure. Whatever a caller sends, compiling it takes a fixed budget of memory, and a search time in proportion to
//! the length of the text. Not here: patterns of names, with `*` ([`crate::name_match`]).

mod required;

use regex::Error;
use regex::bytes::{Regex, RegexBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Most characters of an expression.
const LEN_MAX: usize = 1_000;

/// Limit on a compiled expression, and on what a search keeps of its automaton, in bytes.
const COMPILED_MAX_BYTES: usize = 1 << 20;

/// A regular expression in the syntax of the crate `regex`. Expressions are equal if their texts are.
#[derive(Clone, Debug)]
pub struct TextRegex {
    regex: Regex,
    /// Finds the part that every match has, without digits; `None` if there is none.
    required: Option<Regex>,
}

/// A text is no regular expression of a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextRegexError {
    /// It cannot be parsed.
    #[error("expected a regular expression, found {found:?}: {reason}")]
    Syntax {
        /// The text.
        found: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is too long.
    #[error("expected a regular expression of at most {LEN_MAX} characters, found {0}")]
    Long(usize),
    /// It is too large when it is compiled.
    #[error(
        "expected a regular expression that takes at most 1 MiB when it is compiled; large counts, as in {{1000}}, \
         make it large"
    )]
    Large,
}

impl TextRegex {
    /// Whether a part of the text matches. The text is UTF-8; that it is need not be checked.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// Whether a text may match that has these bytes with a number in place of each mark, for any numbers of
    /// digits from 0 to 9 and marks of any form.
    #[must_use]
    pub fn may_match_around_numbers(&self, marked: &[u8]) -> bool {
        self.required.as_ref().is_none_or(|required| required.is_match(marked))
    }
}

impl FromStr for TextRegex {
    type Err = TextRegexError;

    fn from_str(text: &str) -> Result<TextRegex, TextRegexError> {
        let len = text.chars().count();
        if len > LEN_MAX {
            return Err(TextRegexError::Long(len));
        }
        let mut builder = RegexBuilder::new(text);
        match builder.size_limit(COMPILED_MAX_BYTES).dfa_size_limit(COMPILED_MAX_BYTES).build() {
            Ok(regex) => Ok(TextRegex { regex, required: required::finder(text) }),
            Err(Error::CompiledTooBig(_)) => Err(TextRegexError::Large),
            Err(error) => {
                // The crate shows the place on lines of their own before the reason.
                let message = error.to_string();
                let reason = message.lines().last().unwrap_or_default();
                let reason = reason.trim_start_matches("error: ").to_owned();
                Err(TextRegexError::Syntax { found: text.to_owned(), reason })
            }
        }
    }
}

impl fmt::Display for TextRegex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.regex.as_str())
    }
}

impl PartialEq for TextRegex {
    fn eq(&self, other: &TextRegex) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for TextRegex {}

impl Serialize for TextRegex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TextRegex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextRegex, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for TextRegex {
    fn schema_name() -> Cow<'static, str> {
        "TextRegex".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": LEN_MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn numbers_in_other_forms_hide_no_match(
            parts in prop::collection::vec(prop::sample::select(&["a", "b", "1", "22", "[0-9]", ".*", "(a|1b)", "b+", "(2a)?", "\\d", "^", "$", "(?i)x", "|"][..]), 0..6),
            text in "[abxX12]{0,8}",
        ) {
            let regex: TextRegex = parts.concat().parse().unwrap();
            let marked = regex::Regex::new("[0-9]+").unwrap().replace_all(&text, "\u{1}").into_owned();
            prop_assert!(!regex.is_match(text.as_bytes()) || regex.may_match_around_numbers(marked.as_bytes()));
        }
    }

    #[test]
    fn a_part_of_a_text_matches_and_the_expression_comes_back() {
        let regex: TextRegex = "^wn0[1-3]\\.|(?i)segfault".parse().unwrap();
        assert!(regex.is_match(b"wn02.example") && regex.is_match(b"a SegFault"));
        assert!(!regex.is_match(b"x wn02.example"));
        let text = serde_json::to_string(&regex).unwrap();
        assert_eq!(serde_json::from_str::<TextRegex>(&text).unwrap(), regex);
    }

    #[test]
    fn what_is_no_expression_or_too_much_of_one_is_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<TextRegex>().unwrap_err().to_string();
        assert_eq!(refused("wn(0"), "expected a regular expression, found \"wn(0\": unclosed group");
        assert!(refused(&"a".repeat(LEN_MAX + 1)).contains("at most 1000 characters, found 1001"));
        assert!(refused("((\\w{1000}){1000}){1000}").contains("1 MiB"));
        let error = serde_json::from_str::<TextRegex>("\"*\"").unwrap_err().to_string();
        assert!(error.contains("found \"*\": repetition operator missing expression"), "{error}");
    }
}
