//! Questions to a daemon, each waited for in the thread that asks; what a daemon says is made fit to be shown.
//!
//! Not here: connections, HTTP, logging in (`::client`), which daemon is asked (`via`), what is asked (`live`).

use super::via::Where;
use crate::grid::text::shown;
use client::blocking;
use client::typed::About;
use serde_json::Value;
use std::time::Duration;
use wire::api::Request;

use client::{Error, Patience};

/// How long nothing may come of an answer that is waited for; a daemon gives up after 30 s itself.
pub const SILENCE_MAX: Duration = Duration::from_secs(35);
/// How long an answer may take of which parts keep coming: the largest, on a slow line.
const ANSWER_MAX: Duration = Duration::from_secs(300);

/// Largest answer, in bytes: what a daemon answers at most.
const ANSWER_LEN_MAX_BYTES: usize = 32 << 20;

/// A daemon to ask.
#[derive(Debug)]
pub struct Client {
    address: Where,
    client: blocking::Client,
}

impl Client {
    /// The daemon at this address; it is connected to with the first question.
    #[must_use]
    pub fn new(address: Where) -> Client {
        Client::within(address, SILENCE_MAX)
    }

    /// The same, where an answer of which nothing comes for so long is given up.
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

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Where {
        &self.address
    }

    /// Call a method that must not be carried out twice.
    ///
    /// # Errors
    /// See [`Error`]; it may have been carried out all the same where it is [`Error::Lost`] or [`Error::Late`].
    pub fn order<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.client.order(request, about).map_err(harmless)
    }

    /// Call a method.
    ///
    /// # Errors
    /// See [`Error`]; the next question connects again.
    pub fn call<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.client.call(request, about).map_err(harmless)
    }

    /// Ask a method.
    ///
    /// # Errors
    /// See [`Error`]; the next question connects again.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        self.client.call_raw(method, params).map_err(harmless)
    }

    pub(super) fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address.to_string(), found }
    }
}

/// The error, with words of a daemon as they may be shown.
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
        // Port 1 of loopback: nothing answers there.
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
        let said = |text: &str| harmless(Error::Fault { code: 1, message: text.to_owned() }).to_string();
        assert!(!said("no\u{1b}[31m").contains('\u{1b}'));
    }
}
