//! Client side of HTTP Digest: chooses the challenge to answer, and verifies that the answer comes from the
//! server.
//!
//! Pure; callers pass a fresh client nonce with each request.
//! Rules: the client answers the challenge with the strongest hash. A server that once offered SHA-256 is
//! never answered by MD5 again (an attacker in transit may have removed the offer). An answer is accepted
//! only if it proves that the server knows the account.
//! Not here: sending.

use super::header::{Challenge, Credentials, Info};
use super::{Ha1, Spoken};
use crate::hash::Algorithm;
use std::fmt;

/// Most requests sent for one query: the first is challenged, the second answers, and two more may answer a
/// new nonce.
pub const SENT_MAX: usize = 4;

/// Why a challenge is not answered, or an answer not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No challenge is supported.
    #[error("expected a Digest challenge with qop=auth and SHA-256 or MD5, found none")]
    NoChallenge,
    /// The server offered a stronger hash before.
    #[error(
        "expected SHA-256, which this server offered before, found MD5 alone; an attacker may be in between"
    )]
    Downgrade,
    /// The user does not allow MD5.
    #[error("expected SHA-256, found MD5 alone; allow MD5 for this account if it is meant")]
    Md5,
    /// The secret is wrong.
    #[error("name or secret is wrong, or the account is not there")]
    Refused,
    /// The server's proof is wrong or missing.
    #[error("the server did not prove that it knows the account; it may be another than it says")]
    Unproved,
}

/// Account name and secret of the user.
#[derive(Clone)]
pub struct Login {
    pub name: String,
    pub secret: String,
    /// Whether MD5 is allowed if the server offers nothing else.
    pub allows_md5: bool,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, …)", self.name)
    }
}

/// Parts of a server's answer that concern authentication.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// HTTP status code.
    pub status: u16,
    /// Values of all fields `WWW-Authenticate`.
    pub challenges: &'a [String],
    /// Value of the field `Authentication-Info`.
    pub info: Option<&'a str>,
}

/// Next step after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The server requests a login: send the request again.
    Again,
    /// The answer is final: the result, or a refusal.
    Taken,
}

/// Authentication state of one client with one server.
#[derive(Debug)]
pub struct Client {
    login: Login,
    current: Option<Current>,
    /// Strongest hash that the server has offered.
    strongest: Option<Algorithm>,
}

#[derive(Debug)]
struct Current {
    ha1: Ha1,
    realm: String,
    nonce: String,
    count: u32,
    /// Count, client nonce and path of the last request; its answer must repeat them.
    said: Option<(String, String, String)>,
}

impl Client {
    /// A client without a challenge.
    #[must_use]
    pub fn new(login: Login) -> Client {
        Client { login, current: None, strongest: None }
    }

    /// Process the server's answer to request number `sent` (from 0) of one query; the request carried the
    /// value of [`Client::authorization`].
    ///
    /// # Errors
    /// If the requested login is not possible, or a successful answer does not prove that the server knows
    /// the account: then, and only then, [`Error::Unproved`].
    pub fn handle(&mut self, answered: Answered<'_>, sent: usize) -> Result<Next, Error> {
        if answered.status == 401 && sent + 1 < SENT_MAX {
            self.handle_challenge(answered.challenges.iter().map(String::as_str))?;
            return Ok(Next::Again);
        }
        // A refusal may come without a proof, a success may not; a proof that is present is always checked.
        if answered.info.is_some() || answered.status == 200 {
            self.handle_answer(answered.info)?;
        }
        Ok(Next::Taken)
    }

    /// Process the fields `WWW-Authenticate` of an answer with status 401.
    ///
    /// # Errors
    /// If no challenge can be answered: a retry cannot succeed.
    pub fn handle_challenge<'a>(&mut self, fields: impl Iterator<Item = &'a str>) -> Result<(), Error> {
        let readable = fields.filter_map(|field| Challenge::read(field).ok().flatten());
        let best = readable.max_by_key(|challenge| challenge.algorithm).ok_or(Error::NoChallenge)?;
        if self.strongest.is_some_and(|strongest| best.algorithm < strongest) {
            return Err(Error::Downgrade);
        }
        if best.algorithm == Algorithm::Md5 && !self.login.allows_md5 {
            return Err(Error::Md5);
        }
        self.strongest = Some(best.algorithm);
        // A correct answer that was rejected will be rejected again.
        let was_answered = self.current.as_ref().is_some_and(|current| current.said.is_some());
        if was_answered && !best.is_stale {
            return Err(Error::Refused);
        }
        let ha1 = Ha1::of(best.algorithm, &self.login.name, &best.realm, &self.login.secret);
        self.current = Some(Current { ha1, realm: best.realm, nonce: best.nonce, count: 0, said: None });
        Ok(())
    }

    /// A client of the same server and account, without a challenge.
    #[must_use]
    pub fn another(&self) -> Client {
        Client { login: self.login.clone(), current: None, strongest: self.strongest }
    }

    /// Forget the server's nonce, so that the next request is challenged again. The strongest hash is
    /// remembered.
    pub fn forget(&mut self) {
        self.current = None;
    }

    /// Value of `Authorization` for the next request; `None` before the first challenge.
    pub fn authorization(&mut self, method: &str, uri: &str, cnonce: &str) -> Option<String> {
        let current = self.current.as_mut()?;
        current.count += 1;
        let nc = format!("{:08x}", current.count);
        let spoken = Spoken { nonce: &current.nonce, nc: &nc, cnonce, uri };
        let credentials = Credentials {
            username: self.login.name.clone(),
            realm: current.realm.clone(),
            nonce: current.nonce.clone(),
            uri: uri.to_owned(),
            response: current.ha1.response(method, spoken),
            algorithm: current.ha1.algorithm(),
            cnonce: cnonce.to_owned(),
            nc: nc.clone(),
        };
        current.said = Some((nc, cnonce.to_owned(), uri.to_owned()));
        Some(credentials.write())
    }

    /// Process the field `Authentication-Info` of a successful answer.
    ///
    /// # Errors
    /// If the field does not prove that the server knows the account.
    pub fn handle_answer(&mut self, field: Option<&str>) -> Result<(), Error> {
        let current = self.current.as_mut().ok_or(Error::Unproved)?;
        let (nc, cnonce, uri) = current.said.take().ok_or(Error::Unproved)?;
        let info = field.and_then(|field| Info::read(field).ok()).ok_or(Error::Unproved)?;
        let spoken = Spoken { nonce: &current.nonce, nc: &nc, cnonce: &cnonce, uri: &uri };
        let fits = info.nc == nc && info.cnonce == cnonce && info.rspauth == current.ha1.rspauth(spoken);
        if !fits {
            return Err(Error::Unproved);
        }
        if let Some(next) = info.nextnonce {
            current.nonce = next;
            current.count = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "Digest realm=\"visperf\", nonce=\"s\", qop=\"auth\", algorithm=SHA-256";
    const MD5: &str = "Digest realm=\"visperf\", nonce=\"m\", qop=\"auth\", algorithm=MD5";

    fn client(allows_md5: bool) -> Client {
        Client::new(Login { name: "ana".into(), secret: "secret".into(), allows_md5 })
    }

    fn answered(client: &mut Client) -> (Credentials, Ha1) {
        let field = client.authorization("POST", "/RPC2", "c").expect("challenged");
        let credentials = Credentials::read(&field).expect("readable").expect("digest");
        (credentials.clone(), Ha1::of(credentials.algorithm, "ana", "visperf", "secret"))
    }

    #[test]
    fn the_strongest_challenge_is_answered_and_the_server_is_checked() {
        let mut client = client(true);
        assert_eq!(client.authorization("POST", "/RPC2", "c"), None);
        client.handle_challenge([MD5, "Basic realm=\"x\"", SHA].into_iter()).expect("answerable");
        let (credentials, ha1) = answered(&mut client);
        assert_eq!((credentials.algorithm, credentials.count()), (Algorithm::Sha256, Ok(1)));
        assert!(ha1.is_proved_by("POST", &credentials) && !ha1.is_proved_by("GET", &credentials));
        let info = Info {
            rspauth: ha1.rspauth(credentials.spoken()),
            cnonce: "c".into(),
            nc: "00000001".into(),
            nextnonce: Some("t".into()),
        };
        assert_eq!(client.handle_answer(Some(&info.write())), Ok(()));
        let (credentials, _) = answered(&mut client);
        assert_eq!((credentials.nonce.as_str(), credentials.count()), ("t", Ok(1)), "the next nonce");
        assert_eq!(client.handle_answer(Some(&info.write())), Err(Error::Unproved), "an old proof");
        answered(&mut client);
        assert_eq!(client.handle_answer(None), Err(Error::Unproved));
    }

    #[test]
    fn md5_is_answered_only_where_allowed_and_never_after_better() {
        assert_eq!(client(false).handle_challenge([MD5].into_iter()), Err(Error::Md5));
        let mut one = client(true);
        one.handle_challenge([MD5].into_iter()).expect("allowed");
        let mut other = client(true);
        other.handle_challenge([SHA].into_iter()).expect("answerable");
        assert_eq!(other.handle_challenge([MD5].into_iter()), Err(Error::Downgrade));
        assert_eq!(one.handle_challenge(["Basic realm=\"x\""].into_iter()), Err(Error::NoChallenge));
    }

    #[test]
    fn a_refused_secret_is_not_sent_again_but_a_stale_nonce_is_replaced() {
        let mut client = client(false);
        client.handle_challenge([SHA].into_iter()).expect("answerable");
        answered(&mut client);
        let stale = format!("{SHA}, stale=true").replace("\"s\"", "\"u\"");
        client.handle_challenge([stale.as_str()].into_iter()).expect("the secret was right");
        assert_eq!(answered(&mut client).0.nonce, "u");
        assert_eq!(client.handle_challenge([SHA].into_iter()), Err(Error::Refused));
    }

    #[test]
    fn an_answer_is_taken_only_if_it_is_proved_or_refuses() {
        let challenges = [SHA.replace("qop=", "stale=true, qop=")];
        let check = |status, proved: Option<bool>, sent, expected: Result<Next, Error>| {
            let mut client = client(false);
            client.handle_challenge([SHA].into_iter()).expect("answerable");
            let (credentials, ha1) = answered(&mut client);
            let info = proved.map(|is_right| {
                let rspauth = if is_right { ha1.rspauth(credentials.spoken()) } else { "00".to_owned() };
                Info { rspauth, cnonce: "c".into(), nc: "00000001".into(), nextnonce: None }.write()
            });
            let answer = Answered { status, challenges: &challenges, info: info.as_deref() };
            assert_eq!(client.handle(answer, sent), expected, "{status} {proved:?} {sent}");
        };
        check(200, Some(true), 1, Ok(Next::Taken));
        check(200, Some(false), 1, Err(Error::Unproved));
        check(200, None, 1, Err(Error::Unproved));
        check(403, Some(true), 1, Ok(Next::Taken));
        check(403, Some(false), 1, Err(Error::Unproved));
        check(403, None, 1, Ok(Next::Taken));
        check(401, None, 1, Ok(Next::Again));
        check(401, None, SENT_MAX - 2, Ok(Next::Again));
        check(401, None, SENT_MAX - 1, Ok(Next::Taken));
        let refused = Answered { status: 401, challenges: &[SHA.to_owned()], info: None };
        let mut client = client(false);
        client.handle_challenge([SHA].into_iter()).expect("answerable");
        answered(&mut client);
        assert_eq!(client.handle(refused, 1), Err(Error::Refused));
    }
}
