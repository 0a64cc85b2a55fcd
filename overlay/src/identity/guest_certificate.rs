//! Guest certificates (visas): with one, a visitor with an account at a proxy reads inside a domain, over its
//! own connections.
//!
//! Pure. Rules: a visa is valid for the key in it and for at most [`LIFE`]; it gives no right that its proxy
//! does not have, and ends when the proxy's certificate expires or is revoked.
//! Not here: which guests get one (`proxy`), which calls it allows (`proxy::grant`).

use super::certificate::{self, check_life};
use super::key::{self, Key};
use super::principal::{Action, Principal};
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::trust::Trust;
use std::fmt;
use std::time::Duration;
use wire::credential::Chain;
use wire::entering::{ShownVisa, Visa};
use wire::id::PeerKey;
use wire::sealed::Sealable as _;
use wire::time::Time;

/// Maximum lifetime of a visa: a guest that stays logs in again after half of it. A guest that is connected
/// through the proxy loses access as soon as its account does; a guest that is connected directly, when its
/// visa expires, and clocks may differ by [`super::certificate::SKEW_MAX`].
pub const LIFE: Duration = Duration::from_secs(120);

/// A guest, as the queried daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    pub visa: Visa,
    /// The proxy that issued the visa.
    pub proxy: Principal,
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "visitor {} of the proxy {}", self.visa.account, self.proxy.peer)
    }
}

/// Sign `visa` by the proxy whose chain this is.
///
/// # Errors
/// If it would be valid for longer than [`LIFE`], or is too long.
pub fn make(key: &Key, chain: &Chain, visa: &Visa) -> Result<ShownVisa, Refused> {
    check_life(Visa::LABEL, &visa.issued, visa.expires, LIFE)?;
    Ok(ShownVisa { visa: key.seal(visa)?, chain: chain.clone() })
}

/// Authenticate the guest `peer` by what it shows.
///
/// # Errors
/// If the visa is for another key or has expired, or its proxy would not be admitted to read itself.
pub(super) fn open(
    shown: &ShownVisa,
    peer: PeerKey,
    now: Time,
    deny: &RevocationLists,
    trust: &Trust,
) -> Result<Principal, Refused> {
    let signer = shown.visa.signer();
    let visa: Visa = key::open(&shown.visa, signer)?;
    if visa.visitor != peer {
        return Err(Refused::Peer { found: peer, expected: visa.visitor });
    }
    check_life(Visa::LABEL, &visa.issued, visa.expires, LIFE)?;
    check_times(&visa, now)?;
    let proxy = certificate::verify(&shown.chain, signer, now, deny, trust)?;
    proxy.may(Action::Read)?;
    Ok(Principal::of_guest(peer, Guest { visa, proxy }))
}

/// Check that it is valid at `now`.
pub(super) fn check_times(visa: &Visa, now: Time) -> Result<(), Refused> {
    certificate::check_times(Visa::LABEL, visa.issued, visa.expires, now)
}
