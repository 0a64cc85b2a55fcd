//! Equality of names printed by middleware: hosts with and without domain, a less and a more specific job
//! number.
//!
//! Pure. Not here: which of two reports is used (`reported_value`, `progress`).

use compact_str::CompactString;
use wire::event::{Content, Value};

/// Hosts that an event names.
pub(crate) fn hosts_of(content: &Content) -> Vec<CompactString> {
    let of = |name: &str| match content.attribute(name) {
        Some(Value::List(list)) => list.clone(),
        Some(Value::Text(text)) => vec![text.clone()],
        Some(Value::Bytes(_)) | None => Vec::new(),
    };
    let hosts = of("hosts");
    if hosts.is_empty() { of("host") } else { hosts }
}

/// Whether two names are the same host, with or without a domain, or with different ones (NetSolve prints
/// both).
pub(crate) fn same_host(one: &str, other: &str) -> bool {
    let label = |host: &str| -> CompactString {
        let is_address = host.bytes().all(|b| b.is_ascii_digit() || b == b'.') || host.contains(':');
        if is_address { host.into() } else { host.split('.').next().unwrap_or(host).into() }
    };
    one == other || label(one) == label(other)
}

/// Whether `other` is more specific than `known`: `9_0` is, `13` is not.
pub(crate) fn better_job(known: &CompactString, other: &CompactString) -> bool {
    let worth = |job: &CompactString| (job.bytes().any(|b| !b.is_ascii_digit()), job.len());
    (worth(other), other) > (worth(known), known)
}
