//! Signed value: the exact signed bytes, the signer, and the signature.
//!
//! Pure: bytes only; signing and verification are in `overlay::identity`.
//! Rule: the signed bytes start with the label of the type and the signer's key, so a signature of one type
//! or signer is never valid for another; the bytes are stored as they were received and never encoded again,
//! so the signed bytes are forwarded unchanged.
//!
//! ```text
//! signed = "visperf signed 1" | label length, u8 | label | signer, 32 bytes | postcard body
//! ```

use crate::id::PeerKey;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use std::marker::PhantomData;

/// Prefix of all bytes signed by visperf, so that they cannot be mistaken for those of another program.
const PREFIX: &[u8] = b"visperf signed 1";

/// A type of value that is signed.
pub trait Sealable: Serialize + DeserializeOwned {
    /// Label that separates its signatures from those of all other types; at most 255 bytes. It is also its
    /// name in messages.
    const LABEL: &'static str;
    /// Longest body in bytes; a longer one is not examined.
    const BODY_LEN_MAX_BYTES: usize;
}

/// An ed25519 signature, in two halves because serde supports arrays of up to 32.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature([u8; 32], [u8; 32]);

impl From<[u8; 64]> for Signature {
    fn from(bytes: [u8; 64]) -> Signature {
        let (first, second) = bytes.split_at(32);
        let half = |half: &[u8]| half.try_into().expect("half of 64 bytes");
        Signature(half(first), half(second))
    }
}

impl Signature {
    /// The 64 bytes of the signature.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&self.1);
        bytes
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

/// Why signed bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are longer than the type allows.
    #[error("{label} of {len_bytes} bytes; at most {max_bytes} are allowed")]
    TooLong {
        /// Label of the type.
        label: &'static str,
        /// Length of the bytes.
        len_bytes: usize,
        /// Largest allowed length.
        max_bytes: usize,
    },
    /// The bytes are not a value of the type.
    #[error("signed bytes cannot be read as a {label}: {error}")]
    Body {
        /// Label of the type.
        label: &'static str,
        /// Error of the decoder.
        error: postcard::Error,
    },
    /// Bytes follow after the value.
    #[error("{len_bytes} bytes are left after a {label}")]
    Excess {
        /// Label of the type.
        label: &'static str,
        /// Number of the excess bytes.
        len_bytes: usize,
    },
}

/// A signed value of type `T`. It may be forged: `overlay::identity` verifies it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Sealed<T> {
    body: Vec<u8>,
    signer: PeerKey,
    signature: Signature,
    #[serde(skip)]
    kind: PhantomData<fn() -> T>,
}

impl<T: Sealable> Sealed<T> {
    /// Sign a value; `sign` receives the bytes to sign with `signer`'s key.
    ///
    /// # Errors
    /// If the value is longer than its type allows.
    pub fn new(value: &T, signer: PeerKey, sign: impl FnOnce(&[u8]) -> [u8; 64]) -> Result<Sealed<T>, Error> {
        let body = postcard::to_stdvec(value).map_err(|error| Error::Body { label: T::LABEL, error })?;
        check_len::<T>(body.len())?;
        let signature = Signature::from(sign(&signed_bytes::<T>(signer, &body)));
        Ok(Sealed { body, signer, signature, kind: PhantomData })
    }

    /// The bytes that are signed.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes::<T>(self.signer, &self.body)
    }

    /// The value **without** verification of the signature: to find its claimed signer first.
    ///
    /// # Errors
    /// If the bytes are too long or not such a value.
    pub fn unverified(&self) -> Result<T, Error> {
        check_len::<T>(self.body.len())?;
        let (value, rest) =
            postcard::take_from_bytes(&self.body).map_err(|error| Error::Body { label: T::LABEL, error })?;
        match rest.len() {
            0 => Ok(value),
            len_bytes => Err(Error::Excess { label: T::LABEL, len_bytes }),
        }
    }
}

impl<T> Sealed<T> {
    /// Claimed signer.
    #[must_use]
    pub fn signer(&self) -> PeerKey {
        self.signer
    }

    /// Signature, not verified.
    #[must_use]
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// Length of the signed value in bytes.
    #[must_use]
    pub fn body_len_bytes(&self) -> usize {
        self.body.len()
    }
}

impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Sealed<T> {
        Sealed { body: self.body.clone(), signer: self.signer, signature: self.signature, kind: PhantomData }
    }
}

impl<T> PartialEq for Sealed<T> {
    fn eq(&self, other: &Sealed<T>) -> bool {
        self.body == other.body && self.signer == other.signer && self.signature == other.signature
    }
}

impl<T> Eq for Sealed<T> {}

impl<T: Sealable> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("label", &T::LABEL)
            .field("len_bytes", &self.body.len())
            .field("signer", &self.signer)
            .field("signature", &self.signature)
            .finish()
    }
}

fn check_len<T: Sealable>(len_bytes: usize) -> Result<(), Error> {
    if len_bytes > T::BODY_LEN_MAX_BYTES {
        return Err(Error::TooLong { label: T::LABEL, len_bytes, max_bytes: T::BODY_LEN_MAX_BYTES });
    }
    Ok(())
}

fn signed_bytes<T: Sealable>(signer: PeerKey, body: &[u8]) -> Vec<u8> {
    let label = T::LABEL.as_bytes();
    let len = u8::try_from(label.len()).expect("labels are short words");
    let mut bytes = Vec::with_capacity(PREFIX.len() + 1 + label.len() + 32 + body.len());
    bytes.extend_from_slice(PREFIX);
    bytes.push(len);
    bytes.extend_from_slice(label);
    bytes.extend_from_slice(&signer.0);
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct One(u32);
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Other(u32);
    impl Sealable for One {
        const LABEL: &'static str = "one";
        const BODY_LEN_MAX_BYTES: usize = 3;
    }
    impl Sealable for Other {
        const LABEL: &'static str = "other";
        const BODY_LEN_MAX_BYTES: usize = 3;
    }

    const SIGNER: PeerKey = PeerKey([7; 32]);

    #[test]
    fn what_is_signed_differs_by_kind_and_signer() {
        let one = Sealed::new(&One(5), SIGNER, |_| [0; 64]).expect("short").signed_bytes();
        let other = Sealed::new(&Other(5), SIGNER, |_| [0; 64]).expect("short").signed_bytes();
        let of_another = Sealed::new(&One(5), PeerKey([8; 32]), |_| [0; 64]).expect("short").signed_bytes();
        assert_ne!(one, other);
        assert_ne!(one, of_another);
        assert!(one.starts_with(b"visperf signed 1\x03one\x07\x07"));
        assert!(one.ends_with(b"\x07\x05"));
    }

    #[test]
    fn a_value_travels_unchanged_and_too_long_a_one_not_at_all() {
        let sealed = Sealed::new(&One(300), SIGNER, |_| [9; 64]).expect("short");
        let bytes = postcard::to_stdvec(&sealed).expect("encodes");
        let read: Sealed<One> = postcard::from_bytes(&bytes).expect("decodes");
        assert_eq!(read, sealed);
        assert_eq!(read.unverified(), Ok(One(300)));
        assert_eq!(read.signature().to_bytes(), [9; 64]);
        assert!(matches!(Sealed::new(&One(u32::MAX), SIGNER, |_| [0; 64]), Err(Error::TooLong { .. })));
    }

    #[test]
    fn bytes_after_the_value_are_refused() {
        let bytes = postcard::to_stdvec(&(vec![5_u8, 0], SIGNER, Signature::from([0; 64]))).expect("encodes");
        let read: Sealed<One> = postcard::from_bytes(&bytes).expect("decodes");
        assert_eq!(read.unverified(), Err(Error::Excess { label: "one", len_bytes: 1 }));
    }
}
