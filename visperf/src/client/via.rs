//! Asking through a proxy: its door, the account there, and the certificate by which it is known.
//!
//! Rules: what is sent beyond this machine is encrypted, and to nobody whose certificate does not fit; the secret is
//! read from a file of mode 0600, never from the command line, where others on the host could see it; MD5 is never answered.
//! Not here: HTTP (`http`), the connection (`connection`), what Digest says (`tunnel::digest`).

use crate::client::connection::Wire;
use overlay::identity::safe_file;
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
use tunnel::digest::client::Login;

/// The port of a proxy's door where none is named.
const PORT: u16 = proxy::config::PORT;

/// Authorities that the system trusts, where Debian and its kin keep them.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Longest file with a secret, in bytes.
const SECRET_LEN_MAX_BYTES: usize = 1 << 10;

/// The options that lead through a proxy.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Via {
    /// Ask through a proxy: HOST:PORT of its door, /d/DOMAIN or /d/DOMAIN/HOST behind it (docs/firewalls.md)
    #[arg(long, value_name = "PROXY", env = "VISPERF_VIA", value_parser = door, requires = "account")]
    via: Option<Door>,
    /// The account at the proxy
    #[arg(long, value_name = "NAME", env = "VISPERF_ACCOUNT", requires = "secret")]
    account: Option<String>,
    /// The file with the account's secret
    #[arg(long, value_name = "FILE", env = "VISPERF_SECRET")]
    secret: Option<PathBuf>,
    /// The proxy's certificate, unless an authority stands for it that the system trusts
    #[arg(long, value_name = "FILE", env = "VISPERF_CERTIFICATE")]
    certificate: Option<PathBuf>,
}

/// Where a proxy is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Door {
    host: String,
    port: u16,
    is_encrypted: bool,
    /// What every path begins with: nothing, or `/d/DOMAIN` and perhaps `/HOST`.
    prefix: String,
}

impl Via {
    /// `HOST:PORT` of the proxy, if one is to be asked.
    pub(crate) fn address(&self) -> Option<String> {
        self.via.as_ref().map(|door| match door.host.parse::<std::net::Ipv6Addr>() {
            Ok(address) => format!("[{address}]:{}", door.port),
            Err(_) => format!("{}:{}", door.host, door.port),
        })
    }

    /// What every path there begins with.
    pub(crate) fn prefix(&self) -> &str {
        self.via.as_ref().map_or("", |door| &door.prefix)
    }

    /// Who logs in there.
    ///
    /// # Errors
    /// If the secret cannot be read.
    pub(crate) fn login(&self) -> Result<Option<Login>, String> {
        let (Some(_), Some(name), Some(file)) = (&self.via, &self.account, &self.secret) else {
            return Ok(None);
        };
        let secret = secret(file)?;
        Ok(Some(Login { name: name.clone(), secret, allows_md5: false }))
    }

    /// What is spoken on `stream`, which leads to the proxy.
    ///
    /// # Errors
    /// If there is nothing by which to know it, or its name cannot be one.
    pub(crate) fn wire(&self, stream: TcpStream) -> Result<Wire, String> {
        let Some(door) = self.via.as_ref().filter(|door| door.is_encrypted) else {
            return Ok(Wire::Plain(stream));
        };
        let name = ServerName::try_from(door.host.clone()).map_err(|error| error.to_string())?;
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let config = builder.with_root_certificates(self.roots()?).with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
        Ok(Wire::Encrypted(Box::new(StreamOwned::new(session, stream))))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let file = self.certificate.as_deref().unwrap_or(Path::new(SYSTEM_AUTHORITIES));
        let refuse = |what: &dyn std::fmt::Display| {
            format!("{}: {what}; name the proxy's certificate with --certificate FILE", file.display())
        };
        let all = CertificateDer::pem_file_iter(file).map_err(|error| refuse(&error))?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(all.filter_map(Result::ok));
        if added == 0 { Err(refuse(&"there is no certificate in it")) } else { Ok(roots) }
    }
}

fn secret(file: &Path) -> Result<String, String> {
    let found = safe_file::read(file).map_err(|error| error.to_string())?;
    let bytes = found.ok_or_else(|| format!("there is no file {}", file.display()))?;
    if bytes.len() > SECRET_LEN_MAX_BYTES {
        return Err(format!(
            "{}: expected a secret of at most {SECRET_LEN_MAX_BYTES} bytes, found {}",
            file.display(),
            bytes.len()
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("{} is no text: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

fn door(text: &str) -> Result<Door, String> {
    let refuse = || format!("expected HOST:PORT such as proxy.example:{PORT}, found {text:?}");
    let (is_plain, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => (false, text),
    };
    let rest = rest.trim_end_matches('/');
    let (rest, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !prefix.is_empty() && proxy::place::of(prefix).is_none_or(|place| place.domain.is_none()) {
        return Err(format!("expected /d/DOMAIN or /d/DOMAIN/HOST behind the proxy, found {prefix:?}"));
    }
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
    Ok(Door { host, port, is_encrypted: !is_plain, prefix: prefix.to_owned() })
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
        assert_eq!(
            door("p.example:99/d/UT-ICL/wn01/").map(|door| door.prefix),
            Ok("/d/UT-ICL/wn01".to_owned())
        );
        assert!(door("p.example:99/RPC2").is_err() && door("p.example:99/d/a b").is_err());
        for wrong in ["", "http://proxy.example", "a b:1", "proxy.example:0", "proxy.example:x", "https://"] {
            check(wrong, None);
        }
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        let via = Via { certificate: Some(file), ..Via::default() };
        assert!(via.roots().unwrap_err().contains("--certificate"));
    }

    #[test]
    fn a_secret_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        assert!(secret(&file).unwrap_err().contains("there is no file"));
        std::fs::write(&file, "abc\n").unwrap();
        let give = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        give(0o644);
        assert!(secret(&file).unwrap_err().contains("chmod 600"));
        give(0o600);
        assert_eq!(secret(&file).unwrap(), "abc");
        std::fs::write(&file, "a".repeat(2_000)).unwrap();
        assert!(secret(&file).unwrap_err().contains("at most 1024 bytes, found 2000"));
    }
}
