//! A moment as the query interface has it.
//!
//! Pure. Not here: reading it from RFC 3339 or a span before now (`rpc`).

use crate::time::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A moment: seconds since 1970-01-01T00:00:00Z, with microseconds as a fraction. As a parameter it may also be RFC 3339
/// (`2026-11-20T12:24:17Z`), or a span before now (`1h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub Time);

impl UnixTime {
    /// Its name in a schema's `format`.
    pub const FORMAT: &'static str = "unix-time";
}

impl From<Time> for UnixTime {
    fn from(time: Time) -> UnixTime {
        UnixTime(time)
    }
}

impl Serialize for UnixTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.secs_f64())
    }
}

impl<'de> Deserialize<'de> for UnixTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnixTime, D::Error> {
        f64::deserialize(deserializer).map(|secs| UnixTime(Time::from_secs_f64(secs)))
    }
}

impl JsonSchema for UnixTime {
    fn schema_name() -> Cow<'static, str> {
        "UnixTime".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Handlers and clients have numbers; what is sent may be text.
        if generator.contract().is_deserialize() {
            json_schema!({ "type": ["number", "string"], "format": UnixTime::FORMAT })
        } else {
            json_schema!({ "type": "number", "format": UnixTime::FORMAT })
        }
    }
}
