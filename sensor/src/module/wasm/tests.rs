//! Modules in the text form of WebAssembly, correct and malicious.

use super::*;

/// A module with memory, an `alloc` that always returns the same offset, and `more`.
fn open(more: &str) -> Result<(Instance, Tail), Error> {
    let text = format!(
        r#"(module (import "visperf" "log" (func $log (param i32 i32)))
           (memory (export "memory") 2)
           (func (export "alloc") (param i32) (result i32) (i32.const 1024)) {more})"#
    );
    let (bytes, tail) = (wat::parse_str(text).expect("it is WebAssembly"), Tail::default());
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    Instance::new(&bytes, limits, tail.clone()).map(|instance| (instance, tail))
}

/// A module whose function `call` has this body.
fn does(body: &str) -> Result<(Instance, Tail), Error> {
    open(&format!(r#"(func (export "call") (param i32 i32) (result i64) {body})"#))
}

#[track_caller]
fn fails(body: &str, expected: &str) {
    let (mut instance, _) = does(body).expect("it is a module");
    let message = instance.call("{}").expect_err("it must not go on").to_string();
    assert!(message.contains(expected), "expected {expected:?} in {message:?}");
}

#[test]
fn a_line_goes_in_and_another_comes_out() {
    // Returns the line without its first and last byte.
    let echo = "local.get 1 i32.const 2 i32.sub i64.extend_i32_u
                local.get 0 i32.const 1 i32.add i64.extend_i32_u i64.const 32 i64.shl i64.or";
    let (mut instance, _) = does(echo).expect("good");
    for line in ["(a)", "{\"collect\":{}}", "()"] {
        assert_eq!(instance.call(line).expect("it answers"), line.as_bytes()[1..line.len() - 1]);
    }
}

#[test]
fn what_it_logs_is_kept() {
    let (mut instance, tail) = does(
        "(call $log (local.get 0) (local.get 1)) (call $log (i32.const -8) (i32.const 100)) i64.const 0",
    )
    .expect("good");
    assert_eq!(instance.call("hello").expect("it answers"), b"");
    assert_eq!(tail.lines(), ["hello"], "a place outside of its memory holds nothing");
}

#[test]
fn an_endless_loop_runs_out_of_fuel_and_the_next_call_has_its_own() {
    fails("(loop br 0) i64.const 0", "it computed for too long");
    // Nine tenths of the fuel of a call: the fuel is refilled for each call.
    let much = "(local i32) (loop (br_if 0 (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1)))
                (i32.const 3000000)))) i64.const 0";
    let (mut instance, _) = does(much).expect("good");
    for _ in 0..5 {
        assert!(instance.call("{}").is_ok());
    }
}

#[test]
fn memory_is_bounded() {
    // Grows by 64 KiB until that is refused, and returns the number of pages as the length of its answer.
    let bomb =
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) memory.size i64.extend_i32_u";
    let (mut instance, _) = does(bomb).expect("good");
    assert_eq!(instance.call("{}").expect("it answers").len(), 16, "a MiB, as it was given");
    let message = open("(memory 100)").err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("expected WebAssembly"), "{message}");
}

#[test]
fn places_outside_of_its_memory_are_refused() {
    fails("i64.const 0xffff_ff00_0000_0100", "call: expected a place within its memory of 131072 bytes");
    fails("i64.const 0x0001_ff00_0000_0101", "found 257 bytes at 130816");
    fails("i64.const 0x0000_0000_ffff_ffff", "expected an answer of at most 262144 bytes");
    let text = r#"(module (memory (export "memory") 1)
        (func (export "alloc") (param i32) (result i32) (i32.const -1))
        (func (export "call") (param i32 i32) (result i64) i64.const 0))"#;
    let bytes = wat::parse_str(text).expect("it is WebAssembly");
    let mut instance = Instance::new(&bytes, Limits::default(), Tail::default()).expect("good");
    let message = instance.call("{}").expect_err("nowhere").to_string();
    assert!(message.starts_with("alloc: expected a place"), "{message}");
    fails("(i64.load (i32.const 131072))", "it was stopped");
}

#[test]
fn traps_and_deep_calls_are_reported() {
    fails("unreachable", "it was stopped");
    let deep = r#"(func $deep (export "call") (param i32 i32) (result i64)
        (call $deep (local.get 0) (local.get 1)))"#;
    let (mut instance, _) = open(deep).expect("good");
    assert!(instance.call("{}").is_err());
}

#[test]
fn what_is_no_module_of_ours_is_reported_with_what_was_expected() {
    let check = |bytes: &[u8]| {
        let message =
            Instance::new(bytes, Limits::default(), Tail::default()).err().expect("refused").to_string();
        assert!(message.contains("exports memory, alloc(i32)->i32 and call(i32,i32)->i64"), "{message}");
    };
    check(b"#!/bin/sh\n");
    check(&wat::parse_str("(module)").expect("good"));
    check(&wat::parse_str(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#).expect("good"));
    check(&wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "alloc")))"#).expect("good"));
}
