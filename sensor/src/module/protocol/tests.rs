//! What is accepted of what modules answer, and the errors for what is not.

use super::*;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    let message = result.expect_err("it is wrong").to_string();
    assert!(message.contains(expected), "expected {expected:?} in {message:?}");
}

#[test]
fn a_collector_says_how_often_it_is_to_be_asked() {
    let parsed = hello(br#"{"protocol":1,"name":"gpu counters","kind":"collector","rate":0.5}"#);
    assert_eq!(
        parsed,
        Ok(Hello { name: "gpu counters".into(), wants: ModuleRequest::Collector { rate_hz: 0.5 } })
    );
    let parsed = hello(br#"{"protocol":1,"name":"x","kind":"collector"}"#).expect("good");
    assert_eq!(parsed.wants, ModuleRequest::Collector { rate_hz: 1.0 });
}

#[test]
fn a_handler_says_what_it_wants_in_the_words_of_channels() {
    let parsed = hello(
        br#"{"protocol":1,"name":"plot","kind":"handler","processes":{"rate":64,"filter":"cpu > 0.5 top 5 by cpu",
        "condition":"count > 3"},"events":["job_end"],"metrics":["node_load*"]}"#,
    );
    let ModuleRequest::Handler(flow) = parsed.expect("good").wants else { panic!("a handler") };
    let processes = flow.processes.expect("wanted");
    assert_eq!(
        (processes.rate.hz(), processes.filter.to_string().as_str()),
        (64.0, "cpu > 0.5 top 5 by cpu")
    );
    assert!(processes.condition.is_some());
    assert_eq!((flow.events, flow.metrics), (Some(vec![Kind::JobEnd]), vec!["node_load*".into()]));
}

#[test]
fn what_is_wrong_with_a_hello_is_reported_with_what_was_expected() {
    let check = |line: &str, expected: &str| refused(hello(line.as_bytes()), expected);
    check("", "expected a hello such as {\"protocol\":1");
    check("ready", "found \"ready\"");
    check(r#"{"protocol":2,"name":"x","kind":"collector"}"#, "expected protocol 1 in its hello, found 2");
    check(r#"{"protocol":1,"name":"","kind":"collector"}"#, "name: expected 1 to 64 bytes");
    check("{\"protocol\":1,\"name\":\"a\u{202e}b\",\"kind\":\"collector\"}", "name: expected 1 to 64 bytes");
    check(r#"{"protocol":1,"name":"x","kind":"agent"}"#, "expected `collector` or `handler`");
    check(r#"{"protocol":1,"name":"x","kind":"collector","rat":1}"#, "unknown field `rat`");
    check(
        r#"{"protocol":1,"name":"x","kind":"collector","rate":11}"#,
        "rate: expected 0.0003 to 10 calls a second",
    );
    check(
        r#"{"protocol":1,"name":"x","kind":"collector","events":[]}"#,
        "events: expected none from a collector",
    );
    check(
        r#"{"protocol":1,"name":"x","kind":"handler"}"#,
        "expected processes, events or metrics from a handler",
    );
    check(r#"{"protocol":1,"name":"x","kind":"handler","events":["lunch"]}"#, "found \"lunch\"");
    check(
        r#"{"protocol":1,"name":"x","kind":"handler","processes":{"filter":"cpu >"}}"#,
        "processes.filter: expected a number",
    );
    check(r#"{"protocol":1,"name":"x","kind":"handler","processes":{"rate":5000}}"#, "processes.rate: ");
}

#[test]
fn figures_are_read_with_labels_units_and_whole_numbers() {
    let given = answer(
        br#"{"figures":[{"name":"used","unit":"bytes","labels":{"gpu":"0"},"pid":7,"value":18446744073709551615},
        {"name":"calls_total","semantics":"counter","value":2},{"name":"below","value":-1.5}]}"#,
    )
    .expect("good");
    let labels = vec![("gpu".into(), "0".into()), ("pid".into(), "7".into())];
    assert_eq!((&given[0].labels, given[0].value), (&labels, Number::Whole(u64::MAX)));
    assert_eq!((given[1].semantics, given[1].value), (Semantics::Counter, Number::Whole(2)));
    assert_eq!((given[2].semantics, given[2].value), (Semantics::Gauge, Number::Real(-1.5)));
    assert_eq!(answer(b"{}"), Ok(Vec::new()));
}

#[test]
fn what_is_wrong_with_an_answer_is_reported_with_what_was_expected() {
    let check = |line: &str, expected: &str| refused(answer(line.as_bytes()), expected);
    check("[]", "expected an answer such as {}");
    check(r#"{"figures":[["x",1]]}"#, "expected an object");
    check(r#"{"figures":[{"name":"x","value":NaN}]}"#, "JSON has no NaN");
    check(r#"{"figures":[{"name":"x","value":1e999}]}"#, "number out of range");
    check(r#"{"figures":[{"name":"x","value":"1"}]}"#, "expected a JSON number");
    check(r#"{"figures":[{"name":"x"}]}"#, "missing field `value`");
    check(r#"{"figures":[{"name":"a b","value":1}]}"#, "expected a name of letters, digits and _");
    check(r#"{"figures":[{"name":"x","value":1},{"name":"x","value":2}]}"#, "found x twice");
    check(r#"{"figures":[{"name":"x","labels":{"a b":"c"},"value":1}]}"#, "expected labels named as figures");
    check(
        "{\"figures\":[{\"name\":\"x\",\"labels\":{\"a\":\"b\u{2028}c\"},\"value\":1}]}",
        "without control characters",
    );
    check(r#"{"figures":[{"name":"x","labels":{"pid":"1"},"pid":2,"value":1}]}"#, "expected pid once");
    check(
        "{\"figures\":[{\"name\":\"x\",\"unit\":\"\\u001b[2J\",\"value\":1}]}",
        "without control characters",
    );
    let many: Vec<String> = (0..=FIGURES_MAX).map(|n| format!("{{\"name\":\"f{n}\",\"value\":1}}")).collect();
    check(&format!("{{\"figures\":[{}]}}", many.join(",")), "figures: expected at most 256, found 257");
    check(&format!("{{\"figures\":\"{}\"}}", "x".repeat(ANSWER_LEN_MAX_BYTES)), "longer than 262144 bytes");
    check(&"[".repeat(100_000), "expected an answer such as {}");
}

#[test]
fn a_long_lie_is_reported_in_a_line() {
    let message = answer("\u{1b}[31m\n".repeat(10_000).as_bytes()).expect_err("wrong").to_string();
    assert!(message.len() < 800 && !message.contains('\u{1b}') && !message.contains('\n'), "{message}");
}

#[test]
fn a_call_has_as_many_entries_as_fit_and_at_least_one() {
    let small = [r#"{"what":"a"}"#.to_owned(), r#"{"what":"b"}"#.to_owned()];
    let (line, taken) = call_handle(small.iter());
    assert_eq!((line.as_str(), taken), (r#"{"handle":{"entries":[{"what":"a"},{"what":"b"}]}}"#, 2));
    let large = ["1".repeat(CALL_LEN_MAX_BYTES - 30), "2".repeat(100)];
    let (line, taken) = call_handle(large.iter());
    assert!(taken == 1 && line.len() <= CALL_LEN_MAX_BYTES, "{taken} {}", line.len());
}
