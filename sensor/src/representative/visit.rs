//! One member's stream at the representative: its bytes to the desk (`super::desk`), the desk's frames to it.
//!
//! Rule: a member that reads or writes slowly holds up its own stream only: it has one stretch of bytes at the
//! desk at a time and one frame on its way, and after `WRITE_WITHIN` without reading its stream ends.
//! Not here: what is said ([`super::domain`]), who may open a stream (the composing program).

use super::domain::Link;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use wire::credential::Serial;
use wire::id::{HostName, PeerKey};

/// Bytes read at a time: what a stream gives at once, held by each member for as long as it says nothing.
const STRETCH_LEN_BYTES: usize = 4 << 10;
/// How long a member may take to read an answer: answers are short.
const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream that a member opened, and who that is by its certificate.
pub struct Visit {
    /// Its daemon's key.
    pub peer: PeerKey,
    /// The number of its certificate.
    pub serial: Serial,
    /// Its host.
    pub host: HostName,
    /// The stream.
    pub stream: Box<dyn Duplex>,
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "visit of {} ({})", self.host, self.peer)
    }
}

/// What a stream tells the desk beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A frame is written.
    Written(Link),
    /// It is over.
    Ended(Link),
}

/// Where a stream tells it.
#[derive(Clone)]
pub(super) struct Lines {
    pub(super) bytes: mpsc::Sender<(Link, Vec<u8>)>,
    pub(super) told: mpsc::Sender<Told>,
}

/// Serve a stream until the member ends it or the desk takes no more part: until `frames` is closed.
pub(super) async fn serve(
    link: Link,
    stream: Box<dyn Duplex>,
    lines: Lines,
    frames: mpsc::Receiver<Vec<u8>>,
) {
    let (read, write) = tokio::io::split(stream);
    let ended = tokio::select! {
        ended = reading(link, read, &lines.bytes) => ended,
        ended = writing(link, write, frames, &lines.told) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(?link, %error, "a member's stream broke");
    }
    // The desk may have gone.
    let _ = lines.told.send(Told::Ended(link)).await;
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
    told: &mpsc::Sender<Told>,
) -> std::io::Result<()> {
    let late = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
    while let Some(frame) = frames.recv().await {
        let writing = async {
            write.write_all(&frame).await?;
            write.flush().await
        };
        tokio::time::timeout(WRITE_WITHIN, writing).await.map_err(late)??;
        if told.send(Told::Written(link)).await.is_err() {
            return Ok(());
        }
    }
    tokio::time::timeout(WRITE_WITHIN, write.shutdown()).await.map_err(late)?
}
