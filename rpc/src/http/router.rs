//! Router: the handler of each path and HTTP method, and the layers before the handlers.
//!
//! ```text
//! POST /RPC2 (and POST /)     XML-RPC                   faults with status 200, as XML-RPC has them
//! POST /api/v1/METHOD         JSON object or nothing    {"error": {"code", "message"}} with its status
//! GET  /api/v1/METHOD?a=b     the read methods; with follow=SECONDS a stream of answers
//! GET  /api/v1                list of the methods
//! GET  /api/v1/openapi.json   the same as an OpenAPI document
//! GET  /                      a help page
//! GET  PATH                   a read method under the path that another program expects
//! GET, POST /tunnel[/…]       not a call                bytes, if the daemon has tunnels
//! ```
//! A request passes, in order: Host and Origin check, upgrade, authorizer if there is one, path, body limits,
//! codec, call. Only the first runs before the client is authorized; a tunnelled request is authenticated by
//! its content.
//! Not here: sockets (`server`), ambiguous headers (`framing`), calls (`calls`, `dispatch`).

use crate::codec::json;
use crate::dispatch::method::{Method as Declared, Reading};
use crate::dispatch::permissions::Scope;
use crate::dispatch::{Dispatcher, introspection};
use crate::fault::Fault;
use crate::http::answer::{self, JSON, TEXT, closing, json_fault, not_allowed, respond};
use crate::http::authorizer::{Admitted, Authorizer, Credentials, Decision, Rejected};
use crate::http::body::Bodies;
use crate::http::calls;
use crate::http::origin::{self, BrowserHeaders, Names};
use crate::http::upgrade::Upgrade;
use crate::stream::Follows;
use crate::stream::backpressure::ClientConnection;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use axum::{Extension, Router};
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, Method, StatusCode, Uri};
use std::sync::Arc;
use tower::Layer;
use tower_http::validate_request::{ValidateRequest, ValidateRequestHeader, ValidateRequestHeaderLayer};
use wire::fault;

const API: &str = "/api/v1";
const OPENAPI: &str = "/api/v1/openapi.json";

/// State shared by all handlers.
pub(crate) struct Served {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) bodies: Bodies,
    pub(crate) names: Names,
    /// Authorizes requests; without one every client is allowed.
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    /// Takes connections and requests that are not calls.
    pub(crate) upgrade: Option<Arc<dyn Upgrade>>,
    pub(crate) follows: Arc<Follows>,
}

type Shared = State<Arc<Served>>;

/// The router of a daemon behind its origin check.
pub(crate) type Paths = ValidateRequestHeader<Router, CheckOrigin>;

/// Build the routes of a daemon and the layers before them.
pub(crate) fn paths(served: &Arc<Served>) -> Paths {
    let mut router = methods(served);
    if served.authorizer.is_some() {
        // It may rewrite the path, so it runs before the router chooses a route.
        let enter = from_fn_with_state(Arc::clone(served), enter).layer(router);
        router = Router::new().fallback_service(enter);
    }
    if let Some(upgrade) = &served.upgrade {
        let (path, below) = (upgrade.path(), format!("{}/{{*rest}}", upgrade.path()));
        let carried = Router::new().route(path, any(calls::hand_on)).route(&below, any(calls::hand_on));
        router = carried.with_state(Arc::clone(served)).fallback_service(router);
    }
    ValidateRequestHeaderLayer::custom(CheckOrigin(Arc::clone(served))).layer(router)
}

fn methods(served: &Arc<Served>) -> Router {
    let registry = &served.dispatcher.registry;
    let mut router = Router::new()
        .route("/", get(index).post(calls::xml).fallback(index_only))
        .route("/RPC2", post(calls::xml).fallback(xml_only))
        .route("/RPC2/", post(calls::xml).fallback(xml_only))
        .route(API, get(listing).fallback(list_only))
        .route("/api/v1/", get(listing).fallback(list_only))
        .route(OPENAPI, get(openapi).fallback(list_only))
        .route("/api/v1/{*method}", any(no_method));
    for declaration in registry.declarations() {
        if let Some(method) = registry.get(declaration.name) {
            router = router.route(&format!("{API}/{}", declaration.name), call(method));
        }
    }
    for (path, name) in registry.paths() {
        if let Some(method) = registry.get(name) {
            router = router.route(path, call(method));
        }
    }
    router.fallback(no_path).with_state(Arc::clone(served))
}

/// Route of a method by JSON: also by GET if it only reads.
fn call(method: &Declared) -> MethodRouter<Arc<Served>> {
    let name = method.declaration.name;
    let posted = post(move |State(served): Shared, scope, request| calls::json(served, scope, name, request));
    if method.declaration.reading == Reading::Only {
        posted
            .get(move |State(served): Shared, scope, request| {
                calls::json_by_link(served, scope, name, request)
            })
            .fallback(async |method: Method| not_allowed(&method, "GET, HEAD, POST, OPTIONS", "GET or POST"))
    } else {
        let expected = "POST, for the method may change something";
        posted.fallback(async move |method: Method| not_allowed(&method, "POST, OPTIONS", expected))
    }
}

/// Origin check: refuses requests of web pages from other sites.
#[derive(Clone)]
pub(crate) struct CheckOrigin(Arc<Served>);

impl<B> ValidateRequest<B> for CheckOrigin {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut hyper::Request<B>) -> Result<(), Response> {
        let Served { dispatcher, names, .. } = self.0.as_ref();
        dispatcher.statistics.requests_total.add(1);
        origin::check(browser_headers(request.headers()), *names).map_err(|fault| {
            dispatcher.statistics.requests_refused_total.add(1);
            closing(json_fault(&fault))
        })
    }
}

fn browser_headers(fields: &HeaderMap) -> BrowserHeaders<'_> {
    let field = |name: HeaderName| fields.get(name).map(|value| value.to_str().unwrap_or("?"));
    BrowserHeaders {
        host: field(HOST),
        origin: field(ORIGIN),
        fetch_site: field(HeaderName::from_static("sec-fetch-site")),
    }
}

/// Authorize a request by its header, before any of the body is read.
async fn enter(
    State(served): Shared,
    Extension(conversation): Extension<ClientConnection>,
    mut request: Request,
    next: Next,
) -> Response {
    let entry = match &served.authorizer {
        None => return next.run(request).await,
        Some(authorizer) => authorize(authorizer.as_ref(), &conversation, &request),
    };
    match entry {
        Decision::Admitted(Admitted { path, scope, fields, permit: _seat }) => {
            let target = match request.uri().query() {
                Some(query) => format!("{path}?{query}"),
                None => path,
            };
            let Ok(inside) = Uri::try_from(target) else { return no_path().await };
            *request.uri_mut() = inside;
            request.extensions_mut().insert(scope);
            answer::with_fields(next.run(request).await, fields)
        }
        Decision::Rejected(Rejected { status, fields, fault }) => {
            served.dispatcher.statistics.requests_refused_total.add(1);
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
            answer::with_fields(respond(status, JSON, json::write_fault(&fault)), fields)
        }
    }
}

fn authorize(authorizer: &dyn Authorizer, conversation: &ClientConnection, request: &Request) -> Decision {
    let mut shown = request.headers().get_all(AUTHORIZATION).iter();
    let (authorization, more) = (shown.next(), shown.next());
    if more.is_some() {
        let fault = Fault::new(fault::TRANSPORT, "expected Authorization once, found it twice");
        return Decision::Rejected(Rejected { status: 400, fields: Vec::new(), fault });
    }
    let uri = request.uri();
    authorizer.authorize(&Credentials {
        method: request.method().as_str(),
        target: uri.path_and_query().map_or(uri.path(), |target| target.as_str()),
        path: uri.path(),
        authorization: authorization.map(|value| value.to_str().unwrap_or("?")),
        source: conversation.source.address().ip(),
    })
}

/// Scope of a request's calls: from the authorizer, or that of a local client.
pub(super) fn scope(request: &Request, conversation: &ClientConnection) -> Scope {
    let entered = request.extensions().get::<Scope>().cloned();
    entered.unwrap_or_else(|| Scope { viewer: conversation.source.viewer(), ..Scope::default() })
}

async fn index() -> Response {
    respond(StatusCode::OK, TEXT, INDEX)
}

async fn listing(State(served): Shared) -> Response {
    let listing = introspection::listing(&served.dispatcher.registry);
    respond(StatusCode::OK, JSON, json::write_answer(&listing))
}

async fn openapi(State(served): Shared) -> Response {
    respond(StatusCode::OK, JSON, served.dispatcher.openapi())
}

async fn no_method(State(served): Shared, uri: Uri) -> Response {
    let name = uri.path().strip_prefix("/api/v1/").unwrap_or_default();
    served.dispatcher.statistics.faults_total.add(1);
    json_fault(&Fault::method_not_found(name))
}

async fn no_path() -> Response {
    let message = "expected /RPC2, /api/v1 or /api/v1/METHOD, found another path; / says how to ask";
    json_fault(&Fault::not_found(message))
}

async fn xml_only(method: Method) -> Response {
    not_allowed(&method, "POST, OPTIONS", "POST with an XML-RPC <methodCall>; / says how to ask")
}

async fn index_only(method: Method) -> Response {
    let expected = "GET for help or POST with an XML-RPC <methodCall>";
    not_allowed(&method, "GET, HEAD, POST, OPTIONS", expected)
}

async fn list_only(method: Method) -> Response {
    let expected = "GET for the list of methods, or POST to /api/v1/METHOD";
    not_allowed(&method, "GET, HEAD, OPTIONS", expected)
}

const INDEX: &str = "This is a daemon of visperf. Ask it

  by XML-RPC   POST to /RPC2; system.listMethods, system.methodHelp and system.multicall are there
  by JSON      POST /api/v1/METHOD with an object of named parameters, or with nothing
  by a link    GET /api/v1/METHOD?name=value, for methods that only read
  the list     GET /api/v1; as an OpenAPI document GET /api/v1/openapi.json

For example: curl http://HOST:PORT/api/v1/daemon.info
";
