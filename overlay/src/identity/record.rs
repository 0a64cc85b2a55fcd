//! Records and leaves of domains, signed by representatives for the directories.
//!
//! Pure. Rule: a record is accepted if its signer's certificate is of the same domain, under the root that is
//! trusted for it, has the role of representative, and has the same host and key as the record; a leave
//! likewise, except that it names no host. Which peer hands it over does not matter.
//! Not here: which of two records is used (`directory::registry`).

use super::key::{self, Key};
use super::principal::Principal;
use super::refused::Refused;
use super::revocation_lists::RevocationLists;
use super::trust::{Affiliation, Trust};
use super::verified::Verified;
use wire::credential::{Chain, Role, Statement};
use wire::id::{DomainName, PeerKey};
use wire::registration::{Coverage, PART_HOSTS_MAX, REACH_ADDRESSES_MAX, Reach, Record};
use wire::replication::{Farewell, Leave};
use wire::time::Time;

/// Sign `record` with `key`, whose certificate is `chain`.
///
/// # Errors
/// If the record exceeds its maximum length.
pub fn state(record: &Record, key: &Key, chain: &Chain) -> Result<Statement, Refused> {
    Ok(Statement { record: key.seal(record)?, chain: chain.clone() })
}

/// Verify the record in `statement`. Returns it and its signer.
///
/// # Errors
/// Which check failed.
pub fn open_record(
    statement: &Statement,
    trust: &Trust,
    deny: &RevocationLists,
    now: Time,
) -> Result<(Record, Principal), Refused> {
    Opener { trust, deny, verified: &mut Verified::default(), now }.record(statement)
}

/// Sign `leave` with `key`, whose certificate is `chain`.
///
/// # Errors
/// None in practice: every valid name fits.
pub fn take_leave(leave: &Leave, key: &Key, chain: &Chain) -> Result<Farewell, Refused> {
    Ok(Farewell { leave: key.seal(leave)?, chain: chain.clone() })
}

/// Verify the leave in `farewell`. Returns it and its signer.
///
/// # Errors
/// Which check failed.
pub fn open_leave(
    farewell: &Farewell,
    trust: &Trust,
    deny: &RevocationLists,
    now: Time,
) -> Result<(Leave, Principal), Refused> {
    Opener { trust, deny, verified: &mut Verified::default(), now }.leave(farewell)
}

/// Verifies what representatives and operators signed, by the current roots and revocation lists.
#[derive(Debug)]
pub(super) struct Opener<'a> {
    pub(super) trust: &'a Trust,
    pub(super) deny: &'a RevocationLists,
    pub(super) verified: &'a mut Verified,
    pub(super) now: Time,
}

impl Opener<'_> {
    pub(super) fn record(&mut self, statement: &Statement) -> Result<(Record, Principal), Refused> {
        let claimed = statement.record.unverified()?;
        let signer = statement.record.signer();
        let principal = self.signer(&claimed.domain, signer, &statement.chain, "state a record")?;
        let record = key::open(&statement.record, principal.peer)?;
        check_content(&record, &principal)?;
        Ok((record, principal))
    }

    pub(super) fn leave(&mut self, farewell: &Farewell) -> Result<(Leave, Principal), Refused> {
        let claimed = farewell.leave.unverified()?;
        let signer = farewell.leave.signer();
        let principal = self.signer(&claimed.domain, signer, &farewell.chain, "end a domain")?;
        let leave = key::open(&farewell.leave, principal.peer)?;
        check_domain(&leave.domain, &principal)?;
        check_keys(&leave.domain, leave.peer, leave.root, &principal)?;
        Ok((leave, principal))
    }

    /// Verify the signer: it must be a representative of `domain`.
    fn signer(
        &mut self,
        domain: &DomainName,
        signer: PeerKey,
        chain: &Chain,
        action: &'static str,
    ) -> Result<Principal, Refused> {
        let root = self.trust.root_of(domain)?;
        // A domain's record of itself is accepted even if the domain may not read here.
        let affiliation = self.trust.affiliation(domain, root).unwrap_or(Affiliation::Reader);
        let principal = self.verified.principal(chain, signer, self.now, self.deny, affiliation, root)?;
        if !principal.roles.has(Role::Representative) {
            let needed = "representative";
            return Err(Refused::Role { action, peer: principal.peer, needed, found: principal.roles });
        }
        Ok(principal)
    }
}

fn check_domain(domain: &DomainName, principal: &Principal) -> Result<(), Refused> {
    match principal.domain.as_ref().filter(|own| *own != domain) {
        Some(own) => Err(Refused::Domain { found: domain.clone(), own: own.clone() }),
        None => Ok(()),
    }
}

/// Check that the signed value has the key and the root of its signer.
fn check_keys(
    domain: &DomainName,
    peer: PeerKey,
    root: PeerKey,
    principal: &Principal,
) -> Result<(), Refused> {
    let differs = |field, found: PeerKey, expected: Option<PeerKey>| {
        let expected = expected.map_or_else(|| "none".to_owned(), |key| key.to_string());
        Err(Refused::Record { domain: domain.clone(), field, found: found.to_string(), expected })
    };
    if peer != principal.peer {
        return differs("key", peer, Some(principal.peer));
    }
    if principal.root != Some(root) {
        return differs("root", root, principal.root);
    }
    Ok(())
}

fn check_content(record: &Record, principal: &Principal) -> Result<(), Refused> {
    check_domain(&record.domain, principal)?;
    let differs = |field, found: String, expected: String| {
        Err(Refused::Record { domain: record.domain.clone(), field, found, expected })
    };
    if principal.host.as_ref() != Some(&record.host) {
        let expected = principal.host.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        return differs("host", record.host.to_string(), expected);
    }
    let Some(reach) = &record.reach else {
        return differs("key", "none".to_owned(), principal.peer.to_string());
    };
    check_keys(&record.domain, reach.peer, reach.root, principal)?;
    check_lengths(reach)
}

fn check_lengths(reach: &Reach) -> Result<(), Refused> {
    let remedy = "state fewer";
    if reach.addresses.len() > REACH_ADDRESSES_MAX {
        return Err(Refused::Full { what: "addresses of a record", max: REACH_ADDRESSES_MAX, remedy });
    }
    match &reach.coverage {
        Coverage::Part { hosts, .. } if hosts.len() > PART_HOSTS_MAX => {
            Err(Refused::Full { what: "hosts of a record", max: PART_HOSTS_MAX, remedy })
        }
        Coverage::Part { .. } | Coverage::Whole { .. } => Ok(()),
    }
}
