//! How a client connects: a trait, and the two ways that need nothing else, TCP and a local socket.
//!
//! Shell. Programs with a way of their own (through a proxy, to the first of several addresses) implement [`Connect`].
//! Not here: TLS and what a proxy is known by (`door`), HTTP (`exchange`).

use crate::door::{Tls, certificate_refused};
use crate::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// How long connecting to one address may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that stands.
pub struct Connected {
    /// The bytes.
    pub stream: Box<dyn Stream>,
    /// The other end, as the user knows it: in messages.
    pub address: String,
    /// What the field `Host` of each request says.
    pub host: String,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A connection that is being made.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + 'a>>;

/// Makes connections to a daemon; a client asks for one when it has none.
pub trait Connect: Send + Sync {
    /// Connect. What is encrypted is so when this returns.
    ///
    /// # Errors
    /// [`Error::Unreachable`] where nothing answers, [`Error::Mistake`] where what the user gave cannot be used.
    fn connect(&self) -> Connecting<'_>;

    /// The address that is tried first: in messages, before a connection stands.
    fn address(&self) -> String;
}

/// A daemon by `HOST:PORT`.
#[derive(Clone, Debug)]
pub struct Tcp(pub String);

impl Connect for Tcp {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            tcp(&self.0, None).await.map_err(|error| {
                Error::Unreachable(format!("no daemon answers at {}: {}", self.0, reason(&error)))
            })
        })
    }

    fn address(&self) -> String {
        self.0.clone()
    }
}

/// A daemon by the path of its local socket; it learns which user asks.
#[derive(Clone, Debug)]
pub struct Local(pub PathBuf);

impl Connect for Local {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connected = UnixStream::connect(&self.0).await;
            connected.map(|stream| local(&self.0, stream)).map_err(|error| {
                Error::Unreachable(format!("no daemon answers at {}: {error}", self.address()))
            })
        })
    }

    fn address(&self) -> String {
        address_of(&self.0)
    }
}

/// A local socket as an address, as people write it.
fn address_of(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// What a connection to the local socket at `path` is.
#[must_use]
pub fn local(path: &Path, stream: UnixStream) -> Connected {
    Connected { stream: Box::new(stream), address: address_of(path), host: "localhost".to_owned() }
}

/// Connects to the first of the addresses of `HOST:PORT` that answers, and encrypts where `tls` says what the other end is known by.
///
/// # Errors
/// What the system says of the last address; what is wrong with a certificate ([`reason`] says what to do).
pub async fn tcp(address: &str, tls: Option<&Tls>) -> io::Result<Connected> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for socket in tokio::net::lookup_host(address).await? {
        match timeout(CONNECT_TIME, TcpStream::connect(socket)).await {
            Ok(Ok(stream)) => return over(address, stream, tls).await,
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connection timed out"),
        }
    }
    Err(last)
}

async fn over(address: &str, stream: TcpStream, tls: Option<&Tls>) -> io::Result<Connected> {
    stream.set_nodelay(true)?;
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer to the handshake of TLS");
            Box::new(timeout(CONNECT_TIME, tls.over(stream)).await.map_err(|_| late())??)
        }
    };
    Ok(Connected { stream, address: address.to_owned(), host: address.to_owned() })
}

/// Why there is no connection, and what to do where that is a certificate.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    certificate_refused(error).unwrap_or_else(|| error.to_string())
}
