//! Faults of a look-up: the domain left, is not known yet, or is not known.
//!
//! Rule: the fault for an unknown domain names the known ones, at most `KNOWN_LISTED_MAX`.
//! Not here: the methods that answer with them (`methods`, `discovery`, and the daemons that forward).

use crate::handle::Handle;
use rpc::fault::Fault;
use std::time::Duration;
use wire::id::DomainName;

/// Most domains listed in the error for an unknown domain.
const KNOWN_LISTED_MAX: usize = 10;

/// Fault for a domain that left `age` ago.
#[must_use]
pub fn left(domain: &DomainName, age: Duration) -> Fault {
    let secs = age.as_secs();
    Fault::not_found(format!("no domain {domain} any more; its representative said so {secs} s ago"))
}

/// Fault for a domain that a directory may still learn, because it has just started.
#[must_use]
pub fn not_yet(domain: &DomainName) -> Fault {
    Fault::new(
        wire::fault::UNAVAILABLE,
        format!(
            "domain {domain} is not known yet: this directory has just started; ask again in some seconds"
        ),
    )
}

/// Fault for a domain that this directory does not know.
#[must_use]
pub fn unknown(handle: &Handle, domain: &DomainName) -> Fault {
    match known_words(handle.names(KNOWN_LISTED_MAX + 1)) {
        Some(known) => Fault::not_found(format!("no domain {domain}; {known}")),
        None => Fault::not_found(format!(
            "no domain {domain}; no domain is known yet; its representative has to register first"
        )),
    }
}

/// Text that lists the known domains, for a client that named another: `known are A, B and more; …`. `None`
/// without domains.
pub fn known_words(names: impl IntoIterator<Item = DomainName>) -> Option<String> {
    let mut known: Vec<String> =
        names.into_iter().take(KNOWN_LISTED_MAX + 1).map(|name| name.to_string()).collect();
    match known.len() {
        0 => None,
        _ if known.len() > KNOWN_LISTED_MAX => {
            known.truncate(KNOWN_LISTED_MAX);
            Some(format!("known are {} and more; ask directory.domains for all", known.join(", ")))
        }
        _ => Some(format!("known are {}", known.join(", "))),
    }
}
