//! Daemons that are asked now and then: dialled when there is something to ask, given up when there was not for long.
//!
//! Rule: to ask is to connect; a connection that no one needed for [`IDLE`], or after a visit for [`VISIT`], is given
//! up, so that a daemon has those of whoever asked lately, not of a whole grid. The table is bounded; the one that is
//! not needed soonest makes place.
//! Not here: which daemon it is (`directories`, `resolve`), connections inside the domain (`domain`).

use crate::clock;
use crate::net::handle::{AskError, Handle};
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::id::{DomainName, PeerKey};
use wire::time::Moment;

/// A connection that was not asked over for so long is given up, unless it is held.
pub const IDLE: Duration = Duration::from_secs(60);

/// A connection made for a visit is given up after so long: hundreds of thousands of sensors visit a few directories, and
/// a directory has places for those whose visits overlap.
pub const VISIT: Duration = Duration::from_secs(3);

/// How long the connection is kept over which a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For further questions: [`IDLE`].
    ForMore,
    /// For this visit, unless it is needed for more: [`VISIT`].
    Briefly,
    /// As long as without the question, which is asked only while there is a connection: no one is dialled.
    AsItIs,
}

/// Most daemons in the table: half of the connections that a daemon may have.
pub const CONTACTS_MAX: usize = 512;

/// Most questions at a time to one daemon. A proxy hands on what all its visitors ask of a domain, and some of these calls
/// wait half a minute for something to happen: so many visitors may, each a stream and some KiB at both ends. Below what
/// one peer may have open there.
pub const ASKED_MAX: usize = 128;

/// Time between two looks which connections no one needs any more.
const TEND_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two looks whether a dialled daemon is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

struct Row {
    asking: Arc<Semaphore>,
    /// Connections that others made are theirs to give up.
    dialled: bool,
    /// It is needed until then.
    until: Moment,
    /// It was said last that it is to be held.
    held: Option<Moment>,
}

/// All of them; shared by whoever asks.
pub struct Contacts {
    net: Handle,
    /// Connections to its members are others' to close.
    own: Option<DomainName>,
    rows: Mutex<BTreeMap<PeerKey, Row>>,
}

impl fmt::Debug for Contacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

impl Contacts {
    /// None yet, of a daemon whose own domain is `own`.
    #[must_use]
    pub fn new(net: Handle, own: Option<DomainName>) -> Contacts {
        Contacts { net, own, rows: Mutex::default() }
    }

    /// Ask `peer`, dialling it at `addresses` if need be; at most `deadline`.
    ///
    /// # Errors
    /// If it does not answer; if it is not connected and not to be dialled.
    pub async fn ask(
        &self,
        (peer, addresses): (PeerKey, &[Address]),
        protocol: Protocol,
        question: &[u8],
        keep: Keep,
        deadline: Duration,
    ) -> Result<Vec<u8>, AskError> {
        let span = match keep {
            Keep::ForMore => IDLE,
            Keep::Briefly => VISIT,
            Keep::AsItIs => return self.net.ask(peer, protocol, question, deadline).await,
        };
        let started = clock::now();
        let asking = async {
            let seats = self.use_row(peer, span);
            // Never closed.
            let _seat = seats.acquire().await;
            self.dial(peer, addresses).await;
            self.wait_for(peer).await;
            let left = deadline.saturating_sub(clock::now().since(started));
            self.net.ask(peer, protocol, question, left).await
        };
        match tokio::time::timeout(deadline, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(AskError::TimedOut { peer, after: deadline }),
        }
    }

    /// Wait until questions to `peer` can be asked, dialling it if need be.
    pub async fn reach(&self, peer: PeerKey, addresses: &[Address]) {
        self.use_row(peer, IDLE);
        self.dial(peer, addresses).await;
        self.wait_for(peer).await;
    }

    async fn wait_for(&self, peer: PeerKey) {
        while !self.net.is_ready(peer) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Dial `peer` unless it is there. It is held for as long as this is said again within [`IDLE`].
    pub async fn hold(&self, peer: PeerKey, addresses: &[Address]) {
        self.use_row(peer, IDLE);
        self.lock().entry(peer).and_modify(|row| row.held = Some(clock::now()));
        self.dial(peer, addresses).await;
    }

    /// Whether the connection to `peer` is held, as a representative holds it: not one of a question or a visit.
    #[must_use]
    pub fn is_held(&self, peer: PeerKey) -> bool {
        let now = clock::now();
        self.lock().get(&peer).and_then(|row| row.held).is_some_and(|held| now.since(held) < IDLE)
    }

    async fn dial(&self, peer: PeerKey, addresses: &[Address]) {
        // Said again while it is not there: a member may have been forgotten as such meanwhile.
        if !self.net.is_ready(peer) {
            self.lock().entry(peer).and_modify(|row| row.dialled = true);
            self.net.keep(Target::Peer(peer), addresses.to_vec()).await;
        }
    }

    /// Whether questions to `peer` can be asked now, without dialling it.
    #[must_use]
    pub fn is_ready(&self, peer: PeerKey) -> bool {
        self.net.is_ready(peer)
    }

    /// Give up, until `shutdown`, those that were not asked for long.
    pub async fn tend(&self, shutdown: CancellationToken) {
        let mut look = tokio::time::interval(TEND_INTERVAL);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = look.tick() => self.give_up_idle().await,
            }
        }
    }

    async fn give_up_idle(&self) {
        let now = clock::now();
        let idle: Vec<PeerKey> = {
            let mut rows = self.lock();
            let idle = rows.iter_mut().filter(|(_, row)| row.dialled && row.until <= now);
            idle.map(|(peer, row)| {
                row.dialled = false;
                *peer
            })
            .collect()
        };
        for peer in idle {
            self.give_up(peer).await;
        }
    }

    async fn give_up(&self, peer: PeerKey) {
        self.net.forget(Target::Peer(peer)).await;
        // One that is a member of the same domain too may be needed for more than this.
        let is_own = |domain: &Option<DomainName>| domain.is_some() && *domain == self.own;
        if self.net.principal(peer).is_some_and(|principal| !is_own(&principal.domain)) {
            self.net.close(peer).await;
        }
    }

    /// The row of `peer` is needed for `span` from now on; its seats.
    fn use_row(&self, peer: PeerKey, span: Duration) -> Arc<Semaphore> {
        let now = clock::now();
        let mut rows = self.lock();
        if rows.len() >= CONTACTS_MAX && !rows.contains_key(&peer) {
            // One that is dialled is left to the next look at who is idle: it keeps its place.
            let oldest = rows.iter().filter(|(_, row)| !row.dialled).min_by_key(|(_, row)| row.until);
            if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
                rows.remove(&oldest);
            }
        }
        let fresh =
            || Row { asking: Arc::new(Semaphore::new(ASKED_MAX)), dialled: false, until: now, held: None };
        let row = rows.entry(peer).or_insert_with(fresh);
        row.until = row.until.max(now.plus(span));
        Arc::clone(&row.asking)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, Row>> {
        // Rows are changed by single steps, each whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
