//! A domain's files on the host where it was created, and the issuer's operations on them.
//!
//! ```text
//! STATE/domain/  root.key    the domain's root key; may be moved elsewhere once the domain is created
//!                delegation  the root's delegation to this daemon
//!                book        tokens, members, serial numbers
//!                deny-list   the revocation lists
//!                replace-tokens  tokens of the type replace, and the keys that they replaced
//!                clock       when the clock of this host was last right (`issuer_clock`)
//!                lock        held while one of the files is changed: by the daemon or by a command
//! ```
//!
//! Rules: a decision is on disk before it is handed out. Each change replaces one file, so that a crash
//! leaves the state before or after it. Repeating a creation completes one that a crash interrupted.
//! Not here: the decisions (`issuer_store`, `token`, `revocation_lists`).

mod clock;
mod replacing;

pub use replacing::Replacement;

use super::certificate;
use super::issuer_store::{IssuerStore, Member, RevocationTarget, Signing};
use super::join::Membership;
use super::key::Key;
use super::key_file;
use super::member_files;
use super::refused::Refused;
use super::replace_token::ReplaceTokens;
use super::revocation_lists::{self, RevocationLists};
use super::safe_file;
use super::token::{Spec, SpecError};
use super::trust::{Readers, Trust};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Chain, Delegation, Denial, Denied, DenyList, Roles};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::{Directory, Join, Secret, Token, TokenType};
use wire::sealed::Sealed;
use wire::time::Time;
use wire::version;

const FOLDER: &str = "domain";

/// Why an operation on the domain's files failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] safe_file::Error),
    /// The request was refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The token cannot be made.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No domain was created on this host.
    #[error(
        "no domain was created on this host ({} is not there); type this on the host where `visperf domain create` was \
         typed, or create one", path.display()
    )]
    NotHere {
        /// The missing folder.
        path: PathBuf,
    },
    /// The creation of the domain was interrupted.
    #[error("creation of the domain was cut short ({} is missing); type `visperf domain create` with its name again to \
         complete it", path.display())]
    Half {
        /// The missing file.
        path: PathBuf,
    },
    /// This host already has another domain.
    #[error(
        "this host already has domain {found}, so {asked} cannot be created here; choose another host, or another state \
         folder"
    )]
    OtherDomain {
        /// The existing domain.
        found: DomainName,
        /// The domain to create.
        asked: DomainName,
    },
    /// This host's daemon is a member of another domain.
    #[error(
        "this host is a member of domain {found} (see {}); to leave it for {asked}, move that file away first",
        path.display()
    )]
    MemberElsewhere {
        /// The domain that it is a member of.
        found: DomainName,
        /// The domain to create.
        asked: DomainName,
        /// The file with its membership.
        path: PathBuf,
    },
    /// The delegation names an earlier key of this daemon.
    #[error(
        "domain {domain} delegated to {found}, but this daemon's key is {expected}; type `visperf domain create \
         {domain}` again to delegate to it"
    )]
    OtherIssuer {
        domain: DomainName,
        /// The key in the delegation.
        found: PeerKey,
        /// The key of this daemon.
        expected: PeerKey,
    },
    /// The boot identifier of the host cannot be read, so the clock cannot be compared later.
    #[error(
        "cannot store that the clock is right: /proc/sys/kernel/random/boot_id cannot be read; mount /proc"
    )]
    NoBoot,
    /// The root key is not on this host.
    #[error("{} is needed for this and not there; bring it back while you type this", path.display())]
    NoRoot {
        /// Where it should be.
        path: PathBuf,
    },
}

/// A domain that was created or completed.
#[derive(Clone, Debug)]
pub struct Created {
    /// The public half of its root key.
    pub root: PeerKey,
    /// This daemon's membership of it, stored in its state folder.
    pub membership: Membership,
    /// Whether a file was written.
    pub changed: bool,
}

/// Stamp of a file's content: it changes when the file is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

/// The domain's files, and the key of the daemon that uses them.
#[derive(Debug)]
pub struct DomainFiles {
    state: PathBuf,
    key: Key,
}

/// Content of the files while the lock is held.
struct Open {
    root_key: Option<Key>,
    delegation: Sealed<Delegation>,
    /// The content of `delegation`.
    delegated: Delegation,
    store: IssuerStore,
    deny: RevocationLists,
    _lock: File,
}

impl DomainFiles {
    /// The files under `state` of the daemon whose key is `key`; nothing is read yet.
    #[must_use]
    pub fn new(state: &Path, key: Key) -> DomainFiles {
        DomainFiles { state: state.to_owned(), key }
    }

    /// Whether a domain was created here, even if only in part.
    #[must_use]
    pub fn exist(&self) -> bool {
        self.path("delegation").exists() || self.path("root.key").exists()
    }

    /// Create `domain`, or complete an interrupted creation; this daemon becomes its issuer and first member.
    ///
    /// # Errors
    /// If this host has another domain, or a file cannot be written; repeating the call completes what was
    /// started.
    pub fn create(&self, domain: &DomainName, host: &HostName, now: Time) -> Result<Created, Error> {
        let lock = self.lock()?;
        let held = member_files::load_membership(&self.state)?;
        if let Some(held) = &held {
            let found = held.certificate()?.domain;
            if found != *domain {
                let path = self.state.join(member_files::MEMBERSHIP);
                return Err(Error::MemberElsewhere { found, asked: domain.clone(), path });
            }
        }
        let mut changed = false;
        if !self.path("root.key").exists() && !self.path("delegation").exists() {
            key_file::create_root(&self.path("root.key"), domain)?;
            changed = true;
        }
        changed |= self.complete_delegation(domain, now)?;
        let delegated = self.delegated()?.1;
        if delegated.domain != *domain {
            return Err(Error::OtherDomain { found: delegated.domain, asked: domain.clone() });
        }
        if safe_file::read(&self.path("book"))?.is_none() {
            self.save_store(&IssuerStore::new(domain.clone(), delegated.root))?;
            changed = true;
        }
        let mut open = self.load(lock)?;
        let root = delegated.root;
        let own = self.key.peer();
        let trust = Trust::of_member(domain.clone(), root, Readers::Nobody);
        let holds =
            |held: &Membership| certificate::verify(&held.chain, own, now, &open.deny, &trust).is_ok();
        if let Some(membership) = held.filter(holds) {
            return Ok(Created { root, membership, changed });
        }
        let signing = Signing { key: &self.key, delegation: &open.delegation };
        let chain = open.store.admit(own, host.clone(), Roles::SENSOR, signing, &open.deny, now)?;
        self.save_store(&open.store)?;
        let membership = Membership { chain, issuer: vec![], directories: vec![], seeds: vec![] };
        member_files::save_membership(&self.state, &membership)?;
        Ok(Created { root, membership, changed: true })
    }

    /// Make a delegation to this daemon if there is none or it names an earlier key. Returns whether one was
    /// made.
    fn complete_delegation(&self, domain: &DomainName, now: Time) -> Result<bool, Error> {
        let path = self.path("delegation");
        let held: Option<Sealed<Delegation>> = safe_file::read_framed(&path, version::DELEGATION)?;
        let held = held.map(|held| held.unverified()).transpose().map_err(Refused::from)?;
        if held.as_ref().is_some_and(|held| held.issuer == self.key.peer()) {
            return Ok(false);
        }
        let root_path = self.path("root.key");
        let Some((root, found)) = key_file::load_root(&root_path)? else {
            return Err(Error::NoRoot { path: root_path });
        };
        if found != *domain {
            return Err(Error::OtherDomain { found, asked: domain.clone() });
        }
        let number = held.map_or(0, |held| held.number).saturating_add(1);
        let delegation = certificate::delegate(&root, domain, self.key.peer(), number, now)?;
        safe_file::replace_framed(&path, version::DELEGATION, &delegation)?;
        Ok(true)
    }

    /// Create a token. `addresses` are those of this daemon, where joiners dial it.
    ///
    /// # Errors
    /// If no domain is here, or a token may not give what `spec` specifies.
    pub fn create_token(
        &self,
        spec: Spec,
        addresses: Vec<Address>,
        directories: Vec<Directory>,
        now: Time,
    ) -> Result<Token, Error> {
        let mut open = self.open(now)?;
        let secret = Secret(key_file::random(&self.path("book"))?);
        let expires = open.store.tokens().add(secret, spec, now)?;
        self.save_store(&open.store)?;
        let Delegation { domain, root, issuer, .. } = open.delegated;
        Ok(Token {
            domain,
            root,
            issuer,
            addresses,
            directories,
            secret,
            expires,
            token_type: TokenType::Join,
        })
    }

    /// Redeem a token that `peer` shows; the certificate is on disk when this returns.
    ///
    /// # Errors
    /// If it is refused, or the files cannot be used.
    pub fn redeem(&self, question: &Join, peer: PeerKey, now: Time) -> Result<Chain, Error> {
        let mut open = self.open(now)?;
        let signing = Signing { key: &self.key, delegation: &open.delegation };
        let chain = open.store.redeem(question, peer, signing, &open.deny, now)?;
        self.save_store(&open.store)?;
        Ok(chain)
    }

    /// Renew the certificate of `peer`.
    ///
    /// # Errors
    /// If it is refused, or the files cannot be used.
    pub fn renew(&self, chain: &Chain, peer: PeerKey, now: Time) -> Result<Chain, Error> {
        let mut open = self.open(now)?;
        let signing = Signing { key: &self.key, delegation: &open.delegation };
        let chain = open.store.renew(chain, peer, signing, &open.deny, now)?;
        self.save_store(&open.store)?;
        Ok(chain)
    }

    /// Issue a certificate signed by the root: filter-admins and operators need one.
    ///
    /// # Errors
    /// If the root key is not here, or another key has the host name.
    pub fn certify(
        &self,
        peer: PeerKey,
        host: HostName,
        roles: Roles,
        life: Duration,
        now: Time,
    ) -> Result<Chain, Error> {
        let mut open = self.open(now)?;
        let root = open.root_key.as_ref().ok_or_else(|| Error::NoRoot { path: self.path("root.key") })?;
        let chain = open.store.certify(root, peer, host, roles, life, &open.deny, now)?;
        self.save_store(&open.store)?;
        Ok(chain)
    }

    /// Members and recent members.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn members(&self, now: Time) -> Result<Vec<Member>, Error> {
        let open = self.open(now)?;
        Ok(open.store.members(&open.deny))
    }

    /// Whether a peer other than this daemon has a certificate that is valid at `now`.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn has_others(&self, now: Time) -> Result<bool, Error> {
        let is_other = |member: &Member| {
            let certificate = &member.certificate;
            !member.denied && certificate.peer != self.key.peer() && now < certificate.expires
        };
        Ok(self.members(now)?.iter().any(is_other))
    }

    /// Revoke every certificate of a host or a key; returns the keys that are now denied. The root signs the
    /// list if its key is here, otherwise this issuer does.
    ///
    /// # Errors
    /// If no member has that host name, or the files cannot be used.
    pub fn revoke(&self, target: &RevocationTarget, now: Time) -> Result<Vec<PeerKey>, Error> {
        let mut open = self.open(now)?;
        // With a clock that is ahead, the next certificates of the same key would be denied too.
        let now = self.plausible_clock(now)?.map_or(now, |expected| expected.min(now));
        let denied = open.store.deny(target, now)?;
        let tokens = self.replace_tokens()?;
        self.deny(&mut open, &denied, &tokens, now)?;
        Ok(denied.into_iter().map(|denied| denied.peer).collect())
    }

    /// Add these entries to the revocation list; it is on disk when this returns.
    fn deny(
        &self,
        open: &mut Open,
        denied: &[Denied],
        tokens: &ReplaceTokens,
        now: Time,
    ) -> Result<(), Error> {
        let (domain, root) = (open.delegated.domain.clone(), open.delegated.root);
        let by_root = open.root_key.is_some();
        let held = open.deny.of(&domain).into_iter().find(|list| list.delegation.is_none() == by_root);
        let mut held = held.map(|held| held.list.unverified()).transpose().map_err(Refused::from)?;
        if let Some(held) = &mut held {
            held.denied.retain(|denied| !tokens.is_over(denied, now));
        }
        let list: DenyList = revocation_lists::next(held.as_ref(), &domain, root, denied, now)?;
        let signer = open.root_key.as_ref().unwrap_or(&self.key);
        let delegation = (!by_root).then(|| open.delegation.clone());
        let denial = Denial { list: signer.seal(&list)?, delegation };
        open.deny.take(&denial, &Trust::of_member(domain, root, Readers::Nobody))?;
        let lists: Vec<&Denial> = open.deny.all().collect();
        Ok(safe_file::replace_framed(&self.path("deny-list"), version::DENY_LIST, &lists)?)
    }

    /// The revocation lists, for directories and members.
    ///
    /// # Errors
    /// If no domain is here, or the files cannot be used.
    pub fn denials(&self, now: Time) -> Result<Vec<Denial>, Error> {
        let open = self.open(now)?;
        Ok(open.deny.all().cloned().collect())
    }

    /// Stamp of the revocation list file, which is not read; `None` if nothing was revoked yet.
    #[must_use]
    pub fn revocation_list_stamp(&self) -> Option<Stamp> {
        let found = self.path("deny-list").symlink_metadata().ok()?;
        Some(Stamp { inode: found.ino(), changed: (found.ctime(), found.ctime_nsec()) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.join(FOLDER).join(name)
    }

    fn lock(&self) -> Result<File, Error> {
        safe_file::make_folder(&self.state, FOLDER)?;
        Ok(safe_file::lock(&self.path("lock"))?)
    }

    /// Load all files, and renew the delegation if it is due and the root key is available.
    fn open(&self, now: Time) -> Result<Open, Error> {
        if !self.exist() {
            return Err(Error::NotHere { path: self.state.join(FOLDER) });
        }
        let mut open = self.load(self.lock()?)?;
        let Delegation { domain, issuer, number, issued, expires, .. } = &open.delegated;
        if *issuer != self.key.peer() {
            let (domain, found) = (domain.clone(), *issuer);
            return Err(Error::OtherIssuer { domain, found, expected: self.key.peer() });
        }
        let due = issued.plus(expires.since(*issued) / 2);
        let is_due = now >= due && self.plausible_clock(now)?.is_none();
        if let Some(root) = open.root_key.as_ref().filter(|_| is_due) {
            let fresh = certificate::delegate(root, domain, *issuer, number.saturating_add(1), now)?;
            safe_file::replace_framed(&self.path("delegation"), version::DELEGATION, &fresh)?;
            (open.delegation, open.delegated) = self.delegated()?;
        }
        Ok(open)
    }

    fn delegated(&self) -> Result<(Sealed<Delegation>, Delegation), Error> {
        let path = self.path("delegation");
        let sealed: Option<Sealed<Delegation>> = safe_file::read_framed(&path, version::DELEGATION)?;
        let sealed = sealed.ok_or(Error::Half { path })?;
        let claimed = sealed.unverified().map_err(Refused::from)?;
        let delegation = certificate::open_delegation(&sealed, &claimed.domain, claimed.root)?;
        Ok((sealed, delegation))
    }

    fn load(&self, lock: File) -> Result<Open, Error> {
        let (delegation, delegated) = self.delegated()?;
        let path = self.path("book");
        let store: Option<IssuerStore> = safe_file::read_framed(&path, version::BOOK)?;
        let store = store.ok_or(Error::Half { path })?;
        let root_key = key_file::load_root(&self.path("root.key"))?.map(|(key, _)| key);
        let mut deny = RevocationLists::default();
        let trust = Trust::of_member(delegated.domain.clone(), delegated.root, Readers::Nobody);
        let lists: Option<Vec<Denial>> = safe_file::read_framed(&self.path("deny-list"), version::DENY_LIST)?;
        for denial in lists.unwrap_or_default() {
            deny.take(&denial, &trust)?;
        }
        Ok(Open { root_key, delegation, delegated, store, deny, _lock: lock })
    }

    fn save_store(&self, store: &IssuerStore) -> Result<(), Error> {
        Ok(safe_file::replace_framed(&self.path("book"), version::BOOK, store)?)
    }
}
