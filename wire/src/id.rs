//! Identifiers of domains, hosts, daemons and files: one newtype each, so that they cannot be confused.
//!
//! Pure. A name is checked where it enters from outside (`TryFrom`); a value of the type is valid.

mod host_name;

pub use host_name::NoMemberName;

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest domain or host name, in bytes (a DNS name's limit, RFC 1035 section 2.3.4).
pub const NAME_LEN_MAX_BYTES: usize = 253;

/// Error of an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is empty.
    #[error("{what} is empty; expected 1 to {NAME_LEN_MAX_BYTES} letters, digits, '.', '_' or '-'")]
    Empty {
        /// Kind of name.
        what: &'static str,
    },
    /// The name is longer than [`NAME_LEN_MAX_BYTES`].
    #[error("{what} has {len_bytes} bytes; expected at most {NAME_LEN_MAX_BYTES}")]
    TooLong {
        /// Kind of name.
        what: &'static str,
        /// Length of the name.
        len_bytes: usize,
    },
    /// The name contains an invalid character.
    #[error(
        "{what} holds {found:?}; expected letters, digits, '.', '_' or '-', beginning with a letter or digit"
    )]
    Character {
        /// Kind of name.
        what: &'static str,
        /// The first invalid character.
        found: char,
    },
}

fn check(what: &'static str, name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::Empty { what });
    }
    if name.len() > NAME_LEN_MAX_BYTES {
        return Err(Error::TooLong { what, len_bytes: name.len() });
    }
    let bad =
        |(at, c): (usize, char)| !(c.is_ascii_alphanumeric() || (at > 0 && matches!(c, '.' | '_' | '-')));
    match name.char_indices().find(|&found| bad(found)) {
        Some((_, found)) => Err(Error::Character { what, found }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(try_from = "CompactString", into = "CompactString")]
        pub struct $type(CompactString);

        impl $type {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<&str> for $type {
            type Error = Error;
            fn try_from(name: &str) -> Result<$type, Error> {
                check($what, name).map(|()| $type(name.into()))
            }
        }

        impl TryFrom<CompactString> for $type {
            type Error = Error;
            fn try_from(name: CompactString) -> Result<$type, Error> {
                check($what, &name).map(|()| $type(name))
            }
        }

        impl From<$type> for CompactString {
            fn from(name: $type) -> CompactString {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// Name of a domain: a named set of hosts, such as `UT-ICL` (visPerf section 3.3). Not a DNS name.
    #[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
    DomainName,
    "domain name"
);
name!(
    /// Name of a host as its sensor spells it. Compared as DNS compares names, ignoring case and a final dot,
    /// so that one host is not counted twice.
    HostName,
    "host name"
);

impl HostName {
    /// Whether `name` is a spelling of this name.
    #[must_use]
    pub fn is_spelled(&self, name: &str) -> bool {
        host_name::folded(&self.0).eq(host_name::folded(name))
    }

    /// Check that a member of a domain may have this name: it names one host, and the same one everywhere.
    ///
    /// # Errors
    /// If every host has that name, or it is an address, or longer than DNS can represent with a final dot.
    pub fn check_member(&self) -> Result<(), NoMemberName> {
        host_name::check_member(&self.0)
    }
}

impl PartialEq for HostName {
    fn eq(&self, other: &HostName) -> bool {
        self.is_spelled(&other.0)
    }
}

impl Eq for HostName {}

impl PartialOrd for HostName {
    fn partial_cmp(&self, other: &HostName) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HostName {
    fn cmp(&self, other: &HostName) -> std::cmp::Ordering {
        host_name::folded(&self.0).cmp(host_name::folded(&other.0))
    }
}

impl std::hash::Hash for HostName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        host_name::folded(&self.0).for_each(|byte| state.write_u8(byte));
        state.write_u8(0xff);
    }
}

/// Public key of a daemon (ed25519), which identifies it to other daemons.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PeerKey(pub [u8; 32]);

/// Prefix of an ed25519 key in a libp2p peer id: identity multihash of 36 bytes, key type 1, 32 bytes.
const PEER_ID_HEAD: [u8; 6] = [0x00, 0x24, 0x08, 0x01, 0x12, 0x20];

impl PeerKey {
    /// Extract the key from the bytes of a libp2p peer id; `None` if the key is of another type.
    #[must_use]
    pub fn from_peer_id(bytes: &[u8]) -> Option<PeerKey> {
        bytes.strip_prefix(&PEER_ID_HEAD)?.try_into().ok().map(PeerKey)
    }
}

/// The peer id, as other libp2p programs print it: `12D3KooW…`, base58 (libp2p specification, "Peer Ids").
impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut id = [0; 38];
        id[..6].copy_from_slice(&PEER_ID_HEAD);
        id[6..].copy_from_slice(&self.0);
        f.write_str(&bs58::encode(id).into_string())
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error of a text that is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is no key of a daemon; expected 52 letters and digits beginning with 12D3KooW, as its start prints"
)]
pub struct NoPeerKey {
    /// The invalid text.
    pub found: String,
}

impl std::str::FromStr for PeerKey {
    type Err = NoPeerKey;
    fn from_str(text: &str) -> Result<PeerKey, NoPeerKey> {
        let refuse = || NoPeerKey { found: text.chars().take(80).collect() };
        let mut id = [0; 38];
        // The size of the buffer limits the cost of a long text.
        let len = bs58::decode(text).onto(&mut id).map_err(|_| refuse())?;
        PeerKey::from_peer_id(&id[..len]).ok_or_else(refuse)
    }
}

/// Key of a sensor: it makes the event ids of two sensors different. Generated once, stored in the state
/// folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SensorKey(pub u64);

impl fmt::Display for SensorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Formatted digit by digit for speed: it is in every event of an answer.
        let digit = |nth: usize| char::from(b"0123456789abcdef"[(self.0 >> (60 - 4 * nth)) as usize & 0xf]);
        let digits: [u8; 16] = std::array::from_fn(|nth| digit(nth) as u8);
        f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

/// Generation of a log file: replaced, truncated or newly created content is another generation. Numbered by
/// the sensor from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation(pub u32);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_written_as_libp2p_writes_it() {
        // The example of the libp2p specification, "Peer Ids".
        let text = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA";
        let key: PeerKey = text.parse().expect("a key");
        assert_eq!(key.to_string(), text);
        for bad in
            ["", "12D3KooW", "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N", "0OIl", &"1".repeat(5000)]
        {
            assert!(bad.parse::<PeerKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_has_one_name_however_it_is_spelled() {
        use std::collections::{BTreeSet, HashSet};
        let host = |name: &str| HostName::try_from(name).expect(name);
        let spellings = ["wn01.Site", "WN01.site", "wn01.site.", "wn01.site.."].map(host);
        assert_eq!(spellings.iter().collect::<BTreeSet<_>>().len(), 1);
        assert_eq!(spellings.iter().collect::<HashSet<_>>().len(), 1);
        assert!(host("wn01") != host("wn01.site") && host("wn1") < host("WN2") && host("WN1") < host("wn2"));
        assert!(host("a1").is_spelled("A1.") && !host("a1").is_spelled("a11"));
        assert_eq!(host("WN01.site.").as_str(), "WN01.site.", "shown as it was written");
        // The signed and stored text is the spelling itself, as in earlier versions.
        let bytes = postcard::to_stdvec(&host("A2.")).expect("encoded");
        assert_eq!(bytes, postcard::to_stdvec("A2.").expect("encoded"));
    }

    #[test]
    fn names_are_checked() {
        for good in ["UT-ICL", "a", "wn01.alpha.example", "9node_x"] {
            assert_eq!(DomainName::try_from(good).expect(good).as_str(), good);
        }
        let long = "x".repeat(254);
        for bad in ["", "-x", ".x", "a b", "a/b", "é", long.as_str()] {
            assert!(HostName::try_from(bad).is_err(), "{bad}");
        }
    }
}
