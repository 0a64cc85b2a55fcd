//! HTTP CONNECT (RFC 9110, section 9.3.6): requests a connection to the outside from a site's own HTTP proxy.
//!
//! ```text
//! CONNECT proxy.example:443 HTTP/1.1 ──▶ 2xx: the connection now leads to proxy.example
//!                                    ◀── 407, Proxy-Authenticate: Digest … or Basic …
//! the same with Proxy-Authorization  ──▶ on a new connection, because the first may have been closed
//! ```
//! Pure; callers pass a fresh client nonce with each request, and the head of each answer.
//! Rules: credentials are sent only after the HTTP proxy requests them, in at most [`REQUESTS_MAX`] requests;
//! Digest is preferred to Basic. Basic credentials can be read in transit: the site chose that, and the
//! security of visperf does not depend on them.
//! Not here: sockets; the protocol on the connection afterwards.

use crate::digest::client::{Client, Error as DigestError, Login};
use crate::digest::header::of_scheme;
use data_encoding::BASE64;

/// Most requests for one connection: without credentials, with them, and again with a new nonce.
pub const REQUESTS_MAX: usize = 3;

/// Longest header of an answer that is read, in bytes.
pub const HEAD_LEN_MAX_BYTES: usize = 16 << 10;

/// Why the connection failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The answer is not HTTP.
    #[error("expected the answer of an HTTP proxy, found something else")]
    Form,
    /// The HTTP proxy requires a login, and none is configured.
    #[error("the HTTP proxy asks for a login, and none is configured")]
    NoLogin,
    /// The HTTP proxy rejects the login.
    #[error("the HTTP proxy does not take the login")]
    Refused,
    /// The HTTP proxy requires an unsupported kind of login.
    #[error("the HTTP proxy asks for a login that is neither Digest nor Basic")]
    Scheme,
    /// The HTTP proxy answered with this status.
    #[error("the HTTP proxy answered with status {0}")]
    Status(u16),
}

/// Next step of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The connection is established; the following bytes come from the target.
    Through,
    /// Send the next request, on another connection.
    Again,
}

/// State of one CONNECT.
#[derive(Debug)]
pub struct Connect {
    target: String,
    login: Option<Login>,
    by: By,
}

#[derive(Debug)]
enum By {
    Nothing,
    Digest(Box<Client>),
    Basic,
}

impl Connect {
    /// Connect to `target`, `HOST:PORT`.
    #[must_use]
    pub fn new(target: String, login: Option<Login>) -> Connect {
        Connect { target, login, by: By::Nothing }
    }

    /// The next request, as text.
    pub fn request(&mut self, cnonce: &str) -> String {
        let target = &self.target;
        let said = match (&mut self.by, &self.login) {
            (By::Digest(client), _) => client.authorization("CONNECT", target, cnonce),
            (By::Basic, Some(login)) => {
                let pair = format!("{}:{}", login.name, login.secret);
                Some(format!("Basic {}", BASE64.encode(pair.as_bytes())))
            }
            (By::Basic, None) | (By::Nothing, _) => None,
        };
        let said = said.map_or_else(String::new, |said| format!("Proxy-Authorization: {said}\r\n"));
        format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{said}\r\n")
    }

    /// Process the header of an answer, up to its empty line.
    ///
    /// # Errors
    /// If a retry cannot succeed.
    pub fn handle_head(&mut self, head: &str) -> Result<Next, Error> {
        let mut lines = head.lines();
        let status =
            lines.next().and_then(|line| line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok());
        match status.ok_or(Error::Form)? {
            200..=299 => Ok(Next::Through),
            407 => {
                let fields = lines.filter_map(|line| line.split_once(':'));
                let asked = fields.filter(|(name, _)| name.eq_ignore_ascii_case("proxy-authenticate"));
                let challenges: Vec<&str> = asked.map(|(_, value)| value.trim()).collect();
                self.handle_challenges(&challenges).map(|()| Next::Again)
            }
            status => Err(Error::Status(status)),
        }
    }

    fn handle_challenges(&mut self, challenges: &[&str]) -> Result<(), Error> {
        let login = self.login.as_ref().ok_or(Error::NoLogin)?;
        match &mut self.by {
            By::Digest(client) => {
                client.handle_challenge(challenges.iter().copied()).map_err(|_| Error::Refused)
            }
            By::Basic => Err(Error::Refused),
            By::Nothing => {
                let mut client = Client::new(Login { allows_md5: true, ..login.clone() });
                self.by = match client.handle_challenge(challenges.iter().copied()) {
                    Ok(()) => By::Digest(Box::new(client)),
                    Err(DigestError::NoChallenge) if challenges.iter().any(|one| is_basic(one)) => By::Basic,
                    Err(_) => return Err(Error::Scheme),
                };
                Ok(())
            }
        }
    }
}

fn is_basic(challenge: &str) -> bool {
    challenge.trim().eq_ignore_ascii_case("Basic") || of_scheme(challenge, "Basic").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Ha1;
    use crate::digest::header::Credentials;
    use crate::hash::Algorithm;

    fn connect(has_login: bool) -> Connect {
        let login = Login { name: "site".into(), secret: "secret".into(), allows_md5: false };
        Connect::new("proxy.example:443".to_owned(), has_login.then_some(login))
    }

    fn said(request: &str) -> Option<&str> {
        request.lines().find_map(|line| line.strip_prefix("Proxy-Authorization: "))
    }

    #[test]
    fn a_proxy_that_asks_for_nothing_lets_through() {
        let mut connect = connect(true);
        let request = connect.request("c");
        assert_eq!(request, "CONNECT proxy.example:443 HTTP/1.1\r\nHost: proxy.example:443\r\n\r\n");
        assert_eq!(connect.handle_head("HTTP/1.0 200 Connection established\r\n\r\n"), Ok(Next::Through));
    }

    #[test]
    fn a_login_is_sent_to_who_asks_and_digest_goes_before_basic() {
        let digest = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"r\"\r\n\
                      proxy-authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n\r\n";
        let mut one = connect(true);
        one.request("c");
        assert_eq!(one.handle_head(digest), Ok(Next::Again));
        let request = one.request("c");
        let credentials =
            Credentials::read(said(&request).expect("a login")).expect("readable").expect("digest");
        assert_eq!(credentials.uri, "proxy.example:443");
        assert!(Ha1::of(Algorithm::Md5, "site", "r", "secret").is_proved_by("CONNECT", &credentials));
        assert_eq!(one.handle_head(digest), Err(Error::Refused), "the same secret will not do");
        let mut other = connect(true);
        other.request("c");
        assert_eq!(
            other.handle_head("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n"),
            Ok(Next::Again)
        );
        assert_eq!(said(&other.request("c")), Some("Basic c2l0ZTpzZWNyZXQ="));
        assert_eq!(
            other.handle_head("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n"),
            Err(Error::Refused)
        );
    }

    #[test]
    fn a_request_that_cannot_be_answered_is_reported() {
        let check = |head: &str, has_login, expected| {
            assert_eq!(connect(has_login).handle_head(head), Err(expected), "{head}")
        };
        check("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", false, Error::NoLogin);
        check("HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\n\r\n", true, Error::Scheme);
        check("HTTP/1.1 407 No\r\n\r\n", true, Error::Scheme);
        check("HTTP/1.1 403 No\r\n\r\n", true, Error::Status(403));
        check("SSH-2.0-OpenSSH\r\n\r\n", true, Error::Form);
        check("", true, Error::Form);
    }
}
