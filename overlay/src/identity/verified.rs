//! Cache of verified chains: a representative shows the same chain every five seconds.
//!
//! Pure. Rule: only the signatures are not verified again, and only for exactly the same chain. What changes
//! by itself (times, revocation lists, trusted roots) is checked every time.
//! Not here: what makes a chain valid (`certificate`).

use super::certificate;
use super::principal::Principal;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::trust::Affiliation;
use std::collections::BTreeMap;
use wire::credential::Chain;
use wire::id::PeerKey;
use wire::time::Time;

/// Most chains of each of the two generations: the representatives of a large grid. About 2 KiB each.
pub(super) const VERIFIED_MAX: usize = 10_000;

/// The chains by their keys, in two generations: a chain that is not shown while [`VERIFIED_MAX`] others are
/// is dropped.
#[derive(Debug, Default)]
pub(super) struct Verified {
    young: BTreeMap<PeerKey, (Chain, Principal)>,
    old: BTreeMap<PeerKey, (Chain, Principal)>,
}

impl Verified {
    /// As [`certificate::verify_as`].
    pub(super) fn principal(
        &mut self,
        chain: &Chain,
        peer: PeerKey,
        now: Time,
        deny: &RevocationLists,
        affiliation: Affiliation,
        root: PeerKey,
    ) -> Result<Principal, Refused> {
        if let Some(known) = self.known(chain, peer).filter(|known| known.root == Some(root)) {
            let delegated = known.delegated.map_or(known.issued, |(_, delegated)| delegated);
            let issued = known.issued.max(delegated);
            if certificate::check_times("certificate", issued, known.expires, now).is_ok() {
                known.check_denials(deny)?;
                return Ok(Principal { affiliation, ..known });
            }
            // The full verification returns the reason.
        }
        let principal = certificate::verify_as(chain, peer, now, deny, affiliation, root)?;
        self.keep(peer, chain.clone(), principal.clone());
        Ok(principal)
    }

    fn known(&mut self, chain: &Chain, peer: PeerKey) -> Option<Principal> {
        if let Some((known, principal)) = self.young.get(&peer) {
            return (known == chain).then(|| principal.clone());
        }
        let (known, principal) = self.old.remove(&peer)?;
        let same = known == *chain;
        let result = same.then(|| principal.clone());
        if same {
            self.keep(peer, known, principal);
        }
        result
    }

    fn keep(&mut self, peer: PeerKey, chain: Chain, principal: Principal) {
        if self.young.len() >= VERIFIED_MAX && !self.young.contains_key(&peer) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(peer, (chain, principal));
    }
}
