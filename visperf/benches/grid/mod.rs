//! What made-up daemons of a benchmark have of the overlay: a key, a certificate, connections that they dial.
//!
//! All of it is what a real daemon has; what it lacks is the daemon: logs, collectors, a query interface. It listens
//! nowhere. Not here: what it does among others (`members`, `domains`).

use overlay::gatekeeper::Gatekeeper;
use overlay::hub::Hub;
use overlay::identity::admission::Gate;
use overlay::identity::deny_list::Denials;
use overlay::identity::key::Key;
use overlay::identity::trust::{Readers, Trust};
use overlay::net::event_loop::{Config, EventLoop};
use overlay::net::handle::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Chain;
use wire::id::PeerKey;

/// The gate of whoever shows `chain` and knows these directories.
pub(crate) fn gate(chain: Chain, directories: BTreeSet<PeerKey>) -> anyhow::Result<Arc<Gatekeeper>> {
    let certificate = chain.certificate.unverified()?;
    let trust = Trust::of_member(certificate.domain, certificate.root, Readers::Nobody);
    Ok(Arc::new(Gatekeeper::new(Gate::new(trust, Denials::default(), directories), Some(chain))))
}

/// A daemon of the overlay that is open and not yet running.
pub(crate) struct Daemon {
    /// Its connections.
    pub(crate) net: Handle,
    /// What others bring.
    pub(crate) hub: Hub,
    event_loop: EventLoop,
}

impl Daemon {
    /// The daemon of `key` with this gate; `seed` sets its redialling apart from others'.
    pub(crate) fn open(key: &Key, gate: Arc<Gatekeeper>, seed: u64) -> anyhow::Result<Daemon> {
        let (event_loop, net, events) = EventLoop::open(Config::new(Vec::new()), key, gate, seed)?;
        Ok(Daemon { net, hub: Hub::new(events), event_loop })
    }

    /// Connect until `ending`.
    pub(crate) fn spawn(self, tasks: &mut JoinSet<()>, ending: &CancellationToken) {
        tasks.spawn(self.event_loop.run(ending.clone()));
        tasks.spawn(self.hub.run());
    }
}

/// The key of this number and kind, the same in every run.
pub(crate) fn key(kind: u8, number: u32) -> Key {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    Key::from_seed(seed)
}

/// The words of the command line, without what `cargo bench` adds.
pub(crate) fn words() -> Vec<String> {
    std::env::args().skip(1).filter(|word| word != "--bench").collect()
}
