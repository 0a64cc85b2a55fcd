//! Polling transport, both ends: the paper's HTTP tunnelling, for sites whose proxies allow nothing else. Only
//! where a middlebox allows no upgrade, a stream is carried by HTTP requests and responses: long-lived GETs,
//! one after the other, fetch the bytes of the other end; POSTs send the bytes of this end.
//!
//! ```text
//! POST /tunnel                    an opening ──▶ its answer
//! GET  /tunnel/TOKEN?at=N&n=M     ──▶ the bytes after byte N, as soon as there are some
//! POST /tunnel/TOKEN              frames ──▶ nothing
//! ```
//! Rules: each request is complete and has its length, so a middlebox may buffer it; no two GETs are equal,
//! so no cache answers one; in each direction at most one request is pending.
//! Not here: the stream that outlives its requests, which a WebSocket carries too (`tunnel::carrier`), the
//! table of streams at the answering end (`tunnels`), TLS below (`dial`).

use super::tunnels::Tunnels;
use super::{Epoch, PATH, Shared};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tunnel::carrier::frame::{Opened, Opening, Refused, Token};
use tunnel::ladder::TransportKind;

/// Most bytes of one request or response; a middlebox may buffer all of them.
const PIECE_LEN_MAX_BYTES: usize = 512 << 10;

/// Longest response that is read, in bytes: a piece and the header of its last frame.
const ANSWER_LEN_MAX_BYTES: usize = PIECE_LEN_MAX_BYTES + 1024;

/// Timeout for a response: longer than [`ANSWER_AFTER`].
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// At the answering end, the longest time for which a GET waits for bytes: less than the timeouts of
/// middleboxes.
const ANSWER_AFTER: Duration = Duration::from_secs(8);

/// HTTP connection that makes one request after the other.
pub(super) struct Asker<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    place: String,
    send: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<S>, Full<Bytes>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Asker<S> {
    /// On `stream`, which leads to `place`, `HOST:PORT`.
    pub(super) async fn new(stream: S, place: &str) -> io::Result<Asker<S>> {
        let (send, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        Ok(Asker { place: place.to_owned(), send, connection })
    }

    /// Open a carrier, or resume one.
    pub(super) async fn open(&mut self, opening: Opening) -> io::Result<Opened> {
        let answer = self.ask(Method::POST, PATH, opening.bytes()).await?;
        Opened::read(&answer).map_err(io::Error::other)
    }

    async fn ask(&mut self, method: Method, target: &str, body: Vec<u8>) -> io::Result<Bytes> {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header("host", &self.place)
            .header("content-type", "application/octet-stream")
            .header("cache-control", "no-store")
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        let send = &mut self.send;
        let asking = async {
            send.ready().await.map_err(io::Error::other)?;
            let answer = send.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER_LEN_MAX_BYTES).collect().await;
            let body = body.map_err(io::Error::other)?.to_bytes();
            match status {
                StatusCode::OK => Ok(body),
                status => Err(io::Error::other(format!("expected status 200, found {status}"))),
            }
        };
        let asking = async {
            let mut asking = std::pin::pin!(asking);
            tokio::select! {
                biased;
                answer = &mut asking => return answer,
                // The last response may have arrived although the connection ended.
                _ = &mut self.connection => {}
            }
            asking.await
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "expected an answer in time, found none");
        tokio::time::timeout(ANSWER_TIMEOUT, asking).await.map_err(|_| late())?
    }
}

/// Carry `shared` on two connections until one fails or the turn ends.
pub(super) async fn carry<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    [mut up, mut down]: [Asker<S>; 2],
    token: Token,
    shared: &Shared,
    epoch: Epoch,
) -> io::Result<()> {
    let target = format!("{PATH}/{}", HEXLOWER.encode(&token.0));
    let saying = async {
        while let Some(piece) = shared.next_chunk(epoch, PIECE_LEN_MAX_BYTES).await {
            if let Err(error) = up.ask(Method::POST, &target, piece).await {
                shared.requeue();
                return Err(error);
            }
        }
        io::Result::Ok(())
    };
    let hearing = async {
        for number in 0_u64.. {
            let asked = format!("{target}?at={}&n={number}", shared.received());
            let piece = down.ask(Method::GET, &asked, Vec::new()).await?;
            shared.on_chunk(&piece).map_err(io::Error::other)?;
        }
        io::Result::Ok(())
    };
    shared.carry(epoch, saying, hearing).await
}

/// Response to a request for a tunnel's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    pub body: Vec<u8>,
}

impl Tunnels {
    /// Answer a request for `path`, which starts with `/tunnel`; `query` is the text after `?`.
    pub async fn ask(
        self: &Arc<Self>,
        (is_post, path, query): (bool, &str, &str),
        body: &[u8],
        from: SocketAddr,
    ) -> Answer {
        let name = path.strip_prefix(PATH).unwrap_or_default();
        if name.is_empty() && is_post {
            return self.ask_to_open(body, from);
        }
        let shared = name.strip_prefix('/').and_then(token).and_then(|token| {
            let sessions = self.lock();
            sessions.find(token).ok().cloned()
        });
        let Some(shared) = shared else { return Answer { status: 404, body: Vec::new() } };
        if is_post {
            return match shared.on_chunk(body) {
                Ok(()) => Answer { status: 200, body: Vec::new() },
                Err(_) => Answer { status: 400, body: Vec::new() },
            };
        }
        let at = query.split('&').find_map(|part| part.strip_prefix("at=")?.parse().ok());
        let Some(epoch) = at.and_then(|at| shared.ask(at).ok()) else {
            return Answer { status: 400, body: Vec::new() };
        };
        let saying = shared.next_chunk(epoch, PIECE_LEN_MAX_BYTES);
        let said = tokio::time::timeout(ANSWER_AFTER, saying).await.ok().flatten();
        Answer { status: 200, body: said.unwrap_or_default() }
    }

    fn ask_to_open(self: &Arc<Self>, body: &[u8], from: SocketAddr) -> Answer {
        let opened = match Opening::read(body) {
            Err(_) => Err(Refused::Form),
            Ok(opening) => {
                self.open(opening, from, TransportKind::Polling).and_then(|(shared, token, received)| {
                    shared.attach(opening.received).map_err(|_| Refused::Unknown)?;
                    Ok(Opened::Here { token, received })
                })
            }
        };
        Answer { status: 200, body: opened.unwrap_or_else(Opened::Refused).bytes() }
    }
}

fn token(text: &str) -> Option<Token> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok().map(Token)
}
