//! Overlay service of the directory: answers `/visperf/directory/1` and sends the questions to the peer
//! directories.
//!
//! ```text
//! any admitted daemon ── question ──▶ may it ask that? ──▶ Handle::answer ──▶ answer
//! run_among ── Output::Ask ──▶ the other directory ── answer ──▶ Handle::take_answer
//! ```
//! Rules: this file decides which peer may ask what. The gatekeeper verifies signed items, never under the
//! table's lock; it admits the domains that are in the list of admitted domains at that moment.
//! Not here: leases, saving and the file of the list (`run`), connections (`overlay::net`).

use crate::answers::Open;
use crate::handle::Handle;
use crate::opened::{Opened, OpenedDenial, OpenedLeave};
use crate::replicate::{Output, PEERS_MAX};
use overlay::authenticator::Authenticator;
use overlay::hub::PeerEvent;
use overlay::identity::admission::{Action, Principal};
use overlay::net::event_loop::Question;
use overlay::net::handle::{self as net, Handle as Net};
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::{Denial, Statement};
use wire::id::{DomainName, PeerKey};
use wire::join::Directory;
use wire::replication::{Answer, Farewell, Question as Asked, ReplicaQuestion};

/// Questions to peer directories that may be queued or open: each peer is sent a few at a time.
pub const ASKS_MAX: usize = 8 * PEERS_MAX;

/// Timeout of a question, a little shorter than the timeout of the core.
const DEADLINE: Duration = Duration::from_millis(3500);

/// A directory that communicates with other daemons.
#[derive(Debug)]
pub struct Service {
    pub directory: Handle,
    pub net: Net,
    /// Authenticates peers. It knows the keys of `others`.
    pub gate: Arc<Authenticator>,
    /// Received questions of [`Protocol::Directory`].
    pub questions: mpsc::Receiver<Question>,
    pub peers: broadcast::Receiver<PeerEvent>,
    /// Questions that [`crate::run::Directory::run_among`] sends; a channel of capacity [`ASKS_MAX`].
    pub asks: mpsc::Receiver<Output>,
    /// Peer directories.
    pub others: Vec<Directory>,
    /// Whether this daemon is also a member of a domain. The admitted domains may then read, as from any
    /// other directory, but do not become members of its domain.
    pub is_member: bool,
}

impl Service {
    /// Admit the domains that are in the list now. Call it before the overlay runs; [`Service::run`] then
    /// follows the list.
    pub fn follow_list(&self) {
        let admitted = roots(&self.directory);
        let (me, is_member) = (self.net.me(), self.is_member);
        let followed = self.gate.decide(|gate| {
            if is_member {
                return gate.trust().hear_only(me, admitted);
            }
            gate.trust().admit_only(admitted);
            Ok(())
        });
        if let Err(refused) = followed {
            tracing::error!(%refused, "the previous list of admitted domains stays in use");
        }
    }

    /// Answer and send questions until `shutdown` fires.
    pub async fn run(mut self, shutdown: CancellationToken) {
        self.follow_list();
        for other in &self.others {
            self.net.keep(Target::Peer(other.key), other.addresses.clone()).await;
        }
        let mut admissions = self.directory.admissions();
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(question) = self.questions.recv() => self.handle_question(question),
                Some(output) = self.asks.recv() => self.ask(output, &mut asking),
                Some(asked) = asking.join_next() => {
                    if let Err(error) = asked {
                        tracing::error!(%error, "a question to another directory failed");
                    }
                }
                event = next_peer(&mut self.peers) => self.handle_peer(event),
                Ok(()) = admissions.changed() => self.follow_list(),
            }
        }
    }

    fn handle_question(&self, question: Question) {
        let Question { peer, principal, body, reply, .. } = question;
        let answer = match postcard::from_bytes::<Asked>(&body) {
            Err(_) => {
                net::Answer::Refused("the question cannot be read; is it of another version?".to_owned())
            }
            Ok(asked) => match self.may(principal.as_deref(), &asked) {
                Err(reason) => net::Answer::Refused(reason),
                Ok(()) => {
                    let open = Opening { gate: &self.gate, from: peer };
                    let answer = self.directory.answer(peer, asked, &open);
                    net::Answer::Done(
                        postcard::to_stdvec(&answer).expect("an answer has no part that cannot be written"),
                    )
                }
            },
        };
        // The peer that asked may be gone.
        let _ = reply.send(answer);
    }

    /// Whether `principal` may ask this; the connection showed that its certificate is still valid.
    fn may(&self, principal: Option<&Principal>, asked: &Asked) -> Result<(), String> {
        let principal = principal.ok_or("show a certificate first")?;
        match asked {
            Asked::State(_) | Asked::Leave(_) => self.gate.check_stating(principal),
            Asked::Replica(_) => self.gate.check(principal, Action::Replicate),
            Asked::Deny(_) | Asked::Resolve(_) | Asked::Admitted { .. } | Asked::DenyLists(_) => Ok(()),
        }
        .map_err(|refused| refused.to_string())
    }

    fn ask(&self, output: Output, asking: &mut JoinSet<()>) {
        let Output::Ask { to, id, question } = output else { return };
        if asking.len() >= ASKS_MAX {
            return self.directory.handle_failure(to, id);
        }
        let (net, directory, gate) = (self.net.clone(), self.directory.clone(), Arc::clone(&self.gate));
        asking.spawn(async move {
            match exchange(&net, to, question).await {
                Ok(answer) => {
                    // The answer may contain hundreds of signatures to verify.
                    let taking = tokio::task::spawn_blocking(move || {
                        directory.take_answer(to, id, answer, &Opening { gate: &gate, from: to })
                    });
                    match taking.await {
                        Ok(0) => {}
                        Ok(unbelieved) => {
                            tracing::warn!(%to, unbelieved, "another directory sent what does not hold")
                        }
                        Err(error) => tracing::error!(%to, %error, "an answer could not be taken"),
                    }
                }
                Err(reason) => {
                    tracing::debug!(%to, reason, "another directory did not answer");
                    directory.handle_failure(to, id);
                }
            }
        });
    }

    /// Process a connection event; `None` means that events were missed.
    fn handle_peer(&self, event: Option<PeerEvent>) {
        match event {
            Some(PeerEvent::Ready(principal, _)) if principal.directory => {
                self.directory.handle_connected(principal.peer);
            }
            Some(PeerEvent::Unwelcome(peer, reason)) if self.others.iter().any(|other| other.key == peer) => {
                tracing::warn!(%peer, reason, "another directory does not welcome this one");
            }
            Some(_) => {}
            None => {
                let ready = self.others.iter().filter(|other| self.net.is_ready(other.key));
                ready.for_each(|other| self.directory.handle_connected(other.key));
            }
        }
    }
}

async fn next_peer(peers: &mut broadcast::Receiver<PeerEvent>) -> Option<PeerEvent> {
    match peers.recv().await {
        Ok(event) => Some(event),
        Err(broadcast::error::RecvError::Lagged(_)) => None,
        // The overlay has ended; shutdown follows.
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
    }
}

async fn exchange(net: &Net, to: PeerKey, question: ReplicaQuestion) -> Result<Answer, String> {
    let question = Asked::Replica(question);
    let bytes = postcard::to_stdvec(&question).expect("a question has no part that cannot be written");
    let answer =
        net.ask(to, Protocol::Directory, &bytes, DEADLINE).await.map_err(|error| error.to_string())?;
    postcard::from_bytes(&answer).map_err(|error| format!("its answer cannot be read: {error}"))
}

/// The admitted domains, each with its trusted root.
fn roots(directory: &Handle) -> BTreeMap<DomainName, PeerKey> {
    let mut roots = BTreeMap::new();
    for (domain, root) in directory.admitted(None, usize::MAX) {
        if let Some(believed) = roots.get(&domain) {
            tracing::warn!(
                %domain, %believed, ignored = %root,
                "admitted under two roots, but only one is trusted; remove the other from the list"
            );
        } else {
            roots.insert(domain, root);
        }
    }
    roots
}

/// Verifies items from `from` with the roots and revocations of the gatekeeper.
struct Opening<'a> {
    gate: &'a Authenticator,
    from: PeerKey,
}

impl Open for Opening<'_> {
    type Refused = String;

    fn statement(&self, statement: Statement) -> Result<Opened, String> {
        let opened = self.gate.open_statement(self.from, &statement);
        let (record, _) = opened.map_err(|refused| refused.to_string())?;
        Opened::signed(record, statement).map_err(|refused| refused.to_string())
    }

    fn farewell(&self, farewell: Farewell) -> Result<OpenedLeave, String> {
        let opened = self.gate.open_farewell(self.from, &farewell);
        let (leave, _) = opened.map_err(|refused| refused.to_string())?;
        Ok(OpenedLeave { leave, farewell: Arc::new(farewell) })
    }

    fn denial(&self, denial: Denial) -> Result<OpenedDenial, String> {
        let opened = self.gate.open_denial(self.from, &denial);
        let (list, delegation) = opened.map_err(|refused| refused.to_string())?;
        Ok(OpenedDenial::new(&list, delegation.as_ref(), denial))
    }
}
