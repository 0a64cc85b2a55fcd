//! What a member keeps in its state folder: its membership, and who is denied.
//!
//! `membership` holds the certificate chain and where to find others; `previous-certificate` the chain before it, in a
//! file of its own, which older versions neither read nor miss; `denials` every list of denied, so that no
//! older one is believed after a restart. One daemon writes them, or the command that joins before it starts.
//! Rule: a damaged file is told, never replaced by nothing.

use super::deny_list::Denials;
use super::join::Membership;
use super::refused::Refused;
use super::safe_file;
use super::trust::Trust;
use std::path::Path;
use wire::credential::{Chain, Denial};
use wire::version;

pub use super::safe_file::Error;

/// Name of the file with the certificate in the state folder.
pub const MEMBERSHIP: &str = "membership";
/// Name of the file with the certificate before it.
pub const PREVIOUS: &str = "previous-certificate";
/// Name of the file with the lists of denied.
pub const DENIALS: &str = "denials";

/// The membership of the daemon with this state folder; `None` if it has not joined.
///
/// # Errors
/// If the file cannot be read, is open to others, or is damaged.
pub fn load_membership(state: &Path) -> Result<Option<Membership>, Error> {
    safe_file::read_framed(&state.join(MEMBERSHIP), version::MEMBERSHIP)
}

/// Keep it; on disk when this returns.
///
/// # Errors
/// If the system refuses; what was kept before is then as it was.
pub fn save_membership(state: &Path, membership: &Membership) -> Result<(), Error> {
    safe_file::make_state(state)?;
    safe_file::replace_framed(&state.join(MEMBERSHIP), version::MEMBERSHIP, membership)
}

/// As [`save_membership`], storing the certificate of `held`, which `membership` replaces, as the previous one first:
/// should the new one have been signed by a wrong clock, the previous one is shown while it holds.
///
/// # Errors
/// As [`save_membership`].
pub fn replace_membership(state: &Path, held: &Membership, membership: &Membership) -> Result<(), Error> {
    if held.chain != membership.chain {
        safe_file::make_state(state)?;
        safe_file::replace_framed(&state.join(PREVIOUS), version::PREVIOUS_CERTIFICATE, &held.chain)?;
    }
    save_membership(state, membership)
}

/// The certificate before that of `membership`; `None` if there is none of its domain and root.
///
/// # Errors
/// As [`load_membership`].
pub fn load_previous(state: &Path, membership: &Membership) -> Result<Option<Chain>, Error> {
    let chain: Option<Chain> = safe_file::read_framed(&state.join(PREVIOUS), version::PREVIOUS_CERTIFICATE)?;
    let named = |chain: &Chain| {
        let claimed = chain.certificate.unverified().ok()?;
        Some((claimed.domain, claimed.root, claimed.peer))
    };
    Ok(chain.filter(|chain| *chain != membership.chain && named(chain) == named(&membership.chain)))
}

/// Who is denied, and lists of domains whose root is not known yet: to be taken when it is.
///
/// # Errors
/// If the file cannot be read, is damaged, or holds a list that no one could have signed.
pub fn load_denials(state: &Path, trust: &Trust) -> Result<(Denials, Vec<Denial>), Error> {
    let path = state.join(DENIALS);
    let kept: Vec<Denial> = safe_file::read_framed(&path, version::DENIALS)?.unwrap_or_default();
    let mut denials = Denials::default();
    let mut later = Vec::new();
    for denial in kept {
        match denials.take(&denial, trust) {
            Ok(_) => {}
            Err(Refused::UnknownDomain { .. } | Refused::RootDisputed { .. }) => later.push(denial),
            Err(refused) => {
                return Err(Error::Content { path, reason: refused.to_string() });
            }
        }
    }
    Ok((denials, later))
}

/// Keep them; on disk when this returns.
///
/// # Errors
/// If the system refuses; what was kept before is then as it was.
pub fn save_denials(state: &Path, denials: &Denials, later: &[Denial]) -> Result<(), Error> {
    let kept: Vec<&Denial> = denials.all().chain(later).collect();
    safe_file::make_state(state)?;
    safe_file::replace_framed(&state.join(DENIALS), version::DENIALS, &kept)
}
