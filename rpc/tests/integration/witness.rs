//! Interoperability with other XML-RPC implementations: the `xmlrpc` client crate queries the running server,
//! and `dxr` writes and reads the same values.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served;

use crate::served::{Answer, Served};
use proptest::prelude::*;
use rpc::codec::value::Value;
use rpc::codec::xml_writer::{write_answer, write_value};
use rpc::codec::xmlrpc::parse_call;
use rpc::limits::Limits;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Cursor, Write};
use xmlrpc::{Request, Transport};

/// Transport of the `xmlrpc` crate over a socket of the tests.
struct Socket<'a>(&'a Served);

impl Transport for Socket<'_> {
    type Stream = Cursor<Vec<u8>>;

    fn transmit(self, request: &Request<'_>) -> Result<Self::Stream, Box<dyn Error + Send + Sync>> {
        let mut body = Vec::new();
        request.write_as_xml(&mut body)?;
        let mut http = Vec::new();
        write!(http, "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len())?;
        http.extend(body);
        Ok(Cursor::new(Answer::read(&self.0.exchange(&http)).body.into_bytes()))
    }
}

fn ask(served: &Served, request: Request<'_>) -> Result<xmlrpc::Value, xmlrpc::Error> {
    request.call(Socket(served))
}

#[test]
fn the_xmlrpc_crate_reads_values() {
    let served = Served::start(Limits::default());
    let answer = ask(&served, Request::new("test.counters")).unwrap();
    assert_eq!(answer["small"], xmlrpc::Value::Int(2_147_483_647));
    assert_eq!(answer["beyond_i4"], xmlrpc::Value::Int64(2_147_483_648));
    assert_eq!(answer["beyond_double"], xmlrpc::Value::Int64(9_007_199_254_740_993));
    assert_eq!(answer["top"], xmlrpc::Value::Int64(i64::MAX));
    assert_eq!(answer["unsigned"], xmlrpc::Value::from("18446744073709551615"));
    assert_eq!(answer["user"], xmlrpc::Value::from("J\u{fc}rgen \u{1f600}"));
    assert_eq!(answer["bytes"], xmlrpc::Value::Base64(vec![0, 1, 255]));
    assert_eq!(answer["control"], xmlrpc::Value::Base64(b"a\x01b".to_vec()));
    assert_eq!(answer["time"], xmlrpc::Value::Double(1_700_000_000.123_456));
}

#[test]
fn the_xmlrpc_crate_reads_faults_multicalls_and_introspection() {
    let served = Served::start(Limits::default());
    let error = ask(&served, Request::new("test.fail")).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!((fault.fault_code, &*fault.fault_string), (-32011, "the other host is away, J\u{fc}rgen <&>"));
    let names = ask(&served, Request::new("system.listMethods")).unwrap();
    assert!(names.as_array().unwrap().contains(&"test.echo".into()));
    let help = ask(&served, Request::new("system.methodHelp").arg("test.echo")).unwrap();
    assert!(help.as_str().unwrap().contains("limit: a whole number from 1 to 10000, 100 unless given"));
    let arguments = xmlrpc::Value::Struct([("limit".to_owned(), 7.into())].into());
    let calls = [Request::new("test.echo").arg(arguments), Request::new("test.fail")];
    let both = ask(&served, Request::new_multicall(&calls)).unwrap();
    assert_eq!(both[0][0]["limit"], 7.into());
    assert_eq!(both[1]["faultCode"], (-32011).into());
    let capabilities = ask(&served, Request::new("system.getCapabilities")).unwrap();
    assert_eq!(capabilities["xmlrpc"]["specVersion"], 1.into());
}

/// Values that both dxr and visperf support: no times, no blank names, numbers finite, unsigned numbers
/// within `i64`.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Double),
        any::<String>().prop_filter("XML characters", |text| is_xml(text)).prop_map(Value::Text),
        "[\\r\\n\\t a&<>\"\\]]{0,8}".prop_map(Value::Text),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        let members = prop::collection::btree_map("[!-~\u{e4}][ -~\u{e4}]{0,7}", inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            members.prop_map(Value::object),
        ]
    })
}

fn is_xml(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..))
}

fn to_dxr(value: &Value) -> dxr::Value {
    match value {
        Value::Nil => dxr::Value::Nil,
        Value::Bool(flag) => dxr::Value::Boolean(*flag),
        Value::Int(number) => i32::try_from(*number).map_or(dxr::Value::Long(*number), dxr::Value::Integer),
        Value::UInt(number) => dxr::Value::String(number.to_string()),
        Value::Double(number) => dxr::Value::Double(*number),
        Value::Text(text) => dxr::Value::String(text.clone()),
        Value::Bytes(bytes) => dxr::Value::Base64(bytes.clone()),
        Value::Array(values) => dxr::Value::Array(values.iter().map(to_dxr).collect()),
        Value::Struct(members) => dxr::Value::Struct(
            members.iter().map(|(name, value)| (name.to_string(), to_dxr(value))).collect::<BTreeMap<_, _>>(),
        ),
    }
}

proptest! {
    #[test]
    fn what_we_write_we_and_dxr_read(value in values()) {
        let mut xml = String::new();
        write_value(&mut xml, &value);
        let request = served::call("a.b", &format!("<param>{xml}</param>"));
        let read = parse_call(request.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(&read.params, &vec![value.clone()]);
        let theirs = dxr::MethodResponse::from_xml(&write_answer(&value));
        prop_assert!(theirs.is_ok(), "{}", write_answer(&value));
    }

    #[test]
    fn what_dxr_writes_we_read(value in values()) {
        // dxr does not escape carriage returns, which every XML parser turns into line feeds.
        let request = dxr::MethodCall { name: "a.b".into(), params: vec![to_dxr(&value)] }.to_xml().unwrap();
        prop_assume!(!request.contains('\r'));
        let read = parse_call(request.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(read.params, vec![value]);
    }
}
