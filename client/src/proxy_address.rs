//! Address of a proxy's HTTP listener (`--door`), as clients outside use it, and its certificate.
//!
//! Rule: a connection beyond this host is encrypted, and is refused if the proxy's certificate is not valid.
//! Not here: logging in there (`login`), the protocol between a proxy and daemons inside (`overlay::net`).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore, crypto};
use tunnel::PORT;

/// Certificate authorities trusted by the system, at the path of Debian and its derivatives.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Address of a proxy, as users write it: `HOST:PORT` and an optional path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAddress {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether TLS is used; always true beyond this host.
    pub is_encrypted: bool,
    /// Path after the address, without a trailing slash: `/d/UT-ICL`, or empty.
    pub behind: String,
}

impl fmt::Display for ProxyAddress {
    /// Only `HOST:PORT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<Ipv6Addr>() {
            Ok(address) => write!(f, "[{address}]:{}", self.port),
            Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl ProxyAddress {
    /// Parse an address with an optional scheme; `check_behind` decides whether the path is allowed.
    ///
    /// # Errors
    /// If it is invalid; the text says what was expected. The error of `check_behind`.
    pub fn parse(
        text: &str,
        check_behind: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<ProxyAddress, String> {
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
        Ok(ProxyAddress { host, port, is_encrypted: !is_plain, behind: behind.to_owned() })
    }

    /// Trust anchors for the proxy: the PEM file `certificate`, or else the authorities of the system. `None`
    /// without encryption.
    ///
    /// # Errors
    /// If there are no trust anchors, or the name is invalid.
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

/// Text about an invalid certificate of a proxy and what to do; `None` if `error` is something else.
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

/// Whether no trusted certificate has signed it.
fn is_of_unknown_issuer(refused: &CertificateError) -> bool {
    matches!(refused, CertificateError::UnknownIssuer | CertificateError::BadSignature)
}

/// Trust anchors and the expected name of a proxy.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Encrypt a connection; fails if the certificate is not valid for the expected name.
    pub(crate) async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(Arc::clone(&self.config)).connect(self.name.clone(), stream).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<ProxyAddress, String> {
        ProxyAddress::parse(text, |_| Ok(()))
    }

    #[test]
    fn a_door_is_read_as_people_write_it() {
        let check = |text: &str, expected: Option<(&str, u16, bool)>| {
            let found = address(text).ok().map(|found| (found.host, found.port, found.is_encrypted));
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
        let written = |text: &str| address(text).map(|found| (found.to_string(), found.behind));
        let check = |text: &str, expected: (&str, &str)| {
            assert_eq!(written(text), Ok((expected.0.to_owned(), expected.1.to_owned())), "{text}");
        };
        check("https://p.example:99/d/UT-ICL/", ("p.example:99", "/d/UT-ICL"));
        check("p.example/d/UT-ICL/wn01", ("p.example:7321", "/d/UT-ICL/wn01"));
        check("[2001:db8::1]:99", ("[2001:db8::1]:99", ""));
        check("2001:DB8:0::1", ("[2001:db8::1]:7321", ""));
        let judge = |behind: &str| if behind.is_empty() { Ok(()) } else { Err(format!("no {behind}")) };
        assert_eq!(ProxyAddress::parse("p.example/d/UT-ICL", judge), Err("no /d/UT-ICL".to_owned()));
        assert!(ProxyAddress::parse("p.example/", judge).is_ok());
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("empty.pem");
        let refused = || address("proxy.example").expect("an address").tls(Some(&file)).map(drop);
        assert!(refused().expect_err("no file").contains("--certificate"));
        std::fs::write(&file, "").expect("written");
        assert!(refused().expect_err("nothing in it").contains("--certificate"));
        let plain = address("http://localhost:99").expect("an address").tls(Some(&file));
        assert!(matches!(plain, Ok(None)), "{plain:?}");
    }
}
