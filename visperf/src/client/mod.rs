//! Asking a daemon: the library `client`, for the daemon that a command line means, with messages for who types.
//!
//! Not here: connections, HTTP, logging in, what follows from an error (`::client`).

mod hint;
pub(crate) use hint::NO_DOMAIN;
mod inside;
mod known_domains;
pub(crate) mod target;
pub(crate) mod via;
mod way;
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

/// How long a call may take when nothing is said: a daemon gives up after 30 s itself.
pub(crate) const PATIENCE: Patience =
    Patience { notice_after: Some(Duration::from_secs(4)), ..Patience::of(Duration::from_secs(40)) };

/// How long a daemon may take to say what it is, when that is only asked for a better message.
const EXPLAINING: Patience = Patience::of(Duration::from_secs(3));
/// The fault of a method that is not there (`docs/query-interface.md`).
const NO_METHOD: i64 = fault::METHOD_NOT_FOUND as i64;

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

/// A daemon to ask.
#[derive(Debug)]
pub(crate) struct Client {
    target: Target,
    /// Made with the first call, which also says what is wrong with the account's files.
    made: Option<blocking::Client>,
}

impl Client {
    /// A client for the daemon that `target` means; it connects with the first call.
    pub(crate) fn new(target: &Target) -> Client {
        Client { target: target.clone(), made: None }
    }

    /// Call a method with named parameters.
    ///
    /// # Errors
    /// See [`Error`]. After a lost connection the next call makes another.
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

    /// The same, with the answer as it came.
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

    /// Send a body, and take the answer whatever its status.
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

    /// Follow a method's answers.
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
        self.made.as_ref().map_or_else(|| self.target.first_choice(), blocking::Client::address)
    }
}
