//! XML-RPC writer of values and faults, directly into one string.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Whole numbers of 32 bits are `<int>`, of 64 bits `<i8>`, larger ones decimal `<string>`; text that XML 1.0
//! cannot represent is `<base64>` of its UTF-8; numbers that are not finite are the strings `NaN`, `Infinity`
//! and `-Infinity`.
//! Not here: parsing (`xmlrpc`).

use crate::codec;
use crate::codec::plain::plain_len;
use crate::codec::value::{Name, Value, XML_INTEGERS};
use crate::codec::xml_tokens::is_xml_char;
use crate::fault::Fault;
use data_encoding::BASE64;
use std::fmt::{Display, Write};
use wire::query::Integers;

/// Text before the value in the answer to a successful call.
pub(crate) const ANSWER_BEGINS: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?><methodResponse><params><param>";
/// Text after that value.
pub(crate) const ANSWER_ENDS: &str = "</param></params></methodResponse>";

/// Write the answer to a call that succeeded.
#[must_use]
pub fn write_answer(value: &Value) -> String {
    let mut out = String::with_capacity(256);
    out.push_str(ANSWER_BEGINS);
    write_value(&mut out, value);
    out.push_str(ANSWER_ENDS);
    out
}

/// Write the answer to a call that failed.
#[must_use]
pub fn write_fault(fault: &Fault) -> String {
    let mut out = String::with_capacity(384);
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?><methodResponse><fault>");
    write_value(&mut out, &fault_value(fault));
    out.push_str("</fault></methodResponse>");
    out
}

/// The structure of a fault in XML-RPC.
pub(crate) fn fault_value(fault: &Fault) -> Value {
    Value::Struct(vec![
        (Name::Borrowed("faultCode"), Value::from(fault.code)),
        (Name::Borrowed("faultString"), Value::from(&*fault.message)),
    ])
}

/// Append `<value>…</value>`.
pub fn write_value(out: &mut String, value: &Value) {
    value.write_to(&mut Sink::new(out, Integers::Number));
}

/// Characters that must be escaped, besides control characters; 0xEF is the first byte of the characters that
/// XML does not allow.
const SPECIAL: [u8; 4] = [b'&', b'<', b'>', 0xEF];

/// Tags around a value of each kind.
const BOOLEAN: (&str, &str) = ("<value><boolean>", "</boolean></value>");
const INT: (&str, &str) = ("<value><int>", "</int></value>");
const I8: (&str, &str) = ("<value><i8>", "</i8></value>");
const STRING: (&str, &str) = ("<value><string>", "</string></value>");

/// Sink that appends XML-RPC to a string.
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

    #[inline]
    fn scalar(&mut self, (before, after): (&str, &str), text: &str) {
        self.out.push_str(before);
        self.out.push_str(text);
        self.out.push_str(after);
    }

    #[inline]
    fn whole(&mut self, tags: (&str, &str), number: impl itoa::Integer) {
        self.scalar(tags, itoa::Buffer::new().format(number));
    }
}

impl codec::Sink for Sink<'_> {
    fn nil(&mut self) {
        self.out.push_str("<value><nil/></value>");
    }

    fn boolean(&mut self, value: bool) {
        self.whole(BOOLEAN, u8::from(value));
    }

    fn int(&mut self, value: i64) {
        match self.integers {
            _ if XML_INTEGERS.contains(&value) => self.whole(INT, value),
            Integers::Number => self.whole(I8, value),
            Integers::Text => self.whole(STRING, value),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            Integers::Double => self.double(value as f64),
        }
    }

    fn uint(&mut self, value: u64) {
        match (i64::try_from(value), self.integers) {
            (Ok(value), _) => self.int(value),
            // Beyond the range of `<i8>`: its digits as text.
            (Err(_), Integers::Number | Integers::Text) => self.whole(STRING, value),
            #[allow(clippy::cast_precision_loss)] // `double` was requested
            (Err(_), Integers::Double) => self.double(value as f64),
        }
    }

    fn double(&mut self, value: f64) {
        if !value.is_finite() {
            return self.scalar(STRING, not_finite(value));
        }
        self.out.push_str("<value><double>");
        let before = self.out.len();
        codec::write_double(self.out, value, "");
        // XML-RPC has no exponents, and Rust's own formatting writes none.
        if self.out[before..].contains('e') {
            self.out.truncate(before);
            // Writing to a string cannot fail.
            let _ = write!(self.out, "{value}");
        }
        self.out.push_str("</double></value>");
    }

    fn text(&mut self, value: &str) {
        let before = self.out.len();
        self.out.push_str(STRING.0);
        if escape(self.out, value) {
            return self.out.push_str(STRING.1);
        }
        self.out.truncate(before);
        self.bytes(value.as_bytes());
    }

    fn displayed(&mut self, value: &impl Display) {
        let before = self.out.len();
        self.out.push_str(STRING.0);
        let start = self.out.len();
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{value}");
        let text = &self.out[start..];
        if plain_len(text.as_bytes(), SPECIAL) < text.len() {
            let text = text.to_owned();
            self.out.truncate(before);
            return self.text(&text);
        }
        self.out.push_str(STRING.1);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.out.push_str("<value>");
        write_bytes(self.out, value);
        self.out.push_str("</value>");
    }

    fn begin_array(&mut self) {
        self.out.push_str("<value><array><data>");
    }

    fn begin_item(&mut self, _: usize) {}

    fn end_array(&mut self) {
        self.out.push_str("</data></array></value>");
    }

    fn begin_structure(&mut self) {
        self.out.push_str("<value><struct>");
    }

    fn begin_member(&mut self, _: usize, name: &str) {
        self.out.push_str("<member><name>");
        write_name(self.out, name);
        self.out.push_str("</name>");
    }

    #[inline(always)]
    fn begin_field(&mut self, _: usize, name: &'static str) {
        self.out.push_str("<member><name>");
        self.out.push_str(name);
        self.out.push_str("</name>");
    }

    fn end_member(&mut self) {
        self.out.push_str("</member>");
    }

    fn end_structure(&mut self) {
        self.out.push_str("</struct></value>");
    }
}

/// Text of a number that is not finite.
pub(crate) fn not_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Append the name of a member; characters that XML does not allow are replaced.
pub(crate) fn write_name(out: &mut String, name: &str) {
    if !escape(out, name) {
        let replaced = name.replace(|character| !is_xml_char(character), "\u{FFFD}");
        escape(out, &replaced);
    }
}

fn write_bytes(out: &mut String, bytes: &[u8]) {
    out.push_str("<base64>");
    BASE64.encode_append(bytes, out);
    out.push_str("</base64>");
}

/// Append `text` with markup escaped. Returns `false`, with nothing appended, if XML cannot represent it.
/// Carriage returns are written as references, because a parser would turn them into line feeds.
fn escape(out: &mut String, text: &str) -> bool {
    let before = out.len();
    let (bytes, mut copied) = (text.as_bytes(), 0);
    loop {
        let at = copied + plain_len(&bytes[copied..], SPECIAL);
        out.push_str(&text[copied..at]);
        let Some(byte) = bytes.get(at) else { return true };
        copied = at + 1;
        match byte {
            b'&' => out.push_str("&amp;"),
            b'<' => out.push_str("&lt;"),
            b'>' => out.push_str("&gt;"),
            b'\r' => out.push_str("&#13;"),
            b'\t' | b'\n' => out.push(char::from(*byte)),
            // U+FFFE and U+FFFF are EF BF BE and EF BF BF.
            0xEF if bytes[at + 1] != 0xBF || bytes[at + 2] < 0xBE => {
                copied = at + 3;
                out.push_str(&text[at..copied]);
            }
            _ => {
                out.truncate(before);
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_form() {
        let check = |value: Value, expected: &str| {
            let mut out = String::new();
            write_value(&mut out, &value);
            assert_eq!(out, format!("<value>{expected}</value>"));
        };
        check(2_147_483_647_i64.into(), "<int>2147483647</int>");
        check(2_147_483_648_i64.into(), "<i8>2147483648</i8>");
        check(i64::MIN.into(), "<i8>-9223372036854775808</i8>");
        check(u64::MAX.into(), "<string>18446744073709551615</string>");
        check(Value::UInt(5), "<int>5</int>");
        check(Value::UInt((1 << 53) + 1), "<i8>9007199254740993</i8>");
        check(1e21.into(), "<double>1000000000000000000000</double>");
        check(0.1.into(), "<double>0.1</double>");
        check(f64::NAN.into(), "<string>NaN</string>");
        check(f64::NEG_INFINITY.into(), "<string>-Infinity</string>");
        check("a&b<c>\r".into(), "<string>a&amp;b&lt;c&gt;&#13;</string>");
        check("a\0b".into(), "<base64>YQBi</base64>");
        check("\u{ffff}".into(), "<base64>77+/</base64>");
        check("\u{fffd}\u{f000}".into(), "<string>\u{fffd}\u{f000}</string>");
        check(
            Value::object([("a\0", 1)]),
            "<struct><member><name>a\u{fffd}</name><value><int>1</int></value></member></struct>",
        );
    }
}
