//! Guarded stream between the socket and hyper: passes only bytes that the framing admits, with deadlines.
//!
//! hyper's own header deadline would also close idle connections, and it has none for bodies or for clients
//! that do not read their answer. So all deadlines of a connection are here, and a timer runs only while
//! there is something to wait for.
//! hyper sees a refused header as the end of the input, so it still answers the requests before it; a refused
//! body is an error. The owner of the stream then answers the refusal and closes the connection.
//! Not here: the rules (`framing`), the text of the answer (`answer`).

use crate::dispatch::statistics::Statistics;
use crate::http::framing::{Framing, Phase, Refusal};
use crate::http::socket;
use crate::limits::Limits;
use crate::stream::backpressure::Backpressure;
use crate::stream_limits::{SOCKET_BYTES, SOCKET_BYTES_LARGE};
use bytes::{Buf, BytesMut};
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::io::poll_read_buf;

/// Size of one read: more than most requests, little enough for thousands of connections.
const READ_BYTES: usize = 8 << 10;

/// Returns the socket below a stream, if known.
pub(crate) type Below<S> = fn(&S) -> Option<BorrowedFd<'_>>;

pub(crate) struct GuardedStream<S> {
    stream: S,
    below: Below<S>,
    framing: Framing,
    limits: Arc<Limits>,
    statistics: Arc<Statistics>,
    /// Refusal of a header.
    refusal: Option<Refusal>,
    pipe: Arc<Backpressure>,
    /// Size of the socket's send buffer set for a stream, in bytes; 0 if it was not set yet.
    kept_bytes: usize,
    buffer: BytesMut,
    /// Number of bytes at the start of the buffer that hyper may read.
    admitted: usize,
    /// The client has closed its side, or was refused.
    ended: bool,
    reading: Deadline,
    writing: Deadline,
}

/// A timer for one deadline at a time.
#[derive(Default)]
struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Phase and request that the timer is set for.
    set_for: Option<(Phase, u64)>,
}

impl Deadline {
    /// Start the timer, unless it already runs for this phase of this request; ready when the deadline has
    /// passed.
    fn poll(&mut self, context: &mut Context<'_>, phase: (Phase, u64), time: Duration) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(time)));
        if self.set_for.replace(phase) != Some(phase) {
            sleep.as_mut().reset(Instant::now() + time);
        }
        sleep.as_mut().poll(context)
    }

    fn stop(&mut self) {
        self.set_for = None;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> GuardedStream<S> {
    pub(crate) fn new(
        (stream, below): (S, Below<S>),
        limits: Arc<Limits>,
        statistics: Arc<Statistics>,
        pipe: Arc<Backpressure>,
    ) -> GuardedStream<S> {
        GuardedStream {
            stream,
            below,
            framing: Framing::new(&limits),
            limits,
            statistics,
            refusal: None,
            pipe,
            kept_bytes: 0,
            buffer: BytesMut::new(),
            admitted: 0,
            ended: false,
            reading: Deadline::default(),
            writing: Deadline::default(),
        }
    }

    /// Admit bytes of the buffer.
    fn admit(&mut self) -> io::Result<()> {
        while self.admitted < self.buffer.len() && !self.ended {
            match self.framing.admit(&self.buffer[self.admitted..]) {
                Ok(0) => break,
                Ok(count) => self.admitted += count,
                Err(_) if self.admitted > 0 => break,
                Err(refusal) => return self.refused(refusal),
            }
        }
        Ok(())
    }

    /// Report the refusal to hyper: as the end of the input instead of a header, as an error within a body.
    fn refused(&mut self, refusal: Refusal) -> io::Result<()> {
        self.framing.refuse(refusal);
        self.buffer.clear();
        self.admitted = 0;
        self.ended = true;
        if refusal.is_in_body {
            return Err(io::Error::new(io::ErrorKind::InvalidData, refusal));
        }
        self.refusal = Some(refusal);
        Ok(())
    }

    /// Handle the end of a phase's deadline.
    fn late(&mut self, phase: Phase) -> io::Result<()> {
        let message = match phase {
            Phase::Head => "expected the whole head within 5 s, found a part",
            Phase::Body => "expected the whole body within 15 s, found a part",
            Phase::Fresh | Phase::Idle | Phase::Refused => {
                self.ended = true;
                return Ok(());
            }
        };
        self.refused(Refusal { status: 408, message, is_in_body: phase == Phase::Body })
    }

    fn time(&self, phase: Phase) -> Duration {
        match phase {
            Phase::Fresh | Phase::Head | Phase::Refused => self.limits.head_time,
            Phase::Idle => self.limits.idle_time,
            Phase::Body => self.limits.body_time,
        }
    }

    /// Refusal of a header that is not answered yet.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Whether the client may be sending now.
    pub(crate) fn may_receive(&self) -> bool {
        let phase = self.framing.phase(self.buffer.len() - self.admitted);
        self.ended || !matches!(phase, Phase::Fresh | Phase::Idle)
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }

    /// Count written bytes, or time out if the client reads nothing.
    fn written(
        &mut self,
        context: &mut Context<'_>,
        count: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &count {
            self.statistics.sent_bytes.add(*count as u64);
        }
        if count.is_ready() {
            self.writing.stop();
            return count;
        }
        self.poll_late(context).map(Err)
    }

    /// Timeout error of a client that reads nothing.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        ready!(self.writing.poll(context, (Phase::Body, 0), self.limits.write_time));
        self.pipe.cut();
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client took nothing of its answer in time"))
    }

    /// Set a small send buffer of the socket, for a stream.
    fn narrow(&mut self) {
        let is_large = self.pipe.longest_bytes() > SOCKET_BYTES;
        let kept_bytes = if is_large { SOCKET_BYTES_LARGE } else { SOCKET_BYTES };
        if self.kept_bytes != kept_bytes {
            self.kept_bytes = kept_bytes;
            if let Some(stream) = (self.below)(&self.stream) {
                socket::narrow(stream, kept_bytes);
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.admitted == 0 {
                this.admit()?;
            }
            if this.admitted > 0 {
                let count = this.admitted.min(out.remaining());
                out.put_slice(&this.buffer[..count]);
                this.buffer.advance(count);
                this.admitted -= count;
                return Poll::Ready(Ok(()));
            }
            if this.ended {
                return Poll::Ready(Ok(()));
            }
            this.buffer.reserve(READ_BYTES);
            match poll_read_buf(Pin::new(&mut this.stream), context, &mut this.buffer) {
                Poll::Ready(Ok(0)) => this.ended = true,
                Poll::Ready(Ok(count)) => _ = this.statistics.received_bytes.add(count as u64),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    let phase = this.framing.phase(this.buffer.len());
                    let time = this.time(phase);
                    ready!(this.reading.poll(context, (phase, this.framing.requests()), time));
                    this.late(phase)?;
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.written(context, count)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.written(context, count)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Bytes in TLS that the socket has not accepted yet have the write deadline, too.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.pipe.is_following() {
            this.narrow();
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if flushed.is_ready() {
            this.writing.stop();
            this.pipe.clear();
            return flushed;
        }
        this.poll_late(context).map(Err)
    }

    /// hyper has finished with the stream; the connection stays open.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::timeout;

    /// Accepts all bytes, and sends none of them.
    struct Stuck;

    impl AsyncRead for Stuck {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_and_not_sent_has_a_deadline() {
        let (limits, statistics) = (Arc::new(Limits::default()), Arc::new(Statistics::default()));
        let write_time = limits.write_time;
        let mut guarded = GuardedStream::new((Stuck, |_| None), limits, statistics, Arc::default());
        let written = poll_fn(|context| Pin::new(&mut guarded).poll_write(context, b"x")).await;
        assert_eq!(written.unwrap(), 1);
        let flushing = poll_fn(|context| Pin::new(&mut guarded).poll_flush(context));
        let flushed = timeout(write_time * 2, flushing).await.expect("in time");
        assert_eq!(flushed.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
