//! Configuration of the overlay: the `[overlay]` section of the configuration file.
//!
//! Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction. A daemon
//! without credentials does not join the overlay, whatever the section says.
//! Not here: certificates, and the contents of a token (`identity::member_files`).

use crate::identity::trust::Readers;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use wire::address::Address;
use wire::id::{DomainName, PeerKey};
use wire::join::{ADDRESSES_MAX, DIRECTORIES_MAX, Directory, SEEDS_MAX};

/// Default TCP port of the overlay.
pub const PORT: u16 = 7318;

/// Most proxies that one daemon registers with: one, and one as a backup.
pub const VIA_MAX: usize = 2;

/// The section as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Address to listen on.
    pub listen: Option<String>,
    /// Addresses where others dial this daemon, if those differ from the one that it listens on.
    #[serde(default)]
    pub advertise: Vec<String>,
    /// Addresses of members of the domain to contact first.
    #[serde(default)]
    pub seeds: Vec<String>,
    /// Directories, each `KEY@HOST:PORT`.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Proxies outside of the site that this daemon registers with, each `KEY@HOST:PORT`.
    #[serde(default)]
    pub via: Vec<String>,
    /// The site's own HTTP proxy, if outgoing connections need one.
    pub connect: Option<RawConnect>,
    /// Which other domains may read here: `admitted`, `nobody`, or names.
    pub readers: Option<RawReaders>,
}

/// `connect` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConnect {
    /// `HOST:PORT`.
    pub proxy: String,
    /// User name of this host at the proxy.
    pub name: Option<String>,
    /// The file with the secret of that user name.
    pub secret: Option<PathBuf>,
}

/// The site's own HTTP proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProxy {
    /// Its address.
    pub at: Address,
    /// User name of this host, and the file with its secret.
    pub login: Option<(String, PathBuf)>,
}

/// `readers` as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected \"admitted\", \"nobody\" or a list of domains, such as [\"UT-ICL\"]")]
pub enum RawReaders {
    /// `admitted` or `nobody`.
    Word(String),
    /// Names of domains.
    Names(Vec<String>),
}

/// Configuration of the overlay, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Address to listen on; `None` for the default.
    pub listen: Option<SocketAddr>,
    /// Addresses where others dial this daemon; empty for the one that it listens on.
    pub advertise: Vec<Address>,
    /// Addresses of members to contact first, in addition to those in the token.
    pub seeds: Vec<Address>,
    /// Directories, in addition to those in the token.
    pub directories: Vec<Directory>,
    /// Proxies outside of the site that this daemon registers with: it dials them, and others reach it
    /// through them.
    pub via: Vec<Directory>,
    /// The site's own HTTP proxy, used if an outgoing connection cannot be made directly.
    pub http_proxy: Option<HttpProxy>,
    pub readers: Readers,
}

/// An invalid value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The key in the section.
    pub key: &'static str,
    /// Index of the value in a list, from 0.
    pub entry: Option<usize>,
    message: String,
}

impl Error {
    fn new(key: &'static str, message: impl ToString) -> Error {
        Error { key, entry: None, message: message.to_string() }
    }

    fn of_entry(key: &'static str, entry: usize, message: impl ToString) -> Error {
        Error { key, entry: Some(entry), message: message.to_string() }
    }

    /// Path of the value in the section.
    #[must_use]
    pub fn way(&self) -> Vec<String> {
        let entry = self.entry.map(|entry| entry.to_string());
        std::iter::once(self.key.to_owned()).chain(entry).collect()
    }
}

impl Config {
    /// Validate a section.
    ///
    /// # Errors
    /// Every invalid value.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<Error>> {
        let mut errors = Vec::new();
        let config = Config {
            listen: raw.listen.and_then(|text| listen_of(&text).map_err(|error| errors.push(error)).ok()),
            advertise: addresses("advertise", &raw.advertise, ADDRESSES_MAX, &mut errors),
            seeds: addresses("seeds", &raw.seeds, SEEDS_MAX, &mut errors),
            directories: contacts("directories", &raw.directories, DIRECTORIES_MAX, &mut errors),
            via: contacts("via", &raw.via, VIA_MAX, &mut errors),
            http_proxy: raw.connect.and_then(|raw| {
                http_proxy(raw).map_err(|message| errors.push(Error::new("connect", message))).ok()
            }),
            readers: readers(raw.readers, &mut errors),
        };
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new(RawConfig::default()).expect("an empty section is valid")
    }
}

fn listen_of(text: &str) -> Result<SocketAddr, Error> {
    text.parse().map_err(|_| {
        Error::new("listen", format!("{text:?} is no address to listen on; expected ADDRESS:PORT, such as 0.0.0.0:{PORT} or 127.0.0.1:{PORT}"))
    })
}

fn http_proxy(raw: RawConnect) -> Result<HttpProxy, String> {
    let at = Address::try_from(raw.proxy.as_str()).map_err(|error| error.to_string())?;
    if at.via().is_some() {
        return Err(format!(
            "proxy = {:?}; expected HOST:PORT of an HTTP proxy, which has no key",
            raw.proxy
        ));
    }
    match (raw.name, raw.secret) {
        (Some(name), Some(secret)) => Ok(HttpProxy { at, login: Some((name, secret)) }),
        (None, None) => Ok(HttpProxy { at, login: None }),
        _ => Err("expected name and secret together, found one of them".to_owned()),
    }
}

/// The valid values of a list of texts; each invalid one adds an error.
fn parsed<'a, T, E: ToString>(
    key: &'static str,
    texts: &'a [String],
    parse: impl Fn(&'a str) -> Result<T, E>,
    errors: &mut Vec<Error>,
) -> Vec<T> {
    let entries = texts.iter().enumerate().filter_map(|(entry, text)| {
        parse(text).map_err(|error| errors.push(Error::of_entry(key, entry, error))).ok()
    });
    entries.collect()
}

fn addresses(key: &'static str, texts: &[String], most: usize, errors: &mut Vec<Error>) -> Vec<Address> {
    if texts.len() > most {
        errors.push(Error::new(key, format!("{} addresses; at most {most} are used", texts.len())));
        return Vec::new();
    }
    parsed(key, texts, Address::try_from, errors)
}

/// Parse a list of `KEY@HOST:PORT`; several addresses of one key belong to one daemon.
fn contacts(key: &'static str, texts: &[String], most: usize, errors: &mut Vec<Error>) -> Vec<Directory> {
    let mut all: Vec<Directory> = Vec::new();
    for contact in parsed(key, texts, parse_contact, errors) {
        match all.iter_mut().find(|directory| directory.key == contact.0) {
            Some(known) => known.addresses.push(contact.1),
            None => all.push(Directory { key: contact.0, addresses: vec![contact.1] }),
        }
    }
    if all.len() > most {
        errors.push(Error::new(key, format!("{} daemons; at most {most} are used", all.len())));
    }
    for many in all.iter().filter(|directory| directory.addresses.len() > ADDRESSES_MAX) {
        let found = many.addresses.len();
        let message = format!("{found} addresses of {}; at most {ADDRESSES_MAX} are used", many.key);
        errors.push(Error::new(key, message));
    }
    all
}

/// Parse the key and the address in `KEY@HOST:PORT`.
///
/// # Errors
/// What was expected, and what was found.
pub fn parse_contact(text: &str) -> Result<(PeerKey, Address), String> {
    let (key, address) = text.split_once('@').ok_or_else(|| {
        format!("{text:?} has no key; expected KEY@HOST:PORT, as `visperf directory` and `visperf proxy` print at their start")
    })?;
    let key = key.parse::<PeerKey>().map_err(|error| error.to_string())?;
    let address = Address::try_from(address).map_err(|error| error.to_string())?;
    Ok((key, address))
}

fn readers(raw: Option<RawReaders>, errors: &mut Vec<Error>) -> Readers {
    let key = "readers";
    match raw {
        None => Readers::Admitted,
        Some(RawReaders::Word(word)) if word == "admitted" => Readers::Admitted,
        Some(RawReaders::Word(word)) if word == "nobody" => Readers::Nobody,
        Some(RawReaders::Word(word)) => {
            errors.push(Error::new(
                key,
                format!(
                    "{word:?}; expected \"admitted\", \"nobody\" or a list of domains, such as [\"UT-ICL\"]"
                ),
            ));
            Readers::Nobody
        }
        Some(RawReaders::Names(names)) => {
            let names = parsed(key, &names, DomainName::try_from, errors);
            Readers::Listed(names.into_iter().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA";

    fn raw() -> RawConfig {
        RawConfig::default()
    }

    #[test]
    fn nothing_is_needed() {
        let config = Config::default();
        assert_eq!((config.listen, config.readers), (None, Readers::Admitted));
    }

    #[test]
    fn addresses_of_one_directory_come_together() {
        let texts = [format!("{KEY}@a.example:7318"), format!("{KEY}@[2001:db8::1]:7318")];
        let config = Config::new(RawConfig { directories: texts.to_vec(), ..raw() }).expect("good");
        assert_eq!((config.directories.len(), config.directories[0].addresses.len()), (1, 2));
    }

    #[test]
    fn what_cannot_be_meant_names_its_key() {
        let check = |raw: RawConfig, key: &str, says: &str| {
            let errors = Config::new(raw).expect_err(key);
            let [error] = errors.as_slice() else { panic!("{errors:?}") };
            assert!(error.key == key && error.to_string().contains(says), "{error}");
        };
        check(RawConfig { listen: Some("here".into()), ..raw() }, "listen", "0.0.0.0:7318");
        check(RawConfig { advertise: vec!["a b:1".into()], ..raw() }, "advertise", "HOST:PORT");
        check(RawConfig { seeds: vec!["a:1".into(); 17], ..raw() }, "seeds", "at most 16");
        check(RawConfig { directories: vec!["a.example:7318".into()], ..raw() }, "directories", "has no key");
        check(
            RawConfig { directories: vec!["x@a.example:7318".into()], ..raw() },
            "directories",
            "no key of a daemon",
        );
        check(RawConfig { via: vec!["p.example:7318".into()], ..raw() }, "via", "has no key");
        let connect = |proxy: &str, name: Option<&str>| {
            let connect = RawConnect { proxy: proxy.into(), name: name.map(str::to_owned), secret: None };
            RawConfig { connect: Some(connect), ..raw() }
        };
        check(connect("squid", None), "connect", "HOST:PORT");
        check(connect("squid.example:3128", Some("site")), "connect", "together");
        check(RawConfig { readers: Some(RawReaders::Word("all".into())), ..raw() }, "readers", "nobody");
        check(
            RawConfig { readers: Some(RawReaders::Names(vec!["a b".into()])), ..raw() },
            "readers",
            "domain name",
        );
        let several = RawConfig {
            listen: Some("here".into()),
            seeds: vec!["a:1".into(), "b".into(), "c".into()],
            directories: vec!["a.example:7318".into()],
            readers: Some(RawReaders::Names(vec!["a domain".into(), "UT-ICL".into(), "".into()])),
            ..raw()
        };
        let ways: Vec<_> =
            Config::new(several).expect_err("six").iter().map(|error| error.way().join(".")).collect();
        assert_eq!(ways, ["listen", "seeds.1", "seeds.2", "directories.0", "readers.0", "readers.2"]);
    }
}
