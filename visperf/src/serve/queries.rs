//! Questions of the query interface that other daemons hand on, answered as a client's would be.
//!
//! Rules: who asks is looked at for each question, and each call of a visitor by what its account was granted; only methods that read, or that
//! believe a signature alone, are called; a question runs no longer than its asker waits.
//! Not here: handing questions on (`elsewhere`), the methods themselves.

use overlay::gatekeeper::Gatekeeper;
use overlay::identity::admission::{Action, Principal};
use overlay::identity::visa::Visit;
use overlay::net::event_loop::Question as Asked;
use overlay::net::handle::Answer as Reply;
use proxy::access::{IN_WORK_OF_VISITORS_MAX, InWork, Visit as Access};
use proxy::figures::Figures;
use proxy::visitors;
use rpc::dispatch::Dispatcher;
use rpc::elsewhere::Caller;
use rpc::entrance::Scope;
use rpc::fault::{self, Fault};
use rpc::packed;
use rpc::value::Value;
use rpc::written::{self, Answered};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Role;
use wire::id::{DomainName, PeerKey};
use wire::query::{Answer, Question, Viewer};

/// Questions in work at a time; a peer waits for its turn beyond them. As many as four proxies hand on, and a third of what
/// the dispatcher takes.
const IN_WORK_MAX: usize = 512;

/// Answer questions until `shutdown`. The sensors of `domain` vouch for the users on whose behalf they ask.
pub(crate) async fn serve(
    mut questions: mpsc::Receiver<Asked>,
    dispatcher: Arc<Dispatcher>,
    gate: Arc<Gatekeeper>,
    domain: Option<DomainName>,
    shutdown: CancellationToken,
) {
    let mut in_work = JoinSet::new();
    let visiting = Visiting { domain, ..Visiting::default() };
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = in_work.join_next() => {}
            asked = questions.recv(), if in_work.len() < IN_WORK_MAX => match asked {
                None => break,
                Some(asked) => {
                    let (dispatcher, gate) = (Arc::clone(&dispatcher), Arc::clone(&gate));
                    in_work.spawn(answer(asked, dispatcher, gate, visiting.clone()));
                }
            },
        }
    }
}

async fn answer(asked: Asked, dispatcher: Arc<Dispatcher>, gate: Arc<Gatekeeper>, visiting: Visiting) {
    let Asked { peer, principal, body, reply, .. } = asked;
    let refused = match &principal {
        None => Some("show a certificate first".to_owned()),
        Some(principal) => gate.check(principal, Action::Read).err().map(|refused| refused.to_string()),
    };
    let scope = visiting.scope(principal.as_ref().and_then(|principal| principal.visit.as_deref()));
    let vouching = principal.as_ref().map_or(Vouching::None, |principal| visiting.vouching(principal));
    let made = match refused {
        Some(reason) => Reply::Refused(reason),
        None => {
            Reply::Done(run(&dispatcher, (peer, vouching), &scope, &body).await.unwrap_or_else(|fault| {
                bytes_of(&Answer::Fault { code: fault.code, message: &fault.message })
            }))
        }
    };
    // The peer may have gone.
    let _ = reply.send(made);
}

/// What visitors may ask, who come with an account at a proxy: what that granted them, and so much at a time.
#[derive(Clone, Default)]
struct Visiting {
    /// The domain of this daemon.
    domain: Option<DomainName>,
    in_work: InWork<(String, DomainName)>,
    figures: Arc<Figures>,
}

/// Whose statements about the viewer of a question are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vouching {
    /// A daemon that cannot know the users of this domain: its viewers are anonymous.
    None,
    /// A sensor or an operator's daemon of this domain: users have the same numbers on its hosts.
    Member,
}

impl Vouching {
    fn viewer(self, stated: Viewer) -> Viewer {
        match self {
            Vouching::None => Viewer::Anonymous,
            Vouching::Member => stated,
        }
    }
}

impl Visiting {
    fn vouching(&self, principal: &Principal) -> Vouching {
        if self.domain.is_none() || principal.domain != self.domain {
            return Vouching::None;
        }
        // What an account of a proxy says of itself proves nothing.
        let is_member = principal.visit.is_none()
            && [Role::Publisher, Role::Operator].into_iter().any(|role| principal.roles.has(role));
        if is_member { Vouching::Member } else { Vouching::None }
    }

    fn scope(&self, visit: Option<&Visit>) -> Scope {
        let Some(visit) = visit else { return Scope::default() };
        let (grant, rights) = visitors::granted(&visit.visa);
        let access = Access {
            name: format!("{} at {}", visit.visa.account, visit.proxy.peer),
            grant: Arc::new(grant),
            rights,
            for_domain: Arc::clone(&self.in_work),
            in_work_max: IN_WORK_OF_VISITORS_MAX,
            figures: Arc::clone(&self.figures),
        };
        Scope { access: Some(Arc::new(access)), ..Scope::default() }
    }
}

async fn run(
    dispatcher: &Dispatcher,
    (peer, vouching): (PeerKey, Vouching),
    scope: &Scope,
    body: &[u8],
) -> Result<Vec<u8>, Fault> {
    let unreadable = |what: &dyn std::fmt::Display| {
        Fault::new(fault::INVALID_REQUEST, format!("a question handed on: {what}"))
    };
    let question = Question::from_bytes(body).map_err(|error| unreadable(&error))?;
    let params = packed::read(&question.params).map_err(|error| unreadable(&error))?;
    let Value::Struct(params) = params else { return Err(unreadable(&"its parameters are no structure")) };
    let caller = Caller {
        peer: Some(peer),
        account: question.account,
        hops_left: question.hops_left,
        time_left: Duration::from_millis(question.time_left_ms.into()),
        viewer: vouching.viewer(question.viewer),
    };
    let answered = dispatcher.call_within(scope, &caller, &question.method, params, question.form).await?;
    Ok(match (answered, question.form) {
        // Written here, or by whoever was asked from here, whose words are not looked at.
        (Answered::Written(document), _) => bytes_of(&Answer::Written(&document)),
        (Answered::Value(value), Some(form)) => {
            bytes_of(&Answer::Written(written::document(form, &value).as_bytes()))
        }
        (Answered::Value(value), None) => {
            let mut bytes = Vec::new();
            packed::write(&value, &mut bytes);
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
    use crate::serve::elsewhere;
    use overlay::identity::trust::Standing;
    use rpc::limits::Limits;
    use rpc::method::Registry;
    use rpc::value::Name;
    use wire::credential::{Roles, Serial};
    use wire::entering::Visa;
    use wire::time::Time;

    const VISITOR: PeerKey = PeerKey([1; 32]);

    fn visit(classes: &[&str]) -> Visit {
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
            standing: Standing::Member,
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
            visit: None,
        };
        Visit { visa, proxy }
    }

    fn dispatcher() -> Dispatcher {
        let mut registry = Registry::new();
        for declaration in sensor::query::declared::all() {
            registry.add(declaration.handler_now(|_| Ok("answered".into()))).unwrap();
        }
        Dispatcher::new(registry, Limits::default(), Arc::default())
    }

    /// What becomes of a call of a visitor of these classes.
    async fn called(
        classes: &[&str],
        method: &'static str,
        params: &[(&'static str, Value)],
    ) -> Result<(), i32> {
        let scope = Visiting::default().scope(Some(&visit(classes)));
        let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        let question = elsewhere::question(method, params, Duration::from_secs(9), 1);
        let answer = run(&dispatcher(), (VISITOR, Vouching::None), &scope, &question.to_bytes()).await;
        let bytes = answer.map_err(|fault| fault.code)?;
        let Answer::Done(packed) = postcard::from_bytes(&bytes).unwrap() else { panic!("{bytes:?}") };
        assert_eq!(packed::read(packed).unwrap(), "answered".into());
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
        // What visitors ask is one call each.
        let calls = [("calls", Value::array([inner]))];
        assert_eq!(called(logs, "system.multicall", &calls).await, forbidden);
    }

    #[test]
    fn the_sensors_of_the_domain_alone_vouch_for_users() {
        let domain = |name: &str| DomainName::try_from(name).unwrap();
        let visiting = Visiting { domain: Some(domain("UT-ICL")), ..Visiting::default() };
        let member = |role: Role| {
            let visit = visit(&[]);
            Principal { roles: Roles::NONE.with(role), ..visit.proxy }
        };
        let visitor = Principal { visit: Some(Arc::new(visit(&[]))), ..member(Role::Publisher) };
        let check = |principal: &Principal, expected: Viewer| {
            assert_eq!(visiting.vouching(principal).viewer(Viewer::User(1000)), expected, "{principal:?}");
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
        let (dispatcher, scope) = (dispatcher(), Visiting::default().scope(Some(&visit(&["figures"]))));
        let here = vec![(Name::Borrowed("domain"), Value::from("UT-ICL"))];
        let forbidden = elsewhere::question("sensor.events", here, Duration::from_secs(9), 1).to_bytes();
        let mut state = 0x5eed_2026_u64;
        // xorshift64, as it follows from the seed above.
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
            let answered = run(&dispatcher, (VISITOR, Vouching::None), &scope, &body).await;
            assert!(answered.is_err(), "{nth}: {body:?}: {answered:?}");
        }
    }
}
