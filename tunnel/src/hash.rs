//! Hash functions for proofs of a secret, plain and keyed: SHA-256, and MD5 for accounts that have nothing
//! else.
//!
//! Pure. Rule: keyed hashes are HMAC (RFC 2104), for both functions; MD5 is never keyed by prepending the
//! secret to the data. Collisions of MD5 do not affect HMAC or Digest, but new uses should avoid it (RFC
//! 6151).
//! Not here: the hashed data (`digest`, `challenge`).

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use sha2::{Digest as _, Sha256};
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// Weak; for accounts imported from older systems.
    Md5,
    /// The default.
    Sha256,
}

/// Result of a keyed hash. Comparison takes constant time.
#[derive(Clone)]
pub struct Tag(Vec<u8>);

impl Tag {
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Truncate to the first `len_bytes` (RFC 2104, section 5).
    #[must_use]
    pub fn cut(mut self, len_bytes: usize) -> Tag {
        self.0.truncate(len_bytes);
        self
    }

    /// Whether `other` is equal, in a time that depends only on its length.
    #[must_use]
    pub fn fits(&self, other: &[u8]) -> bool {
        self.0.as_slice().ct_eq(other).into()
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({} bytes)", self.0.len())
    }
}

impl Algorithm {
    /// Name of the algorithm in HTTP Digest (RFC 7616, section 6.1).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
        }
    }

    /// Look up an algorithm by its name, ignoring case.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Algorithm> {
        [Algorithm::Md5, Algorithm::Sha256].into_iter().find(|known| known.name().eq_ignore_ascii_case(name))
    }

    /// Length of a hash, in bytes.
    #[must_use]
    pub const fn len_bytes(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha256 => 32,
        }
    }

    /// Hash the concatenated `parts`, as lower-case hexadecimal digits.
    #[must_use]
    pub fn hash_hex(self, parts: &[&str]) -> String {
        match self {
            Algorithm::Md5 => {
                let mut hash = Md5::new();
                parts.iter().for_each(|part| hash.update(part.as_bytes()));
                HEXLOWER.encode(hash.finalize().as_slice())
            }
            Algorithm::Sha256 => {
                let mut hash = Sha256::new();
                parts.iter().for_each(|part| hash.update(part.as_bytes()));
                HEXLOWER.encode(hash.finalize().as_slice())
            }
        }
    }

    /// Keyed hash (HMAC, RFC 2104) of the concatenated `parts`.
    #[must_use]
    pub fn tag(self, key: &[u8], parts: &[&[u8]]) -> Tag {
        match self {
            Algorithm::Md5 => {
                let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes a key of any length");
                parts.iter().for_each(|part| mac.update(part));
                Tag(mac.finalize().into_bytes().to_vec())
            }
            Algorithm::Sha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
                parts.iter().for_each(|part| mac.update(part));
                Tag(mac.finalize().into_bytes().to_vec())
            }
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(algorithm: Algorithm, key: &[u8], data: &[u8], expected: &str) {
        let tag = algorithm.tag(key, &[data]);
        assert_eq!(HEXLOWER.encode(tag.bytes()), expected, "{algorithm} of {} bytes", data.len());
        let (first, rest) = data.split_at(data.len() / 2);
        assert!(algorithm.tag(key, &[first, rest]).fits(tag.bytes()), "parts are one text");
    }

    #[test]
    fn hmac_md5_gives_what_rfc_2202_says() {
        let md5 = |key: &[u8], data: &[u8], expected| check(Algorithm::Md5, key, data, expected);
        md5(&[0x0b; 16], b"Hi There", "9294727a3638bb1c13f48ef8158bfc9d");
        md5(b"Jefe", b"what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738");
        md5(&[0xaa; 16], &[0xdd; 50], "56be34521d144c88dbb8c733f0e8b3f6");
        let counted: Vec<u8> = (1..=25).collect();
        md5(&counted, &[0xcd; 50], "697eaf0aca3a3aea3a75164746ffaa79");
        md5(&[0x0c; 16], b"Test With Truncation", "56461ef2342edc00f9bab995690efd4c");
        let long = [0xaa; 80];
        md5(
            &long,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd",
        );
        md5(
            &long,
            b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data",
            "6f630fad67cda0ee1fb1f562db3aa53e",
        );
    }

    #[test]
    fn hmac_sha_256_gives_what_rfc_4231_says() {
        let sha = |key: &[u8], data: &[u8], expected| check(Algorithm::Sha256, key, data, expected);
        sha(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        sha(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        sha(&[0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    }

    #[test]
    fn a_tag_fits_itself_only() {
        let tag = Algorithm::Sha256.tag(b"key", &[b"data"]);
        assert!(tag.clone().fits(tag.bytes()));
        assert!(!tag.fits(&tag.bytes()[1..]) && !tag.fits(&[]));
        let mut changed = tag.bytes().to_vec();
        changed[31] ^= 1;
        assert!(!tag.fits(&changed));
        assert_eq!(format!("{tag:?}"), "Tag(32 bytes)", "what it holds is not shown");
    }
}
