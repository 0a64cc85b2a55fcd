//! A stream that stays open between two daemons, in the form tokio knows.
//!
//! Not here: frames on it ([`super::frames`]).

use super::guests::Seat;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _};

/// Bytes given at one reading where what is read into has to be zeroed first, and stays in memory while it waits: a page, as
/// most of what is said is shorter, and a representative waits on a thousand streams.
const READ_LEN_MAX_BYTES: usize = 4 << 10;

/// Bytes both ways. Dropping it resets the stream.
#[derive(Debug)]
pub struct Stream {
    stream: Compat<libp2p::Stream>,
    /// Counts it to its peer for as long as it is open.
    _seat: Seat,
}

impl Stream {
    pub(super) fn new(stream: libp2p::Stream, seat: Seat) -> Stream {
        Stream { stream: stream.compat(), _seat: seat }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let there = buf.initialized().len() - buf.filled().len();
        let len_bytes = buf.remaining().min(there.max(READ_LEN_MAX_BYTES));
        let page = buf.initialize_unfilled_to(len_bytes);
        let stream = Pin::new(self.stream.get_mut());
        let read = ready!(futures::AsyncRead::poll_read(stream, cx, page))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
