//! The queries' way to a daemon: JSON over HTTP/1.1, blocking, one connection kept alive; to a proxy within TLS, with a
//! login by HTTP Digest.
//!
//! Rule: every call has a deadline, every answer a largest size. A connection that the daemon closed while
//! it was idle is made anew, once, without being told.

pub(crate) mod connection;
pub(crate) mod course;
pub(crate) mod follow;
mod hint;
pub(crate) use hint::NO_DOMAIN;
mod http;
mod inside;
mod known_domains;
pub(crate) mod target;
pub(crate) mod via;
mod way;
pub(crate) mod xml;

use crate::exit::Failure;
use ::client::typed::{self, About};
use connection::{Connection, Patience};
use http::Response;
use overlay::door;
use serde_json::Value;
use std::time::Duration;
use target::Target;
use tunnel::digest;
use tunnel::digest::client::{Answered, Next, SENT_MAX};
use wire::api::Request;
use wire::api::daemon::InfoParams;
use wire::near_names;

/// How long a call may take when nothing is said: a daemon gives up after 30 s itself.
pub(crate) const PATIENCE: Patience =
    Patience { most: Duration::from_secs(40), tell_after: Some(Duration::from_secs(4)) };

/// How long a daemon may take to tell what it is, when that is only asked for a better message.
const EXPLAINING: Patience = Patience { most: Duration::from_secs(3), tell_after: None };
/// The fault of a method that is not there (`docs/query-interface.md`).
const NO_METHOD: i64 = -32601;

/// The fault of somebody who may not ask.
const FORBIDDEN: i64 = -32006;

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// No daemon answers; the text tells what was tried and what to do.
    #[error("{0}")]
    Unreachable(String),
    /// What was typed, or a file that it names, cannot be used.
    #[error("{0}")]
    Mistake(String),
    /// The connection broke, or the deadline passed, before the answer was there.
    #[error("the daemon at {address} did not answer: {what}")]
    Lost {
        /// Where it was.
        address: String,
        /// What happened.
        what: String,
    },
    /// The daemon's fault.
    #[error("{message} (fault {code})")]
    Fault {
        /// Its code, as `docs/query-interface.md` lists them.
        code: i64,
        /// Its words.
        message: String,
    },
    /// Something answered that is no daemon of ours.
    #[error("expected the answer of a visperf daemon from {address}, found {found}")]
    Answer {
        /// Who answered.
        address: String,
        /// What is wrong with it.
        found: String,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Unreachable(text) => Failure::Unreachable(text),
            Error::Mistake(text) => Failure::Usage(text),
            Error::Lost { .. } => Failure::Unreachable(error.to_string()),
            Error::Fault { code, message } => match hint::of_words(&message) {
                Some(hint) => Failure::Fault { code, message: format!("{message}; {hint}") },
                None => Failure::Fault { code, message },
            },
            Error::Answer { .. } => Failure::Failed(error.to_string()),
        }
    }
}

/// What HTTP brought back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// A daemon to ask.
#[derive(Debug)]
pub(crate) struct Client {
    target: Target,
    connection: Option<Connection>,
    /// Logs in, where a proxy is asked.
    login: Option<digest::client::Client>,
}

impl Client {
    /// A client for the daemon that `target` means; it connects with the first call.
    pub(crate) fn new(target: &Target) -> Client {
        Client { target: target.clone(), connection: None, login: None }
    }

    /// Call a method with named parameters.
    ///
    /// # Errors
    /// See [`Error`]. After a lost connection the next call makes another.
    pub(crate) fn call(&mut self, method: &str, params: &Value, patience: Patience) -> Result<Value, Error> {
        let path = format!("/api/v1/{method}");
        let answer = self.post(&path, "application/json", params.to_string().as_bytes(), patience)?;
        self.read(&answer)
    }

    /// Call a method.
    ///
    /// # Errors
    /// As [`Client::call`], and where the answer is not of the method's type.
    pub(crate) fn ask<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        patience: Patience,
    ) -> Result<R::Answer, Error> {
        let (path, params) = (format!("/api/v1/{}", R::METHOD), typed::params(request, about));
        let answer = self.post(&path, "application/json", params.to_string().as_bytes(), patience)?;
        if answer.status != 200 {
            self.read(&answer)?;
        }
        typed::answer::<R>(&answer.body).map_err(|error| self.of_another_form::<R>(&error))
    }

    /// The same, with the answer as it came.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn request<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        patience: Patience,
    ) -> Result<typed::Answered<R::Answer>, Error> {
        let raw = self.call(R::METHOD, &typed::params(request, about), patience)?;
        typed::answered::<R>(raw).map_err(|error| self.of_another_form::<R>(&error))
    }

    fn of_another_form<R: Request>(&self, error: &serde_json::Error) -> Error {
        self.unexpected(format!("an answer of another form to {}: {error}", R::METHOD))
    }

    /// What answered is no daemon of ours.
    pub(crate) fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address(), found }
    }

    /// The result that `answer` tells.
    fn read(&self, answer: &Answer) -> Result<Value, Error> {
        let unexpected = |found: String| self.unexpected(found);
        let value: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| unexpected(format!("HTTP status {} and no JSON ({error})", answer.status)))?;
        if answer.status == 200 {
            return Ok(value);
        }
        let fault = value.get("error").map(|error| (error.get("code"), error.get("message")));
        match fault {
            Some((Some(code), Some(message))) => Err(Error::Fault {
                code: code.as_i64().unwrap_or(0),
                message: message.as_str().unwrap_or_default().to_owned(),
            }),
            _ => Err(unexpected(format!("HTTP status {}", answer.status))),
        }
    }

    /// Send a body, and take the answer whatever its status.
    ///
    /// # Errors
    /// As [`Client::call`], but for faults.
    pub(crate) fn post(
        &mut self,
        path: &str,
        content_type: &str,
        body: &[u8],
        patience: Patience,
    ) -> Result<Answer, Error> {
        if !self.target.via.logs_in() {
            let Response { status, body, .. } = self.send(path, content_type, body, patience)?;
            return Ok(Answer { status, body });
        }
        let path = &format!("{}{path}", self.target.via.prefix());
        let is_legacy = self.target.via.is_legacy();
        let forbidden = |error: digest::client::Error| hint::refused(&error.to_string(), is_legacy);
        for sent in 0..SENT_MAX {
            // Whoever is not known yet is turned away before the body.
            let body = if self.login.is_none() { &[] } else { body };
            let response = self.send(path, content_type, body, patience)?;
            match &mut self.login {
                None => {
                    let login = self.target.via.login().map_err(Error::Mistake)?;
                    let login =
                        login.ok_or_else(|| Error::Unreachable("a proxy asks for an account".to_owned()))?;
                    let mut login = digest::client::Client::new(login);
                    let challenges = response.challenges.iter().map(String::as_str);
                    login.handle_challenge(challenges).map_err(forbidden)?;
                    self.login = Some(login);
                }
                Some(login) => {
                    let Response { status, body, challenges, info, .. } = response;
                    let answered = Answered { status, challenges: &challenges, info: info.as_deref() };
                    match login.handle(answered, sent).map_err(forbidden)? {
                        Next::Again => {}
                        Next::Taken => return Ok(Answer { status, body }),
                    }
                }
            }
        }
        Err(Error::Answer { address: self.address(), found: "challenges without end".to_owned() })
    }

    /// Send once, on the connection that stands or a new one.
    fn send(
        &mut self,
        path: &str,
        content_type: &str,
        body: &[u8],
        patience: Patience,
    ) -> Result<Response, Error> {
        if let Some(mut kept) = self.connection.take() {
            let fields = self.fields(path, content_type)?;
            match kept.post(path, &fields, body, patience) {
                Ok(answer) => return Ok(self.keep(kept, answer)),
                // Closed while idle: nothing of this request was answered, so it may be sent again.
                Err(connection::Error::Answer(http::Error::ClosedBefore)) => {}
                Err(error) => return Err(lost(&kept, &error)),
            }
        }
        let mut fresh = self.target.connect()?;
        let fields = self.fields(path, content_type)?;
        match fresh.post(path, &fields, body, patience) {
            Ok(answer) => Ok(self.keep(fresh, answer)),
            Err(error) => Err(lost(&fresh, &error)),
        }
    }

    /// The failure that an error of `method` is, with what else is known: a daemon that lacks the method is
    /// asked what it is.
    pub(crate) fn explain(&mut self, method: &str, error: Error) -> Failure {
        let info = matches!(&error, Error::Fault { code: NO_METHOD, .. })
            .then(|| self.request(&InfoParams {}, &About::default(), EXPLAINING));
        let info = info.and_then(Result::ok).map(|answer| answer.typed);
        let hint = info.and_then(|info| hint::of_another_daemon(method, &info.kind));
        match (error, hint) {
            (Error::Fault { code, message }, Some(hint)) => {
                Failure::Fault { code, message: format!("{message}; {hint}") }
            }
            (Error::Fault { code: NO_METHOD, message }, None) => {
                let near = self.near_methods(method);
                Failure::Fault { code: NO_METHOD, message: format!("{message}{near}") }
            }
            (error, _) => error.into(),
        }
    }

    /// Methods of the daemon that may have been meant.
    fn near_methods(&mut self, method: &str) -> String {
        let known = self.call("system.listMethods", &Value::Object(serde_json::Map::new()), EXPLAINING);
        let known = known.ok().and_then(|known| known.as_array().cloned()).unwrap_or_default();
        near_names::suggestion(method, known.iter().filter_map(Value::as_str))
    }

    /// The address in use, or the one that would be tried.
    pub(crate) fn address(&self) -> String {
        self.connection.as_ref().map_or_else(|| self.target.first_choice(), |open| open.address().to_owned())
    }

    /// Lines of the head: what the body is, and who asks.
    fn fields(&mut self, path: &str, content_type: &str) -> Result<String, Error> {
        let mut fields = format!("Content-Type: {content_type}\r\n");
        if let Some(login) = &mut self.login {
            let failed = |error| Error::Unreachable(format!("the system gives no random numbers: {error}"));
            let cnonce = door::cnonce().map_err(failed)?;
            if let Some(said) = login.authorization("POST", path, &cnonce) {
                fields.push_str(&format!("Authorization: {said}\r\n"));
            }
        }
        Ok(fields)
    }

    fn keep(&mut self, connection: Connection, answer: Response) -> Response {
        self.connection = connection.is_reusable().then_some(connection);
        answer
    }
}

fn lost(connection: &Connection, error: &connection::Error) -> Error {
    let address = connection.address().to_owned();
    match error {
        connection::Error::Answer(http::Error::Malformed(found)) => {
            Error::Answer { address, found: found.clone() }
        }
        connection::Error::Certificate(reason) => {
            Error::Unreachable(format!("nothing was sent to {address}: {reason}"))
        }
        connection::Error::Answer(http::Error::ClosedBefore | http::Error::Io(_))
        | connection::Error::Late => Error::Lost { address, what: error.to_string() },
    }
}
