//! Records of domains as representatives sign them for the directories.
//!
//! Pure. Rule: a record is believed if its signer's certificate is of that very domain, under the root that is
//! believed for it, has the role of representative, and says the same host and key as the record. Who hands it
//! over does not matter.
//! Not here: which of two records counts (`directory::registry`).

use super::admission::Principal;
use super::certificate;
use super::deny_list::Denials;
use super::key::{self, Key};
use super::refused::Refused;
use super::trust::{Standing, Trust};
use wire::credential::{Chain, Role, Statement};
use wire::registration::{Coverage, PART_HOSTS_MAX, REACH_ADDRESSES_MAX, Reach, Record};
use wire::time::Time;

/// `record`, signed by `key`, whose certificate `chain` is.
///
/// # Errors
/// If the record is longer than one may be.
pub fn state(record: &Record, key: &Key, chain: &Chain) -> Result<Statement, Refused> {
    Ok(Statement { record: key.seal(record)?, chain: chain.clone() })
}

/// The record in `statement` and who signed it.
///
/// # Errors
/// Which check failed.
pub fn open_record(
    statement: &Statement,
    trust: &Trust,
    deny: &Denials,
    now: Time,
) -> Result<(Record, Principal), Refused> {
    let claimed = statement.record.unverified()?;
    let root = trust.root_of(&claimed.domain)?;
    // Whose record may be believed is another question than who may read here.
    let standing = trust.standing(&claimed.domain, root).unwrap_or(Standing::Reader);
    let signer = statement.record.signer();
    let principal = certificate::verify_as(&statement.chain, signer, now, deny, standing, root)?;
    if !principal.roles.has(Role::Representative) {
        let (action, needed) = ("state a record", "representative");
        return Err(Refused::Role { action, peer: principal.peer, needed, found: principal.roles });
    }
    let record = key::open(&statement.record, principal.peer)?;
    check_content(&record, &principal)?;
    Ok((record, principal))
}

fn check_content(record: &Record, principal: &Principal) -> Result<(), Refused> {
    if let Some(own) = principal.domain.as_ref().filter(|own| **own != record.domain) {
        return Err(Refused::Domain { found: record.domain.clone(), own: own.clone() });
    }
    let differs = |field, found: String, expected: String| {
        Err(Refused::Record { domain: record.domain.clone(), field, found, expected })
    };
    let told = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    if principal.host.as_ref() != Some(&record.host) {
        return differs(
            "host",
            record.host.to_string(),
            told(principal.host.as_ref().map(ToString::to_string)),
        );
    }
    let peer = principal.peer.to_string();
    let Some(reach) = &record.reach else { return differs("key", "none".to_owned(), peer) };
    if reach.peer != principal.peer {
        return differs("key", reach.peer.to_string(), peer);
    }
    if principal.root != Some(reach.root) {
        return differs("root", reach.root.to_string(), told(principal.root.map(|root| root.to_string())));
    }
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
