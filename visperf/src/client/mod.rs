//! Client of the commands: the library `client` for the daemon of a command line, with messages for its user.
//!
//! Not here: connections, HTTP, login, what follows from an error (`::client`).

pub(crate) mod command_sender;
mod hint;
mod known_domains;
pub(crate) mod target;
mod tunnel_client;
mod tunnel_status;
pub(crate) mod via;
pub(crate) mod xml;

use crate::exit::Failure;
use crate::output::note;
use ::client::blocking::{self, Stream};
use ::client::typed::{About, Answered};
use ::client::{Answer, Error, Patience};
use serde_json::{Map, Value};
use std::time::Duration;
use target::Target;
use tunnel::digest::client::Login;
use wire::api::Request;
use wire::api::daemon::InfoParams;
use wire::{fault, near_names};

/// Default timeout of a call: a daemon itself times out after 30 s.
pub(crate) const PATIENCE: Patience =
    Patience { notice_after: Some(Duration::from_secs(4)), ..Patience::of(Duration::from_secs(40)) };

/// Timeout for asking a daemon its kind, which only improves an error message.
const EXPLAINING: Patience = Patience::of(Duration::from_secs(3));
/// Fault code of an unknown method (`docs/query-interface.md`).
pub(crate) const NO_METHOD: i64 = fault::METHOD_NOT_FOUND as i64;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Unreachable(text) => Failure::Unreachable(text),
            Error::Mistake(text) => Failure::Usage(text),
            Error::Lost { .. } | Error::Late { .. } => Failure::Unreachable(error.to_string()),
            Error::Fault { code, message } => match hint::of_words(&message) {
                Some(hint) => Failure::Fault { code, message: format!("{message}; {hint}") },
                None => Failure::Fault { code, message },
            },
            Error::Answer { .. } => Failure::Failed(error.to_string()),
        }
    }
}

/// Items of a list in an answer.
pub(crate) fn items(answer: &Value, name: &str) -> Vec<Value> {
    answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Client for one daemon.
#[derive(Debug)]
pub(crate) struct Client {
    target: Target,
    /// Created by the first call, which also reports errors in the account's files.
    made: Option<blocking::Client>,
}

impl Client {
    /// A client for the daemon that `target` names; it connects with the first call.
    pub(crate) fn new(target: &Target) -> Client {
        Client { target: target.clone(), made: None }
    }

    /// Call a method with named parameters.
    ///
    /// # Errors
    /// See [`Error`]. After a lost connection the next call opens another.
    pub(crate) fn call(&mut self, method: &str, params: &Value, patience: Patience) -> Result<Value, Error> {
        self.with(patience, |client| client.call_raw(method, params))
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
        self.with(patience, |client| client.call(request, about))
    }

    /// Call a method; returns the answer also as it was received.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub(crate) fn request<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        patience: Patience,
    ) -> Result<Answered<R::Answer>, Error> {
        self.with(patience, |client| client.answered(request, about))
    }

    /// Send a body, and return the answer whatever its status.
    ///
    /// # Errors
    /// As [`Client::call`], but for faults.
    pub(crate) fn post(
        &mut self,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
        patience: Patience,
    ) -> Result<Answer, Error> {
        self.with(patience, |client| client.post(path, content_type, body.into()))
    }

    /// Subscribe to a method's answers.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(crate) fn follow(
        &mut self,
        method: &str,
        params: Map<String, Value>,
        every_secs: &str,
    ) -> Result<Stream<'_>, Error> {
        let via = self.target.via.clone();
        let client = self.made()?;
        client.set_patience(PATIENCE);
        client.follow(method, params, every_secs).map_err(|error| hint::of_login(error, &via))
    }

    fn with<T>(
        &mut self,
        patience: Patience,
        ask: impl FnOnce(&mut blocking::Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let client = self.made()?;
        client.set_patience(patience);
        ask(client).map_err(|error| hint::of_login(error, &self.target.via))
    }

    fn made(&mut self) -> Result<&mut blocking::Client, Error> {
        if self.made.is_none() {
            let client = ::client::Client::new(self.target.clone()).on_wait(|address, left| {
                note(&format!("waiting for {address} to answer, {} s more (Ctrl-C ends)", left.as_secs()));
            });
            let login = if self.target.via.logs_in() { self.target.via.login() } else { Ok(None) };
            self.made = Some(match login.map_err(Error::Mistake)? {
                Some(Login { name, secret, allows_md5 }) => {
                    let login = ::client::Login { name, secret, allows_md5 };
                    client.logging_in(login, self.target.via.prefix()).into()
                }
                None if self.target.via.logs_in() => {
                    return Err(Error::Unreachable("a proxy asks for an account".to_owned()));
                }
                None => client.into(),
            });
        }
        self.made.as_mut().ok_or_else(|| Error::Unreachable("there is no client".to_owned()))
    }

    /// Convert an error of `method` to a failure, with a hint: if the daemon lacks the method, it is asked
    /// its kind.
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

    /// Suggestion of similar methods that the daemon has.
    fn near_methods(&mut self, method: &str) -> String {
        let known = self.call("system.listMethods", &Value::Object(serde_json::Map::new()), EXPLAINING);
        let known = known.ok().and_then(|known| known.as_array().cloned()).unwrap_or_default();
        near_names::suggestion(method, known.iter().filter_map(Value::as_str))
    }

    /// The address in use, or the first that would be tried.
    pub(crate) fn address(&self) -> String {
        self.made.as_ref().map_or_else(|| self.target.first_choice(), blocking::Client::address)
    }
}
