//! Listening sockets of a daemon: TCP, and a local socket whose clients the kernel identifies.
//!
//! Rules: every user with access to its folder may use a local socket; a file that is not a socket is never
//! removed, and a socket on which another daemon listens is not touched. The path may be longer than a socket
//! address (108 bytes, unix(7)).
//! Not here: serving connections (`server`).

use crate::dispatch::source::Source;
use crate::http::config::Listen;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use wire::query::Viewer;

/// Longest path in a socket address: 108 bytes, including the final zero.
const PATH_MAX_BYTES: usize = 107;
/// Every local user may connect: the user id decides what it may see.
const MODE: u32 = 0o666;

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}; choose another address or port, or stop what uses it")]
    Bind {
        /// The address.
        address: Listen,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The path cannot be bound.
    #[error(
        "cannot listen on the socket {path}: {source}; its folder must exist and be writable by this user"
    )]
    BindLocal {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another program listens at the path.
    #[error("cannot listen on the socket {0}: another daemon answers there; stop it, or choose another path")]
    InUse(PathBuf),
    /// The path is a file of another kind.
    #[error(
        "cannot listen on the socket {0}: expected a socket or nothing, found another kind of file; remove it, or choose another path"
    )]
    NoSocket(PathBuf),
    /// The listener does not report its address.
    #[error("cannot read the address of the listener: {0}")]
    Address(io::Error),
}

/// Bind an address.
///
/// # Errors
/// If the address is in use, not of this host, or not allowed.
pub async fn bind(address: Listen) -> Result<TcpListener, Error> {
    TcpListener::bind(address.address()).await.map_err(|source| Error::Bind { address, source })
}

/// A local socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file: another file at the path is not removed.
    file: Option<(u64, u64)>,
}

impl LocalListener {
    /// Listen at `path`. The socket of an earlier daemon is removed.
    ///
    /// # Errors
    /// If another daemon listens there, the file is of another kind, or the socket cannot be created.
    pub fn bind(path: &Path) -> Result<LocalListener, Error> {
        let cannot = |source| Error::BindLocal { path: path.to_owned(), source };
        let (_folder, address) = addressable(path).map_err(cannot)?;
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(Error::NoSocket(path.to_owned()));
            }
            if std::os::unix::net::UnixStream::connect(&address).is_ok() {
                return Err(Error::InUse(path.to_owned()));
            }
            std::fs::remove_file(path).map_err(cannot)?;
        }
        let listener = UnixListener::bind(&address).map_err(cannot)?;
        let file = std::fs::symlink_metadata(path).map(|made| (made.dev(), made.ino())).ok();
        let listener = LocalListener { listener, path: path.to_owned(), file };
        std::fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(cannot)?;
        Ok(listener)
    }

    /// Path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let found = std::fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino())).ok();
        if found.is_some() && found == self.file {
            // If it stays, the next daemon removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Connect to a local socket, whose path may be long.
///
/// # Errors
/// Error of the operating system.
pub fn connect(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    let (_folder, address) = addressable(path)?;
    std::os::unix::net::UnixStream::connect(address)
}

/// `path` in a form that fits into a socket address: through an open descriptor of its folder if it is too
/// long.
fn addressable(path: &Path) -> io::Result<(Option<File>, PathBuf)> {
    if path.as_os_str().len() <= PATH_MAX_BYTES {
        return Ok((None, path.to_owned()));
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename));
    };
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY).bits().cast_signed())
        .open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok((Some(folder), short))
}

/// A TCP or local listener.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Local(LocalListener),
}

/// An accepted connection.
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Local(UnixStream, Source),
}

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer))
            }
            Listener::Local(local) => {
                let (stream, _) = local.listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                let viewer = match uid {
                    0 => Viewer::Trusted,
                    uid if uid == rustix::process::geteuid().as_raw() => Viewer::Owner(uid),
                    uid => Viewer::User(uid),
                };
                Ok(Accepted::Local(stream, Source::Local { uid, viewer }))
            }
        }
    }
}
