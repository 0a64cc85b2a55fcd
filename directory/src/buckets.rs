//! Digest of the table: a thousand sums, one per bucket of domains.
//!
//! Pure. Two tables with the same numbers have the same sums, in whatever order the numbers arrived. Each
//! change updates one sum, so a digest costs the same for any size of table.
//! Not here: what a domain adds to its sum (`registry::entry`), what happens where two digests differ (`replicate`).

use std::collections::BTreeSet;
use wire::id::DomainName;
use wire::replication::BUCKETS;
use xxhash_rust::xxh3::xxh3_64;

/// The sums, and the domains in each bucket.
#[derive(Debug)]
pub(crate) struct Buckets {
    sums: Vec<u64>,
    names: Vec<BTreeSet<DomainName>>,
}

impl Buckets {
    pub(crate) fn new() -> Buckets {
        Buckets { sums: vec![0; BUCKETS], names: vec![BTreeSet::new(); BUCKETS] }
    }

    pub(crate) fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// Replace the contribution `before` of `domain` to its sum by `after`. Zero means that there is nothing
    /// to replicate.
    pub(crate) fn change(&mut self, domain: &DomainName, before: u64, after: u64) {
        if before == after {
            return;
        }
        let at = bucket(domain);
        self.sums[at] = self.sums[at].wrapping_sub(before).wrapping_add(after);
        if after == 0 {
            self.names[at].remove(domain);
        } else if before == 0 {
            self.names[at].insert(domain.clone());
        }
    }

    /// The names in bucket `at` (modulo the number of buckets) if its sum differs from the one in `sums`.
    pub(crate) fn differing(&self, at: usize, sums: &[u64]) -> Option<&BTreeSet<DomainName>> {
        let at = at % BUCKETS;
        (sums.get(at) != Some(&self.sums[at])).then_some(&self.names[at])
    }
}

#[allow(clippy::cast_possible_truncation)] // The remainder of a division by a thousand.
fn bucket(domain: &DomainName) -> usize {
    (xxh3_64(domain.as_str().as_bytes()) % BUCKETS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::domain;

    #[test]
    fn the_order_of_changes_does_not_show_and_a_difference_is_found() {
        let (a, b) = (domain("a"), domain("b"));
        let (mut one, mut other) = (Buckets::new(), Buckets::new());
        one.change(&a, 0, 5);
        one.change(&b, 0, 7);
        one.change(&a, 5, 6);
        other.change(&b, 0, 7);
        other.change(&a, 0, 6);
        assert_eq!(one.sums(), other.sums());
        let differing = |one: &Buckets, sums: &[u64]| -> Vec<String> {
            let names = (0..BUCKETS).filter_map(|at| one.differing(at, sums)).flatten();
            names.map(ToString::to_string).collect()
        };
        assert!(differing(&one, other.sums()).is_empty());
        other.change(&b, 7, 8);
        assert_eq!(differing(&one, other.sums()), ["b"]);
        other.change(&b, 8, 0);
        assert!(differing(&other, one.sums()).is_empty(), "nothing to send of what is not held");
        assert_eq!(differing(&one, &[]).len(), 2, "a digest that is too short differs");
    }
}
