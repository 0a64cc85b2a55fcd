//! Encryption of a connection: TLS 1.3 or Noise, negotiated by multistream-select.
//!
//! ```text
//! dialler: its protocols in its order ──▶ listener: takes the first that it knows, and it knows both
//! ```
//! TLS goes first where the processor has AES instructions, Noise elsewhere, since its ChaCha20 is faster
//! there. A daemon that knows Noise alone refuses TLS and gets Noise.
//! Rule: with either protocol the peer has proved the ed25519 key that is its identity; the layers above do
//! not see which protocol it was.
//! Not here: TLS (`tls`), the timeout of a handshake (`handshake`), how writes are batched (`batch`).

use super::Error;
use super::batch::Batch;
use super::figures::{Count, Figures};
use super::tls::{self, Socket};
use futures::future::BoxFuture;
use futures::{AsyncRead, AsyncWrite};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p::identity::Keypair;
use libp2p::{PeerId, noise};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Encryption protocols that a daemon offers, and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// Both: TLS first where the processor has AES instructions, else Noise.
    #[default]
    ByProcessor,
    /// Both, TLS first.
    TlsFirst,
    /// Both, Noise first.
    NoiseFirst,
    /// Noise alone, like daemons of the previous version.
    NoiseAlone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tls,
    Noise,
}

impl AsRef<str> for Kind {
    /// Its name on the wire.
    fn as_ref(&self) -> &str {
        match self {
            Kind::Tls => "/visperf/tls/1",
            Kind::Noise => "/noise",
        }
    }
}

/// The end of a connection.
enum Role {
    Listener,
    Dialler,
}

/// Upgrade of a connection to an encrypted one.
#[derive(Clone)]
pub(super) struct Security {
    noise: noise::Config,
    tls: tls::Config,
    order: &'static [Kind],
    figures: Arc<Figures>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Noise(#[from] noise::Error),
    #[error(transparent)]
    Tls(#[from] io::Error),
}

impl Security {
    /// For the daemon of this key; `figures` count the connections of each protocol.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub(super) fn new(key: &Keypair, offer: Offer, figures: Arc<Figures>) -> Result<Security, Error> {
        let noise = noise::Config::new(key).map_err(|error| Error::Key(error.to_string()))?;
        let has_aes = tls::has_aes();
        let order: &[Kind] = match offer {
            Offer::NoiseAlone => &[Kind::Noise],
            Offer::TlsFirst => &[Kind::Tls, Kind::Noise],
            Offer::ByProcessor if has_aes => &[Kind::Tls, Kind::Noise],
            Offer::ByProcessor | Offer::NoiseFirst => &[Kind::Noise, Kind::Tls],
        };
        Ok(Security { noise, tls: tls::Config::new(key, has_aes)?, order, figures })
    }

    /// Run the handshake of one role.
    async fn secure<C: Socket>(self, socket: C, kind: Kind, role: Role) -> Result<Secured<C>, Failed> {
        let (peer, stream) = match kind {
            Kind::Tls => {
                let (peer, stream) = match role {
                    Role::Listener => self.tls.accept(socket).await?,
                    Role::Dialler => self.tls.connect(socket).await?,
                };
                (peer, Encrypted::Tls(Box::new(stream)))
            }
            Kind::Noise => {
                let noise = self.noise;
                let (peer, stream) = match role {
                    Role::Listener => noise.upgrade_inbound(socket, "/noise").await?,
                    Role::Dialler => noise.upgrade_outbound(socket, "/noise").await?,
                };
                (peer, Encrypted::Noise(Box::new(stream)))
            }
        };
        Ok((peer, Batch::new(Counted { stream, _counts: Gauge::new(&self.figures, kind) })))
    }
}

/// The key of the peer, and the encrypted connection.
type Secured<C> = (PeerId, Batch<Counted<C>>);

impl UpgradeInfo for Security {
    type Info = Kind;
    type InfoIter = std::iter::Copied<std::slice::Iter<'static, Kind>>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.order.iter().copied()
    }
}

impl<C: Socket> InboundConnectionUpgrade<C> for Security {
    type Output = Secured<C>;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Secured<C>, Failed>>;

    fn upgrade_inbound(self, socket: C, kind: Kind) -> Self::Future {
        Box::pin(self.secure(socket, kind, Role::Listener))
    }
}

impl<C: Socket> OutboundConnectionUpgrade<C> for Security {
    type Output = Secured<C>;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Secured<C>, Failed>>;

    fn upgrade_outbound(self, socket: C, kind: Kind) -> Self::Future {
        Box::pin(self.secure(socket, kind, Role::Dialler))
    }
}

enum Encrypted<C> {
    Tls(Box<tls::Stream<C>>),
    Noise(Box<noise::Output<C>>),
}

/// An encrypted connection, counted while it is open.
pub(super) struct Counted<C> {
    stream: Encrypted<C>,
    _counts: Gauge,
}

/// Counts one connection in the gauge of its protocol until it is dropped.
struct Gauge(Arc<Figures>, Kind);

impl Gauge {
    fn new(figures: &Arc<Figures>, kind: Kind) -> Gauge {
        let gauge = Gauge(Arc::clone(figures), kind);
        gauge.count().add();
        gauge
    }

    fn count(&self) -> &Count {
        match self.1 {
            Kind::Tls => &self.0.encrypted_by_tls,
            Kind::Noise => &self.0.encrypted_by_noise,
        }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.count().subtract();
    }
}

macro_rules! either {
    ($this:ident, $stream:ident => $poll:expr) => {
        match &mut $this.get_mut().stream {
            Encrypted::Tls($stream) => $poll,
            Encrypted::Noise($stream) => $poll,
        }
    };
}

impl<C: Socket> AsyncRead for Counted<C> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl<C: Socket> AsyncWrite for Counted<C> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_close(cx))
    }
}
