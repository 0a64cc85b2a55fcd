//! The command line client of xmlrpc-c. It prints values for people, and the test searches for them.
//!
//! It cannot send a structure; a method accepts a JSON object as text instead.

use super::{Sides, USERS, expected};
use system_tests::program;

/// Run one call; returns the printed result or fault.
fn call(address: &str, method: &str, params: &[&str]) -> String {
    let output = program::command("xmlrpc")
        .args([&format!("{address}/RPC2"), method])
        .args(params)
        .env("LANG", "C.UTF-8")
        .output()
        .expect("the xmlrpc program of xmlrpc-c must be installed");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

/// Text in the form in which it prints it: bytes outside ASCII as escapes.
fn shown(text: &str) -> String {
    let byte = |byte: u8| match byte {
        0x20..0x7f => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    text.bytes().map(byte).collect()
}

/// The value printed for the last key of this name.
fn value<'a>(printed: &'a str, key: &str) -> &'a str {
    let key = format!("Key:   String: '{key}'");
    let (_, rest) =
        printed.rsplit_once(&key).unwrap_or_else(|| panic!("xmlrpc-c: expected {key} in {printed}"));
    rest.lines().nth(1).unwrap_or_default().trim().trim_start_matches("Value: ")
}

#[track_caller]
fn check(printed: &str, expected: &str) {
    assert!(printed.contains(expected), "xmlrpc-c: expected {expected:?} in {printed}");
}

#[test]
fn xmlrpc_c_sees_what_all_see() {
    let sides = Sides::start();
    let [sensor, numbers] = sides.addresses();
    let sensor = |method: &str, params: &[&str]| call(&sensor, method, params);
    let events = sensor("sensor.events", &["{\"limit\": 100}"]);
    for (user, event) in USERS.iter().zip(expected()["events"].as_array().unwrap()) {
        check(&events, &shown(user));
        check(&events, event[3].as_str().unwrap());
    }
    check(&events, "Array of 4 items");
    assert_eq!(value(&events, "missed"), "Integer: 0");
    let cursor = value(&events, "cursor").trim_start_matches("String: ").trim_matches('\'').to_owned();
    let after = serde_json::json!({ "cursor": cursor }).to_string();
    check(&sensor("sensor.events", &[&after]), "Array of 0 items");
    let large = call(&numbers, "trial.numbers", &[]);
    for (_, number) in expected()["numbers"].as_object().unwrap() {
        check(&large, number.as_str().unwrap());
    }
    check(&sensor("no.such", &[]), "-32601");
    check(&sensor("sensor.events", &["{\"limit\": \"many\"}"]), "-32602");
    let calls = "{\"calls\": [{\"methodName\": \"daemon.info\", \"params\": []}, {\"methodName\": \"no.such\", \"params\": []}]}";
    let several = sensor("system.multicall", &[calls]);
    check(&several, "visperf");
    check(&several, "-32601");
    check(&sensor("system.listMethods", &[]), "sensor.events");
    check(&sensor("system.methodHelp", &["sensor.events"]), "limit");
    check(&sensor("system.methodSignature", &["sensor.events"]), "struct");
}
