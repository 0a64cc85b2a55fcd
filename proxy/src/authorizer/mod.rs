//! Authorizer of a proxy's listener: runs the decisions of [`login`](crate::login::Login) with a clock,
//! random numbers and counters.
//!
//! Rules: the lock is held for one decision, never across an await. The concurrent requests of each account
//! are limited in all and per domain, so that one script cannot block the others. Secrets and header fields
//! are never logged.
//! Not here: HTTP (`rpc`), the decisions (`login`, `request_path`, `grant`).

pub mod guests;
pub mod permissions;
mod stream_permissions;

use crate::account::Accounts;
use crate::figures::Figures;
use crate::grant::{Chosen, Class, Grant, Rights};
use crate::login::{self, By, Login, Offer, Verdict, Visitor};
use crate::nonces::RANDOM_LEN_BYTES;
use crate::request_path::{self, RequestPath};
use guests::Guests;
use overlay::clock;
use permissions::{AccountPermissions, IN_WORK_FOR_DOMAIN_MAX, InWork, InWorkPermit};
use rpc::dispatch::permissions::{Permissions, Scope};
use rpc::fault::Fault;
use rpc::http::authorizer::{Admitted, Authorizer, Credentials, Decision, Rejected};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stream_permissions::{Credential, StreamPermissions, Ticket};
use tunnel::digest::header::of_scheme;
use tunnel::hash::Algorithm;
use wire::fault;
use wire::id::{DomainName, HostName};

/// Concurrent requests of one account: a page that queries all hosts of a domain at once.
pub const IN_WORK_MAX: usize = 64;

/// Verifier of the passes with which members of domains authenticate.
pub trait TicketVerifier: Send + Sync {
    /// Return the member that signed the pass.
    ///
    /// # Errors
    /// Why the pass is rejected, as text for the client.
    fn member(&self, pass: &str) -> Result<Member, String>;
}

/// A member of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Domain of the member; it may see only this domain.
    pub domain: DomainName,
    pub host: HostName,
}

/// Authorizer. Clones share their state.
pub struct ProxyAuthorizer {
    ticket_verifier: Option<Arc<dyn TicketVerifier>>,
    login: Arc<Mutex<Login>>,
    /// Concurrent requests of each account.
    in_work: InWork<String>,
    /// Concurrent calls of each account for each domain.
    for_domain: InWork<(String, DomainName)>,
    figures: Arc<Figures>,
    guests: Guests,
    channel: Vec<u8>,
    takes_md5: bool,
}

impl ProxyAuthorizer {
    /// An authorizer for `accounts`. Nonces are valid for `channel` only; MD5 is offered if it is enabled.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new(
        accounts: &Accounts,
        channel: Vec<u8>,
        takes_md5: bool,
        ticket_verifier: Option<Arc<dyn TicketVerifier>>,
    ) -> Result<Arc<ProxyAuthorizer>, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Arc::new(ProxyAuthorizer {
            ticket_verifier,
            login: Arc::new(Mutex::new(Login::new(accounts, secret))),
            in_work: Arc::default(),
            for_domain: Arc::default(),
            figures: Arc::default(),
            guests: Guests::default(),
            channel,
            takes_md5,
        }))
    }

    /// Replace the accounts.
    pub fn set_accounts(&self, accounts: &Accounts) {
        lock(&self.login).set_accounts(accounts);
        self.figures.reread_total.add();
    }

    pub(crate) fn login(&self) -> &Mutex<Login> {
        &self.login
    }

    pub(crate) fn guests(&self) -> &Guests {
        &self.guests
    }

    pub(crate) fn takes_md5(&self) -> bool {
        self.takes_md5
    }

    #[must_use]
    pub fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// The counters and current table sizes, by name.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.figures.counters();
        let in_work: usize = lock(&self.in_work).values().sum();
        counters.push(("in_work", in_work as u64));
        counters.push(("visitors", self.visitors_len() as u64));
        counters.push(("nonces", lock(&self.login).nonces_len() as u64));
        counters
    }

    fn verdict(&self, credentials: &Credentials<'_>, offer: Offer) -> Option<Verdict> {
        let mut random = [0; RANDOM_LEN_BYTES];
        getrandom::fill(&mut random).ok()?;
        let attempt = login::Attempt {
            method: credentials.method,
            target: credentials.target,
            authorization: credentials.authorization,
            source: credentials.source,
            channel: &self.channel,
            offer,
        };
        Some(lock(&self.login).handle_attempt(attempt, random, clock::now()))
    }

    fn admit(
        &self,
        visitor: Visitor,
        shown: Credential,
        place: RequestPath,
        info: Option<String>,
    ) -> Decision {
        let name = visitor.name.clone();
        let fields: Vec<_> = info.into_iter().map(|info| ("authentication-info", info)).collect();
        let Some(permit) = InWorkPermit::take(&self.in_work, name, IN_WORK_MAX) else {
            self.figures.busy_total.add();
            let message =
                format!("expected at most {IN_WORK_MAX} requests of one account in work, found more");
            return Decision::Rejected(Rejected {
                status: 503,
                fields,
                fault: Fault::new(fault::BUSY, message),
            });
        };
        self.figures.admitted_total.add();
        match visitor.by {
            By::Digest(Algorithm::Md5) => self.figures.admitted_md5_total.add(),
            By::Pass => self.figures.admitted_by_pass_total.add(),
            // Visitors over the overlay log in by `enter`.
            By::Digest(Algorithm::Sha256) | By::Raw(_) => {}
        }
        let (for_domain, figures) = (Arc::clone(&self.for_domain), Arc::clone(&self.figures));
        let Visitor { name, grant, rights, .. } = visitor;
        let in_work_max = IN_WORK_FOR_DOMAIN_MAX;
        let permissions = AccountPermissions { name, grant, rights, for_domain, in_work_max, figures };
        let access: Arc<dyn Permissions> =
            Arc::new(StreamPermissions { permissions, shown, login: Arc::clone(&self.login) });
        let scope = Scope {
            domain: place.domain.map(|name| name.to_string()),
            host: place.host.map(|name| name.to_string()),
            access: Some(access),
            ..Scope::default()
        };
        Decision::Admitted(Admitted { path: place.rest, scope, fields, permit: Box::new(permit) })
    }

    /// Authenticate a client by its pass.
    fn show(
        &self,
        ticket_verifier: &Arc<dyn TicketVerifier>,
        pass: &str,
        source: IpAddr,
        place: Option<RequestPath>,
    ) -> Decision {
        let now = clock::now();
        if let Err(wait) = lock(&self.login).check_pass(source, now) {
            self.figures.held_up_total.add();
            return held_up(wait);
        }
        let member = ticket_verifier.member(pass.trim());
        lock(&self.login).count_pass(source, member.is_ok(), now);
        let member = match member {
            Ok(member) => member,
            Err(why) => {
                self.figures.challenged_total.add();
                let fields = vec![(
                    "www-authenticate",
                    "Bearer realm=\"visperf\", error=\"invalid_token\"".to_owned(),
                )];
                return Decision::Rejected(Rejected {
                    status: 401,
                    fields,
                    fault: Fault::new(fault::FORBIDDEN, why),
                });
            }
        };
        let domains = Chosen::These([member.domain.clone()].into());
        let grant = Arc::new(Grant { domains, hosts: Chosen::All, classes: Class::USUAL.into() });
        let name = format!("{}/{}", member.domain, member.host);
        let visitor = Visitor { name, grant, rights: Rights::Viewer, by: By::Pass, proof: None };
        let shown = Credential::Ticket(Ticket::new(Arc::clone(ticket_verifier), pass.trim().to_owned(), now));
        match place {
            Some(place) => self.admit(visitor, shown, place, None),
            None => no_place(Vec::new()),
        }
    }
}

impl Authorizer for ProxyAuthorizer {
    fn authorize(&self, credentials: &Credentials<'_>) -> Decision {
        let place = request_path::of(credentials.path);
        let offer = match (self.takes_md5, &place) {
            (false, _) => Offer::Sha256,
            (true, Some(RequestPath { is_md5: true, .. })) => Offer::Md5,
            (true, _) => Offer::Both,
        };
        if let (Some(ticket_verifier), Some(pass)) =
            (&self.ticket_verifier, credentials.authorization.and_then(|value| of_scheme(value, "Bearer")))
        {
            return self.show(ticket_verifier, pass, credentials.source, place);
        }
        let turned = |status, fields, code, message: String| {
            Decision::Rejected(Rejected { status, fields, fault: Fault::new(code, message) })
        };
        match self.verdict(credentials, offer) {
            None => turned(503, Vec::new(), fault::SYSTEM, "the system gives no random numbers".to_owned()),
            Some(Verdict::In(visitor, info)) => match (place, visitor.proof.clone()) {
                (Some(place), Some(proof)) => {
                    self.admit(visitor, Credential::Proof(proof), place, Some(info))
                }
                _ => no_place(vec![("authentication-info", info)]),
            },
            Some(Verdict::Challenge(challenges, why)) => {
                self.figures.challenged_total.add();
                let fields = challenges.into_iter().map(|field| ("www-authenticate", field)).collect();
                turned(401, fields, fault::FORBIDDEN, why.to_owned())
            }
            Some(Verdict::Wait(wait)) => {
                self.figures.held_up_total.add();
                held_up(wait)
            }
            Some(Verdict::Unreadable(why)) => {
                self.figures.unreadable_total.add();
                turned(400, Vec::new(), fault::TRANSPORT, format!("Authorization: {why}"))
            }
        }
    }
}

fn held_up(wait: Duration) -> Decision {
    let secs = wait.as_secs() + 1;
    let message = format!("too many logins failed; try again in {secs} s");
    let fields = vec![("retry-after", secs.to_string())];
    Decision::Rejected(Rejected { status: 429, fields, fault: Fault::new(fault::BUSY, message) })
}

fn no_place(fields: Vec<(&'static str, String)>) -> Decision {
    let message = "expected /d/DOMAIN/RPC2, /d/DOMAIN/HOST/RPC2 or the same with /api/v1, found another path";
    Decision::Rejected(Rejected { status: 404, fields, fault: Fault::new(fault::NOT_FOUND, message) })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change behind the lock is complete in one step, so a poisoned lock is safe.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Name, Proofs};
    use crate::grant::asked;
    use rpc::dispatch::permissions::Permit;
    use std::collections::BTreeMap;
    use tunnel::digest::client::{self, Client};

    fn authorizer(takes_md5: bool) -> Arc<ProxyAuthorizer> {
        let accounts = accounts("secret", &Class::USUAL, takes_md5);
        ProxyAuthorizer::new(&accounts, b"door".to_vec(), takes_md5, Some(Arc::new(Word))).unwrap()
    }

    /// One account, `ana`, with this secret and these classes.
    fn accounts(secret: &str, classes: &[Class], is_legacy: bool) -> Accounts {
        let name: Name = "ana".parse().unwrap();
        let domains = Chosen::These(["UT-ICL".try_into().unwrap()].into());
        let grant = Grant { domains, hosts: Chosen::All, classes: classes.iter().copied().collect() };
        let proofs = Proofs::of(&name, "visperf", secret, is_legacy);
        let mut accounts = Accounts::new("visperf").unwrap();
        accounts.add(Account { name, rights: Rights::Viewer, grant, proofs }).unwrap();
        accounts
    }

    #[test]
    fn what_goes_on_ends_with_the_account_its_secret_or_its_grant() {
        let check = |now: &Accounts, expected: Result<(), &str>| {
            let authorizer = authorizer(false);
            let Decision::Admitted(admitted) = enter(&authorizer, "/d/UT-ICL/RPC2") else { panic!("not in") };
            let access = admitted.scope.access.expect("guarded");
            let still = || access.may_still(asked("domain.events", Some("UT-ICL"), None));
            assert_eq!((access.who(), still()), ("ana", Ok(())));
            authorizer.set_accounts(now);
            match (still(), expected) {
                (Ok(()), Ok(())) => {}
                (Err(fault), Err(words)) => {
                    assert!(fault.code == fault::FORBIDDEN && fault.message.contains(words), "{fault}");
                }
                other => panic!("{other:?}"),
            }
        };
        check(&accounts("secret", &Class::USUAL, false), Ok(()));
        check(&Accounts::new("visperf").unwrap(), Err("gone"));
        check(&accounts("another", &Class::USUAL, false), Err("another secret"));
        check(&accounts("secret", &[Class::Figures], false), Err("class logs"));
    }

    /// An account's subscriptions inside (`sensor.take` by number) belong to it alone, and no longer after
    /// its permissions are reduced.
    #[test]
    fn each_account_is_another_one_to_those_inside_and_so_is_one_that_may_see_less() {
        let authorizer = authorizer(false);
        let ana = || {
            let Decision::Admitted(admitted) = enter(&authorizer, "/d/UT-ICL/wn01/RPC2") else {
                panic!("not in")
            };
            admitted.scope.access.and_then(|access| access.account()).expect("guarded")
        };
        let before = ana();
        assert_eq!(ana(), before, "of whichever request");
        let Decision::Admitted(member) = authorize(&authorizer, "/d/CERN/RPC2", Some("Bearer good")) else {
            panic!("not in")
        };
        let member = member.scope.access.and_then(|access| access.account()).expect("guarded");
        assert_ne!(member, before);
        authorizer.set_accounts(&accounts("secret", &[Class::Figures], false));
        let after = ana();
        assert!(after != before && after != member);
        authorizer.set_accounts(&accounts("secret", &Class::USUAL, false));
        assert_eq!(ana(), before);
    }

    /// Accepts one fixed pass.
    struct Word;

    impl TicketVerifier for Word {
        fn member(&self, pass: &str) -> Result<Member, String> {
            let member = || Member { domain: "CERN".try_into().unwrap(), host: "wn01".try_into().unwrap() };
            if pass == "good" { Ok(member()) } else { Err("not good".to_owned()) }
        }
    }

    #[test]
    fn a_member_comes_in_by_its_pass_and_sees_its_own_domain() {
        let authorizer = authorizer(false);
        let Decision::Admitted(admitted) = authorize(&authorizer, "/d/CERN/RPC2", Some("Bearer good")) else {
            panic!("not in")
        };
        let access = admitted.scope.access.expect("guarded");
        assert!(access.may(asked("sensor.events", Some("CERN"), None)).is_ok());
        assert!(access.may(asked("sensor.events", Some("UT-ICL"), None)).is_err());
        assert!(access.may(asked("sensor.record", Some("CERN"), None)).is_err());
        drop(admitted.permit);
        for _ in 0..100 {
            let Decision::Rejected(turned) = authorize(&authorizer, "/d/CERN/RPC2", Some("Bearer bad"))
            else {
                panic!("in")
            };
            assert!(matches!(turned.status, 401 | 429), "{}", turned.status);
        }
        let counters: BTreeMap<_, _> = authorizer.counters().into_iter().collect();
        assert!(counters["admitted_by_pass_total"] == 1 && counters["held_up_total"] > 50, "{counters:?}");
    }

    fn authorize(authorizer: &ProxyAuthorizer, path: &str, authorization: Option<&str>) -> Decision {
        let source = [10, 0, 0, 1].into();
        authorizer.authorize(&Credentials { method: "POST", target: path, path, authorization, source })
    }

    fn client(authorizer: &ProxyAuthorizer, path: &str) -> Client {
        let Decision::Rejected(turned) = authorize(authorizer, path, None) else { panic!("let in") };
        assert_eq!(turned.status, 401);
        let login = client::Login { name: "ana".into(), secret: "secret".into(), allows_md5: true };
        let mut client = Client::new(login);
        client.handle_challenge(turned.fields.iter().map(|(_, value)| value.as_str())).unwrap();
        client
    }

    fn enter(authorizer: &ProxyAuthorizer, path: &str) -> Decision {
        let said = client(authorizer, path).authorization("POST", path, "c").unwrap();
        authorize(authorizer, path, Some(&said))
    }

    #[test]
    fn who_comes_in_may_call_what_is_granted() {
        let authorizer = authorizer(false);
        let Decision::Admitted(admitted) = enter(&authorizer, "/d/UT-ICL/wn01/RPC2") else {
            panic!("not in")
        };
        assert_eq!((admitted.path.as_str(), admitted.scope.domain.as_deref()), ("/RPC2", Some("UT-ICL")));
        assert_eq!(admitted.scope.host.as_deref(), Some("wn01"));
        let access = admitted.scope.access.expect("guarded");
        assert!(access.may(asked("sensor.events", Some("UT-ICL"), Some("wn01"))).is_ok());
        assert!(access.may(asked("sensor.events", Some("CERN"), None)).is_err());
        assert!(access.may(asked("daemon.info", None, None)).is_err());
        let counters: BTreeMap<_, _> = authorizer.counters().into_iter().collect();
        assert_eq!((counters["admitted_total"], counters["forbidden_total"], counters["in_work"]), (1, 2, 1));
    }

    #[test]
    fn an_account_has_so_many_requests_in_work_and_no_more() {
        let authorizer = authorizer(false);
        let mut inside = Vec::new();
        for _ in 0..IN_WORK_MAX {
            inside.push(enter(&authorizer, "/RPC2"));
        }
        let Decision::Rejected(turned) = enter(&authorizer, "/RPC2") else { panic!("let in") };
        assert_eq!(turned.status, 503);
        let counters: BTreeMap<_, _> = authorizer.counters().into_iter().collect();
        assert_eq!(
            (counters["admitted_total"], counters["busy_total"]),
            (IN_WORK_MAX as u64, 1),
            "it was not let in"
        );
        inside.pop();
        assert!(matches!(enter(&authorizer, "/RPC2"), Decision::Admitted(_)));
        drop(inside);
        assert!(lock(&authorizer.in_work).is_empty());
    }

    #[test]
    fn an_account_has_so_many_calls_for_one_domain_however_it_asks() {
        let authorizer = authorizer(false);
        let access = |path: &str| match enter(&authorizer, path) {
            Decision::Admitted(Admitted { scope, .. }) => scope.access.expect("guarded"),
            Decision::Rejected(turned) => panic!("turned away: {turned:?}"),
        };
        let (one, other) = (access("/d/UT-ICL/RPC2"), access("/RPC2"));
        let call =
            |access: &Arc<dyn Permissions>| access.may(asked("sensor.take", Some("UT-ICL"), Some("wn01")));
        let mut waiting: Vec<Permit> = (0..IN_WORK_FOR_DOMAIN_MAX).map(|_| call(&one).unwrap()).collect();
        let fault = call(&other).expect_err("as many wait as may");
        assert_eq!(fault.code, fault::BUSY);
        assert!(fault.message.contains("8 calls of one account in work for one domain"), "{fault}");
        assert!(other.may(asked("directory.resolve", Some("UT-ICL"), None)).is_ok(), "no call waits there");
        let Decision::Admitted(member) = authorize(&authorizer, "/d/CERN/RPC2", Some("Bearer good")) else {
            panic!("not in")
        };
        let member = member.scope.access.expect("guarded");
        assert!(member.may(asked("sensor.take", Some("CERN"), Some("wn01"))).is_ok(), "another's own");
        waiting.pop();
        assert!(call(&other).is_ok());
        drop(waiting);
        assert!(lock(&authorizer.for_domain).is_empty());
    }

    #[test]
    fn a_wrong_path_is_reported_only_to_an_authenticated_client() {
        let authorizer = authorizer(true);
        assert!(matches!(
            authorize(&authorizer, "/d/no!/RPC2", None),
            Decision::Rejected(Rejected { status: 401, .. })
        ));
        assert!(matches!(
            enter(&authorizer, "/d/no!/RPC2"),
            Decision::Rejected(Rejected { status: 404, .. })
        ));
        let Decision::Rejected(md5) = authorize(&authorizer, "/md5/RPC2", None) else { panic!("let in") };
        assert!(md5.fields.len() == 1 && md5.fields[0].1.contains("algorithm=MD5"), "{:?}", md5.fields);
        assert!(matches!(enter(&authorizer, "/md5/RPC2"), Decision::Admitted(_)));
        let Decision::Rejected(both) = authorize(&authorizer, "/RPC2", None) else { panic!("let in") };
        assert!(both.fields[0].1.contains("SHA-256") && both.fields[1].1.contains("MD5"));
    }
}
