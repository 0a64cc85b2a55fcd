//! Times and durations in parameters and answers.
//!
//! Pure. Not here: parsing RFC 3339, or a number with its unit (`rpc`).

use crate::time::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::time::Duration;

/// Time in seconds since 1970-01-01T00:00:00Z, with microseconds as a fraction. As a parameter it may also be
/// RFC 3339 (`2026-11-20T12:24:17Z`) or a duration before now (`1h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub Time);

impl UnixTime {
    /// Name in the `format` of a schema.
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
        number_of(generator, UnixTime::FORMAT)
    }
}

/// Duration in seconds, with a fraction. As a parameter it may also be a number with its unit (`90s`, `5m`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// Name in the `format` of a schema.
    pub const FORMAT: &'static str = "span-seconds";
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

/// A negative duration is read as 0, one beyond [`Duration::MAX`] as the maximum.
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let secs = f64::deserialize(deserializer)?;
        Ok(Span(Duration::try_from_secs_f64(secs.max(0.0)).unwrap_or(Duration::MAX)))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        number_of(generator, Span::FORMAT)
    }
}

/// Schema of a number of this format; a parameter may also be text.
fn number_of(generator: &SchemaGenerator, format: &str) -> Schema {
    if generator.contract().is_deserialize() {
        json_schema!({ "type": ["number", "string"], "format": format })
    } else {
        json_schema!({ "type": "number", "format": format })
    }
}
