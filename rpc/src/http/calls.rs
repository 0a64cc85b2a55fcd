//! Handlers of requests: read the body or query, run the call, write the answer.
//!
//! Not here: routing (`router`), parsing bodies and encoding answers (`codec`).

use crate::codec::value::Value;
use crate::codec::{json as json_codec, query, xml_writer, xmlrpc};
use crate::dispatch::encoded_answer::Answered;
use crate::dispatch::method::Declaration;
use crate::dispatch::permissions::Scope;
use crate::dispatch::too_large;
use crate::fault::Fault;
use crate::http::answer::{self, BYTES, JSON, XML, closing, json_fault, not_allowed, respond};
use crate::http::router::{self, Served};
use crate::http::upgrade::UpgradeRequest;
use crate::stream::backpressure::ClientConnection;
use crate::stream::request::StreamRequest;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use hyper::{Method, StatusCode};
use std::sync::Arc;
use wire::query::Syntax;

type Shared = State<Arc<Served>>;
type Whose = Extension<ClientConnection>;

/// Handle a call by XML-RPC.
pub(super) async fn xml(State(served): Shared, Extension(conversation): Whose, request: Request) -> Response {
    let scope = router::scope(&request, &conversation);
    let held = match served.bodies.read(request).await {
        Ok(held) => held,
        Err(fault) => return served.unread(served.xml_fault(&fault)),
    };
    let dispatcher = &served.dispatcher;
    let call = match xmlrpc::parse_call(&held.bytes, &dispatcher.limits) {
        Ok(call) => call,
        Err(fault) => return served.xml_fault(&fault),
    };
    drop(held.bytes);
    let written = match dispatcher.call(&scope, &call.name, call.params, Syntax::Xml).await {
        Ok(Answered::Value(value)) => xml_writer::write_answer(&value).into(),
        Ok(Answered::Written(document)) => document,
        Err(fault) => xml_writer::write_fault(&fault).into(),
    };
    if written.len() > dispatcher.limits.answer_bytes {
        return served.xml_fault(&too_large(dispatcher.limits.answer_bytes));
    }
    respond(StatusCode::OK, XML, written)
}

/// Handle a call of the method `name` by JSON.
pub(super) async fn json(
    served: Arc<Served>,
    Extension(conversation): Whose,
    name: &'static str,
    request: Request,
) -> Response {
    let scope = router::scope(&request, &conversation);
    match served.bodies.read(request).await {
        Ok(held) => {
            let arguments = json_codec::parse_params(&held.bytes, &served.dispatcher.limits);
            served.call(&scope, name, arguments).await
        }
        Err(fault) => served.unread(served.json_fault(&fault)),
    }
}

/// Handle a call of the method `name` by GET: its parameters are in the query, which may request a stream of
/// answers.
pub(super) async fn json_by_link(
    served: Arc<Served>,
    Extension(conversation): Whose,
    name: &'static str,
    request: Request,
) -> Response {
    let scope = router::scope(&request, &conversation);
    let Some(method) = served.dispatcher.registry.get(name) else {
        return served.json_fault(&Fault::method_not_found(name));
    };
    let wanted = if request.method() == Method::GET { StreamRequest::of_request(&request) } else { Ok(None) };
    match wanted {
        Ok(None) => {
            let query = request.uri().query().unwrap_or_default();
            served.call(&scope, name, served.parameters(&method.declaration, query)).await
        }
        Ok(Some(wanted)) => {
            let started = served.parameters(&method.declaration, &wanted.query).and_then(|arguments| {
                let asked = (method, arguments);
                served.follows.begin(&served.dispatcher, &scope, asked, wanted.every, &conversation)
            });
            started.map_or_else(|fault| served.json_fault(&fault), answer::stream)
        }
        Err(fault) => served.json_fault(&fault),
    }
}

/// Handle a tunnelled request, which is not a call; its content authenticates it.
pub(super) async fn hand_on(
    State(served): Shared,
    Extension(conversation): Whose,
    request: Request,
) -> Response {
    let Some(upgrade) = &served.upgrade else {
        return json_fault(&Fault::not_found("nothing is carried here"));
    };
    let is_post = request.method() == Method::POST;
    if !is_post && request.method() != Method::GET {
        return not_allowed(request.method(), "GET, POST", "GET or POST");
    }
    let (uri, source) = (request.uri().clone(), conversation.source.address());
    let held = match served.bodies.read(request).await {
        Ok(held) => held,
        Err(fault) => return served.unread(served.json_fault(&fault)),
    };
    let query = uri.query().unwrap_or_default();
    let asked = UpgradeRequest { is_post, path: uri.path(), query, body: &held.bytes, source };
    let given = upgrade.ask(asked).await;
    respond(StatusCode::from_u16(given.status).unwrap_or(StatusCode::BAD_REQUEST), BYTES, given.body)
}

impl Served {
    fn parameters(&self, declaration: &Declaration, text: &str) -> Result<Vec<Value>, Fault> {
        query::parse_params(text, |name| declaration.is_list(name), &self.dispatcher.limits)
    }

    async fn call(&self, scope: &Scope, name: &str, arguments: Result<Vec<Value>, Fault>) -> Response {
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(fault) => return self.json_fault(&fault),
        };
        let most = self.dispatcher.limits.answer_bytes;
        match self.dispatcher.call(scope, name, arguments, Syntax::Json).await.map(Answered::into_json) {
            Ok(written) if written.len() > most => self.json_fault(&too_large(most)),
            Ok(written) => respond(StatusCode::OK, JSON, written),
            Err(fault) => json_fault(&fault),
        }
    }

    /// The answer to a request whose body was not read to its end, so that the next request could not be
    /// found.
    fn unread(&self, answer: Response) -> Response {
        self.dispatcher.statistics.requests_refused_total.add(1);
        closing(answer)
    }

    fn xml_fault(&self, fault: &Fault) -> Response {
        self.dispatcher.statistics.faults_total.add(1);
        respond(StatusCode::OK, XML, xml_writer::write_fault(fault))
    }

    fn json_fault(&self, fault: &Fault) -> Response {
        self.dispatcher.statistics.faults_total.add(1);
        json_fault(fault)
    }
}
