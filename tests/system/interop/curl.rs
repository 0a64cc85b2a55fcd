//! curl as a client, over JSON.

use super::{Sides, check};
use serde_json::{Value, json};
use system_tests::program;

/// Post parameters to a method; returns the answer, parsed with all digits.
fn call(address: &str, method: &str, params: &Value) -> Value {
    let output = program::command("curl")
        .args(["--silent", "--show-error", "--max-time", "30", "--data", &params.to_string()])
        .args(["--header", "Content-Type: application/json", &format!("{address}/api/v1/{method}")])
        .output()
        .expect("curl must be installed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl ended with {}: {complaint}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method}: {error}: {text}"))
}

#[test]
fn curl_sees_what_all_see() {
    let sides = Sides::start();
    let [sensor, numbers] = sides.addresses();
    let sensor = |method: &str, params: &Value| call(&sensor, method, params);
    let answer = sensor("sensor.events", &json!({ "limit": 100 }));
    let after = sensor("sensor.events", &json!({ "cursor": answer["cursor"] }));
    let large = call(&numbers, "trial.numbers", &json!({}));
    let calls = json!({ "calls": [
        { "methodName": "daemon.info", "params": [] },
        { "methodName": "no.such", "params": [] },
    ] });
    let several = sensor("system.multicall", &calls);
    let about = json!({ "name": "sensor.events" });
    let time = |event: &Value| format!("{:.6}", event["time"].as_f64().unwrap());
    let event = |event: &Value| json!([event["kind"], event["user"], event["job"], time(event)]);
    let digits = |(name, value): (&String, &Value)| (name.clone(), json!(value.to_string()));
    let seen = json!({
        "events": answer["events"].as_array().unwrap().iter().map(event).collect::<Vec<_>>(),
        "missed": answer["missed"],
        "after": after["events"].as_array().map(Vec::len),
        "numbers": large.as_object().unwrap().iter().map(digits).collect::<serde_json::Map<_, _>>(),
        "unknown": sensor("no.such", &json!({}))["error"]["code"],
        "bad": sensor("sensor.events", &json!({ "limit": "many" }))["error"]["code"],
        "multicall": [several[0][0]["name"], several[1]["faultCode"]],
        "listed": sensor("system.listMethods", &json!({})).as_array().unwrap().contains(&json!("sensor.events")),
        "help": sensor("system.methodHelp", &about).as_str().unwrap().contains("limit"),
        "signature": sensor("system.methodSignature", &about)[0][0],
    });
    check("curl", &seen);
}
