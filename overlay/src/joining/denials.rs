//! The file of who is denied, as a running daemon keeps it, and what is told to it.
//!
//! Rule: one is the writer; whoever has taken a newer list asks it to save, and what is saved is what the gate holds at
//! that moment, so that no older content replaces a newer one.
//! Not here: the format (`identity::member_files`), what is taken (`identity::deny_list`).

use super::off;
use crate::gatekeeper::Gatekeeper;
use crate::identity::deny_list::{Denials, Taken};
use crate::identity::member_files::{self, Error};
use crate::identity::refused::Refused;
use crate::identity::trust::Trust;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wire::credential::Denial;
use wire::id::PeerKey;

/// Lists of one domain that there can be: one by the root and one by the issuer.
pub const LISTS_MAX: usize = 2;

/// The file.
#[derive(Debug)]
pub struct DenialFile {
    state: PathBuf,
    /// Lists of domains whose root is not known yet.
    later: Vec<Denial>,
    writing: Mutex<()>,
}

impl DenialFile {
    /// The file of the daemon with this state folder, and what it holds.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or holds what no one could have signed.
    pub fn open(state: &Path, trust: &Trust) -> Result<(Arc<DenialFile>, Denials), Error> {
        let (held, later) = member_files::load_denials(state, trust)?;
        Ok((Arc::new(DenialFile { state: state.to_owned(), later, writing: Mutex::new(()) }), held))
    }

    /// Take the lists of one domain that `from` tells: what is newer is in force and on disk when this returns; what cannot be
    /// kept is in force all the same, and in the log.
    ///
    /// # Errors
    /// Why one of them is not believed; the others are taken. It is in the audit.
    pub async fn take(
        self: &Arc<DenialFile>,
        gate: &Arc<Gatekeeper>,
        from: PeerKey,
        lists: &[Denial],
    ) -> Result<(), Refused> {
        let (mut is_new, mut taken) = (false, Ok(()));
        for list in lists.iter().take(LISTS_MAX) {
            match gate.take_denial(from, list) {
                Ok(Taken::New) => is_new = true,
                Ok(Taken::Known) => {}
                Err(refused) => taken = Err(refused),
            }
        }
        if is_new && let Err(error) = self.save(gate).await {
            tracing::error!(%error, "a newer list of denied is in force but could not be kept");
        }
        taken
    }

    /// Keep what `gate` holds now; on disk when this returns.
    ///
    /// # Errors
    /// If the system refuses; the file is then as it was.
    async fn save(self: &Arc<DenialFile>, gate: &Arc<Gatekeeper>) -> Result<(), Error> {
        let (this, gate) = (Arc::clone(self), Arc::clone(gate));
        off(move || {
            // There is nothing behind the lock that a panic could leave half done.
            let _writing = this.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let held = gate.decide(|gate| gate.denials().clone());
            member_files::save_denials(&this.state, &held, &this.later)
        })
        .await
    }
}
