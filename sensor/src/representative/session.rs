//! Session of one member's stream at the representative: passes its bytes to the worker (`super::worker`) and
//! the worker's frames to it.
//!
//! Rule: a member that reads or writes slowly delays its own stream only. It has one chunk of bytes waiting
//! to enter the worker's queue and one frame being written, and its stream ends if it reads nothing for
//! `WRITE_WITHIN`.
//! Not here: the content of the frames ([`super::domain`]), which peers may open a stream (the composing
//! program).

use super::domain::Link;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey};

/// Bytes read at a time: what a stream delivers at once. Each member holds this buffer while it sends
/// nothing.
const STRETCH_LEN_BYTES: usize = 4 << 10;
/// Timeout for writing one answer to a member: answers are short.
const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// A stream of bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream that a member opened, with the identity that its certificate proves.
pub struct Session {
    /// Key of its daemon.
    pub peer: PeerKey,
    /// Serial number of its certificate.
    pub serial: Serial,
    pub host: HostName,
    pub stream: Box<dyn Duplex>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session of {} ({})", self.host, self.peer)
    }
}

/// Notification of a stream to the worker, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamNotice {
    Written(Link),
    Ended(Link),
}

/// Channels from a stream to the worker.
#[derive(Clone)]
pub(super) struct StreamSenders {
    pub(super) bytes: mpsc::Sender<(Link, Vec<u8>)>,
    pub(super) notices: mpsc::Sender<StreamNotice>,
}

/// Serves a stream until the member ends it or the worker closes `frames`.
pub(super) async fn serve(
    link: Link,
    stream: Box<dyn Duplex>,
    senders: StreamSenders,
    frames: mpsc::Receiver<Vec<u8>>,
) {
    let (read, write) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = reading(link, read, &senders.bytes) => ended,
        ended = writing(link, write, frames, &senders.notices) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(?link, %error, "a member's stream broke");
    }
    // The worker may have ended.
    let _ = senders.notices.send(StreamNotice::Ended(link)).await;
}

async fn reading(
    link: Link,
    mut read: impl AsyncRead + Unpin,
    bytes: &mpsc::Sender<(Link, Vec<u8>)>,
) -> std::io::Result<()> {
    loop {
        let mut stretch = Vec::with_capacity(STRETCH_LEN_BYTES);
        if read.read_buf(&mut stretch).await? == 0 || bytes.send((link, stretch)).await.is_err() {
            return Ok(());
        }
    }
}

async fn writing(
    link: Link,
    mut write: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Vec<u8>>,
    notices: &mpsc::Sender<StreamNotice>,
) -> std::io::Result<()> {
    let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
    while let Some(frame) = frames.recv().await {
        let writing = async {
            write.write_all(&frame).await?;
            write.flush().await
        };
        tokio::time::timeout(WRITE_WITHIN, writing).await.map_err(late)??;
        if notices.send(StreamNotice::Written(link)).await.is_err() {
            return Ok(());
        }
    }
    tokio::time::timeout(WRITE_WITHIN, write.shutdown()).await.map_err(late)?
}
