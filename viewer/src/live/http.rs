//! Questions to a daemon: JSON over HTTP/1.1, one connection kept alive, each answer within a time and a size.
//!
//! Rule: a connection that the daemon closed while it was idle is made anew, once, where nothing of an answer had come;
//! what must not happen twice is never sent twice ([`Client::order`]). A proxy is told nothing before it has asked who it is.
//! Not here: what is asked (`live`), what answers mean (`answers`), what is spoken on the way (`via`).

mod answer;

use super::via::{Proxy, Where};
use answer::Answer;
use client::typed::{self, About};
use overlay::door::{self, Wire};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::time::Duration;
use tunnel::digest;
use tunnel::digest::client::{Answered, Next, SENT_MAX};
use wire::api::Request;

/// The fault of somebody who may not ask (docs/query-interface.md).
const FORBIDDEN: i64 = -32006;

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long nothing may come of an answer that is waited for; a daemon gives up after 30 s itself.
pub const SILENCE_MAX: Duration = Duration::from_secs(35);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody is there, or the connection broke.
    #[error("{}", unreachable(.address, .error))]
    Unreachable {
        /// Where.
        address: Where,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is there, but says nothing.
    #[error("{address} gave no answer within {secs} s")]
    Silent {
        /// Where.
        address: Where,
        /// How long it was waited for.
        secs: u64,
    },
    /// What answers is no daemon.
    #[error("expected the answer of a visperf daemon from {address}, found {found}")]
    Answer {
        /// Where.
        address: Where,
        /// What came instead.
        found: String,
    },
    /// The daemon refuses.
    #[error("{message} (fault {code}, from {address})")]
    Fault {
        /// Where.
        address: Where,
        /// Its code, as docs/query-interface.md lists them.
        code: i64,
        /// Its words.
        message: String,
    },
}

fn unreachable(address: &Where, error: &std::io::Error) -> String {
    match address {
        Where::Here(_) | Where::Local(_) => {
            format!("no daemon answers at {address}: {error}; start one with: visperf up")
        }
        Where::Proxy(_) => match door::certificate_refused(error) {
            Some(reason) => format!("nothing was sent to {address}: {reason}"),
            None => format!("no proxy answers at {address}: {error}; see docs/firewalls.md"),
        },
    }
}

/// A daemon to ask.
#[derive(Debug)]
pub struct Client {
    address: Where,
    silence: Duration,
    connection: Option<BufReader<Wire>>,
    /// Logs in, where a proxy is asked.
    login: Option<digest::client::Client>,
}

impl Client {
    /// The daemon at this address; it is connected to with the first question.
    #[must_use]
    pub fn new(address: Where) -> Client {
        Client { address, silence: SILENCE_MAX, connection: None, login: None }
    }

    /// The same, where an answer of which nothing comes for so long is given up.
    #[must_use]
    pub fn within(address: Where, silence: Duration) -> Client {
        Client { silence, ..Client::new(address) }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Where {
        &self.address
    }

    /// Call a method that must not be carried out twice: over a connection of its own, so that it need not be sent again.
    ///
    /// # Errors
    /// See [`Error`]; it may have been carried out all the same, unless it is [`Error::Fault`].
    pub fn order<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.connection = None;
        self.call(request, about)
    }

    /// Call a method.
    ///
    /// # Errors
    /// See [`Error`]; the next question connects again.
    pub fn call<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        let body = self.body(R::METHOD, &typed::params(request, about))?;
        typed::answer::<R>(&body)
            .map_err(|error| self.unexpected(format!("an answer of another form to {}: {error}", R::METHOD)))
    }

    /// Ask a method.
    ///
    /// # Errors
    /// See [`Error`]; the next question connects again.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        let body = self.body(method, params)?;
        serde_json::from_slice(&body)
            .map_err(|error| self.unexpected(format!("HTTP status 200 and no JSON ({error})")))
    }

    pub(super) fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address.clone(), found }
    }

    /// What is answered, unless it is a fault.
    fn body(&mut self, method: &str, params: &Value) -> Result<Vec<u8>, Error> {
        let (path, body) = (format!("/api/v1/{method}"), params.to_string());
        let answer = match self.address.clone() {
            Where::Here(_) | Where::Local(_) => self.exchange(&self.request(&path, "", &body))?,
            Where::Proxy(proxy) => self.exchange_by_login(&proxy, &path, &body)?,
        };
        let (status, body) = (answer.status, answer.body);
        if status == 200 {
            return Ok(body);
        }
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| self.unexpected(format!("HTTP status {status} and no JSON ({error})")))?;
        let fault = &value["error"];
        match (fault["code"].as_i64(), fault["message"].as_str()) {
            (Some(code), Some(message)) => {
                let message = crate::grid::text::shown(message).text;
                Err(Error::Fault { address: self.address.clone(), code, message })
            }
            _ => Err(self.unexpected(format!("HTTP status {status}"))),
        }
    }

    fn request(&self, path: &str, fields: &str, body: &str) -> String {
        let host = match &self.address {
            Where::Local(_) => "localhost".to_owned(),
            other @ (Where::Here(_) | Where::Proxy(_)) => other.to_string(),
        };
        let len = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{fields}\
             Content-Length: {len}\r\n\r\n{body}"
        )
    }

    /// Log in by HTTP Digest (RFC 7616) and ask; the answer counts only if it proves that the proxy knows the account.
    fn exchange_by_login(&mut self, proxy: &Proxy, path: &str, body: &str) -> Result<Answer, Error> {
        let address = self.address.clone();
        let forbidden = |error: digest::client::Error| Error::Fault {
            address: address.clone(),
            code: FORBIDDEN,
            message: error.to_string(),
        };
        for sent in 0..SENT_MAX {
            let Some(login) = &mut self.login else {
                // Whoever is not known yet is turned away before the body.
                let answer = self.exchange(&self.request(path, "", ""))?;
                let mut login = digest::client::Client::new(proxy.login());
                login.handle_challenge(answer.challenges.iter().map(String::as_str)).map_err(forbidden)?;
                self.login = Some(login);
                continue;
            };
            let cnonce = door::cnonce().map_err(|error| Error::Unreachable {
                address: address.clone(),
                error: std::io::Error::other(error),
            })?;
            let said = login.authorization("POST", path, &cnonce).unwrap_or_default();
            let request = self.request(path, &format!("Authorization: {said}\r\n"), body);
            let answer = self.exchange(&request)?;
            let Some(login) = &mut self.login else { continue };
            let (challenges, info) = (&answer.challenges[..], answer.info.as_deref());
            match login.handle(Answered { status: answer.status, challenges, info }, sent) {
                Ok(Next::Again) => {}
                Ok(Next::Taken) => return Ok(answer),
                Err(error) => {
                    // Who was turned away begins anew the next time.
                    if error != digest::client::Error::Unproved {
                        self.login = None;
                    }
                    return Err(forbidden(error));
                }
            }
        }
        Err(Error::Answer { address, found: "challenges without end".to_owned() })
    }

    fn exchange(&mut self, request: &str) -> Result<Answer, Error> {
        if let Some(kept) = self.connection.take() {
            match self.exchange_over(kept, request.as_bytes()) {
                Err(Odd::Closed(_)) => {}
                exchanged => return exchanged.map_err(|odd| self.error(odd)),
            }
        }
        let wire = self.address.open(CONNECT_TIME, self.silence);
        let wire = wire.map_err(|error| Error::Unreachable { address: self.address.clone(), error })?;
        self.exchange_over(BufReader::new(wire), request.as_bytes()).map_err(|odd| self.error(odd))
    }

    fn exchange_over(&mut self, mut connection: BufReader<Wire>, request: &[u8]) -> Result<Answer, Odd> {
        let answer = exchange(&mut connection, request)?;
        self.connection = answer.keeps.then_some(connection);
        Ok(answer)
    }

    fn error(&self, odd: Odd) -> Error {
        let address = self.address.clone();
        match odd {
            Odd::Io(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Error::Silent { address, secs: self.silence.as_secs() }
            }
            Odd::Closed(error) | Odd::Io(error) => Error::Unreachable { address, error },
            Odd::Found(found) => Error::Answer { address, found },
        }
    }
}

/// What may be wrong with an exchange.
#[derive(Debug)]
enum Odd {
    /// It was closed before anything of an answer came: what was asked did not happen.
    Closed(std::io::Error),
    Io(std::io::Error),
    Found(String),
}

impl From<std::io::Error> for Odd {
    fn from(error: std::io::Error) -> Odd {
        Odd::Io(error)
    }
}

impl Odd {
    /// Of a connection of which nothing had come.
    fn before_all(error: std::io::Error) -> Odd {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe) {
            true => Odd::Closed(error),
            false => Odd::Io(error),
        }
    }
}

fn exchange(connection: &mut BufReader<Wire>, request: &[u8]) -> Result<Answer, Odd> {
    connection.get_mut().write_all(request).map_err(Odd::before_all)?;
    if connection.fill_buf().map_err(Odd::before_all)?.is_empty() {
        return Err(Odd::Closed(ErrorKind::UnexpectedEof.into()));
    }
    answer::read(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Read as _;
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use wire::api::control::ControlParams;

    #[test]
    fn nobody_there_is_told_with_what_to_do() {
        // Port 1 of loopback: nothing answers there.
        let error = Client::new(SocketAddr::from(([127, 0, 0, 1], 1)).into())
            .ask("daemon.info", &Value::Null)
            .unwrap_err();
        assert!(error.to_string().contains("visperf up"), "{error}");
    }

    /// A daemon that answers each request of each connection so, or closes it; how many requests it has read.
    fn daemon(answers: &[&[Option<&'static str>]]) -> (SocketAddr, Arc<AtomicU32>) {
        let answers: Vec<Vec<_>> = answers.iter().map(|answers| answers.to_vec()).collect();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for answers in answers {
                let mut connection = BufReader::new(listener.accept().unwrap().0);
                for answer in &answers {
                    let mut room = 1 << 16;
                    while answer::line(&mut connection, &mut room).is_ok_and(|line| !line.is_empty()) {}
                    let mut body = [0; 2];
                    if connection.read_exact(&mut body).is_err() {
                        break;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    let Some(answer) = answer else { break };
                    connection.get_mut().write_all(answer.as_bytes()).unwrap();
                }
                if answers.last().is_some_and(Option::is_some) {
                    // Kept open, and silent.
                    std::mem::forget(connection);
                }
            }
        });
        (address, asked)
    }

    const WELL: Option<&str> = Some("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");

    #[test]
    fn a_kept_connection_that_was_closed_is_made_anew_once() {
        let (address, asked) = daemon(&[&[WELL, None], &[WELL]]);
        let mut client = Client::new(address.into());
        client.ask("daemon.info", &json!({})).unwrap();
        client.ask("daemon.info", &json!({})).unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 3, "the second was read, not answered, and asked again");
    }

    #[test]
    fn what_was_answered_in_part_or_late_is_not_asked_again() {
        let part = Some("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{");
        for second in [part, Some("")] {
            let (address, asked) = daemon(&[&[WELL, second, WELL], &[WELL]]);
            let mut client = Client::within(address.into(), Duration::from_secs(3));
            client.ask("daemon.info", &json!({})).unwrap();
            client.ask("sensor.take", &json!({})).unwrap_err();
            assert_eq!(asked.load(Ordering::SeqCst), 2);
        }
    }

    #[test]
    fn an_order_is_sent_once() {
        let (address, asked) = daemon(&[&[WELL, WELL], &[None], &[WELL]]);
        let mut client = Client::new(address.into());
        client.ask("daemon.info", &json!({})).unwrap();
        client.order(&ControlParams::default(), &About::default()).unwrap_err();
        assert_eq!(asked.load(Ordering::SeqCst), 2, "it is not known whether it was obeyed");
    }
}
