//! Hands what the overlay tells to whoever serves it: one queue for each protocol.
//!
//! Rule: the hub never waits. What finds its queue full is refused to the peer in words; peers that come
//! and go are told to everybody who asked, and whoever is too slow for that looks at the table instead.
//! Not here: what is done with a question (membership here, the rest in the daemons).

use crate::identity::admission::Principal;
use crate::net::event_loop::{Event, Question};
use crate::net::handle::Answer;
use crate::net::protocol::Protocol;
use crate::net::stream::Stream;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};
use wire::id::PeerKey;

/// Questions or streams of one protocol that may wait.
const WAITING_MAX: usize = 256;

/// Peers coming and going that may wait for a slow listener before it is told that it missed some.
const PEERS_MAX: usize = 1024;

/// A stream that a peer opened and that was welcomed.
#[derive(Debug)]
pub struct Visit {
    /// Who.
    pub peer: PeerKey,
    /// Who that is.
    pub principal: Arc<Principal>,
    /// The stream.
    pub stream: Stream,
}

/// A peer came or went.
#[derive(Clone, Debug)]
pub enum PeerEvent {
    /// Both sides have welcomed each other.
    Ready(Arc<Principal>, Option<SocketAddr>),
    /// Its last connection ended.
    Gone(PeerKey),
    /// It does not welcome this daemon, and why.
    Unwelcome(PeerKey, String),
}

/// The hub: ask it for what is to be served, then run it.
#[derive(Debug)]
pub struct Hub {
    events: mpsc::Receiver<Event>,
    peers: broadcast::Sender<PeerEvent>,
    questions: Vec<(Protocol, mpsc::Sender<Question>)>,
    visits: Vec<(Protocol, mpsc::Sender<Visit>)>,
}

impl Hub {
    /// A hub of what `events` brings.
    #[must_use]
    pub fn new(events: mpsc::Receiver<Event>) -> Hub {
        Hub { events, peers: broadcast::channel(PEERS_MAX).0, questions: Vec::new(), visits: Vec::new() }
    }

    /// Peers that come and go from now on.
    #[must_use]
    pub fn peers(&self) -> broadcast::Receiver<PeerEvent> {
        self.peers.subscribe()
    }

    /// The questions of `protocol`; whoever takes them answers them.
    pub fn questions(&mut self, protocol: Protocol) -> mpsc::Receiver<Question> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.questions.push((protocol, sender));
        receiver
    }

    /// The streams of `protocol`; whoever takes them serves them.
    pub fn visits(&mut self, protocol: Protocol) -> mpsc::Receiver<Visit> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.visits.push((protocol, sender));
        receiver
    }

    /// Hand on until the overlay ends.
    pub async fn run(mut self) {
        while let Some(event) = self.events.recv().await {
            match event {
                // An error says that no one listens.
                Event::Ready { principal, address } => {
                    drop(self.peers.send(PeerEvent::Ready(principal, address)))
                }
                Event::Gone(peer) => drop(self.peers.send(PeerEvent::Gone(peer))),
                // It is no visitor.
                Event::Undialled(..) => {}
                Event::Unwelcome { peer, reason } => {
                    drop(self.peers.send(PeerEvent::Unwelcome(peer, reason)))
                }
                Event::Question(question) => self.ask(question),
                Event::Stream { peer, principal, protocol, stream } => {
                    let taker = self.visits.iter().find(|(taken, _)| *taken == protocol);
                    let visit = Visit { peer, principal, stream };
                    if taker.is_none_or(|(_, taker)| taker.try_send(visit).is_err()) {
                        tracing::debug!(%peer, %protocol, "a stream that no handler takes now is reset");
                    }
                }
            }
        }
    }

    fn ask(&self, question: Question) {
        let protocol = question.protocol;
        let taker = self.questions.iter().find(|(taken, _)| *taken == protocol);
        let refused = match taker {
            None => Some((question, Answer::Refused(answers_none(protocol)))),
            Some((_, taker)) => match taker.try_send(question) {
                Ok(()) => None,
                Err(mpsc::error::TrySendError::Full(question)) => Some((question, Answer::busy())),
                Err(mpsc::error::TrySendError::Closed(question)) => {
                    Some((question, Answer::Refused("this daemon is stopping".to_owned())))
                }
            },
        };
        if let Some((question, answer)) = refused {
            // The peer may have gone.
            let _ = question.reply.send(answer);
        }
    }
}
/// What a daemon says to questions that it answers none of.
pub(crate) fn answers_none(protocol: Protocol) -> String {
    format!("this daemon answers no questions of {protocol}")
}
