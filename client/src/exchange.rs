//! HTTP/1.1 connection, and one request with its response on it, over hyper.
//!
//! Shell. Rule: header and body of a response are bounded. Not here: opening a connection (`connect`),
//! reconnecting (`client`).

use crate::connect::{Connected, Stream};
use crate::error::Error;
use crate::patience::Patience;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::response::Parts;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Default limit of a response body in bytes: twice the longest answer of a daemon.
pub(crate) const BODY_LEN_MAX_BYTES: usize = 64 << 20;
/// Longest header of a response in bytes; those of a daemon have some hundred.
const HEAD_LEN_MAX_BYTES: usize = 64 << 10;
/// Number of the first received bytes shown in an error if the other end does not speak HTTP.
const SHOWN_LEN_BYTES: usize = 40;
/// Value of `User-Agent`.
const AGENT: &str = concat!("visperf/", env!("CARGO_PKG_VERSION"));

#[derive(Clone, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Bytes,
}

/// Header of a response, and its body if that is complete.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Values of all fields `WWW-Authenticate`.
    pub(crate) challenges: Vec<String>,
    /// Value of the field `Authentication-Info` (RFC 7615).
    pub(crate) info: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    fn of(head: &Parts) -> Reply {
        let info = HeaderName::from_static("authentication-info");
        Reply {
            status: head.status.as_u16(),
            challenges: fields(&head.headers, &header::WWW_AUTHENTICATE),
            info: fields(&head.headers, &info).pop(),
            body: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Received {
    /// A complete response.
    Whole(Reply),
    /// Header of server-sent events, and their body.
    Events(Reply, Incoming),
}

#[derive(Debug)]
pub(crate) enum Failed {
    /// The connection was closed before the request was sent.
    Unsent,
    /// The connection was closed after the request was sent, before any byte of an answer: it had been idle
    /// for too long.
    Closed,
    /// The error for the caller.
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Error(error)
    }
}

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    pub(crate) address: String,
    host: String,
    /// Largest body of an answer, in bytes.
    pub(crate) body_max: usize,
    first: First,
    /// Whether no request was sent on it yet.
    is_fresh: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connection {
    /// Start HTTP on the connection; a task of the present runtime drives it until its end.
    pub(crate) async fn new(connected: Connected, body_max: usize) -> Result<Connection, Error> {
        let Connected { stream, address, host } = connected;
        let first = First::default();
        let stream = TokioIo::new(Noted { stream, first: first.clone() });
        let made = http1::Builder::new().max_buf_size(HEAD_LEN_MAX_BYTES).handshake(stream).await;
        let (sender, serving) = made.map_err(|error| error_of(&address, &error, &first))?;
        // An error of the connection is also returned by the request that it affects.
        tokio::spawn(serving);
        Ok(Connection { sender, address, host, body_max, first, is_fresh: true })
    }

    /// Send a request and read its response; of server-sent events only the header.
    pub(crate) async fn exchange(
        &mut self,
        outgoing: &Outgoing<'_>,
        patience: &Patience,
    ) -> Result<Received, Failed> {
        let request = self.request(outgoing)?;
        // A new connection accepts a request at once, before hyper reads the early answer of a busy daemon.
        if !std::mem::take(&mut self.is_fresh) {
            self.first.forget();
            if patience.unless_silent(&self.address, self.sender.ready()).await?.is_err() {
                return Err(Failed::Unsent);
            }
        }
        let sent = self.sender.try_send_request(request);
        let answered = patience.unless_silent(&self.address, sent).await?;
        let (head, body) = answered
            .map_err(|mut refused| match refused.take_message() {
                Some(_) => Failed::Unsent,
                None if was_closed(refused.error()) && self.first.shown().is_empty() => Failed::Closed,
                None => Failed::Error(error_of(&self.address, refused.error(), &self.first)),
            })?
            .into_parts();
        let mut reply = Reply::of(&head);
        if reply.status == 200 && is_events(&head.headers) {
            return Ok(Received::Events(reply, body));
        }
        reply.body = self.whole(body, patience).await?;
        Ok(Received::Whole(reply))
    }

    fn request(&self, outgoing: &Outgoing<'_>) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(outgoing.method.clone())
            .uri(outgoing.path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, AGENT);
        if *outgoing.method != Method::GET {
            request = request.header(header::CONTENT_TYPE, outgoing.content_type);
            request = request.header(header::CONTENT_LENGTH, outgoing.body.len());
        }
        if let Some(authorization) = &outgoing.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(outgoing.body.clone()));
        request.map_err(|error| Error::Mistake(format!("{}: {error}", outgoing.path)))
    }

    /// The next part of a body, or an error after too long a silence; `None` at its end.
    pub(crate) async fn part(
        &self,
        body: &mut Incoming,
        patience: &Patience,
    ) -> Result<Option<Bytes>, Error> {
        loop {
            match patience.unless_silent(&self.address, body.frame()).await? {
                None => return Ok(None),
                Some(Err(error)) => return Err(error_of(&self.address, &error, &self.first)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_trailers) => {}
                },
            }
        }
    }

    /// Read a whole body.
    async fn whole(&self, mut body: Incoming, patience: &Patience) -> Result<Vec<u8>, Error> {
        let len = body.size_hint().exact().unwrap_or_default();
        let len = usize::try_from(len).ok().filter(|len| *len <= self.body_max);
        let mut whole = Vec::new();
        whole.reserve_exact(len.ok_or_else(|| self.too_large())?.min(1 << 20));
        while let Some(part) = self.part(&mut body, patience).await? {
            if whole.len() + part.len() > self.body_max {
                return Err(self.too_large());
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole)
    }

    /// Error of a connection that was closed right after it was opened.
    pub(crate) fn closed_at_once(&self) -> Error {
        let first = self.first.shown();
        let what = match first.strip_prefix("HTTP/1.") {
            None if first.is_empty() => "it closed the connection".to_owned(),
            None => return self.unexpected(not_http(&first)),
            // A daemon at its limit of connections reports that before it receives a request.
            Some(_) => format!("it closed the connection unasked: {first}"),
        };
        Error::Lost { address: self.address.clone(), what }
    }

    pub(crate) fn too_large(&self) -> Error {
        self.unexpected(format!("an answer of more than {} bytes", self.body_max))
    }

    /// Error of an answer that does not come from a visperf daemon.
    pub(crate) fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address.clone(), found }
    }
}

fn is_events(head: &HeaderMap) -> bool {
    let kind = head.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.to_ascii_lowercase().starts_with("text/event-stream")
}

/// Values of the fields of this name, in order.
fn fields(head: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let fields = head.get_all(name).iter();
    fields.filter_map(|field| field.to_str().ok().map(str::to_owned)).collect()
}

/// Whether the connection ended before the answer started.
fn was_closed(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let is_reset = |kind| matches!(kind, BrokenPipe | ConnectionReset | ConnectionAborted | UnexpectedEof);
    error.is_canceled()
        || error.is_closed()
        || error.is_incomplete_message()
        || system(error).is_some_and(|error| is_reset(error.kind()))
}

/// The error of the operating system, if that is the cause.
fn system(error: &hyper::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

fn error_of(address: &str, error: &hyper::Error, first: &First) -> Error {
    let address = address.to_owned();
    if error.is_parse_too_large() {
        return Error::Answer { address, found: "an answer with a head without end".to_owned() };
    }
    if error.is_parse() || error.is_parse_status() {
        let first = first.shown();
        let found = if first.starts_with("HTTP/1.") { error.to_string() } else { not_http(&first) };
        return Error::Answer { address, found };
    }
    if let Some(error) = system(error).filter(|error| is_malformed(error)) {
        return Error::Answer { address, found: error.to_string() };
    }
    let what = match system(error) {
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => CUT.to_owned(),
        Some(error) => error.to_string(),
        None if error.is_incomplete_message() || error.is_canceled() => CUT.to_owned(),
        None => error.to_string(),
    };
    Error::Lost { address, what }
}

/// Whether the body violates HTTP/1.1.
fn is_malformed(error: &io::Error) -> bool {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>());
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) && !is_tls
}

fn not_http(first: &str) -> String {
    format!("{first:?}, which is not HTTP/1.1")
}

/// Text of the error of a connection that ended too early.
const CUT: &str = "the connection was closed before the answer was complete";

/// The first bytes received.
#[derive(Clone, Debug, Default)]
struct First(Arc<Mutex<Vec<u8>>>);

impl First {
    fn note(&self, bytes: &[u8]) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = SHOWN_LEN_BYTES - noted.len();
        noted.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The first line of them.
    fn shown(&self) -> String {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&noted).lines().next().unwrap_or_default().to_owned()
    }
}

/// A stream that records the first bytes received.
struct Noted {
    stream: Box<dyn Stream>,
    first: First,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.first.note(&into.filled()[before..]);
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
