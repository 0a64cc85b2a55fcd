//! Handshakes of inbound connections: each needs a place, and has a timeout.
//!
//! ```text
//! accepted ─▶ a place (`half_open`) ─▶ TLS or Noise, Yamux ─▶ a connection
//!                │ timed out, or evicted by a connection of another source ─▶ closed
//!                └ no place left ─▶ refused in the language of the handshake, so that the dialler knows why
//! ```
//! Rule: a dialler that is refused reads that no protocol can be agreed on, which a daemon sends in no other
//! case.
//! Not here: which connection gets a place (`half_open`), which may stay (`connected_peers`).

use super::half_open::{Decision, HalfOpen, Place, Refusal, Source};
use crate::clock;
use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use libp2p::core::transport::{DialOpts, ListenerId, TransportError, TransportEvent};
use libp2p::{Multiaddr, Transport};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Timeout of a handshake over TCP: some round trips around the world; no longer, since it holds a place.
pub const DIRECT_MAX: Duration = Duration::from_secs(3);

/// Timeout of a handshake over HTTPS or a circuit, where every message may wait for a request.
const CARRIED_MAX: Duration = Duration::from_secs(10);

/// Timeout for writing a refusal, and for the dialler to read it.
const REFUSAL_MAX: Duration = Duration::from_secs(1);

/// Most bytes that are read from a refused connection.
const READ_MAX: usize = 4096;

/// Answer of multistream-select that rejects every protocol: its header, and `na` for each protocol that a
/// daemon may propose (`security`), each preceded by its length.
const REFUSED: &[u8] = b"\x13/multistream/1.0.0\n\x03na\n\x03na\n";

/// Transport that gives its inbound connections places and timeouts.
pub(super) struct Handshakes<T> {
    inner: T,
    half_open: HalfOpen,
}

impl<T> Handshakes<T> {
    /// On top of `inner`, whose lowest layer decides by the same `half_open`.
    pub(super) fn new(inner: T, half_open: HalfOpen) -> Handshakes<T> {
        Handshakes { inner, half_open }
    }
}

impl<T> Transport for Handshakes<T>
where
    T: Transport<Error = io::Error> + Unpin,
    T::Output: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
{
    type Output = T::Output;
    type Error = io::Error;
    type ListenerUpgrade = BoxFuture<'static, io::Result<T::Output>>;
    type Dial = T::Dial;

    fn listen_on(&mut self, id: ListenerId, at: Multiaddr) -> Result<(), TransportError<io::Error>> {
        self.inner.listen_on(id, at)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.inner.remove_listener(id)
    }

    fn dial(&mut self, at: Multiaddr, options: DialOpts) -> Result<T::Dial, TransportError<io::Error>> {
        self.inner.dial(at, options)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let event = ready!(Pin::new(&mut self.inner).poll(context));
        let half_open = &self.half_open;
        Poll::Ready(event.map_upgrade(|handshake| -> Self::ListenerUpgrade {
            match half_open.take() {
                Some(Decision::Handshake(place, most)) => Box::pin(within(handshake, place, most)),
                Some(Decision::Refused) => Box::pin(handshake),
                None => match half_open.enter(Source::Circuits, clock::now()) {
                    Some(place) => Box::pin(within(handshake, place, CARRIED_MAX)),
                    None => Box::pin(std::future::ready(Err(full()))),
                },
            }
        }))
    }
}

/// Run a handshake until it is done, times out, or loses its place.
async fn within<T>(
    handshake: impl Future<Output = io::Result<T>>,
    mut place: Place,
    most: Duration,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = handshake => done,
        () = place.evicted() => Err(io::Error::other("its place was taken by a connection of another source")),
        () = tokio::time::sleep(most) => {
            let text = format!("the handshake was not done within {} s", most.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}

/// Timeout of the handshake of an inbound connection.
pub(super) const fn most(is_carried: bool) -> Duration {
    if is_carried { CARRIED_MAX } else { DIRECT_MAX }
}

/// Close a connection that got no place; with `leave`, send the dialler the refusal first.
pub(super) async fn refuse<S>(mut stream: S, leave: Option<Refusal>) -> io::Error
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let saying = async {
        stream.write_all(REFUSED).await?;
        stream.close().await?;
        // If unread bytes are left when the socket is closed, the kernel sends a reset, and the refusal is
        // lost.
        let (mut read, mut part) = (0, [0; 512]);
        while read < READ_MAX {
            match stream.read(&mut part).await? {
                0 => break,
                some => read += some,
            }
        }
        io::Result::Ok(())
    };
    if leave.is_some() {
        // A dialler that does not read the refusal is not waited for.
        let _ = tokio::time::timeout(REFUSAL_MAX, saying).await;
    }
    full()
}

fn full() -> io::Error {
    io::Error::other("all places for handshakes are taken, most by the source of this connection")
}
