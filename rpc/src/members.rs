//! The members of a structure, said once: as values, or at once as the text of a document.
//!
//! A long list of structures of many short texts costs far more as a tree of values than as the text that is made of it.
//! Whoever answers with such a list fills [`Members`], of either kind.
//! Pure: no runtime, no file, no socket, no clock.
//! Rule: both kinds end in the same bytes. A [`List`] is made here and nowhere else, so what stands in it is well formed.
//! Not here: how text and numbers are written (`json`, `xml_writer`).

use crate::value::{Name, Value, held_by};
use crate::{json, xml_writer};
use std::fmt::{Display, Write};
use wire::query::{Form, Integers, Syntax};
use wire::time::Time;

/// Before this moment, in microseconds, the shortest number that a time's seconds are read back from is its decimal one:
/// doubles are closer to each other than microseconds are.
const EXACT_MICROS_MAX: i64 = (1 << 32) * 1_000_000;

/// A value of which it is not known before what it is.
#[derive(Clone, Copy, Debug)]
pub enum Plain<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// Takes the members of one structure, in order.
pub trait Members {
    /// Text.
    fn text(&mut self, name: &'static str, value: &str);
    /// Text, of letters, digits and signs that no document gives a meaning: `-`, `.`, `:`, `_`.
    fn id(&mut self, name: &'static str, value: impl Display);
    /// Seconds since 1970.
    fn time(&mut self, name: &'static str, value: Time);
    /// A whole number.
    fn whole(&mut self, name: &'static str, value: u64);
    /// A member whose name is not known before.
    fn plain(&mut self, name: &str, value: Plain<'_>);
    /// Texts in order, under a name that is not known before.
    fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>);
    /// A structure.
    fn structure(&mut self, name: &'static str, fill: impl FnOnce(&mut Self));
}

impl Members for Vec<(Name, Value)> {
    fn text(&mut self, name: &'static str, value: &str) {
        self.push((name.into(), value.into()));
    }

    fn id(&mut self, name: &'static str, value: impl Display) {
        self.push((name.into(), Value::Text(value.to_string())));
    }

    fn time(&mut self, name: &'static str, value: Time) {
        self.push((name.into(), value.into()));
    }

    fn whole(&mut self, name: &'static str, value: u64) {
        self.push((name.into(), Value::UInt(value)));
    }

    fn plain(&mut self, name: &str, value: Plain<'_>) {
        let value = match value {
            Plain::Text(text) => Value::from(text),
            Plain::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        };
        self.push((Name::Owned(name.to_owned()), value));
    }

    fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        self.push((Name::Owned(name.to_owned()), Value::array(values)));
    }

    fn structure(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        let mut members = Vec::new();
        fill(&mut members);
        self.push((name.into(), Value::Struct(members)));
    }
}

/// A list of structures, as the text of a document whose first member it is.
#[derive(Clone, Debug)]
pub struct List {
    form: Form,
    out: String,
    /// Where its first structure begins.
    begins: usize,
    len: usize,
}

impl List {
    /// An empty one of this name.
    #[must_use]
    pub fn new(form: Form, name: &'static str) -> List {
        let mut out = String::with_capacity(256);
        match form.syntax {
            Syntax::Json => out.push_str("{\""),
            Syntax::Xml => {
                out.push_str(xml_writer::ANSWER_BEGINS);
                out.push_str("<value><struct><member><name>");
            }
        }
        out.push_str(name);
        out.push_str(match form.syntax {
            Syntax::Json => "\":[",
            Syntax::Xml => "</name><value><array><data>",
        });
        List { form, begins: out.len(), out, len: 0 }
    }

    /// How many structures are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One more.
    pub fn add(&mut self, fill: impl FnOnce(&mut Text<'_>)) {
        self.begin_next();
        write_structure(&mut self.out, self.form, fill);
        self.len += 1;
    }

    /// Those of `other`, which is of the same form.
    pub fn append(&mut self, other: &List) {
        if other.is_empty() {
            return;
        }
        self.begin_next();
        self.out.push_str(&other.out[other.begins..]);
        self.len += other.len;
    }

    /// The document, with the members behind it that `fill` gives.
    #[must_use]
    pub fn document(mut self, fill: impl FnOnce(&mut Text<'_>)) -> String {
        self.out.push_str(match self.form.syntax {
            Syntax::Json => "]",
            Syntax::Xml => "</data></array></value></member>",
        });
        fill(&mut Text { out: &mut self.out, form: self.form, is_first: false });
        match self.form.syntax {
            Syntax::Json => self.out.push_str("}\n"),
            Syntax::Xml => {
                self.out.push_str("</struct></value>");
                self.out.push_str(xml_writer::ANSWER_ENDS);
            }
        }
        self.out
    }

    fn begin_next(&mut self) {
        if self.len > 0 && self.form.syntax == Syntax::Json {
            self.out.push(',');
        }
    }
}

/// Members as text.
#[derive(Debug)]
pub struct Text<'a> {
    out: &'a mut String,
    form: Form,
    is_first: bool,
}

fn write_structure(out: &mut String, form: Form, fill: impl FnOnce(&mut Text<'_>)) {
    let (begins, ends) = match form.syntax {
        Syntax::Json => ("{", "}"),
        Syntax::Xml => ("<value><struct>", "</struct></value>"),
    };
    out.push_str(begins);
    fill(&mut Text { out, form, is_first: true });
    out.push_str(ends);
}

impl Text<'_> {
    fn member(&mut self, name: &'static str, value: impl FnOnce(&mut Self)) {
        match self.form.syntax {
            Syntax::Json => {
                self.out.push_str(if self.is_first { "\"" } else { ",\"" });
                self.is_first = false;
                self.out.push_str(name);
                self.out.push_str("\":");
                value(self);
            }
            Syntax::Xml => {
                self.out.push_str("<member><name>");
                self.out.push_str(name);
                self.out.push_str("</name>");
                value(self);
                self.out.push_str("</member>");
            }
        }
    }

    /// The same where the name may be anything.
    fn named(&mut self, name: &str, value: impl FnOnce(&mut Self)) {
        match self.form.syntax {
            Syntax::Json => {
                if !self.is_first {
                    self.out.push(',');
                }
                self.is_first = false;
                json::write_text(self.out, name);
                self.out.push(':');
                value(self);
            }
            Syntax::Xml => {
                self.out.push_str("<member><name>");
                xml_writer::write_name(self.out, name);
                self.out.push_str("</name>");
                value(self);
                self.out.push_str("</member>");
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match self.form.syntax {
            Syntax::Json => json::write_value(self.out, value),
            Syntax::Xml => xml_writer::write_value(self.out, value),
        }
    }

    fn write_text(&mut self, text: &str) {
        match self.form.syntax {
            Syntax::Json => json::write_text(self.out, text),
            Syntax::Xml => {
                self.out.push_str("<value>");
                xml_writer::write_text(self.out, text);
                self.out.push_str("</value>");
            }
        }
    }

    /// Text that needs no look at its characters.
    fn quoted(&mut self, text: impl Display) {
        let (begins, ends) = match self.form.syntax {
            Syntax::Json => ("\"", "\""),
            Syntax::Xml => ("<value><string>", "</string></value>"),
        };
        self.out.push_str(begins);
        // Writing to a string does not fail.
        let _ = write!(self.out, "{text}");
        self.out.push_str(ends);
    }
}

impl Members for Text<'_> {
    fn text(&mut self, name: &'static str, value: &str) {
        self.member(name, |text| text.write_text(value));
    }

    fn id(&mut self, name: &'static str, value: impl Display) {
        self.member(name, |text| text.quoted(value));
    }

    fn time(&mut self, name: &'static str, value: Time) {
        let micros = value.micros();
        self.member(name, |text| {
            if !(0..EXACT_MICROS_MAX).contains(&micros) {
                return text.value(&value.into());
            }
            match text.form.syntax {
                Syntax::Json => write_secs(text.out, micros.unsigned_abs(), ".0"),
                Syntax::Xml => {
                    text.out.push_str("<value><double>");
                    write_secs(text.out, micros.unsigned_abs(), "");
                    text.out.push_str("</double></value>");
                }
            }
        });
    }

    fn whole(&mut self, name: &'static str, value: u64) {
        let Form { syntax, integers } = self.form;
        let mut whole = Value::UInt(value);
        if integers != Integers::Number {
            whole = whole.with_integers(integers, held_by(syntax));
        }
        self.member(name, |text| text.value(&whole));
    }

    fn plain(&mut self, name: &str, value: Plain<'_>) {
        self.named(name, |text| match value {
            Plain::Text(value) => text.write_text(value),
            Plain::Bytes(bytes) => text.value(&Value::Bytes(bytes.to_vec())),
        });
    }

    fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a str>) {
        let (begins, between, ends) = match self.form.syntax {
            Syntax::Json => ("[", ",", "]"),
            Syntax::Xml => ("<value><array><data>", "", "</data></array></value>"),
        };
        self.named(name, |text| {
            text.out.push_str(begins);
            for (at, value) in values.enumerate() {
                text.out.push_str(if at > 0 { between } else { "" });
                text.write_text(value);
            }
            text.out.push_str(ends);
        });
    }

    fn structure(&mut self, name: &'static str, fill: impl FnOnce(&mut Self)) {
        let (begins, ends) = match self.form.syntax {
            Syntax::Json => ("{", "}"),
            Syntax::Xml => ("<value><struct>", "</struct></value>"),
        };
        self.member(name, |text| {
            text.out.push_str(begins);
            let is_first = std::mem::replace(&mut text.is_first, true);
            fill(text);
            text.is_first = is_first;
            text.out.push_str(ends);
        });
    }
}

/// Seconds with what is left of them, no digit more than needed; whole ones end as `whole` says.
fn write_secs(out: &mut String, micros: u64, whole: &str) {
    const DIGITS: usize = 6;
    let (secs, mut rest) = (micros / 1_000_000, micros % 1_000_000);
    write_digits(out, secs);
    if rest == 0 {
        out.push_str(whole);
        return;
    }
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    let kept = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.push('.');
    digits[..kept].iter().for_each(|digit| out.push(char::from(*digit)));
}

fn write_digits(out: &mut String, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|digit| out.push(char::from(*digit)));
}
