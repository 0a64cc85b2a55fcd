//! WebSocket transport (RFC 6455): the opening and its answer are the first message in each direction, then
//! each message is a piece of the carrier.
//!
//! ```text
//! GET /tunnel HTTP/1.1, Upgrade: websocket ──▶ 101, then binary messages
//! ```
//! Rules: only binary messages are accepted, each of a limited length; the carrier drops a path that stays
//! silent.
//! Not here: the framing (tungstenite), TLS below (`dial`), the content of pieces (`tunnel::carrier`).

use super::{Epoch, PATH, Shared};
use futures::{SinkExt as _, Stream, StreamExt as _};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::http::header::{HeaderValue, RETRY_AFTER};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tunnel::carrier::frame::{Opened, Opening};

/// Most bytes of a message: a few frames of data, so that many small ones are sent together.
const PIECE_LEN_MAX_BYTES: usize = 128 << 10;

/// Longest message that is read: a piece and the header of its last frame.
const MESSAGE_LEN_MAX_BYTES: usize = PIECE_LEN_MAX_BYTES + 1024;

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * MESSAGE_LEN_MAX_BYTES)
        .max_message_size(Some(MESSAGE_LEN_MAX_BYTES))
        .max_frame_size(Some(MESSAGE_LEN_MAX_BYTES))
}

/// Open a WebSocket to `place`, `HOST:PORT`, on `stream`, and send `opening`; returns the socket and the
/// answer.
pub(super) async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    place: &str,
    opening: Opening,
) -> io::Result<(WebSocketStream<S>, Opened)> {
    let asked = format!("wss://{place}{PATH}");
    let dialled = tokio_tungstenite::client_async_with_config(asked, stream, Some(config())).await;
    let (mut socket, _) = dialled.map_err(broken)?;
    socket.send(Message::binary(opening.bytes())).await.map_err(broken)?;
    let answer = next_piece(&mut socket).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((socket, Opened::read(&answer).map_err(io::Error::other)?))
}

/// Check for room before an upgrade is accepted.
struct RoomCheck<F>(F);

impl<F: FnOnce() -> bool> Callback for RoomCheck<F> {
    fn on_request(self, _: &Request, accepted: Response) -> Result<Response, ErrorResponse> {
        if (self.0)() {
            return Ok(accepted);
        }
        let mut refused = ErrorResponse::new(None);
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refused.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        Err(refused)
    }
}

/// Accept a WebSocket if there is room, and read its opening. Without room the upgrade is refused with 503.
pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    has_room: impl FnOnce() -> bool + Unpin,
) -> io::Result<(WebSocketStream<S>, Opening)> {
    let accepting =
        tokio_tungstenite::accept_hdr_async_with_config(stream, RoomCheck(has_room), Some(config()));
    let mut socket = accepting.await.map_err(broken)?;
    let said = next_piece(&mut socket).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((socket, Opening::read(&said).map_err(io::Error::other)?))
}

/// Send the answer to an opening.
pub(super) async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    opened: Opened,
) -> io::Result<()> {
    socket.send(Message::binary(opened.bytes())).await.map_err(broken)
}

/// Carry `shared` until the socket or the turn ends.
pub(super) async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    shared: &Shared,
    epoch: Epoch,
) -> io::Result<()> {
    let (mut sink, mut stream) = socket.split();
    let saying = async {
        while let Some(piece) = shared.next_chunk(epoch, PIECE_LEN_MAX_BYTES).await {
            sink.send(Message::binary(piece)).await.map_err(broken)?;
        }
        sink.close().await.map_err(broken)
    };
    let hearing = async {
        while let Some(piece) = next_piece(&mut stream).await? {
            shared.on_chunk(&piece).map_err(io::Error::other)?;
        }
        io::Result::Ok(())
    };
    shared.carry(epoch, saying, hearing).await
}

/// The next binary message; `None` at the end.
async fn next_piece<S>(stream: &mut S) -> io::Result<Option<Vec<u8>>>
where
    S: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(piece))) => return Ok(Some(piece.into())),
            // tungstenite answers them.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Ok(None),
            Some(Ok(Message::Text(_) | Message::Frame(_))) => {
                return Err(io::Error::other("expected a message of bytes, found one of text"));
            }
            Some(Err(error)) => return Err(broken(error)),
        }
    }
}

fn broken(error: SocketError) -> io::Error {
    io::Error::other(error)
}
