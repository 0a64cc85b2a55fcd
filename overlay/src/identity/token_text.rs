//! Token texts: lines that a person copies from one host to another (tokens, certificates signed by the root,
//! and signed orders).
//!
//! ```text
//! prefix | base32, lower case, of: postcard of the value | first 4 bytes of its SHA-256
//! ```
//!
//! Pure. Rules: letters and digits after the prefix, so that a double click selects them all; white space and
//! capitals that mail programs insert do not matter; an error says whether a letter is mistyped or the line
//! is damaged.

use data_encoding::BASE32_NOPAD;
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

/// Longest line: with every address at its maximum length.
const LEN_MAX_BYTES: usize = 64 << 10;

const CHECK_LEN_BYTES: usize = 4;

/// A kind of token text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its prefix; the digit is its version.
    pub prefix: &'static str,
    /// Its name in messages.
    pub what: &'static str,
    /// The command that prints it.
    pub made_by: &'static str,
}

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It has another prefix, or is too long.
    #[error("this is no {}: expected a line beginning with {}, as `{}` prints it", kind.what, kind.prefix, kind.made_by)]
    Prefix {
        /// The expected kind.
        kind: Kind,
    },
    /// It has a character outside of the base32 alphabet.
    #[error(
        "character {at} of the {what} is mistyped: expected letters a to z and digits 2 to 7; copy it again"
    )]
    Letter {
        /// The expected kind.
        what: &'static str,
        /// Position of the character, from 1; white space is not counted.
        at: usize,
    },
    /// Letters are wrong or missing.
    #[error("the {what} is mistyped or cut: its checksum does not match; copy the whole line again")]
    Checksum {
        /// The expected kind.
        what: &'static str,
    },
    /// The checksum is right, but the content cannot be decoded.
    #[error("the {what} is whole but cannot be read: {reason}; was it made by a newer visperf?")]
    Content {
        /// The expected kind.
        what: &'static str,
        reason: String,
    },
}

/// Encode `value` as a line.
pub(super) fn write<T: Serialize>(kind: Kind, value: &T) -> String {
    let mut bytes = postcard::to_stdvec(value).expect("plain data is encoded");
    bytes.extend_from_slice(&checksum(&bytes));
    format!("{}{}", kind.prefix, BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

/// Decode the value in a line.
pub(super) fn read<T: DeserializeOwned>(kind: Kind, line: &str) -> Result<T, Error> {
    let Kind { prefix, what, .. } = kind;
    if line.len() > LEN_MAX_BYTES {
        return Err(Error::Prefix { kind });
    }
    let letters: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let head = letters.get(..prefix.len()).filter(|head| head.eq_ignore_ascii_case(prefix));
    let body = letters[head.ok_or(Error::Prefix { kind })?.len()..].to_ascii_uppercase();
    let is_letter = |c: char| c.is_ascii_uppercase() || ('2'..='7').contains(&c);
    if let Some(at) = body.chars().position(|c| !is_letter(c)) {
        return Err(Error::Letter { what, at: prefix.len() + at + 1 });
    }
    // The only error left is an end in the middle of a byte.
    let bytes = BASE32_NOPAD.decode(body.as_bytes()).map_err(|_| Error::Checksum { what })?;
    let (content, check) = bytes.split_last_chunk::<CHECK_LEN_BYTES>().ok_or(Error::Checksum { what })?;
    if checksum(content) != *check {
        return Err(Error::Checksum { what });
    }
    match postcard::take_from_bytes::<T>(content) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(too_much(kind)),
        Err(error) => Err(Error::Content { what, reason: error.to_string() }),
    }
}

/// Error for a value that exceeds its bounds.
pub(super) fn too_much(kind: Kind) -> Error {
    Error::Content { what: kind.what, reason: format!("it holds more than a {} may", kind.what) }
}

fn checksum(bytes: &[u8]) -> [u8; CHECK_LEN_BYTES] {
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(bytes));
    [a, b, c, d]
}
