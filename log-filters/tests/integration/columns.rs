//! Logs with header lines that name the columns.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter::{engine, filter, found};
use log_filters::filter::Filter;
use log_filters::found::{Change, Found};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

const FILTER: &str = r#"
[filter]
name = "x"
[fields]
separator = "|"
header = '(?:^|\|)JobID(?:\||$)'
[[rule]]
match = ''
event = "message"
job = "${=JobID}"
user = "${=User}"
attributes = { state = "${=State}" }
"#;

static FILTER_READ: LazyLock<Arc<Filter>> = LazyLock::new(|| filter(FILTER));

fn shown(found: &[Found]) -> Vec<(String, String, String)> {
    let state =
        |one: &Found| one.content.attribute("state").and_then(|value| value.as_text()).map(str::to_owned);
    found
        .iter()
        .map(|one| {
            (one.content.job.to_string(), one.content.user.to_string(), state(one).unwrap_or_default())
        })
        .collect()
}

#[test]
fn lines_that_do_not_fit_the_columns_are_unknown() {
    let mut engine = engine(&FILTER_READ);
    let lines = ["0|before|any header", "JobID|User", "1|aliu", "2|x|root", "3", "User|JobID|", "bkumar|4|"];
    let events = found(&mut engine, lines);
    let text = |text: &str| text.to_owned();
    assert_eq!(shown(&events), [(text("1"), text("aliu"), text("")), (text("4"), text("bkumar"), text(""))]);
    assert_eq!(engine.counters().unknown, 3);
}

#[test]
fn a_header_without_a_separator_or_beside_pairs_is_refused() {
    for (from, to, expected) in [
        ("separator = \"|\"", "", "give the `separator`"),
        ("separator = \"|\"", "separator = \"|\"\npairs = true", "leave out `pairs`"),
    ] {
        let error = Filter::parse("x.toml", &FILTER.replace(from, to)).unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// The order of the columns, and a stop after any line, make no difference.
    #[test]
    fn columns_are_found_by_name_in_any_order(
        rows in prop::collection::vec(("[0-9]{1,3}", "[a-z ]{0,4}", "[A-Z]{0,3}"), 0..6),
        order in Just(vec!["JobID", "User", "State", "Other"]).prop_shuffle(),
        stop in 0usize..8,
    ) {
        let line = |row: &(String, String, String)| {
            let cell = |name: &&str| match *name { "JobID" => row.0.as_str(), "User" => &row.1, "State" => &row.2, _ => "-" };
            order.iter().map(cell).collect::<Vec<_>>().join("|")
        };
        let lines: Vec<String> = std::iter::once(order.join("|")).chain(rows.iter().map(line)).collect();
        let stop = stop.min(lines.len());
        let mut before = engine(&FILTER_READ);
        let mut events = found(&mut before, &lines[..stop]);
        let mut changes: Vec<Change> = Vec::new();
        before.take_changes(&mut changes);
        let mut after = engine(&FILTER_READ);
        changes.into_iter().for_each(|change| after.apply(change));
        events.extend(found(&mut after, &lines[stop..]));
        prop_assert_eq!(shown(&events), rows);
    }
}
