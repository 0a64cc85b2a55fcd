//! Queries to a domain through a proxy that cannot read them: HTTP within this process, and the overlay from
//! here to the domain's representative.
//!
//! ```text
//! command ─ HTTP, a pair of sockets ─▶ rpc ─▶ overlay::guest ═ TLS or Noise, via the proxy ═▶ representative
//! ```
//! Rules: every method goes to the representative; the domain and host named on the command line are added to
//! each call, as behind a proxy's listener; the pair of sockets is private to this process.
//! Not here: connecting and logging in (`overlay::guest`), the options (`via`), HTTP (`::client`, `rpc`).

use crate::client::{hint, tunnel_status};
use crate::hop::{self, Hop};
use crate::output::note;
use ::client::Error;
use daemon::shutdown::Signals;
use overlay::guest::{Error as SessionError, GuestSession, SessionSpec};
use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::encoded_answer::Answered;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::Params;
use rpc::dispatch::permissions::Scope;
use rpc::dispatch::statistics::Statistics;
use rpc::fault::Fault;
use rpc::http::authorizer::{Admitted, Authorizer, Credentials, Decision, Rejected};
use rpc::http::server;
use rpc::limits::{CALL_TIME, Limits};
use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;
use wire::api::directory::{DomainsParams, ResolveParams, TargetsParams};
use wire::fault;
use wire::id::{DomainName, HostName, PeerKey};
use wire::query::{Form, Question, Viewer};

/// Timeout for opening the tunnel: every transport of the ladder, a login, a circuit.
const OPENING_TIME: Duration = Duration::from_secs(20);

/// Delay before a note on the waiting is printed.
const NOTE_AFTER: Duration = Duration::from_secs(4);

/// Hop limit of a query: the representative may forward it to the host.
const HOPS: u8 = 2;

/// Part of a query's timeout that is reserved, so that its outcome is reported in time.
const MARGIN: Duration = Duration::from_millis(200);

/// Queried domain, and optionally one of its hosts.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) domain: DomainName,
    pub(crate) host: Option<HostName>,
}

/// Tunnel to the representative; open until this is dropped.
pub(crate) struct TunnelClient {
    runtime: Own,
    dispatcher: Arc<Dispatcher>,
    within: Arc<DomainAuthorizer>,
    session: Arc<GuestSession>,
    root: Option<PeerKey>,
    shutdown: CancellationToken,
}

impl fmt::Debug for TunnelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TunnelClient").field(&self.within.0).finish()
    }
}

impl Drop for TunnelClient {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl TunnelClient {
    /// Connect and log in.
    ///
    /// # Errors
    /// Why the tunnel could not be opened.
    pub(crate) async fn open(spec: SessionSpec, behind: Destination) -> Result<TunnelClient, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = Own(Some(runtime.map_err(failed)?));
        let is_legacy = spec.login.allows_md5;
        let opened = runtime.handle().map_err(failed)?.spawn(opened(spec)).await;
        let session = opened.map_err(failed)?.map_err(|error| {
            match error.is_final() && !matches!(error, SessionError::NoProxy { .. }) {
                true => hint::refused(&error.to_string(), is_legacy),
                false => Error::Unreachable(error.to_string()),
            }
        })?;
        let (root, session) = (session.root(), Arc::new(session));
        let registry = registry(&session, &behind).map_err(failed)?;
        let dispatcher = Dispatcher::new(registry, Limits::default(), Arc::new(Statistics::default()));
        Ok(TunnelClient {
            runtime,
            dispatcher: Arc::new(dispatcher),
            within: Arc::new(DomainAuthorizer(behind)),
            session,
            root,
            shutdown: CancellationToken::new(),
        })
    }

    /// Root key of the domain, as the tunnel verified it.
    pub(crate) fn root(&self) -> Option<PeerKey> {
        self.root
    }

    /// Open an HTTP connection to the domain, registered with the caller's runtime.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let (mine, theirs) = std::os::unix::net::UnixStream::pair()?;
        mine.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let (within, dispatcher) = (Arc::clone(&self.within), Arc::clone(&self.dispatcher));
        let shutdown = self.shutdown.clone();
        self.runtime.handle()?.spawn(async move {
            if let Ok(theirs) = UnixStream::from_std(theirs) {
                server::serve_connection(within, dispatcher, theirs, shutdown).await;
            }
        });
        UnixStream::from_std(mine)
    }

    /// Serve every program on this machine at `listener`, until a signal ends it.
    ///
    /// # Errors
    /// If signals cannot be caught, or the listener does not report its address.
    pub(crate) fn serve(&self, listener: std::net::TcpListener) -> Result<(), String> {
        let obeying = Signals::catch().and_then(|signals| signals.obey(self.shutdown.clone()));
        let _obeying = obeying.map_err(|error| format!("cannot catch signals: {error}"))?;
        let runtime = self.runtime.handle().map_err(|error| error.to_string())?;
        runtime.spawn(tunnel_status::report_changes(
            Arc::clone(&self.session),
            self.within.0.domain.clone(),
            self.shutdown.clone(),
        ));
        let options = server::ListenerOptions {
            authorizer: Some(self.within.clone()),
            ..server::ListenerOptions::default()
        };
        let serving = async {
            listener.set_nonblocking(true).map_err(|error| error.to_string())?;
            let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
            let served =
                server::serve_with(options, listener, Arc::clone(&self.dispatcher), self.shutdown.clone());
            served.await.map_err(|error| error.to_string())
        };
        runtime.block_on(serving)
    }
}

/// Error for a tunnel that could not be started.
fn failed(error: impl fmt::Display) -> Error {
    Error::Unreachable(format!("cannot start: {error}"))
}

/// A runtime that may be dropped within another.
struct Own(Option<Runtime>);

impl Own {
    fn handle(&self) -> io::Result<&Handle> {
        self.0.as_ref().map(Runtime::handle).ok_or_else(|| io::Error::other("the runtime has ended"))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Open the session; a long wait is reported.
async fn opened(spec: SessionSpec) -> Result<GuestSession, SessionError> {
    let at = spec.at();
    let mut opening = pin!(GuestSession::open(spec, OPENING_TIME));
    tokio::select! {
        opened = opening.as_mut() => return opened,
        () = tokio::time::sleep(NOTE_AFTER) => {}
    }
    let left = (OPENING_TIME - NOTE_AFTER).as_secs();
    note(&format!("looking for a way to the proxy at {at}, {left} s more (Ctrl-C ends)"));
    opening.await
}

/// Registry of every method that daemons of domains answer; each is forwarded to the representative.
fn registry(
    session: &Arc<GuestSession>,
    behind: &Destination,
) -> Result<Registry, rpc::dispatch::method::Error> {
    let mut registry = Registry::new();
    let of_directories = [
        Declaration::of::<ResolveParams>(),
        Declaration::of::<DomainsParams>(),
        Declaration::of::<TargetsParams>(),
    ];
    for declaration in sensor::query::declared::all().into_iter().chain(of_directories) {
        let named = [
            ("domain", Some(behind.domain.to_string())),
            ("host", behind.host.as_ref().map(ToString::to_string)),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let asking = MethodForwarder {
            session: Arc::clone(session),
            domain: behind.domain.clone(),
            method: declaration.name(),
            named: named.filter(|(name, _)| declaration.takes(name)).collect(),
        };
        registry.add(declaration.handler_writing(move |params, form| asking.clone().ask(params, form)))?;
    }
    Ok(registry)
}

/// Forwards one method to the representative.
#[derive(Clone)]
struct MethodForwarder {
    session: Arc<GuestSession>,
    domain: DomainName,
    method: &'static str,
    /// Parameters from the command line, those that the method has.
    named: Vec<(&'static str, String)>,
}

impl MethodForwarder {
    async fn ask(self, params: Params, form: Option<Form>) -> Result<Answered, Fault> {
        let mut params = params.values().to_vec();
        for (name, value) in self.named {
            if !params.iter().any(|(given, value)| given == name && *value != Value::Nil) {
                params.retain(|(given, _)| given != name);
                params.push((Name::Borrowed(name), Value::Text(value)));
            }
        }
        let question = |left| {
            let question = hop::question(self.method, params.clone(), left, HOPS);
            Question { form, viewer: Viewer::Anonymous, ..question }.to_bytes()
        };
        let unreached = |error: SessionError| match error.is_final() {
            true => Fault::new(fault::FORBIDDEN, error.to_string()),
            false => hop::unavailable(error.to_string()),
        };
        let (peer, answered) =
            self.session.ask(question, CALL_TIME.saturating_sub(MARGIN)).await.map_err(unreached)?;
        let hop = Hop { peer, host: None, part: "representative", domain: Some(self.domain) };
        hop::answer_for(&hop, form, answered)
    }
}

/// Authorizer that accepts paths of the one domain, and of the one host if one was named.
struct DomainAuthorizer(Destination);

impl Authorizer for DomainAuthorizer {
    fn authorize(&self, credentials: &Credentials<'_>) -> Decision {
        let Destination { domain, host } = &self.0;
        let place = proxy::request_path::of(credentials.path).filter(|place| {
            let is_host = place.host.is_none() || host.is_none() || place.host == *host;
            is_host && place.domain.as_ref().is_none_or(|named| named == domain)
        });
        let Some(place) = place else {
            let message = format!(
                "expected /RPC2, /api/v1/METHOD, or one of these behind /d/{domain}, found another path"
            );
            let fault = Fault::new(fault::NOT_FOUND, message);
            return Decision::Rejected(Rejected { status: 404, fields: Vec::new(), fault });
        };
        let scope = Scope {
            domain: place.domain.map(|name| name.to_string()),
            host: place.host.map(|name| name.to_string()),
            ..Scope::default()
        };
        Decision::Admitted(Admitted { path: place.rest, scope, fields: Vec::new(), permit: Box::new(()) })
    }

    fn serves_this_host(&self) -> bool {
        true
    }
}
