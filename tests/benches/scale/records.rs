//! Names, keys and records of a large grid: with dummy signatures of the real length.
//!
//! Not here: checking signatures, whose cost belongs to `overlay` and is not counted.

use directory::answers::Open;
use directory::opened::{Opened, OpenedDenial, OpenedLeave};
use overlay::resolve::VerifiedRecord;
use std::sync::Arc;
use std::time::Duration;
use wire::credential::{Certificate, Chain, Delegation, Denial, Roles, Serial, Statement};
use wire::id::{DomainName, HostName, PeerKey};
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Farewell, ResolvedStatement};
use wire::sealed::Sealed;
use wire::time::Time;

/// Root key of every domain.
pub(crate) const ROOT: PeerKey = PeerKey([200; 32]);

pub(crate) fn name(domain: u32) -> DomainName {
    DomainName::try_from(format!("SITE-{domain:05}").as_str()).expect("a name")
}

pub(crate) fn host(at: u32) -> HostName {
    HostName::try_from(format!("wn{at:04}.site.example").as_str()).expect("a name")
}

/// Key of a host in a domain.
pub(crate) fn peer(domain: u32, at: u32) -> PeerKey {
    let mut key = [3; 32];
    key[..4].copy_from_slice(&domain.to_be_bytes());
    key[4..8].copy_from_slice(&at.to_be_bytes());
    PeerKey(key)
}

pub(crate) fn chain(domain: u32, at: u32) -> Chain {
    let (issued, expires) = (time(Duration::ZERO), time(Duration::from_secs(30 * 24 * 3600)));
    let issuer = PeerKey([2; 32]);
    let certificate = Certificate {
        domain: name(domain),
        root: ROOT,
        peer: peer(domain, at),
        host: host(at),
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(u64::from(at) + 1),
        issued,
        expires,
    };
    let delegation = Delegation { domain: name(domain), root: ROOT, issuer, number: 1, issued, expires };
    Chain {
        certificate: Sealed::new(&certificate, issuer, |_| [7; 64]).expect("short"),
        delegation: Some(Sealed::new(&delegation, ROOT, |_| [7; 64]).expect("short")),
    }
}

/// Term and sequence of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) term: u64,
    pub(crate) sequence: u64,
}

/// Statement of host `at` as representative of a domain, with an IPv4 and an IPv6 address and a name.
pub(crate) fn statement(
    (domain, at): (u32, u32),
    numbered: Numbered,
    coverage: Coverage,
    chain: Chain,
    now: Duration,
) -> Statement {
    let (low, high) = (at % 250 + 1, at / 250);
    let named = format!("{}:7316", host(at));
    let addresses = [format!("10.0.{high}.{low}:7316"), format!("[2001:db8::{high}:{low}]:7316"), named];
    let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
    let record = Record {
        domain: name(domain),
        host: host(at),
        port: 7317,
        sensor_type: SensorType::Representative,
        addresses: vec![format!("http://127.0.0.1:7317")],
        term: numbered.term,
        sequence: numbered.sequence,
        stated: time(now),
        reach: Some(Reach { root: ROOT, peer: peer(domain, at), addresses, coverage }),
    };
    let record = Sealed::new(&record, peer(domain, at), |_| [7; 64]).expect("short enough");
    Statement { record, chain }
}

/// Calendar time at a moment of virtual time.
pub(crate) fn time(now: Duration) -> Time {
    Time::from_micros(1_795_178_489_000_000).plus(now)
}

/// A directory's answer, as if its signatures had been checked.
pub(crate) fn received(stored: &ResolvedStatement) -> VerifiedRecord {
    let record = stored.statement.record.unverified().expect("a record");
    VerifiedRecord {
        record,
        statement: stored.statement.clone(),
        age: stored.age,
        remaining: stored.remaining,
    }
}

/// Verifier that accepts everything.
pub(crate) struct Believing;

impl Open for Believing {
    type Refused = String;

    fn statement(&self, statement: Statement) -> Result<Opened, String> {
        let record = statement.record.unverified().map_err(|error| error.to_string())?;
        Opened::signed(record, statement).map_err(|error| error.to_string())
    }

    fn farewell(&self, farewell: Farewell) -> Result<OpenedLeave, String> {
        let leave = farewell.leave.unverified().map_err(|error| error.to_string())?;
        Ok(OpenedLeave { leave, farewell: Arc::new(farewell) })
    }

    fn denial(&self, _: Denial) -> Result<OpenedDenial, String> {
        Err("no peer is denied in this grid".to_owned())
    }
}
