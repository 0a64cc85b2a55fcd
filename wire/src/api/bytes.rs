//! Byte strings in parameters and answers.
//!
//! Pure. Not here: bytes within the messages of daemons ([`crate::bytes`]).

use data_encoding::BASE64;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Bytes. In JSON they are base64 (RFC 4648, section 4), in XML-RPC `<base64>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Name in the `contentEncoding` of a schema.
    pub const ENCODING: &'static str = "base64";
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes, or base64")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
                BASE64.decode(text.as_bytes()).map(Bytes).map_err(E::custom)
            }
        }
        // Each form of the query interface has its own type for bytes.
        deserializer.deserialize_any(Read)
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "contentEncoding": Bytes::ENCODING })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_json_is_read() {
        let read = |text: &str| serde_json::from_str::<Bytes>(text).map_err(|error| error.to_string());
        assert_eq!(read("\"AAH/\""), Ok(Bytes(vec![0, 1, 255])));
        assert_eq!(read("\"\""), Ok(Bytes::default()));
        assert!(read("\"A\"").is_err_and(|error| error.contains("length")));
        assert!(read("[0, 1]").is_err_and(|error| error.contains("base64")));
    }
}
