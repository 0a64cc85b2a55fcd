//! Whom a daemon believes: its own domain's root, and what its directories say of other domains' roots.
//!
//! Pure. Rule: another domain's root counts only if every directory heard says the same one; a disagreement
//! is refused and told, never voted on. What a directory says never touches the daemon's own domain.
//! Not here: who is denied (`deny_list`), what a principal may do (`admission`).

use super::refused::Refused;
use std::collections::{BTreeMap, BTreeSet};
use wire::id::{DomainName, PeerKey};
use wire::join::DIRECTORIES_MAX;

/// Most domains heard of from one directory: a grid's, ten times over; some 2 MiB each.
pub const DOMAINS_HEARD_MAX: usize = 10_000;

/// Which other domains may read here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Those that the directories admit.
    #[default]
    Admitted,
    /// These of them.
    Listed(BTreeSet<DomainName>),
    /// None.
    Nobody,
}

/// What somebody is to this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Of its own domain; to a directory, of a domain that its operator admits.
    Member,
    /// Of another domain, which may read.
    Reader,
    /// A directory of this grid.
    Directory,
    /// A visitor of no domain, whose proxy vouches for it and who reads what that allows.
    Visitor,
}

/// Which roots are believed, and for what.
#[derive(Clone, Debug)]
pub struct Trust {
    anchors: BTreeMap<DomainName, PeerKey>,
    readers: Readers,
    /// What each directory says, by the directory's key.
    heard: BTreeMap<PeerKey, BTreeMap<DomainName, PeerKey>>,
}

impl Trust {
    /// Of a daemon of `domain`.
    #[must_use]
    pub fn of_member(domain: DomainName, root: PeerKey, readers: Readers) -> Trust {
        Trust { anchors: BTreeMap::from([(domain, root)]), readers, heard: BTreeMap::new() }
    }

    /// Of a directory whose operator admits these domains.
    #[must_use]
    pub fn of_directory(admitted: BTreeMap<DomainName, PeerKey>) -> Trust {
        Trust { anchors: admitted, readers: Readers::Nobody, heard: BTreeMap::new() }
    }

    /// The operator of this directory admits these domains from now on, and no others.
    pub fn admit_only(&mut self, admitted: BTreeMap<DomainName, PeerKey>) {
        self.anchors = admitted;
    }

    /// `directory` says that there are these domains, and no others; that counts until it says otherwise. The caller
    /// has made sure that it is a directory of this grid.
    ///
    /// # Errors
    /// If there is no room for another directory or so many domains; nothing has changed then.
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

    /// The one root of `domain`.
    ///
    /// # Errors
    /// If no one vouches for it, or directories disagree.
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

    /// Whether every domain that directories admit may read here, and so the directories that answer for them.
    #[must_use]
    pub fn admits_readers(&self) -> bool {
        self.readers == Readers::Admitted
    }

    /// What a holder of a certificate of `domain` under `root` is here.
    ///
    /// # Errors
    /// If the domain is not known, has another root, or may not read here.
    pub fn standing(&self, domain: &DomainName, root: PeerKey) -> Result<Standing, Refused> {
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
            Ok(Standing::Member)
        } else if may_read {
            Ok(Standing::Reader)
        } else {
            Err(Refused::NotReader { domain: domain.clone() })
        }
    }
}
