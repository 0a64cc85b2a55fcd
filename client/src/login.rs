//! Logging in at a proxy by HTTP Digest (RFC 7616), request by request.
//!
//! Shell: the system's random numbers. Rules: the body of a question is sent only after the proxy has asked who asks, and an
//! answer counts only if it proves that the proxy knows the account.
//! Not here: what Digest says (`tunnel::digest`).

use crate::error::Error;
use crate::exchange::Reply;
use data_encoding::HEXLOWER;
use std::fmt;
use tunnel::digest::client::{self, Answered, Next};
use wire::fault;

/// An account at a proxy.
#[derive(Clone)]
pub struct Login {
    /// The account's name.
    pub name: String,
    /// Its secret.
    pub secret: String,
    /// Whether MD5 is answered where the proxy offers nothing better.
    pub allows_md5: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, …)", self.name)
    }
}

/// Random bytes of a client's nonce.
const CNONCE_LEN_BYTES: usize = 16;

/// What a proxy may answer to who has not logged in: who are you, and that there is no room.
const BEFORE_LOGIN: [u16; 3] = [401, 429, 503];

/// One account at one proxy.
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

    /// The same account, for another connection; what the proxy can do best is known of both.
    pub(crate) fn another(&self) -> Account {
        Account { digest: self.digest.another(), is_challenged: false }
    }

    /// Whether the proxy has asked who asks.
    pub(crate) fn is_challenged(&self) -> bool {
        self.is_challenged
    }

    /// The value of `Authorization` of the next request; none before the first challenge.
    pub(crate) fn authorization(&mut self, method: &str, path: &str) -> Result<Option<String>, Error> {
        let mut drawn = [0; CNONCE_LEN_BYTES];
        getrandom::fill(&mut drawn)
            .map_err(|error| Error::Unreachable(format!("the system gives no random numbers: {error}")))?;
        Ok(self.digest.authorization(method, path, &HEXLOWER.encode(&drawn)))
    }

    /// What follows from the answer to the request with number `sent`, from 0, of one question.
    pub(crate) fn handle(&mut self, reply: &Reply, sent: usize) -> Result<Next, Error> {
        let answered =
            Answered { status: reply.status, challenges: &reply.challenges, info: reply.info.as_deref() };
        if !self.is_challenged && !BEFORE_LOGIN.contains(&reply.status) {
            return Err(forbidden(&client::Error::NoChallenge));
        }
        self.is_challenged |= reply.status == 401;
        self.digest.handle(answered, sent).map_err(|error| {
            if error != client::Error::Unproved {
                // A login that was refused begins again with the next question.
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
