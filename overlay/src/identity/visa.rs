//! Visas: by which visitors with an account at a proxy read inside a domain, over connections of their own.
//!
//! Pure. Rules: a visa is good for the one key in it and for [`LIFE`]; it gives nothing that its proxy may not do itself, and
//! ends when the proxy's certificate does or is denied.
//! Not here: who is given one (`proxy`), which calls it allows (`proxy::grant`).

use super::admission::{Action, Principal};
use super::certificate::{self, check_life};
use super::deny_list::Denials;
use super::key::{self, Key};
use super::refused::Refused;
use super::trust::Trust;
use std::fmt;
use std::time::Duration;
use wire::credential::Chain;
use wire::entering::{ShownVisa, Visa};
use wire::id::PeerKey;
use wire::sealed::Sealable as _;
use wire::time::Time;

/// How long a visa holds: a visitor that stays logs in again at half of it. Whoever comes through the proxy loses it as soon as
/// the account does; whoever reaches the domain directly when it ends, and clocks may differ by
/// [`super::certificate::SKEW_MAX`].
pub const LIFE: Duration = Duration::from_secs(120);

/// A visitor, as the daemon that it asks knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// What it was given.
    pub visa: Visa,
    /// By whom.
    pub proxy: Principal,
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "visitor {} of the proxy {}", self.visa.account, self.proxy.peer)
    }
}

/// `visa`, signed by the proxy whose chain this is.
///
/// # Errors
/// If it would hold for longer than [`LIFE`], or is too long.
pub fn make(key: &Key, chain: &Chain, visa: &Visa) -> Result<ShownVisa, Refused> {
    check_life(Visa::LABEL, &visa.issued, visa.expires, LIFE)?;
    Ok(ShownVisa { visa: key.seal(visa)?, chain: chain.clone() })
}

/// The visitor `peer`, by what it shows.
///
/// # Errors
/// If the visa is another's, holds no longer, or its proxy would not be let in to read itself.
pub(super) fn open(
    shown: &ShownVisa,
    peer: PeerKey,
    now: Time,
    deny: &Denials,
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
    Ok(Principal::of_visitor(peer, Visit { visa, proxy }))
}

/// Whether it holds at `now`.
pub(super) fn check_times(visa: &Visa, now: Time) -> Result<(), Refused> {
    certificate::check_times(Visa::LABEL, visa.issued, visa.expires, now)
}
