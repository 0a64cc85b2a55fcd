//! Visitors at a daemon: they may open questions and logins alone, a revoked one gets no answer, and they do
//! not trust a proxy that does not know the account.
//!
//! Rule: real swarms on loopback, real keys, certificates and visas; the daemon is the proxy that issued the
//! visa.
//! Not here: which visas are valid (`../admission`), which calls an account may make (`visperf`,
//! `proxy::grant`).

use crate::net::DEADLINE;
use crate::net::daemons::{Daemon, key};
use crate::papers::{self, domain};
use overlay::authenticator::Authenticator;
use overlay::guest::{self, Error, SessionSpec};
use overlay::identity::admission::Gate;
use overlay::identity::key::Key;
use overlay::identity::revocation_lists::RevocationLists;
use overlay::identity::trust::{Readers, Trust};
use overlay::net::event_loop::{Config, Event};
use overlay::net::handle::{Answer, AskError};
use overlay::net::protocol::{Protocol, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tunnel::challenge::{self, Exchange, binding};
use tunnel::digest::Ha1;
use tunnel::digest::client::Login;
use tunnel::hash::Algorithm;
use wire::entering::{self, Inside, NONCE_LEN_BYTES, Reply};
use wire::join::Directory;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A proxy certified by its domain's root, and a visitor with a visa of this proxy; both are ready.
struct GuestRig {
    proxy: Daemon,
    gate: Arc<Authenticator>,
    visitor: Daemon,
}

impl GuestRig {
    async fn begin(root: u8, proxy: u8, visitor: u8) -> GuestRig {
        let (root, proxy_key) = (Key::from_seed([root; 32]), Key::from_seed([proxy; 32]));
        let chain = papers::chain(&root, &proxy_key);
        let shown = papers::visa(&proxy_key, &chain, key(visitor));
        let gate = || {
            let trust = Trust::of_member(domain(), root.peer(), Readers::Admitted);
            Gate::new(trust, RevocationLists::default(), BTreeSet::new())
        };
        let of_proxy = Arc::new(Authenticator::new(gate(), Some(chain)));
        let of_visitor = Arc::new(Authenticator::joining(gate()));
        of_visitor.show_visa(shown);
        let here = || Config::new(vec![loopback()]);
        let config = Config { is_proxy: true, ..here() };
        let mut proxy = Daemon::start_admitting(proxy, config, of_proxy.clone()).await;
        // The visitor registers with the proxy, which an honest visitor does not do.
        let via = vec![Directory { key: proxy.key(), addresses: vec![proxy.address().into()] }];
        let mut visitor = Daemon::start_admitting(visitor, Config { via, ..here() }, of_visitor).await;
        visitor.ready(&proxy).await;
        proxy.ready(&visitor).await;
        GuestRig { proxy, gate: of_proxy, visitor }
    }

    async fn ask(&self, protocol: Protocol) -> Result<Vec<u8>, AskError> {
        self.visitor.handle.ask(self.proxy.key(), protocol, b"?", DEADLINE).await
    }

    /// Result of opening a stream of this protocol, whatever its shape.
    async fn open(&self, protocol: Protocol) -> Result<(), AskError> {
        match protocol.shape() {
            Shape::Question => self.ask(protocol).await.map(drop),
            Shape::Lasting => self.visitor.handle.open(self.proxy.key(), protocol, DEADLINE).await.map(drop),
        }
    }

    fn streams_refused(&self) -> u64 {
        self.proxy.handle.figures().streams_refused_total.get()
    }
}

#[tokio::test]
async fn a_visitor_opens_no_stream_but_questions_and_logins() {
    let mut rig = GuestRig::begin(90, 91, 92).await;
    let others = [Protocol::Control, Protocol::Directory, Protocol::Report];
    for (count, protocol) in others.into_iter().enumerate() {
        let refused = refusal(rig.open(protocol).await);
        assert_eq!(refused, format!("a visitor asks questions, and opens no stream of {protocol}"));
        assert_eq!(rig.streams_refused(), count as u64 + 1);
    }
    // A stream of this protocol is accepted or reset, without a reason; a peer that the proxy carries, and
    // that is no visitor, gets an answer.
    while rig.proxy.handle.figures().registered.get() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let punched = rig.open(Protocol::Punch).await;
    assert!(matches!(punched, Err(AskError::Broken { .. })), "{punched:?}");
    assert_eq!(rig.streams_refused(), others.len() as u64 + 1);
    // None of these reached the daemon: the first event is the question that is asked now.
    let proxy = rig.proxy.key();
    for protocol in [Protocol::Query, Protocol::Enter] {
        let answering = async {
            let asked = rig.proxy.next_event(|event| match event {
                Event::Question(question) => Some(question),
                Event::Stream { protocol, .. } => panic!("a stream of {protocol}"),
                Event::Ready { .. } | Event::Gone(_) | Event::Unwelcome { .. } | Event::DialFailed(..) => {
                    None
                }
            });
            let asked = asked.await;
            let principal = asked.principal.expect("it showed its visa");
            let guest = principal.guest.as_ref().expect("it is a visitor");
            assert_eq!((asked.protocol, guest.visa.account.as_str()), (protocol, "ana"));
            let _ = asked.reply.send(Answer::Done(b"yes".to_vec()));
        };
        let asking = rig.visitor.handle.ask(proxy, protocol, b"?", DEADLINE);
        let (answer, ()) = tokio::join!(asking, answering);
        assert_eq!(answer, Ok(b"yes".to_vec()));
    }
}

#[tokio::test]
async fn a_visitor_that_was_put_out_is_answered_nothing_over_the_connection_that_it_has() {
    let mut rig = GuestRig::begin(93, 94, 95).await;
    rig.proxy.answer_queries(|_| Answer::Done(b"yes".to_vec()));
    assert_eq!(rig.ask(Protocol::Query).await, Ok(b"yes".to_vec()));
    rig.gate.shut_out(rig.visitor.key());
    let refused = rig.ask(Protocol::Query).await;
    let expected =
        format!("the account of the visitor {} was removed or changed; log in again", rig.visitor.key());
    assert_eq!(refusal(refused), expected);
}

/// The reason of a refusal.
fn refusal(asked: Result<impl std::fmt::Debug, AskError>) -> String {
    let Err(AskError::Refused { reason, .. }) = asked else { panic!("{asked:?}") };
    reason
}

/// How an impostor of the proxy proves that it knows the account.
#[derive(Clone, Copy, Debug)]
enum Proving {
    /// With this secret.
    By(&'static str),
    /// By sending the visitor's own proof back.
    Echo,
}

/// Answer logins as the proxy of that key, for ever, and know no domain.
async fn let_in(proxy: &mut Daemon, key: &Key, proving: Proving) {
    let mut asker = [0; NONCE_LEN_BYTES];
    let holder = [7; NONCE_LEN_BYTES];
    loop {
        let asked = proxy.next_event(crate::net::question).await;
        let reply = match postcard::from_bytes(&asked.body).expect("a login") {
            entering::Question::Begin { nonce, .. } => {
                asker = nonce;
                Reply::Challenge { realm: "visperf".to_owned(), nonce: holder }
            }
            entering::Question::Prove { proof, .. } => {
                let exchange = Exchange {
                    algorithm: Algorithm::Sha256,
                    asker: "ana",
                    holder: "visperf",
                    asker_nonce: &asker,
                    holder_nonce: &holder,
                    binding: &binding(&asked.peer.0, &key.peer().0),
                };
                let proof = match proving {
                    Proving::Echo => proof,
                    Proving::By(secret) => {
                        let ha1 = Ha1::of(Algorithm::Sha256, "ana", "visperf", secret);
                        let tag = exchange.prove(ha1.secret_hex().as_bytes(), challenge::Role::Holder);
                        tag.expect("sound").bytes().to_vec()
                    }
                };
                let visa = papers::visa(key, &papers::chain(key, key), asked.peer);
                Reply::In(Box::new(Inside { proof, visa, place: Err("nowhere".to_owned()) }))
            }
        };
        let _ = asked.reply.send(Answer::Done(postcard::to_stdvec(&reply).expect("plain data")));
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_prove_that_it_knows_the_account_is_not_believed() {
    for (number, proving, is_believed) in
        [(96, Proving::By("secret"), true), (97, Proving::By("guess"), false), (98, Proving::Echo, false)]
    {
        let key = Key::from_seed([number; 32]);
        let gate =
            Gate::new(Trust::of_directory(BTreeMap::new()), RevocationLists::default(), BTreeSet::new());
        let gate = Arc::new(Authenticator::new(gate, None));
        let config = Config { is_proxy: true, ..Config::new(vec![loopback()]) };
        let mut proxy = Daemon::start_admitting(number, config, gate).await;
        let spec = SessionSpec {
            proxy: Directory { key: proxy.key(), addresses: vec![proxy.address().into()] },
            login: Login { name: "ana".to_owned(), secret: "secret".to_owned(), allows_md5: false },
            domain: domain(),
            root: None,
            http_proxy: None,
        };
        let visiting = guest::GuestSession::open(spec, DEADLINE);
        let came = tokio::select! {
            came = visiting => came.map(drop),
            () = let_in(&mut proxy, &key, proving) => panic!("it answers for ever"),
        };
        let expected = if is_believed { Error::NoPlace("nowhere".to_owned()) } else { Error::Unproved };
        assert_eq!(came, Err(expected), "{proving:?}");
    }
}
