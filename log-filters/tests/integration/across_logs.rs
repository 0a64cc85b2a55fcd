//! Values shared between the logs of one product.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter::{engine_among, filter, found};
use log_filters::across::AcrossLogs;
use log_filters::filter::Filter;
use log_filters::found::Change;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use wire::event::Value;

/// A log that names servers.
const NAMING: &str = r#"
[filter]
name = "naming"
scope = "product"
[time]
prefix = ["epoch "]
[[rule]]
match = '^(?P<address>\w+) is (?P<host>\w+)$'
remember = { key = "${address}", values = { host = "${host}" }, across_logs = true }
[[rule]]
match = '^(?P<address>\w+) gone$'
forget = "${address}"
"#;

/// A log that names servers by address only.
const USING: &str = r#"
[filter]
name = "using"
scope = "product"
[[rule]]
match = '^own (?P<address>\w+) (?P<host>\w+)$'
remember = { key = "${address}", values = { host = "${host}" } }
[[rule]]
match = '^use (?P<address>\w+)$'
recall = { keys = ["${address}"], across_logs = ["host"] }
event = "message"
attributes = { host = ["${<host}", "${address}"] }
"#;

static NAMING_READ: LazyLock<Arc<Filter>> = LazyLock::new(|| filter(NAMING));
static USING_READ: LazyLock<Arc<Filter>> = LazyLock::new(|| filter(USING));

/// Host of an event in a log that has only the address.
fn host_of(logs: &AcrossLogs, lines: &[&str]) -> String {
    let found = found(&mut engine_among(&USING_READ, logs), lines);
    let host = found.last().unwrap().content.attribute("host").and_then(Value::as_text);
    host.unwrap().to_owned()
}

#[test]
fn another_log_knows_what_this_one_does_not() {
    let logs = AcrossLogs::default();
    assert_eq!(host_of(&logs, &["use a"]), "a", "read first, it has only what it prints itself");
    let mut naming = engine_among(&NAMING_READ, &logs);
    found(&mut naming, ["10 a is se01"]);
    assert_eq!(host_of(&logs, &["use a"]), "se01");
    assert_eq!(host_of(&logs, &["own a own", "use a"]), "own", "what the log itself remembers holds");
    assert_eq!(host_of(&AcrossLogs::default(), &["use a"]), "a", "another host's logs are not these");
    found(&mut naming, ["11 a gone"]);
    assert_eq!(host_of(&logs, &["use a"]), "a");
    found(&mut naming, ["12 a is se02"]);
    drop(naming);
    assert_eq!(host_of(&logs, &["use a"]), "a", "a log that is no longer read takes its values with it");
}

#[test]
fn what_is_remembered_for_others_is_bounded() {
    let logs = AcrossLogs::default();
    let mut naming = engine_among(&NAMING_READ, &logs);
    let mut changes = Vec::new();
    found(&mut naming, (0..5_000).map(|number| format!("{number} a{number} is h{number}")));
    naming.take_changes(&mut changes);
    assert_eq!(naming.counters().forgotten, 5_000 - 4_096);
    assert_eq!(host_of(&logs, &["use a0"]), "a0");
    assert_eq!(host_of(&logs, &["use a4999"]), "h4999");
    let long = "x".repeat(60_000);
    found(&mut naming, (0..20).map(|number| format!("{number} b{number} is {long}{number}")));
    assert_eq!(host_of(&logs, &["use b0"]), "b0", "bytes are bounded too");
    let others: Vec<_> = (0..100)
        .map(|number| {
            let mut other = engine_among(&NAMING_READ, &logs);
            found(&mut other, [format!("1 c{number} is d")]);
            other
        })
        .collect();
    assert_eq!(others.iter().map(|other| other.counters().forgotten).sum::<u64>(), 100 - 63);
}

#[test]
fn a_name_that_is_not_declared_is_refused() {
    let text =
        USING.replace(", across_logs = [\"host\"]", "").replace("values = { host =", "values = { other =");
    let error = Filter::parse("x.toml", &text).unwrap_err();
    assert!(error.message.contains("no rule remembers a value of this name"), "{error}");
    let names = (0..17).map(|number| format!("\"n{number}\"")).collect::<Vec<_>>().join(", ");
    let error = Filter::parse("x.toml", &USING.replace("[\"host\"]", &format!("[{names}]"))).unwrap_err();
    assert!(error.message.contains("at most 16 are allowed"), "{error}");
}

/// Lines of two logs: which log, time, and text.
fn naming_lines() -> impl Strategy<Value = Vec<(bool, u32, String)>> {
    let line = prop_oneof![4 => "[a-c] is [d-f]", 1 => "[a-c] gone"];
    prop::collection::vec((any::<bool>(), 1u32..20, line), 0..16)
}

/// Expected values after these lines: for each log the last value under a key, of both the later one.
fn expected(lines: &[(bool, u32, String)]) -> BTreeMap<String, String> {
    let mut own: BTreeMap<(bool, String), (u32, String)> = BTreeMap::new();
    for (log, time, line) in lines {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [address, "is", host] => own.insert((*log, address.into()), (*time, host.into())),
            [address, ..] => own.remove(&(*log, address.into())),
            [] => None,
        };
    }
    let mut latest: BTreeMap<String, (u32, String)> = BTreeMap::new();
    for ((_, address), value) in own {
        let known = latest.entry(address).or_default();
        *known = value.max(known.clone());
    }
    latest.into_iter().map(|(address, (_, host))| (address, host)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..Default::default() })]

    /// The order in which the logs are read, a stop after any line and the order in which their state is
    /// restored make no difference.
    #[test]
    fn the_order_of_reading_and_a_stop_make_no_difference(
        lines in naming_lines(),
        stop in 0usize..16,
        is_first_log_first in any::<bool>(),
        by_snapshot in any::<bool>(),
    ) {
        let of = |log: bool| lines.iter().filter(move |line| line.0 == log).collect::<Vec<_>>();
        let logs = AcrossLogs::default();
        let mut engines = Vec::new();
        for log in [is_first_log_first, !is_first_log_first] {
            let own = of(log);
            let stop = stop.min(own.len());
            let text = |line: &&(bool, u32, String)| format!("{} {}", line.1, line.2);
            let elsewhere = AcrossLogs::default();
            let mut before = engine_among(&NAMING_READ, &elsewhere);
            found(&mut before, own[..stop].iter().map(text));
            let mut changes: Vec<Change> = Vec::new();
            if by_snapshot { changes = before.snapshot() } else { before.take_changes(&mut changes) }
            let mut after = engine_among(&NAMING_READ, &logs);
            changes.into_iter().for_each(|change| after.apply(change));
            found(&mut after, own[stop..].iter().map(text));
            engines.push(after);
        }
        let expected = expected(&lines);
        for address in ["a", "b", "c"] {
            let host = expected.get(address).map_or(address, String::as_str);
            prop_assert_eq!(host_of(&logs, &[&format!("use {address}")]), host, "{}", address);
        }
    }
}
