//! HTTP server of a daemon: accepts connections within their limits, serves them, drains at the end.
//!
//! One task owns the listener and the table of connections; each connection is a task of its set, none is
//! detached. [`ListenerOptions`] define how clients from other machines are authorized.
//! Not here: answers (`router`), one connection (`connection`).

use crate::dispatch::Dispatcher;
use crate::dispatch::method::Registry;
use crate::dispatch::source::{Source, SourceKey};
use crate::dispatch::statistics::Statistics;
use crate::http::authorizer::Authorizer;
use crate::http::body::Bodies;
use crate::http::config::Listen;
use crate::http::connection::{self, Connection};
use crate::http::connections::Connections;
use crate::http::listener::{Accepted, Listener, LocalListener};
use crate::http::origin::Names;
use crate::http::router::{self, Paths, Served};
use crate::http::upgrade::Upgrade;
use crate::limits::Limits;
use crate::stream::Follows;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{Id, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use crate::http::listener::{Error, bind};

/// Concurrent answers to connections over the limit; further ones are closed without an answer.
const REJECTING_MAX: usize = 64;
/// Pause after a failed accept (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serve the methods of `registry` on `listener` until `shutdown`, then let running calls finish, for
/// `limits.drain_time` at most. `statistics` counts; its other owners may read it at any time.
///
/// # Errors
/// If the listener does not report its address; nothing was served then.
pub async fn serve(
    listener: TcpListener,
    registry: Registry,
    limits: Limits,
    statistics: Arc<Statistics>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    serve_methods(listener, Arc::new(Dispatcher::new(registry, limits, statistics)), shutdown).await
}

/// Options of a listener: authorization, encryption, protocol upgrades.
#[derive(Clone, Default)]
pub struct ListenerOptions {
    /// Authorizes requests; without one every client is allowed.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// TLS of the connections; none means plain HTTP.
    pub tls: Option<TlsAcceptor>,
    /// Takes connections and requests that are not calls; without one they are refused.
    pub upgrade: Option<Arc<dyn Upgrade>>,
}

/// As [`serve`], with a dispatcher that may also be used elsewhere.
///
/// # Errors
/// As [`serve`].
pub async fn serve_methods(
    listener: TcpListener,
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    serve_with(ListenerOptions::default(), listener, dispatcher, shutdown).await
}

/// As [`serve_methods`], with `options`.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    options: ListenerOptions,
    listener: TcpListener,
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Address)?;
    let is_for_here = options.authorizer.as_ref().is_none_or(|authorizer| authorizer.serves_this_host());
    let is_known_here = Listen::from(address).is_loopback() && is_for_here;
    let names = if is_known_here { Names::Loopback } else { Names::Any };
    serve_accepted(options, (Listener::Tcp(listener), names), dispatcher, shutdown).await;
    Ok(())
}

/// As [`serve_methods`], for clients of a local socket, each with the identity of its user. Its limits of
/// connections and streams are separate from those of TCP.
pub async fn serve_local(listener: LocalListener, dispatcher: Arc<Dispatcher>, shutdown: CancellationToken) {
    serve_accepted(
        ListenerOptions::default(),
        (Listener::Local(listener), Names::Loopback),
        dispatcher,
        shutdown,
    )
    .await;
}

async fn serve_accepted(
    options: ListenerOptions,
    (listener, names): (Listener, Names),
    dispatcher: Arc<Dispatcher>,
    shutdown: CancellationToken,
) {
    let shared = Arc::new(dispatcher.limits.clone());
    let bodies = Bodies::new(&shared);
    let drain_time = shared.drain_time;
    let ListenerOptions { authorizer, tls, upgrade } = options;
    let (follows, tasks) = Follows::new(shared.follow.clone(), Arc::clone(&dispatcher.statistics));
    let mut following = pin!(tasks.run(Arc::clone(&follows), Arc::clone(&dispatcher)));
    let served = Arc::new(Served { dispatcher, bodies, names, authorizer, upgrade, follows });
    let mut server = Server {
        table: Connections::new(&shared),
        limits: shared,
        paths: router::paths(&served),
        served,
        tls,
        shutdown: shutdown.clone(),
        connections: JoinSet::new(),
        sources: HashMap::new(),
        rejecting: JoinSet::new(),
    };
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(ended) = server.connections.join_next_with_id() => server.ended(ended.map_or_else(|error| error.id(), |(id, ())| id)),
            Some(_) = server.rejecting.join_next() => {}
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
    server.served.follows.end();
    server.drain(drain_time).await;
}

/// Serve one open connection, such as one end of a pair within this process, until it ends or `shutdown`.
pub async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send>(
    authorizer: Arc<dyn Authorizer>,
    dispatcher: Arc<Dispatcher>,
    stream: S,
    shutdown: CancellationToken,
) {
    let limits = Arc::new(dispatcher.limits.clone());
    let bodies = Bodies::new(&limits);
    let authorizer = Some(authorizer);
    let (follows, tasks) = Follows::new(limits.follow.clone(), Arc::clone(&dispatcher.statistics));
    let following = tasks.run(Arc::clone(&follows), Arc::clone(&dispatcher));
    let ending = Arc::clone(&follows);
    let ended = async {
        shutdown.cancelled().await;
        ending.end();
        std::future::pending::<()>().await;
    };
    let statistics = Arc::clone(&dispatcher.statistics);
    let served =
        Arc::new(Served { dispatcher, bodies, names: Names::Any, authorizer, upgrade: None, follows });
    let source = Source::Network(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let paths = router::paths(&served);
    let serving = Connection { source, paths, upgrade: None, limits, statistics, shutdown: shutdown.clone() };
    tokio::select! {
        () = serving.serve(stream, |_| None) => {}
        () = following => {}
        () = ended => {}
    }
}

struct Server {
    table: Connections,
    limits: Arc<Limits>,
    served: Arc<Served>,
    paths: Paths,
    tls: Option<TlsAcceptor>,
    shutdown: CancellationToken,
    connections: JoinSet<()>,
    /// The source of each task of `connections`.
    sources: HashMap<Id, SourceKey>,
    rejecting: JoinSet<()>,
}

impl Server {
    fn statistics(&self) -> &Arc<Statistics> {
        &self.served.dispatcher.statistics
    }

    fn accepted(&mut self, accepted: Accepted) {
        match accepted {
            Accepted::Tcp(stream, peer) => {
                let source = Source::Network(peer);
                // With TLS, the answer would cost a handshake.
                let is_plain = self.tls.is_none();
                let Some(stream) = self.admit(stream, source, is_plain) else { return };
                // Answers are written whole, so waiting to fill a packet only delays them.
                let _ = stream.set_nodelay(true);
                let serving = self.connection(source).serve_any(stream, self.tls.clone());
                self.spawn(source, serving);
            }
            Accepted::Local(stream, source) => {
                let Some(stream) = self.admit(stream, source, true) else { return };
                let serving = self.connection(source).serve_prefixed(stream);
                self.spawn(source, serving);
            }
        }
    }

    /// Admit a connection and return its stream; over the limit answer its client, if `is_plain`, and return
    /// `None`.
    fn admit<S>(&mut self, stream: S, source: Source, is_plain: bool) -> Option<S>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        if self.table.admit(source.key(), self.served.follows.len()) {
            return Some(stream);
        }
        self.statistics().connections_refused_total.add(1);
        tracing::debug!(?source, "refused a connection, there are too many");
        if self.rejecting.len() < REJECTING_MAX && is_plain {
            self.rejecting.spawn(connection::end_busy(stream));
        }
        None
    }

    fn connection(&self, source: Source) -> Connection {
        Connection {
            source,
            paths: self.paths.clone(),
            upgrade: self.served.upgrade.clone(),
            limits: Arc::clone(&self.limits),
            statistics: Arc::clone(self.statistics()),
            shutdown: self.shutdown.clone(),
        }
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
                self.served.dispatcher.statistics.connections_open.subtract(1);
                self.sources.remove(&id);
            }
        };
        if tokio::time::timeout(time, all).await.is_err() {
            let cut = self.connections.len();
            // Connections that waited for a request have ended at once.
            tracing::warn!(cut, "requests in progress were cut off, for they did not end in time");
            self.statistics().connections_open.subtract(cut as u64);
        }
        self.connections.shutdown().await;
        self.rejecting.shutdown().await;
    }
}
