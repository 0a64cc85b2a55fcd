//! Certificate of a proxy and visa of its visitor: the root of the domain signs the one, the proxy the other.
//!
//! Rule: they are valid in every part; a test changes the part that has to be wrong.

use overlay::clock;
use overlay::identity::certificate::LIFE;
use overlay::identity::guest_certificate;
use overlay::identity::key::Key;
use wire::credential::{Certificate, Chain, Role, Roles, Serial};
use wire::entering::{ShownVisa, Visa};
use wire::id::{DomainName, HostName, PeerKey};

/// The domain of all certificates.
pub(crate) fn domain() -> DomainName {
    DomainName::try_from("UT-ICL").expect("a name")
}

/// The chain of the proxy with that key.
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

/// The visa that the proxy issues to this visitor, as the visitor shows it.
pub(crate) fn visa(proxy: &Key, chain: &Chain, visitor: PeerKey) -> ShownVisa {
    let issued = clock::calendar();
    let visa = Visa {
        visitor,
        account: "ana".to_owned(),
        domains: None,
        hosts: None,
        classes: vec!["figures".to_owned()],
        is_operator: false,
        issued,
        expires: issued.plus(guest_certificate::LIFE),
    };
    guest_certificate::make(proxy, chain, &visa).expect("made")
}
