//! Blocking client of a daemon; texts in errors are sanitized for display.
//!
//! Not here: connections, HTTP, authentication (`::client`), which daemon is asked (`via`), which requests
//! are sent (`live`).

use super::via::Where;
use crate::grid::text::shown;
use client::blocking;
use client::typed::About;
use serde_json::Value;
use std::time::Duration;
use wire::api::Request;

use client::{Error, Patience};

/// Timeout between two parts of an answer; a daemon aborts a request after 30 s itself.
pub const SILENCE_MAX: Duration = Duration::from_secs(35);
/// Timeout of a whole answer whose parts keep coming: long enough for the largest answer on a slow link.
const ANSWER_MAX: Duration = Duration::from_secs(300);

/// Largest accepted answer in bytes, which is the most that a daemon sends.
const ANSWER_LEN_MAX_BYTES: usize = 32 << 20;

/// A client of one daemon, with its connection.
#[derive(Debug)]
pub struct Client {
    address: Where,
    client: blocking::Client,
}

impl Client {
    /// A client of the daemon at this address; it connects with the first request.
    #[must_use]
    pub fn new(address: Where) -> Client {
        Client::within(address, SILENCE_MAX)
    }

    /// The same, with this timeout between two parts of an answer.
    #[must_use]
    pub fn within(address: Where, silence: Duration) -> Client {
        let client = client::Client::new(address.clone()).answers_up_to(ANSWER_LEN_MAX_BYTES);
        let client = match &address {
            Where::Here(_) | Where::Local(_) => client,
            Where::Proxy(proxy) => client.logging_in(proxy.login(), ""),
        };
        let mut client = blocking::Client::from(client);
        client.set_patience(Patience { silence, ..Patience::of(ANSWER_MAX) });
        Client { address, client }
    }

    #[must_use]
    pub fn address(&self) -> &Where {
        &self.address
    }

    /// Call a method that must not be executed twice.
    ///
    /// # Errors
    /// See [`Error`]; after [`Error::Lost`] or [`Error::Late`] the daemon may still have executed it.
    pub fn order<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.client.order(request, about).map_err(harmless)
    }

    /// Call a method.
    ///
    /// # Errors
    /// See [`Error`]; the next request connects again.
    pub fn call<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.client.call(request, about).map_err(harmless)
    }

    /// Call a method by name with untyped parameters.
    ///
    /// # Errors
    /// See [`Error`]; the next request connects again.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        self.client.call_raw(method, params).map_err(harmless)
    }

    pub(super) fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address.to_string(), found }
    }
}

/// The error with texts of a daemon sanitized for display.
fn harmless(error: Error) -> Error {
    match error {
        Error::Fault { code, message } => Error::Fault { code, message: shown(&message).text },
        Error::Answer { address, found } => Error::Answer { address, found: shown(&found).text },
        other @ (Error::Unreachable(_) | Error::Mistake(_) | Error::Lost { .. } | Error::Late { .. }) => {
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn a_port_without_a_daemon_comes_with_what_to_do() {
        // Nothing listens on port 1 of loopback.
        let here = Where::from(SocketAddr::from(([127, 0, 0, 1], 1)));
        for address in [here, Where::Local("/nowhere/visperf.sock".into())] {
            let error = Client::new(address).ask("daemon.info", &Value::Null).unwrap_err();
            assert!(matches!(&error, Error::Unreachable(_)), "{error:?}");
            assert!(
                error.to_string().contains("no daemon answers at")
                    && error.to_string().contains("visperf up"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_a_daemon_says_is_shown_without_what_a_terminal_obeys() {
        let message = |text: &str| harmless(Error::Fault { code: 1, message: text.to_owned() }).to_string();
        assert!(!message("no\u{1b}[31m").contains('\u{1b}'));
    }
}
