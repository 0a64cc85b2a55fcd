//! Dispatcher of overlay events: one queue for each protocol.
//!
//! Rule: the hub never waits. If a queue is full, a question is refused with a message, and a stream is
//! reset. Connecting and disconnecting peers are broadcast to every subscriber; a subscriber that is too slow
//! reads the table instead.
//! Not here: answering a question (membership here, the others in the daemons).

use crate::identity::admission::Principal;
use crate::net::event_loop::{Event, Question};
use crate::net::handle::Answer;
use crate::net::protocol::Protocol;
use crate::net::stream::Stream;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc};
use wire::id::PeerKey;

/// Most questions or streams of one protocol that wait.
const WAITING_MAX: usize = 256;

/// Most peer events that wait for a slow subscriber before it is notified that it missed some.
const PEERS_MAX: usize = 1024;

/// A stream that a peer opened and that this daemon admitted.
#[derive(Debug)]
pub struct Session {
    pub peer: PeerKey,
    pub principal: Arc<Principal>,
    pub stream: Stream,
}

/// A peer connected or disconnected.
#[derive(Clone, Debug)]
pub enum PeerEvent {
    /// Both sides have admitted each other.
    Ready(Arc<Principal>, Option<SocketAddr>),
    /// Its last connection ended.
    Gone(PeerKey),
    /// It refuses this daemon, with the reason.
    Unwelcome(PeerKey, String),
}

/// The hub: subscribe to what the daemon serves, then run it.
#[derive(Debug)]
pub struct Hub {
    events: mpsc::Receiver<Event>,
    peers: broadcast::Sender<PeerEvent>,
    questions: Vec<(Protocol, mpsc::Sender<Question>)>,
    sessions: Vec<(Protocol, mpsc::Sender<Session>)>,
}

impl Hub {
    /// A hub for these events.
    #[must_use]
    pub fn new(events: mpsc::Receiver<Event>) -> Hub {
        Hub { events, peers: broadcast::channel(PEERS_MAX).0, questions: Vec::new(), sessions: Vec::new() }
    }

    /// Subscribe to the peers that connect and disconnect from now on.
    #[must_use]
    pub fn peers(&self) -> broadcast::Receiver<PeerEvent> {
        self.peers.subscribe()
    }

    /// Receive the questions of `protocol`; the caller must answer them.
    pub fn questions(&mut self, protocol: Protocol) -> mpsc::Receiver<Question> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.questions.push((protocol, sender));
        receiver
    }

    /// Receive the streams of `protocol`; the caller must serve them.
    pub fn sessions(&mut self, protocol: Protocol) -> mpsc::Receiver<Session> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.sessions.push((protocol, sender));
        receiver
    }

    /// Dispatch events until the overlay ends.
    pub async fn run(mut self) {
        while let Some(event) = self.events.recv().await {
            match event {
                // An error only means that there is no subscriber.
                Event::Ready { principal, address } => {
                    drop(self.peers.send(PeerEvent::Ready(principal, address)))
                }
                Event::Gone(peer) => drop(self.peers.send(PeerEvent::Gone(peer))),
                // A failed dial is no event of a peer.
                Event::DialFailed(..) => {}
                Event::Unwelcome { peer, reason } => {
                    drop(self.peers.send(PeerEvent::Unwelcome(peer, reason)))
                }
                Event::Question(question) => self.ask(question),
                Event::Stream { peer, principal, protocol, stream } => {
                    let taker = self.sessions.iter().find(|(taken, _)| *taken == protocol);
                    let session = Session { peer, principal, stream };
                    if taker.is_none_or(|(_, taker)| taker.try_send(session).is_err()) {
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
            // The peer may have closed the connection.
            let _ = question.reply.send(answer);
        }
    }
}
/// Refusal of a question of a protocol that this daemon does not serve.
pub(crate) fn answers_none(protocol: Protocol) -> String {
    format!("this daemon answers no questions of {protocol}")
}
