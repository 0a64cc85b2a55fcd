//! Any bytes as a signed record or list of denied, and any record or list rightly signed: refused in words, or
//! believed with every rule kept.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::key::Key;
use overlay::identity::record::{open_record, state};
use overlay::identity::trust::{Readers, Trust};
use std::time::Duration;
use wire::credential::{Certificate, Chain, Denial, DenyList, Roles, Serial, Statement};
use wire::id::{DomainName, HostName};
use wire::registration::Record;
use wire::time::Time;

/// 2026-11-21T06:00:00Z.
const NOW: Time = Time::from_micros(1_795_240_800_000_000);

fuzz_target!(|bytes: &[u8]| {
    let (root, member) = (Key::from_seed([1; 32]), Key::from_seed([3; 32]));
    let domain = DomainName::try_from("alpha").expect("a name");
    let trust = Trust::of_member(domain.clone(), root.peer(), Readers::Nobody);
    if let Ok(statement) = postcard::from_bytes::<Statement>(bytes) {
        check_statement(&statement, &trust);
    }
    if let Ok(record) = postcard::from_bytes::<Record>(bytes) {
        let certificate = Certificate {
            domain,
            root: root.peer(),
            peer: member.peer(),
            host: HostName::try_from("a1").expect("a name"),
            roles: Roles::SENSOR,
            priority: 0,
            serial: Serial(1),
            issued: NOW,
            expires: NOW.plus(Duration::from_secs(86_400)),
        };
        let chain = Chain { certificate: root.seal(&certificate).expect("fits"), delegation: None };
        if let Ok(statement) = state(&record, &member, &chain) {
            check_statement(&statement, &trust);
        }
    }
    if let Ok(denial) = postcard::from_bytes::<Denial>(bytes) {
        check_denial(&denial, &trust);
    }
    if let Ok(list) = postcard::from_bytes::<DenyList>(bytes)
        && let Ok(list) = root.seal(&list)
    {
        check_denial(&Denial { list, delegation: None }, &trust);
    }
});

fn check_statement(statement: &Statement, trust: &Trust) {
    match open_record(statement, trust, &RevocationLists::default(), NOW) {
        Err(refused) => assert!(!refused.to_string().is_empty()),
        Ok((record, principal)) => {
            assert_eq!(Some(&record.domain), principal.domain.as_ref());
            assert_eq!(Some(&record.host), principal.host.as_ref());
            assert_eq!(record.reach.expect("checked").peer, principal.peer);
        }
    }
}

fn check_denial(denial: &Denial, trust: &Trust) {
    let mut held = RevocationLists::default();
    match held.take(denial, trust) {
        Err(refused) => assert!(!refused.to_string().is_empty()),
        Ok(_) => {
            let list = denial.list.unverified().expect("believed");
            for denied in &list.denied {
                assert!(held.check(&list.domain, list.root, denied.peer, denied.issued_until).is_err());
            }
            let by_root = denial.delegation.is_none();
            let expected = if by_root { (list.number, 0) } else { (0, list.number) };
            assert_eq!(held.numbers(&list.domain), expected);
        }
    }
}
