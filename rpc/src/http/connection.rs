//! Connection task: from the first byte of a client to the end.
//!
//! ```text
//! first byte ─▶ upgrade, if it takes it │ TLS, if any ─▶ first bytes ─▶ upgrade, if it takes them │ hyper ─▶ router ─▶ the end
//! ```
//! Rule: responses reach the client before the connection is closed, also while it is still sending.
//! Not here: how many there may be (`connections`), bytes and deadlines (`guarded_stream`).

use crate::dispatch::source::Source;
use crate::dispatch::statistics::Statistics;
use crate::fault::Fault;
use crate::http::answer::{refusal_fault, without_request};
use crate::http::framing::Refusal;
use crate::http::guarded_stream::{Below, GuardedStream};
use crate::http::router::Paths;
use crate::http::socket::Socket;
use crate::http::upgrade::{Prefixed, Upgrade};
use crate::limits::Limits;
use crate::stream::backpressure::{Backpressure, ClientConnection};
use crate::stream_limits::ENCRYPTED_BYTES;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use wire::fault;

/// After a response that ends the connection early, this many bytes are read and discarded, for this long:
/// closing with unread bytes would discard the response at the client.
const LINGER_BYTES: usize = 256 << 10;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Everything that one connection needs.
pub(crate) struct Connection {
    pub(crate) source: Source,
    pub(crate) paths: Paths,
    pub(crate) upgrade: Option<Arc<dyn Upgrade>>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) shutdown: CancellationToken,
}

impl Connection {
    /// Serve a new connection, encrypted if `tls` is given.
    pub(crate) async fn serve_any(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let upgrade = self.upgrade.clone();
        if let Some(upgrade) = &upgrade {
            let mut first = [0];
            let Some(Ok(_)) = self.in_time(stream.peek(&mut first)).await else { return };
            if upgrade.takes_plain(first[0]) {
                self.until_shutdown(upgrade.take_plain(stream, self.source.address())).await;
                return;
            }
        }
        match tls {
            None => self.serve_prefixed(stream).await,
            Some(tls) => match self.in_time(tls.accept(stream)).await {
                Some(Ok(mut stream)) => {
                    stream.get_mut().1.set_buffer_limit(Some(ENCRYPTED_BYTES));
                    self.serve_prefixed(stream).await;
                }
                Some(Err(error)) => tracing::trace!(%error, "a connection was not encrypted"),
                None => {}
            },
        }
    }

    /// Serve a connection within TLS.
    pub(crate) async fn serve_prefixed<S: Socket + Send + 'static>(self, stream: S) {
        let socket: fn(&S) -> Option<BorrowedFd<'_>> = |stream| Some(stream.socket());
        let Some(upgrade) = self.upgrade.clone() else { return self.serve(stream, socket).await };
        match self.in_time(Prefixed::look(stream, upgrade.upgrade())).await {
            Some(Ok((stream, true))) => {
                self.until_shutdown(upgrade.take_upgrade(Box::new(stream), self.source.address())).await;
            }
            Some(Ok((stream, false))) => self.serve(stream, |prefixed| Some(prefixed.socket())).await,
            Some(Err(_)) | None => {}
        }
    }

    /// Run `work` with the deadline of a request header.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = timeout(self.limits.head_time, work) => done.ok(),
            () = self.shutdown.cancelled() => None,
        }
    }

    async fn until_shutdown(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = work => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// Serve a connection; `socket` returns the socket below it, if known.
    pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(self, stream: S, socket: Below<S>) {
        let conversation = ClientConnection { source: self.source, pipe: Arc::<Backpressure>::default() };
        let (limits, statistics) = (Arc::clone(&self.limits), Arc::clone(&self.statistics));
        let pipe = Arc::clone(&conversation.pipe);
        let mut guarded = GuardedStream::new((stream, socket), limits, statistics, pipe);
        if let Err(error) = self.answer_requests(&mut guarded, &conversation).await {
            tracing::trace!(%error, "a connection ended early");
            // hyper has answered other errors.
            if !error.is_parse() {
                return;
            }
        }
        if let Some(refusal) = guarded.refusal() {
            let last = self.refused(refusal);
            if guarded.write_all(last.as_bytes()).await.is_err() || guarded.flush().await.is_err() {
                return;
            }
        }
        let may_receive = guarded.may_receive();
        Box::pin(end(guarded.into_inner(), may_receive)).await;
    }

    async fn answer_requests<S: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        guarded: &mut GuardedStream<S>,
        conversation: &ClientConnection,
    ) -> hyper::Result<()> {
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(conversation.clone());
            // The service is always ready, as its documentation says.
            self.paths.clone().call(request)
        });
        // The guarded stream has the deadlines; a client that closed its sending side still gets its answer.
        let connection = http1::Builder::new()
            .half_close(true)
            .header_read_timeout(None)
            .max_headers(self.limits.headers)
            .serve_connection(TokioIo::new(guarded), service);
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    }

    /// The response to a refused request header.
    fn refused(&self, refusal: Refusal) -> String {
        self.statistics.requests_total.add(1);
        self.statistics.requests_refused_total.add(1);
        without_request(refusal.status, &refusal_fault(refusal))
    }
}

/// Refuse a connection over the limit, whose client may not have sent anything yet.
pub(crate) async fn end_busy(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let fault = Fault::new(fault::BUSY, "expected fewer connections; close some, or ask again later");
    let last = without_request(503, &fault);
    let refusing = async {
        if stream.write_all(last.as_bytes()).await.is_ok() {
            Box::pin(end(stream, true)).await;
        }
    };
    let _ = timeout(LINGER_TIME, refusing).await;
}

/// Close a connection; if its client may be sending, read on so that it can read all responses.
async fn end(mut stream: impl AsyncRead + AsyncWrite + Unpin, may_receive: bool) {
    let ending = async {
        stream.shutdown().await?;
        let (mut unread, mut left) = (Vec::new(), LINGER_BYTES);
        while may_receive && left > 0 {
            unread.resize(4096, 0);
            match stream.read(&mut unread).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    let _ = timeout(LINGER_TIME, ending).await;
}
