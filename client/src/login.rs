//! Login at a proxy by HTTP Digest (RFC 7616), for each request.
//!
//! Shell: the system's random numbers. Rules: the body of a request is sent only after the proxy has
//! requested a login, and an answer is accepted only if it proves that the proxy knows the account.
//! Not here: the protocol of Digest (`tunnel::digest`).

use crate::error::Error;
use crate::exchange::Reply;
use data_encoding::HEXLOWER;
use std::fmt;
use tunnel::digest::client::{self, Answered, Next};
use wire::fault;

/// Credentials of an account at a proxy.
#[derive(Clone)]
pub struct Login {
    /// Name of the account.
    pub name: String,
    /// Secret of the account.
    pub secret: String,
    /// Whether MD5 is allowed if the proxy offers nothing better.
    pub allows_md5: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, …)", self.name)
    }
}

/// Length of a client's nonce in random bytes.
const CNONCE_LEN_BYTES: usize = 16;

/// Statuses that a proxy may return before a login: login required, rate limit, no room.
const BEFORE_LOGIN: [u16; 3] = [401, 429, 503];

/// Login state of one account at one proxy.
#[derive(Debug)]
pub(crate) struct Account {
    digest: client::Client,
    is_challenged: bool,
}

impl Account {
    pub(crate) fn new(login: Login) -> Account {
        let Login { name, secret, allows_md5 } = login;
        let login = client::Login { name, secret, allows_md5 };
        Account { digest: client::Client::new(login), is_challenged: false }
    }

    /// The same account for another connection; both know the strongest hash that the proxy offered.
    pub(crate) fn another(&self) -> Account {
        Account { digest: self.digest.another(), is_challenged: false }
    }

    /// Whether the proxy has requested a login.
    pub(crate) fn is_challenged(&self) -> bool {
        self.is_challenged
    }

    /// Value of `Authorization` for the next request; `None` before the first challenge.
    pub(crate) fn authorization(&mut self, method: &str, path: &str) -> Result<Option<String>, Error> {
        let mut drawn = [0; CNONCE_LEN_BYTES];
        getrandom::fill(&mut drawn)
            .map_err(|error| Error::Unreachable(format!("the system gives no random numbers: {error}")))?;
        Ok(self.digest.authorization(method, path, &HEXLOWER.encode(&drawn)))
    }

    /// Process the response to request number `sent` (from 0) of one query.
    pub(crate) fn handle(&mut self, reply: &Reply, sent: usize) -> Result<Next, Error> {
        let answered =
            Answered { status: reply.status, challenges: &reply.challenges, info: reply.info.as_deref() };
        if !self.is_challenged && !BEFORE_LOGIN.contains(&reply.status) {
            return Err(forbidden(&client::Error::NoChallenge));
        }
        self.is_challenged |= reply.status == 401;
        self.digest.handle(answered, sent).map_err(|error| {
            if error != client::Error::Unproved {
                // A rejected login starts again with the next query.
                self.digest.forget();
                self.is_challenged = false;
            }
            forbidden(&error)
        })
    }
}

fn forbidden(error: &client::Error) -> Error {
    Error::Fault { code: fault::FORBIDDEN.into(), message: error.to_string() }
}
