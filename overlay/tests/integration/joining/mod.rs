//! Joining, renewing and being revoked over real connections on loopback, with real files.

mod flood;
mod replacing;
mod rig;

use overlay::identity::certificate::LIFE;
use overlay::identity::issuer_store::RevocationTarget;
use overlay::identity::join as by_hand;
use overlay::identity::member_files;
use overlay::identity::refused::Refused;
use overlay::identity::token::Spec;
use overlay::joining::{self, Error};
use rig::{DAY, Daemon, Head, Newcomer, SOON, domain, free_port, host, now, until};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use wire::credential::{Role, Roles};
use wire::join::Admitted;

#[tokio::test]
async fn a_host_joins_by_a_token_and_is_welcome_from_then_on() {
    let head = Head::new("UT-ICL");
    let running = head.start().await;
    let newcomer = Newcomer::new();
    let joined = newcomer.join("wn01", &head.token(Spec::default())).await.expect("admitted");
    let (certificate, membership) = (&joined.certificate, &joined.membership);
    assert_eq!((certificate.domain.as_str(), certificate.host.as_str()), ("UT-ICL", "wn01"));
    assert_eq!((certificate.roles, joined.is_known), (Roles::SENSOR, false));
    assert_eq!(membership.issuer, [head.address.into()]);
    assert_eq!(membership.seeds, [head.address.into()], "where to look for the others first");
    assert_eq!(newcomer.membership().as_ref(), Some(membership));
    for name in ["key", "membership", "denials"] {
        let mode = std::fs::metadata(newcomer.state.path().join(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let member = Daemon::start(newcomer.state.path()).await;
    member.dial(&head).await;
    until("a welcome", || member.net.is_ready(head.key.peer()) && running.net.is_ready(newcomer.key())).await;
}

#[tokio::test]
async fn who_asks_again_gets_the_same_certificate_and_a_thief_none() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let token = head.token(Spec::default());
    let newcomer = Newcomer::new();
    let first = newcomer.join("wn01", &token).await.expect("admitted");
    let again = newcomer.join("wn01", &token).await.expect("the same");
    assert!(again.is_known && again.membership.chain == first.membership.chain);
    let thief = Newcomer::new();
    let error = thief.join("wn02", &token).await.expect_err("used").to_string();
    assert!(error.contains("UT-ICL refused: token was used by another daemon"), "{error}");
    assert!(thief.membership().is_none(), "nothing was kept");
    assert_eq!(head.files().members(now()).expect("readable").len(), 2);
}

#[tokio::test]
async fn a_stale_token_is_refused_at_home_and_by_the_issuer() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let spec = Spec { life: Duration::from_secs(60), ..Spec::default() };
    let made = now().minus(Duration::from_secs(3600));
    let stale = head.files().create_token(spec, vec![head.address.into()], vec![], made).expect("made");
    let newcomer = Newcomer::new();
    let error = newcomer.join("wn01", &stale).await.expect_err("stale");
    assert!(matches!(error, Error::Refused(Refused::TokenStale { .. })), "{error}");
    // The joiner's clock is slow, or it lies.
    let claimed = wire::join::Token { expires: now().plus(DAY), ..stale };
    let error = newcomer.join("wn01", &claimed).await.expect_err("stale");
    assert!(
        matches!(&error, Error::NotAdmitted { reason, .. } if reason.contains("token expired at")),
        "{error}"
    );
}

#[tokio::test]
async fn the_secret_is_sent_only_to_the_issuer_of_the_token() {
    let (head, other) = (Head::new("UT-ICL"), Head::new("OTHER"));
    let (_running, mut asked) = other.start_unserved().await;
    let token = wire::join::Token { addresses: vec![other.address.into()], ..head.token(Spec::default()) };
    let newcomer = Newcomer::new();
    let joiner = newcomer.joiner("wn01", Duration::from_secs(8));
    let error = joining::join(&token, &joiner, &mut |_| ()).await.expect_err("not the issuer").to_string();
    let expected = format!("{} answers there, not the issuer {}", other.key.peer(), head.key.peer());
    assert!(error.contains(&expected) && error.contains(&other.address.to_string()), "{error}");
    assert!(asked.try_recv().is_err(), "nothing was asked of it");
    assert!(newcomer.membership().is_none());
}

#[tokio::test]
async fn an_issuer_of_another_domain_says_so() {
    let (head, other) = (Head::new("UT-ICL"), Head::new("OTHER"));
    let _running = other.start().await;
    let (issuer, addresses) = (other.key.peer(), vec![other.address.into()]);
    let token = wire::join::Token { issuer, addresses, ..head.token(Spec::default()) };
    let error = Newcomer::new().join("wn01", &token).await.expect_err("another domain").to_string();
    assert!(error.contains("token is of a domain with root"), "{error}");
}

#[tokio::test]
async fn where_no_peer_answers_every_address_is_reported_with_what_happened() {
    let head = Head::new("UT-ICL");
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed_port = free_port();
    let deaf_at = deaf.local_addr().expect("bound");
    let named = wire::address::Address::try_from("no-such-host.invalid:7318").expect("an address");
    let addresses = vec![closed_port.into(), named.clone(), deaf_at.into()];
    let token = wire::join::Token { addresses, ..head.token(Spec::default()) };
    let newcomer = Newcomer::new();
    let mut seen = Vec::new();
    let joiner = newcomer.joiner("wn01", Duration::from_secs(30));
    let error =
        joining::join(&token, &joiner, &mut |tried| seen.push(tried.clone())).await.expect_err("no proxy");
    let text = error.to_string();
    for part in [
        "issuer of domain UT-ICL was not reached within 30 s".to_owned(),
        format!("\n  {closed_port}: nothing listens there (connection refused)"),
        format!("\n  {named}: the name"),
        format!("\n  {deaf_at}: the handshake was not done within 5 s"),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert_eq!(seen.len(), 3, "each is reported once: {seen:?}");
    assert!(newcomer.membership().is_none());
    // Nothing was used up.
    let token = wire::join::Token { addresses: vec![head.address.into()], ..token };
    let _running = head.start().await;
    newcomer.join("wn01", &token).await.expect("admitted");
}

#[tokio::test]
async fn an_issuer_that_starts_late_is_waited_for() {
    let head = Head::new("UT-ICL");
    let token = head.token(Spec::default());
    let newcomer = Newcomer::new();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
    let joiner = newcomer.joiner("wn01", SOON);
    let mut progress = |tried: &joining::Tried| sender.try_send(tried.clone()).expect("room");
    let joining = joining::join(&token, &joiner, &mut progress);
    let starting = async {
        let tried = receiver.recv().await.expect("a first attempt");
        assert!(tried.said.contains("connection refused"), "{tried:?}");
        head.start().await
    };
    let (joined, _running) = tokio::join!(joining, starting);
    joined.expect("admitted");
}

#[tokio::test]
async fn a_crash_between_using_the_token_up_and_answering_does_not_cost_the_token() {
    let head = Head::new("UT-ICL");
    let (running, mut asked) = head.start_unserved().await;
    let token = head.token(Spec::default());
    let newcomer = Newcomer::new();
    let crash = async {
        let question = asked.recv().await.expect("asked");
        let wire::join::Question::Join(join) = postcard::from_bytes(&question.body).expect("a question")
        else {
            panic!("expected a join");
        };
        let given = head.files().redeem(&join, question.peer, now()).expect("on disk");
        drop((running, asked, question));
        (given, head.start().await)
    };
    let (joined, (given, _running)) = tokio::join!(newcomer.join("wn01", &token), crash);
    assert_eq!(joined.expect("admitted").membership.chain, given);
    assert_eq!(head.files().members(now()).expect("readable").len(), 2);
}

#[tokio::test]
async fn a_member_of_another_domain_does_not_join_and_the_issuer_not_itself() {
    let (head, other) = (Head::new("UT-ICL"), Head::new("OTHER"));
    let _running = (head.start().await, other.start().await);
    let newcomer = Newcomer::new();
    newcomer.join("wn01", &head.token(Spec::default())).await.expect("admitted");
    let before = newcomer.membership();
    let error =
        newcomer.join("wn01", &other.token(Spec::default())).await.expect_err("elsewhere").to_string();
    assert!(
        error.contains("a member of domain UT-ICL, not of OTHER") && error.contains("membership away"),
        "{error}"
    );
    assert_eq!(newcomer.membership(), before);
    let token = head.token(Spec::default());
    let joiner = joining::Joiner { state: head.state.path().to_owned(), ..newcomer.joiner("head", SOON) };
    let error = joining::join(&token, &joiner, &mut |_| ()).await.expect_err("its own");
    assert!(matches!(error, Error::Own { .. }), "{error}");
}

/// A member whose certificate has less than half of its life left.
fn old_member(head: &Head, name: &str) -> Newcomer {
    let newcomer = Newcomer::new();
    let made = now().minus(LIFE / 3 * 2);
    let token = head.files().create_token(Spec::default(), vec![head.address.into()], vec![], made);
    let token = token.expect("made");
    let question = by_hand::question(&token, host(name), Roles::NONE, made).expect("fresh then");
    let chain = head.files().redeem(&question, newcomer.key(), made).expect("good then");
    let answer = Admitted { chain, directories: vec![], seeds: vec![], denials: vec![] };
    let (membership, _) = by_hand::accept(&token, answer, newcomer.key(), now()).expect("good");
    member_files::save_membership(newcomer.state.path(), &membership).expect("kept");
    newcomer
}

#[tokio::test]
async fn a_certificate_is_renewed_whether_the_issuer_is_connected_or_not() {
    let head = Head::created("UT-ICL", now().minus(LIFE / 3 * 2));
    let members = [old_member(&head, "wn01"), old_member(&head, "wn02")];
    let mut connected = Daemon::start(members[0].state.path()).await;
    let mut lonely = Daemon::start(members[1].state.path()).await;
    // It asks before any issuer answers, and again.
    lonely.renew();
    let running = head.start().await;
    connected.dial(&head).await;
    until("a welcome", || connected.net.is_ready(head.key.peer())).await;
    connected.renew();
    for (member, daemon) in members.iter().zip([&connected, &lonely]) {
        until("a new certificate", || daemon.serial() > 3).await;
        let kept = member.membership().expect("joined");
        assert_eq!(Some(kept.chain.clone()), daemon.gate.chain(), "shown is what is kept");
        let certificate = kept.certificate().expect("good");
        assert!(certificate.expires > now().plus(LIFE - DAY), "a whole life again");
        assert_eq!(kept.issuer, [head.address.into()], "still known");
    }
    assert_eq!(running.serial(), 1, "the issuer's own is left to its own task");
}

#[tokio::test]
async fn the_revocation_lists_of_a_renewal_are_stored_before_its_certificate() {
    let head = Head::created("UT-ICL", now().minus(LIFE / 3 * 2));
    let [member, revoked] = ["wn01", "wn02"].map(|name| old_member(&head, name));
    head.revoke(revoked.key());
    // As if the daemon ended before the certificate is stored: storing it fails.
    std::fs::create_dir(member.state.path().join(member_files::PREVIOUS)).expect("created");
    let before = member.membership();
    let _running = head.start().await;
    let mut daemon = Daemon::start(member.state.path()).await;
    daemon.renew();
    until("a stored list", || member.state.path().join(member_files::DENIALS).exists()).await;
    assert_eq!(member.membership(), before);
}

#[tokio::test]
async fn an_issuer_renews_itself_from_its_own_files() {
    let head = Head::created("UT-ICL", now().minus(LIFE / 3 * 2));
    let mut running = head.start().await;
    assert_eq!(running.serial(), 1);
    running.renew();
    until("a new certificate", || running.serial() == 2).await;
}

#[tokio::test]
async fn a_revoked_member_is_out_at_once_and_stays_out() {
    let head = Head::new("UT-ICL");
    let running = head.start().await;
    let token = head.token(Spec { uses: 2, ..Spec::default() });
    let newcomer = Newcomer::new();
    newcomer.join("wn01", &token).await.expect("admitted");
    let member = Daemon::start(newcomer.state.path()).await;
    member.dial(&head).await;
    until("a welcome", || running.net.is_ready(newcomer.key())).await;
    // As the command does it, while the daemon runs.
    head.revoke(newcomer.key());
    until("the end of its connection", || !running.net.is_ready(newcomer.key())).await;
    until("another refusal", || running.net.figures().hellos_refused_total.get() > 0).await;
    let denied = running.gate.decide(|gate| gate.denials().all().count());
    assert_eq!(denied, 1, "for directories and members");
    let again = newcomer.join("wn01", &token).await.expect_err("revoked").to_string();
    assert!(again.contains("is denied by its domain"), "{again}");
    // The revocation is known after a restart, too.
    drop(running);
    std::fs::remove_file(head.state.path().join("domain/deny-list")).expect("there");
    let running = Daemon::start(head.state.path()).await;
    assert_eq!(running.gate.decide(|gate| gate.denials().all().count()), 1);
}

#[tokio::test]
async fn what_the_root_signed_is_taken_by_hand_and_shown_by_a_running_daemon() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    let newcomer = Newcomer::new();
    newcomer.join("wn01", &head.token(Spec::default())).await.expect("admitted");
    let mut member = Daemon::start(newcomer.state.path()).await;
    member.renew();
    let roles = Roles::SENSOR.with(Role::Operator);
    let files = head.files();
    let chain = files.certify(newcomer.key(), host("wn01"), roles, DAY, now()).expect("the root is here");
    let given = Admitted { chain, directories: vec![], seeds: vec![], denials: vec![] };
    let foreign = Newcomer::new();
    assert!(joining::install(foreign.state.path(), given.clone()).await.is_err(), "not its key");
    let joined = joining::install(newcomer.state.path(), given).await.expect("its key");
    assert_eq!(joined.certificate.roles, roles);
    assert_eq!(joined.membership.issuer, [head.address.into()], "what it knew it still knows");
    until("the new one", || member.serial() == joined.certificate.serial.0).await;
    let revoked = files.revoke(&RevocationTarget::Host(host("wn01")), now()).expect("there");
    assert_eq!((revoked, domain("UT-ICL")), (vec![newcomer.key()], joined.certificate.domain));
}
