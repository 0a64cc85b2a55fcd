//! Configuration of a proxy: the `[proxy]` section of the configuration file.
//!
//! Rules: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction. Plain HTTP
//! is allowed on loopback only: beyond it every connection is encrypted, whatever the section says.
//! Not here: accounts (`account_file`), the overlay (`overlay::config`).

use rpc::http::config::Listen;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tunnel::PORT;

/// Default address of the listener: loopback, for a web server in front of it on the same host, and for
/// tests.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);

/// Most names of a generated certificate.
pub const NAMES_MAX: usize = 16;

/// The section as it is in the file, unchecked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Address of the listener.
    pub listen: Option<String>,
    /// Certificate chain in PEM.
    pub certificate: Option<PathBuf>,
    /// Key in PEM.
    pub key: Option<PathBuf>,
    /// For a generated certificate: names and addresses by which clients reach the proxy.
    pub names: Option<Vec<String>>,
    /// Whether connections are encrypted.
    pub tls: Option<bool>,
    /// Whether MD5 is offered to accounts that are marked for it.
    pub md5: Option<bool>,
}

/// Encryption of the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// No encryption; the listener is on loopback.
    Plain,
    /// Configured certificate.
    Given {
        /// Certificate chain in PEM.
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Generated certificate.
    Own {
        /// Names in addition to the host's own.
        names: Vec<String>,
    },
}

/// Checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub listen: Listen,
    pub tls: Tls,
    /// Whether MD5 is offered.
    pub takes_md5: bool,
}

/// Invalid value. [`Error::way`] is its path in the section, so that the line can be shown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `listen` is not an address.
    #[error("{0}")]
    Listen(rpc::http::config::Error),
    /// Only one of `certificate` and `key` is set.
    #[error("expected certificate and key together, found one of them")]
    Half {
        /// The one that is set.
        found: &'static str,
    },
    /// Too many or invalid names.
    #[error("expected 1 to {NAMES_MAX} names or addresses of hosts, found {found}")]
    Names {
        /// Number of names.
        found: usize,
    },
    /// Names together with a configured certificate.
    #[error(
        "expected no names beside certificate and key, found {found}: a certificate that is given says its own"
    )]
    NamesOfGiven {
        /// Number of names.
        found: usize,
    },
    /// Plain HTTP beyond loopback.
    #[error("expected encryption beyond loopback, found tls = false and listen = {listen}; leave tls out")]
    Plain {
        /// Configured address.
        listen: Listen,
    },
    /// A certificate is configured, but encryption is off.
    #[error("expected no certificate, key or names where tls = false, found one")]
    Unused,
}

impl Error {
    /// Path to the value in the section.
    #[must_use]
    pub fn way(&self) -> Vec<&str> {
        match self {
            Error::Listen(_) => vec!["listen"],
            Error::Half { found } => vec![found],
            Error::Names { .. } | Error::NamesOfGiven { .. } => vec!["names"],
            Error::Plain { .. } | Error::Unused => vec!["tls"],
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new(RawConfig::default()).expect("an empty section is valid")
    }
}

impl Config {
    /// Check a section.
    ///
    /// # Errors
    /// All invalid values.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<Error>> {
        let mut errors = Vec::new();
        let listen = raw.listen.map_or(Ok(LISTEN_DEFAULT.into()), |text| text.parse());
        let listen: Listen = listen.unwrap_or_else(|error| {
            errors.push(Error::Listen(error));
            LISTEN_DEFAULT.into()
        });
        let names = raw.names.unwrap_or_default();
        if names.len() > NAMES_MAX || names.iter().any(|name| name.trim().is_empty()) {
            errors.push(Error::Names { found: names.len() });
        }
        if !names.is_empty() && (raw.certificate.is_some() || raw.key.is_some()) {
            errors.push(Error::NamesOfGiven { found: names.len() });
        }
        let has_own = raw.certificate.is_some() || raw.key.is_some() || !names.is_empty();
        let tls = match (raw.certificate, raw.key) {
            (Some(certificate), Some(key)) => Tls::Given { certificate, key },
            (Some(_), None) => {
                errors.push(Error::Half { found: "certificate" });
                Tls::Plain
            }
            (None, Some(_)) => {
                errors.push(Error::Half { found: "key" });
                Tls::Plain
            }
            (None, None) if raw.tls.unwrap_or(has_own || !listen.is_loopback()) => Tls::Own { names },
            (None, None) => Tls::Plain,
        };
        if raw.tls == Some(false) {
            if !listen.is_loopback() {
                errors.push(Error::Plain { listen });
            } else if has_own {
                errors.push(Error::Unused);
            }
        }
        let config = Config { listen, tls, takes_md5: raw.md5.unwrap_or(false) };
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// The same configuration with the address of a command line flag.
    ///
    /// # Errors
    /// If the address is beyond loopback and the section turns encryption off.
    pub fn at(self, listen: Listen, is_plain: bool) -> Result<Config, Error> {
        if is_plain && !listen.is_loopback() {
            return Err(Error::Plain { listen });
        }
        let tls = match self.tls {
            Tls::Plain if !listen.is_loopback() => Tls::Own { names: Vec::new() },
            other @ (Tls::Plain | Tls::Given { .. } | Tls::Own { .. }) => other,
        };
        Ok(Config { listen, tls, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<Config, String> {
        let raw: RawConfig = daemon::config_file::load(Path::new("f"), text).expect("well formed");
        let ways = |errors: Vec<Error>| {
            let ways: Vec<String> = errors.iter().map(|error| error.way().join(".")).collect();
            ways.join(" ")
        };
        Config::new(raw).map_err(ways)
    }

    #[test]
    fn what_goes_beyond_loopback_is_encrypted() {
        let tls = |text| read(text).map(|config| config.tls);
        let own = |names: &[&str]| Tls::Own { names: names.iter().map(ToString::to_string).collect() };
        assert_eq!(tls(""), Ok(Tls::Plain));
        assert_eq!(tls("tls = true"), Ok(own(&[])));
        assert_eq!(tls("listen = '0.0.0.0:7321'"), Ok(own(&[])));
        assert_eq!(tls("listen = '[::]:443'\nnames = ['p.example']"), Ok(own(&["p.example"])));
        let given = Tls::Given { certificate: "/c".into(), key: "/k".into() };
        assert_eq!(tls("certificate = '/c'\nkey = '/k'"), Ok(given));
        assert_eq!(tls("listen = '0.0.0.0:80'\ntls = false"), Err("tls".into()));
        assert_eq!(tls("names = ['p.example']\ntls = false"), Err("tls".into()));
        let flag: Listen = "0.0.0.0:7321".parse().expect("an address");
        assert_eq!(Config::default().at(flag, false).map(|config| config.tls), Ok(own(&[])));
        assert!(Config::default().at(flag, true).is_err());
    }

    #[test]
    fn the_section_is_checked() {
        assert!(!read("").expect("valid").takes_md5 && read("md5 = true").expect("valid").takes_md5);
        assert_eq!(read("listen = 'here'"), Err("listen".into()));
        assert_eq!(read("certificate = '/c'"), Err("certificate".into()));
        assert_eq!(read("key = '/k'"), Err("key".into()));
        assert_eq!(read("names = ['']"), Err("names".into()));
        assert_eq!(read("certificate = '/c'\nkey = '/k'\nnames = ['p.example']"), Err("names".into()));
    }
}
