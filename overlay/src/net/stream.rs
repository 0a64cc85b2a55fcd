//! Stream between two daemons, as tokio's `AsyncRead` and `AsyncWrite`.
//!
//! Rule: a stream ends when its connection does, whichever side closed it. (Yamux wakes readers when the
//! other side closes the connection or it breaks, but not when this side closes it: they would wait for
//! ever.)
//! The protocol is proposed together with the first bytes that are written (`swarm`). The proposal is flushed
//! before anything is read: libp2p's negotiation would panic on bytes that a peer sends for a stream that was
//! not proposed to it.
//! Not here: frames on it ([`super::frames`]).

use super::connected_peers::StreamPermit;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Most bytes read at a time into a buffer that has to be zeroed first and stays in memory while the read
/// waits: one page, since most messages are shorter, and a representative waits on a thousand streams.
const READ_LEN_MAX_BYTES: usize = 4 << 10;

/// Stream as libp2p returns it.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) stream: libp2p::Stream,
    /// Cancelled when the connection is closed.
    pub(super) over: CancellationToken,
    /// Held while the stream uses its connection.
    pub(super) used: Arc<()>,
}

/// Bidirectional byte stream. Dropping it resets the stream.
#[derive(Debug)]
pub struct Stream {
    stream: Compat<libp2p::Stream>,
    /// Whether the protocol was proposed to the peer.
    is_proposed: bool,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    _used: Arc<()>,
    /// Counts the stream as its peer's while it is open.
    _permit: StreamPermit,
}

impl Stream {
    pub(super) fn new(Raw { stream, over, used }: Raw, permit: StreamPermit) -> Stream {
        let over = Box::pin(over.cancelled_owned());
        Stream { stream: stream.compat(), is_proposed: false, over, _used: used, _permit: permit }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_proposed {
            ready!(self.as_mut().poll_flush(cx))?;
        }
        let there = buf.initialized().len() - buf.filled().len();
        let len_bytes = buf.remaining().min(there.max(READ_LEN_MAX_BYTES));
        let page = buf.initialize_unfilled_to(len_bytes);
        let stream = Pin::new(self.stream.get_mut());
        // Bytes that arrived before the end are read first.
        if let Poll::Ready(read) = futures::AsyncRead::poll_read(stream, cx, page) {
            buf.advance(read?);
            return Poll::Ready(Ok(()));
        }
        ready!(self.over.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "its connection was closed")))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        self.is_proposed |= written.is_ok();
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        self.is_proposed |= flushed.is_ok();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
