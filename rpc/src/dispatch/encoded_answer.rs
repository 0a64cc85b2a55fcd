//! Answers as documents: written once, by the daemon that knows them, and handed on as bytes.
//!
//! ```text
//! client ─ question ─▶ door ─ question, form ─▶ representative ─ question, form ─▶ host: writes
//!        ◀─ document ─      ◀─ document ─────                  ◀─ document ──
//! ```
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Rule: only the answer to a whole call is handed on so. What another daemon wrote is never put into a document beside
//! what others wrote: the calls of a multicall are answered by values, written where they meet.
//! Not here: what a document looks like (`json`, `xml_writer`), writing one without values before it (`codec::Items`).

use crate::codec::value::Value;
use crate::codec::{self, json};
use crate::dispatch::method::Answer;
use crate::fault::Fault;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use wire::query::Form;

/// What a call was answered with.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// A value.
    Value(Value),
    /// A document in the requested form, as the daemon that knows the answer wrote it.
    Written(Bytes),
}

/// The future of an answer that may be a document.
pub type Answering = Pin<Box<dyn Future<Output = Result<Answered, Fault>> + Send>>;

/// The future of an answer that is a value.
#[must_use]
pub fn valued(answer: Answer) -> Answering {
    Box::pin(async move { answer.await.map(Answered::Value) })
}

impl Answered {
    /// The value, of a call that asked for one.
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
    /// As JSON.
    pub(crate) fn into_json(self) -> Bytes {
        match self {
            Answered::Value(value) => json::write_answer(&value).into(),
            Answered::Written(document) => document,
        }
    }
}

/// The document of an answer.
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
