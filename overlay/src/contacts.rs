//! Connection pool for daemons that are queried now and then: dialed for a question, closed when idle.
//!
//! Rule: a question opens a connection; a connection that was not needed for [`IDLE`], or for [`VISIT`] after
//! a brief one, is closed, so that a daemon has connections to recent peers only, not to a whole grid. The
//! table is bounded: the row that is not needed soonest makes room, except that of a dialed daemon; if all
//! daemons in it are dialed, a further one is refused.
//! Not here: which daemon to ask (`directories`, `resolve`), connections inside the domain (`domain`).

use crate::clock;
use crate::net::connected_peers::QUESTIONS_MAX;
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

/// Idle timeout: a connection without a question for this long is closed, unless it is held.
pub const IDLE: Duration = Duration::from_secs(60);

/// Idle timeout of a brief connection: hundreds of thousands of sensors connect briefly to a few directories,
/// and a directory has room for those that overlap.
pub const VISIT: Duration = Duration::from_secs(3);

/// How long to keep the connection of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For further questions: [`IDLE`].
    ForMore,
    /// Briefly, unless it is needed for more: [`VISIT`].
    Briefly,
    /// Unchanged: the question is sent only if there is a connection, and the peer is not dialed.
    AsItIs,
}

/// Most daemons in the table: half of the connections that a daemon may have.
pub const CONTACTS_MAX: usize = 512;

/// Interval of checks for idle connections.
const TEND_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of checks whether a dialed daemon is connected.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

struct Row {
    asking: Arc<Semaphore>,
    /// Whether this daemon dialed it: connections that peers opened are theirs to close.
    dialled: bool,
    /// When the connection becomes idle.
    until: Moment,
    /// When a caller last asked to hold the connection.
    held: Option<Moment>,
}

/// The pool, shared by all callers.
pub struct Contacts {
    net: Handle,
    /// Own domain: this pool does not close connections to its members.
    own: Option<DomainName>,
    rows: Mutex<BTreeMap<PeerKey, Row>>,
}

impl fmt::Debug for Contacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

impl Contacts {
    /// An empty pool, for a daemon of the domain `own`.
    #[must_use]
    pub fn new(net: Handle, own: Option<DomainName>) -> Contacts {
        Contacts { net, own, rows: Mutex::default() }
    }

    /// Ask `peer`, dialing it at `addresses` if necessary, for at most `deadline`.
    ///
    /// # Errors
    /// If it does not answer, if it is not connected and must not be dialed, or if the table is full.
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
            let seats = self.use_row(peer, span)?;
            // The semaphore is never closed.
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

    /// Wait until `peer` is connected, dialing it if necessary, as soon as the table has room.
    pub async fn reach(&self, peer: PeerKey, addresses: &[Address]) {
        let mut is_logged = false;
        while let Err(full) = self.use_row(peer, IDLE) {
            if !std::mem::replace(&mut is_logged, true) {
                tracing::warn!(%peer, %full, "a daemon is not dialed yet");
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        self.dial(peer, addresses).await;
        self.wait_for(peer).await;
    }

    async fn wait_for(&self, peer: PeerKey) {
        while !self.net.is_ready(peer) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Dial `peer` unless it is connected. The connection is held as long as this is called again within
    /// [`IDLE`].
    pub async fn hold(&self, peer: PeerKey, addresses: &[Address]) {
        if let Err(full) = self.use_row(peer, IDLE) {
            return tracing::warn!(%peer, %full, "a connection is not held");
        }
        self.lock().entry(peer).and_modify(|row| row.held = Some(clock::now()));
        self.dial(peer, addresses).await;
    }

    /// Whether the connection to `peer` is held, as a representative holds it: not only open for a question.
    #[must_use]
    pub fn is_held(&self, peer: PeerKey) -> bool {
        let now = clock::now();
        self.lock().get(&peer).and_then(|row| row.held).is_some_and(|held| now.since(held) < IDLE)
    }

    async fn dial(&self, peer: PeerKey, addresses: &[Address]) {
        // Repeated until the peer is connected: the target may have been dropped when the peer ceased to be a
        // member.
        if !self.net.is_ready(peer) {
            self.lock().entry(peer).and_modify(|row| row.dialled = true);
            self.net.keep(Target::Peer(peer), addresses.to_vec()).await;
        }
    }

    /// Whether `peer` can be asked now, without dialing it.
    #[must_use]
    pub fn is_ready(&self, peer: PeerKey) -> bool {
        self.net.is_ready(peer)
    }

    /// Close idle connections until `shutdown`.
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
        // The connection to a member of the same domain may be needed by other parts of the daemon.
        let is_own = |domain: &Option<DomainName>| domain.is_some() && *domain == self.own;
        if self.net.principal(peer).is_some_and(|principal| !is_own(&principal.domain)) {
            self.net.close(peer).await;
        }
    }

    /// Mark the row of `peer` as needed for `span` from now; returns its semaphore.
    ///
    /// # Errors
    /// If there is no room for another row; the table is then as before.
    fn use_row(&self, peer: PeerKey, span: Duration) -> Result<Arc<Semaphore>, AskError> {
        let now = clock::now();
        let mut rows = self.lock();
        if rows.len() >= CONTACTS_MAX && !rows.contains_key(&peer) {
            // A dialed daemon keeps its row until the next check for idle connections.
            let oldest = rows.iter().filter(|(_, row)| !row.dialled).min_by_key(|(_, row)| row.until);
            let oldest = oldest.map(|(peer, _)| *peer).ok_or(AskError::Full { most: CONTACTS_MAX })?;
            rows.remove(&oldest);
        }
        let fresh = || Row {
            asking: Arc::new(Semaphore::new(QUESTIONS_MAX)),
            dialled: false,
            until: now,
            held: None,
        };
        let row = rows.entry(peer).or_insert_with(fresh);
        row.until = row.until.max(now.plus(span));
        Ok(Arc::clone(&row.asking))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, Row>> {
        // Each change of a row is a single step.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticator::Authenticator;
    use crate::identity::admission::Gate;
    use crate::identity::key::Key;
    use crate::identity::revocation_lists::RevocationLists;
    use crate::identity::trust::Trust;
    use crate::net::event_loop::{Config, EventLoop};
    use std::collections::BTreeSet;

    fn key(number: usize) -> PeerKey {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        PeerKey(key)
    }

    #[tokio::test]
    async fn a_table_of_dialed_daemons_refuses_another_until_one_is_idle() {
        let gate =
            Gate::new(Trust::of_directory(BTreeMap::new()), RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, None));
        let opened = EventLoop::open(Config::new(Vec::new()), &Key::from_seed([1; 32]), gate, 1);
        let (_event_loop, net, _events) = opened.expect("opens");
        let contacts = Contacts::new(net, None);
        for number in 0..CONTACTS_MAX {
            contacts.use_row(key(number), IDLE).expect("room");
        }
        contacts.lock().values_mut().for_each(|row| row.dialled = true);
        let other = key(CONTACTS_MAX);
        let full = AskError::Full { most: CONTACTS_MAX };
        let deadline = Duration::from_millis(1);
        let asked = contacts.ask((other, &[]), Protocol::Query, b"", Keep::ForMore, deadline).await;
        assert_eq!((asked, contacts.lock().len()), (Err(full), CONTACTS_MAX));
        contacts.hold(other, &[]).await;
        assert_eq!(contacts.lock().len(), CONTACTS_MAX);
        assert!(contacts.use_row(key(0), IDLE).is_ok(), "it has a row");
        contacts.lock().entry(key(0)).and_modify(|row| row.dialled = false);
        assert!(contacts.use_row(other, IDLE).is_ok());
        assert_eq!(contacts.lock().len(), CONTACTS_MAX);
    }
}
