//! Raw connection: its streams carry arbitrary bytes, under an arbitrary protocol name.
//!
//! Not here: which bytes (`words`).

use futures::{AsyncReadExt as _, AsyncWriteExt as _};
use libp2p::core::muxing::{StreamMuxerBox, StreamMuxerExt as _};
use libp2p::core::transport::{DialOpts, PortUse};
use libp2p::core::upgrade::Version;
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::{Transport as _, identity, noise, tcp, yamux};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Timeout for the other end to end a stream: this end closes its half, so the other end waits for nothing
/// more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most bytes that are read.
const HEARD_MAX_BYTES: u64 = 1 << 20;

pub(crate) struct Line(StreamMuxerBox);

impl Line {
    /// Connect with the key of this seed; `None` if the connection is refused.
    pub(crate) async fn dial(at: SocketAddr, seed: [u8; 32]) -> Option<Line> {
        let key = identity::Keypair::ed25519_from_bytes(seed).expect("a seed");
        let mut transport = tcp::tokio::Transport::new(tcp::Config::default())
            .upgrade(Version::V1Lazy)
            .authenticate(noise::Config::new(&key).expect("a key"))
            .multiplex(yamux::Config::default())
            .boxed();
        let at: Multiaddr = format!("/ip4/{}/tcp/{}", at.ip(), at.port()).parse().expect("an address");
        let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
        let (_, muxer) = transport.dial(at, options).ok()?.await.ok()?;
        Some(Line(muxer))
    }

    /// Send these bytes by this protocol, then close; returns the answer, or `None` if the connection ended.
    pub(crate) async fn speak(&mut self, protocol: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let agreed: Vec<u8> = ["/multistream/1.0.0", protocol].into_iter().flat_map(line).collect();
        let heard = self.say(&[&agreed, bytes].concat()).await?;
        Some(heard.strip_prefix(agreed.as_slice()).unwrap_or_default().to_vec())
    }

    /// Send these bytes on a new stream without a negotiated protocol.
    pub(crate) async fn say(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let muxer = &mut self.0;
        let opening = poll_fn(|cx| match drive(muxer, cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => muxer.poll_outbound_unpin(cx).map(Result::ok),
        });
        let mut stream = tokio::time::timeout(PATIENCE, opening).await.expect("opened in time")?;
        let mut exchange = pin!(async move {
            // The stream may be refused before everything is written.
            let _ = stream.write_all(bytes).await;
            let _ = stream.close().await;
            let mut heard = Vec::new();
            let _ = stream.take(HEARD_MAX_BYTES).read_to_end(&mut heard).await;
            heard
        });
        let muxer = &mut self.0;
        let exchanged = poll_fn(|cx| match (exchange.as_mut().poll(cx), drive(muxer, cx)) {
            (Poll::Ready(heard), _) => Poll::Ready(Some(heard)),
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(None),
            (Poll::Pending, Poll::Pending) => Poll::Pending,
        });
        tokio::time::timeout(PATIENCE, exchanged).await.expect("ended in time")
    }
}

/// Drive the connection, and drop the streams that the other end opens; ready when it has ended.
fn drive(muxer: &mut StreamMuxerBox, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        match muxer.poll_inbound_unpin(cx) {
            Poll::Ready(Ok(opened)) => drop(opened),
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => break,
        }
    }
    match muxer.poll_unpin(cx) {
        Poll::Ready(Err(_)) => Poll::Ready(()),
        Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
    }
}

/// A line of the negotiation (multistream-select 1.0.0): its length, the text, and a newline.
fn line(text: &str) -> Vec<u8> {
    let len = u8::try_from(text.len() + 1).expect("short");
    assert!(len < 128, "one byte says how long it is");
    [&[len], text.as_bytes(), b"\n"].concat()
}
