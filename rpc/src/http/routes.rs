//! What each path and method of HTTP answers.
//!
//! ```text
//! POST /RPC2 (and POST /)     XML-RPC                   faults with status 200, as XML-RPC has them
//! POST /api/v1/METHOD         JSON object or nothing    {"error": {"code", "message"}} with its status
//! GET  /api/v1/METHOD?a=b     the reading methods; with follow=SECONDS answer after answer
//! GET  /api/v1                what can be called
//! GET  /api/v1/openapi.json   the same as an OpenAPI document
//! GET  /                      how to ask, for people
//! GET  PATH                   a reading method under the path that another program expects
//! GET, POST /tunnel…          what is no call           bytes, where there is a hatch for it
//! ```
//! A request passes, in order: the refusal of its bytes, Host and Origin, the entrance where there is one, the body
//! within its limits, the codec, the call. Only the first two happen before it is known who asks; what is for the hatch is
//! known by what it carries.
//! Not here: sockets (`server`), calls (`dispatch`).

use crate::codec::{json, query, xml_writer, xmlrpc};
use crate::dispatch::method::EVENT_STREAM;
use crate::dispatch::method::Reading;
use crate::dispatch::scope::Scope;
use crate::dispatch::source::Source;
use crate::dispatch::written::Answered;
use crate::dispatch::{Dispatcher, too_large};
use crate::dispatch::{introspection, method};
use crate::fault::Fault;
use crate::http::body::Bodies;
use crate::http::entrance::{Admitted, Entrance, Entry, Knock, Turned};
use crate::http::framing::Refusal;
use crate::http::guarded_stream::{REFUSED_TARGET, RefusalCell};
use crate::http::hatch::{Asked as Carried, Hatch};
use crate::http::origin::{self, Asked, Names};
use crate::stream::Follows;
use crate::stream::body::Content;
use crate::stream::pipe::Conversation;
use crate::stream::wanted::Wanted;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use wire::fault;
use wire::query::Syntax;

const API: &str = "/api/v1";
const OPENAPI: &str = "/api/v1/openapi.json";
const XML: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(crate) type Answer = Response<Content>;

/// Everything an answer needs.
pub(crate) struct Routes {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) bodies: Bodies,
    pub(crate) names: Names,
    /// Who may come in; anybody where there is none.
    pub(crate) entrance: Option<Arc<dyn Entrance>>,
    /// What is no call is for it.
    pub(crate) hatch: Option<Arc<dyn Hatch>>,
    pub(crate) follows: Arc<Follows>,
}

/// Whether the connection may be used again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

impl Routes {
    /// Answers one request of a client at `source`.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        refusal: &RefusalCell,
        source: Source,
    ) -> Answer {
        self.dispatcher.statistics.requests_total.add(1);
        if let Some(refusal) = refusal.get()
            && request.uri().path() == REFUSED_TARGET
        {
            return self.refused(*refusal);
        }
        let header =
            |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
        let asked = Asked {
            host: header(hyper::header::HOST),
            origin: header(ORIGIN),
            fetch_site: header(HeaderName::from_static("sec-fetch-site")),
        };
        if let Err(fault) = origin::check(asked, self.names) {
            self.dispatcher.statistics.requests_refused_total.add(1);
            return with_close(json_fault(&fault), After::Close);
        }
        if let Some(hatch) =
            self.hatch.as_ref().filter(|hatch| request.uri().path().starts_with(hatch.path()))
        {
            return self.hand_on(hatch.as_ref(), request, refusal, source).await;
        }
        match self.knock(&request, source.address().ip()) {
            None => {
                let path = request.uri().path().to_owned();
                let scope = Scope { viewer: source.viewer(), ..Scope::default() };
                self.route(request, refusal, &path, &scope).await
            }
            Some(Entry::Admitted(Admitted { path, scope, fields, seat: _seat })) => {
                with_fields(self.route(request, refusal, &path, &scope).await, fields)
            }
            Some(Entry::Turned(turned)) => self.turn_away(turned),
        }
    }

    /// A request that is no call: whoever makes it is known by what it carries, not here.
    async fn hand_on(
        &self,
        hatch: &dyn Hatch,
        request: Request<Incoming>,
        refusal: &RefusalCell,
        source: Source,
    ) -> Answer {
        let is_post = request.method() == Method::POST;
        if !is_post && request.method() != Method::GET {
            return not_allowed(request.method(), "GET, POST", "GET or POST");
        }
        let uri = request.uri().clone();
        let held = match self.bodies.read(request, refusal).await {
            Ok(held) => held,
            Err(fault) => return with_close(self.json_fault(&fault), self.unread()),
        };
        let query = uri.query().unwrap_or_default();
        let told = hatch
            .ask(Carried { is_post, path: uri.path(), query, body: &held.bytes, source: source.address() })
            .await;
        let mut answer = Response::new(Content::from(told.body));
        *answer.status_mut() = StatusCode::from_u16(told.status).unwrap_or(StatusCode::BAD_REQUEST);
        answer.headers_mut().insert(CONTENT_TYPE, BYTES);
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }

    /// What the entrance says, where there is one. It sees the head, and nothing of the body was read yet.
    fn knock(&self, request: &Request<Incoming>, source: IpAddr) -> Option<Entry> {
        let entrance = self.entrance.as_ref()?;
        let mut shown = request.headers().get_all(AUTHORIZATION).iter();
        let (authorization, more) = (shown.next(), shown.next());
        if more.is_some() {
            let fault = Fault::new(fault::TRANSPORT, "expected Authorization once, found it twice");
            return Some(Entry::Turned(Turned { status: 400, fields: Vec::new(), fault }));
        }
        let uri = request.uri();
        Some(entrance.knock(&Knock {
            method: request.method().as_str(),
            target: uri.path_and_query().map_or(uri.path(), |target| target.as_str()),
            path: uri.path(),
            authorization: authorization.map(|value| value.to_str().unwrap_or("?")),
            source,
        }))
    }

    fn turn_away(&self, Turned { status, fields, fault }: Turned) -> Answer {
        self.dispatcher.statistics.requests_refused_total.add(1);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
        with_fields(respond(status, JSON, json::write_fault(&fault)), fields)
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        refusal: &RefusalCell,
        path: &str,
        scope: &Scope,
    ) -> Answer {
        if path == OPENAPI {
            return match *request.method() {
                Method::GET | Method::HEAD => respond(StatusCode::OK, JSON, self.dispatcher.openapi()),
                _ => not_allowed(request.method(), "GET, HEAD, OPTIONS", LIST_ONLY),
            };
        }
        if let Some(name) = path.strip_prefix("/api/v1/").filter(|name| !name.is_empty()) {
            return self.json(name, request, refusal, scope).await;
        }
        if let Some(name) = self.dispatcher.registry.at_path(path) {
            return self.json(name, request, refusal, scope).await;
        }
        match (request.method(), path) {
            (&Method::POST, "/RPC2" | "/RPC2/" | "/") => self.xml(request, refusal, scope).await,
            (&Method::GET | &Method::HEAD, "/") => respond(StatusCode::OK, TEXT, INDEX.to_owned()),
            (&Method::GET | &Method::HEAD, API | "/api/v1/") => {
                let listing = introspection::listing(&self.dispatcher.registry);
                respond(StatusCode::OK, JSON, json::write_answer(&listing))
            }
            (_, "/RPC2" | "/RPC2/") => not_allowed(request.method(), "POST, OPTIONS", XML_ONLY),
            (_, "/") => not_allowed(request.method(), "GET, HEAD, POST, OPTIONS", INDEX_ONLY),
            (_, API | "/api/v1/") => not_allowed(request.method(), "GET, HEAD, OPTIONS", LIST_ONLY),
            _ => {
                let message =
                    "expected /RPC2, /api/v1 or /api/v1/METHOD, found another path; / says how to ask";
                json_fault(&Fault::not_found(message))
            }
        }
    }

    async fn xml(&self, request: Request<Incoming>, refusal: &RefusalCell, scope: &Scope) -> Answer {
        let (held, after) = match self.bodies.read(request, refusal).await {
            Ok(held) => (held, After::Keep),
            Err(fault) => return with_close(self.xml_fault(&fault), self.unread()),
        };
        let call = match xmlrpc::parse_call(&held.bytes, &self.dispatcher.limits) {
            Ok(call) => call,
            Err(fault) => return with_close(self.xml_fault(&fault), after),
        };
        drop(held.bytes);
        let written = match self.dispatcher.call(scope, &call.name, call.params, Syntax::Xml).await {
            Ok(Answered::Value(value)) => xml_writer::write_answer(&value).into(),
            Ok(Answered::Written(document)) => document,
            Err(fault) => xml_writer::write_fault(&fault).into(),
        };
        if written.len() > self.dispatcher.limits.answer_bytes {
            return self.xml_fault(&too_large(self.dispatcher.limits.answer_bytes));
        }
        respond(StatusCode::OK, XML, written)
    }

    async fn json(
        &self,
        name: &str,
        request: Request<Incoming>,
        refusal: &RefusalCell,
        scope: &Scope,
    ) -> Answer {
        let Some(method) = self.dispatcher.registry.get(name) else {
            return self.json_fault(&Fault::method_not_found(name));
        };
        let reading = method.declaration.reading == Reading::Only;
        if reading && request.method() == Method::GET {
            match Wanted::of_request(&request) {
                Ok(None) => {}
                Ok(Some(wanted)) => return self.follow(method, &wanted, &request, scope),
                Err(fault) => return self.json_fault(&fault),
            }
        }
        let arguments = match *request.method() {
            Method::POST => match self.bodies.read(request, refusal).await {
                Ok(held) => json::parse_params(&held.bytes, &self.dispatcher.limits),
                Err(fault) => return with_close(self.json_fault(&fault), self.unread()),
            },
            Method::GET | Method::HEAD if reading => {
                let query = request.uri().query().unwrap_or_default();
                query::parse_params(query, |name| method.declaration.is_list(name), &self.dispatcher.limits)
            }
            _ if reading => return not_allowed(request.method(), "GET, HEAD, POST, OPTIONS", "GET or POST"),
            _ => {
                return not_allowed(
                    request.method(),
                    "POST, OPTIONS",
                    "POST, for the method may change something",
                );
            }
        };
        let answer = match arguments {
            Ok(arguments) => self.dispatcher.call(scope, name, arguments, Syntax::Json).await,
            Err(fault) => return self.json_fault(&fault),
        };
        match answer.map(Answered::into_json) {
            Ok(written) if written.len() > self.dispatcher.limits.answer_bytes => {
                self.json_fault(&too_large(self.dispatcher.limits.answer_bytes))
            }
            Ok(written) => respond(StatusCode::OK, JSON, written),
            Err(fault) => json_fault(&fault),
        }
    }

    /// The answers to one question, until the client has enough of it.
    fn follow(
        &self,
        method: &method::Method,
        wanted: &Wanted,
        request: &Request<Incoming>,
        scope: &Scope,
    ) -> Answer {
        let arguments = query::parse_params(
            &wanted.query,
            |name| method.declaration.is_list(name),
            &self.dispatcher.limits,
        );
        let conversation = request.extensions().get::<Conversation>();
        let conversation = conversation.ok_or_else(|| Fault::internal("expected to know who asks"));
        let following = arguments.and_then(|arguments| {
            let asked = (method, arguments);
            self.follows.begin(&self.dispatcher, scope, asked, wanted.every, conversation?)
        });
        match following {
            Err(fault) => self.json_fault(&fault),
            Ok(following) => {
                let mut answer = Response::new(Content::Following(Box::new(following)));
                answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
                answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                with_close(answer, After::Close)
            }
        }
    }

    /// A body was not read to its end, so the next request could not be found.
    fn unread(&self) -> After {
        self.dispatcher.statistics.requests_refused_total.add(1);
        After::Close
    }

    fn refused(&self, refusal: Refusal) -> Answer {
        self.dispatcher.statistics.requests_refused_total.add(1);
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = json::write_fault(&refusal_fault(refusal));
        with_close(respond(status, JSON, body), After::Close)
    }

    fn xml_fault(&self, fault: &Fault) -> Answer {
        self.dispatcher.statistics.faults_total.add(1);
        respond(StatusCode::OK, XML, xml_writer::write_fault(fault))
    }

    fn json_fault(&self, fault: &Fault) -> Answer {
        self.dispatcher.statistics.faults_total.add(1);
        json_fault(fault)
    }
}

/// The fault of bytes that the framing refused.
pub(crate) fn refusal_fault(refusal: Refusal) -> Fault {
    let code = match refusal.status {
        408 => fault::TIMEOUT,
        413 | 414 | 431 => fault::TOO_LARGE,
        _ => fault::TRANSPORT,
    };
    let message = refusal.message;
    let message =
        if message.starts_with("expected") { message.to_owned() } else { format!("expected {message}") };
    Fault::new(code, message)
}

const XML_ONLY: &str = "POST with an XML-RPC <methodCall>; / says how to ask";
const INDEX_ONLY: &str = "GET for help or POST with an XML-RPC <methodCall>";
const LIST_ONLY: &str = "GET for the list of methods, or POST to /api/v1/METHOD";
const INDEX: &str = "This is a daemon of visperf. Ask it

  by XML-RPC   POST to /RPC2; system.listMethods, system.methodHelp and system.multicall are there
  by JSON      POST /api/v1/METHOD with an object of named parameters, or with nothing
  by a link    GET /api/v1/METHOD?name=value, for methods that only read
  the list     GET /api/v1; as an OpenAPI document GET /api/v1/openapi.json

For example: curl http://HOST:PORT/api/v1/daemon.info
";

fn json_fault(fault: &Fault) -> Answer {
    let status = StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond(status, JSON, json::write_fault(fault))
}

/// OPTIONS is answered with what is allowed; every other method is refused with it.
fn not_allowed(method: &Method, allowed: &'static str, expected: &str) -> Answer {
    let mut answer = if method == Method::OPTIONS {
        let mut answer = Response::new(Content::default());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        answer
    } else {
        let message =
            format!("expected {expected}, found {}", crate::codec::xml_tokens::shown(method.as_str()));
        respond(
            StatusCode::METHOD_NOT_ALLOWED,
            JSON,
            json::write_fault(&Fault::new(fault::TRANSPORT, message)),
        )
    };
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn respond(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Content::from(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A document may be another daemon's words: no browser looks for itself what it may be.
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn with_fields(mut answer: Answer, fields: Vec<(&'static str, String)>) -> Answer {
    for (name, value) in fields {
        // What an entrance says is made of what was read from a field before, or of its own words.
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    answer
}

fn with_close(mut answer: Answer, after: After) -> Answer {
    if after == After::Close {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
