//! Hostile filters: each is refused, or runs within bounds.
//!
//! Each filter is tried in a separate process, whose memory and CPU time the system limits and which reports
//! its peak memory. A refusal names line and column.
//! Not here: a filter that is only slow (`slow_filter`), hostile lines (the fuzz targets of `log-filters`).

use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use system_tests::program;
use wire::time::Time;

/// Environment variable that names the filter to try in this process.
const ROLE: &str = "VISPERF_HOSTILE_FILTER";
/// Most memory for trying one filter, in KiB: the limits of a compiled filter, and this program.
const PEAK_MAX_KIB: u64 = 96 << 10;
/// Memory limit that the system enforces on a trial: far more than is asserted, so that a failure is reported
/// and not only a crash.
const SIZE_MAX_KIB: u64 = 3 << 20;
/// CPU time in seconds that the system allows a trial.
const WORK_MAX_SECS: u64 = 60;

/// Report of a trial.
#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    refused: Option<String>,
    events: usize,
    bytes: usize,
    peak_kib: u64,
}

/// Expected outcome of a filter.
enum Expected {
    /// Refused, with this text in the message.
    Refused(&'static str),
    /// Refused or accepted, but within bounds.
    Bounded,
    /// Accepted, and a line gives an event.
    Accepted,
}
use Expected::{Accepted, Bounded, Refused};

struct Case {
    name: &'static str,
    filter: String,
    line: Vec<u8>,
    expected: Expected,
}

fn rule(pattern: &str) -> String {
    format!("[[rule]]\nmatch = '{pattern}'\nevent = \"message\"\n")
}

fn filter(rules: &str) -> String {
    format!("[filter]\nname = \"hostile\"\n{rules}")
}

fn case(name: &'static str, rules: String, line: impl Into<Vec<u8>>, expected: Expected) -> Case {
    Case { name, filter: filter(&rules), line: line.into(), expected }
}

/// Patterns that are too large or not regular.
fn patterns() -> Vec<Case> {
    let nested = |depth: usize| format!("{}a{}", "(?:".repeat(depth), ")".repeat(depth));
    let long_choice = (0..1000).map(|n| format!("a{n:02}")).collect::<Vec<_>>().join("|");
    vec![
        case("repeats of repeats", rule("(?:(?:a{100}){100}){100}"), "a", Refused("compiles to more")),
        case("a wide repeat", rule("[a-z]{60000}"), "a", Refused("compiles to more")),
        case(
            "repeats of a class of all letters",
            rule(r"(?u:\p{L}{1000})"),
            "a",
            Refused("compiles to more"),
        ),
        case("deep nesting", rule(&nested(500)), "a", Refused("nest")),
        case("a long pattern", rule(&"x".repeat(4097)), "x", Refused("at most 4096")),
        case("many alternatives", rule(&long_choice[..4000]), "a13", Accepted),
        case("look-ahead", rule("a(?=b)"), "a", Refused("look-ahead")),
        case("a back-reference", rule(r"(a)\1"), "aa", Refused("back-references")),
        case("a repeat of nothing", rule("(?:){1000000}"), "a", Bounded),
        case("counted repeats in a row", rule(&"(?:a?){50}".repeat(60)), "a".repeat(3000), Bounded),
    ]
}

/// Filters that are large as a whole.
fn wholes() -> Vec<Case> {
    let many = |count: usize| (0..count).map(|n| rule(&format!("^a{n} "))).collect::<String>();
    let large =
        |count: usize| (0..count).map(|n| rule(&format!("^{n}[a-z]{{900}}.{{900}}"))).collect::<String>();
    let alternatives = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| format!("'{n}[a-z]{{900}}.{{900}}'")).collect();
        format!("[[rule]]\nmatch = [{}]\nevent = \"message\"\n", all.join(", "))
    };
    let comments = "# and so on\n".repeat(100_000);
    vec![
        case("256 rules", many(256), "a255 ", Accepted),
        case("257 rules", many(257), "a255 ", Refused("at most 256")),
        case("256 large rules", large(256), "a", Refused("")),
        case("20,000 large alternatives", alternatives(20_000), "a", Refused("")),
        case("a long file", comments, "a", Refused("at most 1048576")),
        case("an unknown key", format!("{}unlimited = true\n", rule("a")), "a", Refused("unlimited")),
        case("deep TOML", format!("x = {}1{}\n", "[".repeat(50_000), "]".repeat(50_000)), "a", Refused("")),
    ]
}

/// Small filters, with lines that make them expensive.
fn works() -> Vec<Case> {
    let filter = |value: &str| {
        format!("[[rule]]\nmatch = '^(?P<x>.*)$'\nevent = \"message\"\nattributes = {{ y = \"{value}\" }}\n")
    };
    let growing = format!("${{x{}}}", "|replace:a,aaaaaaaaaaaaaaaa".repeat(12));
    let joined = format!("${{x|split:b{}}}", "|join:bbbbbbbbbbbbbbbb|split:a".repeat(12));
    let copies = format!("{{ event = \"message\", attributes = {{ {} }} }}", copied("${x}", 60));
    let also = format!("[[rule]]\nmatch = '^(?P<x>.*)$'\nalso = [{}]\n", vec![copies; 60].join(", "));
    let back = |end: &str| [b"a".repeat(256 << 10), end.as_bytes().to_vec()].concat();
    vec![
        case("nested repeats", rule("^(?:a+)+$"), back("!"), Bounded),
        case("overlapping alternatives", rule("^(?:a|aa)+$"), back("!"), Bounded),
        case("stars in a row", rule("^.*.*.*.*.*.*.*x$"), back("!"), Bounded),
        case("a counted end", rule("a[^b]{900}$"), back("b"), Bounded),
        case("a text that grows", filter(&growing), "a".repeat(1000), Bounded),
        case("a list that grows", filter(&joined), "ab".repeat(1000), Bounded),
        case("hosts of hosts", filter("${x|hostlist}"), "n[0-9999][0-9999],m[1-99999999]", Bounded),
        case(
            "long names of hosts",
            filter("${x|hostlist}"),
            [b"[0-65535]".to_vec(), back("")].concat(),
            Bounded,
        ),
        case("a line many times over", also, "a".repeat(1 << 20), Bounded),
        case("key after key", remembering(), "a", Bounded),
    ]
}

fn copied(value: &str, times: usize) -> String {
    (0..times).map(|n| format!("y{n} = \"{value}\"")).collect::<Vec<_>>().join(", ")
}

fn remembering() -> String {
    "[[rule]]\nmatch = '^(?P<x>.*)$'\nremember = { key = \"${x}\", values = { y = \"${x}\" } }\n".to_owned()
}

fn cases() -> Vec<Case> {
    [patterns(), wholes(), works()].into_iter().flatten().collect()
}

/// Not a test by itself: it runs in the process of a trial. Without the variable it does nothing.
#[test]
fn trial() {
    let Ok(name) = std::env::var(ROLE) else { return };
    let case = cases().into_iter().find(|case| case.name == name).unwrap();
    let mut outcome = Outcome { refused: None, events: 0, bytes: 0, peak_kib: 0 };
    match Filter::parse("hostile.toml", &case.filter) {
        Err(error) => outcome.refused = Some(error.to_string()),
        Ok(filter) => read(filter, &case.line, &mut outcome),
    }
    outcome.peak_kib = peak_kib();
    println!("\n{}", serde_json::to_string(&outcome).unwrap());
}

fn read(filter: Filter, line: &[u8], outcome: &mut Outcome) {
    let source = Source {
        file_name: "hostile.log".into(),
        host: "host".into(),
        cluster: String::new(),
        zone: log_filters::calendar::zone("UTC").unwrap(),
    };
    let mut engine = Engine::new(Arc::new(filter), &source);
    for number in 0..4_u64 {
        let mut found = Vec::new();
        engine.line(line, number << 32, Time::from_micros(1), &mut found);
        outcome.events += found.len();
        let sizes = found.iter().flat_map(|found| &found.content.attributes);
        outcome.bytes += sizes.map(|(_, value)| format!("{value:?}").len()).sum::<usize>();
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Try one filter in a separate process.
fn try_apart(name: &str) -> Result<Outcome, String> {
    let limits = format!("ulimit -v {SIZE_MAX_KIB} && ulimit -t {WORK_MAX_SECS} && ulimit -c 0");
    let script = format!("{limits} && exec \"$0\" --exact hostile_filters::trial --nocapture");
    let output = program::command("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{'));
    let line = line.ok_or_else(|| {
        format!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    })?;
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[test]
fn hostile_filters_are_refused_or_bounded() {
    let mut problems = Vec::new();
    for Case { name, expected, .. } in cases() {
        let outcome = match try_apart(name) {
            Ok(outcome) => outcome,
            Err(problem) => {
                problems.push(format!("{name}: {problem}"));
                continue;
            }
        };
        println!(
            "{name}: {} KiB, {} events, refused: {:?}",
            outcome.peak_kib, outcome.events, outcome.refused
        );
        let mut complain = |problem: String| problems.push(format!("{name}: {problem}"));
        if outcome.peak_kib > PEAK_MAX_KIB {
            complain(format!("expected at most {PEAK_MAX_KIB} KiB, found {}", outcome.peak_kib));
        }
        match (expected, &outcome.refused) {
            (Refused(reason), Some(message)) if message.contains(reason) && is_placed(message) => {}
            (Accepted, None) if outcome.events > 0 => {}
            (Bounded, None) => {}
            (Bounded, Some(message)) if is_placed(message) => {}
            (Refused(reason), found) => {
                complain(format!("expected a refusal with {reason:?}, found {found:?}"))
            }
            (Accepted | Bounded, found) => complain(format!("found {found:?} and {} events", outcome.events)),
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// Whether the message starts with `hostile.toml:LINE:COLUMN: …`
fn is_placed(message: &str) -> bool {
    let mut parts = message.split(':');
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok()).is_some();
    message.starts_with("hostile.toml:") && {
        number();
        number() && number()
    }
}

#[test]
fn a_trial_beyond_its_limits_is_seen() {
    assert!(is_placed("hostile.toml:3:9: no"));
    assert!(!is_placed("hostile.toml: no"));
    assert!(try_apart("no such filter").is_err());
    let usual = try_apart("256 rules").unwrap();
    assert!(usual.peak_kib > 1 << 10, "a process takes more than {} KiB", usual.peak_kib);
}
