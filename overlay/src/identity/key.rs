//! An ed25519 key of a daemon or a domain: it signs values and opens signed ones.
//!
//! Pure: signing is a function of key and bytes. The only file that makes signatures.
//! Invariant: the only function that turns a `Sealed<T>` into a verified `T` is [`open`], which takes the
//! expected signer.
//! Not here: the file that stores a key (`key_file`).

use super::refused::Refused;
use libp2p::identity::{self, ed25519};
use std::fmt;
use wire::id::PeerKey;
use wire::sealed::{Sealable, Sealed};

/// A key pair. Its `Debug` prints only the public half.
#[derive(Clone)]
pub struct Key(ed25519::Keypair);

impl Key {
    /// The key whose secret half is `seed`, 32 random bytes.
    #[must_use]
    pub fn from_seed(mut seed: [u8; 32]) -> Key {
        // The library zeroes the bytes that it borrows.
        let secret =
            ed25519::SecretKey::try_from_bytes(&mut seed[..]).expect("any 32 bytes are a secret key");
        Key(ed25519::Keypair::from(secret))
    }

    /// The secret half, to be written to a file that only its owner can read.
    pub(super) fn seed(&self) -> [u8; 32] {
        self.0.secret().as_ref().try_into().expect("a secret key has 32 bytes")
    }

    /// The public half, which identifies the daemon to its peers.
    #[must_use]
    pub fn peer(&self) -> PeerKey {
        PeerKey(self.0.public().to_bytes())
    }

    /// The same key, in the type of the transport.
    #[must_use]
    pub fn for_transport(&self) -> identity::Keypair {
        self.0.clone().into()
    }

    /// Sign `value`.
    ///
    /// # Errors
    /// If it exceeds the maximum length of its kind.
    pub fn seal<T: Sealable>(&self, value: &T) -> Result<Sealed<T>, Refused> {
        let sign = |bytes: &[u8]| self.0.sign(bytes).try_into().expect("a signature has 64 bytes");
        Ok(Sealed::new(value, self.peer(), sign)?)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.peer())
    }
}

/// Verify that `signer` signed exactly these bytes as a value of this kind, and return the value.
///
/// # Errors
/// If another signer is named, the signature is not valid, or the bytes are no such value.
pub fn open<T: Sealable>(sealed: &Sealed<T>, signer: PeerKey) -> Result<T, Refused> {
    if sealed.signer() != signer {
        return Err(Refused::Signer { what: T::LABEL, found: sealed.signer(), expected: signer });
    }
    // The length is checked before the bytes are hashed.
    let value = sealed.unverified()?;
    let forged = || Refused::Signature { what: T::LABEL, signer };
    let key = ed25519::PublicKey::try_from_bytes(&signer.0).map_err(|_| forged())?;
    if key.verify(&sealed.signed_bytes(), &sealed.signature().to_bytes()) { Ok(value) } else { Err(forged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_key_and_only_its_public_half_is_shown() {
        let key = Key::from_seed([7; 32]);
        assert_eq!(key.seed(), [7; 32]);
        // RFC 8032, section 7.1, test 1.
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).expect("hex");
        let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let public = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(Key::from_seed(seed.try_into().expect("32 bytes")).peer().0.to_vec(), public);
        assert_eq!(format!("{key:?}"), format!("Key({})", key.peer()));
        assert_eq!(key.for_transport().public().to_peer_id().to_string(), key.peer().to_string());
    }
}
