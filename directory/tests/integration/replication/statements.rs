//! Statements, leaves and revocation lists of simulated representatives: not signed, because the core does
//! not verify signatures.

use directory::opened::{Opened, OpenedLeave};
use std::sync::Arc;
use wire::credential::{Certificate, Chain, Roles, Serial, Statement};
use wire::id::{DomainName, HostName, PeerKey};
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Farewell, Leave, Number};
use wire::sealed::Sealed;
use wire::time::Time;

pub(crate) const ROOT: PeerKey = PeerKey([200; 32]);

pub(crate) fn domain(at: usize) -> DomainName {
    DomainName::try_from(format!("d{at}").as_str()).expect("a name")
}

pub(crate) fn host(at: usize) -> HostName {
    HostName::try_from(format!("n{at}").as_str()).expect("a name")
}

/// Representative `at` of a domain; no two domains share one, and the keys are not in the order of terms.
pub(crate) fn representative(domain: usize, at: usize) -> PeerKey {
    let mut key = [u8::try_from(255 - at * 37 % 250).expect("small"); 32];
    key[1] = u8::try_from(domain).expect("few");
    PeerKey(key)
}

fn chain(domain: &DomainName, peer: PeerKey) -> Chain {
    let certificate = Certificate {
        domain: domain.clone(),
        root: ROOT,
        peer,
        host: host(1),
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(1),
        issued: Time::default(),
        expires: Time::default(),
    };
    let certificate = Sealed::new(&certificate, ROOT, |_| [0; 64]).expect("short");
    Chain { certificate, delegation: None }
}

pub(crate) fn statement(domain: DomainName, number: Number, coverage: Coverage) -> Opened {
    let Number { term, peer, sequence } = number;
    let addresses = vec!["127.0.0.1:7742".parse().expect("an address")];
    let record = Record {
        domain: domain.clone(),
        host: host(1),
        port: 7741,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://127.0.0.1:7741".to_owned()],
        term,
        sequence,
        stated: Time::default(),
        reach: Some(Reach { root: ROOT, peer, addresses, coverage }),
    };
    let sealed = Sealed::new(&record, peer, |_| [0; 64]).expect("short");
    Opened::signed(record, Statement { record: sealed, chain: chain(&domain, peer) }).expect("has a reach")
}

pub(crate) fn leave(domain: DomainName, number: Number) -> OpenedLeave {
    let Number { term, peer, sequence } = number;
    let leave = Leave { domain: domain.clone(), root: ROOT, peer, term, sequence, stated: Time::default() };
    let sealed = Sealed::new(&leave, peer, |_| [0; 64]).expect("short");
    OpenedLeave { leave, farewell: Arc::new(Farewell { leave: sealed, chain: chain(&domain, peer) }) }
}
