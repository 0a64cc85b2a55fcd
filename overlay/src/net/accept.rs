//! Acceptance of inbound streams: identify the peer, check its permission, read the question.
//!
//! Rule: the daemon receives no question before the peer's certificate has been checked for this very stream
//! (a protocol open to strangers needs none); a refusal has a reason, is counted, and costs the peer its
//! stream only.
//! Not here: answering (the daemon, on [`super::event_loop::Event`]).

use super::connected_peers::{Change, ConnectedPeers};
use super::event_loop::{Event, Question};
use super::figures::Figures;
use super::frames::{self, Reader};
use super::handle::{Answer, VERDICT_LEN_MAX_BYTES};
use super::hello::{Admission, Hello, VERSION, Verdict};
use super::protocol::{Protocol, Shape};
use super::stream::{Raw, Stream};
use crate::clock;
use crate::identity::admission::Principal;
use crate::identity::audit::{Subject, Trail};
use crate::identity::refused::Refused;
use crate::identity::trust::Affiliation;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use wire::bytes::Owned;
use wire::id::PeerKey;

/// Timeout for a peer to write its question; for the next one on the same stream, from the previous answer
/// on.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout for making an answer, and again for writing it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// State shared by all accepting tasks.
pub(super) struct StreamAcceptor {
    pub(super) admission: Arc<dyn Admission>,
    pub(super) connected_peers: Arc<ConnectedPeers>,
    pub(super) figures: Arc<Figures>,
    /// Queue of events to the daemon; when it is full, the peer receives a refusal.
    pub(super) events: mpsc::Sender<Event>,
    /// Audit log of refusals decided here: peers of another version.
    pub(super) refused: Mutex<Trail>,
    /// Queue to the event loop.
    pub(super) greeted: mpsc::Sender<(PeerKey, Change)>,
    /// Most connections: a stranger beyond them is refused in the answer to its hello.
    pub(super) connections_max: u32,
    /// Answers questions of the query interface, once it is set.
    pub(super) answerer: OnceLock<Arc<dyn Answerer>>,
}

/// Handler of query questions that runs on the task of their stream: every further task would cost at least a
/// context switch, and some a wake-up of another thread.
pub trait Answerer: Send + Sync {
    fn answer(&self, principal: Arc<Principal>, question: Vec<u8>) -> Answering<'_>;
}

/// A future answer; `None` if the daemon is stopping.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>>;

/// The peer that asks: its key, its remote address, and its principal if it showed a certificate.
type Asker = (PeerKey, Option<SocketAddr>, Option<Arc<Principal>>);

impl StreamAcceptor {
    /// Serve one stream until it ends.
    pub(super) async fn serve(
        &self,
        (peer, address): (PeerKey, Option<SocketAddr>),
        protocol: Protocol,
        stream: Raw,
    ) {
        let Ok(permit) = self.connected_peers.permit_inbound(peer) else {
            self.figures.streams_refused_total.add();
            // Reset without a reason: a peer that exceeds its limit of streams gets no further message.
            return;
        };
        self.figures.streams_total.add();
        let mut stream = Stream::new(stream, permit);
        let result = match (protocol, protocol.shape()) {
            (Protocol::Hello, _) => self.hello(peer, &mut stream).await,
            (Protocol::Queries, _) => self.series((peer, address), &mut stream).await,
            (_, Shape::Question) => self.question((peer, address), protocol, &mut stream).await,
            (_, Shape::Lasting) => {
                self.lasting(peer, protocol, stream).await;
                return;
            }
        };
        if let Err(error) = result {
            tracing::debug!(%peer, %protocol, %error, "a stream failed");
        }
    }

    async fn hello(&self, peer: PeerKey, stream: &mut Stream) -> Result<(), frames::Error> {
        let Some(hello) = self.read::<Hello>(Protocol::Hello, stream).await? else { return Ok(()) };
        if let Some(time) = hello.time.0 {
            self.admission.note_time(peer, &hello.proof, time);
        }
        let verdict = match self.admit(peer, &hello) {
            // Counted and not logged: the peer comes again, and others with it.
            Ok(_) if self.is_full_for(peer) => {
                self.figures.connections_refused_total.add();
                Verdict::Refused(format!(
                    "full: this daemon has {} connections, the most that it may; try again later, or ask its operator \
                     for another one",
                    self.connections_max
                ))
            }
            Ok(principal) => {
                let change = self.connected_peers.admit(peer, principal, hello.start);
                // The event loop reads until it ends.
                let _ = self.greeted.send((peer, change)).await;
                Verdict::Welcome
            }
            Err(reason) => {
                self.figures.hellos_refused_total.add();
                // The admission logs the refusal, with a rate limit.
                tracing::debug!(target: "audit", %peer, program = hello.program, reason, "refused a daemon");
                let _ = self.greeted.send((peer, Change { is_refused: true, ..Change::default() })).await;
                Verdict::Refused(reason)
            }
        };
        frames::write(stream, &verdict, VERDICT_LEN_MAX_BYTES).await
    }

    fn admit(&self, peer: PeerKey, hello: &Hello) -> Result<Arc<Principal>, String> {
        if !wire::version::HELLO.reads(hello.version) {
            let refused = Refused::Version { found: hello.version, expected: VERSION };
            // Changed by single steps, each complete.
            let mut trail = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            trail.refuse(Subject::stranger(peer), &refused, clock::calendar(), clock::now());
            while let Some(audit) = trail.poll_output() {
                audit.log();
            }
            return Err(refused.to_string());
        }
        self.admission.admit(peer, &hello.proof)
    }

    /// Whether there is no place for `peer`. A peer that is already admitted stays.
    fn is_full_for(&self, peer: PeerKey) -> bool {
        let is_full = self.figures.connections.get() > u64::from(self.connections_max);
        is_full && self.connected_peers.principal(peer).is_none()
    }

    /// The peer's principal, if it may still open streams of `protocol`.
    pub(super) fn principal(&self, peer: PeerKey, protocol: Protocol) -> Result<Arc<Principal>, String> {
        let principal = self.connected_peers.principal(peer).ok_or("show a certificate first")?;
        if principal.affiliation == Affiliation::Visitor && !protocol.is_for_visitors() {
            return Err(format!("a visitor asks questions, and opens no stream of {protocol}"));
        }
        self.admission.review(&principal)?;
        Ok(principal)
    }

    async fn question(
        &self,
        (peer, address): (PeerKey, Option<SocketAddr>),
        protocol: Protocol,
        stream: &mut Stream,
    ) -> Result<(), frames::Error> {
        let principal = match self.principal(peer, protocol) {
            Ok(principal) => Some(principal),
            Err(_) if protocol.is_open_to_strangers() => None,
            Err(reason) => {
                self.figures.streams_refused_total.add();
                return answer(stream, protocol, Answer::Refused(reason)).await;
            }
        };
        let Some(Owned(body)) = self.read(protocol, stream).await? else { return Ok(()) };
        self.put((peer, address, principal), protocol, body, stream).await
    }

    /// Serve questions one after the other, with a check of the certificate before each, until the peer ends
    /// the stream or asks no more.
    async fn series(
        &self,
        (peer, address): (PeerKey, Option<SocketAddr>),
        stream: &mut Stream,
    ) -> Result<(), frames::Error> {
        let protocol = Protocol::Query;
        let mut asked = None;
        loop {
            let principal = match self.principal(peer, protocol) {
                Ok(principal) => principal,
                Err(reason) => {
                    self.figures.streams_refused_total.add();
                    return answer(stream, protocol, Answer::Refused(reason)).await;
                }
            };
            let body = match asked.take() {
                Some(body) => body,
                None => match self.read(protocol, stream).await? {
                    Some(Owned(body)) => body,
                    None => return Ok(()),
                },
            };
            self.put((peer, address, Some(principal)), protocol, body, stream).await?;
            // A peer without a further question ends the stream, or leaves it open until the timeout: neither
            // is a failure.
            let mut reader = Reader::new(&mut *stream, protocol.question_len_max_bytes());
            match tokio::time::timeout(QUESTION_TIMEOUT, reader.next()).await {
                Ok(Ok(Some(Owned(body)))) => asked = Some(body),
                Ok(Ok(None) | Err(_)) | Err(_) => return Ok(()),
            }
        }
    }

    /// Pass a question to the daemon, and its answer to the peer.
    async fn put(
        &self,
        asker: Asker,
        protocol: Protocol,
        body: Vec<u8>,
        stream: &mut Stream,
    ) -> Result<(), frames::Error> {
        let making = async {
            match (self.answerer.get(), asker.2.clone()) {
                (Some(answerer), Some(principal)) if protocol == Protocol::Query => {
                    answerer.answer(principal, body).await
                }
                _ => self.hand_on(asker, protocol, body).await,
            }
        };
        let made = match tokio::time::timeout(ANSWER_TIMEOUT, making).await {
            Ok(Some(made)) => made,
            // The daemon is stopping. The end of the stream shows that to peers that can ask another daemon.
            Ok(None) if protocol == Protocol::Query => {
                self.figures.questions_failed_total.add();
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into());
            }
            Ok(None) => {
                Answer::Refused("this daemon is stopping, or does not answer such questions".to_owned())
            }
            Err(_) => Answer::Refused("no answer was made in time".to_owned()),
        };
        match made {
            Answer::Done(_) => self.figures.questions_total.add(),
            Answer::Refused(_) => self.figures.questions_failed_total.add(),
        }
        answer(stream, protocol, made).await
    }

    /// Queue the question as an event; the answer of the task that takes it, `None` if that task drops it.
    async fn hand_on(
        &self,
        (peer, address, principal): Asker,
        protocol: Protocol,
        body: Vec<u8>,
    ) -> Option<Answer> {
        let (reply, replied) = oneshot::channel();
        let from = tracing::Span::current();
        let question = Event::Question(Question { peer, principal, address, protocol, body, reply, from });
        match self.events.try_send(question) {
            Ok(()) => replied.await.ok(),
            Err(_) => Some(Answer::busy()),
        }
    }

    async fn lasting(&self, peer: PeerKey, protocol: Protocol, mut stream: Stream) {
        let room = self.events.try_reserve();
        let (principal, room) = match (self.principal(peer, protocol), room) {
            (Ok(principal), Ok(room)) => (principal, room),
            (refused, _) => {
                self.figures.streams_refused_total.add();
                let reason = refused.err().unwrap_or_else(|| "busy: too much waits already".to_owned());
                let refused = Verdict::Refused(reason);
                let _ = frames::write(&mut stream, &refused, VERDICT_LEN_MAX_BYTES).await;
                return;
            }
        };
        if frames::write(&mut stream, &Verdict::Welcome, VERDICT_LEN_MAX_BYTES).await.is_ok() {
            room.send(Event::Stream { peer, principal, protocol, stream });
        }
    }

    async fn read<T: serde::de::DeserializeOwned>(
        &self,
        protocol: Protocol,
        stream: &mut Stream,
    ) -> Result<Option<T>, frames::Error> {
        let mut reader = Reader::new(stream, protocol.question_len_max_bytes());
        let read = match tokio::time::timeout(QUESTION_TIMEOUT, reader.next()).await {
            Ok(read) => read,
            Err(_) => Err(frames::Error::Broken(std::io::ErrorKind::TimedOut.into())),
        };
        if read.is_err() {
            self.figures.streams_refused_total.add();
        }
        read
    }
}

async fn answer(stream: &mut Stream, protocol: Protocol, answer: Answer) -> Result<(), frames::Error> {
    let max_bytes = protocol.answer_len_max_bytes();
    let writing = async {
        match frames::write(stream, &answer, max_bytes).await {
            Err(frames::Error::TooLong { len_bytes, max_bytes }) => {
                let reason = format!(
                    "the answer has {len_bytes} bytes, more than {max_bytes}; ask for less at a time"
                );
                frames::write(stream, &Answer::Refused(reason), max_bytes).await
            }
            written => written,
        }
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, writing).await {
        Ok(written) => written,
        Err(_) => Err(frames::Error::Broken(std::io::ErrorKind::TimedOut.into())),
    }
}
