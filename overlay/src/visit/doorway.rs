//! Whom a visitor lets in: its proxy by its key, and representatives of the domain by its root, those of before too: who is
//! refused tells so to its operator, as if it were put out.
//!
//! Rule: a lock is held for one step, never across an await.
//! Not here: how a chain is checked (`identity::certificate`).

use crate::gatekeeper::Gatekeeper;
use crate::identity::admission::Principal;
use crate::net::hello::Admission;
use crate::net::undialled::Undialled;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use wire::credential::Role;
use wire::id::{DomainName, PeerKey};

#[derive(Debug, Default)]
struct Known {
    root: Option<PeerKey>,
    representative: Option<PeerKey>,
    refusal: Option<String>,
}

/// The doorway.
#[derive(Debug)]
pub(super) struct Doorway {
    gate: Gatekeeper,
    proxy: PeerKey,
    known: Mutex<Known>,
    /// Whether the proxy has shown itself.
    met: watch::Sender<bool>,
    /// Why it was not reached the last time.
    undialled: watch::Sender<Option<Undialled>>,
}

impl Doorway {
    pub(super) fn new(gate: Gatekeeper, proxy: PeerKey) -> Doorway {
        Doorway {
            gate,
            proxy,
            known: Mutex::default(),
            met: watch::channel(false).0,
            undialled: watch::channel(None).0,
        }
    }

    pub(super) fn gate(&self) -> &Gatekeeper {
        &self.gate
    }

    /// Whether the proxy has shown itself.
    pub(super) fn met(&self) -> watch::Receiver<bool> {
        self.met.subscribe()
    }

    /// Why the proxy was not reached the last time, where that is known.
    pub(super) fn undialled(&self) -> watch::Receiver<Option<Undialled>> {
        self.undialled.subscribe()
    }

    /// A connection that was cut may be made at the next attempt, and another route may lead to the proxy.
    pub(super) fn note_undialled(&self, why: Undialled) {
        match why {
            Undialled::Other(_) | Undialled::Closed | Undialled::Nowhere | Undialled::Full => {
                self.undialled.send_replace(Some(why));
            }
            Undialled::Cut | Undialled::Foreign => {}
        }
    }

    /// From now on this one represents the domain; who did before, if that was another.
    pub(super) fn expect(
        &self,
        domain: &DomainName,
        root: PeerKey,
        representative: PeerKey,
    ) -> Option<PeerKey> {
        self.gate.decide(|gate| gate.trust().admit_only(BTreeMap::from([(domain.clone(), root)])));
        let mut known = self.lock();
        let former = known.representative.filter(|former| *former != representative);
        *known = Known { root: Some(root), representative: Some(representative), refusal: None };
        former
    }

    pub(super) fn root(&self) -> Option<PeerKey> {
        self.lock().root
    }

    /// Why somebody did not let this visitor in last.
    pub(super) fn refusal(&self) -> Option<String> {
        self.lock().refusal.clone()
    }

    pub(super) fn note_refusal(&self, reason: String) {
        self.lock().refusal = Some(reason);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Changed by single steps, each whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission for Doorway {
    fn proof(&self) -> Vec<u8> {
        self.gate.proof()
    }

    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String> {
        if peer == self.proxy {
            let admitted = self.gate.admit(peer, proof);
            self.met.send_replace(true);
            return admitted;
        }
        let admitted = self.gate.admit(peer, proof)?;
        match admitted.roles.has(Role::Representative) {
            true => Ok(admitted),
            false => Err("it may not represent its domain".to_owned()),
        }
    }

    fn review(&self, principal: &Principal) -> Result<(), String> {
        self.gate.review(principal)
    }
}
