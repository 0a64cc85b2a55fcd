//! Challenge and response without HTTP: both ends prove that they know a secret, inside an encrypted
//! connection.
//!
//! ```text
//! asker  ── name, 32 random bytes ──▶ holder
//!        ◀── 32 random bytes ──
//!        ── tag("visperf tunnel: asker", …) ──▶
//!        ◀── tag("visperf tunnel: holder", …) ──
//!
//! tag = HMAC(secret, role label ‖ algorithm ‖ both random parts ‖ both names ‖ binding)
//! ```
//! The asker proves first: a holder that proved first would give any asker material to guess the secret
//! offline.
//!
//! Pure; callers pass the random parts and the binding: data that is unique to this encrypted connection
//! ([`binding`]). Rules: every part is prefixed with its length, so that two different lists of parts never
//! give the same text; the two roles have different labels, so that a proof sent back to its sender proves
//! nothing; a tag of MD5 is never accepted for one of SHA-256.
//! Not here: the accounts with their secrets and permissions (`proxy`).

use crate::hash::{Algorithm, Tag};
use wire::entering::NONCE_LEN_BYTES;

/// Longest name, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 128;

/// Channel binding: ties a proof to one encrypted connection by the keys that its two ends authenticated in
/// the handshake of TLS or Noise. A hash of the handshake would do the same, but libp2p exposes none. The
/// binding holds even if the asker's key is generated for this connection: no other connection has both keys,
/// and an attacker in the middle has keys of its own.
#[must_use]
pub fn binding(asker: &[u8; 32], holder: &[u8; 32]) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(asker);
    both[32..].copy_from_slice(holder);
    both
}

/// End that gives the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that connected.
    Asker,
    /// The end that stores the accounts.
    Holder,
}

impl Role {
    const fn label(self) -> &'static [u8] {
        match self {
            Role::Asker => b"visperf tunnel: asker",
            Role::Holder => b"visperf tunnel: holder",
        }
    }
}

/// Inputs that both ends know before they prove anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// Hash of the account, as its operator marked it, not as a client requested it.
    pub algorithm: Algorithm,
    /// Name of the account.
    pub asker: &'a str,
    /// Name of the holder: its realm.
    pub holder: &'a str,
    /// Random bytes of the asker.
    pub asker_nonce: &'a [u8; NONCE_LEN_BYTES],
    /// Random bytes of the holder.
    pub holder_nonce: &'a [u8; NONCE_LEN_BYTES],
    /// Channel binding: data that only this encrypted connection has.
    pub binding: &'a [u8],
}

/// Why an exchange proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Both nonces are equal: one end reflects the other's messages.
    #[error("expected a random part of the other end's own, found this end's")]
    Reflected,
    /// A name is longer than [`NAME_LEN_MAX_BYTES`].
    #[error("expected names of at most {NAME_LEN_MAX_BYTES} bytes, found a longer one")]
    Name,
    /// The binding is empty.
    #[error("expected what binds it to the connection, found nothing")]
    Unbound,
    /// The secret, the connection or the role is another one.
    #[error("the other end did not prove that it knows the secret")]
    Unproved,
}

impl Exchange<'_> {
    /// Compute the proof of one end.
    ///
    /// # Errors
    /// If the exchange is unsound.
    pub fn prove(&self, secret: &[u8], role: Role) -> Result<Tag, Error> {
        if self.asker_nonce == self.holder_nonce {
            return Err(Error::Reflected);
        }
        if self.asker.len().max(self.holder.len()) > NAME_LEN_MAX_BYTES {
            return Err(Error::Name);
        }
        if self.binding.is_empty() {
            return Err(Error::Unbound);
        }
        let parts: [&[u8]; 7] = [
            role.label(),
            self.algorithm.name().as_bytes(),
            self.asker_nonce,
            self.holder_nonce,
            self.asker.as_bytes(),
            self.holder.as_bytes(),
            self.binding,
        ];
        let lengths = parts.map(|part| (part.len() as u64).to_be_bytes());
        let framed: Vec<&[u8]> =
            lengths.iter().zip(parts).flat_map(|(length, part)| [length.as_slice(), part]).collect();
        Ok(self.algorithm.tag(secret, &framed))
    }

    /// Check the proof of the end in `role`, in constant time.
    ///
    /// # Errors
    /// If the proof is wrong or the exchange is unsound.
    pub fn check(&self, secret: &[u8], role: Role, proof: &[u8]) -> Result<(), Error> {
        if self.prove(secret, role)?.fits(proof) { Ok(()) } else { Err(Error::Unproved) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 32] = [1; 32];
    const TWO: [u8; 32] = [2; 32];

    fn exchange() -> Exchange<'static> {
        Exchange {
            algorithm: Algorithm::Sha256,
            asker: "ana",
            holder: "visperf",
            asker_nonce: &ONE,
            holder_nonce: &TWO,
            binding: b"handshake",
        }
    }

    #[test]
    fn both_ends_prove_one_secret() {
        for algorithm in [Algorithm::Sha256, Algorithm::Md5] {
            let exchange = Exchange { algorithm, ..exchange() };
            for role in [Role::Asker, Role::Holder] {
                let proof = exchange.prove(b"secret", role).expect("sound");
                assert_eq!(exchange.check(b"secret", role, proof.bytes()), Ok(()));
                assert_eq!(exchange.check(b"other", role, proof.bytes()), Err(Error::Unproved));
            }
        }
    }

    #[test]
    fn a_proof_holds_for_its_role_connection_names_and_hash_alone() {
        let right = exchange();
        let proof = right.prove(b"secret", Role::Asker).expect("sound");
        let check = |other: Exchange<'_>, role| {
            let found = other.check(b"secret", role, proof.bytes());
            assert_eq!(found, Err(Error::Unproved), "{other:?} {role:?}");
        };
        check(right, Role::Holder);
        check(Exchange { binding: b"handshake of a man in the middle", ..right }, Role::Asker);
        check(Exchange { asker: "anb", ..right }, Role::Asker);
        check(Exchange { asker: "an", holder: "avisperf", ..right }, Role::Asker);
        check(Exchange { algorithm: Algorithm::Md5, ..right }, Role::Asker);
        check(Exchange { asker_nonce: &TWO, holder_nonce: &ONE, ..right }, Role::Asker);
        check(Exchange { holder_nonce: &[3; 32], ..right }, Role::Asker);
    }

    #[test]
    fn what_binds_nothing_is_refused() {
        let of = |exchange: Exchange<'_>| exchange.prove(b"secret", Role::Asker).map(drop);
        assert_eq!(of(Exchange { holder_nonce: &ONE, ..exchange() }), Err(Error::Reflected));
        assert_eq!(of(Exchange { binding: b"", ..exchange() }), Err(Error::Unbound));
        let long = "a".repeat(NAME_LEN_MAX_BYTES + 1);
        assert_eq!(of(Exchange { asker: &long, ..exchange() }), Err(Error::Name));
    }
}
