//! HTTP client of a proxy's listener, or of a path to a sensor: HTTP/1.1 on a persistent connection, written
//! byte by byte so that a test can send what no library would send.
//!
//! Rules: a client with an account logs in with each request, and rejects an answer that does not prove the
//! account; no byte of an answer is dropped. Included by tests and benches.
//! Not here: the client of the program itself (`visperf --via`).
#![allow(dead_code, unreachable_pub)] // each test uses a part of it
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

/// Byte stream in both directions.
pub trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Bytes for S {}

/// Server to query.
#[derive(Clone)]
pub struct Place {
    at: SocketAddr,
    /// Value of the header field `Host`, `HOST:PORT`.
    host: String,
    tls: Option<TlsConnector>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// A client and its connection.
pub struct Visitor {
    stream: Box<dyn Bytes>,
    host: String,
    client: Option<Client>,
    count: u64,
    buffer: Vec<u8>,
    /// Bytes received after the last answer.
    behind: Vec<u8>,
}

impl Place {
    /// Server over plain TCP.
    pub fn plain(at: SocketAddr) -> Place {
        Place { at, host: at.to_string(), tls: None }
    }

    /// Server over TLS, verified with this certificate, which contains `name`.
    pub fn encrypted(at: SocketAddr, name: &str, certificate: &Path) -> Place {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_root_certificates(roots).with_no_client_auth();
        Place { at, host: format!("{name}:{}", at.port()), tls: Some(TlsConnector::from(Arc::new(config))) }
    }

    /// Connect without an account.
    pub async fn connect(&self) -> Visitor {
        self.over(TcpStream::connect(self.at).await.unwrap()).await
    }

    /// Connect without an account from a local address.
    pub async fn connect_from(&self, from: std::net::IpAddr) -> Visitor {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from, 0)).unwrap();
        self.over(socket.connect(self.at).await.unwrap()).await
    }

    /// Connect as [`Place::connect_from`], with a kernel receive buffer of `keeps_bytes` (socket(7),
    /// `SO_RCVBUF`).
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

/// A connection on which little or nothing is sent.
pub struct Slow(Box<dyn Bytes>);

impl Place {
    /// Connect from this address and then send nothing, or half of a request within TLS if it `speaks`.
    /// `None` if the connection is refused.
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
    /// Whether the server has closed the connection.
    pub fn is_ended(&mut self) -> bool {
        let mut byte = [0];
        let mut into = tokio::io::ReadBuf::new(&mut byte);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::Pin::new(&mut self.0).poll_read(&mut cx, &mut into).is_ready()
    }
}

impl Visitor {
    /// Log in by this account from now on.
    #[must_use]
    pub fn with_account(self, name: &str, secret: &str) -> Visitor {
        let login = Login { name: name.to_owned(), secret: secret.to_owned(), allows_md5: false };
        Visitor { client: Some(Client::new(login)), ..self }
    }

    /// The answer to a GET of `path`, after a login if one is requested.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.get_counting(path, &AtomicU64::new(0)).await
    }

    /// The same; counts the bytes of the body as they arrive.
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

    /// The bytes of a GET with this header field, if any, as `get` sends them.
    pub fn request(&self, path: &str, field: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{field}\r\n", self.host).into_bytes()
    }

    /// Send these bytes unchanged, and read one answer.
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
        let length: usize = answer.fields("content-length").first().map_or(0, |text| text.parse().unwrap());
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

    /// The next bytes after the last answer, at most `most`; empty if the server has closed the connection.
    /// Cancelling the wait loses no bytes.
    pub async fn some(&mut self, most: usize) -> Vec<u8> {
        if !self.behind.is_empty() {
            let rest = self.behind.split_off(most.min(self.behind.len()));
            return std::mem::replace(&mut self.behind, rest);
        }
        let most = most.min(self.buffer.len());
        let count = self.stream.read(&mut self.buffer[..most]).await.unwrap_or(0);
        self.buffer[..count].to_vec()
    }

    /// Send these bytes without waiting for an answer.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Send these bytes. Returns false if the server has closed the connection.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Read until the server closes the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        // A connection that was reset has ended, too.
        let _ = self.stream.read_to_end(&mut all).await;
        all
    }
}

impl Answer {
    /// The values of the header fields of this name, in lower case as the proxy writes them.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let of = |line: &'_ str| line.split_once(": ").filter(|(found, _)| *found == name).is_some();
        self.head.lines().filter(|line| of(line)).map(|line| &line[name.len() + 2..]).collect()
    }
}
