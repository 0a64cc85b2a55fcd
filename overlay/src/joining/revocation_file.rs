//! The file of revocation lists of a running daemon, and how it takes the lists that it receives.
//!
//! Rule: one writer at a time. After a newer list was taken, the writer saves what the authorizer holds at
//! that moment, so that no older content replaces a newer one.
//! Not here: the format (`identity::member_files`), which lists are accepted (`identity::revocation_lists`).

use super::off;
use crate::authenticator::Authenticator;
use crate::identity::member_files::{self, Error};
use crate::identity::refused::Refused;
use crate::identity::revocation_lists::{RevocationLists, TakeOutcome};
use crate::identity::trust::Trust;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::credential::Denial;
use wire::id::PeerKey;

/// Most lists of one domain: one by the root and one by the issuer.
pub const LISTS_MAX: usize = 2;

/// The file.
#[derive(Debug)]
pub struct RevocationFile {
    state: PathBuf,
    /// Lists of domains whose root is not known yet.
    later: Vec<Denial>,
    writing: Mutex<()>,
}

impl RevocationFile {
    /// Open the file of the daemon with this state folder; returns also the lists in it.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or holds a list with an invalid signature.
    pub fn open(state: &Path, trust: &Trust) -> Result<(Arc<RevocationFile>, RevocationLists), Error> {
        let (held, later) = member_files::load_denials(state, trust)?;
        Ok((Arc::new(RevocationFile { state: state.to_owned(), later, writing: Mutex::new(()) }), held))
    }

    /// Take the lists of one domain that `from` sent. A newer one is in force and on disk when this returns;
    /// if it cannot be stored, it is in force all the same, and the failure is logged.
    ///
    /// # Errors
    /// Why a list was refused; the others are taken. The refusal is also in the audit log.
    pub async fn take(
        self: &Arc<RevocationFile>,
        gate: &Arc<Authenticator>,
        from: PeerKey,
        lists: &[Denial],
    ) -> Result<(), Refused> {
        let (mut is_new, mut taken) = (false, Ok(()));
        for list in lists.iter().take(LISTS_MAX) {
            match gate.take_denial(from, list) {
                Ok(TakeOutcome::New) => is_new = true,
                Ok(TakeOutcome::Known) => {}
                Err(refused) => taken = Err(refused),
            }
        }
        if is_new && let Err(error) = self.save(gate).await {
            tracing::error!(%error, "a newer list of denied is in force but could not be kept");
        }
        taken
    }

    /// Store the lists that `gate` holds now; they are on disk when this returns.
    ///
    /// # Errors
    /// If the system refuses; the file is unchanged then.
    async fn save(self: &Arc<RevocationFile>, gate: &Arc<Authenticator>) -> Result<(), Error> {
        let (this, gate) = (Arc::clone(self), Arc::clone(gate));
        off(move || {
            // The lock protects no data that a panic could leave half written.
            let _writing = this.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let held = gate.decide(|gate| gate.denials().clone());
            member_files::save_denials(&this.state, &held, &this.later)
        })
        .await
    }
}
