//! What subscriptions hold in memory: little each, and nothing once they have ended.
//!
//! One test in one binary, for the allocator counts the whole process.
#![allow(clippy::unwrap_used)] // a failure here is a failed test

use sensor::channel::subscription::Prepared;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wire::channel::{Kind, Wanted, expression};

/// The system's allocator, counting the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code)] // an allocator cannot be written otherwise; it only counts and passes on
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// As many as a sensor has at a time.
const SUBSCRIPTIONS: usize = 256;
/// Of one, with a filter and a script.
const SUBSCRIPTION_MAX_BYTES: usize = 64 << 10;
/// What the library keeps for later: of all together.
const REST_MAX_BYTES: usize = 64 << 10;

fn subscription(nth: usize) -> Prepared {
    let kind = Kind::ALL[nth % Kind::ALL.len()];
    let script = "state.n = records.len(); let x = [1, 2].map(|y| y * 2); #{ n: state.n }";
    let filter = match kind {
        Kind::Process => "name ~ \"^[a-z]+sh$\"",
        Kind::Host => "name ~ \"^node_\"",
        Kind::Event | Kind::Call => "job ~ \"^[0-9]+$\"",
    };
    let filter = expression::filter(filter).unwrap();
    let wanted = Wanted { kind, filter, script: Some(script.to_owned()), ..Wanted::default() };
    Prepared::new(wanted, || Duration::ZERO).unwrap()
}

#[test]
fn a_subscription_takes_little_and_leaves_nothing() {
    // What is built once, at the first of each kind.
    let first: Vec<Prepared> = (0..Kind::ALL.len()).map(subscription).collect();
    drop(first);
    let before = IN_USE.load(Ordering::Relaxed);
    let all: Vec<Prepared> = (0..SUBSCRIPTIONS).map(subscription).collect();
    let each = (IN_USE.load(Ordering::Relaxed) - before) / SUBSCRIPTIONS;
    assert!(each <= SUBSCRIPTION_MAX_BYTES, "{each} bytes of one subscription");
    drop(all);
    let rest = IN_USE.load(Ordering::Relaxed).saturating_sub(before);
    assert!(rest <= REST_MAX_BYTES, "{rest} bytes are left of {SUBSCRIPTIONS} subscriptions that ended");
}
