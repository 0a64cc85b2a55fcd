//! Serde serializer of answers, into any sink.
//!
//! Pure. Rule: serde's data model is reduced to what JSON and XML-RPC share: an enum variant without content
//! is its name, one with content a structure of one member.
//! Not here: the syntax of each form (`json`, `xml_writer`, `tree`).

use super::Sink;
use super::key::Key;
use serde::ser::{self, Serialize, Serializer};
use std::fmt::Display;
use wire::api::Renamed;

/// A type cannot be written as an answer. This is an error in the program, not of its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Error {
        Error(message.to_string())
    }
}

/// Serializer of one value.
#[derive(Debug)]
pub struct Writer<'a, S> {
    sink: &'a mut S,
    renamed: &'static [Renamed],
}

/// Serializer of the parts of an array or a structure.
#[derive(Debug)]
pub struct Parts<'a, S> {
    writer: Writer<'a, S>,
    count: usize,
    /// Whether this is the content of an enum variant, so that a structure must be closed around it.
    is_variant: bool,
}

impl<'a, S: Sink> Writer<'a, S> {
    /// Write to `sink`; fields that are in `renamed` are also written under their previous name.
    pub fn new(sink: &'a mut S, renamed: &'static [Renamed]) -> Writer<'a, S> {
        Writer { sink, renamed }
    }

    fn inner(&mut self) -> Writer<'_, S> {
        Writer { sink: self.sink, renamed: self.renamed }
    }

    /// Open the structure of one member for a variant with content.
    fn begin_variant(&mut self, variant: &'static str) {
        self.sink.begin_structure();
        self.sink.begin_field(0, variant);
    }

    fn array(mut self, variant: Option<&'static str>) -> Parts<'a, S> {
        variant.into_iter().for_each(|variant| self.begin_variant(variant));
        self.sink.begin_array();
        Parts { writer: self, count: 0, is_variant: variant.is_some() }
    }

    fn structure(mut self, variant: Option<&'static str>) -> Parts<'a, S> {
        variant.into_iter().for_each(|variant| self.begin_variant(variant));
        self.sink.begin_structure();
        Parts { writer: self, count: 0, is_variant: variant.is_some() }
    }
}

impl<S: Sink> Parts<'_, S> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.writer.sink.begin_item(self.count);
        self.count += 1;
        value.serialize(self.writer.inner())
    }

    /// Inlined, so that the name is a constant where it is written: names are half of an answer.
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.writer.sink.begin_field(self.count, name);
        self.end_member(value)?;
        if self.writer.renamed.is_empty() { Ok(()) } else { self.former_field(name, value) }
    }

    #[cold]
    fn former_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        let Some((_, former)) = self.writer.renamed.iter().find(|(now, _)| *now == name) else {
            return Ok(());
        };
        self.writer.sink.begin_field(self.count, former);
        self.end_member(value)
    }

    fn end_member<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.count += 1;
        value.serialize(self.writer.inner())?;
        self.writer.sink.end_member();
        Ok(())
    }

    fn end_variant(&mut self) {
        if self.is_variant {
            self.writer.sink.end_member();
            self.writer.sink.end_structure();
        }
    }

    fn end_array(mut self) -> Result<(), Error> {
        self.writer.sink.end_array();
        self.end_variant();
        Ok(())
    }

    fn end_structure(mut self) -> Result<(), Error> {
        self.writer.sink.end_structure();
        self.end_variant();
        Ok(())
    }
}

/// Numbers written as a larger type.
macro_rules! widened {
    ($($method:ident: $from:ty => $sink:ident as $to:ty),* $(,)?) => {
        $(fn $method(self, value: $from) -> Result<(), Error> {
            self.sink.$sink(<$to>::from(value));
            Ok(())
        })*
    };
}

impl<'a, S: Sink> Serializer for Writer<'a, S> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'a, S>;
    type SerializeTuple = Parts<'a, S>;
    type SerializeTupleStruct = Parts<'a, S>;
    type SerializeTupleVariant = Parts<'a, S>;
    type SerializeMap = Parts<'a, S>;
    type SerializeStruct = Parts<'a, S>;
    type SerializeStructVariant = Parts<'a, S>;

    widened! {
        serialize_bool: bool => boolean as bool,
        serialize_i8: i8 => int as i64,
        serialize_i16: i16 => int as i64,
        serialize_i32: i32 => int as i64,
        serialize_i64: i64 => int as i64,
        serialize_u8: u8 => uint as u64,
        serialize_u16: u16 => uint as u64,
        serialize_u32: u32 => uint as u64,
        serialize_u64: u64 => uint as u64,
        serialize_f32: f32 => double as f64,
        serialize_f64: f64 => double as f64,
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.sink.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.sink.text(value);
        Ok(())
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.sink.displayed(&value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.sink.bytes(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.sink.nil();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin_variant(variant);
        value.serialize(self.inner())?;
        self.sink.end_member();
        self.sink.end_structure();
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a, S>, Error> {
        Ok(self.array(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a, S>, Error> {
        Ok(self.array(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a, S>, Error> {
        Ok(self.array(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a, S>, Error> {
        Ok(self.array(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a, S>, Error> {
        Ok(self.structure(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'a, S>, Error> {
        Ok(self.structure(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a, S>, Error> {
        Ok(self.structure(Some(variant)))
    }
}

/// Elements of arrays, for which serde has four traits.
macro_rules! parts {
    ($($name:ident, $method:ident),* $(,)?) => {
        $(impl<S: Sink> ser::$name for Parts<'_, S> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.end_array()
            }
        })*
    };
}

parts! {
    SerializeSeq, serialize_element,
    SerializeTuple, serialize_element,
    SerializeTupleStruct, serialize_field,
    SerializeTupleVariant, serialize_field,
}

/// Fields of structures, for which serde has two traits.
macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        $(impl<S: Sink> ser::$name for Parts<'_, S> {
            type Ok = ();
            type Error = Error;

            #[inline(always)]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.end_structure()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

/// Entries of a map, whose keys are only known at run time.
impl<S: Sink> ser::SerializeMap for Parts<'_, S> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let mut name = Key::new(self.writer.sink, self.count);
        key.serialize(Writer::new(&mut name, &[]))?;
        name.end().map_err(|found| Error(format!("expected text as the key of a map, found {found}")))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.end_member(value)
    }

    fn end(self) -> Result<(), Error> {
        self.end_structure()
    }
}
