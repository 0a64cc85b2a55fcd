//! Encoded answers: documents that the answering daemon writes once and other daemons forward as bytes.
//!
//! ```text
//! client ─── call ────▶ proxy ── call, form ─▶ representative ── call, form ─▶ host: encodes
//!        ◀─ document ─       ◀─ document ──                 ◀─ document ──
//! ```
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Rule: only the answer to a whole call is forwarded as bytes, and never merged into a document with other
//! answers: the calls of a multicall return values, which are encoded together.
//! Not here: the syntax of a document (`json`, `xml_writer`), encoding without an intermediate value
//! (`codec::Items`).

use crate::codec::value::Value;
use crate::codec::{self, json};
use crate::dispatch::method::Answer;
use crate::fault::Fault;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use wire::query::Form;

/// Answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// A value.
    Value(Value),
    /// A document in the requested form, as the answering daemon encoded it.
    Written(Bytes),
}

/// Future of an answer that may be a document.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answered, Fault>> + Send>>;

/// Future of an answer that is a value.
#[must_use]
pub fn valued(answer: Answer) -> Answering {
    Box::pin(async move { answer.await.map(Answered::Value) })
}

impl Answered {
    /// The value, if the call requested one.
    ///
    /// # Errors
    /// If it is a document.
    pub fn value(self) -> Result<Value, Fault> {
        match self {
            Answered::Value(value) => Ok(value),
            Answered::Written(_) => Err(Fault::internal("expected a value, found a document")),
        }
    }
}

impl Answered {
    /// The answer as JSON.
    pub(crate) fn into_json(self) -> Bytes {
        match self {
            Answered::Value(value) => json::write_answer(&value).into(),
            Answered::Written(document) => document,
        }
    }
}

/// Encode the document of an answer.
#[must_use]
pub fn document(form: Form, value: &Value) -> String {
    codec::document_of_value(form, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::query::{Integers, Syntax};

    #[test]
    fn integers_are_as_the_form_says_within_what_its_readers_hold() {
        let check = |syntax, integers, expected: &str| {
            let document = document(Form { syntax, integers }, &Value::array([1_i64 << 40, 1 << 60]));
            assert!(document.contains(expected), "{document}");
        };
        check(Syntax::Json, Integers::Number, "[1099511627776,1152921504606846976]");
        check(Syntax::Json, Integers::Text, "[1099511627776,\"1152921504606846976\"]");
        check(Syntax::Xml, Integers::Text, "<string>1099511627776</string>");
        check(Syntax::Xml, Integers::Double, "<double>1099511627776</double>");
    }

    #[test]
    fn a_document_is_taken_for_no_value() {
        assert_eq!(Answered::Value(Value::Nil).value(), Ok(Value::Nil));
        let written = Answered::Written(Bytes::from_static(b"null\n"));
        assert_eq!(written.value().unwrap_err().code, wire::fault::INTERNAL);
    }
}
