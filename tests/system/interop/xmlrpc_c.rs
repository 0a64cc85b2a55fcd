//! What the command line client of xmlrpc-c sees. It prints values for people, and those are looked for.
//!
//! It cannot send a structure; a method takes a JSON object in one text in its place.

use super::{Sides, USERS, expected};
use system_tests::program;

/// Runs one call; what it printed, a result or a fault.
fn call(address: &str, method: &str, params: &[&str]) -> String {
    let output = program::command("xmlrpc")
        .args([&format!("{address}/RPC2"), method])
        .args(params)
        .env("LANG", "C.UTF-8")
        .output()
        .expect("the xmlrpc program of xmlrpc-c must be installed");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[track_caller]
fn check(told: &str, expected: &str) {
    assert!(told.contains(expected), "xmlrpc-c: expected {expected:?} in {told}");
}

#[test]
fn xmlrpc_c_sees_what_all_see() {
    let sides = Sides::start();
    let [sensor, numbers] = sides.addresses();
    let sensor = |method: &str, params: &[&str]| call(&sensor, method, params);
    let events = sensor("sensor.events", &["{\"limit\": 100}"]);
    for (user, event) in USERS.iter().zip(expected()["events"].as_array().unwrap()) {
        check(&events, user);
        check(&events, event[3].as_str().unwrap());
    }
    check(&events, "Array of 4 items");
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
