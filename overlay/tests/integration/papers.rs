//! The papers of a proxy and of its visitor: what its domain's root gives the one, and the one gives the other.
//!
//! Rule: good in every part; a test changes what it wants wrong.

use overlay::clock;
use overlay::identity::certificate::LIFE;
use overlay::identity::key::Key;
use overlay::identity::visa;
use wire::credential::{Certificate, Chain, Role, Roles, Serial};
use wire::entering::{ShownVisa, Visa};
use wire::id::{DomainName, HostName, PeerKey};

/// The domain of all of them.
pub(crate) fn domain() -> DomainName {
    DomainName::try_from("UT-ICL").expect("a name")
}

/// The chain of the proxy of that key.
pub(crate) fn chain(root: &Key, proxy: &Key) -> Chain {
    let issued = clock::calendar();
    let certificate = Certificate {
        domain: domain(),
        root: root.peer(),
        peer: proxy.peer(),
        host: HostName::try_from("proxy").expect("a name"),
        roles: Roles::NONE.with(Role::Viewer),
        priority: 0,
        serial: Serial(1),
        issued,
        expires: issued.plus(LIFE),
    };
    Chain { certificate: root.seal(&certificate).expect("fits"), delegation: None }
}

/// The visa that the proxy gives this visitor, as it is shown.
pub(crate) fn visa(proxy: &Key, chain: &Chain, visitor: PeerKey) -> ShownVisa {
    let issued = clock::calendar();
    let told = Visa {
        visitor,
        account: "ana".to_owned(),
        domains: None,
        hosts: None,
        classes: vec!["figures".to_owned()],
        is_operator: false,
        issued,
        expires: issued.plus(visa::LIFE),
    };
    visa::make(proxy, chain, &told).expect("made")
}
