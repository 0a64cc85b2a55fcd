//! Handle of the overlay for the other parts of a daemon: ask a peer, open a stream to it, hold a connection.
//!
//! Cheap to clone. Rule: a question never waits longer than its deadline, and its error names the peer that
//! failed and the cause.
//! Not here: the swarm ([`super::event_loop`]).

use super::connected_peers::ConnectedPeers;
use super::connection_transports::ConnectionTransports;
use super::figures::Figures;
use super::frames;
use super::hello::Verdict;
use super::outbound::Arrival;
use super::protocol::{Protocol, Shape};
use super::question_pool::{Pooled, QuestionPool};
use super::redial::Target;
use super::stream::Stream;
use super::streams::{OpenError, Opened, is_unsupported};
use crate::clock;
use crate::identity::admission::Principal;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tunnel::ladder::TransportKind;
use wire::address::Address;
use wire::bytes::Borrowed;
use wire::id::PeerKey;

/// Command to the event loop.
#[derive(Debug)]
pub(super) enum Command {
    Keep(Target, Vec<Address>),
    Forget(Target),
    Close(PeerKey),
    Greet(PeerKey),
    Open(PeerKey, Protocol, Opened),
}

/// Answer to a question, as it is encoded on the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Done(#[serde(with = "wire::bytes")] Vec<u8>),
    /// Not answered, and the reason.
    Refused(String),
}

impl Answer {
    /// The answer where the queue of questions is full.
    #[must_use]
    pub fn busy() -> Answer {
        Answer::Refused("busy: too many questions wait already; ask again later".to_owned())
    }
}

/// Why a question failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No stream could be opened.
    #[error("{peer}: {source}")]
    Open {
        peer: PeerKey,
        /// The error of the swarm.
        source: OpenError,
    },
    /// The peer refused.
    #[error("{peer} refused: {reason}")]
    Refused {
        peer: PeerKey,
        /// The reason that the peer sent.
        reason: String,
    },
    /// No answer came in time.
    #[error("{peer} did not answer within {} ms", after.as_millis())]
    TimedOut {
        peer: PeerKey,
        /// The deadline.
        after: Duration,
    },
    /// The connection broke, or the peer sent no valid answer.
    #[error("{peer}: {reason}")]
    Broken {
        peer: PeerKey,
        /// The error, without details of libp2p.
        reason: String,
    },
    /// The table of daemons that this daemon dials for questions is full.
    #[error("already {most} daemons are dialed for questions, the most that may be; try again later")]
    Full {
        /// The size of the table.
        most: usize,
    },
    /// This daemon is stopping.
    #[error("this daemon is stopping")]
    Stopping,
}

/// Reason for a connection that broke. The error of libp2p is only logged: it means nothing to a user.
const BROKE: &str = "the connection broke";

impl AskError {
    fn broken((peer, protocol): (PeerKey, Protocol), error: &frames::Error) -> AskError {
        let reason = match error {
            frames::Error::Broken(error) if is_unsupported(error) => {
                return AskError::Open { peer, source: OpenError::Unsupported(protocol) };
            }
            frames::Error::Broken(error) => {
                tracing::debug!(%peer, %error, "a connection broke while an answer was awaited");
                BROKE.to_owned()
            }
            frames::Error::Cut | frames::Error::TooLong { .. } | frames::Error::Codec(_) => error.to_string(),
        };
        AskError::Broken { peer, reason }
    }

    /// The reason without the peer's key, for a sentence that names the peer already.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            AskError::Open { source, .. } => source.to_string(),
            AskError::Refused { reason, .. } => format!("it refused: {reason}"),
            AskError::TimedOut { after, .. } => format!("it did not answer within {} ms", after.as_millis()),
            AskError::Broken { reason, .. } => reason.clone(),
            AskError::Full { .. } | AskError::Stopping => self.to_string(),
        }
    }
}

/// Handle of this daemon's overlay.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) me: PeerKey,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) connected_peers: Arc<ConnectedPeers>,
    pub(super) figures: Arc<Figures>,
    pub(super) listening: watch::Receiver<Vec<SocketAddr>>,
    pub(super) transports: Arc<ConnectionTransports>,
    /// Takes connections that arrived at another listener, such as a proxy's.
    pub(super) arrivals: mpsc::Sender<Arrival>,
    pub(super) pool: Arc<QuestionPool>,
}

impl Handle {
    /// This daemon's key.
    #[must_use]
    pub fn me(&self) -> PeerKey {
        self.me
    }

    /// The counters of the overlay.
    #[must_use]
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// At most `most` connections that are not direct, newest first: the peer, and the transport.
    #[must_use]
    pub fn indirect(&self, most: usize) -> Vec<(PeerKey, TransportKind)> {
        self.transports.indirect(most)
    }

    /// The addresses at which the daemon listens, as they become known.
    #[must_use]
    pub fn listening(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.listening.clone()
    }

    /// The principal of `peer`, while it is connected and admitted.
    #[must_use]
    pub fn principal(&self, peer: PeerKey) -> Option<Arc<Principal>> {
        self.connected_peers.principal(peer)
    }

    /// Whether `peer` is connected, admitted or not.
    #[must_use]
    pub fn is_connected(&self, peer: PeerKey) -> bool {
        self.connected_peers.is_here(peer)
    }

    /// The principals of all connected peers with which admission is mutual.
    #[must_use]
    pub fn ready(&self) -> Vec<Arc<Principal>> {
        self.connected_peers.ready()
    }

    /// Whether `peer` can be asked now.
    #[must_use]
    pub fn is_ready(&self, peer: PeerKey) -> bool {
        self.connected_peers.is_ready(peer)
    }

    /// Hold a connection to `target`: it is dialled again for ever.
    pub async fn keep(&self, target: Target, endpoints: Vec<Address>) {
        self.send(Command::Keep(target, endpoints)).await;
    }

    /// Stop holding a connection to `target`; an open connection is left open.
    pub async fn forget(&self, target: Target) {
        self.send(Command::Forget(target)).await;
    }

    /// Close every connection to `peer`.
    pub async fn close(&self, peer: PeerKey) {
        self.send(Command::Close(peer)).await;
    }

    /// Send `peer` a hello again: this daemon has another certificate or another visa.
    pub async fn greet(&self, peer: PeerKey) {
        self.send(Command::Greet(peer)).await;
    }

    /// Ask `peer` and wait for its answer, at most `deadline`.
    ///
    /// # Errors
    /// If the peer cannot be reached, refuses, or does not answer in time.
    ///
    /// # Panics
    /// If `protocol` is one of lasting streams: a defect of the caller.
    pub async fn ask(
        &self,
        peer: PeerKey,
        protocol: Protocol,
        question: &[u8],
        deadline: Duration,
    ) -> Result<Vec<u8>, AskError> {
        assert_eq!(protocol.shape(), Shape::Question, "{protocol} is asked no questions");
        let asking = async {
            match protocol == Protocol::Query {
                true => self.ask_in_series(peer, question).await,
                false => self.ask_once(peer, protocol, question).await,
            }
        };
        match tokio::time::timeout(deadline, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(AskError::TimedOut { peer, after: deadline }),
        }
    }

    /// Ask on a pooled stream, or on a new one that then goes into the pool.
    async fn ask_in_series(&self, peer: PeerKey, question: &[u8]) -> Result<Vec<u8>, AskError> {
        let now = clock::now();
        if self.pool.is_old(peer, now) {
            return self.ask_once(peer, Protocol::Query, question).await;
        }
        let waiting = self.pool.take(peer, now).filter(|_| self.connected_peers.is_ready(peer));
        let asking = async {
            let mut pooled = match waiting {
                Some(pooled) => pooled,
                None => Pooled { stream: self.raw_stream(peer, Protocol::Queries).await?, opened: now },
            };
            let answered = exchange(&mut pooled.stream, (peer, Protocol::Queries), question).await;
            if answered.is_ok() {
                self.pool.put(peer, pooled, clock::now());
            }
            answered
        };
        match asking.await {
            // The peer of the previous version read nothing of the question.
            Err(AskError::Open { source: OpenError::Unsupported(_), .. }) => {
                self.pool.note_old(peer, now);
                self.ask_once(peer, Protocol::Query, question).await
            }
            answered => answered,
        }
    }

    async fn ask_once(
        &self,
        peer: PeerKey,
        protocol: Protocol,
        question: &[u8],
    ) -> Result<Vec<u8>, AskError> {
        let mut stream = self.raw_stream(peer, protocol).await?;
        exchange(&mut stream, (peer, protocol), question).await
    }

    /// Open a lasting stream to `peer`; the peer has accepted it when this returns.
    ///
    /// # Errors
    /// If the peer cannot be reached, refuses, or sends no verdict within `deadline`.
    pub async fn open(
        &self,
        peer: PeerKey,
        protocol: Protocol,
        deadline: Duration,
    ) -> Result<Stream, AskError> {
        let opening = async {
            let mut stream = self.raw_stream(peer, protocol).await?;
            let broken = |error: frames::Error| AskError::broken((peer, protocol), &error);
            match verdict(&mut stream).await.map_err(broken)? {
                Some(Verdict::Welcome) => Ok(stream),
                Some(Verdict::Refused(reason)) => Err(AskError::Refused { peer, reason }),
                None => Err(AskError::Broken { peer, reason: "the stream ended without a word".to_owned() }),
            }
        };
        match tokio::time::timeout(deadline, opening).await {
            Ok(result) => result,
            Err(_) => Err(AskError::TimedOut { peer, after: deadline }),
        }
    }

    async fn raw_stream(&self, peer: PeerKey, protocol: Protocol) -> Result<Stream, AskError> {
        if !protocol.is_open_to_strangers() && !self.connected_peers.is_ready(peer) {
            return Err(AskError::Open { peer, source: OpenError::NotConnected });
        }
        let permit = self.connected_peers.permit_outbound(peer);
        let (opened, opening) = oneshot::channel();
        self.send(Command::Open(peer, protocol, opened)).await;
        match opening.await {
            Ok(Ok(stream)) => Ok(Stream::new(stream, permit)),
            Ok(Err(source)) => Err(AskError::Open { peer, source }),
            Err(_) if self.commands.is_closed() => Err(AskError::Stopping),
            // The connection is gone, and dropped the request for a stream with it.
            Err(_) => Err(AskError::Broken { peer, reason: BROKE.to_owned() }),
        }
    }

    async fn send(&self, command: Command) {
        // Fails only when the event loop has ended; every waiting caller then gets an error.
        let _ = self.commands.send(command).await;
    }
}

async fn exchange(
    stream: &mut Stream,
    (peer, protocol): (PeerKey, Protocol),
    question: &[u8],
) -> Result<Vec<u8>, AskError> {
    let broken = |error: frames::Error| AskError::broken((peer, protocol), &error);
    let max_bytes = protocol.question_len_max_bytes();
    match frames::write(stream, &Borrowed(question), max_bytes).await {
        // A peer that refuses sends its reason and ends the stream, perhaps before all was written.
        Ok(()) | Err(frames::Error::Broken(_)) => {}
        Err(error) => return Err(broken(error)),
    }
    let mut reader = frames::Reader::new(stream, protocol.answer_len_max_bytes());
    match reader.next::<Answer>().await.map_err(broken)? {
        Some(Answer::Done(bytes)) => Ok(bytes),
        Some(Answer::Refused(reason)) => Err(AskError::Refused { peer, reason }),
        None => Err(AskError::Broken { peer, reason: "the stream ended without an answer".to_owned() }),
    }
}

/// Longest verdict, in bytes: it holds a reason as text.
pub(super) const VERDICT_LEN_MAX_BYTES: usize = 4 << 10;

/// The first frame of a lasting stream; it reads no byte beyond it.
async fn verdict(stream: &mut Stream) -> Result<Option<Verdict>, frames::Error> {
    frames::read_exactly_one(stream, VERDICT_LEN_MAX_BYTES).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handle whose commands arrive at the returned receiver.
    fn handle() -> (Handle, mpsc::Receiver<Command>) {
        let (commands, taken) = mpsc::channel(8);
        let handle = Handle {
            me: PeerKey([0; 32]),
            commands,
            connected_peers: Arc::default(),
            figures: Arc::default(),
            listening: watch::channel(Vec::new()).1,
            transports: Arc::default(),
            arrivals: mpsc::channel(1).0,
            pool: Arc::default(),
        };
        (handle, taken)
    }

    async fn joins(handle: &Handle, peer: PeerKey) -> Result<Vec<u8>, AskError> {
        handle.ask(peer, Protocol::Join, b"", Duration::from_secs(60)).await
    }

    #[tokio::test]
    async fn a_connection_that_broke_is_not_taken_for_a_daemon_that_stops() {
        let (peer, (handle, mut taken)) = (PeerKey([1; 32]), handle());
        let breaks = async {
            let Some(Command::Open(_, _, opened)) = taken.recv().await else { panic!("a stream is wanted") };
            // A connection that closes drops the requests for streams on it.
            drop(opened);
        };
        let (indirect, ()) = tokio::join!(joins(&handle, peer), breaks);
        assert_eq!(indirect, Err(AskError::Broken { peer, reason: BROKE.to_owned() }));
        drop(taken);
        assert_eq!(joins(&handle, peer).await, Err(AskError::Stopping));
    }

    #[test]
    fn what_a_broken_connection_says_of_its_parts_is_for_the_log() {
        let (peer, inner) = (PeerKey([1; 32]), std::io::Error::other("00000001/11: connection is closed"));
        let error = AskError::broken((peer, Protocol::Query), &frames::Error::Broken(inner));
        assert_eq!(error.reason(), "the connection broke");
        assert_eq!(error.to_string(), format!("{peer}: the connection broke"));
    }
}
