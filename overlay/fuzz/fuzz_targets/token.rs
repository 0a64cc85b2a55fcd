//! Any line as a token: refused in words, or one that is written as it was read. The checksum is put right as
//! well, so that what is behind it is reached.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overlay::identity::token::{parse, text};
use wire::join::Token;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(line) = std::str::from_utf8(bytes) {
        match parse(line) {
            Ok(token) => assert_eq!(parse(&text(&token)), Ok(token)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Ok(token) = postcard::from_bytes::<Token>(bytes) {
        let line = text(&token);
        if let Ok(again) = parse(&line) {
            assert_eq!(again, token);
            assert!(!format!("{again:?}").contains("Secret(["), "a secret is shown");
        }
    }
});
