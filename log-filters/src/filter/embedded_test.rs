//! Embedded test of a filter: its lines, and the events that they must give.
//!
//! Pure. Rule: each expected event names its kind. Not here: running it (`test_lines`).

use crate::calendar::zone;
use crate::definition;
use crate::error::Error;
use jiff::tz::TimeZone;
use std::ops::Range;
use toml::{Spanned, Value as Toml};

/// One embedded test.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) zone: TimeZone,
    pub(crate) lines: String,
    pub(crate) events: Vec<toml::Table>,
    pub(crate) unknown: u64,
}

/// Check the tests of a definition; `error` makes an error at a position.
pub(crate) fn compile(
    error: &dyn Fn(Range<usize>, String) -> Error,
    raw: &[Spanned<definition::Test>],
) -> Result<Vec<Test>, Error> {
    raw.iter()
        .map(|spanned| {
            let test = spanned.get_ref();
            let fail = |message| error(spanned.span(), message);
            for event in &test.events {
                if !matches!(event.get("kind"), Some(Toml::String(_))) {
                    return Err(fail(format!("test `{}`: an event has no `kind`", test.name)));
                }
            }
            let zone = zone(test.zone.as_deref().unwrap_or("UTC")).map_err(fail)?;
            Ok(Test {
                name: test.name.clone(),
                file: test.file.clone().unwrap_or_default(),
                zone,
                lines: test.lines.clone(),
                events: test.events.clone(),
                unknown: test.unknown,
            })
        })
        .collect()
}
