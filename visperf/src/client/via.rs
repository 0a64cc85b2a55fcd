//! Queries through a proxy: its options, the account there, and how the proxy and the domain are
//! authenticated.
//!
//! ```text
//! --via HOST:PORT/d/DOMAIN        its listener: HTTP within TLS; the proxy reads what it forwards
//! --via KEY@HOST:PORT/d/DOMAIN    the overlay: the proxy forwards traffic that it cannot read
//! ```
//! Rule: an MD5 challenge is answered only with `--legacy`.
//! Not here: the proxy's listener and its protocol (`::client`), the tunnel (`tunnel_client`).

use super::known_domains;
use super::tunnel_client::{Destination, TunnelClient};
use crate::output::note;
use ::client::Error;
use ::client::connect::Connected;
use ::client::proxy_address::{ProxyAddress, Tls};
use overlay::guest::SessionSpec;
use overlay::identity::secret;
use overlay::net::outbound::HttpProxy;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tunnel::digest::client::Login;
use wire::address::Address;
use wire::id::PeerKey;
use wire::join::Directory;

/// Options for a query through a proxy.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Via {
    /// Query through a proxy: HOST:PORT of its listener, then /d/DOMAIN or /d/DOMAIN/HOST
    #[arg(long, value_name = "PROXY", env = "VISPERF_VIA", value_parser = parse, requires = "account")]
    #[arg(
        long_help = "Query through a proxy: HOST:PORT of its listener, then /d/DOMAIN or /d/DOMAIN/HOST\n\nWith its key \
        first, KEY@HOST:PORT/d/DOMAIN, everything is encrypted from here to the domain, over the first transport that \
        works: TCP, a WebSocket, plain requests (docs/firewalls.md)"
    )]
    via: Option<Place>,
    /// Name of the account at the proxy
    #[arg(long, value_name = "NAME", env = "VISPERF_ACCOUNT", requires = "secret")]
    account: Option<String>,
    /// File with the secret of the account
    #[arg(long, value_name = "FILE", env = "VISPERF_SECRET")]
    secret: Option<PathBuf>,
    /// Certificate of the proxy, if no authority trusted by the system signed it
    #[arg(long, value_name = "FILE", env = "VISPERF_CERTIFICATE")]
    certificate: Option<PathBuf>,
    /// The account uses MD5 (visperf account add --legacy)
    #[arg(long, env = "VISPERF_LEGACY", requires = "via")]
    legacy: bool,
    /// Root key of the domain [default: the key seen first]
    #[arg(long, value_name = "KEY", env = "VISPERF_ROOT", requires = "via")]
    root: Option<PeerKey>,
    /// HTTP proxy of the site, HOST:PORT, if it is the only route out (for KEY@HOST:PORT)
    #[arg(long, value_name = "ADDR", env = "VISPERF_HTTP_PROXY", requires = "via")]
    http_proxy: Option<Address>,
    /// File with NAME:SECRET for that HTTP proxy, if it requires a login
    #[arg(long, value_name = "FILE", env = "VISPERF_HTTP_PROXY_LOGIN", requires = "http_proxy")]
    http_proxy_login: Option<PathBuf>,
    /// Open tunnel, if any.
    #[arg(skip)]
    tunnel_client: Arc<OnceLock<TunnelClient>>,
}

/// How a proxy is queried.
#[derive(Debug, Clone)]
enum Place {
    /// At its HTTPS listener.
    Door(ProxyAddress),
    /// Through the overlay, encrypted to the domain.
    Overlay { proxy: Directory, behind: Destination },
}

impl Via {
    /// A proxy's listener, for tests.
    #[cfg(test)]
    pub(crate) fn of_door(text: &str) -> Via {
        Via { via: parse(text).ok(), ..Via::default() }
    }

    /// `HOST:PORT` of the proxy, if one is used.
    pub(crate) fn address(&self) -> Option<String> {
        self.via.as_ref().map(|place| match place {
            Place::Door(door) => door.to_string(),
            Place::Overlay { proxy, .. } => {
                proxy.addresses.first().map(Address::to_string).unwrap_or_default()
            }
        })
    }

    /// Prefix of every path at the proxy.
    pub(crate) fn prefix(&self) -> &str {
        match &self.via {
            Some(Place::Door(door)) => &door.behind,
            Some(Place::Overlay { .. }) | None => "",
        }
    }

    /// The queried domain, if one was named.
    pub(crate) fn domain(&self) -> Option<&str> {
        match &self.via {
            Some(Place::Door(door)) => door.behind.strip_prefix("/d/")?.split('/').next(),
            Some(Place::Overlay { behind, .. }) => Some(behind.domain.as_str()),
            None => None,
        }
    }

    /// Whether each HTTP request logs in.
    pub(crate) fn logs_in(&self) -> bool {
        matches!(self.via, Some(Place::Door(_)))
    }

    /// Whether a proxy is used.
    pub(crate) fn is_some(&self) -> bool {
        self.via.is_some()
    }

    /// Whether the account uses MD5.
    pub(crate) fn is_legacy(&self) -> bool {
        self.legacy
    }

    /// Whether the proxy is used over the overlay.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self.via, Some(Place::Overlay { .. }))
    }

    /// The account and its secret.
    ///
    /// # Errors
    /// If the secret cannot be read.
    pub(crate) fn login(&self) -> Result<Option<Login>, String> {
        let (Some(_), Some(name), Some(file)) = (&self.via, &self.account, &self.secret) else {
            return Ok(None);
        };
        let secret = secret::read(file).map_err(|error| format!("--secret: {error}"))?;
        Ok(Some(Login { name: name.clone(), secret, allows_md5: self.legacy }))
    }

    /// TLS settings that authenticate the proxy; `None` for the overlay or an unencrypted listener.
    ///
    /// # Errors
    /// If no certificate can authenticate it, or its name is not valid.
    pub(crate) fn tls(&self) -> Result<Option<Tls>, String> {
        match &self.via {
            Some(Place::Door(door)) => door.tls(self.certificate.as_deref()),
            Some(Place::Overlay { .. }) | None => Ok(None),
        }
    }

    /// A connection over the overlay, through the open tunnel or a new one.
    ///
    /// # Errors
    /// Why the tunnel could not be opened.
    pub(crate) async fn connect_inside(&self, address: &str) -> Result<Connected, Error> {
        let stream = self.tunnel_client().await?.connect();
        let stream = stream.map_err(|error| Error::Unreachable(error.to_string()))?;
        let (address, host) = (address.to_owned(), address.to_owned());
        Ok(Connected { stream: Box::new(stream), address, host })
    }

    /// The tunnel; the first caller opens it.
    ///
    /// # Errors
    /// Why it could not be opened.
    pub(crate) async fn tunnel_client(&self) -> Result<&TunnelClient, Error> {
        if let Some(client) = self.tunnel_client.get() {
            return Ok(client);
        }
        let login = self.login().map_err(Error::Mistake)?;
        let (Some(Place::Overlay { proxy, behind }), Some(login)) = (&self.via, login) else {
            let message = "expected --via KEY@HOST:PORT/d/DOMAIN, found another proxy or none".to_owned();
            return Err(Error::Unreachable(message));
        };
        let known = known_domains::File::usual();
        let root = match self.root {
            Some(root) => Some(root),
            None => known
                .as_ref()
                .map_or(Ok(None), |file| file.root_of(&behind.domain))
                .map_err(Error::Mistake)?,
        };
        let spec = SessionSpec {
            proxy: proxy.clone(),
            login,
            domain: behind.domain.clone(),
            root,
            http_proxy: self.http_proxy().map_err(Error::Mistake)?,
        };
        let client = TunnelClient::open(spec, behind.clone()).await?;
        if let (Some(found), Some(file)) = (client.root(), &known)
            && file.root_of(&behind.domain) != Ok(Some(found))
        {
            match file.remember(&behind.domain, found) {
                Ok(()) => note(&format!(
                    "the domain {} is known by its root {found} from now on ({}); its operator can say whether that \
                     is right",
                    behind.domain,
                    file.path().display()
                )),
                Err(error) => note(&format!("the root of {} is not remembered: {error}", behind.domain)),
            }
        }
        Ok(self.tunnel_client.get_or_init(|| client))
    }

    fn http_proxy(&self) -> Result<Option<HttpProxy>, String> {
        let Some(at) = &self.http_proxy else { return Ok(None) };
        let login = match &self.http_proxy_login {
            None => None,
            Some(file) => {
                let text = secret::read(file)?;
                let expected = || format!("{}: expected NAME:SECRET, found no colon", file.display());
                let (name, secret) = text.split_once(':').ok_or_else(expected)?;
                Some(Login { name: name.to_owned(), secret: secret.to_owned(), allows_md5: true })
            }
        };
        Ok(Some(HttpProxy { at: at.clone(), login }))
    }
}

/// Parse `--via`: a listener, optionally with a domain and a host behind it; or the same after a proxy's key.
fn parse(text: &str) -> Result<Place, String> {
    match text.split_once('@') {
        Some((key, rest)) => of_overlay(key, rest),
        None => of_door(text).map(Place::Door),
    }
}

fn of_door(text: &str) -> Result<ProxyAddress, String> {
    ProxyAddress::parse(text, |behind| {
        match behind.is_empty() || proxy::request_path::of(behind).is_some_and(|place| place.domain.is_some())
        {
            true => Ok(()),
            false => Err(format!("expected /d/DOMAIN or /d/DOMAIN/HOST behind the proxy, found {behind:?}")),
        }
    })
}

fn of_overlay(key: &str, rest: &str) -> Result<Place, String> {
    let key: PeerKey = key.parse().map_err(|_| {
        format!("expected KEY@HOST:PORT/d/DOMAIN, the key as the proxy prints it, found {key:?} as the key")
    })?;
    let door = of_door(rest)?;
    let place = proxy::request_path::of(&door.behind).and_then(|place| Some((place.domain?, place.host)));
    let (domain, host) = place
        .ok_or_else(|| format!("expected the domain behind the proxy, {key}@{door}/d/DOMAIN, found none"))?;
    let at = Address::try_from(door.to_string().as_str()).map_err(|error| error.to_string())?;
    let proxy = Directory { key, addresses: vec![at] };
    Ok(Place::Overlay { proxy, behind: Destination { domain, host } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_domain_and_perhaps_a_host_stand_behind_a_door() {
        assert_eq!(
            of_door("p.example:99/d/UT-ICL/wn01/").map(|door| door.behind),
            Ok("/d/UT-ICL/wn01".to_owned())
        );
        assert_eq!(of_door("proxy.example").map(|door| door.behind), Ok(String::new()));
        for wrong in ["p.example:99/RPC2", "p.example:99/d/a b"] {
            let text = parse(wrong).unwrap_err();
            assert!(text.contains("/d/DOMAIN or /d/DOMAIN/HOST"), "{wrong}: {text}");
        }
    }

    #[test]
    fn an_encrypted_door_needs_something_to_know_it_by() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        let via = Via { via: parse("proxy.example").ok(), certificate: Some(file), ..Via::default() };
        assert!(via.tls().unwrap_err().contains("--certificate"));
    }

    #[test]
    fn a_secret_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "abc\n").unwrap();
        let via = Via {
            via: parse("proxy.example").ok(),
            account: Some("ana".to_owned()),
            secret: Some(file.clone()),
            ..Via::default()
        };
        let give = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        give(0o644);
        assert!(via.login().unwrap_err().contains("chmod 600"));
        give(0o600);
        let login = via.login().unwrap().unwrap();
        assert_eq!((login.secret.as_str(), login.allows_md5), ("abc", false));
    }

    #[test]
    fn with_a_key_it_is_the_overlay_and_a_domain_is_needed() {
        const KEY: &str = "12D3KooWH3uVF6wv47WnArKHk5p6cvgCJEb74UTmxztmQDc298L3";
        let check = |text: &str, expected: Option<(&str, &str, Option<&str>)>| {
            let found = match parse(text) {
                Ok(Place::Overlay { proxy, behind }) => {
                    assert_eq!(proxy.key.to_string(), KEY);
                    Some((proxy.addresses[0].to_string(), behind))
                }
                Ok(Place::Door(_)) | Err(_) => None,
            };
            let found = found.as_ref().map(|(at, behind)| {
                (at.as_str(), behind.domain.as_str(), behind.host.as_ref().map(|host| host.as_str()))
            });
            assert_eq!(found, expected, "{text}");
        };
        check(&format!("{KEY}@p.example:443/d/UT-ICL"), Some(("p.example:443", "UT-ICL", None)));
        check(&format!("{KEY}@p.example/d/UT-ICL/wn01"), Some(("p.example:7321", "UT-ICL", Some("wn01"))));
        check(&format!("{KEY}@[2001:db8::1]:99/d/A"), Some(("[2001:db8::1]:99", "A", None)));
        check(&format!("{KEY}@p.example:443"), None);
        check("12D3@p.example:443/d/A", None);
        let message = parse(&format!("{KEY}@p.example:443")).unwrap_err();
        assert!(message.contains("p.example:443/d/DOMAIN"), "{message}");
    }
}
