//! Memory of subscriptions: little for each, and none after they have ended.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use allocation_counter::measure;
use sensor::channel::subscription::CompiledRequest;
use std::time::Duration;
use wire::channel::{ChannelRequest, Kind, expression};

/// As many as a sensor has at a time.
const SUBSCRIPTIONS: usize = 256;
/// Limit for one subscription, with a filter and a script.
const SUBSCRIPTION_MAX_BYTES: i64 = 64 << 10;
/// Retained by the library after all of them have ended.
const REST_MAX_BYTES: i64 = 64 << 10;

fn subscription(nth: usize) -> CompiledRequest {
    let kind = Kind::ALL[nth % Kind::ALL.len()];
    let script = "state.n = records.len(); let x = [1, 2].map(|y| y * 2); #{ n: state.n }";
    let filter = match kind {
        Kind::Process => "name ~ \"^[a-z]+sh$\"",
        Kind::Host => "name ~ \"^node_\"",
        Kind::Event | Kind::Call => "job ~ \"^[0-9]+$\"",
    };
    let filter = expression::filter(filter).unwrap();
    let wanted =
        ChannelRequest { kind, filter, script: Some(script.to_owned()), ..ChannelRequest::default() };
    CompiledRequest::new(wanted, || Duration::ZERO).unwrap()
}

#[test]
fn a_subscription_takes_little_and_leaves_nothing() {
    // Excludes what is built once, for the first subscription of each kind.
    let first: Vec<CompiledRequest> = (0..Kind::ALL.len()).map(subscription).collect();
    drop(first);
    let mut all = Vec::new();
    let taken = measure(|| all = (0..SUBSCRIPTIONS).map(subscription).collect()).bytes_current;
    let each = taken / i64::try_from(SUBSCRIPTIONS).unwrap();
    assert!(each <= SUBSCRIPTION_MAX_BYTES, "{each} bytes of one subscription");
    let rest = taken + measure(|| drop(all)).bytes_current;
    assert!(rest <= REST_MAX_BYTES, "{rest} bytes are left of {SUBSCRIPTIONS} subscriptions that ended");
}
