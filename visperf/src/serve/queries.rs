//! Server of forwarded queries: answers questions from other daemons like those of a client.
//!
//! Rules: the permission of the asker is checked for each question, and each call of a visitor against the
//! grant of its account; only methods that read, or that rely on a signature alone, are called; a question
//! runs no longer than its asker waits.
//! Not here: forwarding questions (`forward`), the methods themselves.

use overlay::authenticator::Authenticator;
use overlay::identity::admission::{Action, Principal};
use overlay::identity::guest_certificate::Guest;
use overlay::net::accept::{Answerer, Answering};
use overlay::net::handle::Answer as Reply;
use proxy::authorizer::guests;
use proxy::authorizer::permissions::{AccountPermissions, IN_WORK_OF_VISITORS_MAX, InWork};
use proxy::figures::Figures;
use rpc::codec::value::Value;
use rpc::codec::value_codec;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::encoded_answer::{self, Answered};
use rpc::dispatch::forward::Caller;
use rpc::dispatch::permissions::Scope;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wire::credential::Role;
use wire::fault;
use wire::id::{DomainName, PeerKey};
use wire::query::{Answer, Question, Viewer};

/// Most questions in progress: as many as four proxies forward, and a third of what the dispatcher takes.
const IN_WORK_MAX: usize = 512;

/// Most questions that may wait beyond these.
const WAITING_MAX: usize = 256;

pub(crate) struct Queries {
    dispatcher: Arc<Dispatcher>,
    gate: Arc<Authenticator>,
    visiting: VisitorPermissions,
    shutdown: CancellationToken,
    in_work: Semaphore,
    /// Permits for the questions in progress and those that wait.
    places: Semaphore,
}

impl Queries {
    /// Questions go to `dispatcher` if `gate` permits their asker to read. The sensors of `domain` are
    /// trusted to name the users on whose behalf they ask.
    pub(crate) fn new(
        dispatcher: Arc<Dispatcher>,
        gate: Arc<Authenticator>,
        domain: Option<DomainName>,
        shutdown: CancellationToken,
    ) -> Queries {
        Queries {
            dispatcher,
            gate,
            visiting: VisitorPermissions { domain, ..VisitorPermissions::default() },
            shutdown,
            in_work: Semaphore::new(IN_WORK_MAX),
            places: Semaphore::new(IN_WORK_MAX + WAITING_MAX),
        }
    }

    async fn made(&self, principal: &Principal, question: &[u8]) -> Reply {
        if let Err(refused) = self.gate.check(principal, Action::Read) {
            return Reply::Refused(refused.to_string());
        }
        let Ok(_place) = self.places.try_acquire() else { return Reply::busy() };
        // The semaphores are never closed.
        let Ok(_turn) = self.in_work.acquire().await else { return Reply::busy() };
        let scope = self.visiting.scope(principal.peer, principal.guest.as_ref());
        let asker = (principal.peer, self.visiting.viewer_trust(principal));
        Reply::Done(
            run(&self.dispatcher, asker, &scope, question).await.unwrap_or_else(|fault| {
                bytes_of(&Answer::Fault { code: fault.code, message: &fault.message })
            }),
        )
    }
}

impl Answerer for Queries {
    fn answer(&self, principal: Arc<Principal>, question: Vec<u8>) -> Answering<'_> {
        let answering = async move { self.made(&principal, &question).await };
        Box::pin(self.shutdown.run_until_cancelled(answering))
    }
}

/// Permissions of visitors, which have an account at a proxy: their grants, and the limit of their calls in
/// progress.
#[derive(Default)]
struct VisitorPermissions {
    domain: Option<DomainName>,
    in_work: InWork<(String, DomainName)>,
    figures: Arc<Figures>,
    /// Cache of grants: a visitor asks often, and its visa stays the same for minutes.
    grants: Mutex<BTreeMap<PeerKey, Grant>>,
}

/// A visitor's visa, and the access that it grants.
type Grant = (Arc<Guest>, Arc<AccountPermissions>);

/// Most visitors in the cache; when it is full, it is emptied.
const GRANTS_MAX: usize = 256;

/// Trust in the viewer that a question names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewerTrust {
    /// None: the daemon cannot know the users of this domain, so its viewers are anonymous.
    None,
    /// A sensor or an operator's daemon of this domain: users have the same uid on its hosts.
    Member,
}

impl ViewerTrust {
    fn viewer(self, stated: Viewer) -> Viewer {
        match self {
            ViewerTrust::None => Viewer::Anonymous,
            ViewerTrust::Member => stated,
        }
    }
}

impl VisitorPermissions {
    fn viewer_trust(&self, principal: &Principal) -> ViewerTrust {
        if self.domain.is_none() || principal.domain != self.domain {
            return ViewerTrust::None;
        }
        // A statement of a proxy's account about its user proves nothing.
        let is_member = principal.guest.is_none()
            && [Role::Publisher, Role::Operator].into_iter().any(|role| principal.roles.has(role));
        if is_member { ViewerTrust::Member } else { ViewerTrust::None }
    }

    fn scope(&self, visitor: PeerKey, guest: Option<&Arc<Guest>>) -> Scope {
        let Some(guest) = guest else { return Scope::default() };
        Scope { access: Some(self.access(visitor, guest)), ..Scope::default() }
    }

    fn access(&self, visitor: PeerKey, guest: &Arc<Guest>) -> Arc<AccountPermissions> {
        // Each change of the table is one step.
        let mut grants = self.grants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, access)) = grants.get(&visitor).filter(|(known, _)| Arc::ptr_eq(known, guest)) {
            return Arc::clone(access);
        }
        let (grant, rights) = guests::granted(&guest.visa);
        let access = Arc::new(AccountPermissions {
            name: format!("{} at {}", guest.visa.account, guest.proxy.peer),
            grant: Arc::new(grant),
            rights,
            for_domain: Arc::clone(&self.in_work),
            in_work_max: IN_WORK_OF_VISITORS_MAX,
            figures: Arc::clone(&self.figures),
        });
        if grants.len() >= GRANTS_MAX {
            grants.clear();
        }
        grants.insert(visitor, (Arc::clone(guest), Arc::clone(&access)));
        access
    }
}

async fn run(
    dispatcher: &Dispatcher,
    (peer, viewer_trust): (PeerKey, ViewerTrust),
    scope: &Scope,
    body: &[u8],
) -> Result<Vec<u8>, Fault> {
    let unreadable = |what: &dyn std::fmt::Display| {
        Fault::new(fault::INVALID_REQUEST, format!("a question handed on: {what}"))
    };
    let question = Question::from_bytes(body).map_err(|error| unreadable(&error))?;
    let params = value_codec::read(&question.params).map_err(|error| unreadable(&error))?;
    let Value::Struct(params) = params else { return Err(unreadable(&"its parameters are no structure")) };
    let caller = Caller {
        peer: Some(peer),
        account: question.account,
        hops_left: question.hops_left,
        time_left: Duration::from_millis(question.time_left_ms.into()),
        viewer: viewer_trust.viewer(question.viewer),
    };
    let answered = dispatcher.call_within(scope, &caller, &question.method, params, question.form).await?;
    Ok(match (answered, question.form) {
        // The document was encoded here or by the daemon that was asked from here; it is not parsed.
        (Answered::Written(document), _) => bytes_of(&Answer::Written(&document)),
        (Answered::Value(value), Some(form)) => {
            bytes_of(&Answer::Written(encoded_answer::document(form, &value).as_bytes()))
        }
        (Answered::Value(value), None) => {
            let mut bytes = Vec::new();
            value_codec::write(&value, &mut bytes);
            bytes_of(&Answer::Done(&bytes))
        }
    })
}

fn bytes_of(answer: &Answer<'_>) -> Vec<u8> {
    postcard::to_stdvec(answer).expect("an answer has no part that cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hop;
    use overlay::identity::trust::Affiliation;
    use rpc::codec::value::Name;
    use rpc::dispatch::method::Registry;
    use rpc::limits::Limits;
    use wire::credential::{Roles, Serial};
    use wire::entering::Visa;
    use wire::time::Time;

    const VISITOR: PeerKey = PeerKey([1; 32]);

    fn guest(classes: &[&str]) -> Guest {
        let domain = DomainName::try_from("UT-ICL").unwrap();
        let visa = Visa {
            visitor: VISITOR,
            account: "fay".to_owned(),
            domains: Some(vec![domain.clone()]),
            hosts: None,
            classes: classes.iter().map(|word| (*word).to_owned()).collect(),
            is_operator: false,
            issued: Time::default(),
            expires: Time::default(),
        };
        let proxy = Principal {
            peer: PeerKey([2; 32]),
            affiliation: Affiliation::Member,
            directory: false,
            domain: Some(domain),
            root: Some(PeerKey([3; 32])),
            host: None,
            roles: Roles::NONE.with(Role::Viewer),
            priority: 0,
            serial: Serial(1),
            issued: Time::default(),
            expires: Time::default(),
            delegated: None,
            guest: None,
        };
        Guest { visa, proxy }
    }

    fn dispatcher() -> Dispatcher {
        let mut registry = Registry::new();
        for declaration in sensor::query::declared::all() {
            registry.add(declaration.handler_now(|_| Ok("answered".into()))).unwrap();
        }
        Dispatcher::new(registry, Limits::default(), Arc::default())
    }

    /// The result of a call of a visitor with these classes.
    async fn called(
        classes: &[&str],
        method: &'static str,
        params: &[(&'static str, Value)],
    ) -> Result<(), i32> {
        let scope = VisitorPermissions::default().scope(VISITOR, Some(&Arc::new(guest(classes))));
        let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        let question = hop::question(method, params, Duration::from_secs(9), 1);
        let answer = run(&dispatcher(), (VISITOR, ViewerTrust::None), &scope, &question.to_bytes()).await;
        let bytes = answer.map_err(|fault| fault.code)?;
        let Answer::Done(packed) = postcard::from_bytes(&bytes).unwrap() else { panic!("{bytes:?}") };
        assert_eq!(value_codec::read(packed).unwrap(), "answered".into());
        Ok(())
    }

    #[tokio::test]
    async fn a_visitor_calls_what_its_account_was_granted_and_nothing_else() {
        let here = || ("domain", Value::from("UT-ICL"));
        let kind = |kind: &str| [here(), ("kind", kind.into())];
        let (figures, logs): (&[&str], &[&str]) = (&["figures"], &["figures", "logs"]);
        assert_eq!(called(figures, "sensor.metrics", &[here()]).await, Ok(()));
        assert_eq!(called(figures, "sensor.subscribe", &kind("process")).await, Ok(()));
        assert_eq!(called(logs, "sensor.subscribe", &kind("event")).await, Ok(()));
        assert_eq!(called(logs, "sensor.events", &[here()]).await, Ok(()));
        let forbidden = Err(fault::FORBIDDEN);
        for (classes, method, params) in [
            (figures, "sensor.events", vec![here()]),
            (figures, "domain.summary", vec![here()]),
            (figures, "sensor.subscribe", kind("event").to_vec()),
            (logs, "sensor.record", vec![here()]),
            (logs, "sensor.control", vec![here(), ("order", "anything".into())]),
            (logs, "sensor.events", vec![("domain", "CERN".into())]),
            (logs, "sensor.events", vec![]),
            (&[], "sensor.metrics", vec![here()]),
            (&["everything"], "sensor.metrics", vec![here()]),
        ] {
            assert_eq!(called(classes, method, &params).await, forbidden, "{classes:?} {method} {params:?}");
        }
        let inner = Value::object([
            ("methodName", Value::from("sensor.events")),
            ("params", Value::array([Value::object([here()])])),
        ]);
        // Visitors make one call at a time.
        let calls = [("calls", Value::array([inner]))];
        assert_eq!(called(logs, "system.multicall", &calls).await, forbidden);
    }

    #[test]
    fn access_is_kept_for_few_visitors_and_as_long_as_their_visa_is_the_same() {
        let visiting = VisitorPermissions::default();
        let access = |guest| visiting.access(VISITOR, guest).grant.classes.len();
        let [figures, both] =
            [&["figures"][..], &["figures", "logs"]].map(|classes| Arc::new(guest(classes)));
        let first = visiting.access(VISITOR, &figures);
        assert!(Arc::ptr_eq(&first, &visiting.access(VISITOR, &figures)), "the same object, made once");
        assert_eq!([access(&figures), access(&both), access(&figures)], [1, 2, 1], "its visa was renewed");
        for number in 0..2 * GRANTS_MAX {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(number as u64).to_be_bytes());
            visiting.access(PeerKey(key), &figures);
        }
        assert!(visiting.grants.lock().unwrap().len() <= GRANTS_MAX);
    }

    #[test]
    fn the_sensors_of_the_domain_alone_vouch_for_users() {
        let domain = |name: &str| DomainName::try_from(name).unwrap();
        let visiting = VisitorPermissions { domain: Some(domain("UT-ICL")), ..VisitorPermissions::default() };
        let member = |role: Role| {
            let guest = guest(&[]);
            Principal { roles: Roles::NONE.with(role), ..guest.proxy }
        };
        let visitor = Principal { guest: Some(Arc::new(guest(&[]))), ..member(Role::Publisher) };
        let check = |principal: &Principal, expected: Viewer| {
            assert_eq!(
                visiting.viewer_trust(principal).viewer(Viewer::User(1000)),
                expected,
                "{principal:?}"
            );
        };
        check(&member(Role::Publisher), Viewer::User(1000));
        check(&member(Role::Viewer), Viewer::Anonymous);
        check(&member(Role::Operator), Viewer::User(1000));
        check(&visitor, Viewer::Anonymous);
        check(&Principal { domain: Some(domain("CERN")), ..member(Role::Publisher) }, Viewer::Anonymous);
        check(&Principal { domain: None, ..member(Role::Operator) }, Viewer::Anonymous);
    }

    #[tokio::test]
    async fn whatever_bytes_a_visitor_sends_it_is_answered_nothing_that_it_may_not_ask() {
        let (dispatcher, scope) = (
            dispatcher(),
            VisitorPermissions::default().scope(VISITOR, Some(&Arc::new(guest(&["figures"])))),
        );
        let here = vec![(Name::Borrowed("domain"), Value::from("UT-ICL"))];
        let forbidden = hop::question("sensor.events", here, Duration::from_secs(9), 1).to_bytes();
        let mut state = 0x5eed_2026_u64;
        // xorshift64, started from the seed above.
        let mut below = |end: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % end.max(1) as u64).unwrap()
        };
        for nth in 0..5_000 {
            let mut body = forbidden.clone();
            match below(4) {
                0 => body = (0..below(200)).map(|_| u8::try_from(below(256)).unwrap()).collect(),
                1 => body.truncate(below(body.len())),
                _ => (0..=below(4)).for_each(|_| {
                    let at = below(body.len());
                    body[at] = u8::try_from(below(256)).unwrap();
                }),
            }
            let answered = run(&dispatcher, (VISITOR, ViewerTrust::None), &scope, &body).await;
            assert!(answered.is_err(), "{nth}: {body:?}: {answered:?}");
        }
    }
}
