//! Writer of a long list in an answer: each item is encoded where it is read, so none is copied.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Rule: the output equals, byte for byte, that of the answer with all items in it.

use super::{Error, Writer};
use super::{json, xml_writer};
use serde::Serialize;
use wire::query::{Form, Syntax};

/// The encoded items of a list, which is the first member of an answer.
#[derive(Clone, Debug)]
pub struct Items {
    form: Form,
    out: String,
    /// Offset of the first item.
    start: usize,
    len: usize,
}

impl Items {
    /// Create an empty list, the member `member` of the answer.
    #[must_use]
    pub fn new(form: Form, member: &'static str) -> Items {
        let mut out = String::with_capacity(256);
        let (before, after) = match form.syntax {
            Syntax::Json => ("{\"", "\":["),
            Syntax::Xml => {
                out.push_str(xml_writer::ANSWER_BEGINS);
                ("<value><struct><member><name>", "</name><value><array><data>")
            }
        };
        [before, member, after].into_iter().for_each(|part| out.push_str(part));
        Items { form, start: out.len(), out, len: 0 }
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Encode an item.
    ///
    /// # Errors
    /// If its type cannot be written: its map has keys that are not text.
    pub fn add<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        self.separate();
        write(self.form, item, &mut self.out)?;
        self.len += 1;
        Ok(())
    }

    /// Append the items of `other`, which must have the same form.
    pub fn append(&mut self, other: &Items) {
        if !other.is_empty() {
            self.separate();
            self.out.push_str(&other.out[other.start..]);
            self.len += other.len;
        }
    }

    /// Complete the document of the answer; `rest` is a structure of the members after the list.
    ///
    /// # Errors
    /// As [`Items::add`].
    pub fn document<T: Serialize + ?Sized>(mut self, rest: &T) -> Result<String, Error> {
        let mut members = String::new();
        write(self.form, rest, &mut members)?;
        let (after, before, end) = match self.form.syntax {
            Syntax::Json => ("]", "{", "\n"),
            Syntax::Xml => ("</data></array></value></member>", "<value><struct>", xml_writer::ANSWER_ENDS),
        };
        self.out.push_str(after);
        let members = members.strip_prefix(before).unwrap_or_default();
        if self.form.syntax == Syntax::Json && members != "}" {
            self.out.push(',');
        }
        self.out.push_str(members);
        self.out.push_str(end);
        Ok(self.out)
    }

    fn separate(&mut self) {
        if self.len > 0 && self.form.syntax == Syntax::Json {
            self.out.push(',');
        }
    }
}

fn write<T: Serialize + ?Sized>(form: Form, value: &T, out: &mut String) -> Result<(), Error> {
    match form.syntax {
        Syntax::Json => value.serialize(Writer::new(&mut json::Sink::new(out, form.integers), &[])),
        Syntax::Xml => value.serialize(Writer::new(&mut xml_writer::Sink::new(out, form.integers), &[])),
    }
}
