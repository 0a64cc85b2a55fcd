//! Limits on the cost of filters and logs: hostile filters are refused at the position of the excess, and the
//! worst lines and the most calls stay within limits.
//!
//! Each limit has a control: a filter within it is accepted.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::one_filter;

use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use log_filters::registry::Registry;
use std::sync::Arc;
use wire::event::{Content, Value};
use wire::time::Time;

const HEAD: &str = "[filter]\nname = \"x\"\n";
const RULE: &str = "[[rule]]\nmatch = 'a'\n";

/// A filter that is refused at a line for a reason, and one within the limit.
struct Case {
    what: &'static str,
    refused: String,
    line: usize,
    says: &'static str,
    accepted: String,
}

fn case(what: &'static str, line: usize, says: &'static str, text: impl Fn(bool) -> String) -> Case {
    Case { what, refused: text(true), line, says, accepted: text(false) }
}

/// The limit, or one more.
fn more(is_more: bool, limit: usize) -> usize {
    limit + usize::from(is_more)
}

/// `head`, then `count` times `item`.
fn times(head: &str, item: &str, count: usize) -> String {
    format!("{HEAD}{head}{}", item.repeat(count))
}

/// Expressions nested to the depth `depth`.
fn nested(depth: usize) -> String {
    let mut text = "'x'".to_owned();
    for _ in 1..depth {
        text = format!("[{text}]");
    }
    format!("{HEAD}[[rule]]\nmatch = 'a'\nevent = 'message'\njob = {text}\n")
}

fn list(key: &str, table: &str, item: &str, count: usize) -> String {
    let lines = format!("  {item},\n").repeat(count);
    format!("{HEAD}{RULE}[{table}]\n{key} = [\n{lines}]\n")
}

/// Lists in the head with too many elements.
fn lists() -> Vec<Case> {
    vec![
        case("names", 7 + 128, "at most 128 are allowed", |is_more| {
            list("names", "files", "'x*.log'", more(is_more, 128))
        }),
        case("a glob", 7, "at most 1024 are allowed", |is_more| {
            list("names", "files", &format!("'{}'", "x".repeat(more(is_more, 1024))), 1)
        }),
        case("first lines", 7 + 64, "at most 64 are allowed", |is_more| {
            list("first_lines", "files", "'x'", more(is_more, 64))
        }),
        case("stamps", 7 + 32, "at most 32 are allowed", |is_more| {
            list("prefix", "time", "'%Y '", more(is_more, 32))
        }),
        case("records", 6 + 16 * 3, "at most 16 are allowed", |is_more| {
            times(RULE, "[[record]]\nstart = 'a'\ncontinue = 'b'\n", more(is_more, 16))
        }),
        case("lines of a record", 8, "expected 1 to 10000", |is_more| {
            let lines = more(is_more, 10_000);
            format!("{HEAD}{RULE}[[record]]\nstart = 'a'\ncontinue = 'b'\nmax_lines = {lines}\n")
        }),
    ]
}

/// References that could never give a value.
fn references() -> Vec<Case> {
    vec![
        case("pairs", 6, "write `pairs = true` in [fields]", |is_more| {
            let pairs = if is_more { "" } else { "[fields]\npairs = true\n" };
            format!("{HEAD}{RULE}event = 'message'\njob = '${{=job}}'\n{pairs}")
        }),
        case("fields", 6, "give [fields] a `separator`", |is_more| {
            let fields = if is_more { "" } else { "[fields]\nseparator = ':'\n" };
            format!("{HEAD}{RULE}event = 'message'\njob = '${{#3}}'\n{fields}")
        }),
        case("what is recalled", 6, "write `recall = KEY`", |is_more| {
            let recall = if is_more { "" } else { "recall = 'k'\n" };
            let remember = "[rule.remember]\nkey = 'k'\n[rule.remember.values]\njob = '1'\n";
            format!("{HEAD}{RULE}event = 'message'\njob = '${{<job}}'\n{recall}{remember}")
        }),
        case("what is remembered", 7, "remembered are job", |is_more| {
            let name = if is_more { "jbo" } else { "job" };
            let remember = "[rule.remember]\nkey = 'k'\n[rule.remember.values]\njob = '1'\n";
            format!("{HEAD}{RULE}event = 'message'\nrecall = 'k'\njob = '${{<{name}}}'\n{remember}")
        }),
        case("parts of the name", 6, "there are host, cluster, file", |is_more| {
            let name = if is_more { "site" } else { "host" };
            format!("{HEAD}{RULE}event = 'message'\njob = '${{@{name}}}'\n")
        }),
        case("fields of the event", 6, "is for [calls] and `call`", |is_more| {
            let name = if is_more { "${.user}" } else { "7" };
            format!("{HEAD}{RULE}event = 'message'\njob = '{name}'\ncall = {{ names = ['${{.job}}'] }}\n")
        }),
    ]
}

/// Rules with too many or too large parts.
fn sizes() -> Vec<Case> {
    vec![
        case("bytes", 1, "at most 1048576 are allowed", |is_more| {
            let text = format!("{HEAD}{RULE}#");
            let rest = more(is_more, 1 << 20) - text.len();
            format!("{text}{}", "x".repeat(rest))
        }),
        case("rules", 3 + 256 * 2, "at most 256 are allowed", |is_more| times("", RULE, more(is_more, 256))),
        case("a pattern", 4, "at most 4096 are allowed", |is_more| {
            format!("{HEAD}[[rule]]\nmatch = '{}'\n", "a".repeat(more(is_more, 4096)))
        }),
        case("alternatives", 4, "at most 1024 are allowed", |is_more| {
            format!("{HEAD}[[rule]]\nmatch = [{}]\n", "'a', ".repeat(more(is_more, 1024)))
        }),
        case("a compiled pattern", 4, "compiles to more than 1048576 bytes", |is_more| {
            format!("{HEAD}[[rule]]\nmatch = '(?:[^a]{{{}}}){{100}}'\n", if is_more { 1_000 } else { 10 })
        }),
        case("nesting of a pattern", 4, "exceed the maximum number of nested", |is_more| {
            let depth = more(is_more, 62);
            let depth = depth + usize::from(is_more) * 10;
            format!("{HEAD}[[rule]]\nmatch = '{}a{}'\n", "(".repeat(depth), ")".repeat(depth))
        }),
        case("all unless", 3 + 40 * 3 - 1, "8388608 compiled bytes", |is_more| {
            let one =
                |number: usize| format!("[[rule]]\nmatch = 'a'\nunless = '(?:[^a]{{{number}}}){{40}}'\n");
            let rules: String = (0..40).map(|number| one(if is_more { 200 + number } else { 2 })).collect();
            format!("{HEAD}{rules}")
        }),
        case("further events", 4, "at most 16 are allowed", |is_more| {
            times(RULE, "[[rule.also]]\nevent = 'message'\n", more(is_more, 16))
        }),
        case("attributes", 5, "at most 128 are allowed", |is_more| {
            let each: String = (0..more(is_more, 128)).map(|n| format!("a{n} = 'x'\n")).collect();
            format!("{HEAD}{RULE}event = 'message'\n[rule.attributes]\n{each}")
        }),
        case("nesting of an expression", 6, "nested more than 16 deep", |is_more| nested(more(is_more, 16))),
        case("nesting of the file", 6, "max recursion depth", |is_more| {
            nested(if is_more { 4_000 } else { 16 })
        }),
    ]
}

#[test]
fn what_is_too_much_is_refused_at_its_place() {
    for case in sizes().into_iter().chain(lists()).chain(references()) {
        let Case { what, refused, line, says, accepted } = case;
        let error = Filter::parse("x.toml", &refused).expect_err(what);
        assert!(error.message.contains(says), "{what}: {error}");
        assert_eq!((error.line, error.file.as_str()), (line, "x.toml"), "{what}: {error}");
        assert!(error.column > 0 && error.message.len() < 10_000, "{what}: {error}");
        if let Err(error) = Filter::parse("x.toml", &accepted) {
            panic!("{what}: within the limit, and refused: {error}");
        }
    }
}

/// Every filter reads the worst lines, each between two of its own: no panic, the events of them are bounded,
/// and the next line is read normally.
#[test]
fn the_worst_lines_cost_no_more_than_themselves() {
    let registry = Registry::shipped();
    let worst: [Vec<u8>; 5] = [
        vec![b'a'; 10 << 20],
        vec![0; 1 << 20],
        vec![0xff; 1 << 20],
        b": = ; | \" ".repeat(100_000),
        b"[2026-11-20T12:00:00.000] sched: Allocate JobId=1 NodeList=n[1-9999999] #CPUs=1 Partition=p"
            .to_vec(),
    ];
    for filter in registry.iter() {
        let source = Source {
            file_name: "log".into(),
            host: "host".into(),
            cluster: String::new(),
            zone: jiff::tz::TimeZone::UTC,
        };
        let seen = Time::from_micros(1_795_219_200_000_000);
        for line in &worst {
            let (mut engine, mut found) = (Engine::new(Arc::clone(filter), &source), Vec::new());
            engine.line(line, 0, seen, &mut found);
            engine.line(b"after", line.len() as u64, seen, &mut found);
            engine.idle(seen, &mut found);
            let bytes: usize = found.iter().map(|found| len_bytes(&found.content)).sum();
            assert!(
                found.len() <= 17 && bytes <= 8 << 20,
                "{}: {} events, {bytes} bytes",
                filter.name(),
                found.len()
            );
            assert_eq!(engine.counters().lines, 2, "{}", filter.name());
        }
    }
    // The control: the last line's data are reported, up to the limit of a list.
    let slurm = registry.get("slurmctld").unwrap();
    let (mut engine, mut found) = (one_filter::engine(slurm), Vec::new());
    engine.line(&worst[4], 0, Time::default(), &mut found);
    assert!(found.len() == 1 && len_bytes(&found[0].content) > 1_000, "{found:?}");
}

fn len_bytes(content: &Content) -> usize {
    let len = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.iter().map(|text| text.len()).sum(),
        Value::Bytes(bytes) => bytes.len(),
    };
    content.job.len()
        + content.to.len()
        + content.attributes.iter().map(|(_, value)| len(value)).sum::<usize>()
}
