//! The Rust crate `xmlrpc` as a client.

use super::{Sides, check};
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Cursor;
use std::net::SocketAddr;
use system_tests::query;
use xmlrpc::{Request, Transport, Value};

/// Transport of the crate over this test's HTTP, as in `visperf call`; the crate writes and reads the XML.
struct Post(SocketAddr);

impl Transport for Post {
    type Stream = Cursor<Vec<u8>>;

    fn transmit(self, request: &Request<'_>) -> Result<Self::Stream, Box<dyn Error + Send + Sync>> {
        let mut body = Vec::new();
        request.write_as_xml(&mut body)?;
        let (status, answer) = query::post(self.0, "/RPC2", "text/xml", std::str::from_utf8(&body)?)?;
        if status == 200 {
            Ok(Cursor::new(answer.into_bytes()))
        } else {
            Err(format!("status {status}").into())
        }
    }
}

fn call(address: SocketAddr, request: &Request<'_>) -> Result<Value, i32> {
    match request.call(Post(address)) {
        Ok(value) => Ok(value),
        Err(error) => Err(error.fault().unwrap_or_else(|| panic!("{error}")).fault_code),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Double(number) => format!("{number:.6}"),
        other @ (Value::Bool(_)
        | Value::DateTime(_)
        | Value::Base64(_)
        | Value::Struct(_)
        | Value::Array(_)
        | Value::Nil) => panic!("expected a number or text, found {other:?}"),
    }
}

fn parameters(members: &[(&str, &str)]) -> Value {
    Value::Struct(members.iter().map(|(name, text)| ((*name).to_owned(), (*text).into())).collect())
}

#[test]
fn the_rust_client_sees_what_all_see() {
    let sides = Sides::start();
    let sensor = |request: Request<'_>| call(sides.sensor, &request);
    let answer = sensor(Request::new("sensor.events")).unwrap();
    let cursor = text(&answer["cursor"]);
    let after = sensor(Request::new("sensor.events").arg(parameters(&[("cursor", &cursor)]))).unwrap();
    let numbers = call(sides.numbers.address, &Request::new("trial.numbers")).unwrap();
    let several = Request::new_multicall([&Request::new("daemon.info"), &Request::new("no.such")]);
    let several = sensor(several).unwrap();
    let listed = sensor(Request::new("system.listMethods")).unwrap();
    let help = text(&sensor(Request::new("system.methodHelp").arg("sensor.events")).unwrap());
    let signature = sensor(Request::new("system.methodSignature").arg("sensor.events")).unwrap();
    let names = ["small", "beyond_53_bits", "most", "least", "unsigned"];
    let large: BTreeMap<_, _> = names.into_iter().map(|name| (name, text(&numbers[name]))).collect();
    let event = |event: &Value| json!(["kind", "user", "job", "time"].map(|name| text(&event[name])));
    let seen = json!({
        "events": answer["events"].as_array().unwrap().iter().map(event).collect::<Vec<_>>(),
        "missed": answer["missed"].as_i32(),
        "after": after["events"].as_array().map(<[Value]>::len),
        "numbers": large,
        "unknown": sensor(Request::new("no.such")).err(),
        "bad": sensor(Request::new("sensor.events").arg(parameters(&[("limit", "many")]))).err(),
        "multicall": [json!(text(&several[0][0]["name"])), json!(several[1]["faultCode"].as_i32())],
        "listed": listed.as_array().unwrap().contains(&Value::from("sensor.events")),
        "help": help.contains("limit"),
        "signature": text(&signature[0][0]),
    });
    check("the Rust client", &seen);
}
