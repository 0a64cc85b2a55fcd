//! One TCP connection to a daemon, one request at a time, each with a deadline.
//!
//! Not here: what is asked (`json`, `xml`), trying again (the commands).

use crate::client::http::{self, Begun, Lines, Response};
use crate::output::note;
use overlay::door::{self, Wire};
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// The shortest time that is waited at once: none would mean for ever.
const SHORTEST: Duration = Duration::from_millis(1);

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
    /// The certificate of the other end does not fit; the text says what to do.
    #[error("{0}")]
    Certificate(String),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    address: String,
    /// What the daemon is called in a request.
    host: String,
    stream: BufReader<Deadlined>,
    reusable: bool,
}

#[derive(Debug)]
struct Deadlined {
    stream: Wire,
    deadline: Instant,
    /// When to say that the answer is waited for, and of whom.
    tell: Option<(Instant, String)>,
}

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// At most.
    pub(crate) most: Duration,
    /// After so long who waits is told; never where waiting is what was asked for.
    pub(crate) tell_after: Option<Duration>,
}

#[allow(clippy::disallowed_methods)] // The shell's clock for deadlines of sockets.
fn monotonic() -> Instant {
    Instant::now()
}

impl Connection {
    /// Connect to `socket`, which the user knows as `address`; `wire` says what is spoken there.
    ///
    /// # Errors
    /// What the system says, or `wire`.
    pub(crate) fn open(
        address: &str,
        socket: SocketAddr,
        wire: impl FnOnce(TcpStream) -> Result<Wire, String>,
    ) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&socket, CONNECT_TIME)?;
        stream.set_nodelay(true)?;
        Ok(Connection::over(address, wire(stream).map_err(io::Error::other)?))
    }

    /// Connect to the local socket at `path`, by which the daemon knows the user.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open_local(address: &str, path: &Path) -> io::Result<Connection> {
        let connection = Connection::over(address, Wire::Within(rpc::listener::connect(path)?));
        Ok(Connection { host: "localhost".to_owned(), ..connection })
    }

    /// Over what leads to whoever the user knows as `address`.
    pub(crate) fn over(address: &str, stream: Wire) -> Connection {
        let deadlined = Deadlined { stream, deadline: monotonic(), tell: None };
        let (address, host) = (address.to_owned(), address.to_owned());
        Connection { address, host, stream: BufReader::new(deadlined), reusable: true }
    }

    /// As the user knows it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether another request may follow.
    pub(crate) fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Send a request with more `fields` in its head, each a line, and take its answer, both within `patience`.
    ///
    /// # Errors
    /// See [`Error`]; the connection is of no more use then.
    pub(crate) fn post(
        &mut self,
        path: &str,
        fields: &str,
        body: &[u8],
        patience: Patience,
    ) -> Result<Response, Error> {
        let length = format!("Content-Length: {}\r\n", body.len());
        self.send("POST", path, &[fields, &length], body, patience)?;
        let response = http::read(&mut self.stream).map_err(of_answer)?;
        self.reusable = response.keeps;
        Ok(response)
    }

    /// Send a GET likewise, and take its answer or the head of one that goes on.
    ///
    /// # Errors
    /// See [`Error`]; the connection is of no more use then.
    pub(crate) fn get(&mut self, path: &str, fields: &str, patience: Patience) -> Result<Begun, Error> {
        self.send("GET", path, &[fields], &[], patience)?;
        let begun = http::begin(&mut self.stream).map_err(of_answer)?;
        self.reusable = matches!(&begun, Begun::Whole(response) if response.keeps);
        Ok(begun)
    }

    /// The next line of an answer that goes on, within `most`; none at its end.
    ///
    /// # Errors
    /// See [`Error`]; the connection is of no more use then.
    pub(crate) fn line(&mut self, lines: &mut Lines, most: Duration) -> Result<Option<String>, Error> {
        let stream = self.stream.get_mut();
        // What was told of waiting for the first answer is not true of those that follow.
        (stream.deadline, stream.tell) = (monotonic() + most, None);
        lines.next(&mut self.stream).map_err(of_answer)
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        fields: &[&str],
        body: &[u8],
        patience: Patience,
    ) -> Result<(), Error> {
        let now = monotonic();
        let stream = self.stream.get_mut();
        stream.deadline = now + patience.most;
        stream.tell = patience.tell_after.map(|after| (now + after, self.address.clone()));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: visperf/{}\r\n{}\r\n",
            self.host,
            env!("CARGO_PKG_VERSION"),
            fields.concat()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.reusable = false;
        self.stream.get_mut().write_all(&request).map_err(explain)
    }
}

fn of_answer(error: http::Error) -> Error {
    match error {
        http::Error::Io(error) => explain(error),
        other @ (http::Error::ClosedBefore | http::Error::Malformed(_)) => other.into(),
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the system has many errors; five mean something here")]
fn explain(error: io::Error) -> Error {
    if let Some(reason) = door::certificate_refused(&error) {
        return Error::Certificate(reason);
    }
    match error.kind() {
        _ if is_late(&error) => Error::Late,
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => http::Error::ClosedBefore.into(),
        // The library of TLS tells where to read about it.
        io::ErrorKind::UnexpectedEof => {
            let plain =
                "the connection ended in the midst of it: the other end, or something between, was shut down";
            http::Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, plain)).into()
        }
        _ => http::Error::Io(error).into(),
    }
}

impl Deadlined {
    fn tell_waiting(&mut self) {
        if let Some((_, address)) = self.tell.take_if(|(when, _)| *when <= monotonic()) {
            let left = self.deadline.saturating_duration_since(monotonic()).as_secs();
            note(&format!("waiting for {address} to answer, {left} s more (Ctrl-C ends)"));
        }
    }

    fn left(&self) -> io::Result<Duration> {
        match self.deadline.saturating_duration_since(monotonic()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }

    /// Do this on the stream, which waits until the deadline at most.
    fn in_time(&mut self, mut act: impl FnMut(&mut Wire) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            let mut wait = self.left()?;
            if let Some((when, _)) = &self.tell {
                wait = wait.min(when.saturating_duration_since(monotonic()).max(SHORTEST));
            }
            // Both: within TLS whoever writes has to read as well, first of all the handshake, and the other way round.
            self.stream.set_timeout(Some(wait))?;
            // A signal that someone else answers, such as Ctrl-C or a stopped terminal, is no end.
            match act(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) && self.tell.is_some() => self.tell_waiting(),
                done => return done,
            }
        }
    }
}

impl Read for Deadlined {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.in_time(|stream| stream.read(into))
    }
}

impl Write for Deadlined {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.in_time(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.in_time(|stream| stream.flush().map(|()| 0)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::{Arc, mpsc};
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{
        ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned, crypto,
    };

    /// A wire that would be encrypted, if anybody answered.
    fn encrypted(stream: TcpStream) -> Result<Wire, String> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), "proxy.example".try_into().unwrap()).unwrap();
        Ok(Wire::Encrypted(Box::new(StreamOwned::new(session, stream))))
    }

    #[test]
    fn who_accepts_and_says_nothing_is_given_up_within_the_deadline() {
        let wires: [fn(TcpStream) -> Result<Wire, String>; 2] = [|stream| Ok(Wire::Plain(stream)), encrypted];
        for wire in wires {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let mut connection = Connection::open("there", address, wire).unwrap();
            let (_silent, _) = listener.accept().unwrap();
            let patience = Patience { most: Duration::from_millis(200), tell_after: None };
            let (told, asked) = mpsc::sync_channel(1);
            // In a thread, so that one that waits for ever is seen to.
            std::thread::spawn(move || told.send(connection.post("/", "", b"{}", patience)));
            let answered = asked.recv_timeout(Duration::from_secs(30)).expect("it is given up");
            assert!(matches!(answered, Err(Error::Late)), "{answered:?}");
        }
    }

    /// One handshake with a certificate that no authority stands for.
    fn serve_unknown(listener: &TcpListener) {
        let made = rcgen::generate_simple_self_signed(["proxy.example".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let session = ServerConnection::new(Arc::new(config)).unwrap();
        let _ = StreamOwned::new(session, stream).read(&mut [0]);
    }

    #[test]
    fn a_certificate_of_an_unknown_issuer_names_the_option_that_helps() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve_unknown(&listener));
        let mut connection = Connection::open("there", address, encrypted).unwrap();
        let patience = Patience { most: Duration::from_secs(30), tell_after: None };
        let refused = connection.post("/", "", b"{}", patience).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Certificate(_)), "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("UnknownIssuer") && text.contains("--certificate FILE"), "{text}");
        drop(connection);
        server.join().unwrap();
    }
}
