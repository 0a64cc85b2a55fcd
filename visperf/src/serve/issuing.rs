//! Issuer's service of a daemon: admits hosts to the domain that was created here.
//!
//! Rule: a joining host receives the addresses of live members, this daemon first.
//! Not here: which hosts are admitted (`overlay::joining::service`), how directories receive revocations
//! (`overlay::revocation_sync`, from the gate).

use super::overlay::Overlay;
use overlay::domain::{DomainHandle, View};
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::issuer::Issuer;
use overlay::joining::revocation_file::RevocationFile;
use overlay::joining::service::Service;
use overlay::net::protocol::Protocol;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::join::{Directory, SEEDS_MAX};
use wire::membership::State;

/// The service, before it runs.
pub(crate) struct Issuing {
    service: Service,
    /// Updates the seeds for joining hosts.
    seeds: watch::Sender<Vec<Address>>,
    own: Vec<Address>,
    trouble: watch::Receiver<Option<String>>,
}

impl Issuing {
    /// Prepare to admit hosts by `files`; joining hosts receive `directories`.
    pub(crate) fn new(
        files: DomainFiles,
        directories: Vec<Directory>,
        overlay: &mut Overlay,
        denials: Arc<RevocationFile>,
    ) -> Issuing {
        let own = overlay.advertised.clone();
        let (seeds, current) = watch::channel(own.clone());
        let (trouble, shown) = watch::channel(None);
        let service = Service {
            questions: overlay.hub.questions(Protocol::Join),
            issuer: Issuer::new(files, directories, own.clone()),
            me: overlay.key.peer(),
            gate: Arc::clone(&overlay.gate),
            denials,
            seeds: current,
            trouble,
        };
        Issuing { service, seeds, own, trouble: shown }
    }

    /// The reason why the issuer cannot sign now, if any.
    pub(crate) fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.clone()
    }

    /// Serve until `shutdown`.
    pub(crate) async fn run(self, members: DomainHandle, shutdown: CancellationToken) {
        let Issuing { service, seeds, own, .. } = self;
        let mut view = members.view();
        let updating = async {
            loop {
                let known = view.borrow_and_update().clone();
                seeds.send_replace(seeds_of(&own, &known));
                if view.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::join!(service.run(shutdown.clone()), async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = updating => {}
            }
        });
    }
}

/// The addresses that a joining host dials first: this daemon, then live members.
fn seeds_of(own: &[Address], view: &View) -> Vec<Address> {
    let alive = view.members.iter().filter(|seen| seen.member.state == State::Alive);
    let first = alive.filter_map(|seen| Address::try_from(seen.member.addresses.first()?.as_str()).ok());
    let mut all: Vec<Address> = own.to_vec();
    for address in first {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all.truncate(SEEDS_MAX);
    all
}
