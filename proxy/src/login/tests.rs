//! Accepted logins, and all kinds of rejected ones: replayed, downgraded, from another source, too many.

use super::*;
use crate::account::{Name, Proofs};
use crate::grant::{Chosen, Class, Grant};
use tunnel::digest::client::{self, Client};

const SECRET: &str = "a secret of some length";

struct World {
    login: Login,
    now: Moment,
    drawn: u64,
}

fn account(name: &str, rights: Rights, is_legacy: bool) -> Account {
    let name: Name = name.parse().unwrap();
    let grant = Grant { domains: Chosen::All, hosts: Chosen::All, classes: Class::ALL.into() };
    let proofs = Proofs::of(&name, "visperf", SECRET, is_legacy);
    Account { name, rights, grant, proofs }
}

fn accounts() -> Accounts {
    let mut accounts = Accounts::new("visperf").unwrap();
    accounts.add(account("ana", Rights::Operator, false)).unwrap();
    accounts.add(account("old", Rights::Operator, true)).unwrap();
    accounts
}

fn attempt<'a>(authorization: Option<&'a str>, offer: Offer) -> Attempt<'a> {
    let source = IpAddr::from([10, 0, 0, 1]);
    Attempt { method: "POST", target: "/d/UT-ICL/RPC2", authorization, source, channel: b"door", offer }
}

impl World {
    fn new() -> World {
        let now = Moment(Duration::from_secs(1000));
        World { login: Login::new(&accounts(), [9; 32]), now, drawn: 0 }
    }

    fn attempt(&mut self, attempt: Attempt<'_>) -> Verdict {
        self.drawn += 1;
        let mut random = [0; RANDOM_LEN_BYTES];
        random[..8].copy_from_slice(&self.drawn.to_be_bytes());
        self.login.handle_attempt(attempt, random, self.now)
    }

    fn fields(&mut self, authorization: Option<&str>, offer: Offer) -> Vec<String> {
        match self.attempt(attempt(authorization, offer)) {
            Verdict::Challenge(fields, _) => fields,
            other @ (Verdict::In(..) | Verdict::Wait(_) | Verdict::Unreadable(_)) => {
                panic!("expected a challenge, found {other:?}")
            }
        }
    }

    /// A client that was challenged.
    fn client(&mut self, name: &str, secret: &str, offer: Offer) -> Client {
        let login = client::Login { name: name.into(), secret: secret.into(), allows_md5: true };
        let mut client = Client::new(login);
        let fields = self.fields(None, offer);
        client.handle_challenge(fields.iter().map(String::as_str)).unwrap();
        client
    }

    fn is_in(&mut self, authorization: &str, offer: Offer) -> bool {
        matches!(self.attempt(attempt(Some(authorization), offer)), Verdict::In(..))
    }
}

fn authorize(client: &mut Client) -> String {
    client.authorization("POST", "/d/UT-ICL/RPC2", "c").unwrap()
}

#[test]
fn a_right_secret_is_let_in_and_the_answer_proves_the_server() {
    let mut world = World::new();
    let mut client = world.client("ana", SECRET, Offer::Sha256);
    for _ in 0..3 {
        let said = authorize(&mut client);
        let Verdict::In(visitor, info) = world.attempt(attempt(Some(&said), Offer::Sha256)) else {
            panic!("not in")
        };
        assert_eq!((visitor.rights, visitor.by), (Rights::Operator, By::Digest(Algorithm::Sha256)));
        assert_eq!(client.handle_answer(Some(&info)), Ok(()));
        // The nonce is renewed meanwhile.
        world.now = world.now.plus(Duration::from_secs(40));
    }
}

#[test]
fn captured_logins_are_not_let_in_again() {
    let mut world = World::new();
    let mut client = world.client("ana", SECRET, Offer::Both);
    let said = authorize(&mut client);
    assert!(world.is_in(&said, Offer::Both));
    let right = Credentials::read(&said).unwrap().unwrap();
    let mut tried = 0;
    for number in 0..10_000_u32 {
        let other = match number % 5 {
            0 => right.clone(),
            1 => Credentials { nc: format!("{:08x}", number + 2), ..right.clone() },
            2 => Credentials { uri: format!("/d/UT-ICL/wn{number}/RPC2"), ..right.clone() },
            3 => Credentials {
                cnonce: format!("c{number}"),
                nc: format!("{:08x}", number + 2),
                ..right.clone()
            },
            _ => Credentials { username: "old".into(), ..right.clone() },
        };
        let said = other.write();
        let target = other.uri.clone();
        let attempt = Attempt { target: &target, ..attempt(Some(&said), Offer::Both) };
        let verdict = world.attempt(attempt);
        assert!(matches!(verdict, Verdict::Challenge(..)), "{number}: {said}: {verdict:?}");
        // Test the rejection, not the rate limit.
        world.login.attempts = Attempts::default();
        tried += 1;
    }
    assert_eq!(tried, 10_000);
    // By another listener, from another host, and after a restart.
    let fresh = authorize(&mut client);
    let elsewhere = Attempt { channel: b"another door", ..attempt(Some(&fresh), Offer::Both) };
    assert!(!matches!(world.attempt(elsewhere), Verdict::In(..)));
    let from_elsewhere =
        Attempt { source: IpAddr::from([10, 0, 0, 2]), ..attempt(Some(&fresh), Offer::Both) };
    assert!(!matches!(world.attempt(from_elsewhere), Verdict::In(..)));
    let mut restarted = World { login: Login::new(&accounts(), [1; 32]), ..World::new() };
    assert!(!restarted.is_in(&fresh, Offer::Both));
    assert!(world.is_in(&fresh, Offer::Both), "where it belongs it is let in");
}

#[test]
fn stale_is_said_to_who_proved_the_account_alone() {
    let mut world = World::new();
    let mut client = world.client("ana", SECRET, Offer::Sha256);
    let mut guesser = world.client("ana", "a guess", Offer::Sha256);
    world.now = world.now.plus(Duration::from_secs(61));
    let is_stale = |fields: &[String]| fields.iter().all(|field| field.contains("stale=true"));
    let fields = world.fields(Some(&authorize(&mut client)), Offer::Sha256);
    assert!(is_stale(&fields));
    client.handle_challenge(fields.iter().map(String::as_str)).unwrap();
    assert!(world.is_in(&authorize(&mut client), Offer::Sha256));
    assert!(!is_stale(&world.fields(Some(&authorize(&mut guesser)), Offer::Sha256)));
}

#[test]
fn md5_lets_in_marked_accounts_where_it_is_offered_as_viewers() {
    let mut world = World::new();
    let said = |world: &mut World, name: &str, offer| authorize(&mut world.client(name, SECRET, offer));
    let old = said(&mut world, "old", Offer::Md5);
    let Verdict::In(visitor, _) = world.attempt(attempt(Some(&old), Offer::Md5)) else { panic!("not in") };
    assert_eq!((visitor.rights, visitor.by), (Rights::Viewer, By::Digest(Algorithm::Md5)));
    let old = said(&mut world, "old", Offer::Both);
    let Verdict::In(visitor, _) = world.attempt(attempt(Some(&old), Offer::Both)) else { panic!("not in") };
    assert_eq!((visitor.rights, visitor.by), (Rights::Operator, By::Digest(Algorithm::Sha256)));
    // SHA-256 was removed in transit: an account without an MD5 hash is not accepted by MD5.
    let ana = said(&mut world, "ana", Offer::Md5);
    assert!(!world.is_in(&ana, Offer::Md5));
    let old = said(&mut world, "old", Offer::Md5);
    assert!(!world.is_in(&old, Offer::Sha256), "not offered");
    assert_eq!(world.fields(None, Offer::Both).len(), 2);
    assert!(world.fields(None, Offer::Both)[0].contains("algorithm=SHA-256"));
}

#[test]
fn what_is_no_login_is_refused_each_in_its_way() {
    let mut world = World::new();
    let mut client = world.client("ana", SECRET, Offer::Sha256);
    let said = authorize(&mut client);
    let other = Attempt { target: "/d/CERN/RPC2", ..attempt(Some(&said), Offer::Sha256) };
    assert!(matches!(world.attempt(other), Verdict::Unreadable(_)));
    let got = Attempt { method: "GET", ..attempt(Some(&said), Offer::Sha256) };
    assert!(matches!(world.attempt(got), Verdict::Challenge(..)));
    assert!(world.is_in(&said, Offer::Sha256));
    assert!(matches!(world.attempt(attempt(Some("Basic YW5hOng="), Offer::Sha256)), Verdict::Challenge(..)));
    assert!(matches!(world.attempt(attempt(Some("Digest x"), Offer::Sha256)), Verdict::Unreadable(_)));
    let nobody = authorize(&mut world.client("nobody", SECRET, Offer::Sha256));
    let described = |verdict: Verdict| match verdict {
        Verdict::Challenge(_, why) => why,
        other @ (Verdict::In(..) | Verdict::Wait(_) | Verdict::Unreadable(_)) => panic!("{other:?}"),
    };
    let guess = authorize(&mut world.client("ana", "a guess", Offer::Sha256));
    let (nobody, guess) = (attempt(Some(&nobody), Offer::Sha256), attempt(Some(&guess), Offer::Sha256));
    assert_eq!(described(world.attempt(nobody)), described(world.attempt(guess)), "names are not revealed");
}

#[test]
fn failures_are_held_up_and_new_accounts_taken_up() {
    let mut world = World::new();
    let mut last = None;
    for _ in 0..30 {
        let said = authorize(&mut world.client("bob", "a guess", Offer::Sha256));
        last = Some(world.attempt(attempt(Some(&said), Offer::Sha256)));
    }
    assert!(matches!(last, Some(Verdict::Wait(_))), "{last:?}");
    world.now = world.now.plus(Duration::from_secs(60));
    let mut more = accounts();
    more.add(account("bob", Rights::Viewer, false)).unwrap();
    more.remove(&"ana".parse().unwrap());
    world.login.set_accounts(&more);
    let bob = authorize(&mut world.client("bob", SECRET, Offer::Sha256));
    assert!(world.is_in(&bob, Offer::Sha256));
    let ana = authorize(&mut world.client("ana", SECRET, Offer::Sha256));
    assert!(!world.is_in(&ana, Offer::Sha256));
}

#[test]
fn a_login_that_is_sent_again_makes_no_home_of_where_it_comes_from() {
    let mut world = World::new();
    let said = authorize(&mut world.client("ana", SECRET, Offer::Sha256));
    assert!(world.is_in(&said, Offer::Sha256));
    let elsewhere = IpAddr::from([10, 0, 0, 2]);
    let again = Attempt { source: elsewhere, ..attempt(Some(&said), Offer::Sha256) };
    assert!(matches!(world.attempt(again), Verdict::Challenge(..)));
    for number in 0..100 {
        world.login.attempts.handle_failure(&format!("guess{number}"), elsewhere.into(), world.now);
    }
    let may = |world: &World, source: IpAddr| world.login.attempts.check("ana", source.into(), world.now);
    assert!(may(&world, elsewhere).is_err(), "it is no place of hers");
    assert!(may(&world, IpAddr::from([10, 0, 0, 1])).is_ok(), "here she logged in well");
}

#[test]
fn what_is_no_name_of_an_account_holds_no_client_up() {
    let mut world = World::new();
    let elsewhere = IpAddr::from([10, 9, 9, 9]);
    let passes = passes_of(elsewhere);
    for name in [passes.as_str(), "", "a b", &"a".repeat(500)] {
        let mut client = world.client("ana", SECRET, Offer::Sha256);
        let right = Credentials::read(&authorize(&mut client)).unwrap().unwrap();
        let said = Credentials { username: name.to_owned(), ..right }.write();
        for source in 0..200_u8 {
            let from = IpAddr::from([10, 1, 1, source]);
            let verdict = world.attempt(Attempt { source: from, ..attempt(Some(&said), Offer::Sha256) });
            assert!(matches!(verdict, Verdict::Unreadable(_)), "{name}: {verdict:?}");
        }
    }
    assert_eq!(world.login.check_pass(elsewhere, world.now), Ok(()));
}
