//! Files in a member's state folder: its membership and the revocation lists.
//!
//! `membership` holds the certificate chain, and where the issuer, the directories and other members are.
//! `previous-certificate` holds the previous chain, in a file of its own, which older versions ignore.
//! `denials` holds every revocation list, so that no older list is accepted after a restart. Only the daemon
//! writes them, or the command that joins before the daemon starts.
//! Rule: a damaged file is reported, never replaced by an empty one.

use super::join::Membership;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::safe_file;
use super::trust::Trust;
use std::path::Path;
use wire::credential::{Chain, Denial};
use wire::version;

pub use super::safe_file::Error;

/// Name of the file with the membership in the state folder.
pub const MEMBERSHIP: &str = "membership";
/// Name of the file with the previous certificate.
pub const PREVIOUS: &str = "previous-certificate";
/// Name of the file with the revocation lists.
pub const DENIALS: &str = "denials";

/// Load the membership of the daemon with this state folder; `None` if it has not joined.
///
/// # Errors
/// If the file cannot be read, is open to others, or is damaged.
pub fn load_membership(state: &Path) -> Result<Option<Membership>, Error> {
    safe_file::read_framed(&state.join(MEMBERSHIP), version::MEMBERSHIP)
}

/// Store the membership; it is on disk when this returns.
///
/// # Errors
/// If the system refuses; the stored one is unchanged then.
pub fn save_membership(state: &Path, membership: &Membership) -> Result<(), Error> {
    safe_file::make_state(state)?;
    safe_file::replace_framed(&state.join(MEMBERSHIP), version::MEMBERSHIP, membership)
}

/// As [`save_membership`], but first store the certificate of `held`, which `membership` replaces, as the
/// previous one. If a wrong clock signed the new certificate, the daemon shows the previous one while it is
/// valid.
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

/// Load the certificate before that of `membership`; `None` if there is none of the same domain, root and
/// key.
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

/// Load the revocation lists. Returns separately the lists of domains whose root is not known yet, to be
/// taken when it is.
///
/// # Errors
/// If the file cannot be read, is damaged, or holds a list with an invalid signature.
pub fn load_denials(state: &Path, trust: &Trust) -> Result<(RevocationLists, Vec<Denial>), Error> {
    let path = state.join(DENIALS);
    let kept: Vec<Denial> = safe_file::read_framed(&path, version::DENIALS)?.unwrap_or_default();
    let mut denials = RevocationLists::default();
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

/// Store the revocation lists; they are on disk when this returns.
///
/// # Errors
/// If the system refuses; the stored ones are unchanged then.
pub fn save_denials(state: &Path, denials: &RevocationLists, later: &[Denial]) -> Result<(), Error> {
    let kept: Vec<&Denial> = denials.all().chain(later).collect();
    safe_file::make_state(state)?;
    safe_file::replace_framed(&state.join(DENIALS), version::DENIALS, &kept)
}
