//! Chains whose signatures were checked already: a representative shows the same one every five seconds.
//!
//! Pure. Rule: only the signatures are not checked again, and only of exactly the same chain; what changes by
//! itself (times, who is denied, which root is believed) is looked at every time.
//! Not here: what a chain has to be (`certificate`).

use super::admission::Principal;
use super::certificate;
use super::deny_list::Denials;
use super::refused::Refused;
use super::trust::Standing;
use std::collections::BTreeMap;
use wire::credential::Chain;
use wire::id::PeerKey;
use wire::time::Time;

/// Most chains of one generation, of which there are two: the representatives of a large grid. Some 2 KiB each.
pub(super) const VERIFIED_MAX: usize = 10_000;

/// The chains, by the key that each is of. Whose chain was not shown while [`VERIFIED_MAX`] others were is
/// forgotten.
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
        deny: &Denials,
        standing: Standing,
        root: PeerKey,
    ) -> Result<Principal, Refused> {
        if let Some(known) = self.known(chain, peer).filter(|known| known.root == Some(root)) {
            let delegated = known.delegated.map_or(known.issued, |(_, delegated)| delegated);
            let issued = known.issued.max(delegated);
            if certificate::check_times("certificate", issued, known.expires, now).is_ok() {
                known.check_denials(deny)?;
                return Ok(Principal { standing, ..known });
            }
            // The whole check tells what it is that does not hold.
        }
        let principal = certificate::verify_as(chain, peer, now, deny, standing, root)?;
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
