//! Streaming parser of a saved grid.
//!
//! Pure: text goes in. Rule: one host or call is in memory at a time, and has at most [`VALUES_MAX`] values,
//! so a file needs no more memory than its grid. The format name comes first, and the name of a domain before
//! its contents, as they are written.

use super::{FORM, state_of};
use crate::grid::Grid;
use crate::grid::builder::{AHEAD, Builder, CALLS_MAX};
use crate::grid::place::DomainId;
use crate::grid::refused::Reason;
use crate::live::answers;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::fmt;
use std::io::Read;
use wire::time::Time;

/// Maximum number of values of one host or call, including nested ones: one with 256 hosts and as many offers
/// has some 540.
const VALUES_MAX: u32 = 4_096;

/// Parse the text of a saved grid.
pub(super) fn read(text: impl Read, now: Time) -> Result<Grid, String> {
    let mut reading = Reading { builder: Builder::new(now.plus(AHEAD)), calls: 0, calls_left_out: 0 };
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = json.deserialize_map(Whole(&mut reading)).and_then(|()| json.end());
    read.map_err(|error| match error.classify() {
        Category::Syntax | Category::Eof => format!("no JSON ({error})"),
        Category::Data | Category::Io => error.to_string(),
    })?;
    let mut grid = reading.builder.build();
    grid.refused.add_many(Reason::Calls, reading.calls_left_out);
    Ok(grid)
}

struct Reading {
    builder: Builder,
    calls: usize,
    calls_left_out: u64,
}

impl Reading {
    fn host(&mut self, domain: DomainId, value: &Value) {
        let host = answers::host(value);
        if host.name.is_empty() {
            return;
        }
        match host.is_reported {
            true => self.builder.host(domain, &host.name, host.state, host.report),
            false => self.builder.named(domain, &host.name),
        }
        for change in value["changes"].as_array().into_iter().flatten() {
            let time = change["time"].as_f64().filter(|secs| secs.is_finite());
            if let (Some(time), Some(state)) = (time, change["state"].as_str().and_then(state_of)) {
                self.builder.host_change(domain, &host.name, Time::from_secs_f64(time), state);
            }
        }
    }

    /// No saved grid has more calls than the limit, so the first are stored instead of the newest.
    fn call(&mut self, domain: DomainId, value: &Value) {
        let call = answers::call(value);
        if call.id.is_empty() {
            return;
        }
        if self.calls >= CALLS_MAX {
            self.calls_left_out += 1;
            return;
        }
        self.calls += 1;
        self.builder.call_of(domain, &call, &call.from);
    }
}

/// The top-level object of the file.
struct Whole<'a>(&'a mut Reading);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("a grid")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut form = Value::Null;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "form" => form = map.next_value_seed(Bounded(&mut VALUES_MAX.clone()))?,
                "domains" if form == FORM => map.next_value_seed(Domains(self.0))?,
                "domains" => break,
                _ => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        if form == FORM { Ok(()) } else { Err(A::Error::custom(format_args!("{form} instead of {FORM:?}"))) }
    }
}

struct Domains<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for Domains<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Domains<'_> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("domains")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(OfDomain(self.0))?.is_some() {}
        Ok(())
    }
}

struct OfDomain<'a>(&'a mut Reading);

impl<'de> DeserializeSeed<'de> for OfDomain<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OfDomain<'_> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("a domain")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reading = self.0;
        // `None` before the name was read, `Some(None)` for a domain beyond the limit, whose contents are
        // skipped.
        let mut domain: Option<Option<DomainId>> = None;
        while let Some(name) = map.next_key::<String>()? {
            match (name.as_str(), domain) {
                ("domain", _) => domain = Some(reading.builder.domain(&map.next_value::<String>()?)),
                ("hosts", Some(Some(id))) => map.next_value_seed(Items(|value| reading.host(id, value)))?,
                ("calls", Some(Some(id))) => map.next_value_seed(Items(|value| reading.call(id, value)))?,
                ("hosts" | "calls", None) => {
                    return Err(A::Error::custom("hosts or calls before the name of their domain"));
                }
                _ => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

/// The items of an array, one at a time.
struct Items<F: FnMut(&Value)>(F);

impl<'de, F: FnMut(&Value)> DeserializeSeed<'de> for Items<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&Value)> Visitor<'de> for Items<F> {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("an array of hosts or calls")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(item) = seq.next_element_seed(Bounded(&mut VALUES_MAX.clone()))? {
            (self.0)(&item);
        }
        Ok(())
    }
}

/// A value with a limit on its number of values, including nested ones.
struct Bounded<'a>(&'a mut u32);

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        *self.0 = self.0.checked_sub(1).ok_or_else(|| {
            D::Error::custom(format_args!("a host or call that has not at most {VALUES_MAX} values"))
        })?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Bounded(self.0))? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut items = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            items.insert(name, map.next_value_seed(Bounded(self.0))?);
        }
        Ok(items.into())
    }
}
