//! What is below a connection, whatever stands between.
//!
//! Not here: what is read and written there (`guarded_stream`).

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A stream over TCP.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Its connection.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl<S: Socket> Socket for TlsStream<S> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0.tcp()
    }
}

/// The system keeps so many bytes at most that its peer has not taken; where it refuses it keeps what it kept.
pub(crate) fn narrow(stream: &TcpStream, len_bytes: usize) {
    if let Err(error) = socket2::SockRef::from(stream).set_send_buffer_size(len_bytes) {
        tracing::debug!(%error, "the system keeps as much as it likes of what is followed");
    }
}
