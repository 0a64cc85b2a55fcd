//! What one log of a product remembers for another log survives rotation and every kind of stop.

use crate::tail::rig::Rig;
use compact_str::CompactString;
use log_filters::across::AcrossLogs;
use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use sensor::tail::interpret::{Filters, Interpret};
use std::path::Path;
use std::sync::Arc;
use wire::event::Value;

const NAMING: &str = r#"
[filter]
name = "naming"
scope = "product"
[[rule]]
match = '^(?P<address>\w+) is (?P<host>\w+)$'
remember = { key = "${address}", values = { host = "${host}" }, across_logs = true }
"#;

const USING: &str = r#"
[filter]
name = "using"
scope = "product"
[[rule]]
match = '^use (?P<address>\w+)$'
recall = { keys = ["${address}"], across_logs = ["host"] }
event = "workload"
attributes = { host = ["${<host}", "${address}"] }
"#;

/// The filters of a sensor that starts: they know only what its journal holds.
struct TwoFilters(AcrossLogs);

impl Filters for TwoFilters {
    fn choose(&self, _: Option<&str>, path: &Path, _: &[u8]) -> Option<CompactString> {
        let name = path.file_name()?.to_string_lossy();
        Some(if name.starts_with("naming") { "naming" } else { "using" }.into())
    }

    fn interpreter(&self, filter: &str, _: &Path, _: &str) -> Option<Box<dyn Interpret>> {
        let filter = Filter::parse(filter, if filter == "naming" { NAMING } else { USING }).unwrap();
        let source = Source {
            file_name: "log".into(),
            host: "h".into(),
            cluster: String::new(),
            zone: jiff::tz::TimeZone::UTC,
        };
        Some(Box::new(Engine::among(Arc::new(filter), &source, &self.0)))
    }
}

fn hosts(rig: &Rig) -> Vec<String> {
    let host = |event: &wire::event::Event| {
        event.content.attribute("host").and_then(Value::as_text).map(str::to_owned)
    };
    rig.events().iter().filter_map(host).collect()
}

fn started() -> Rig {
    let mut rig = Rig::new("*");
    rig.filters = Some(|| Box::new(TwoFilters(AcrossLogs::default())));
    rig.append("naming", "a is se01\nb is se02\n");
    rig.append("using", "use c\n");
    rig.start();
    assert_eq!(hosts(&rig), ["c"]);
    rig
}

#[test]
fn values_for_other_logs_survive_rotation_and_a_kill() {
    let mut rig = started();
    rig.append("using", "use a\n");
    rig.look();
    assert_eq!(hosts(&rig), ["c", "se01"]);
    rig.rename("naming", "naming.1");
    rig.append("naming", "c is se03\n");
    rig.look();
    rig.kill();
    rig.start();
    rig.append("using", "use a\nuse b\nuse c\n");
    rig.look();
    assert_eq!(hosts(&rig), ["c", "se01", "se01", "se02", "se03"]);
}

#[test]
fn values_for_other_logs_survive_orderly_stops() {
    let mut rig = started();
    for _ in 0..3 {
        rig.stop();
        rig.start();
    }
    rig.append("using", "use b\n");
    rig.look();
    assert_eq!(hosts(&rig), ["c", "se02"]);
}
