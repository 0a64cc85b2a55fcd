//! Any bytes as an XML-RPC request: read or refused, and what was read is written and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::limits::Limits;
use rpc::codec::xml_writer::write_value;
use rpc::codec::xmlrpc::parse_call;

fuzz_target!(|body: &[u8]| {
    let limits = Limits::default();
    match parse_call(body, &limits) {
        Err(fault) => assert!(fault.message.len() < 400, "a fault repeats little of its request"),
        Ok(call) => {
            let mut params = String::new();
            for value in &call.params {
                params.push_str("<param>");
                write_value(&mut params, value);
                params.push_str("</param>");
            }
            let again = format!("<methodCall><methodName>m</methodName><params>{params}</params></methodCall>");
            // Writing may take more elements and bytes than the request did, never another value.
            let larger = Limits { nodes: 1 << 20, body_bytes: 64 << 20, ..limits };
            let again = parse_call(again.as_bytes(), &larger).expect("what is written can be read");
            assert_eq!(again.params, call.params);
        }
    }
});
