//! Server end of streams within HTTPS: the table of carriers, and the connections that a proxy's listener
//! passes on.
//!
//! ```text
//! TCP that starts as the overlay does   ─┐
//! GET /tunnel, Upgrade: websocket       ├─▶ Arrival ─▶ outbound: a connection of the overlay like any other
//! POST /tunnel, GET|POST /tunnel/TOKEN ─┘
//! ```
//! Rules: the limit of the table is checked before a WebSocket is accepted, and again before a carrier
//! reaches the overlay; peers are not identified here, so the overlay closes a stream whose peer proves no
//! key or shows no certificate, as for TCP, within ten seconds each; a carrier leaves the table with its
//! stream.
//! Not here: the requests of polling (`polling`), the listener (`proxy`, `rpc`), what is carried (TLS or
//! Noise, above).

use super::{Duplex, HttpsStream, Shared, web_socket};
use crate::net::handle::Handle;
use crate::net::outbound::{Arrival, limit_silence};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::TokioAsyncReadCompatExt as _;
use tunnel::carrier::frame::{Opened, Opening, Refused, Token};
use tunnel::ladder::TransportKind;
use tunnel::sessions::Sessions;
use wire::source::source;

/// Timeout for a WebSocket's head and opening, and again for the answer.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);

/// First byte of a connection of the overlay: the length of the protocol name in multistream-select 1.0. TLS
/// starts with 22, HTTP with a letter.
pub const FIRST_BYTE: u8 = 19;

/// First bytes of a WebSocket's request at a proxy's listener.
pub const UPGRADE_BEGINS: &[u8] = b"GET /tunnel ";

/// Table of the carriers, and the queue of connections to the overlay.
pub struct Tunnels {
    sessions: Mutex<Sessions<IpAddr, Arc<Shared>>>,
    arrivals: mpsc::Sender<Arrival>,
}

/// Entry in the table, removed when it is dropped with its stream.
struct TableEntry {
    tunnels: Arc<Tunnels>,
    token: Token,
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        self.tunnels.lock().close(self.token);
    }
}

impl Tunnels {
    /// For the daemon of this overlay.
    #[must_use]
    pub fn new(net: &Handle) -> Arc<Tunnels> {
        Arc::new(Tunnels { sessions: Mutex::default(), arrivals: net.arrivals.clone() })
    }

    /// The counters by name: open tunnels, and refused ones.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let sessions = self.lock();
        vec![("tunnels", sessions.len() as u64), ("tunnels_refused_total", sessions.refused_total())]
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Sessions<IpAddr, Arc<Shared>>> {
        // Each change of the table is complete before anything could panic.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pass a connection that speaks the overlay's protocol to the overlay; returns when it ends.
    pub async fn take_plain(&self, stream: TcpStream, from: SocketAddr) {
        limit_silence(&stream);
        let (held, released) = oneshot::channel::<()>();
        let stream = Box::new(OwnedStream { stream: stream.compat(), _held: held });
        if self.arrive(stream, from, TransportKind::Direct).is_ok() {
            // The sender is only dropped.
            let _ = released.await;
        }
    }

    /// Serve a connection that starts with [`UPGRADE_BEGINS`]; returns when it ends.
    ///
    /// # Errors
    /// If it is no WebSocket, or there is no place.
    pub async fn take_web_socket<S>(self: &Arc<Self>, stream: S, from: SocketAddr) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let accepting = web_socket::accept(stream, || self.has_room(from));
        let accepting = tokio::time::timeout(OPENING_TIMEOUT, accepting);
        let (mut socket, opening) = accepting.await??;
        let opened = self.open(opening, from, TransportKind::WebSocket);
        let answer = match &opened {
            Ok((_, token, received)) => Opened::Here { token: *token, received: *received },
            Err(refused) => Opened::Refused(*refused),
        };
        tokio::time::timeout(OPENING_TIMEOUT, web_socket::answer(&mut socket, answer)).await??;
        let (shared, ..) = opened.map_err(io::Error::other)?;
        let epoch = shared.attach(opening.received).map_err(io::Error::other)?;
        web_socket::carry(socket, &shared, epoch).await
    }

    /// Whether a WebSocket from `from` is accepted: it may open a carrier, or may be the new path of one that
    /// lost its path; which of the two is known only after the upgrade.
    fn has_room(&self, from: SocketAddr) -> bool {
        let mut sessions = self.lock();
        sessions.iter().any(|shared| !shared.is_carried()) || sessions.check(&source(from.ip())).is_ok()
    }

    /// The carrier of an opening, its token, and the number of bytes that it has received.
    pub(super) fn open(
        self: &Arc<Self>,
        opening: Opening,
        from: SocketAddr,
        transport: TransportKind,
    ) -> Result<(Arc<Shared>, Token, u64), Refused> {
        if let Some(token) = opening.token {
            let shared = self.lock().find(token).cloned()?;
            let received = shared.received();
            return Ok((shared, token, received));
        }
        let mut drawn = [0; 16];
        getrandom::fill(&mut drawn).map_err(|_| Refused::Full)?;
        let (token, shared) = (Token(drawn), Shared::open());
        self.lock().open(token, source(from.ip()), Arc::clone(&shared))?;
        let permit = TableEntry { tunnels: Arc::clone(self), token };
        let carried = HttpsStream::new(Arc::clone(&shared), None, Box::new(permit));
        self.arrive(Box::new(carried), from, transport)?;
        Ok((shared, token, 0))
    }

    fn arrive(
        &self,
        stream: Box<dyn Duplex>,
        from: SocketAddr,
        transport: TransportKind,
    ) -> Result<(), Refused> {
        self.arrivals.try_send(Arrival { stream, from, transport }).map_err(|_| Refused::Full)
    }
}

/// A stream that drops `_held` at its end, which notifies the receiver.
struct OwnedStream<S> {
    stream: S,
    _held: oneshot::Sender<()>,
}

impl<S: futures::AsyncRead + Unpin> futures::AsyncRead for OwnedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: futures::AsyncWrite + Unpin> futures::AsyncWrite for OwnedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tunnel::sessions::SESSIONS_OF_SOURCE_MAX;

    const FROM: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    /// The answer to an opening by WebSocket, whose socket is then dropped.
    async fn open(tunnels: &Arc<Tunnels>, token: Option<Token>) -> Result<Opened, String> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let dialling = async {
            let dialled = web_socket::dial(near, "proxy:443", Opening { token, received: 0 }).await;
            dialled.map(|(_, opened)| opened).map_err(|error| error.to_string())
        };
        tokio::join!(dialling, tunnels.take_web_socket(far, FROM)).0
    }

    #[tokio::test]
    async fn without_room_no_web_socket_is_accepted_unless_a_carrier_may_resume_on_it() {
        let tunnels = Arc::new(Tunnels { sessions: Mutex::default(), arrivals: mpsc::channel(1).0 });
        let token = |number: usize| Token((number as u128).to_be_bytes());
        let carried = |number| {
            let shared = Shared::open();
            let epoch = shared.attach(0).expect("nothing was sent");
            let opened = tunnels.lock().open(token(number), source(FROM.ip()), Arc::clone(&shared));
            opened.expect("room");
            (shared, epoch)
        };
        let all: Vec<_> = (0..SESSIONS_OF_SOURCE_MAX).map(carried).collect();
        let refused = open(&tunnels, None).await.expect_err("full");
        assert!(refused.contains("503"), "{refused}");
        assert_eq!(tunnels.counters()[1], ("tunnels_refused_total", 1));
        let (shared, epoch) = &all[7];
        shared.detach(*epoch);
        assert_eq!(open(&tunnels, Some(token(7))).await, Ok(Opened::Here { token: token(7), received: 0 }));
        assert_eq!(open(&tunnels, None).await, Ok(Opened::Refused(Refused::Full)));
    }
}
