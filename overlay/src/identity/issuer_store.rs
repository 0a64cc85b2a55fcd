//! The issuer's store: its tokens, the certificates that it issued, and the next serial number.
//!
//! Pure. Rules: tokens and certificates are one value, so that redeeming a token and issuing its certificate
//! is one write. A peer has one entry, its newest certificate. One key at a time may speak for a host name;
//! this is checked when a certificate is issued and when it is renewed.
//! Not here: the file (`domain_files`), the rate limit on attempts (`join`).

use super::certificate::{self, LIFE};
use super::key::Key;
use super::refused::Refused;
use super::replace_refused;
use super::revocation_lists::RevocationLists;
use super::token::{Redeemed, TokenStore};
use super::trust::{Readers, Trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::credential::{Certificate, Chain, Delegation, Denied, Role, Roles, Serial};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::Join;
use wire::sealed::Sealed;
use wire::time::Time;

/// Most members of a domain: about 6 MB of store.
pub const MEMBERS_MAX: usize = 20_000;

/// How long an expired certificate stays in the list of members, so that one can see which hosts left.
pub const SHOWN_AFTER: Duration = Duration::from_secs(30 * 86_400);

/// What an issuer signs with.
#[derive(Clone, Copy, Debug)]
pub struct Signing<'a> {
    pub key: &'a Key,
    /// The root's delegation to that key.
    pub delegation: &'a Sealed<Delegation>,
}

/// A member in the list of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub certificate: Certificate,
    /// Whether it was revoked.
    pub denied: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    certificate: Certificate,
    chain: Chain,
}

/// Which certificates to revoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RevocationTarget {
    /// Every key that had this host name.
    Host(HostName),
    Peer(PeerKey),
}

/// The store of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerStore {
    domain: DomainName,
    root: PeerKey,
    tokens: TokenStore,
    members: BTreeMap<PeerKey, Entry>,
    /// Number of the last certificate given.
    last: Serial,
}

impl IssuerStore {
    #[must_use]
    pub fn new(domain: DomainName, root: PeerKey) -> IssuerStore {
        IssuerStore { domain, root, tokens: TokenStore::default(), members: BTreeMap::new(), last: Serial(0) }
    }

    pub fn tokens(&mut self) -> &mut TokenStore {
        &mut self.tokens
    }

    /// Redeem a token: `peer` shows its secret and requests a certificate. A peer that repeats the request
    /// receives the same certificate.
    ///
    /// # Errors
    /// Why no certificate is issued; nothing has changed then.
    pub fn redeem(
        &mut self,
        question: &Join,
        peer: PeerKey,
        signing: Signing<'_>,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        if question.root != self.root {
            let domain = self.domain.clone();
            return Err(Refused::TokenIssuer { found: question.root, expected: self.root, domain });
        }
        // Redeemed on a copy, so that a later refusal does not use up the token.
        let mut tokens = self.tokens.clone();
        let (roles, priority) = match tokens.redeem(question, peer, now)? {
            Redeemed::First { roles, priority } => (roles, priority),
            Redeemed::Again => {
                let entry = self.members.get(&peer).ok_or(Refused::TokenUsed)?;
                deny.check(&self.domain, self.root, peer, entry.certificate.issued)?;
                return Ok(entry.chain.clone());
            }
        };
        self.check_host(&question.host, peer, roles, deny, now)?;
        let chain = self.give(peer, question.host.clone(), roles, priority, signing, deny, now)?;
        self.tokens = tokens;
        Ok(chain)
    }

    /// The certificate of `peer` for this host, if it is valid, not revoked and not yet due for renewal.
    #[must_use]
    pub fn held_by(
        &self,
        peer: PeerKey,
        host: &HostName,
        deny: &RevocationLists,
        now: Time,
    ) -> Option<Chain> {
        let entry = self.members.get(&peer).filter(|entry| entry.certificate.host == *host)?;
        let Certificate { issued, .. } = entry.certificate;
        let is_good =
            now < certificate::renewed_from(&entry.certificate) && !certificate::is_early(issued, now);
        let is_denied = deny.check(&self.domain, self.root, peer, issued).is_err();
        (is_good && !is_denied).then(|| entry.chain.clone())
    }

    /// The certificates that must be revoked before `peer` can have this host name.
    ///
    /// # Errors
    /// If the name belongs to the issuer, `own`, or to a key that the root certified: an operator's.
    pub fn replaceable(
        &self,
        host: &HostName,
        peer: PeerKey,
        roles: Roles,
        own: PeerKey,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Vec<Certificate>, Refused> {
        host.check_member()?;
        for Entry { certificate, chain } in self.members.values() {
            let Certificate { peer: holder, issued, expires, .. } = *certificate;
            let is_over = now >= expires || deny.check(&self.domain, self.root, holder, issued).is_err();
            let whose = match (holder == own, chain.delegation.is_none()) {
                (true, _) => "the issuer's own",
                (false, true) if !is_over => "one that the root certified",
                (false, _) => continue,
            };
            if certificate.host == *host {
                let host = host.clone();
                return Err(replace_refused::Refused::Name { host, whose, peer: holder }.into());
            }
        }
        Ok(self.other_holders(host, peer, roles, deny, now).cloned().collect())
    }

    /// Issue a certificate for this host name to `peer`. The `replaced` certificates were revoked, as `deny`
    /// shows, and are removed.
    ///
    /// # Errors
    /// Why no certificate is issued; nothing has changed then.
    #[expect(clippy::too_many_arguments, reason = "each is one field of the certificate")]
    pub fn replace(
        &mut self,
        replaced: &[Certificate],
        peer: PeerKey,
        host: HostName,
        (roles, priority): (Roles, u8),
        signing: Signing<'_>,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        self.check_host(&host, peer, roles, deny, now)?;
        let chain = self.give(peer, host, roles, priority, signing, deny, now)?;
        for certificate in replaced {
            self.members.remove(&certificate.peer);
        }
        Ok(chain)
    }

    #[must_use]
    pub fn root(&self) -> PeerKey {
        self.root
    }

    /// Issue a certificate without a token: the issuer's own.
    ///
    /// # Errors
    /// If another key has the host name, or only the root may give these roles; nothing has changed then.
    pub fn admit(
        &mut self,
        peer: PeerKey,
        host: HostName,
        roles: Roles,
        signing: Signing<'_>,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        self.check_host(&host, peer, roles, deny, now)?;
        self.give(peer, host, roles, 0, signing, deny, now)
    }

    /// Renew the certificate of `peer`: from half of its life on, or at once if it is not valid yet because a
    /// wrong clock signed it. A peer that repeats the request because the answer was lost receives the same
    /// certificate.
    ///
    /// # Errors
    /// Why it is not renewed; nothing has changed then.
    pub fn renew(
        &mut self,
        chain: &Chain,
        peer: PeerKey,
        signing: Signing<'_>,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        let trust = Trust::of_member(self.domain.clone(), self.root, Readers::Nobody);
        let starts = certificate::open(chain)?.starts();
        certificate::verify(chain, peer, now.max(starts), deny, &trust)?;
        let shown = certificate::open(chain)?.certificate;
        self.check_renewed(&shown, deny, now)?;
        if let Some(entry) = self.members.get(&peer)
            && entry.certificate.serial > shown.serial
            && now < certificate::renewed_from(&entry.certificate)
            && !certificate::is_early(entry.certificate.issued, now)
        {
            return Ok(entry.chain.clone());
        }
        let from = certificate::renewed_from(&shown);
        if now < from && !certificate::is_early(shown.issued, now) {
            return Err(Refused::TooEarly { serial: shown.serial, from });
        }
        self.give(peer, shown.host, shown.roles, shown.priority, signing, deny, now)
    }

    /// Issue a certificate of any role, signed by the root.
    ///
    /// # Errors
    /// If another key has the host name, or the store is full; nothing has changed then.
    #[expect(clippy::too_many_arguments, reason = "each is one field of the certificate")]
    pub fn certify(
        &mut self,
        root: &Key,
        peer: PeerKey,
        host: HostName,
        roles: Roles,
        life: Duration,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        self.check_host(&host, peer, roles, deny, now)?;
        let mut certificate = self.next(peer, host, roles, 0, deny, now)?;
        let max = certificate::LIFE_BY_ROOT_MAX;
        if life > max {
            return Err(Refused::TooLong { what: "certificate", span: life, max });
        }
        certificate.expires = certificate.issued.plus(life);
        let chain = Chain { certificate: root.seal(&certificate)?, delegation: None };
        self.put(certificate, &chain);
        Ok(chain)
    }

    /// Members and recent members, sorted by host.
    #[must_use]
    pub fn members(&self, deny: &RevocationLists) -> Vec<Member> {
        let member = |entry: &Entry| {
            let certificate = entry.certificate.clone();
            let checked = deny.check(&self.domain, self.root, certificate.peer, certificate.issued);
            Member { certificate, denied: checked.is_err() }
        };
        let mut members: Vec<_> = self.members.values().map(member).collect();
        members.sort_by(|one, other| {
            let order = |member: &Member| (member.certificate.host.clone(), member.certificate.peer);
            order(one).cmp(&order(other))
        });
        members
    }

    /// When the newest certificate was signed, by the clock of that time; none if it was removed from the
    /// store.
    #[must_use]
    pub fn newest_signed(&self) -> Option<Time> {
        let newest = self.members.values().find(|entry| entry.certificate.serial == self.last);
        newest.map(|entry| entry.certificate.issued)
    }

    /// The entries to add to the revocation list so that `target` is refused. A key need not belong to a
    /// member: it may be that of an issuer.
    ///
    /// # Errors
    /// If no member has that host name.
    pub fn deny(&self, target: &RevocationTarget, now: Time) -> Result<Vec<Denied>, Refused> {
        let peers: Vec<PeerKey> = match target {
            RevocationTarget::Peer(peer) => vec![*peer],
            RevocationTarget::Host(host) => {
                let of_host = |entry: &&Entry| entry.certificate.host == *host;
                self.members.values().filter(of_host).map(|entry| entry.certificate.peer).collect()
            }
        };
        if peers.is_empty() {
            let found =
                if let RevocationTarget::Host(host) = target { host.to_string() } else { String::new() };
            return Err(Refused::NoMember { found });
        }
        let issued = |peer| self.members.get(&peer).map_or(now, |entry| entry.certificate.issued);
        Ok(peers.into_iter().map(|peer| Denied { peer, issued_until: now.max(issued(peer)) }).collect())
    }

    fn check_host(
        &self,
        host: &HostName,
        peer: PeerKey,
        roles: Roles,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<(), Refused> {
        host.check_member()?;
        self.other_holders(host, peer, roles, deny, now)
            .next()
            .map_or(Ok(()), |other| Err(taken(host, other)))
    }

    /// Check that the host name in `shown` still belongs to its key. If an earlier version, which lacked this
    /// check, issued two spellings of one name, both are renewed: the operator decides which of them to
    /// revoke.
    fn check_renewed(&self, shown: &Certificate, deny: &RevocationLists, now: Time) -> Result<(), Refused> {
        let is_given = |other: &&Certificate| {
            other.issued >= shown.expires || other.host.as_str() == shown.host.as_str()
        };
        let mut others = self.other_holders(&shown.host, shown.peer, shown.roles, deny, now);
        others.find(is_given).map_or(Ok(()), |other| Err(taken(&shown.host, other)))
    }

    /// Valid certificates of other keys that speak for this host; empty if `roles` do not speak for a host.
    fn other_holders<'a>(
        &'a self,
        host: &'a HostName,
        peer: PeerKey,
        roles: Roles,
        deny: &'a RevocationLists,
        now: Time,
    ) -> impl Iterator<Item = &'a Certificate> {
        let speaks = |roles: Roles| roles.has(Role::Publisher) || roles.has(Role::Representative);
        let certificates = self.members.values().map(|entry| &entry.certificate);
        certificates.filter(move |other| {
            speaks(roles)
                && other.host == *host
                && other.peer != peer
                && speaks(other.roles)
                && now < other.expires
                && deny.check(&self.domain, self.root, other.peer, other.issued).is_ok()
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is one field of the certificate")]
    fn give(
        &mut self,
        peer: PeerKey,
        host: HostName,
        roles: Roles,
        priority: u8,
        signing: Signing<'_>,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Chain, Refused> {
        if roles.need_root() {
            return Err(Refused::RoleOfRoot { roles, signer: signing.key.peer() });
        }
        let certificate = self.next(peer, host, roles, priority, deny, now)?;
        let delegation = Some(signing.delegation.clone());
        let chain = Chain { certificate: signing.key.seal(&certificate)?, delegation };
        self.put(certificate, &chain);
        Ok(chain)
    }

    fn next(
        &mut self,
        peer: PeerKey,
        host: HostName,
        roles: Roles,
        priority: u8,
        deny: &RevocationLists,
        now: Time,
    ) -> Result<Certificate, Refused> {
        self.members.retain(|_, entry| now < entry.certificate.expires.plus(SHOWN_AFTER));
        if !self.members.contains_key(&peer) && self.members.len() >= MEMBERS_MAX {
            let remedy = "wait until some expire, or divide the domain";
            return Err(Refused::Full { what: "members", max: MEMBERS_MAX, remedy });
        }
        // For a peer that was revoked earlier, only a certificate issued after that counts, whatever the
        // clock did since.
        let after = deny.issued_until(&self.domain, peer).map(|until| until.plus(Duration::from_micros(1)));
        let issued = after.map_or(now, |after| after.max(now));
        Ok(Certificate {
            domain: self.domain.clone(),
            root: self.root,
            peer,
            host,
            roles,
            priority,
            serial: Serial(self.last.0 + 1),
            issued,
            expires: issued.plus(LIFE),
        })
    }

    fn put(&mut self, certificate: Certificate, chain: &Chain) {
        self.last = certificate.serial;
        let entry = Entry { chain: chain.clone(), certificate };
        self.members.insert(entry.certificate.peer, entry);
    }
}

fn taken(host: &HostName, other: &Certificate) -> Refused {
    Refused::HostTaken { host: host.clone(), peer: other.peer, until: other.expires }
}
