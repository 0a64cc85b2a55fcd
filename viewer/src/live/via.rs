//! Where questions go: to a daemon of this machine, or to a proxy, with what is spoken on the way.
//!
//! Rules: what is sent beyond this machine is encrypted, and to nobody whose certificate does not fit; the secret is read
//! from a file of mode 0600, never from the command line, where others on the host could see it; MD5 is never answered.
//! Not here: HTTP (`http`), what Digest says (`tunnel::digest`).

use overlay::identity::safe_file;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
use tunnel::digest::client::Login;
use wire::id::DomainName;

/// The port of a proxy's door where none is named.
const PORT: u16 = 7321;
/// Authorities that the system trusts, where Debian and its kin keep them.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest file with a secret, in bytes.
const SECRET_LEN_MAX_BYTES: usize = 1 << 10;
/// Random bytes of a client's nonce.
const CNONCE_LEN_BYTES: usize = 16;

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// A daemon of this machine.
    Here(SocketAddr),
    /// A proxy.
    Proxy(Arc<Proxy>),
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
            Where::Proxy(proxy) => proxy.door.fmt(f),
        }
    }
}

/// The door of a proxy, as people write it: `HOST:PORT`, `/d/DOMAIN` behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    host: String,
    port: u16,
    is_encrypted: bool,
    /// The domain that is named behind it.
    pub domain: Option<String>,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A proxy, the account there, and how it is known.
pub struct Proxy {
    door: Door,
    name: String,
    secret: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
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
    /// The proxy behind this door, for the account of this name.
    ///
    /// # Errors
    /// If the secret cannot be read, or there is nothing by which to know the proxy.
    pub fn open(door: Door, name: &str, secret: &Path, certificate: Option<&Path>) -> Result<Proxy, String> {
        let secret = read_secret(secret)?;
        let tls = match door.is_encrypted {
            true => Some((config(certificate)?, server_name(&door.host)?)),
            false => None,
        };
        Ok(Proxy { door, name: name.to_owned(), secret, tls })
    }

    /// Who logs in there.
    pub(super) fn login(&self) -> Login {
        Login { name: self.name.clone(), secret: self.secret.clone(), allows_md5: false }
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())
}

fn config(certificate: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots(certificate)?).with_no_client_auth()))
}

fn roots(certificate: Option<&Path>) -> Result<RootCertStore, String> {
    let file = certificate.unwrap_or(Path::new(SYSTEM_AUTHORITIES));
    let refuse = |what: &dyn fmt::Display| {
        format!("{}: {what}; name the proxy's certificate with --certificate FILE", file.display())
    };
    let all = CertificateDer::pem_file_iter(file).map_err(|error| refuse(&error))?;
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(all.filter_map(Result::ok));
    if added == 0 { Err(refuse(&"there is no certificate in it")) } else { Ok(roots) }
}

fn read_secret(file: &Path) -> Result<String, String> {
    let found = safe_file::read(file).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| format!("there is no file {}", file.display()))?;
    if bytes.len() > SECRET_LEN_MAX_BYTES {
        let (most, len) = (SECRET_LEN_MAX_BYTES, bytes.len());
        return Err(format!("{}: expected a secret of at most {most} bytes, found {len}", file.display()));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("{} is no text: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// A door as people write it.
///
/// # Errors
/// If it is none; the text says what was expected.
pub fn door(text: &str) -> Result<Door, String> {
    let refuse = || format!("expected HOST:PORT such as proxy.example:{PORT}, found {text:?}");
    let (is_plain, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (false, text),
    };
    let rest = rest.trim_end_matches('/');
    let (rest, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let domain = match behind.strip_prefix("/d/") {
        Some(name) if DomainName::try_from(name).is_ok() => Some(name.to_owned()),
        None if behind.is_empty() => None,
        Some(_) | None => return Err(format!("expected /d/DOMAIN behind the proxy, found {behind:?}")),
    };
    let (host, port) =
        match rest.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']')) {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(refuse)?),
            None => (rest, PORT),
        };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let address = host.parse::<IpAddr>().ok();
    if host.is_empty() || (address.is_none() && server_name(&host).is_err()) {
        return Err(refuse());
    }
    let is_here = address.is_some_and(|address| address.is_loopback()) || host == "localhost";
    if is_plain && !is_here {
        return Err("beyond this machine a proxy speaks https alone; give HOST:PORT".to_owned());
    }
    Ok(Door { host, port, is_encrypted: !is_plain, domain })
}

/// A nonce of a client, new each time.
pub(super) fn cnonce() -> io::Result<String> {
    let mut drawn = [0; CNONCE_LEN_BYTES];
    getrandom::fill(&mut drawn).map_err(io::Error::other)?;
    Ok(drawn.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What is spoken on the way.
#[derive(Debug)]
pub(super) enum Wire {
    /// HTTP as it is: to this machine.
    Plain(TcpStream),
    /// HTTP within TLS: to a proxy.
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Where {
    /// Connect, within `time`; nothing is waited for longer than `silence` then.
    pub(super) fn open(&self, time: Duration, silence: Duration) -> io::Result<Wire> {
        let stream = match self {
            Where::Here(address) => TcpStream::connect_timeout(address, time)?,
            Where::Proxy(proxy) => connect(&proxy.door, time)?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        let tls = match self {
            Where::Here(_) => None,
            Where::Proxy(proxy) => proxy.tls.as_ref(),
        };
        let Some((config, name)) = tls else { return Ok(Wire::Plain(stream)) };
        let session = ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
        Ok(Wire::Encrypted(Box::new(StreamOwned::new(session, stream))))
    }
}

/// Connect to the first of its addresses that answers.
fn connect(door: &Door, time: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (door.host.as_str(), door.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(into),
            Wire::Encrypted(stream) => stream.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(bytes),
            Wire::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Encrypted(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_door_is_read_as_people_write_it() {
        let check = |text: &str, expected: Option<(&str, u16, bool)>| {
            let found = door(text).ok().map(|door| (door.host, door.port, door.is_encrypted));
            let expected = expected.map(|(host, port, is_encrypted)| (host.to_owned(), port, is_encrypted));
            assert_eq!(found, expected, "{text}");
        };
        check("proxy.example:443", Some(("proxy.example", 443, true)));
        check("proxy.example", Some(("proxy.example", 7321, true)));
        check("https://proxy.example:443/", Some(("proxy.example", 443, true)));
        check("http://127.0.0.1:99", Some(("127.0.0.1", 99, false)));
        check("[2001:db8::1]:99", Some(("2001:db8::1", 99, true)));
        check("2001:db8::1", Some(("2001:db8::1", 7321, true)));
        assert_eq!(door("p.example:99/d/UT-ICL/").map(|door| door.domain), Ok(Some("UT-ICL".to_owned())));
        for wrong in
            ["", "http://proxy.example", "a b:1", "proxy.example:0", "p.example/RPC2", "p.example/d/a b"]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by_and_a_secret_nobody_else_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, secret) = (folder.path().join("empty.pem"), folder.path().join("secret"));
        std::fs::write(&empty, "").unwrap();
        let open = || Proxy::open(door("proxy.example").unwrap(), "ana", &secret, Some(&empty));
        assert!(open().unwrap_err().contains("there is no file"));
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
