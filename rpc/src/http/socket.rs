//! Access to the socket below a connection, through any layers.
//!
//! Not here: reading and writing (`guarded_stream`).

use std::os::fd::{AsFd, BorrowedFd};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A stream over a socket of the operating system.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Descriptor of the socket.
    fn socket(&self) -> BorrowedFd<'_>;
}

impl Socket for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Socket for UnixStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl<S: Socket> Socket for TlsStream<S> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.get_ref().0.socket()
    }
}

/// Set the size of the kernel's send buffer to `len_bytes`; if that fails, the default stays.
pub(crate) fn narrow(socket: BorrowedFd<'_>, len_bytes: usize) {
    if let Err(error) = socket2::SockRef::from(&socket).set_send_buffer_size(len_bytes) {
        tracing::debug!(%error, "the send buffer of a followed connection could not be made smaller");
    }
}
