//! Questions to a daemon: JSON over HTTP/1.1, one connection kept alive, each answer within a time and a size.
//!
//! Rule: a connection that the daemon closed while it was idle is made anew, once, where nothing of an answer had come;
//! what must not happen twice is never sent twice ([`Client::order`]). Daemons answer with a length; anything else is no
//! daemon of ours. Not here: what is asked (`live`), what answers mean (`answers`).

use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long nothing may come of an answer that is waited for; a daemon gives up after 30 s itself.
pub const SILENCE_MAX: Duration = Duration::from_secs(35);
/// Largest head of an answer, in bytes; ours have some hundred.
const HEAD_LEN_MAX_BYTES: u64 = 16 << 10;
/// Largest answer, in bytes: what a daemon answers at most.
const BODY_LEN_MAX_BYTES: u64 = 32 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody is there, or the connection broke.
    #[error("no daemon answers at {address}: {error}; start one with: visperf up")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is there, but says nothing.
    #[error("{address} gave no answer within {secs} s")]
    Silent {
        /// Where.
        address: SocketAddr,
        /// How long it was waited for.
        secs: u64,
    },
    /// What answers is no daemon.
    #[error("expected the answer of a visperf daemon from {address}, found {found}")]
    Answer {
        /// Where.
        address: SocketAddr,
        /// What came instead.
        found: String,
    },
    /// The daemon refuses.
    #[error("{message} (fault {code}, from {address})")]
    Fault {
        /// Where.
        address: SocketAddr,
        /// Its code, as docs/query-interface.md lists them.
        code: i64,
        /// Its words.
        message: String,
    },
}

/// A daemon to ask.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    silence: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// The daemon at this address; it is connected to with the first question.
    #[must_use]
    pub fn new(address: SocketAddr) -> Client {
        Client { address, silence: SILENCE_MAX, connection: None }
    }

    /// The same, where an answer of which nothing comes for so long is given up.
    #[must_use]
    pub fn within(address: SocketAddr, silence: Duration) -> Client {
        Client { silence, ..Client::new(address) }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ask for something that must not happen twice: over a connection of its own, so that it need not be sent again.
    ///
    /// # Errors
    /// See [`Error`]; it may have happened all the same, unless it is [`Error::Fault`].
    pub fn order(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        self.connection = None;
        self.ask(method, params)
    }

    /// Ask a method.
    ///
    /// # Errors
    /// See [`Error`]; the next question connects anew.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        let body = params.to_string();
        let request = format!(
            "POST /api/v1/{method} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let (status, body) = self.exchange(request.as_bytes())?;
        let unexpected = |found: String| Error::Answer { address: self.address, found };
        let value: Value = serde_json::from_slice(&body)
            .map_err(|error| unexpected(format!("HTTP status {status} and no JSON ({error})")))?;
        if status == 200 {
            return Ok(value);
        }
        let fault = &value["error"];
        match (fault["code"].as_i64(), fault["message"].as_str()) {
            (Some(code), Some(message)) => {
                let message = crate::grid::text::shown(message).text;
                Err(Error::Fault { address: self.address, code, message })
            }
            _ => Err(unexpected(format!("HTTP status {status}"))),
        }
    }

    fn exchange(&mut self, request: &[u8]) -> Result<(u16, Vec<u8>), Error> {
        if let Some(kept) = self.connection.take() {
            match self.exchange_over(kept, request) {
                Err(Odd::Closed(_)) => {}
                exchanged => return exchanged.map_err(|odd| self.error(odd)),
            }
        }
        let unreachable = |error| Error::Unreachable { address: self.address, error };
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_TIME).map_err(unreachable)?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(self.silence)))
            .and_then(|()| stream.set_write_timeout(Some(self.silence)))
            .map_err(unreachable)?;
        self.exchange_over(BufReader::new(stream), request).map_err(|odd| self.error(odd))
    }

    fn exchange_over(
        &mut self,
        mut connection: BufReader<TcpStream>,
        request: &[u8],
    ) -> Result<(u16, Vec<u8>), Odd> {
        let answer = exchange(&mut connection, request)?;
        self.connection = answer.keeps.then_some(connection);
        Ok((answer.status, answer.body))
    }

    fn error(&self, odd: Odd) -> Error {
        let address = self.address;
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

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: Vec<u8>,
    keeps: bool,
}

fn exchange(connection: &mut BufReader<TcpStream>, request: &[u8]) -> Result<Answer, Odd> {
    connection.get_mut().write_all(request).map_err(Odd::before_all)?;
    if connection.fill_buf().map_err(Odd::before_all)?.is_empty() {
        return Err(Odd::Closed(ErrorKind::UnexpectedEof.into()));
    }
    answer(connection)
}

/// Read one answer.
fn answer(from: &mut impl BufRead) -> Result<Answer, Odd> {
    let mut room = HEAD_LEN_MAX_BYTES;
    let first = line(from, &mut room)?;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status =
        status.ok_or_else(|| Odd::Found(format!("{:?}", first.chars().take(40).collect::<String>())))?;
    let (mut len, mut keeps) = (None, true);
    loop {
        let line = line(from, &mut room)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => len = value.trim().parse::<u64>().ok(),
            "connection" => keeps = !value.trim().eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let len = len.filter(|&len| len <= BODY_LEN_MAX_BYTES);
    let len =
        len.ok_or_else(|| Odd::Found("an answer without a length, or longer than 32 MiB".to_owned()))?;
    let mut body = Vec::new();
    from.take(len).read_to_end(&mut body)?;
    if body.len() as u64 != len {
        return Err(Odd::Found(format!("an answer that ends after {} of {len} bytes", body.len())));
    }
    Ok(Answer { status, body, keeps })
}

/// A line without its end, out of the `room` that is left for the head.
fn line(from: &mut impl BufRead, room: &mut u64) -> Result<String, Odd> {
    let mut bytes = Vec::new();
    *room -= from.by_ref().take(*room).read_until(b'\n', &mut bytes)? as u64;
    if bytes.pop() != Some(b'\n') {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn an_answer_has_its_length() {
        let read = |text: &str| answer(&mut BufReader::with_capacity(3, text.as_bytes())).ok();
        let expected = |status, body: &str, keeps| Some(Answer { status, body: body.into(), keeps });
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}rest"), expected(200, "{}", true));
        assert_eq!(
            read("HTTP/1.1 503 Busy\r\ncontent-length:1\r\nConnection: close\r\n\r\nx"),
            expected(503, "x", false)
        );
        for odd in [
            "",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        ] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
        assert_eq!(
            read(&format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(9_000))),
            None,
            "a head without end"
        );
    }

    #[test]
    fn nobody_there_is_told_with_what_to_do() {
        // Port 1 of loopback: nothing answers there.
        let error =
            Client::new(SocketAddr::from(([127, 0, 0, 1], 1))).ask("daemon.info", &Value::Null).unwrap_err();
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
                    while line(&mut connection, &mut room).is_ok_and(|line| !line.is_empty()) {}
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
        let mut client = Client::new(address);
        client.ask("daemon.info", &json!({})).unwrap();
        client.ask("daemon.info", &json!({})).unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 3, "the second was read, not answered, and asked again");
    }

    #[test]
    fn what_was_answered_in_part_or_late_is_not_asked_again() {
        let part = Some("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{");
        for second in [part, Some("")] {
            let (address, asked) = daemon(&[&[WELL, second, WELL], &[WELL]]);
            let mut client = Client::within(address, Duration::from_millis(200));
            client.ask("daemon.info", &json!({})).unwrap();
            client.ask("sensor.take", &json!({})).unwrap_err();
            assert_eq!(asked.load(Ordering::SeqCst), 2);
        }
    }

    #[test]
    fn an_order_is_sent_once() {
        let (address, asked) = daemon(&[&[WELL, WELL], &[None], &[WELL]]);
        let mut client = Client::new(address);
        client.ask("daemon.info", &json!({})).unwrap();
        client.order("sensor.control", &json!({})).unwrap_err();
        assert_eq!(asked.load(Ordering::SeqCst), 2, "it is not known whether it was obeyed");
    }
}
