//! A signed value: the exact bytes that were signed, who signed them, and the signature.
//!
//! Pure: bytes only; signing and checking are `overlay::identity`'s.
//! Rule: what is signed begins with the label of the type and the signer's key, so a signature of one kind, or
//! of one signer, is never one of another; the bytes are kept as they came, never encoded again, so what is
//! handed on is what was signed.
//!
//! ```text
//! signed = "visperf signed 1" | label length, u8 | label | signer, 32 bytes | postcard body
//! ```

use crate::id::PeerKey;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;
use std::marker::PhantomData;

/// What every signed text of visperf begins with, so that none is one of another program.
const PREFIX: &[u8] = b"visperf signed 1";

/// A kind of value that is signed.
pub trait Sealable: Serialize + DeserializeOwned {
    /// What sets its signatures apart from those of all other kinds; at most 255 bytes. Also its name in
    /// messages.
    const LABEL: &'static str;
    /// Longest body in bytes; a longer one is not even looked at.
    const BODY_LEN_MAX_BYTES: usize;
}

/// An ed25519 signature, in two halves because the encoding knows arrays of up to 32.
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
    /// Its 64 bytes.
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

/// Why signed bytes hold no value of their kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Longer than the kind may be.
    #[error("{label} of {len_bytes} bytes; at most {max_bytes} are allowed")]
    TooLong {
        /// The kind.
        label: &'static str,
        /// Found.
        len_bytes: usize,
        /// Allowed.
        max_bytes: usize,
    },
    /// Not such a value.
    #[error("signed bytes cannot be read as a {label}: {error}")]
    Body {
        /// The kind.
        label: &'static str,
        /// What the decoder said.
        error: postcard::Error,
    },
    /// A value and more.
    #[error("{len_bytes} bytes are left after a {label}")]
    Excess {
        /// The kind.
        label: &'static str,
        /// How many.
        len_bytes: usize,
    },
}

/// A value of kind `T` as it was signed. Having one says nothing: `overlay::identity` checks it.
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
    /// The value signed by `sign`, which is given the bytes to sign with `signer`'s key.
    ///
    /// # Errors
    /// If the value is longer than its kind may be.
    pub fn new(value: &T, signer: PeerKey, sign: impl FnOnce(&[u8]) -> [u8; 64]) -> Result<Sealed<T>, Error> {
        let body = postcard::to_stdvec(value).map_err(|error| Error::Body { label: T::LABEL, error })?;
        check_len::<T>(body.len())?;
        let signature = Signature::from(sign(&signed_bytes::<T>(signer, &body)));
        Ok(Sealed { body, signer, signature, kind: PhantomData })
    }

    /// The bytes that the signature is of.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes::<T>(self.signer, &self.body)
    }

    /// The value, with the signature **not** checked: to know its claimed signer before that.
    ///
    /// # Errors
    /// If the bytes are too many or no such value.
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
    /// Who is said to have signed.
    #[must_use]
    pub fn signer(&self) -> PeerKey {
        self.signer
    }

    /// The signature, not checked.
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
