//! Seeds of the fuzzing corpus. They also pin the formats: a change of a format fails here before it fails
//! between two hosts.

use crate::admission::records::record;
use crate::admission::rig::{NOW, Parts, domain, key};
use overlay::identity::record::state;
use overlay::identity::token;
use std::path::Path;
use wire::address::Address;
use wire::join::{Directory, Secret, Token, TokenType};

/// Every seed with its name in `fuzz/corpus`, generated again.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let parts = Parts::good();
    let by_root = Parts::good().by_root();
    let address = |text| Address::try_from(text).expect("an address");
    let token = Token {
        domain: domain("alpha"),
        root: parts.root.peer(),
        issuer: parts.issuer.peer(),
        addresses: vec![address("head.alpha.example:7742"), address("[2001:db8::5]:7742")],
        directories: vec![Directory { key: key(70).peer(), addresses: vec![address("10.0.0.9:7743")] }],
        secret: Secret([0x5a; 16]),
        expires: NOW,
        token_type: TokenType::Join,
    };
    let statement = state(&record(&parts), &parts.member, &parts.chain()).expect("fits");
    vec![
        ("token/line", token::text(&token).into_bytes()),
        ("token/content", encode(&token)),
        ("chain/by-issuer", encode(&parts.chain())),
        ("chain/by-root", encode(&by_root.chain())),
        ("chain/parts-by-issuer", encode(&(&parts.certificate, &parts.delegation))),
        ("chain/parts-by-root", encode(&(&by_root.certificate, &by_root.delegation))),
        ("sealed/statement", encode(&statement)),
        ("sealed/record", encode(&record(&parts))),
        ("sealed/denial-by-root", encode(&parts.denial_by_root(1, &[key(9).peer()], NOW))),
        ("sealed/denial-by-issuer", encode(&parts.denial_by_issuer(1, &[key(9).peer()], NOW))),
        ("sealed/list", encode(&parts.list(1, &[key(9).peer()], NOW))),
    ]
}

fn encode(value: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("encodes")
}

#[test]
fn what_travels_is_encoded_as_it_was() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, bytes) in seeds() {
        let path = corpus.join(format!("{name}.seed"));
        let kept = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(kept, bytes, "{name}: the format has changed; if that is meant, write the seed again");
    }
}
