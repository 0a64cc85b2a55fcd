//! Revocation lists: the newest of each domain, and how a newer one replaces an older.
//!
//! Pure. Rules: the root's list and the issuer's are stored side by side, and a peer on either is denied.
//! Each is replaced only by a higher number of its signer, so that an old one cannot be replayed. A list of
//! the root that denies the issuer removes the list of that issuer, whatever its number. A list does not
//! expire with the delegation of its signer: to believe a revocation for too long is the safer error.
//! Not here: the files that make the lists survive a restart (`member_files`, `domain_files`).

use super::certificate;
use super::key;
use super::refused::Refused;
use super::trust::Trust;
use std::collections::BTreeMap;
use wire::credential::{DENIED_MAX, Delegation, Denial, Denied, DenyList};
use wire::id::{DomainName, PeerKey};
use wire::sealed::Sealable as _;
use wire::time::Time;

/// Most denied peers of all domains: about 20 MiB.
pub const DENIED_ALL_MAX: usize = 200_000;

/// Result of taking a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOutcome {
    /// It is stored now, in place of an older one.
    New,
    /// It was stored already.
    Known,
}

#[derive(Clone, Debug)]
struct StoredList {
    number: u64,
    until: BTreeMap<PeerKey, Time>,
    delegation: Option<Delegation>,
    signed: Denial,
}

#[derive(Clone, Debug)]
struct DomainLists {
    root: PeerKey,
    by_root: Option<StoredList>,
    by_issuer: Option<StoredList>,
}

impl DomainLists {
    fn each(&self) -> impl Iterator<Item = &StoredList> {
        self.by_root.iter().chain(&self.by_issuer)
    }
}

/// Every revocation list in force, by domain.
#[derive(Clone, Debug, Default)]
pub struct RevocationLists {
    domains: BTreeMap<DomainName, DomainLists>,
}

impl RevocationLists {
    /// Take a list, whichever peer handed it over.
    ///
    /// # Errors
    /// If its domain is not known, its signature is not valid, or it is not newer than the stored one;
    /// nothing has changed then.
    pub fn take(&mut self, denial: &Denial, trust: &Trust) -> Result<TakeOutcome, Refused> {
        let (list, delegation) = open(denial, trust)?;
        let held = self.domains.get(&list.domain).filter(|lists| lists.root == list.root);
        if let (Some(delegation), Some(by_root)) = (&delegation, held.and_then(|held| held.by_root.as_ref()))
        {
            refuse_denied(by_root, delegation.issuer, delegation.issued)?;
        }
        let place = held.and_then(|held| match delegation {
            None => held.by_root.as_ref(),
            Some(_) => held.by_issuer.as_ref(),
        });
        if let Some(held) = place
            && is_held(held, &list, denial, delegation.as_ref())?
        {
            return Ok(TakeOutcome::Known);
        }
        let replaced = place.map_or(0, |held| held.until.len());
        if self.denied_len() - replaced + list.denied.len() > DENIED_ALL_MAX {
            let remedy = "remove directories or domains that are no longer needed";
            return Err(Refused::Full { what: "denied peers", max: DENIED_ALL_MAX, remedy });
        }
        self.put(list, delegation, denial.clone());
        Ok(TakeOutcome::New)
    }

    fn put(&mut self, list: DenyList, delegation: Option<Delegation>, signed: Denial) {
        let mut until = BTreeMap::new();
        for Denied { peer, issued_until } in list.denied {
            let entry = until.entry(peer).or_insert(issued_until);
            *entry = issued_until.max(*entry);
        }
        let lists = self.domains.entry(list.domain).or_insert(DomainLists {
            root: list.root,
            by_root: None,
            by_issuer: None,
        });
        if lists.root != list.root {
            *lists = DomainLists { root: list.root, by_root: None, by_issuer: None };
        }
        let held = StoredList { number: list.number, until, delegation, signed };
        if held.delegation.is_some() {
            lists.by_issuer = Some(held);
            return;
        }
        let ended = lists.by_issuer.as_ref().and_then(|of_issuer| of_issuer.delegation.as_ref());
        if ended.is_some_and(|delegation| refuse_denied(&held, delegation.issuer, delegation.issued).is_err())
        {
            lists.by_issuer = None;
        }
        lists.by_root = Some(held);
    }

    /// Check that what was `issued` to `peer` in `domain` under `root` is not revoked.
    ///
    /// # Errors
    /// If the peer is denied.
    pub fn check(
        &self,
        domain: &DomainName,
        root: PeerKey,
        peer: PeerKey,
        issued: Time,
    ) -> Result<(), Refused> {
        let lists = self.domains.get(domain).filter(|lists| lists.root == root);
        lists.into_iter().flat_map(DomainLists::each).try_for_each(|held| refuse_denied(held, peer, issued))
    }

    /// The issue time up to which certificates of `peer` are denied, if any are.
    #[must_use]
    pub fn issued_until(&self, domain: &DomainName, peer: PeerKey) -> Option<Time> {
        self.domains.get(domain)?.each().filter_map(|held| held.until.get(&peer).copied()).max()
    }

    /// The lists of `domain`, to be passed on: at most two.
    #[must_use]
    pub fn of(&self, domain: &DomainName) -> Vec<Denial> {
        let lists = self.domains.get(domain);
        lists.into_iter().flat_map(DomainLists::each).map(|held| held.signed.clone()).collect()
    }

    /// Every list, to be stored or compared, by domain.
    pub fn all(&self) -> impl Iterator<Item = &Denial> {
        self.domains.values().flat_map(DomainLists::each).map(|held| &held.signed)
    }

    /// Numbers of the root's list and the issuer's list of `domain`; 0 where there is none. A peer with lower
    /// numbers is behind.
    #[must_use]
    pub fn numbers(&self, domain: &DomainName) -> (u64, u64) {
        let number = |held: &Option<StoredList>| held.as_ref().map_or(0, |held| held.number);
        self.domains.get(domain).map_or((0, 0), |lists| (number(&lists.by_root), number(&lists.by_issuer)))
    }

    fn denied_len(&self) -> usize {
        self.domains.values().flat_map(DomainLists::each).map(|held| held.until.len()).sum()
    }
}

/// Open a revocation list: its content and the delegation of its signer, if both are correctly signed.
pub(super) fn open(denial: &Denial, trust: &Trust) -> Result<(DenyList, Option<Delegation>), Refused> {
    let claimed = denial.list.unverified()?;
    let expected = trust.root_of(&claimed.domain)?;
    if claimed.root != expected {
        return Err(Refused::Root { domain: claimed.domain, found: claimed.root, expected });
    }
    if claimed.denied.len() > DENIED_MAX {
        let remedy = "a list holds what is needed and no more";
        return Err(Refused::Full { what: "denied peers of a list", max: DENIED_MAX, remedy });
    }
    let Some(delegation) = &denial.delegation else {
        return Ok((key::open(&denial.list, expected)?, None));
    };
    let delegation = certificate::open_delegation(delegation, &claimed.domain, expected)?;
    if denial.list.signer() != delegation.issuer {
        let signer = denial.list.signer();
        return Err(Refused::NotDelegated { what: DenyList::LABEL, signer, domain: claimed.domain });
    }
    Ok((key::open(&denial.list, delegation.issuer)?, Some(delegation)))
}

/// Whether `list` is the stored one; an error if it is older or contradicts it.
fn is_held(
    held: &StoredList,
    list: &DenyList,
    denial: &Denial,
    delegation: Option<&Delegation>,
) -> Result<bool, Refused> {
    let issuer = |delegation: Option<&Delegation>| delegation.map(|it| (it.issuer, u64::from(it.number)));
    // Of two issuers, the one with the later delegation counts; of one signer, its higher number.
    let (found, newest) = match (issuer(delegation), issuer(held.delegation.as_ref())) {
        (Some((one, number)), Some((other, held_number))) if one != other => (number, held_number),
        _ => (list.number, held.number),
    };
    let domain = list.domain.clone();
    match found.cmp(&newest) {
        std::cmp::Ordering::Greater => Ok(false),
        std::cmp::Ordering::Less => {
            Err(Refused::DenyListOld { domain, found: list.number, held: held.number })
        }
        std::cmp::Ordering::Equal if held.signed.list == denial.list => Ok(true),
        std::cmp::Ordering::Equal => Err(Refused::DenyListTwice { domain, number: list.number }),
    }
}

fn refuse_denied(held: &StoredList, peer: PeerKey, issued: Time) -> Result<(), Refused> {
    match held.until.get(&peer) {
        Some(&issued_until) if issued <= issued_until => {
            Err(Refused::Denied { peer, number: held.number, issued_until })
        }
        _ => Ok(()),
    }
}

/// The successor of `held` with these entries added, for the signer of `held` to sign. Entries are dropped
/// when every certificate and delegation that they could deny has expired.
///
/// # Errors
/// If it would be too long.
pub fn next(
    held: Option<&DenyList>,
    domain: &DomainName,
    root: PeerKey,
    added: &[Denied],
    now: Time,
) -> Result<DenyList, Refused> {
    let before = held.map_or(&[][..], |held| &held.denied);
    let still_needed = |denied: &&Denied| {
        denied.issued_until.plus(certificate::LIFE_BY_ROOT_MAX).plus(certificate::SKEW_MAX) > now
            && !added.iter().any(|one| one.peer == denied.peer)
    };
    let denied: Vec<Denied> = before.iter().filter(still_needed).chain(added).copied().collect();
    if denied.len() > DENIED_MAX {
        let remedy = "create the domain again if so many have to be denied";
        return Err(Refused::Full { what: "denied peers", max: DENIED_MAX, remedy });
    }
    let number = held.map_or(0, |held| held.number).saturating_add(1);
    Ok(DenyList { domain: domain.clone(), root, number, stated: now, denied })
}
