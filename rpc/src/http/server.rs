//! The listener of a daemon: accepts connections within their limits, serves them, drains at the end.
//!
//! One task owns the listener and the table of connections; each connection is a task of its set, none is
//! detached. A [`Door`] stands before those that come from beyond this machine.
//! Not here: what is answered (`routes`), what one connection may do (`guarded_stream`).

use crate::codec::json;
use crate::dispatch::Dispatcher;
use crate::dispatch::method::Registry;
use crate::dispatch::source::{Source, SourceKey};
use crate::dispatch::statistics::Statistics;
use crate::fault::Fault;
use crate::http::body::Bodies;
use crate::http::config::Listen;
use crate::http::connections::Connections;
use crate::http::entrance::Entrance;
use crate::http::guarded_stream::{Below, GuardedStream, RefusalCell};
use crate::http::hatch::{Begun, Hatch};
use crate::http::listener::{Accepted, Listener, LocalListener};
use crate::http::origin::Names;
use crate::http::routes::Routes;
use crate::http::socket::Socket;
use crate::limits::Limits;
use crate::stream::Follows;
use crate::stream::pipe::{Conversation, Pipe};
use crate::stream_limits::ENCRYPTED_BYTES;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{Id, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use wire::fault;

pub use crate::http::listener::{Error, bind};

/// Connections beyond the limit that are told so at a time; further ones are just closed.
const TOLD_BUSY: usize = 64;
/// How long one of those may take.
const TOLD_BUSY_TIME: Duration = Duration::from_secs(1);
/// After an accept that failed (no file descriptors left), as long a pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the methods of `registry` on `listener` until `shutdown`, then lets calls in work end, for
/// `limits.drain_time` at most. `statistics` counts; its other owners may read it at any time.
///
/// # Errors
/// If the listener does not tell its address; it has served nothing then.
pub async fn serve(
    listener: TcpListener,
    registry: Registry,
    limits: Limits,
    statistics: Arc<Statistics>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    serve_methods(listener, Arc::new(Dispatcher::new(registry, limits, statistics)), shutdown).await
}

/// What stands before a listener.
#[derive(Clone, Default)]
pub struct Door {
    /// Who may come in; anybody where there is none.
    pub entrance: Option<Arc<dyn Entrance>>,
    /// How connections are encrypted; not at all where there is none.
    pub tls: Option<TlsAcceptor>,
    /// What is no call is for it; refused where there is none.
    pub hatch: Option<Arc<dyn Hatch>>,
}

/// As [`serve`], with methods that are called from elsewhere too.
///
/// # Errors
/// As [`serve`].
pub async fn serve_methods(
    listener: TcpListener,
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    serve_behind(Door::default(), listener, dispatcher, shutdown).await
}

/// As [`serve_methods`], for those that `door` lets in.
///
/// # Errors
/// As [`serve`].
pub async fn serve_behind(
    door: Door,
    listener: TcpListener,
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Address)?;
    let is_for_here = door.entrance.as_ref().is_none_or(|entrance| entrance.is_for_this_host());
    let is_known_here = Listen::from(address).is_loopback() && is_for_here;
    let names = if is_known_here { Names::Loopback } else { Names::Any };
    serve_accepted(door, (Listener::Tcp(listener), names), dispatcher, shutdown).await;
    Ok(())
}

/// As [`serve_methods`], for clients of a local socket, each on behalf of its user. Places for connections and followers are
/// its own: clients on TCP take none of them.
pub async fn serve_local(listener: LocalListener, dispatcher: Arc<Dispatcher>, shutdown: CancellationToken) {
    serve_accepted(Door::default(), (Listener::Local(listener), Names::Loopback), dispatcher, shutdown).await;
}

async fn serve_accepted(
    door: Door,
    (listener, names): (Listener, Names),
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) {
    let shared = Arc::new(dispatcher.limits.clone());
    let bodies = Bodies::new(&shared);
    let drain_time = shared.drain_time;
    let Door { entrance, tls, hatch } = door;
    let (follows, tasks) = Follows::new(shared.follow.clone(), Arc::clone(&dispatcher.statistics));
    let mut following = pin!(tasks.run(Arc::clone(&follows), Arc::clone(&dispatcher)));
    let routes = Arc::new(Routes { dispatcher, bodies, names, entrance, hatch, follows });
    let mut server = Server {
        table: Connections::new(&shared),
        limits: shared,
        routes,
        tls,
        shutdown: shutdown.clone(),
        connections: JoinSet::new(),
        sources: HashMap::new(),
        told_busy: JoinSet::new(),
    };
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = server.connections.join_next_with_id() => server.ended(ended.map_or_else(|error| error.id(), |(id, ())| id)),
            Some(_) = server.told_busy.join_next() => {}
            () = following.as_mut() => {}
            accepted = listener.accept() => match accepted {
                Ok(accepted) => server.accepted(accepted),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted; pausing");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    server.routes.follows.end();
    server.drain(drain_time).await;
}

/// Serves one connection that is there already, such as one end of a pair within this process, until it ends or `shutdown`.
pub async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send>(
    entrance: Arc<dyn Entrance>,
    dispatcher: Arc<Dispatcher>,
    stream: S,
    shutdown: CancellationToken,
) {
    let limits = Arc::new(dispatcher.limits.clone());
    let bodies = Bodies::new(&limits);
    let entrance = Some(entrance);
    let (follows, tasks) = Follows::new(limits.follow.clone(), Arc::clone(&dispatcher.statistics));
    let following = tasks.run(Arc::clone(&follows), Arc::clone(&dispatcher));
    let ending = Arc::clone(&follows);
    let ended = async {
        shutdown.cancelled().await;
        ending.end();
        std::future::pending::<()>().await;
    };
    let routes = Arc::new(Routes { dispatcher, bodies, names: Names::Any, entrance, hatch: None, follows });
    let source = Source::Network(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let serving = Serving { source, routes, limits, shutdown: shutdown.clone() };
    tokio::select! {
        () = serving.serve(stream, |_| None) => {}
        () = following => {}
        () = ended => {}
    }
}

struct Server {
    table: Connections,
    limits: Arc<Limits>,
    routes: Arc<Routes>,
    tls: Option<TlsAcceptor>,
    shutdown: CancellationToken,
    connections: JoinSet<()>,
    /// The other end of each task of `connections`.
    sources: HashMap<Id, SourceKey>,
    told_busy: JoinSet<()>,
}

impl Server {
    fn statistics(&self) -> &Arc<Statistics> {
        &self.routes.dispatcher.statistics
    }

    fn accepted(&mut self, accepted: Accepted) {
        match accepted {
            Accepted::Tcp(stream, peer) => {
                let source = Source::Network(peer);
                // By TLS it would cost a handshake to say so.
                let is_plain = self.tls.is_none();
                let Some(stream) = self.admit(stream, source, is_plain) else { return };
                // Answers are written whole, so waiting to fill a packet only delays them.
                let _ = stream.set_nodelay(true);
                let serving = self.serving(source).serve_any(stream, self.tls.clone());
                self.spawn(source, serving);
            }
            Accepted::Local(stream, source) => {
                let Some(stream) = self.admit(stream, source, true) else { return };
                let serving = self.serving(source).serve_begun(stream);
                self.spawn(source, serving);
            }
        }
    }

    /// The stream again if there is a place for it; else its client is answered that there is none, where `is_plain`.
    fn admit<S>(&mut self, stream: S, source: Source, is_plain: bool) -> Option<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        if self.table.admit(source.key(), self.routes.follows.len()) {
            return Some(stream);
        }
        self.statistics().connections_refused_total.add(1);
        tracing::debug!(?source, "refused a connection, there are too many");
        if self.told_busy.len() < TOLD_BUSY && is_plain {
            self.told_busy.spawn(tell_busy(stream));
        }
        None
    }

    fn serving(&self, source: Source) -> Serving {
        let (routes, limits) = (Arc::clone(&self.routes), Arc::clone(&self.limits));
        Serving { source, routes, limits, shutdown: self.shutdown.clone() }
    }

    fn spawn(&mut self, source: Source, serving: impl Future<Output = ()> + Send + 'static) {
        self.statistics().connections_total.add(1);
        self.statistics().connections_open.add(1);
        let task = self.connections.spawn(serving);
        self.sources.insert(task.id(), source.key());
    }

    fn ended(&mut self, id: Id) {
        self.statistics().connections_open.subtract(1);
        if let Some(source) = self.sources.remove(&id) {
            self.table.leave(source);
        }
    }

    async fn drain(&mut self, time: Duration) {
        let all = async {
            while let Some(ended) = self.connections.join_next_with_id().await {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.routes.dispatcher.statistics.connections_open.subtract(1);
                self.sources.remove(&id);
            }
        };
        if tokio::time::timeout(time, all).await.is_err() {
            let cut = self.connections.len();
            // Those that awaited a request have ended at once.
            tracing::warn!(cut, "requests in progress were cut off, for they did not end in time");
            self.statistics().connections_open.subtract(cut as u64);
        }
        self.connections.shutdown().await;
        self.told_busy.shutdown().await;
    }
}

/// What one connection needs.
struct Serving {
    source: Source,
    routes: Arc<Routes>,
    limits: Arc<Limits>,
    shutdown: CancellationToken,
}

impl Serving {
    /// A connection as it comes, encrypted by `tls` where there is one.
    async fn serve_any(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let hatch = self.routes.hatch.clone();
        if let Some(hatch) = &hatch {
            let mut first = [0];
            let Some(Ok(_)) = self.in_time(stream.peek(&mut first)).await else { return };
            if hatch.takes_plain(first[0]) {
                self.until_shutdown(hatch.take_plain(stream, self.source.address())).await;
                return;
            }
        }
        match tls {
            None => self.serve_begun(stream).await,
            Some(tls) => match self.in_time(tls.accept(stream)).await {
                Some(Ok(mut stream)) => {
                    stream.get_mut().1.set_buffer_limit(Some(ENCRYPTED_BYTES));
                    self.serve_begun(stream).await;
                }
                Some(Err(error)) => tracing::trace!(%error, "a connection was not encrypted"),
                None => {}
            },
        }
    }

    /// The same within TLS.
    async fn serve_begun<S: Socket + Send + 'static>(self, stream: S) {
        let socket: fn(&S) -> Option<BorrowedFd<'_>> = |stream| Some(stream.socket());
        let Some(hatch) = self.routes.hatch.clone() else { return self.serve(stream, socket).await };
        match self.in_time(Begun::look(stream, hatch.upgrade())).await {
            Some(Ok((stream, true))) => {
                self.until_shutdown(hatch.take_upgrade(Box::new(stream), self.source.address())).await;
            }
            Some(Ok((stream, false))) => self.serve(stream, |begun| Some(begun.socket())).await,
            Some(Err(_)) | None => {}
        }
    }

    /// What comes before the head of a request has as long as that.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = tokio::time::timeout(self.limits.head_time, work) => done.ok(),
            () = self.shutdown.cancelled() => None,
        }
    }

    async fn until_shutdown(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = work => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    /// A connection with what returns the socket below it, where that is known.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send>(self, stream: S, socket: Below<S>) {
        let Serving { source, routes, limits, shutdown } = self;
        let refusal = RefusalCell::default();
        let statistics = routes.dispatcher.statistics.clone();
        let conversation = Conversation { source, pipe: Arc::<Pipe>::default() };
        let pipe = Arc::clone(&conversation.pipe);
        let guarded = GuardedStream::new((stream, socket), limits.clone(), statistics, refusal.clone(), pipe);
        let service = service_fn(|mut request: Request<Incoming>| {
            let (routes, refusal) = (&routes, &refusal);
            request.extensions_mut().insert(conversation.clone());
            async move { Ok::<_, Infallible>(routes.answer(request, refusal, source).await) }
        });
        // The guarded stream keeps the deadlines; a client that closed its sending side still gets its answer.
        let connection = http1::Builder::new()
            .half_close(true)
            .header_read_timeout(None)
            .max_headers(limits.headers)
            .serve_connection(TokioIo::new(guarded), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::trace!(%error, "a connection ended early");
        }
    }
}

/// Says that there are too many connections, to a client that may not have asked anything yet.
async fn tell_busy(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let fault = Fault::new(fault::BUSY, "expected fewer connections; close some, or ask again later");
    let body = json::write_fault(&fault);
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let telling = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Closing with bytes unread would take the answer away from the client.
        let mut unread = [0; 1024];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TOLD_BUSY_TIME, telling).await;
}
