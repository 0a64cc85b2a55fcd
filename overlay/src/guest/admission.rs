//! Admission at a guest: it accepts its proxy by key, and representatives of the domain by the domain's
//! root. Previous representatives are accepted too: a daemon that is refused reports that to its operator, as
//! if it were revoked.
//!
//! Rule: the lock is held for one step, never across an await.
//! Not here: the verification of a chain (`identity::certificate`).

use crate::authenticator::Authenticator;
use crate::identity::admission::Principal;
use crate::net::dial_error::DialErrorKind;
use crate::net::hello::Admission;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use wire::credential::Role;
use wire::id::{DomainName, PeerKey};

#[derive(Debug, Default)]
struct PeerState {
    root: Option<PeerKey>,
    representative: Option<PeerKey>,
    refusal: Option<String>,
}

#[derive(Debug)]
pub(super) struct GuestAdmission {
    gate: Authenticator,
    proxy: PeerKey,
    known: Mutex<PeerState>,
    /// Whether the proxy has sent its hello.
    met: watch::Sender<bool>,
    /// Reason of the last failed dial of the proxy.
    dial_error: watch::Sender<Option<DialErrorKind>>,
}

impl GuestAdmission {
    pub(super) fn new(gate: Authenticator, proxy: PeerKey) -> GuestAdmission {
        GuestAdmission {
            gate,
            proxy,
            known: Mutex::default(),
            met: watch::channel(false).0,
            dial_error: watch::channel(None).0,
        }
    }

    pub(super) fn gate(&self) -> &Authenticator {
        &self.gate
    }

    /// Whether the proxy has sent its hello.
    pub(super) fn met(&self) -> watch::Receiver<bool> {
        self.met.subscribe()
    }

    /// Reason of the last failed dial of the proxy, if it is known.
    pub(super) fn dial_error(&self) -> watch::Receiver<Option<DialErrorKind>> {
        self.dial_error.subscribe()
    }

    /// Note why a dial of the proxy failed. `Cut` and `Foreign` are ignored: the next attempt may succeed,
    /// and another route may lead to the proxy.
    pub(super) fn note_dial_error(&self, why: DialErrorKind) {
        match why {
            DialErrorKind::Other(_)
            | DialErrorKind::Closed
            | DialErrorKind::Nowhere
            | DialErrorKind::Full => {
                self.dial_error.send_replace(Some(why));
            }
            DialErrorKind::Cut | DialErrorKind::Foreign => {}
        }
    }

    /// Set the root and representative of the domain; returns the previous representative, if it was another.
    pub(super) fn expect(
        &self,
        domain: &DomainName,
        root: PeerKey,
        representative: PeerKey,
    ) -> Option<PeerKey> {
        self.gate.decide(|gate| gate.trust().admit_only(BTreeMap::from([(domain.clone(), root)])));
        let mut known = self.lock();
        let former = known.representative.filter(|former| *former != representative);
        *known = PeerState { root: Some(root), representative: Some(representative), refusal: None };
        former
    }

    pub(super) fn root(&self) -> Option<PeerKey> {
        self.lock().root
    }

    /// The reason of the last refusal of this visitor.
    pub(super) fn refusal(&self) -> Option<String> {
        self.lock().refusal.clone()
    }

    pub(super) fn note_refusal(&self, reason: String) {
        self.lock().refusal = Some(reason);
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        // Changed by single steps, each complete.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission for GuestAdmission {
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
