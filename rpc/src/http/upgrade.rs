//! Protocol upgrade: connections and requests that are not calls are passed on unchanged, such as tunnels of
//! the proxy.
//!
//! ```text
//! a connection ── its first byte ──▶ Upgrade::takes_plain ─▶ passed on, before TLS
//!      │ TLS
//!      └── its first bytes ────────▶ equal Upgrade::upgrade ─▶ passed on, before HTTP
//!      └── a request for /tunnel[/…] ─▶ its whole body ─▶ Upgrade::ask ─▶ an answer
//! ```
//! Rules: a passed-on connection counts as a connection of its source until it ends; the first bytes have the
//! deadline of a header, and none of them is lost; a body has the limits of every body.
//! Not here: the protocols (the proxy).

use crate::http::socket::Socket;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Future of the processing of a connection or a request.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Byte stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A request that is not a call.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeRequest<'a> {
    /// Whether it is a POST, or else a GET.
    pub is_post: bool,
    /// Path, which starts with [`Upgrade::path`].
    pub path: &'a str,
    /// Query after the `?`.
    pub query: &'a str,
    /// Body of the request.
    pub body: &'a [u8],
    /// Address of the client.
    pub source: SocketAddr,
}

/// Answer to an [`UpgradeRequest`].
#[derive(Clone, Debug)]
pub struct UpgradeAnswer {
    /// HTTP status code.
    pub status: u16,
    /// Body, as binary data.
    pub body: Vec<u8>,
}

/// Processes connections and requests that are not calls.
pub trait Upgrade: Send + Sync {
    /// Whether it takes a connection that starts with `byte`, before TLS.
    fn takes_plain(&self, byte: u8) -> bool;

    /// Process such a connection, until it ends.
    fn take_plain(&self, stream: TcpStream, source: SocketAddr) -> Work<'_, ()>;

    /// First bytes of a connection that it takes, within TLS if there is TLS.
    fn upgrade(&self) -> &'static [u8];

    /// Process such a connection, until it ends.
    fn take_upgrade(&self, stream: Box<dyn Duplex>, source: SocketAddr) -> Work<'_, ()>;

    /// Path of its requests; it also takes the paths below it.
    fn path(&self) -> &'static str;

    /// Process one request for such a path.
    fn ask<'a>(&'a self, asked: UpgradeRequest<'a>) -> Work<'a, UpgradeAnswer>;
}

/// A stream with first bytes that were read already.
pub(crate) struct Prefixed<S> {
    begins: Vec<u8>,
    read: usize,
    stream: S,
}

impl<S: AsyncRead + Unpin> Prefixed<S> {
    /// Read as many bytes as are needed to see whether `stream` starts with `expected`. Returns whether it
    /// does; a stream that ends earlier does not.
    pub(crate) async fn look(mut stream: S, expected: &[u8]) -> io::Result<(Prefixed<S>, bool)> {
        let mut begins = vec![0; expected.len()];
        let mut read = 0;
        while read < begins.len() && expected.starts_with(&begins[..read]) {
            match stream.read(&mut begins[read..]).await? {
                0 => break,
                count => read += count,
            }
        }
        begins.truncate(read);
        let is_it = begins == expected;
        Ok((Prefixed { begins, read: 0, stream }, is_it))
    }
}

impl<S: Socket> Socket for Prefixed<S> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Prefixed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let left = &this.begins[this.read..];
        if left.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, out);
        }
        let count = left.len().min(out.remaining());
        out.put_slice(&left[..count]);
        this.read += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Prefixed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn what_was_looked_at_is_read_again() {
        let check = async |said: &[u8], expected: bool| {
            let (mut from, to) = tokio::io::duplex(64);
            // In pieces, as a network may deliver it.
            for part in said.chunks(5) {
                from.write_all(part).await.unwrap();
            }
            drop(from);
            let (mut prefixed, is_it) = Prefixed::look(to, b"GET /tunnel ").await.unwrap();
            let mut read = Vec::new();
            prefixed.read_to_end(&mut read).await.unwrap();
            assert_eq!((read.as_slice(), is_it), (said, expected));
        };
        check(b"GET /tunnel HTTP/1.1\r\n\r\n", true).await;
        check(b"GET /tunnel/abc HTTP/1.1\r\n\r\n", false).await;
        check(b"POST /RPC2 HTTP/1.1\r\n\r\n", false).await;
        check(b"GET /tun", false).await;
        check(b"", false).await;
    }
}
