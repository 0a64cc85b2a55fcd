//! Overlay part of the simulated daemons of a benchmark: a key, a certificate, connections that they dial.
//!
//! All of it is as in a real daemon; the rest of the daemon is missing: logs, collectors, a query interface.
//! It does not listen. Not here: its behaviour in the grid (`members`, `domains`).

use overlay::authenticator::Authenticator;
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use overlay::net::event_loop::{Config, EventLoop};
use overlay::net::handle::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Chain;
use wire::id::PeerKey;

/// Authenticator of a daemon that presents `chain` and trusts these directories.
pub(crate) fn gate(chain: Chain, directories: BTreeSet<PeerKey>) -> anyhow::Result<Arc<Authenticator>> {
    let certificate = chain.certificate.unverified()?;
    let trust = Trust::of_member(certificate.domain, certificate.root, Readers::Nobody);
    Ok(Arc::new(Authenticator::new(Gate::new(trust, RevocationLists::default(), directories), Some(chain))))
}

/// An overlay daemon that is open and not yet running.
pub(crate) struct Daemon {
    pub(crate) net: Handle,
    /// Incoming streams of other daemons.
    pub(crate) hub: Hub,
    event_loop: EventLoop,
}

impl Daemon {
    /// Open the daemon of `key` with this gate; `seed` makes its redial times differ from those of others.
    pub(crate) fn open(key: &Key, gate: Arc<Authenticator>, seed: u64) -> anyhow::Result<Daemon> {
        let (event_loop, net, events) = EventLoop::open(Config::new(Vec::new()), key, gate, seed)?;
        Ok(Daemon { net, hub: Hub::new(events), event_loop })
    }

    /// Run its connections until `ending`.
    pub(crate) fn spawn(self, tasks: &mut JoinSet<()>, ending: &CancellationToken) {
        tasks.spawn(self.event_loop.run(ending.clone()));
        tasks.spawn(self.hub.run());
    }
}

/// Key of this number and kind, the same in every run.
pub(crate) fn key(kind: u8, number: u32) -> Key {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    Key::from_seed(seed)
}

/// Arguments of the command line, without those that `cargo bench` adds.
pub(crate) fn words() -> Vec<String> {
    std::env::args().skip(1).filter(|word| word != "--bench").collect()
}
