//! The sockets on which a daemon listens: TCP, and a local one whose clients the kernel identifies.
//!
//! Rules: every user with access to its folder may use a local socket; a file that is no socket is never removed, and a socket
//! on which another daemon listens is left to it. The path may be longer than an address of a socket (108 bytes, unix(7)).
//! Not here: what is served (`server`).

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

/// Longest path that is an address of a socket: 108 bytes, with the zero at its end.
const PATH_MAX_BYTES: usize = 107;
/// Every local user may connect: its identity decides what it sees.
const MODE: u32 = 0o666;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}; choose another address or port, or stop what uses it")]
    Bind {
        /// Where.
        address: Listen,
        /// What the system said.
        source: io::Error,
    },
    /// The path cannot be bound.
    #[error(
        "cannot listen on the socket {path}: {source}; its folder must exist and be writable by this user"
    )]
    BindLocal {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another program listens there.
    #[error("cannot listen on the socket {0}: another daemon answers there; stop it, or choose another path")]
    InUse(PathBuf),
    /// There is something else at the path.
    #[error(
        "cannot listen on the socket {0}: expected a socket or nothing, found another kind of file; remove it, or choose another path"
    )]
    NoSocket(PathBuf),
    /// The listener does not report its address.
    #[error("cannot read the address of the listener: {0}")]
    Address(io::Error),
}

/// Binds an address.
///
/// # Errors
/// If the address is taken, not of this machine, or not allowed.
pub async fn bind(address: Listen) -> Result<TcpListener, Error> {
    TcpListener::bind(address.address()).await.map_err(|source| Error::Bind { address, source })
}

/// A local socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: another one at the path is not removed.
    file: Option<(u64, u64)>,
}

impl LocalListener {
    /// Listens at `path`. What an earlier daemon left there is removed.
    ///
    /// # Errors
    /// If another daemon answers there, something else than a socket is there, or it cannot be made.
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

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let found = std::fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino())).ok();
        if found.is_some() && found == self.file {
            // Where it stays, the next daemon removes it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Connects to a local socket, whose path may be long.
///
/// # Errors
/// What the system says.
pub fn connect(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    let (_folder, address) = addressable(path)?;
    std::os::unix::net::UnixStream::connect(address)
}

/// `path` as it fits into an address of a socket: by an open descriptor of its folder where it is too long.
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

/// What a server accepts from.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Local(LocalListener),
}

/// A connection that was accepted.
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
