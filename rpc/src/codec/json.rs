//! JSON codec: parses the body of a request into a value, writes a value or a fault as an answer.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! The parser limits depth and number of parts while reading, and refuses duplicate members. The writer keeps
//! integers exact, writes bytes as base64 text, and numbers that are not finite as the strings `NaN`,
//! `Infinity` and `-Infinity`.
//! Not here: which body belongs to which method (`http::router`).

use super::xmlrpc;
use crate::codec;
use crate::codec::plain::plain_len;
use crate::codec::value::{JSON_INTEGERS, Name, Value};
use crate::codec::xml_writer::not_finite;
use crate::fault::Fault;
use crate::limits::Limits;
use data_encoding::BASE64;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::cell::{Cell, RefCell};
use std::fmt::{Display, Write};
use wire::fault;
use wire::query::Integers;

/// Parse the body of a request: empty (no parameters) or one object of named ones.
///
/// # Errors
/// A fault that says what was expected and found, and where; it does not repeat the request.
pub fn parse_params(body: &[u8], limits: &Limits) -> Result<Vec<Value>, Fault> {
    if body.len() > limits.body_bytes {
        return Err(xmlrpc::too_large(limits.body_bytes));
    }
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    if let Err(error) = std::str::from_utf8(body) {
        let at = error.valid_up_to();
        return Err(Fault::new(
            fault::CHARACTER,
            format!("expected UTF-8, found something else at byte {at}"),
        ));
    }
    let reading = Reading { limits, nodes: Cell::new(0), refusal: RefCell::new(None) };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = Part { reading: &reading, depth: 0 }.deserialize(&mut deserializer);
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    match read {
        Ok(value @ Value::Struct(_)) => Ok(vec![value]),
        Ok(value) => {
            let found = value.kind();
            Err(Fault::invalid_request(format!("expected a JSON object of named parameters, found {found}")))
        }
        Err(error) => Err(reading.refusal.take().unwrap_or_else(|| {
            let (line, column) = (error.line(), error.column());
            Fault::parse(format!(
                "expected a JSON object, found malformed JSON at line {line} column {column}"
            ))
        })),
    }
}

/// Counters over one body.
struct Reading<'a> {
    limits: &'a Limits,
    nodes: Cell<usize>,
    /// Fault that replaces serde's error, unless that is a syntax error.
    refusal: RefCell<Option<Fault>>,
}

impl Reading<'_> {
    fn refuse<E: Error>(&self, fault: Fault) -> E {
        self.refusal.replace(Some(fault));
        E::custom("refused")
    }
}

/// Parser of one value at some depth.
#[derive(Clone, Copy)]
struct Part<'a> {
    reading: &'a Reading<'a>,
    depth: usize,
}

impl Part<'_> {
    /// Parser of the values inside this one.
    fn inside<E: Error>(self) -> Result<Self, E> {
        let at_most = self.reading.limits.depth;
        if self.depth >= at_most {
            let message = format!("expected arrays and objects at most {at_most} deep, found more");
            return Err(self.reading.refuse(Fault::new(fault::TOO_COMPLEX, message)));
        }
        Ok(Part { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let nodes = self.reading.nodes.get() + 1;
        self.reading.nodes.set(nodes);
        let at_most = self.reading.limits.nodes;
        if nodes > at_most {
            let message = format!("expected at most {at_most} values, found more; send several requests");
            return Err(self.reading.refuse(Fault::new(fault::TOO_COMPLEX, message)));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Double(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(inside)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members: Vec<(Name, Value)> = Vec::new();
        while let Some(name) = items.next_key::<String>()? {
            members.push((Name::Owned(name), items.next_value_seed(inside)?));
        }
        if let Some(name) = xmlrpc::duplicate(&members) {
            let shown = Value::from(name).shown();
            return Err(self
                .reading
                .refuse(Fault::invalid_request(format!("expected each member once, found {shown} twice"))));
        }
        Ok(Value::Struct(members))
    }
}

/// Write the answer to a call that failed.
#[must_use]
pub fn write_fault(fault: &Fault) -> String {
    let error = Value::object([("code", Value::from(fault.code)), ("message", Value::from(&*fault.message))]);
    write_answer(&Value::object([("error", error)]))
}

/// Write a value on one line, with a newline.
#[must_use]
pub fn write_answer(value: &Value) -> String {
    let mut out = String::with_capacity(256);
    write_value(&mut out, value);
    out.push('\n');
    out
}

/// Append a value.
pub fn write_value(out: &mut String, value: &Value) {
    value.write_to(&mut Sink::new(out, Integers::Number));
}

/// Characters that must be escaped, besides control characters.
const SPECIAL: [u8; 2] = [b'"', b'\\'];

/// Sink that appends JSON to a string.
#[derive(Debug)]
pub struct Sink<'a> {
    out: &'a mut String,
    integers: Integers,
}

impl<'a> Sink<'a> {
    /// Append to `out`; integers that not every client can represent are written as `integers` says.
    pub fn new(out: &'a mut String, integers: Integers) -> Sink<'a> {
        Sink { out, integers }
    }

    fn quoted(&mut self, digits: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "\"{digits}\"");
    }
}

impl codec::Sink for Sink<'_> {
    fn nil(&mut self) {
        self.out.push_str("null");
    }

    fn boolean(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    fn int(&mut self, value: i64) {
        match self.integers {
            Integers::Text if !JSON_INTEGERS.contains(&value) => self.quoted(value),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            Integers::Double if !JSON_INTEGERS.contains(&value) => self.double(value as f64),
            Integers::Number | Integers::Text | Integers::Double => {
                self.out.push_str(itoa::Buffer::new().format(value))
            }
        }
    }

    fn uint(&mut self, value: u64) {
        match (i64::try_from(value), self.integers) {
            (Ok(value), _) => self.int(value),
            (Err(_), Integers::Number) => self.out.push_str(itoa::Buffer::new().format(value)),
            (Err(_), Integers::Text) => self.quoted(value),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            (Err(_), Integers::Double) => self.double(value as f64),
        }
    }

    fn double(&mut self, value: f64) {
        if value.is_finite() {
            // Whole numbers keep `.0`, so that a client always sees the same kind of number.
            codec::write_double(self.out, value, ".0");
        } else {
            self.text(not_finite(value));
        }
    }

    fn text(&mut self, value: &str) {
        write_text(self.out, value);
    }

    fn displayed(&mut self, value: &impl Display) {
        let before = self.out.len();
        self.quoted(value);
        let text = &self.out[before + 1..self.out.len() - 1];
        if plain_len(text.as_bytes(), SPECIAL) < text.len() {
            let text = text.to_owned();
            self.out.truncate(before);
            self.text(&text);
        }
    }

    fn bytes(&mut self, value: &[u8]) {
        self.out.push('"');
        BASE64.encode_append(value, self.out);
        self.out.push('"');
    }

    fn begin_array(&mut self) {
        self.out.push('[');
    }

    fn begin_item(&mut self, nth: usize) {
        if nth > 0 {
            self.out.push(',');
        }
    }

    fn end_array(&mut self) {
        self.out.push(']');
    }

    fn begin_structure(&mut self) {
        self.out.push('{');
    }

    fn begin_member(&mut self, nth: usize, name: &str) {
        if nth > 0 {
            self.out.push(',');
        }
        write_text(self.out, name);
        self.out.push(':');
    }

    #[inline(always)]
    fn begin_field(&mut self, nth: usize, name: &'static str) {
        self.out.push_str(if nth > 0 { ",\"" } else { "\"" });
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    fn end_member(&mut self) {}

    fn end_structure(&mut self) {
        self.out.push('}');
    }
}

/// Append a text.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    loop {
        let at = copied + plain_len(&bytes[copied..], SPECIAL);
        out.push_str(&text[copied..at]);
        let Some(byte) = bytes.get(at) else { break };
        copied = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => _ = write!(out, "\\u{byte:04x}"),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<Value>, Fault> {
        parse_params(text.as_bytes(), &Limits::default())
    }

    #[test]
    fn objects_become_structures() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse(" \n"), Ok(vec![]));
        let text = r#"{"b":1,"a":[null,true,1.5,"x",18446744073709551615,-9223372036854775808]}"#;
        let expected = Value::object([
            ("b", Value::Int(1)),
            (
                "a",
                Value::Array(vec![
                    Value::Nil,
                    true.into(),
                    1.5.into(),
                    "x".into(),
                    Value::UInt(u64::MAX),
                    Value::Int(i64::MIN),
                ]),
            ),
        ]);
        assert_eq!(parse(text), Ok(vec![expected.clone()]));
        assert_eq!(write_answer(&expected), format!("{text}\n"));
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        let read = parse(r#"{"a":2231111111111111111111111111111111111111111113720}"#).unwrap();
        let expected = Value::Double("2231111111111111111111111111111111111111111113720".parse().unwrap());
        assert_eq!(read[0].get("a"), Some(&expected));
    }

    #[test]
    fn other_bodies_are_refused_with_their_code() {
        let check = |text: &str, code: i32| match parse(text) {
            Err(fault) => assert_eq!(fault.code, code, "{text}: {fault}"),
            Ok(values) => panic!("{text} was read as {values:?}"),
        };
        check("[1]", fault::INVALID_REQUEST);
        check("1", fault::INVALID_REQUEST);
        check("{", fault::PARSE);
        check("{} {}", fault::PARSE);
        check("{\"a\":1e999}", fault::PARSE);
        check("{\"a\":NaN}", fault::PARSE);
        check("{\"a\":\"\0\"}", fault::PARSE);
        check("{\"a\":\"\\ud800\"}", fault::PARSE);
        check("{\"a\":1,\"\\u0061\":2}", fault::INVALID_REQUEST);
        check(&format!("{{\"a\":{}", "[".repeat(100_000)), fault::TOO_COMPLEX);
        check(&format!("{{\"a\":[{}0]}}", "0,".repeat(10_000)), fault::TOO_COMPLEX);
        check(&"x".repeat((1 << 20) + 1), fault::TOO_LARGE);
        let bad = parse_params(b"{\"a\":\"\xFF\"}", &Limits::default());
        assert_eq!(bad.unwrap_err().code, fault::CHARACTER);
        let deepest = format!("{{\"a\":{}{}}}", "[".repeat(31), "]".repeat(31));
        assert!(parse(&deepest).is_ok());
    }

    #[test]
    fn what_has_a_meaning_is_escaped_wherever_it_stands() {
        for character in ('\0'..='\u{ff}').chain(['\u{2028}', '\u{1f600}']) {
            for at in 0..20 {
                let text = format!("{}{character}{}", "a".repeat(at), "\u{fc}".repeat(20 - at));
                let mut written = String::new();
                write_text(&mut written, &text);
                assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text, "{written}");
                assert!(written.bytes().all(|byte| byte >= b' '), "{written:?}");
            }
        }
    }

    #[test]
    fn each_value_has_one_form() {
        let check = |value: Value, expected: &str| assert_eq!(write_answer(&value), format!("{expected}\n"));
        check(1.0.into(), "1.0");
        check(1_700_000_000.123_456.into(), "1700000000.123456");
        check(f64::INFINITY.into(), "\"Infinity\"");
        check("a\"\\\n\u{1}\u{fc}".into(), "\"a\\\"\\\\\\n\\u0001\u{fc}\"");
        check(Value::Bytes(vec![1, 2, 3]), "\"AQID\"");
        assert_eq!(write_fault(&Fault::new(-1, "no")), "{\"error\":{\"code\":-1,\"message\":\"no\"}}\n");
    }
}
