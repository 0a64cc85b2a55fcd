//! Trusted roots: that of the daemon's own domain, and those of other domains, received from directories.
//!
//! Pure. Rule: another domain's root counts only if every directory that lists the domain names the same one;
//! a disagreement is refused and reported, never voted on. A directory never changes the root of the daemon's
//! own domain.
//! Not here: revocation (`revocation_lists`), what a principal may do (`admission`).

use super::refused::Refused;
use std::collections::{BTreeMap, BTreeSet};
use wire::id::{DomainName, PeerKey};
use wire::join::DIRECTORIES_MAX;

/// Most domains received from one directory: ten times those of a grid; about 2 MiB each.
pub const DOMAINS_HEARD_MAX: usize = 10_000;

/// Which other domains may read here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// All domains that the directories admit.
    #[default]
    Admitted,
    /// Of these, the listed ones.
    Listed(BTreeSet<DomainName>),
    /// No other domain.
    Nobody,
}

/// How a peer belongs to this daemon's domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affiliation {
    /// A member of its domain; for a directory, a member of a domain that its operator admits.
    Member,
    /// A member of another domain, which may read here.
    Reader,
    /// A directory of this grid.
    Directory,
    /// A guest of no domain, for which a proxy vouches; it reads what its guest certificate allows.
    Visitor,
}

/// Which roots are trusted, and for what.
#[derive(Clone, Debug)]
pub struct Trust {
    anchors: BTreeMap<DomainName, PeerKey>,
    readers: Readers,
    /// The domains that each directory lists, by the directory's key.
    heard: BTreeMap<PeerKey, BTreeMap<DomainName, PeerKey>>,
}

impl Trust {
    /// The trust of a daemon of `domain`.
    #[must_use]
    pub fn of_member(domain: DomainName, root: PeerKey, readers: Readers) -> Trust {
        Trust { anchors: BTreeMap::from([(domain, root)]), readers, heard: BTreeMap::new() }
    }

    /// The trust of a directory whose operator admits these domains.
    #[must_use]
    pub fn of_directory(admitted: BTreeMap<DomainName, PeerKey>) -> Trust {
        Trust { anchors: admitted, readers: Readers::Nobody, heard: BTreeMap::new() }
    }

    /// Replace the domains that the operator of this directory admits.
    pub fn admit_only(&mut self, admitted: BTreeMap<DomainName, PeerKey>) {
        self.anchors = admitted;
    }

    /// Replace the domains that `directory` lists. The caller has made sure that it is a directory of this
    /// grid.
    ///
    /// # Errors
    /// If there is no room for another directory or for so many domains; nothing has changed then.
    pub fn hear_only(
        &mut self,
        directory: PeerKey,
        domains: BTreeMap<DomainName, PeerKey>,
    ) -> Result<(), Refused> {
        if domains.len() > DOMAINS_HEARD_MAX {
            let remedy = "ask the directory's operator to remove those that are gone";
            return Err(Refused::Full { what: "domains of a directory", max: DOMAINS_HEARD_MAX, remedy });
        }
        if !self.heard.contains_key(&directory) && self.heard.len() >= DIRECTORIES_MAX {
            let remedy = "configure fewer directories";
            return Err(Refused::Full { what: "directories", max: DIRECTORIES_MAX, remedy });
        }
        self.heard.insert(directory, domains);
        Ok(())
    }

    /// The trusted root of `domain`.
    ///
    /// # Errors
    /// If no directory vouches for it, or the directories disagree.
    pub fn root_of(&self, domain: &DomainName) -> Result<PeerKey, Refused> {
        if let Some(&root) = self.anchors.get(domain) {
            return Ok(root);
        }
        let mut roots = self.heard.values().filter_map(|said| said.get(domain).copied());
        let one = roots.next().ok_or_else(|| Refused::UnknownDomain { domain: domain.clone() })?;
        match roots.find(|&other| other != one) {
            None => Ok(one),
            Some(other) => Err(Refused::RootDisputed { domain: domain.clone(), one, other }),
        }
    }

    /// Whether every domain that directories admit may read here; if so, directories may read too, on their
    /// behalf.
    #[must_use]
    pub fn admits_readers(&self) -> bool {
        self.readers == Readers::Admitted
    }

    /// The affiliation here of a peer with a certificate of `domain` under `root`.
    ///
    /// # Errors
    /// If the domain is not known, has another root, or may not read here.
    pub fn affiliation(&self, domain: &DomainName, root: PeerKey) -> Result<Affiliation, Refused> {
        let expected = self.root_of(domain)?;
        if root != expected {
            return Err(Refused::Root { domain: domain.clone(), found: root, expected });
        }
        let may_read = match &self.readers {
            Readers::Admitted => true,
            Readers::Listed(listed) => listed.contains(domain),
            Readers::Nobody => false,
        };
        if self.anchors.contains_key(domain) {
            Ok(Affiliation::Member)
        } else if may_read {
            Ok(Affiliation::Reader)
        } else {
            Err(Refused::NotReader { domain: domain.clone() })
        }
    }
}
