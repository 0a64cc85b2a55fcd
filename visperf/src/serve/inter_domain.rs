//! Member among other domains: registers its domain with the directories, looks other domains up, exchanges
//! revocation lists.
//!
//! Wiring only. Without a configured directory nothing is registered and no domain is found; the tasks run
//! all the same.
//! Not here: the directory (`replica`), the routes of queries (`forward`).

use super::admission_status::AdmissionStatus;
use super::lookups::Lookups;
use super::overlay::Overlay;
use super::remote_domains::{Lookup, RemoteDomains};
use daemon::shutdown::Tasks;
use overlay::contacts::Contacts;
use overlay::directories::Directories;
use overlay::domain::DomainHandle;
use overlay::finder::Finder;
use overlay::joining::revocation_file::RevocationFile;
use overlay::registrar::{Place, Reception, Registrar};
use overlay::resolve::asker::{Asker, Asking};
use overlay::revocation_sync::RevocationSync;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use wire::credential::Certificate;
use wire::join::Directory;

/// The parts, opened and not yet running.
pub(crate) struct InterDomain {
    asker: Asker,
    contacts: Arc<Contacts>,
    directories: Arc<Directories>,
    asking: Asking,
    registrar: Registrar,
    denying: RevocationSync,
    finder: Finder,
    welcome: AdmissionStatus,
}

impl InterDomain {
    /// Read the cache of other domains; queries are answered at `address`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn open(
        state: &Path,
        overlay: &Overlay,
        certificate: &Certificate,
        members: &DomainHandle,
        denials: Arc<RevocationFile>,
        configured: Vec<Directory>,
        address: SocketAddr,
    ) -> anyhow::Result<InterDomain> {
        let me = overlay.key.peer();
        let domain = certificate.domain.clone();
        let contacts = Arc::new(Contacts::new(overlay.net.clone(), Some(domain.clone())));
        let directories = Directories::new(me, Arc::clone(&contacts), configured);
        let gate = || Arc::clone(&overlay.gate);
        let (asking, asker) = Asking::open(state, gate(), Arc::clone(&directories), overlay.seed)?;
        let registrar = Registrar {
            key: overlay.key.clone(),
            gate: gate(),
            members: members.clone(),
            directories: Arc::clone(&directories),
            asker: asker.clone(),
            place: Place {
                port: address.port(),
                addresses: vec![format!("http://{address}")],
                overlay: overlay.advertised.clone(),
            },
            reception: Reception::default(),
        };
        let denying = RevocationSync {
            domain: domain.clone(),
            gate: gate(),
            denials,
            net: overlay.net.clone(),
            members: Some(members.clone()),
            directories: Arc::clone(&directories),
        };
        let finder = Finder { me, domain, asker: asker.clone(), members: members.clone() };
        let welcome = overlay.welcome.clone();
        Ok(InterDomain { asker, contacts, directories, asking, registrar, denying, finder, welcome })
    }

    /// State of the domain's registration.
    pub(crate) fn reception(&self) -> Reception {
        self.registrar.reception.clone()
    }

    pub(crate) fn has_directories(&self) -> bool {
        !self.directories.keys().is_empty()
    }

    /// The client of other domains.
    pub(crate) fn others(&self) -> RemoteDomains {
        RemoteDomains {
            lookup: Lookup::Asked(self.asker.clone()),
            contacts: Arc::clone(&self.contacts),
            welcome: self.welcome.clone(),
        }
    }

    /// The handler of `directory.*`.
    pub(crate) fn lookups(&self) -> Lookups {
        Lookups {
            asker: self.asker.clone(),
            directories: Arc::clone(&self.directories),
            net: self.denying.net.clone(),
            members: self.denying.members.clone(),
            welcome: self.welcome.clone(),
        }
    }

    /// Run until `shutdown`.
    pub(crate) fn spawn(self, tasks: &mut Tasks, shutdown: &CancellationToken) {
        let InterDomain { contacts, asking, registrar, denying, finder, .. } = self;
        tasks.spawn("look-up", asking.run(shutdown.clone()));
        tasks.spawn_sure("registrar", registrar.run(shutdown.clone()));
        tasks.spawn_sure("denials", denying.run(shutdown.clone()));
        tasks.spawn_sure("finder", finder.run(shutdown.clone()));
        let shutdown = shutdown.clone();
        tasks.spawn_sure("contacts", async move { contacts.tend(shutdown).await });
    }
}
