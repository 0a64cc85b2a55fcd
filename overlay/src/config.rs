//! How a daemon takes part in the overlay: the `[overlay]` section of the configuration file.
//!
//! Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction. A daemon
//! without credentials takes no part, whatever the section says.
//! Not here: certificates and what a token brought (`identity::member_files`).

use crate::identity::trust::Readers;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use wire::address::Address;
use wire::id::{DomainName, PeerKey};
use wire::join::{ADDRESSES_MAX, DIRECTORIES_MAX, Directory, SEEDS_MAX};

/// The TCP port of the overlay unless told otherwise.
pub const PORT: u16 = 7318;

/// The section as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Where to listen.
    pub listen: Option<String>,
    /// Where others can dial this daemon, if that is not where it listens.
    #[serde(default)]
    pub advertise: Vec<String>,
    /// Where to look for members of the domain first.
    #[serde(default)]
    pub seeds: Vec<String>,
    /// Directories, each `KEY@HOST:PORT`.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Which other domains may read here: `admitted`, `nobody`, or names.
    pub readers: Option<RawReaders>,
}

/// `readers` as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected \"admitted\", \"nobody\" or a list of domains, such as [\"UT-ICL\"]")]
pub enum RawReaders {
    /// A word.
    Word(String),
    /// Names.
    Names(Vec<String>),
}

/// How a daemon takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; `None` for the usual place.
    pub listen: Option<SocketAddr>,
    /// Where others can dial it; empty for where it listens.
    pub advertise: Vec<Address>,
    /// Where to look for members first, beside those that the token named.
    pub seeds: Vec<Address>,
    /// Directories beside those that the token named.
    pub directories: Vec<Directory>,
    /// Which other domains may read here.
    pub readers: Readers,
}

/// A value that cannot be meant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The key in the section.
    pub key: &'static str,
    /// Of what stands in a list its number, from 0.
    pub entry: Option<usize>,
    message: String,
}

impl Error {
    fn of_entry(key: &'static str, entry: usize, message: impl ToString) -> Error {
        Error { key, entry: Some(entry), message: message.to_string() }
    }

    /// The way to the value in the section.
    #[must_use]
    pub fn way(&self) -> Vec<String> {
        let entry = self.entry.map(|entry| entry.to_string());
        std::iter::once(self.key.to_owned()).chain(entry).collect()
    }
}

fn refuse<T>(key: &'static str, message: impl ToString) -> Result<T, Error> {
    Err(Error { key, entry: None, message: message.to_string() })
}

impl Config {
    /// The checked form of a section.
    ///
    /// # Errors
    /// Every value that cannot be meant, one of a key.
    pub fn new(raw: RawConfig) -> Result<Config, Vec<Error>> {
        let listen = raw.listen.as_deref().map(listen_of).transpose();
        let advertise = addresses("advertise", &raw.advertise, ADDRESSES_MAX);
        let seeds = addresses("seeds", &raw.seeds, SEEDS_MAX);
        match (listen, advertise, seeds, directories(&raw.directories), readers(raw.readers)) {
            (Ok(listen), Ok(advertise), Ok(seeds), Ok(directories), Ok(readers)) => {
                Ok(Config { listen, advertise, seeds, directories, readers })
            }
            (listen, advertise, seeds, directories, readers) => {
                let errors = [listen.err(), advertise.err(), seeds.err(), directories.err(), readers.err()];
                Err(errors.into_iter().flatten().collect())
            }
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::new(RawConfig::default()).expect("an empty section is valid")
    }
}

fn listen_of(text: &str) -> Result<SocketAddr, Error> {
    text.parse().or_else(|_| {
        refuse("listen", format!("{text:?} is no address to listen on; expected ADDRESS:PORT, such as 0.0.0.0:{PORT} or 127.0.0.1:{PORT}"))
    })
}

fn addresses(key: &'static str, texts: &[String], most: usize) -> Result<Vec<Address>, Error> {
    if texts.len() > most {
        return refuse(key, format!("{} addresses; at most {most} are used", texts.len()));
    }
    let parse = |(entry, text): (usize, &String)| {
        Address::try_from(text.as_str()).map_err(|error| Error::of_entry(key, entry, error))
    };
    texts.iter().enumerate().map(parse).collect()
}

/// `KEY@HOST:PORT` each; several addresses of one key belong to one directory.
fn directories(texts: &[String]) -> Result<Vec<Directory>, Error> {
    let key = "directories";
    let mut all: Vec<Directory> = Vec::new();
    for (entry, text) in texts.iter().enumerate() {
        let contact = parse_contact(text).map_err(|message| Error::of_entry(key, entry, message))?;
        match all.iter_mut().find(|directory| directory.key == contact.0) {
            Some(known) => known.addresses.push(contact.1),
            None => all.push(Directory { key: contact.0, addresses: vec![contact.1] }),
        }
    }
    if all.len() > DIRECTORIES_MAX {
        return refuse(key, format!("{} directories; at most {DIRECTORIES_MAX} make a grid", all.len()));
    }
    if let Some(many) = all.iter().find(|directory| directory.addresses.len() > ADDRESSES_MAX) {
        let found = many.addresses.len();
        return refuse(key, format!("{found} addresses of {}; at most {ADDRESSES_MAX} are used", many.key));
    }
    Ok(all)
}

/// The key and the address in `KEY@HOST:PORT`.
///
/// # Errors
/// What was expected, and what was found.
pub fn parse_contact(text: &str) -> Result<(PeerKey, Address), String> {
    let (key, address) = text.split_once('@').ok_or_else(|| {
        format!("{text:?} has no key; expected KEY@HOST:PORT, as `visperf directory` prints at its start")
    })?;
    let key = key.parse::<PeerKey>().map_err(|error| error.to_string())?;
    let address = Address::try_from(address).map_err(|error| error.to_string())?;
    Ok((key, address))
}

fn readers(raw: Option<RawReaders>) -> Result<Readers, Error> {
    let key = "readers";
    match raw {
        None => Ok(Readers::Admitted),
        Some(RawReaders::Word(word)) if word == "admitted" => Ok(Readers::Admitted),
        Some(RawReaders::Word(word)) if word == "nobody" => Ok(Readers::Nobody),
        Some(RawReaders::Word(word)) => refuse(
            key,
            format!("{word:?}; expected \"admitted\", \"nobody\" or a list of domains, such as [\"UT-ICL\"]"),
        ),
        Some(RawReaders::Names(names)) => {
            let parse = |(entry, name): (usize, &String)| {
                DomainName::try_from(name.as_str()).map_err(|error| Error::of_entry(key, entry, error))
            };
            Ok(Readers::Listed(names.iter().enumerate().map(parse).collect::<Result<BTreeSet<_>, _>>()?))
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
        check(RawConfig { readers: Some(RawReaders::Word("all".into())), ..raw() }, "readers", "nobody");
        check(
            RawConfig { readers: Some(RawReaders::Names(vec!["a b".into()])), ..raw() },
            "readers",
            "domain name",
        );
        let both = RawConfig { listen: Some("here".into()), seeds: vec!["a:1".into(), "b".into()], ..raw() };
        let ways: Vec<_> = Config::new(both).expect_err("two").iter().map(Error::way).collect();
        assert_eq!(ways, [vec!["listen"], vec!["seeds", "1"]], "each is told");
    }
}
