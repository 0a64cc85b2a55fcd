//! A visitor of a proxy's door, or of what leads to a sensor: HTTP/1.1 on a kept connection, written here byte by byte so
//! that a test can say what no library would.
//!
//! Rules: who has an account logs in with each request, and believes no answer that does not prove the account; nothing of an
//! answer is thrown away. Included by tests and benches that ask as visitors do.
//! Not here: the way of the program itself (`visperf --via`).
#![allow(dead_code, unreachable_pub)] // each uses a part of it
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // a failure here is a failed test

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tunnel::digest::client::{Client, Login};

/// Bytes both ways, whatever is below.
pub trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Bytes for S {}

/// Where to ask.
#[derive(Clone)]
pub struct Place {
    at: SocketAddr,
    /// The name asked for, `HOST:PORT`.
    host: String,
    tls: Option<TlsConnector>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// A visitor and its connection.
pub struct Visitor {
    stream: Box<dyn Bytes>,
    host: String,
    client: Option<Client>,
    count: u64,
    buffer: Vec<u8>,
    /// What came behind the last answer.
    behind: Vec<u8>,
}

impl Place {
    /// Over TCP alone.
    pub fn plain(at: SocketAddr) -> Place {
        Place { at, host: at.to_string(), tls: None }
    }

    /// Over TLS, checked against this certificate; `name` is in it.
    pub fn encrypted(at: SocketAddr, name: &str, certificate: &Path) -> Place {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        Place { at, host: format!("{name}:{}", at.port()), tls: Some(TlsConnector::from(Arc::new(config))) }
    }

    /// A connection without an account.
    pub async fn connect(&self) -> Visitor {
        self.over(TcpStream::connect(self.at).await.unwrap()).await
    }

    /// The same from this address of the machine's own.
    pub async fn connect_from(&self, from: std::net::IpAddr) -> Visitor {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        self.over(socket.connect(self.at).await.unwrap()).await
    }

    /// The same, and the system keeps little here of what was not read yet, as asked for (socket(7), `SO_RCVBUF`).
    pub async fn connect_narrowly(&self, from: std::net::IpAddr, keeps_bytes: u32) -> Visitor {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(keeps_bytes).unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        self.over(socket.connect(self.at).await.unwrap()).await
    }

    async fn over(&self, stream: TcpStream) -> Visitor {
        stream.set_nodelay(true).unwrap();
        let name = self.host.rsplit_once(':').unwrap().0.to_owned();
        let stream: Box<dyn Bytes> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.connect(ServerName::try_from(name).unwrap(), stream).await.unwrap()),
        };
        Visitor {
            stream,
            host: self.host.clone(),
            client: None,
            count: 0,
            buffer: vec![0; 64 << 10],
            behind: Vec::new(),
        }
    }
}

/// A connection on which little comes, or nothing.
pub struct Slow(Box<dyn Bytes>);

impl Place {
    /// Connects from this address and then says nothing; or half of a request, within TLS, if it `speaks`. None if it is
    /// not let in so far.
    pub async fn connect_slowly(&self, from: std::net::IpAddr, speaks: bool) -> Option<Slow> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        let stream = socket.connect(self.at).await.ok()?;
        if !speaks {
            return Some(Slow(Box::new(stream)));
        }
        let name = ServerName::try_from(self.host.rsplit_once(':').unwrap().0.to_owned()).unwrap();
        let mut stream = self.tls.as_ref().unwrap().connect(name, stream).await.ok()?;
        stream.write_all(b"GET /d/UT-ICL/api/v1/domain.hosts HTTP/1.1\r\nHost: ").await.ok()?;
        Some(Slow(Box::new(stream)))
    }
}

impl Slow {
    /// Whether the other end gave it up.
    pub fn is_ended(&mut self) -> bool {
        let mut byte = [0];
        let mut into = tokio::io::ReadBuf::new(&mut byte);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(&mut self.0).poll_read(&mut cx, &mut into).is_ready()
    }
}

impl Visitor {
    /// Logs in by this account from now on.
    #[must_use]
    pub fn with_account(self, name: &str, secret: &str) -> Visitor {
        let login = Login { name: name.to_owned(), secret: secret.to_owned(), allows_md5: false };
        Visitor { client: Some(Client::new(login)), ..self }
    }

    /// What is answered to a GET of `path`, after a login where one is asked for.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.get_counting(path, &AtomicU64::new(0)).await
    }

    /// The same; the bytes of the body are counted as they come.
    pub async fn get_counting(&mut self, path: &str, counted: &AtomicU64) -> Answer {
        let mut has_answered = false;
        loop {
            self.count += 1;
            let cnonce = format!("{:016x}", self.count);
            let said = self.client.as_mut().and_then(|client| client.authorization("GET", path, &cnonce));
            let field = said.map(|said| format!("Authorization: {said}\r\n")).unwrap_or_default();
            let answer = self.exchange_counting(&self.request(path, &field), counted).await;
            let Some(client) = &mut self.client else { return answer };
            if answer.status == 401 && !has_answered {
                let offered = answer.fields("www-authenticate");
                has_answered = !field.is_empty();
                if client.handle_challenge(offered.into_iter()).is_ok() {
                    continue;
                }
            } else if let Some(info) = answer.fields("authentication-info").first() {
                client.handle_answer(Some(info)).unwrap();
            }
            return answer;
        }
    }

    /// The bytes of a GET with this field, if any, as `get` sends them.
    pub fn request(&self, path: &str, field: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{field}\r\n", self.host).into_bytes()
    }

    /// Sends these bytes, whatever they are, and reads one answer.
    pub async fn exchange(&mut self, bytes: &[u8]) -> Answer {
        self.exchange_counting(bytes, &AtomicU64::new(0)).await
    }

    async fn exchange_counting(&mut self, bytes: &[u8], counted: &AtomicU64) -> Answer {
        self.send(bytes).await;
        let mut body = std::mem::take(&mut self.behind);
        let end = loop {
            if let Some(at) = body.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more(&mut body, counted).await, "expected an answer, found the end: {body:?}");
        };
        let rest = body.split_off(end);
        let head = String::from_utf8(std::mem::replace(&mut body, rest)).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new() };
        let length: usize = answer.fields("content-length").first().map_or(0, |told| told.parse().unwrap());
        while body.len() < length {
            assert!(self.more(&mut body, counted).await, "expected the rest of an answer, found the end");
        }
        self.behind = body.split_off(length);
        answer.body = body;
        answer
    }

    async fn more(&mut self, into: &mut Vec<u8>, counted: &AtomicU64) -> bool {
        let count = self.stream.read(&mut self.buffer).await.unwrap();
        counted.fetch_add(count as u64, Ordering::Relaxed);
        into.extend_from_slice(&self.buffer[..count]);
        count > 0
    }

    /// What came behind the last answer, or comes now, as it is, so many bytes at most; nothing where the other end has closed.
    /// A caller that stops waiting for it loses none of it.
    pub async fn some(&mut self, most: usize) -> Vec<u8> {
        if !self.behind.is_empty() {
            let rest = self.behind.split_off(most.min(self.behind.len()));
            return std::mem::replace(&mut self.behind, rest);
        }
        let most = most.min(self.buffer.len());
        let count = self.stream.read(&mut self.buffer[..most]).await.unwrap_or(0);
        self.buffer[..count].to_vec()
    }

    /// Sends these bytes and waits for nothing.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends these bytes; false when the other end has closed.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Everything that comes until the other end closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        // A connection that is reset has ended too.
        let _ = self.stream.read_to_end(&mut all).await;
        all
    }
}

impl Answer {
    /// The values of the fields of this name, written small as the door writes them.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let of = |line: &'_ str| line.split_once(": ").filter(|(found, _)| *found == name).is_some();
        self.head.lines().filter(|line| of(line)).map(|line| &line[name.len() + 2..]).collect()
    }
}
