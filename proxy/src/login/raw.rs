//! Authentication of a visitor over the overlay, without HTTP: challenge and response (`tunnel::challenge`).
//!
//! ```text
//! begin (name, hash, random) ─▶ challenge (random) ─▶ prove (tag) ─▶ too many failures? ─▶ proved? ─▶ In
//! ```
//! Pure; callers pass `now` and random bytes. Rules: a challenge is valid for one answer within
//! [`ANSWER_TIME`], from the key that received it; an unknown name costs the same work as a known one, and
//! gets the same answer; failures count in the same buckets as those by HTTP.
//! Not here: the wire format (`wire::entering`), the visa (`overlay::identity::guest_certificate`).

use super::{By, Login, Visitor};
use crate::account::{Account, Name};
use crate::attempts::Source;
use crate::grant::Rights;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tunnel::challenge::{Exchange, Role, binding};
use tunnel::digest::Ha1;
use tunnel::hash::{Algorithm, Tag};
use wire::entering::NONCE_LEN_BYTES;
use wire::id::PeerKey;
use wire::time::Moment;

/// Timeout of the answer: a round trip around the world and a busy machine.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Most open challenges: twice the limit of half-open connections.
pub const WAITING_MAX: usize = 1024;

/// A challenge that waits for its answer.
#[derive(Clone, Debug)]
struct Challenge {
    account: String,
    algorithm: Algorithm,
    asker: [u8; NONCE_LEN_BYTES],
    holder: [u8; NONCE_LEN_BYTES],
    given: Moment,
}

/// Open challenges, by the key of the visitor.
#[derive(Debug, Default)]
pub(super) struct Challenges(BTreeMap<PeerKey, Challenge>);

/// Why a visitor is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The name is not valid for an account.
    #[error("expected the name of an account, of letters, digits and . _ - @ +, found another text")]
    Name,
    /// There was no challenge, or it timed out.
    #[error("expected an answer to a challenge of the last {} s, found none; log in again", ANSWER_TIME.as_secs())]
    Late,
    /// The answer is wrong, or the account does not exist.
    #[error("name or secret is wrong")]
    Wrong,
    /// Too many failures: wait this long.
    #[error("too many logins failed; try again in {} s", .0.as_secs() + 1)]
    Wait(Duration),
    /// Too many challenges of other visitors are open.
    #[error("busy: too many log in at this moment; try again")]
    Busy,
}

/// An authenticated visitor.
#[derive(Clone, Debug)]
pub struct Entered {
    pub visitor: Visitor,
    /// Hash of the secret that the visitor proved.
    pub secret: Ha1,
    /// Proof that this proxy knows the secret, too.
    pub tag: Tag,
}

/// Two ends of a connection, by the keys that they authenticated to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Key of the visitor.
    pub visitor: PeerKey,
    /// Key of this proxy.
    pub proxy: PeerKey,
    /// Address of the visitor.
    pub source: IpAddr,
}

impl Login {
    /// Process the name of a visitor and challenge it with `random`. Returns the realm.
    ///
    /// # Errors
    /// If the name is invalid, or too many challenges are open.
    pub fn handle_begin(
        &mut self,
        visitor: PeerKey,
        (account, algorithm): (&str, Algorithm),
        (asker, random): ([u8; NONCE_LEN_BYTES], [u8; NONCE_LEN_BYTES]),
        now: Moment,
    ) -> Result<&str, Refused> {
        account.parse::<Name>().map_err(|_| Refused::Name)?;
        let waiting = &mut self.challenges.0;
        if waiting.len() >= WAITING_MAX {
            waiting.retain(|_, challenge| now.since(challenge.given) < ANSWER_TIME);
        }
        if waiting.len() >= WAITING_MAX && !waiting.contains_key(&visitor) {
            return Err(Refused::Busy);
        }
        let account = account.to_owned();
        waiting.insert(visitor, Challenge { account, algorithm, asker, holder: random, given: now });
        Ok(&self.accounts.realm)
    }

    /// Process the answer of a visitor.
    ///
    /// # Errors
    /// Why the visitor is rejected.
    pub fn handle_proof(&mut self, ends: Ends, proof: &[u8], now: Moment) -> Result<Entered, Refused> {
        let given = self.challenges.0.remove(&ends.visitor).ok_or(Refused::Late)?;
        if now.since(given.given) >= ANSWER_TIME {
            return Err(Refused::Late);
        }
        let source = Source::from(ends.source);
        self.attempts.check(&given.account, source, now).map_err(Refused::Wait)?;
        let Some((account, secret, tag)) = self.accounts.prove_raw(&ends, &given, proof) else {
            self.attempts.handle_failure(&given.account, source, now);
            return Err(Refused::Wrong);
        };
        self.attempts.handle_success(&given.account, source, now);
        let most = if given.algorithm == Algorithm::Md5 { Rights::Viewer } else { Rights::Operator };
        let visitor = Visitor {
            name: account.name.to_string(),
            grant: Arc::new(account.grant.clone()),
            rights: account.rights.min(most),
            by: By::Raw(given.algorithm),
            proof: Some(secret.clone()),
        };
        Ok(Entered { visitor, secret, tag })
    }

    /// Whether a visitor would still be accepted unchanged: its account exists, with the same secret and
    /// grant, and no lower rights.
    #[must_use]
    pub fn stands(&self, Entered { visitor, secret, .. }: &Entered) -> bool {
        self.granted(&visitor.name, secret)
            .is_some_and(|(grant, rights)| *grant == *visitor.grant && rights >= visitor.rights)
    }
}

impl super::AccountIndex {
    /// The account that `proof` proves, and the proof of this end.
    fn prove_raw(&self, ends: &Ends, given: &Challenge, proof: &[u8]) -> Option<(Arc<Account>, Ha1, Tag)> {
        let account = self.by_name.get(&given.account);
        let known = account.and_then(|account| account.proofs.by(given.algorithm));
        // The same work for an unknown name, and for an account without this hash.
        let secret: &Ha1 = known.unwrap_or(&self.dummies[usize::from(given.algorithm == Algorithm::Md5)]);
        let key = secret.secret_hex().as_bytes();
        let exchange = Exchange {
            algorithm: given.algorithm,
            asker: &given.account,
            holder: &self.realm,
            asker_nonce: &given.asker,
            holder_nonce: &given.holder,
            binding: &binding(&ends.visitor.0, &ends.proxy.0),
        };
        let is_proved = exchange.check(key, Role::Asker, proof).is_ok();
        let tag = exchange.prove(key, Role::Holder).ok()?;
        (is_proved && known.is_some()).then(|| Some((Arc::clone(account?), secret.clone(), tag))).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Accounts, Proofs};
    use crate::grant::{Chosen, Class, Grant};

    const VISITOR: PeerKey = PeerKey([1; 32]);
    const PROXY: PeerKey = PeerKey([2; 32]);
    const ASKER: [u8; 32] = [3; 32];
    const HOLDER: [u8; 32] = [4; 32];

    fn accounts(rights: Rights, is_legacy: bool) -> Accounts {
        let name: Name = "ana".parse().unwrap();
        let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::USUAL.into() };
        let proofs = Proofs::of(&name, "visperf", "secret", is_legacy);
        let mut accounts = Accounts::new("visperf").unwrap();
        accounts.add(Account { name, rights, grant, proofs }).unwrap();
        accounts
    }

    fn login(rights: Rights, is_legacy: bool) -> Login {
        Login::new(&accounts(rights, is_legacy), [0; 32])
    }

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn ends(visitor: PeerKey) -> Ends {
        Ends { visitor, proxy: PROXY, source: [10, 0, 0, 1].into() }
    }

    /// Text over which both ends prove that they know the secret.
    fn exchange<'a>(algorithm: Algorithm, asker: &'a str, binding: &'a [u8]) -> Exchange<'a> {
        let (asker_nonce, holder_nonce) = (&ASKER, &HOLDER);
        Exchange { algorithm, asker, holder: "visperf", asker_nonce, holder_nonce, binding }
    }

    /// Answer of a client with this secret, for its key and the proxy's.
    fn tag(algorithm: Algorithm, name: &str, secret: &str, keys: (PeerKey, PeerKey)) -> Vec<u8> {
        let ha1 = Ha1::of(algorithm, name, "visperf", secret);
        let binding = binding(&keys.0.0, &keys.1.0);
        exchange(algorithm, name, &binding)
            .prove(ha1.secret_hex().as_bytes(), Role::Asker)
            .unwrap()
            .bytes()
            .to_vec()
    }

    fn begin(login: &mut Login, name: &str, algorithm: Algorithm, now: Moment) {
        let realm = login.handle_begin(VISITOR, (name, algorithm), (ASKER, HOLDER), now).unwrap();
        assert_eq!(realm, "visperf");
    }

    fn check(algorithm: Algorithm, name: &str, proof: &[u8], expected: Option<Refused>) {
        let mut login = login(Rights::Operator, false);
        begin(&mut login, name, algorithm, at(0));
        assert_eq!(login.handle_proof(ends(VISITOR), proof, at(1)).err(), expected, "{name}");
    }

    #[test]
    fn who_proves_the_secret_to_this_proxy_by_its_own_key_is_let_in() {
        let sha = Algorithm::Sha256;
        let right = tag(sha, "ana", "secret", (VISITOR, PROXY));
        check(sha, "ana", &right, None);
        check(sha, "ana", &right[..31], Some(Refused::Wrong));
        check(sha, "ana", &tag(sha, "ana", "guess", (VISITOR, PROXY)), Some(Refused::Wrong));
        check(sha, "eve", &tag(sha, "eve", "secret", (VISITOR, PROXY)), Some(Refused::Wrong));
        // An attacker in the middle has keys of its own.
        check(sha, "ana", &tag(sha, "ana", "secret", (PeerKey([9; 32]), PROXY)), Some(Refused::Wrong));
        check(sha, "ana", &tag(sha, "ana", "secret", (VISITOR, PeerKey([9; 32]))), Some(Refused::Wrong));
        // The account is not marked for MD5.
        let md5 = Algorithm::Md5;
        check(md5, "ana", &tag(md5, "ana", "secret", (VISITOR, PROXY)), Some(Refused::Wrong));
    }

    /// The input of the dummy hashes is public.
    #[test]
    fn no_client_is_let_in_by_the_dummy_hashes() {
        for (name, algorithm) in
            [("eve", Algorithm::Sha256), ("eve", Algorithm::Md5), ("ana", Algorithm::Md5)]
        {
            let mut login = login(Rights::Operator, false);
            begin(&mut login, name, algorithm, at(0));
            let binding = binding(&VISITOR.0, &PROXY.0);
            let exchange = exchange(algorithm, name, &binding);
            let stands = Ha1::of(algorithm, "", "visperf", "");
            let proof = exchange.prove(stands.secret_hex().as_bytes(), Role::Asker).unwrap();
            let entered = login.handle_proof(ends(VISITOR), proof.bytes(), at(1));
            assert_eq!(entered.err(), Some(Refused::Wrong), "{name} {algorithm:?}");
        }
    }

    #[test]
    fn both_ends_know_the_secret_and_md5_gives_a_viewer() {
        for (algorithm, rights) in [(Algorithm::Sha256, Rights::Operator), (Algorithm::Md5, Rights::Viewer)] {
            let mut login = login(Rights::Operator, true);
            begin(&mut login, "ana", algorithm, at(0));
            let proof = tag(algorithm, "ana", "secret", (VISITOR, PROXY));
            let entered = login.handle_proof(ends(VISITOR), &proof, at(0)).expect("in");
            assert_eq!((entered.visitor.rights, entered.visitor.by), (rights, By::Raw(algorithm)));
            let exchange = Exchange {
                algorithm,
                asker: "ana",
                holder: "visperf",
                asker_nonce: &ASKER,
                holder_nonce: &HOLDER,
                binding: &binding(&VISITOR.0, &PROXY.0),
            };
            let ha1 = Ha1::of(algorithm, "ana", "visperf", "secret");
            let secret = ha1.secret_hex().as_bytes();
            assert_eq!(exchange.check(secret, Role::Holder, entered.tag.bytes()), Ok(()));
        }
    }

    #[test]
    fn a_challenge_is_good_for_one_try_in_time() {
        let mut login = login(Rights::Viewer, false);
        let proof = tag(Algorithm::Sha256, "ana", "secret", (VISITOR, PROXY));
        let prove = |login: &mut Login, now| login.handle_proof(ends(VISITOR), &proof, now).map(drop);
        assert_eq!(prove(&mut login, at(0)), Err(Refused::Late), "no challenge was sent");
        begin(&mut login, "ana", Algorithm::Sha256, at(0));
        assert_eq!(prove(&mut login, at(10)), Err(Refused::Late));
        begin(&mut login, "ana", Algorithm::Sha256, at(20));
        assert_eq!(prove(&mut login, at(21)), Ok(()));
        assert_eq!(prove(&mut login, at(21)), Err(Refused::Late), "sent again");
    }

    #[test]
    fn failures_are_held_up_as_those_of_http() {
        let mut login = login(Rights::Viewer, false);
        let mut refused = Vec::new();
        for _ in 0..60 {
            begin(&mut login, "ana", Algorithm::Sha256, at(0));
            refused.push(login.handle_proof(ends(VISITOR), b"guess", at(0)).expect_err("guessed"));
        }
        assert_eq!(refused.first(), Some(&Refused::Wrong));
        assert!(matches!(refused.last(), Some(Refused::Wait(_))), "{refused:?}");
    }

    #[test]
    fn so_many_may_log_in_at_a_moment() {
        let mut login = login(Rights::Viewer, false);
        let mut begin = |number: u64, now| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            let asked = login.handle_begin(PeerKey(key), ("ana", Algorithm::Sha256), (ASKER, HOLDER), now);
            asked.map(drop)
        };
        (0..WAITING_MAX as u64).for_each(|number| assert_eq!(begin(number, at(0)), Ok(()), "{number}"));
        assert_eq!(begin(5000, at(9)), Err(Refused::Busy));
        assert_eq!(begin(0, at(9)), Ok(()), "who is challenged already");
        assert_eq!(begin(5000, at(10)), Ok(()), "those before had their time");
    }

    #[test]
    fn a_changed_account_stands_no_longer() {
        let mut login = login(Rights::Operator, false);
        begin(&mut login, "ana", Algorithm::Sha256, at(0));
        let proof = tag(Algorithm::Sha256, "ana", "secret", (VISITOR, PROXY));
        let entered = login.handle_proof(ends(VISITOR), &proof, at(0)).expect("in");
        assert!(login.stands(&entered));
        let name: Name = "ana".parse().unwrap();
        let mut others = accounts(Rights::Operator, false);
        others.remove(&name);
        let grant = (*entered.visitor.grant).clone();
        let proofs = Proofs::of(&name, "visperf", "another", false);
        others.add(Account { name, rights: Rights::Operator, grant, proofs }).unwrap();
        login.set_accounts(&others);
        assert!(!login.stands(&entered), "it has another secret");
        login.set_accounts(&accounts(Rights::Viewer, false));
        assert!(!login.stands(&entered), "it is no operator's any more");
        login.set_accounts(&Accounts::new("visperf").unwrap());
        assert!(!login.stands(&entered));
    }
}
