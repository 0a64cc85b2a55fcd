//! Names of the call of one event: one per expression, and one per element of a list.
//!
//! Not here: joining events by their names (`joining`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter;

use log_filters::filter::Filter;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

/// Most names of one event's call, as documented in the format.
const NAMES_MAX: usize = 64;

const FILTER: &str = r#"
[filter]
name = "x"
[calls]
names = ["${.job}", "${.parts|split:,}"]
[[rule]]
match = '^(?P<job>\S*) (?P<parts>\S*)$'
event = "job_start"
job = "${job}"
attributes = { parts = "${parts}" }
"#;

fn names(line: &str) -> Vec<String> {
    static FILTER_READ: LazyLock<Arc<Filter>> = LazyLock::new(|| one_filter::filter(FILTER));
    let found = one_filter::found(&mut one_filter::engine(&FILTER_READ), [line]);
    let keys = found.first().and_then(|found| found.keys.as_ref());
    keys.map(|keys| keys.names.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

#[test]
fn each_element_of_a_list_is_a_name() {
    for (line, expected) in [
        ("7 a:1,a:2", &["7", "a:1", "a:2"][..]),
        ("7 a:1", &["7", "a:1"]),
        ("7 ,,7,a,a,", &["7", "a"]),
        (" a,b", &["a", "b"]),
        (" ", &[]),
    ] {
        assert_eq!(names(line), expected, "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn names_are_distinct_elements_in_order_and_bounded(list in prop::collection::vec("[a-d0-9]{0,2}", 0..400)) {
        let found = names(&format!("job {}", list.join(",")));
        let mut expected = vec!["job".to_owned()];
        for name in list {
            if !name.is_empty() && !expected.contains(&name) {
                expected.push(name);
            }
        }
        expected.truncate(NAMES_MAX);
        prop_assert_eq!(found, expected);
    }
}
