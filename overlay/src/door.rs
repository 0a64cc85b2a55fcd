//! The door of a proxy, for who asks from outside: where it is, the account's secret, by what it is known, and what is
//! spoken on the way.
//!
//! Rules: what is sent beyond this machine is encrypted, and to nobody whose certificate does not fit; the secret is read
//! from a file of mode 0600, never from the command line, where others on the host could see it.
//! Not here: what may stand behind it, HTTP, how long anything may take (the callers), what Digest says
//! (`tunnel::digest`), what daemons inside speak with a proxy (`net`).

use crate::identity::safe_file;
use data_encoding::HEXLOWER;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto,
};

/// The port of a proxy's door where none is named.
pub const PORT: u16 = 7321;
/// Authorities that the system trusts, where Debian and its kin keep them.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest file with a secret, in bytes.
const SECRET_LEN_MAX_BYTES: usize = 1 << 10;
/// Random bytes of a client's nonce.
const CNONCE_LEN_BYTES: usize = 16;

/// Where a proxy is, as people write it: `HOST:PORT`, and what stands behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Its name or address, an IPv6 one without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether TLS is spoken; always so beyond this machine.
    pub is_encrypted: bool,
    /// The path behind it, without a slash at its end: `/d/UT-ICL`, or nothing.
    pub behind: String,
}

impl fmt::Display for Door {
    /// `HOST:PORT` alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Door {
    /// A door as people write it, a scheme before it or not; `check_behind` says whether that path may stand there.
    ///
    /// # Errors
    /// If it is none; the text says what was expected. What `check_behind` says.
    pub fn parse(text: &str, check_behind: impl FnOnce(&str) -> Result<(), String>) -> Result<Door, String> {
        let refuse = || format!("expected HOST:PORT such as proxy.example:{PORT}, found {text:?}");
        let (is_plain, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (false, text),
        };
        let rest = rest.trim_end_matches('/');
        let (rest, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        check_behind(behind)?;
        let (host, port) =
            match rest.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']')) {
                Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(refuse)?),
                None => (rest, PORT),
            };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let address = host.parse::<IpAddr>().ok();
        if host.is_empty() || (address.is_none() && ServerName::try_from(host.as_str()).is_err()) {
            return Err(refuse());
        }
        let is_here = address.is_some_and(|address| address.is_loopback()) || host == "localhost";
        if is_plain && !is_here {
            return Err("beyond this machine a proxy speaks https alone; give HOST:PORT".to_owned());
        }
        Ok(Door { host, port, is_encrypted: !is_plain, behind: behind.to_owned() })
    }

    /// By what it is known: `certificate`, a file in PEM, else the authorities that the system trusts. None where
    /// nothing is encrypted.
    ///
    /// # Errors
    /// If there is nothing by which to know it, or its name cannot be one.
    pub fn tls(&self, certificate: Option<&Path>) -> Result<Option<Tls>, String> {
        if !self.is_encrypted {
            return Ok(None);
        }
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let config = builder.with_root_certificates(roots(certificate)?).with_no_client_auth();
        Ok(Some(Tls { config: Arc::new(config), name }))
    }
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

/// The secret of an account, from a private file; white space around it is not part of it.
///
/// # Errors
/// If there is none, others may read it, or it is too long or no text; the text says what to do.
pub fn read_secret(file: &Path) -> Result<String, String> {
    let found = safe_file::read_named(file).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| {
        format!("expected a file with the secret, of mode 0600, found no file {}", file.display())
    })?;
    if bytes.len() > SECRET_LEN_MAX_BYTES {
        let (most, len) = (SECRET_LEN_MAX_BYTES, bytes.len());
        return Err(format!("{}: expected a secret of at most {most} bytes, found {len}", file.display()));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("{} is no text: {error}", file.display()))?;
    match text.trim() {
        "" => Err(format!("{}: expected a secret, found nothing in it", file.display())),
        secret => Ok(secret.to_owned()),
    }
}

/// A nonce of a client (RFC 7616, section 3.4, `cnonce`), new each time.
///
/// # Errors
/// If the system gives no random numbers.
pub fn cnonce() -> Result<String, getrandom::Error> {
    let mut drawn = [0; CNONCE_LEN_BYTES];
    getrandom::fill(&mut drawn)?;
    Ok(HEXLOWER.encode(&drawn))
}

/// What to do about a proxy's certificate that does not fit, where `error` is that; the text says what is wrong.
#[must_use]
pub fn certificate_refused(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(refused) = error else { return None };
    Some(if is_of_unknown_issuer(refused) {
        "the proxy's certificate is of an issuer that is not trusted here (UnknownIssuer): get the proxy's certificate from its \
         administrator and name it with --certificate FILE (VISPERF_CERTIFICATE); where a file is named already, the proxy shows \
         another certificate than that"
            .to_owned()
    } else {
        format!(
            "the proxy's certificate does not fit ({refused}): check the name of the proxy and this host's clock, or name the \
             certificate that the proxy shows with --certificate FILE (VISPERF_CERTIFICATE)"
        )
    })
}

/// Whether no trusted certificate stands for it.
fn is_of_unknown_issuer(refused: &CertificateError) -> bool {
    matches!(refused, CertificateError::UnknownIssuer | CertificateError::BadSignature)
}

/// By what a proxy is known, and under which name.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// What is spoken on a connection.
#[derive(Debug)]
pub enum Wire {
    /// HTTP as it is: to this machine.
    Plain(TcpStream),
    /// HTTP within TLS: to a proxy.
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// HTTP to what this very process carries on otherwise.
    Within(UnixStream),
}

impl Wire {
    /// Over a connection that stands: within TLS where there is something by which to know the other end. Nothing is sent
    /// yet; who is not whom it should be is found when something is.
    ///
    /// # Errors
    /// If the session cannot be made.
    pub fn over(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Wire> {
        let Some(Tls { config, name }) = tls else { return Ok(Wire::Plain(stream)) };
        let session = ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
        Ok(Wire::Encrypted(Box::new(StreamOwned::new(session, stream))))
    }

    /// How long one read and one write may take from now on.
    ///
    /// # Errors
    /// What the system says.
    pub fn set_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        let stream = match self {
            Wire::Plain(stream) => stream,
            Wire::Encrypted(stream) => &stream.sock,
            Wire::Within(stream) => {
                stream.set_read_timeout(time)?;
                return stream.set_write_timeout(time);
            }
        };
        stream.set_read_timeout(time)?;
        stream.set_write_timeout(time)
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(into),
            Wire::Encrypted(stream) => stream.read(into),
            Wire::Within(stream) => stream.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(bytes),
            Wire::Encrypted(stream) => stream.write(bytes),
            Wire::Within(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Encrypted(stream) => stream.flush(),
            Wire::Within(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn door(text: &str) -> Result<Door, String> {
        Door::parse(text, |_| Ok(()))
    }

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
        for wrong in ["", "http://proxy.example", "a b:1", "proxy.example:0", "proxy.example:x", "https://"] {
            check(wrong, None);
        }
    }

    #[test]
    fn it_is_written_without_what_stands_behind_it_which_the_caller_judges() {
        let written = |text: &str| door(text).map(|door| (door.to_string(), door.behind));
        let check = |text: &str, expected: (&str, &str)| {
            assert_eq!(written(text), Ok((expected.0.to_owned(), expected.1.to_owned())), "{text}");
        };
        check("https://p.example:99/d/UT-ICL/", ("p.example:99", "/d/UT-ICL"));
        check("p.example/d/UT-ICL/wn01", ("p.example:7321", "/d/UT-ICL/wn01"));
        check("[2001:db8::1]:99", ("[2001:db8::1]:99", ""));
        check("2001:DB8:0::1", ("[2001:db8::1]:7321", ""));
        let judge = |behind: &str| if behind.is_empty() { Ok(()) } else { Err(format!("no {behind}")) };
        assert_eq!(Door::parse("p.example/d/UT-ICL", judge), Err("no /d/UT-ICL".to_owned()));
        assert!(Door::parse("p.example/", judge).is_ok());
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("empty.pem");
        let refused = || door("proxy.example").expect("a door").tls(Some(&file)).map(drop);
        assert!(refused().expect_err("no file").contains("--certificate"));
        std::fs::write(&file, "").expect("written");
        assert!(refused().expect_err("nothing in it").contains("--certificate"));
        let plain = door("http://localhost:99").expect("a door").tls(Some(&file));
        assert!(matches!(plain, Ok(None)), "{plain:?}");
    }

    #[test]
    fn a_secret_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("secret");
        let refused = || read_secret(&file).expect_err("refused");
        assert!(refused().contains("found no file"));
        std::fs::write(&file, "abc\n").expect("written");
        let give =
            |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("given");
        give(0o644);
        assert!(refused().contains("chmod 600"));
        give(0o600);
        assert_eq!(read_secret(&file), Ok("abc".to_owned()));
        std::fs::write(&file, "a".repeat(2_000)).expect("written");
        assert!(refused().contains("at most 1024 bytes, found 2000"));
        std::fs::write(&file, " \n").expect("written");
        assert!(refused().contains("expected a secret, found nothing"));
    }
}
