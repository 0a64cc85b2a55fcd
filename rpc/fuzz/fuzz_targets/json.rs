//! Any bytes as the JSON body of a request: read or refused, and what was read is written and read back
//! the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rpc::codec::json::{parse_params, write_answer};
use rpc::limits::Limits;

fuzz_target!(|body: &[u8]| {
    let limits = Limits::default();
    match parse_params(body, &limits) {
        Err(fault) => assert!(fault.message.len() < 400, "a fault repeats little of its request"),
        Ok(values) => {
            for value in values {
                let larger = Limits { body_bytes: 64 << 20, ..limits.clone() };
                let again = parse_params(write_answer(&value).as_bytes(), &larger);
                assert_eq!(again, Ok(vec![value]), "what is written can be read");
            }
        }
    }
});
