//! Target of requests: a daemon of this machine, or a proxy with an account there.
//!
//! Rule: MD5 challenges of a proxy are never answered.
//! Not here: addresses of proxies, HTTP, and authentication there (`::client`).

use client::connect::{self, Connect, Connected, Connecting, Local};
use client::proxy_address::{ProxyAddress, Tls, certificate_refused};
use client::{Error, Login};
use overlay::identity::{secret, state_folder};
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::id::DomainName;

/// Target of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// A daemon of this machine, by address.
    Here(SocketAddr),
    /// A daemon of this machine, by its local socket, which identifies the user.
    Local(PathBuf),
    Proxy(Arc<Proxy>),
}

impl Where {
    /// The default daemon of this machine: the first of the usual sockets that accepts a connection, else
    /// `address`.
    #[must_use]
    pub fn usual(address: SocketAddr) -> Where {
        let mut sockets = state_folder::usual_sockets().into_iter();
        let answers = |path: &PathBuf| UnixStream::connect(path).is_ok();
        sockets.find(answers).map_or(Where::Here(address), Where::Local)
    }

    /// The daemon with this state folder, by its local socket.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_folder(folder: &Path) -> Result<Where, String> {
        let first = state_folder::sockets_of(folder).into_iter().next();
        first.or_else(|| state_folder::listen_socket(folder)).map(Where::Local).ok_or_else(|| {
            format!(
                "no daemon with a local socket runs with the state folder {} (--state, VISPERF_STATE), or its file `listen` may not be read",
                folder.display()
            )
        })
    }
}

impl From<SocketAddr> for Where {
    fn from(address: SocketAddr) -> Where {
        Where::Here(address)
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Where::Here(address) => address.fmt(f),
            Where::Local(path) => write!(f, "{}", path.display()),
            Where::Proxy(proxy) => proxy.door.fmt(f),
        }
    }
}

/// Address of a proxy, the account there, and the means to verify the proxy.
pub struct Proxy {
    door: ProxyAddress,
    name: String,
    secret: String,
    tls: Option<Tls>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({}, {}, …)", self.door, self.name)
    }
}

impl PartialEq for Proxy {
    fn eq(&self, other: &Proxy) -> bool {
        (&self.door, &self.name) == (&other.door, &other.name)
    }
}

impl Eq for Proxy {}

impl Proxy {
    /// A proxy at this address, with the account of this name.
    ///
    /// # Errors
    /// If the secret cannot be read, or the proxy could not be verified.
    pub fn open(
        door: ProxyAddress,
        name: &str,
        secret_file: &Path,
        certificate: Option<&Path>,
    ) -> Result<Proxy, String> {
        let secret = secret::read(secret_file)?;
        let tls = door.tls(certificate)?;
        Ok(Proxy { door, name: name.to_owned(), secret, tls })
    }

    /// Credentials for the proxy.
    pub(super) fn login(&self) -> Login {
        Login { name: self.name.clone(), secret: self.secret.clone(), allows_md5: false }
    }
}

/// Parse the address of a proxy, with or without a domain behind it.
///
/// # Errors
/// If it is malformed; the text says what was expected.
pub fn door(text: &str) -> Result<ProxyAddress, String> {
    ProxyAddress::parse(text, |behind| {
        let is_domain = behind.strip_prefix("/d/").is_some_and(|name| DomainName::try_from(name).is_ok());
        match behind.is_empty() || is_domain {
            true => Ok(()),
            false => Err(format!("expected /d/DOMAIN behind the proxy, found {behind:?}")),
        }
    })
}

/// The domain in the address of a proxy.
#[must_use]
pub fn domain(door: &ProxyAddress) -> Option<&str> {
    door.behind.strip_prefix("/d/")
}

impl Where {
    async fn connected(&self) -> Result<Connected, Error> {
        let started =
            |why: &dyn fmt::Display| Error::Unreachable(format!("{why}; start one with: visperf up"));
        match self {
            Where::Here(address) => connect::tcp(&address.to_string(), None)
                .await
                .map_err(|error| started(&format!("no daemon answers at {address}: {error}"))),
            Where::Local(path) => Local(path.clone()).connect().await.map_err(|error| started(&error)),
            Where::Proxy(proxy) => {
                let connected = connect::tcp(&proxy.door.to_string(), proxy.tls.as_ref()).await;
                connected.map_err(|error| {
                    Error::Unreachable(match certificate_refused(&error) {
                        Some(reason) => format!("nothing was sent to {self}: {reason}"),
                        None => format!("no proxy answers at {self}: {error}; see docs/firewalls.md"),
                    })
                })
            }
        }
    }
}

impl Connect for Where {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(self.connected())
    }

    fn address(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_domain_stands_behind_a_door_or_nothing() {
        let check = |text: &str, expected: Option<Option<&str>>| {
            let found = door(text).ok();
            assert_eq!(found.as_ref().map(domain), expected, "{text}");
        };
        check("p.example:99/d/UT-ICL/", Some(Some("UT-ICL")));
        check("https://proxy.example:443/", Some(None));
        for wrong in ["p.example/RPC2", "p.example/d/a b", "p.example/d/UT-ICL/wn01", "p.example/d/"] {
            check(wrong, None);
        }
        let message = door("p.example/RPC2").unwrap_err();
        assert!(message.contains("expected /d/DOMAIN behind the proxy, found \"/RPC2\""), "{message}");
    }

    #[test]
    fn the_socket_of_a_folder_is_in_it_or_where_its_daemon_wrote() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Where::of_folder(folder.path()).unwrap_err().contains("--state"));
        let listen = format!("127.0.0.1:7317\n{}/run/elsewhere/sensor.sock\n", state_folder::SOCKET_MARK);
        std::fs::write(folder.path().join(state_folder::LISTEN_FILE), listen).unwrap();
        let written = Where::Local(PathBuf::from("/run/elsewhere/sensor.sock"));
        assert_eq!(Where::of_folder(folder.path()), Ok(written));
        let own = folder.path().join("sensor.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&own).unwrap();
        assert_eq!(Where::of_folder(folder.path()), Ok(Where::Local(own)));
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by_and_a_secret_no_other_user_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, secret) = (folder.path().join("empty.pem"), folder.path().join("secret"));
        std::fs::write(&empty, "").unwrap();
        let open = || Proxy::open(door("proxy.example").unwrap(), "ana", &secret, Some(&empty));
        assert!(open().unwrap_err().contains("found no file"));
        std::fs::write(&secret, "abc\n").unwrap();
        let give = |mode| std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        give(0o644);
        assert!(open().unwrap_err().contains("chmod 600"));
        give(0o600);
        assert!(open().unwrap_err().contains("--certificate"));
        let plain = Proxy::open(door("http://localhost:99").unwrap(), "ana", &secret, None).unwrap();
        assert_eq!((plain.login().secret.as_str(), format!("{plain:?}").contains("abc")), ("abc", false));
    }
}
