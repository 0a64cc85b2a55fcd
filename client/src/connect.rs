//! Connecting to a daemon: a trait, and its two implementations, TCP and a local socket.
//!
//! Shell. Programs with another route (through a proxy, to the first of several addresses) implement
//! [`Connect`]. Not here: TLS and the certificate of a proxy (`proxy_address`), HTTP (`exchange`).

use crate::error::Error;
use crate::proxy_address::{Tls, certificate_refused};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Timeout of connecting to one address.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Byte stream in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An open connection.
pub struct Connected {
    /// Stream of the connection.
    pub stream: Box<dyn Stream>,
    /// Address of the other end as the user knows it, for messages.
    pub address: String,
    /// Value of the header field `Host`.
    pub host: String,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Future of a connection attempt.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Connected, Error>> + Send + 'a>>;

/// Opens connections to a daemon; a client requests one when it has none.
pub trait Connect: Send + Sync {
    /// Connect, including the encryption.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if nothing answers, [`Error::Mistake`] if the user's input is invalid.
    fn connect(&self) -> Connecting<'_>;

    /// The address that is tried first, for messages before a connection is open.
    fn address(&self) -> String;
}

/// A daemon at `HOST:PORT`.
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

/// A daemon at the path of its local socket; the kernel reports the user to it.
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

/// A local socket as a URL.
fn address_of(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// Wrap a connection to the local socket at `path`.
#[must_use]
pub fn local(path: &Path, stream: UnixStream) -> Connected {
    Connected { stream: Box::new(stream), address: address_of(path), host: "localhost".to_owned() }
}

/// Connect to the first address of `HOST:PORT` that answers, and encrypt the connection if `tls` is given.
///
/// # Errors
/// The error of the last address; a certificate error, for which [`reason`] says what to do.
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

/// Text of the error, and what to do about a certificate error.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    certificate_refused(error).unwrap_or_else(|| error.to_string())
}
