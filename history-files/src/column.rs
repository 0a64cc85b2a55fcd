//! Columns: values of all rows of a batch, with a name.
//!
//! Pure. Not here: which columns a table has (its file).

use arrow_array::builder::{ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use std::sync::Arc;
use wire::time::Time;

/// Time zone of all times.
const UTC: &str = "UTC";

/// A column: its name, its values, and whether they may be absent.
pub(crate) struct Column(&'static str, ArrayRef, bool);

/// The batch of these columns, which have one length.
pub(crate) fn batch(columns: Vec<Column>) -> RecordBatch {
    let columns = columns.into_iter().map(|Column(name, values, is_optional)| (name, values, is_optional));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// Texts.
pub(crate) fn texts<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Column {
    Column(name, Arc::new(StringArray::from_iter_values(values)), false)
}

/// Texts, absent where they are empty.
pub(crate) fn known_texts<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Column {
    let values = values.map(|value| Some(value).filter(|value| !value.is_empty()));
    Column(name, Arc::new(values.collect::<StringArray>()), true)
}

/// Lists of texts.
pub(crate) fn lists<'a>(name: &'static str, values: impl Iterator<Item = &'a [String]>) -> Column {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for value in values {
        lists.append_value(value.iter().map(Some));
    }
    Column(name, Arc::new(lists.finish()), false)
}

/// Maps of texts.
pub(crate) fn maps<'a, T: AsRef<str> + 'a>(
    name: &'static str,
    values: impl Iterator<Item = &'a [(T, T)]>,
) -> Column {
    let names = MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for value in values {
        for (key, value) in value {
            maps.keys().append_value(key.as_ref());
            maps.values().append_value(value.as_ref());
        }
        maps.append(true).expect("as many keys as values");
    }
    Column(name, Arc::new(maps.finish()), false)
}

/// Times.
pub(crate) fn times(name: &'static str, values: impl Iterator<Item = Time>) -> Column {
    let values = TimestampMicrosecondArray::from_iter_values(values.map(Time::micros));
    Column(name, Arc::new(values.with_timezone(UTC)), false)
}

/// Times, absent where they are unknown.
pub(crate) fn known_times(name: &'static str, values: impl Iterator<Item = Option<Time>>) -> Column {
    let values: TimestampMicrosecondArray = values.map(|time| time.map(Time::micros)).collect();
    Column(name, Arc::new(values.with_timezone(UTC)), true)
}

/// Numbers without a fraction, which fit.
pub(crate) fn counts(name: &'static str, values: impl Iterator<Item = u64>) -> Column {
    let values = values.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
    Column(name, Arc::new(Int64Array::from_iter_values(values)), false)
}

/// Small numbers without a fraction.
pub(crate) fn small(name: &'static str, values: impl Iterator<Item = u32>) -> Column {
    let values = values.map(|value| i32::try_from(value).unwrap_or(i32::MAX));
    Column(name, Arc::new(Int32Array::from_iter_values(values)), false)
}

/// Numbers without a fraction, which fit, absent where there are none.
pub(crate) fn known_counts(name: &'static str, values: impl Iterator<Item = Option<u64>>) -> Column {
    let values = values.map(|value| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    Column(name, Arc::new(values.collect::<Int64Array>()), true)
}

/// Small numbers without a fraction, absent where there are none.
pub(crate) fn known_small(name: &'static str, values: impl Iterator<Item = Option<u32>>) -> Column {
    let values = values.map(|value| value.map(|value| i32::try_from(value).unwrap_or(i32::MAX)));
    Column(name, Arc::new(values.collect::<Int32Array>()), true)
}

/// Numbers.
pub(crate) fn numbers(name: &'static str, values: impl Iterator<Item = f64>) -> Column {
    Column(name, Arc::new(Float64Array::from_iter_values(values)), false)
}

/// Numbers, absent where there are none.
pub(crate) fn known_numbers(name: &'static str, values: impl Iterator<Item = Option<f64>>) -> Column {
    Column(name, Arc::new(values.collect::<Float64Array>()), true)
}
