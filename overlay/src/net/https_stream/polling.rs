//! Polling transport: carries a stream by HTTP requests and responses, where a middlebox allows no upgrade.
//! Long-lived GETs, one after the other, fetch the bytes of the other end; POSTs send the bytes of this end.
//!
//! ```text
//! POST /tunnel                    an opening ──▶ its answer
//! GET  /tunnel/TOKEN?at=N&n=M     ──▶ the bytes after byte N, as soon as there are some
//! POST /tunnel/TOKEN              frames ──▶ nothing
//! ```
//! Rules: each request is complete and has its length, so a middlebox may buffer it; no two GETs are equal,
//! so no cache answers one; in each direction at most one request is pending.
//! Not here: the answering end (`tunnels`), TLS below (`dial`).

use super::{Epoch, PATH, Shared};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tunnel::carrier::frame::{Opened, Opening, Token};

/// Most bytes of one request or response; a middlebox may buffer all of them.
pub(super) const PIECE_LEN_MAX_BYTES: usize = 512 << 10;

/// Longest response that is read, in bytes: a piece and the header of its last frame.
const ANSWER_LEN_MAX_BYTES: usize = PIECE_LEN_MAX_BYTES + 1024;

/// Timeout for a response: longer than the other end waits for bytes to send.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

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
