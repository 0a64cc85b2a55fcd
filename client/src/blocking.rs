//! Blocking client for programs without a runtime: each call blocks its thread.
//!
//! Shell: each client has a runtime of one thread, which runs while a call waits. Do not use it within
//! another runtime.

use crate::client::Answer;
use crate::error::Error;
use crate::follow::{self, Item};
use crate::patience::Patience;
use crate::typed::{About, Answered};
use bytes::Bytes;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wire::api::Request;

/// Blocking client of a daemon; see [`crate::Client`].
pub struct Client {
    client: crate::Client,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Client {
        Client { client, runtime: None }
    }
}

impl Client {
    /// See [`crate::Client::address`].
    #[must_use]
    pub fn address(&self) -> String {
        self.client.address()
    }

    /// See [`crate::Client::set_patience`].
    pub fn set_patience(&mut self, patience: Patience) {
        self.client.set_patience(patience);
    }

    /// See [`crate::Client::call`].
    ///
    /// # Errors
    /// Likewise.
    pub fn call<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.call(request, about))
    }

    /// See [`crate::Client::answered`].
    ///
    /// # Errors
    /// Likewise.
    pub fn answered<R: Request>(&mut self, request: &R, about: &About) -> Result<Answered<R::Answer>, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.answered(request, about))
    }

    /// See [`crate::Client::call_until`].
    ///
    /// # Errors
    /// Likewise.
    pub fn call_until<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        most: Duration,
    ) -> Result<R::Answer, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.call_until(request, about, most))
    }

    /// See [`crate::Client::order`].
    ///
    /// # Errors
    /// Likewise.
    pub fn order<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.order(request, about))
    }

    /// See [`crate::Client::call_raw`].
    ///
    /// # Errors
    /// Likewise.
    pub fn call_raw(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.call_raw(method, params))
    }

    /// See [`crate::Client::post`].
    ///
    /// # Errors
    /// Likewise.
    pub fn post(&mut self, path: &str, content_type: &str, body: Bytes) -> Result<Answer, Error> {
        runtime(&mut self.runtime)?.block_on(self.client.post(path, content_type, body))
    }

    /// See [`crate::Client::follow`].
    ///
    /// # Errors
    /// Likewise.
    pub fn follow(
        &mut self,
        method: &str,
        params: Map<String, Value>,
        every_secs: &str,
    ) -> Result<Stream<'_>, Error> {
        let runtime = runtime(&mut self.runtime)?;
        let stream = runtime.block_on(self.client.another().follow(method, params, every_secs));
        Ok(Stream { stream: stream?, runtime })
    }
}

/// Create the runtime when it is first needed.
fn runtime(made: &mut Option<Runtime>) -> Result<&Runtime, Error> {
    if made.is_none() {
        let built = Builder::new_current_thread().enable_io().enable_time().build();
        *made = Some(built.map_err(|error| Error::Unreachable(format!("cannot start: {error}")))?);
    }
    made.as_ref().ok_or_else(|| Error::Unreachable("cannot start".to_owned()))
}

/// Stream of the answers of one method; see [`follow::Stream`].
#[derive(Debug)]
pub struct Stream<'a> {
    stream: follow::Stream,
    runtime: &'a Runtime,
}

impl Stream<'_> {
    /// See [`follow::Stream::next_item`].
    ///
    /// # Errors
    /// Likewise.
    pub fn next_item(&mut self) -> Result<Item, Error> {
        self.runtime.block_on(self.stream.next_item())
    }

    /// Address of the daemon.
    #[must_use]
    pub fn address(&self) -> String {
        self.stream.address()
    }
}
