//! An engine with a test's own filter and lines.
//!
//! Not here: the shipped filters and the collection of logs (`collection`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use log_filters::across::AcrossLogs;
use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use log_filters::found::Found;
use std::sync::Arc;
use wire::time::Time;

/// Compile a filter.
pub(crate) fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::parse("x.toml", text).unwrap())
}

/// An engine at the start of a log of host `h`.
pub(crate) fn engine(filter: &Arc<Filter>) -> Engine {
    engine_among(filter, &AcrossLogs::default())
}

/// An engine for a log that shares values with others.
pub(crate) fn engine_among(filter: &Arc<Filter>, logs: &AcrossLogs) -> Engine {
    let source = Source {
        file_name: "x.log".into(),
        host: "h".into(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    Engine::among(Arc::clone(filter), &source, logs)
}

/// The events in these lines.
pub(crate) fn found<L: AsRef<[u8]>>(engine: &mut Engine, lines: impl IntoIterator<Item = L>) -> Vec<Found> {
    let mut found = Vec::new();
    for line in lines {
        engine.line(line.as_ref(), 0, Time::default(), &mut found);
    }
    found
}
