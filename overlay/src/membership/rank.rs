//! Rank: the order of candidates, by the operator's priority and then by a hash.
//!
//! Pure. Every sensor computes the same order from the same members. The hash includes the domain, so that a
//! host in several domains is not first in all of them; its highest bits are the mark that makes a term its
//! holder's own.
//! Not here: which sensors may stand at all (`election::succession`).

use sha2::{Digest as _, Sha256};
use std::cmp::Reverse;
use wire::id::{DomainName, PeerKey};

/// A place in the order; the least is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    priority: Reverse<u8>,
    hash: u64,
    key: PeerKey,
}

impl Rank {
    /// The rank of `key` in `domain`.
    #[must_use]
    pub fn of(domain: &DomainName, key: PeerKey, priority: u8) -> Rank {
        Rank { priority: Reverse(priority), hash: hash(domain, &key), key }
    }

    /// The mark of this sensor's terms.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)]
    pub const fn mark(&self) -> u32 {
        (self.hash >> 40) as u32
    }
}

fn hash(domain: &DomainName, key: &PeerKey) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"visperf rank 1");
    hash.update(domain.as_str());
    hash.update([0]);
    hash.update(key.0);
    u64::from_le_bytes(hash.finalize()[..8].try_into().expect("a hash has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_goes_before_the_hash_and_domains_differ() {
        let one = DomainName::try_from("one").unwrap();
        let two = DomainName::try_from("two").unwrap();
        let keys: Vec<_> = (0..20).map(|number| PeerKey([number; 32])).collect();
        let order = |domain: &DomainName| {
            let mut order = keys.clone();
            order.sort_by_key(|key| Rank::of(domain, *key, 0));
            order
        };
        assert_ne!(order(&one), order(&two));
        let last = *order(&one).last().unwrap();
        assert!(Rank::of(&one, last, 1) < Rank::of(&one, order(&one)[0], 0));
    }
}
