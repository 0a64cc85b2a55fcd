//! Encoding of answers: one serializer sends a typed value to a [`Sink`], which is JSON, XML-RPC or a tree.
//!
//! ```text
//! T: Serialize ─▶ writer ─▶ Sink: json::Sink | xml_writer::Sink | tree::Tree
//! ```
//! Pure: no runtime, no file, no socket, no clock.
//! Not here: reading requests (`json`, `xmlrpc`).

pub mod json;
pub mod moment;
pub mod value;
pub mod value_codec;
pub mod xml_writer;
pub mod xmlrpc;

pub(crate) mod plain;
pub(crate) mod query;
pub(crate) mod xml_tokens;

mod decimal;
mod items;
mod key;
mod tree;
mod writer;
mod xml_scalars;

pub(crate) use decimal::write_double;
pub use items::Items;
pub use tree::{NotOfType, Source, Tree};
pub use writer::{Error, Writer};

use crate::codec::value::Value;
use serde::Serialize;
use std::fmt::Display;
use wire::api::Renamed;
use wire::query::{Form, Syntax};

/// Receives the parts of a value in order.
pub trait Sink {
    /// The value is nil.
    fn nil(&mut self);
    /// The value is a boolean.
    fn boolean(&mut self, value: bool);
    /// The value is a whole number.
    fn int(&mut self, value: i64);
    /// The value is a whole number that may exceed `i64::MAX`.
    fn uint(&mut self, value: u64);
    /// The value is a number with a fraction; it may be infinite or NaN.
    fn double(&mut self, value: f64);
    /// The value is a text.
    fn text(&mut self, value: &str);
    /// The value is a text in the form of its `Display`.
    fn displayed(&mut self, value: &impl Display) {
        self.text(&value.to_string());
    }
    /// The value is a byte string.
    fn bytes(&mut self, value: &[u8]);
    /// An array starts; each of its items follows after [`Sink::begin_item`].
    fn begin_array(&mut self);
    /// The item number `nth` (from 0) follows.
    fn begin_item(&mut self, nth: usize);
    /// The array is complete.
    fn end_array(&mut self);
    /// A structure starts; each of its members follows between [`Sink::begin_member`] and
    /// [`Sink::end_member`].
    fn begin_structure(&mut self);
    /// The value of this member, number `nth` (from 0), follows.
    fn begin_member(&mut self, nth: usize, name: &str);
    /// As [`Sink::begin_member`], for a field of a Rust type, whose name needs no escapes.
    fn begin_field(&mut self, nth: usize, name: &'static str);
    /// The value of the member is complete.
    fn end_member(&mut self);
    /// The structure is complete.
    fn end_structure(&mut self);
}

/// Encode an answer as a document. Fields that are in `renamed` are also written under their previous name.
///
/// # Errors
/// If the type of `answer` cannot be written: its map has keys that are not text.
pub fn document<T: Serialize + ?Sized>(
    form: Form,
    answer: &T,
    renamed: &'static [Renamed],
) -> Result<String, Error> {
    let mut written = Ok(());
    let document = framed(form.syntax, |out| {
        written = match form.syntax {
            Syntax::Json => answer.serialize(Writer::new(&mut json::Sink::new(out, form.integers), renamed)),
            Syntax::Xml => {
                answer.serialize(Writer::new(&mut xml_writer::Sink::new(out, form.integers), renamed))
            }
        };
    });
    written.map(|()| document)
}

/// Encode a tree as the document of an answer.
#[must_use]
pub fn document_of_value(form: Form, value: &Value) -> String {
    framed(form.syntax, |out| match form.syntax {
        Syntax::Json => value.write_to(&mut json::Sink::new(out, form.integers)),
        Syntax::Xml => value.write_to(&mut xml_writer::Sink::new(out, form.integers)),
    })
}

/// Write the text around the value of an answer.
fn framed(syntax: Syntax, fill: impl FnOnce(&mut String)) -> String {
    let (start, end) = match syntax {
        Syntax::Json => ("", "\n"),
        Syntax::Xml => (xml_writer::ANSWER_BEGINS, xml_writer::ANSWER_ENDS),
    };
    let mut out = String::with_capacity(256);
    out.push_str(start);
    fill(&mut out);
    out.push_str(end);
    out
}

/// Encode an answer as a tree. Fields that are in `renamed` are also written under their previous name.
///
/// # Errors
/// As [`document`].
pub fn value<T: Serialize + ?Sized>(answer: &T, renamed: &'static [Renamed]) -> Result<Value, Error> {
    let mut tree = Tree::default();
    answer.serialize(Writer::new(&mut tree, renamed))?;
    Ok(tree.into_value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeMap;
    use wire::api::{Named, UnixTime};
    use wire::query::Integers;
    use wire::time::Time;

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        JobEnd,
    }

    #[derive(Serialize)]
    struct Inner {
        age_secs: f64,
    }

    #[derive(Serialize)]
    struct Answer {
        kind: Kind,
        at: UnixTime,
        count: u64,
        ratio: f64,
        none: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        inner: Vec<Inner>,
        labels: BTreeMap<String, String>,
        pair: (bool, String),
    }

    fn answer() -> Answer {
        Answer {
            kind: Kind::JobEnd,
            at: Time::from_micros(1_795_178_489_250_000).into(),
            count: u64::MAX,
            ratio: f64::NAN,
            none: None,
            left_out: None,
            inner: vec![Inner { age_secs: 1.0 }],
            labels: BTreeMap::from([("cpu".to_owned(), "a\"<\0".to_owned())]),
            pair: (true, "x".to_owned()),
        }
    }

    const RENAMED: &[Renamed] = &[("age_secs", "age")];

    fn written(syntax: Syntax, integers: Integers) -> String {
        document(Form { syntax, integers }, &answer(), RENAMED).expect("the type can be written")
    }

    #[test]
    fn a_typed_answer_is_written_as_json() {
        let text = written(Syntax::Json, Integers::Text);
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let expected = json!({
            "kind": "job_end", "at": 1_795_178_489.25, "count": "18446744073709551615", "ratio": "NaN", "none": null,
            "inner": [{"age_secs": 1.0, "age": 1.0}], "labels": {"cpu": "a\"<\u{0}"}, "pair": [true, "x"],
        });
        assert_eq!(read, expected);
        assert!(written(Syntax::Json, Integers::Number).contains("\"count\":18446744073709551615,"));
        assert!(written(Syntax::Json, Integers::Double).contains("\"count\":1.8446744073709552e+19,"));
    }

    #[test]
    fn a_typed_answer_is_written_as_xml() {
        let text = written(Syntax::Xml, Integers::Number);
        for part in [
            "<member><name>kind</name><value><string>job_end</string></value></member>",
            "<member><name>at</name><value><double>1795178489.25</double></value></member>",
            "<member><name>count</name><value><string>18446744073709551615</string></value></member>",
            "<member><name>none</name><value><nil/></value></member>",
            "<array><data><value><struct><member><name>age_secs</name><value><double>1</double></value></member>\
             <member><name>age</name><value><double>1</double></value></member></struct></value></data></array>",
            "<member><name>cpu</name><value><base64>YSI8AA==</base64></value></member>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_tree_is_written_as_the_type_it_was_made_of() {
        let tree = value(&answer(), RENAMED).expect("the type can be written");
        for syntax in [Syntax::Json, Syntax::Xml] {
            for integers in [Integers::Number, Integers::Text, Integers::Double] {
                let form = Form { syntax, integers };
                assert_eq!(document_of_value(form, &tree), written(syntax, integers));
            }
        }
    }

    #[test]
    fn a_map_needs_names() {
        let keyed = BTreeMap::from([((1, 2), 3)]);
        assert!(value(&keyed, &[]).is_err());
        let counted = BTreeMap::from([(17_u16, true)]);
        assert_eq!(value(&counted, &[]), Ok(Value::object([("17", true)])));
    }

    #[derive(Debug, Serialize)]
    struct Row {
        time: UnixTime,
        texts: Vec<String>,
        #[serde(with = "wire::bytes")]
        bytes: Vec<u8>,
        named: Named<String>,
        whole: u64,
        #[serde(serialize_with = "shown")]
        shown: String,
    }

    fn shown<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(text)
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let texts = || prop::collection::vec(prop_oneof![any::<String>(), "[ -~]{0,40}"], 0..4);
        let bytes = prop::collection::vec(any::<u8>(), 0..9);
        let row = (texts(), bytes, any::<i64>(), any::<u64>(), texts(), "[ -~\\PC\n\u{0}\u{ffff}]{0,20}");
        let row = row.prop_map(|(texts, bytes, time, whole, names, shown)| Row {
            shown,
            time: Time::from_micros(time).into(),
            texts,
            bytes,
            named: Named(names.into_iter().map(|name| (name.as_str().into(), name)).collect()),
            whole,
        });
        prop::collection::vec(row, 0..4)
    }

    #[derive(Serialize)]
    struct Rest<'a> {
        cursor: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        more: Option<u64>,
    }

    #[derive(Serialize)]
    struct Listed<'a> {
        rows: &'a [Row],
        #[serde(flatten)]
        rest: Rest<'a>,
    }

    proptest! {
        #[test]
        fn items_written_one_by_one_are_what_their_answer_is(rows in rows(), more in any::<Option<u64>>()) {
            for syntax in [Syntax::Json, Syntax::Xml] {
                for integers in [Integers::Number, Integers::Text, Integers::Double] {
                    let form = Form { syntax, integers };
                    let (mut first, mut others) = (Items::new(form, "rows"), Items::new(form, "rows"));
                    for (nth, row) in rows.iter().enumerate() {
                        if nth == 0 { &mut first } else { &mut others }.add(row).unwrap();
                    }
                    first.append(&others);
                    prop_assert_eq!(first.len(), rows.len());
                    let listed = Listed { rows: &rows, rest: Rest { cursor: "c<", more } };
                    let document = document(form, &listed, &[]).unwrap();
                    prop_assert_eq!(first.document(&Rest { cursor: "c<", more }).unwrap(), document);
                }
            }
        }

        #[test]
        fn what_has_a_type_is_written_as_its_tree(rows in rows()) {
            let tree = value(&rows, &[]).unwrap();
            for syntax in [Syntax::Json, Syntax::Xml] {
                for integers in [Integers::Number, Integers::Text, Integers::Double] {
                    let form = Form { syntax, integers };
                    prop_assert_eq!(document(form, &rows, &[]).unwrap(), document_of_value(form, &tree));
                }
            }
        }

        #[test]
        fn numbers_come_back_to_the_last_bit(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
            let json = document(Form { syntax: Syntax::Json, integers: Integers::Number }, &number, &[]).unwrap();
            prop_assert_eq!(serde_json::from_str::<f64>(&json).unwrap().to_bits(), number.to_bits());
            let xml = document(Form { syntax: Syntax::Xml, integers: Integers::Number }, &number, &[]).unwrap();
            let digits = xml.split("<double>").nth(1).and_then(|rest| rest.split("</double>").next()).unwrap();
            prop_assert!(!digits.contains(['e', 'E']), "{}", digits);
            prop_assert_eq!(digits.parse::<f64>().unwrap().to_bits(), number.to_bits());
        }
    }
}
