//! Any bytes as a chain, and any certificate and delegation rightly signed by those who may: refused in words, or
//! believed with every rule kept.

#![no_main]

use libfuzzer_sys::fuzz_target;
use overlay::identity::admission::Action;
use overlay::identity::certificate::{LIFE, SKEW_MAX, open, verify};
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::key::Key;
use overlay::identity::trust::{Readers, Trust};
use wire::credential::{Certificate, Chain, Delegation};
use wire::id::DomainName;
use wire::time::Time;

/// 2026-11-21T06:00:00Z.
const NOW: Time = Time::from_micros(1_795_240_800_000_000);

fuzz_target!(|bytes: &[u8]| {
    let (root, issuer) = (Key::from_seed([1; 32]), Key::from_seed([2; 32]));
    let domain = DomainName::try_from("alpha").expect("a name");
    let trust = Trust::of_member(domain.clone(), root.peer(), Readers::Admitted);
    if let Ok(chain) = postcard::from_bytes::<Chain>(bytes) {
        check(&chain, &trust);
    }
    if let Ok((certificate, delegation)) = postcard::from_bytes::<(Certificate, Option<Delegation>)>(bytes) {
        let signer = if delegation.is_some() { &issuer } else { &root };
        let sealed = delegation.map(|delegation| root.seal(&delegation).expect("fits"));
        let chain = Chain { certificate: signer.seal(&certificate).expect("fits"), delegation: sealed };
        check(&chain, &trust);
    }
});

fn check(chain: &Chain, trust: &Trust) {
    let Ok(claimed) = chain.certificate.unverified() else { return };
    match verify(chain, claimed.peer, NOW, &RevocationLists::default(), trust) {
        Err(refused) => assert!(refused.to_string().len() > 20, "{refused:?}"),
        Ok(principal) => {
            assert_eq!(principal.domain.as_ref().map(DomainName::as_str), Some("alpha"));
            assert!(principal.expires.plus(SKEW_MAX) > NOW && principal.issued.minus(SKEW_MAX) <= NOW);
            if principal.delegated.is_some() {
                assert!(principal.may(Action::DeployFilters).is_err());
                assert!(principal.may(Action::ControlProcesses).is_err());
                let certificate = open(chain).expect("believed").certificate;
                assert!(certificate.expires.since(certificate.issued) <= LIFE);
            }
        }
    }
}
