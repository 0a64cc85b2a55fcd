//! HTTP responses: documents and faults with their status and header fields.
//!
//! Not here: which answer a request gets (`router`, `calls`).

use crate::codec::{json, xml_tokens};
use crate::dispatch::method::EVENT_STREAM;
use crate::fault::Fault;
use crate::http::framing::Refusal;
use crate::stream::body::Following;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, StatusCode};
use wire::fault;

pub(super) const XML: HeaderValue = HeaderValue::from_static("text/xml; charset=utf-8");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A complete response.
pub(super) fn respond(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response {
    let mut answer = Response::new(Body::from(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A document may contain text from elsewhere: browsers must not guess its type.
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// A stream of answers, until the client closes it.
pub(super) fn stream(following: Following) -> Response {
    let mut answer = Response::new(Body::new(following));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    closing(answer)
}

/// A fault, with its status.
pub(super) fn json_fault(fault: &Fault) -> Response {
    let status = StatusCode::from_u16(fault.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    respond(status, JSON, json::write_fault(fault))
}

/// Answer OPTIONS with the allowed methods, and refuse every other method.
pub(super) fn not_allowed(method: &Method, allowed: &'static str, expected: &str) -> Response {
    let mut answer = if method == Method::OPTIONS {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        answer
    } else {
        let message = format!("expected {expected}, found {}", xml_tokens::shown(method.as_str()));
        let fault = Fault::new(fault::TRANSPORT, message);
        respond(StatusCode::METHOD_NOT_ALLOWED, JSON, json::write_fault(&fault))
    };
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

pub(super) fn with_fields(mut answer: Response, fields: Vec<(&'static str, String)>) -> Response {
    for (name, value) in fields {
        // The value is built by the authorizer, or parsed from a header field before.
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers_mut().append(HeaderName::from_static(name), value);
        }
    }
    answer
}

/// Close the connection after the response.
pub(super) fn closing(mut answer: Response) -> Response {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// The response to a client that is over the connection limit, or whose request header is refused.
pub(super) fn without_request(status: u16, fault: &Fault) -> String {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let body = json::write_fault(fault);
    let retry = if status == StatusCode::SERVICE_UNAVAILABLE { "retry-after: 1\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\n{retry}connection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The fault of bytes that the framing refused.
pub(super) fn refusal_fault(refusal: Refusal) -> Fault {
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
