//! How a proxy behaves: the `[proxy]` section of the configuration file.
//!
//! Rules: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction. Plain HTTP is for
//! loopback alone: what others send beyond it is encrypted, whatever the section says.
//! Not here: accounts (`account_file`), the overlay (`overlay::config`).

use rpc::http::config::Listen;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tunnel::PORT;

/// Default address of the door: for a web server of the same host that stands before it, and to try.
pub const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);

/// Most names of a certificate made here.
pub const NAMES_MAX: usize = 16;

/// The section as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Where the door is.
    pub listen: Option<String>,
    /// A certificate in PEM, its chain behind it.
    pub certificate: Option<PathBuf>,
    /// Its key in PEM.
    pub key: Option<PathBuf>,
    /// Of a certificate made here: the names and addresses by which clients reach the proxy.
    pub names: Option<Vec<String>>,
    /// Whether connections are encrypted.
    pub tls: Option<bool>,
    /// Whether MD5 is offered to accounts that are marked for it.
    pub md5: Option<bool>,
}

/// Which certificate encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// None: the door is on loopback.
    Plain,
    /// These files.
    Given {
        /// The chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// One made here.
    Own {
        /// Names beside the host's own.
        names: Vec<String>,
    },
}

/// How a proxy behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the door is.
    pub listen: Listen,
    /// How it is encrypted.
    pub tls: Tls,
    /// Whether MD5 is offered.
    pub takes_md5: bool,
}

/// A value that cannot be meant. [`Error::way`] leads to it, so that the line can be shown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `listen` is no address.
    #[error("{0}")]
    Listen(rpc::http::config::Error),
    /// One of the two files alone.
    #[error("expected certificate and key together, found one of them")]
    Half {
        /// Which is there.
        found: &'static str,
    },
    /// Too many or unusable names.
    #[error("expected 1 to {NAMES_MAX} names or addresses of hosts, found {found}")]
    Names {
        /// How many.
        found: usize,
    },
    /// Names for a certificate that is given.
    #[error(
        "expected no names beside certificate and key, found {found}: a certificate that is given says its own"
    )]
    NamesOfGiven {
        /// How many.
        found: usize,
    },
    /// Plain HTTP beyond loopback.
    #[error("expected encryption beyond loopback, found tls = false and listen = {listen}; leave tls out")]
    Plain {
        /// Where.
        listen: Listen,
    },
    /// A certificate and no encryption.
    #[error("expected no certificate, key or names where tls = false, found one")]
    Unused,
}

impl Error {
    /// The way to the value in the section.
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
    /// The checked form of a section.
    ///
    /// # Errors
    /// Every value that cannot be meant.
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

    /// The same with another address, as a flag gives it.
    ///
    /// # Errors
    /// If it lies beyond loopback and the section says that nothing is encrypted.
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
