//! Statements for the tests of this crate: not signed, because the table does not check signatures.
//!
//! Only compiled for tests. Not here: real certificates (`overlay::identity`'s own tests).

use crate::opened::{Opened, OpenedDenial, OpenedLeave};
use std::sync::Arc;
use wire::credential::{Certificate, Chain, Delegation, Denial, DenyList, Roles, Serial, Statement};
use wire::id::{DomainName, HostName, PeerKey};
use wire::registration::{Coverage, Reach, Record, SensorType};
use wire::replication::{Farewell, Leave};
use wire::sealed::Sealed;
use wire::time::Time;

pub(crate) const ROOT: PeerKey = PeerKey([200; 32]);

pub(crate) fn domain(name: &str) -> DomainName {
    DomainName::try_from(name).expect("a name")
}

pub(crate) fn whole() -> Coverage {
    Coverage::Whole { hosts: 3 }
}

pub(crate) fn part(hosts: &[&str]) -> Coverage {
    let hosts: Vec<_> = hosts.iter().map(|host| HostName::try_from(*host).expect("a name")).collect();
    Coverage::Part { hosts_total: hosts.len().try_into().expect("few"), hosts }
}

/// A record of a representative in this process.
pub(crate) fn own_record(name: &str, term: u64, sequence: u64) -> Record {
    Record {
        domain: domain(name),
        host: HostName::try_from("n1").expect("a name"),
        port: 7741,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://127.0.0.1:7741".to_owned()],
        term,
        sequence,
        stated: Time::default(),
        reach: None,
    }
}

fn chain(name: &str, peer: u8) -> Chain {
    let certificate = Certificate {
        domain: domain(name),
        root: ROOT,
        peer: PeerKey([peer; 32]),
        host: HostName::try_from("n1").expect("a name"),
        roles: Roles::SENSOR,
        priority: 0,
        serial: Serial(1),
        issued: Time::default(),
        expires: Time::default(),
    };
    let certificate = Sealed::new(&certificate, ROOT, |_| [0; 64]).expect("short");
    Chain { certificate, delegation: None }
}

/// The statement of representative `peer`.
pub(crate) fn statement(name: &str, peer: u8, term: u64, sequence: u64, coverage: Coverage) -> Opened {
    let addresses = vec!["127.0.0.1:7742".parse().expect("an address")];
    let reach = Reach { root: ROOT, peer: PeerKey([peer; 32]), addresses, coverage };
    let record = Record { reach: Some(reach), ..own_record(name, term, sequence) };
    let sealed = Sealed::new(&record, PeerKey([peer; 32]), |_| [0; 64]).expect("short");
    Opened::signed(record, Statement { record: sealed, chain: chain(name, peer) }).expect("has a reach")
}

/// The leave of representative `peer`.
pub(crate) fn leave(name: &str, peer: u8, term: u64, sequence: u64) -> OpenedLeave {
    let key = PeerKey([peer; 32]);
    let leave =
        Leave { domain: domain(name), root: ROOT, peer: key, term, sequence, stated: Time::default() };
    let sealed = Sealed::new(&leave, key, |_| [0; 64]).expect("short");
    OpenedLeave { leave, farewell: Arc::new(Farewell { leave: sealed, chain: chain(name, peer) }) }
}

/// A revocation list with number `number`, signed by the root or under delegation `delegation`.
pub(crate) fn denial(name: &str, delegation: Option<u32>, number: u64) -> OpenedDenial {
    let list = DenyList { domain: domain(name), root: ROOT, number, stated: Time::default(), denied: vec![] };
    let sealed = Sealed::new(&list, ROOT, |_| [0; 64]).expect("short");
    let delegation = delegation.map(|number| Delegation {
        domain: domain(name),
        root: ROOT,
        issuer: PeerKey([201; 32]),
        number,
        issued: Time::default(),
        expires: Time::default(),
    });
    let by = delegation.as_ref().map(|by| Sealed::new(by, ROOT, |_| [0; 64]).expect("short"));
    OpenedDenial::new(&list, delegation.as_ref(), Denial { list: sealed, delegation: by })
}
