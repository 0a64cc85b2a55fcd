//! Credentials of a daemon that has joined a domain, as its state folder has them: key, certificate, trust,
//! revocation list, directories.
//!
//! Rule: everything is read before the overlay is opened; only the key is created where there is none.
//! Not here: whether the daemon has joined a domain (`member`), the connections (`overlay`).

use overlay::config::Config;
use overlay::identity::admission::Gate;
use overlay::identity::join::Membership;
use overlay::identity::key::Key;
use overlay::identity::{key_file, member_files};
use overlay::joining::revocation_file::RevocationFile;
use std::path::Path;
use std::sync::Arc;
use wire::credential::{Certificate, Chain};
use wire::join::Directory;

pub(super) struct Credentials {
    pub(super) certificate: Certificate,
    pub(super) key: Key,
    pub(super) chain: Chain,
    /// Chain of the certificate before the last renewal.
    pub(super) previous: Option<Chain>,
    pub(super) gate: Gate,
    pub(super) denials: Arc<RevocationFile>,
    /// Directories of the membership, then those of the configuration.
    pub(super) directories: Vec<Directory>,
}

impl Credentials {
    /// Read the files in `state`.
    ///
    /// # Errors
    /// If one cannot be used.
    pub(super) fn read(
        state: &Path,
        membership: &Membership,
        config: &Config,
    ) -> anyhow::Result<Credentials> {
        let certificate = membership.certificate()?;
        let key = key_file::load_or_create(state)?;
        let trust = membership.trust(config.readers.clone())?;
        let (denials, denied) = RevocationFile::open(state, &trust)?;
        let directories: Vec<Directory> =
            membership.directories.iter().chain(&config.directories).cloned().collect();
        let gate = Gate::new(trust, denied, directories.iter().map(|directory| directory.key).collect());
        let (chain, previous) = (membership.chain.clone(), member_files::load_previous(state, membership)?);
        Ok(Credentials { certificate, key, chain, previous, gate, denials, directories })
    }
}
