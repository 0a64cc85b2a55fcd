//! Challenge and response without HTTP: both ends prove that they know one secret, inside an encrypted connection.
//!
//! ```text
//! asker  ── name, 32 random bytes ──▶ holder
//!        ◀── 32 random bytes ──
//!        ── tag("visperf tunnel: asker", …) ──▶
//!        ◀── tag("visperf tunnel: holder", …) ──
//!
//! tag = HMAC(secret, role label ‖ algorithm ‖ both random parts ‖ both names ‖ binding)
//! ```
//! The asker proves first: a holder that did would give any asker something to guess the secret by.
//!
//! Pure; callers pass the random parts and the binding: what belongs to this one encrypted connection alone ([`binding`]).
//! Rules: every part is preceded by its length, so that no two lists of parts give one
//! text; the two roles have labels of their own, so that what one end said proves nothing when it is sent back to it;
//! a tag of MD5 never stands for one of SHA-256.
//! Not here: who has which secret, and what it gives (`proxy`).

use crate::hash::{Algorithm, Tag};
use wire::entering::NONCE_LEN_BYTES;

/// Longest name, in bytes.
pub const NAME_LEN_MAX_BYTES: usize = 128;

/// What ties a proof to one encrypted connection: the keys that its two ends proved to each other in its handshake, by TLS or Noise.
/// A hash of that handshake would do the same; libp2p gives none. It holds as much where the asker's
/// key is drawn for this connection: no other connection has both keys, and an attacker in between has keys of its own.
#[must_use]
pub fn binding(asker: &[u8; 32], holder: &[u8; 32]) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(asker);
    both[32..].copy_from_slice(holder);
    both
}

/// Which end proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Who connected.
    Asker,
    /// Who keeps the accounts.
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

/// What both ends know before they prove anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange<'a> {
    /// By which hash: what the account is marked for, not what a client requested.
    pub algorithm: Algorithm,
    /// The account's name.
    pub asker: &'a str,
    /// The name of who keeps the accounts: its realm.
    pub holder: &'a str,
    /// What the asker drew.
    pub asker_nonce: &'a [u8; NONCE_LEN_BYTES],
    /// What the holder drew.
    pub holder_nonce: &'a [u8; NONCE_LEN_BYTES],
    /// What only this encrypted connection has.
    pub binding: &'a [u8],
}

/// Why an exchange proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Both drew the same: one sends back what the other said.
    #[error("expected a random part of the other end's own, found this end's")]
    Reflected,
    /// A name beyond [`NAME_LEN_MAX_BYTES`].
    #[error("expected names of at most {NAME_LEN_MAX_BYTES} bytes, found a longer one")]
    Name,
    /// Nothing ties it to the connection.
    #[error("expected what binds it to the connection, found nothing")]
    Unbound,
    /// Another secret, another connection, or another role.
    #[error("the other end did not prove that it knows the secret")]
    Unproved,
}

impl Exchange<'_> {
    /// The proof of one end.
    ///
    /// # Errors
    /// If the exchange itself is unsound.
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

    /// Whether `proof` is the one that the end in `role` gives; it takes as long whether it is or not.
    ///
    /// # Errors
    /// If it is not.
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
        check(Exchange { binding: b"handshake of somebody in between", ..right }, Role::Asker);
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
