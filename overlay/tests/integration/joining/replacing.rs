//! Joining in place of a lost key, over real connections on loopback, with real files.

use crate::joining::rig::{DAY, Daemon, Head, Newcomer, host, now, until};
use overlay::identity::replace_token::ReplaceSpec;
use overlay::identity::token::{self, Spec};
use overlay::joining::Error;
use wire::credential::{Role, Roles};
use wire::join::Token;

fn spec(hosts: &[&str], uses: Option<u32>) -> ReplaceSpec {
    let hosts = hosts.iter().map(|pattern| (*pattern).to_owned()).collect();
    ReplaceSpec { hosts, roles: Roles::SENSOR, priority: 0, uses, life: DAY * 90 }
}

fn token(head: &Head, spec: ReplaceSpec) -> Token {
    let made = head.files().create_replace_token(spec, vec![head.address.into()], vec![], now());
    // As a user copies it.
    token::parse(&token::text(&made.expect("made"))).expect("a line")
}

async fn refused(newcomer: &Newcomer, name: &str, token: &Token) -> String {
    match newcomer.join(name, token).await {
        Err(Error::NotAdmitted { reason, .. }) => reason,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[tokio::test]
async fn a_host_that_lost_its_key_takes_its_name_over_and_the_old_key_is_out() {
    let head = Head::new("UT-ICL");
    let running = head.start().await;
    let (token, plain) = (token(&head, spec(&["wn[0-9]*"], None)), head.token(Spec::default()));
    let (old, new, third) = (Newcomer::new(), Newcomer::new(), Newcomer::new());
    old.join("wn01", &token).await.expect("the name is free");
    let member = Daemon::start(old.state.path()).await;
    member.dial(&head).await;
    until("a welcome", || running.net.is_ready(old.key())).await;
    assert!(refused(&new, "wn01", &plain).await.contains("host wn01 belongs to"), "an ordinary one");
    let joined = new.join("WN01.", &token).await.expect("the same host");
    assert_eq!(joined.certificate.roles, Roles::SENSOR);
    until("the end of the old key", || !running.net.is_ready(old.key())).await;
    until("a refusal", || running.net.figures().hellos_refused_total.get() > 0).await;
    let again = new.join("wn01", &token).await.expect("the answer was lost");
    assert!(again.is_known);
    let renewed = Daemon::start(new.state.path()).await;
    renewed.dial(&head).await;
    until("a welcome", || renewed.net.is_ready(head.key.peer())).await;
    let members = head.files().members(now()).expect("readable");
    let of_host: Vec<_> = members.iter().filter(|member| member.certificate.host == host("wn01")).collect();
    assert_eq!(of_host.len(), 1, "{of_host:?}");
    assert_eq!(of_host[0].certificate.peer, new.key());
    third.join("wn02", &token).await.expect("usable many times");
    let listed = head.files().tokens(now()).expect("readable");
    let listed = listed.iter().find(|listed| listed.hosts.is_some()).expect("listed");
    assert_eq!((listed.uses, listed.uses_max), (3, None), "what was given again is not counted");
}

#[tokio::test]
async fn two_machines_of_one_name_do_not_take_it_from_each_other_for_ever() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let token = token(&head, spec(&["wn01"], None));
    let (one, other) = (Newcomer::new(), Newcomer::new());
    for newcomer in [&one, &other, &one, &other] {
        newcomer.join("wn01", &token).await.expect("allowed a few times");
    }
    let reason = refused(&one, "wn01", &token).await;
    let expected =
        format!("to {}, which is not the {} that asks now; if two machines", other.key(), one.key());
    assert!(reason.contains(&expected) && reason.contains("try again in 20 min"), "{reason}");
    other.join("wn01", &token).await.expect("which has it");
}

#[tokio::test]
async fn no_token_gives_the_names_of_the_issuer_and_of_operators_away() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let token = token(&head, spec(&["*"], None));
    let newcomer = Newcomer::new();
    let reason = refused(&newcomer, "HEAD", &token).await;
    assert!(reason.contains("is the issuer's own"), "{reason}");
    let roles = Roles::NONE.with(Role::Operator);
    let operator = Newcomer::new().key();
    head.files().certify(operator, host("ws1"), roles, DAY, now()).expect("the root is here");
    let reason = refused(&newcomer, "ws1", &token).await;
    assert!(
        reason.contains("one that the root certified") && reason.contains(&operator.to_string()),
        "{reason}"
    );
    assert_eq!(head.files().denials(now()).expect("readable"), [], "nothing was revoked");
}

#[tokio::test]
async fn a_token_is_good_for_its_hosts_and_uses_until_it_is_revoked() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let token = token(&head, spec(&["wn0?", "wn1[0-5]"], Some(2)));
    let newcomer = Newcomer::new();
    let reason = refused(&newcomer, "wn16", &token).await;
    assert!(reason.contains("not for host wn16, but for wn0?, wn1[0-5]"), "{reason}");
    Newcomer::new().join("wn15", &token).await.expect("one of them");
    let files = head.files();
    let id = token::id_of(token.secret);
    assert!(
        files.revoke_token(&id, now()).expect("stored") && !files.revoke_token("0", now()).expect("stored")
    );
    let reason = refused(&newcomer, "wn01", &token).await;
    assert!(reason.contains("token was revoked"), "{reason}");
    let twice = self::token(&head, spec(&["wn*"], Some(1)));
    Newcomer::new().join("wn21", &twice).await.expect("once");
    let reason = refused(&newcomer, "wn22", &twice).await;
    assert!(reason.contains("token was used 1 times"), "{reason}");
}

#[tokio::test]
async fn what_is_revoked_for_new_keys_is_forgotten_when_the_old_certificates_are_over() {
    let head = Head::created("UT-ICL", now());
    let files = head.files();
    let token = token(&head, spec(&["wn*"], None));
    for round in 0..8 {
        let at = now().plus(DAY * 10 * round);
        let question =
            overlay::identity::join::question(&token, host("wn01"), Roles::NONE, at).expect("fresh");
        files.replace(&question, Newcomer::new().key(), at, &mut |_| Ok(())).expect("replaced");
    }
    let lists = files.denials(now().plus(DAY * 70)).expect("readable");
    let denied = lists[0].list.unverified().expect("whole").denied.len();
    assert!((3..=4).contains(&denied), "certificates hold 30 days, one came each ten: {denied}");
}
