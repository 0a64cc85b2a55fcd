//! One TCP connection to a daemon, one request at a time, each with a deadline.
//!
//! Not here: what is asked (`json`, `xml`), trying again (the commands).

use crate::client::{Answer, http};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// What came is no answer, or none came.
    #[error(transparent)]
    Answer(#[from] http::Error),
    /// The deadline passed.
    #[error("no answer in time")]
    Late,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    address: String,
    stream: BufReader<Deadlined>,
    reusable: bool,
}

#[derive(Debug)]
struct Deadlined {
    stream: TcpStream,
    deadline: Instant,
}

#[allow(clippy::disallowed_methods)] // The shell's clock for deadlines of sockets.
fn monotonic() -> Instant {
    Instant::now()
}

impl Connection {
    /// Connect to `socket`, which the user knows as `address`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(address: &str, socket: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&socket, CONNECT_TIME)?;
        stream.set_nodelay(true)?;
        let deadlined = Deadlined { stream, deadline: monotonic() };
        Ok(Connection { address: address.to_owned(), stream: BufReader::new(deadlined), reusable: true })
    }

    /// As the user knows it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether another request may follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Send a request and take its answer, both within `patience`.
    ///
    /// # Errors
    /// See [`Error`]; the connection is of no more use then.
    pub(crate) fn post(
        &mut self,
        path: &str,
        content_type: &str,
        body: &[u8],
        patience: Duration,
    ) -> Result<Answer, Error> {
        self.stream.get_mut().deadline = monotonic() + patience;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: visperf/{}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n\r\n",
            self.address,
            env!("CARGO_PKG_VERSION"),
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.reusable = false;
        let sent = self.stream.get_mut().write_all(&request);
        if let Err(error) = sent {
            return Err(explain(error));
        }
        let response = http::read(&mut self.stream).map_err(|error| match error {
            http::Error::Io(error) => explain(error),
            other @ (http::Error::ClosedBefore | http::Error::Malformed(_)) => other.into(),
        })?;
        self.reusable = response.keeps;
        Ok(Answer { status: response.status, body: response.body })
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the system has many errors; three mean something here")]
fn explain(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Late,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => http::Error::ClosedBefore.into(),
        _ => http::Error::Io(error).into(),
    }
}

impl Deadlined {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.deadline.saturating_duration_since(monotonic()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Deadlined {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            self.stream.set_read_timeout(self.left()?)?;
            // A signal that someone else answers, such as Ctrl-C or a stopped terminal, is no end.
            match self.stream.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

impl Write for Deadlined {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.stream.set_write_timeout(self.left()?)?;
            match self.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
