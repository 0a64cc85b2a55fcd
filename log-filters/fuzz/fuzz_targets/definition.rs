//! Any text as a filter: refused with a place inside it, or accepted, and then its own tests and any line run
//! without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use std::sync::Arc;
use wire::time::Time;

fuzz_target!(|text: &str| {
    match Filter::parse("fuzz.toml", text) {
        Err(error) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
        }
        Ok(filter) => {
            let filter = Arc::new(filter);
            let _ = log_filters::test_lines::run(&filter);
            let source = Source {
                file_name: "fuzz.log".into(),
                host: "h".into(),
                cluster: String::new(),
                zone: jiff::tz::TimeZone::UTC,
            };
            let mut engine = Engine::new(filter, &source);
            let (mut found, seen) = (Vec::new(), Time::from_micros(1_795_219_200_000_000));
            for (number, line) in text.lines().enumerate() {
                engine.line(line.as_bytes(), number as u64, seen, &mut found);
            }
            engine.idle(seen, &mut found);
        }
    }
});
