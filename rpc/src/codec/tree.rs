//! Trees of [`Value`]: a sink that builds one, writing one to a sink, and deserializing a type from one.
//!
//! Pure. Not here: the values themselves (`crate::codec::value`).

use super::Sink;
use crate::codec::value::{Name, Value};
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::Display;

/// Sink that builds one value.
#[derive(Debug, Default)]
pub struct Tree {
    /// Incomplete arrays and structures, the outermost first.
    open: Vec<Value>,
    /// Names of members whose values are incomplete.
    names: Vec<Name>,
    done: Value,
}

impl Tree {
    /// The finished value.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.done
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Value::Array(items)) => items.push(value),
            // Members are added at their end, with their names.
            Some(_) | None => self.done = value,
        }
    }

    fn end(&mut self) {
        let value = self.open.pop().unwrap_or_default();
        self.put(value);
    }
}

impl Sink for Tree {
    fn nil(&mut self) {
        self.put(Value::Nil);
    }

    fn boolean(&mut self, value: bool) {
        self.put(Value::Bool(value));
    }

    fn int(&mut self, value: i64) {
        self.put(Value::Int(value));
    }

    fn uint(&mut self, value: u64) {
        self.put(Value::UInt(value));
    }

    fn double(&mut self, value: f64) {
        self.put(Value::Double(value));
    }

    fn text(&mut self, value: &str) {
        self.put(Value::from(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.put(Value::Bytes(value.to_vec()));
    }

    fn begin_array(&mut self) {
        self.open.push(Value::Array(Vec::new()));
    }

    fn begin_item(&mut self, _: usize) {}

    fn end_array(&mut self) {
        self.end();
    }

    fn begin_structure(&mut self) {
        self.open.push(Value::Struct(Vec::new()));
    }

    fn begin_member(&mut self, _: usize, name: &str) {
        self.names.push(Name::Owned(name.to_owned()));
    }

    fn begin_field(&mut self, _: usize, name: &'static str) {
        self.names.push(Name::Borrowed(name));
    }

    fn end_member(&mut self) {
        let value = std::mem::take(&mut self.done);
        if let (Some(Value::Struct(members)), Some(name)) = (self.open.last_mut(), self.names.pop()) {
            members.push((name, value));
        }
    }

    fn end_structure(&mut self) {
        self.end();
    }
}

impl Value {
    /// Write this value to a sink.
    pub fn write_to(&self, sink: &mut impl Sink) {
        match self {
            Value::Nil => sink.nil(),
            Value::Bool(flag) => sink.boolean(*flag),
            Value::Int(number) => sink.int(*number),
            Value::UInt(number) => sink.uint(*number),
            Value::Double(number) => sink.double(*number),
            Value::Text(text) => sink.text(text),
            Value::Bytes(bytes) => sink.bytes(bytes),
            Value::Array(items) => {
                sink.begin_array();
                for (nth, item) in items.iter().enumerate() {
                    sink.begin_item(nth);
                    item.write_to(sink);
                }
                sink.end_array();
            }
            Value::Struct(members) => {
                sink.begin_structure();
                for (nth, (name, value)) in members.iter().enumerate() {
                    sink.begin_member(nth, name);
                    value.write_to(sink);
                    sink.end_member();
                }
                sink.end_structure();
            }
        }
    }
}

/// Error of parameters that do not match the method's type: the content of structures and arrays is not
/// checked earlier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotOfType(String);

impl de::Error for NotOfType {
    fn custom<T: Display>(message: T) -> NotOfType {
        NotOfType(message.to_string())
    }
}

/// Deserializer of a value.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(pub &'a Value);

impl<'de> IntoDeserializer<'de, NotOfType> for Source<'de> {
    type Deserializer = Source<'de>;

    fn into_deserializer(self) -> Source<'de> {
        self
    }
}

impl<'de> Deserializer<'de> for Source<'de> {
    type Error = NotOfType;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotOfType> {
        match self.0 {
            Value::Nil => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Int(number) => visitor.visit_i64(*number),
            Value::UInt(number) => visitor.visit_u64(*number),
            Value::Double(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Source))),
            Value::Struct(members) => {
                let members = members.iter().map(|(name, value)| (&**name, Source(value)));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotOfType> {
        if *self.0 == Value::Nil { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NotOfType> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotOfType> {
        let Some(text) = self.0.as_text() else {
            return Err(de::Error::custom(format!("{name}: expected text, found {}", self.0.kind())));
        };
        BorrowedStrDeserializer::new(text).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}
