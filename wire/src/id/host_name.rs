//! Comparison of host names, and the names that no member of a domain may have.
//!
//! Pure. Rule: a name is stored and signed as it was given; only comparisons normalize it.
//! Not here: the characters of a name (`id`).

use super::NAME_LEN_MAX_BYTES;

/// Names by which every host calls itself, alone or as the first or last label (RFC 6761 section 6.3,
/// `/etc/hosts` of the usual distributions).
const LOOPBACK: [&str; 5] = ["localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"];

/// Zones that every network has locally.
const ZONES: [&str; 2] = ["local", "localdomain"];

/// Most numbers in the text of an IPv4 address, which may have fewer than four (inet_aton(3)).
const NUMBERS_MAX: usize = 4;

/// Error of a host name that no member of a domain may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} cannot be the name of a domain's host: {why}; name the host with --host NAME")]
pub struct NoMemberName {
    /// The name, or the start of it.
    pub found: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// Normalized bytes, for comparisons.
pub(super) fn folded(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.trim_end_matches('.').bytes().map(|byte| byte.to_ascii_lowercase())
}

pub(super) fn check_member(name: &str) -> Result<(), NoMemberName> {
    let plain = name.trim_end_matches('.').to_ascii_lowercase();
    let mut labels = plain.split('.');
    let first = labels.next().unwrap_or_default();
    let last = labels.next_back().unwrap_or(first);
    let why = if plain.len() >= NAME_LEN_MAX_BYTES {
        "it has 253 characters or more, and DNS carries 252 and a final dot"
    } else if LOOPBACK.contains(&first) || LOOPBACK.contains(&last) || ZONES.contains(&plain.as_str()) {
        "each host has that name for itself"
    } else if is_address(&plain) {
        "it is an address"
    } else {
        return Ok(());
    };
    Err(NoMemberName { found: name.chars().take(80).collect(), why })
}

/// Whether a resolver treats it as an IPv4 address: up to four numbers, decimal, octal or hexadecimal. An
/// IPv6 address contains characters that no name has.
fn is_address(plain: &str) -> bool {
    let is_number = |label: &str| match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    };
    plain.split('.').count() <= NUMBERS_MAX && plain.split('.').all(is_number)
}
