//! Cost of the worst bodies: at most 4 times their own size in memory (or 2 MiB for small ones), and little
//! time.
//!
//! One test per binary, because the allocator counts the whole process.
#![allow(clippy::unwrap_used)] // a failure here is a failed test

use allocation_counter::measure;
use rpc::codec::json::parse_params;
use rpc::codec::xmlrpc::parse_call;
use rpc::limits::Limits;
use std::time::{Duration, Instant};

/// Small bodies may cost this much in all: 10,000 parts of some 60 bytes, in tables that grow by doubling.
const SMALL_BYTES: usize = 2 << 20;
/// Time limit for one body; a build without optimization is some ten times slower.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
/// The shortest of this many runs counts, because the machine may pause.
const RUNS: usize = 5;

/// The highest memory usage of `run` above the usage before, and its shortest time.
#[allow(clippy::disallowed_methods)] // it measures time
fn cost(run: impl Fn()) -> (usize, Duration) {
    let runs = (0..RUNS).map(|_| {
        let start = Instant::now();
        let memory = measure(&run);
        (memory.bytes_max, start.elapsed())
    });
    runs.fold((0, Duration::MAX), |(peak, shortest), (bytes, time)| {
        (peak.max(usize::try_from(bytes).unwrap()), shortest.min(time))
    })
}

fn wrap(inner: &str) -> Vec<u8> {
    format!("<methodCall><methodName>m</methodName><params><param><value>{inner}</value></param></params></methodCall>")
        .into_bytes()
}

#[test]
fn the_worst_bodies_cost_little() {
    let limits = Limits::default();
    let mega = (1 << 20) - 300;
    let member = |at: usize| format!("<member><name>n{at}</name><value>1</value></member>");
    let xml: Vec<(&str, Vec<u8>)> = vec![
        ("one text", wrap(&"x".repeat(mega))),
        ("escapes", wrap(&"&amp;".repeat(mega / 5))),
        ("references", wrap(&"&#65;".repeat(9_000))),
        ("carriage returns", wrap(&"\r\n".repeat(mega / 2))),
        ("empty values", wrap(&format!("<array><data>{}</data></array>", "<value/>".repeat(9_900)))),
        ("members", wrap(&format!("<struct>{}</struct>", (0..1_400).map(member).collect::<String>()))),
        ("base64", wrap(&format!("<base64>{}</base64>", "AAAA".repeat(mega / 4 - 10)))),
        ("broken base64", wrap(&format!("<base64>{}</base64>", "AAA ".repeat(mega / 4 - 10)))),
        ("deep", "<value><array><data>".repeat(mega / 20).into_bytes()),
        ("one long tag", wrap(&format!("<{}/>", "x".repeat(mega)))),
        ("one long attribute", wrap(&format!("<int a='{}'/>", "x".repeat(mega)))),
        ("attributes", wrap(&format!("<int {}/>", "a='' ".repeat(mega / 5)))),
        ("comments", wrap(&"<!---->".repeat(mega / 7))),
        ("one long comment", wrap(&format!("<!--{}-->", "-x".repeat(mega / 2)))),
        ("nothing closed", wrap(&"<".repeat(mega))),
        (
            "latin 1",
            [b"<?xml version='1.0' encoding='ISO-8859-1'?>".to_vec(), wrap(&"x".repeat(mega - 100)).clone()]
                .concat(),
        ),
        ("high latin 1", {
            let mut body = b"<?xml version='1.0' encoding='ISO-8859-1'?>".to_vec();
            body.extend(
                wrap(&"x".repeat(mega - 100)).iter().map(|byte| if *byte == b'x' { 0xFC } else { *byte }),
            );
            body
        }),
    ];
    for (name, body) in &xml {
        assert!(body.len() <= limits.body_bytes, "{name} is refused before it costs anything");
        check(name, body.len(), cost(|| drop(parse_call(body, &limits))));
    }
    let json: Vec<(&str, String)> = vec![
        ("one text", format!("{{\"a\":\"{}\"}}", "x".repeat(mega))),
        ("escapes", format!("{{\"a\":\"{}\"}}", "\\u00fc".repeat(mega / 6))),
        ("empty values", format!("{{\"a\":[{}0]}}", "0,".repeat(9_900))),
        ("deep", "[".repeat(mega)),
        (
            "members",
            format!("{{{}\"z\":0}}", (0..9_000).map(|at| format!("\"{at}\":0,")).collect::<String>()),
        ),
    ];
    for (name, body) in &json {
        check(name, body.len(), cost(|| drop(parse_params(body.as_bytes(), &limits))));
    }
}

#[allow(clippy::print_stdout)] // the figures are the point of running it with --nocapture
fn check(name: &str, length: usize, (bytes, time): (usize, Duration)) {
    let at_most = (4 * length).max(SMALL_BYTES);
    println!("{name:<20} {length:>8} bytes: {bytes:>8} held, {time:?}");
    assert!(bytes <= at_most, "{name}: {length} bytes of body held {bytes}");
    assert!(time <= TIME, "{name}: {length} bytes of body took {time:?}");
}
