//! Write buffer between the multiplexer and the encryption: everything written between two reads is sent as
//! one piece.
//!
//! Yamux writes the header and the body of each frame separately, and flushes after each frame; without this
//! buffer each would become a TLS record and a system call of its own.
//! Rule: a flush is delayed until the next read, which Yamux does whenever it has nothing more to write, or
//! until the buffer is full; closing writes everything. A caller that flushes and never reads again must
//! close.
//! Not here: the encryption (`security`).

use futures::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Capacity of the buffer: some frames of Yamux, and as much as rustls takes at a time.
const FULL_BYTES: usize = 64 << 10;

/// A larger buffer is freed when it is empty: thousands of connections are idle.
const KEPT_BYTES: usize = 4 << 10;

/// The write buffer around `inner`.
pub(super) struct Batch<S> {
    inner: S,
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that are already written.
    written: usize,
    is_flush_due: bool,
}

impl<S: AsyncWrite + Unpin> Batch<S> {
    pub(super) fn new(inner: S) -> Batch<S> {
        Batch { inner, waiting: Vec::new(), written: 0, is_flush_due: false }
    }

    /// Write everything that waits.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            match ready!(Pin::new(&mut self.inner).poll_write(cx, &self.waiting[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.written = 0;
        match self.waiting.capacity() > KEPT_BYTES {
            true => self.waiting = Vec::new(),
            false => self.waiting.clear(),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_flush_due {
            ready!(self.poll_drain(cx))?;
            ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
            self.is_flush_due = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Batch<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        // Only errors matter here: a peer that does not read now may still write.
        if let Poll::Ready(Err(error)) = self.poll_due(cx) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Batch<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= FULL_BYTES {
            ready!(self.poll_drain(cx))?;
        }
        let count = bytes.len().min(FULL_BYTES - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_flush_due = true;
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{AsyncReadExt as _, AsyncWriteExt as _};
    use std::collections::VecDeque;

    /// Socket that records each write, and takes `most` bytes of it; none where `most` is 0.
    #[derive(Debug, Default)]
    struct Socket {
        most: usize,
        pieces: Vec<Vec<u8>>,
        flushed: usize,
        is_closed: bool,
        read: VecDeque<u8>,
    }

    impl AsyncRead for Socket {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            match self.read.pop_front() {
                Some(byte) => {
                    into[0] = byte;
                    Poll::Ready(Ok(1))
                }
                None => Poll::Pending,
            }
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.most);
            if count == 0 {
                return Poll::Pending;
            }
            self.pieces.push(bytes[..count].to_vec());
            Poll::Ready(Ok(count))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushed += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.is_closed = true;
            Poll::Ready(Ok(()))
        }
    }

    fn batch(most: usize) -> Batch<Socket> {
        Batch::new(Socket { most, ..Socket::default() })
    }

    fn read(batch: &mut Batch<Socket>) -> Poll<io::Result<usize>> {
        let mut context = Context::from_waker(futures::task::noop_waker_ref());
        Pin::new(batch).poll_read(&mut context, &mut [0; 8])
    }

    #[tokio::test]
    async fn what_is_written_between_two_reads_leaves_as_one_piece() {
        let mut batch = batch(usize::MAX);
        for frame in [&b"head"[..], b"body"] {
            batch.write_all(frame).await.expect("written");
            batch.flush().await.expect("flushed");
        }
        assert!(batch.inner.pieces.is_empty());
        assert!(read(&mut batch).is_pending());
        assert_eq!((batch.inner.pieces.clone(), batch.inner.flushed), (vec![b"headbody".to_vec()], 1));
        assert!(read(&mut batch).is_pending());
        assert_eq!((batch.inner.pieces.len(), batch.inner.flushed), (1, 1), "nothing is due");
    }

    #[tokio::test]
    async fn a_full_buffer_is_written_and_freed() {
        let mut batch = batch(usize::MAX);
        batch.write_all(&[7; FULL_BYTES + 1]).await.expect("written");
        assert_eq!(batch.inner.pieces.iter().map(Vec::len).collect::<Vec<_>>(), [FULL_BYTES]);
        batch.flush().await.expect("flushed");
        assert!(read(&mut batch).is_pending());
        assert_eq!(batch.inner.pieces.len(), 2);
        assert!(batch.waiting.capacity() <= KEPT_BYTES, "{}", batch.waiting.capacity());
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_still_read_and_stops_the_writer() {
        let mut batch = batch(0);
        batch.write_all(&[7; FULL_BYTES]).await.expect("buffered");
        batch.flush().await.expect("put off");
        batch.inner.read = VecDeque::from(b"a".to_vec());
        let mut into = [0; 1];
        batch.read_exact(&mut into).await.expect("read");
        assert_eq!(&into, b"a");
        let mut context = Context::from_waker(futures::task::noop_waker_ref());
        assert!(Pin::new(&mut batch).poll_write(&mut context, b"more").is_pending());
        // The socket takes some bytes, and later the rest, in the order in which they were written.
        batch.inner.most = 40 << 10;
        assert!(read(&mut batch).is_pending());
        assert_eq!(batch.inner.pieces.concat(), vec![7; FULL_BYTES]);
    }

    #[tokio::test]
    async fn closing_writes_what_waits() {
        let mut batch = batch(3);
        batch.write_all(b"farewell").await.expect("buffered");
        batch.close().await.expect("closed");
        assert_eq!(batch.inner.pieces.concat(), b"farewell");
        assert!(batch.inner.is_closed);
    }
}
