//! A rule that recalls several keys: data of two earlier lines in one event.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter;

use log_filters::filter::Filter;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use wire::event::{Content, Value};

const FILTER: &str = r#"
[filter]
name = "x"
[[rule]]
match = '^know (?P<key>\w+) (?P<name>[ab])=(?P<value>\w+)$'
remember = { key = "${key}", values = { a = { value = "${name}", map = { a = "${value}" } }, b = { value = "${name}", map = { b = "${value}" } } } }
[[rule]]
match = '^say (?P<first>\w+) (?P<second>\w+)$'
recall = { keys = ["${first}", "${second}"] }
event = "message"
attributes = { a = "${<a}", b = "${<b}" }
"#;

fn said(lines: &[String]) -> Vec<Content> {
    static FILTER_READ: LazyLock<Arc<Filter>> = LazyLock::new(|| one_filter::filter(FILTER));
    let mut engine = one_filter::engine(&FILTER_READ);
    let found = one_filter::found(&mut engine, lines);
    assert_eq!(engine.counters().unknown, 0);
    found.into_iter().map(|found| found.content).collect()
}

fn text(content: &Content, name: &str) -> Option<String> {
    content.attribute(name).and_then(Value::as_text).map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_first_key_that_has_a_name_gives_its_value(
        known in prop::collection::vec(("[p-r]", "[ab]", "[0-9]"), 0..12),
        first in "[p-s]",
        second in "[p-s]",
    ) {
        let mut lines: Vec<String> =
            known.iter().map(|(key, name, value)| format!("know {key} {name}={value}")).collect();
        lines.push(format!("say {first} {second}"));
        let memory: BTreeMap<(&str, &str), &str> =
            known.iter().map(|(key, name, value)| ((key.as_str(), name.as_str()), value.as_str())).collect();
        let contents = said(&lines);
        prop_assert_eq!(contents.len(), 1);
        for name in ["a", "b"] {
            let of = |key: &str| memory.get(&(key, name)).map(|value| (*value).to_owned());
            prop_assert_eq!(text(&contents[0], name), of(&first).or_else(|| of(&second)), "{}", name);
        }
    }
}

#[test]
fn too_many_keys_and_none_are_refused() {
    for (keys, is_allowed) in [("", false), ("'k', 'k', 'k', 'k'", true), ("'k', 'k', 'k', 'k', 'k'", false)]
    {
        let rule = format!("[filter]\nname = \"x\"\n[[rule]]\nmatch = 'a'\nrecall = {{ keys = [{keys}] }}\n");
        let read = Filter::parse("x.toml", &rule);
        assert_eq!(read.is_ok(), is_allowed, "{keys}");
        if let Err(error) = read {
            assert!(error.message.contains("1 to 4 are allowed") && error.line == 5, "{error}");
        }
    }
}
