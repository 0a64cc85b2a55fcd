//! One node by itself: what it refuses, what it claims before its term is on disk, what hostile messages do.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use overlay::dice::Dice;
use overlay::election::{Config, Input, Me, Node, Output, Persisted, Role};
use overlay::membership::Profile;
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Answer, Claim, Heartbeat, Load, Member, Members, Message, TableVersion};
use wire::membership::{Question, Reign, State, Term, View};
use wire::time::Moment;

fn at(millis: u64) -> Moment {
    Moment(Duration::from_secs(100) + Duration::from_millis(millis))
}

fn key(number: u8) -> PeerKey {
    PeerKey([number; 32])
}

fn profile(number: u8, may_represent: bool) -> Profile {
    let host = HostName::try_from(format!("wn{number}").as_str()).unwrap();
    Profile { host, may_represent, priority: 0 }
}

fn node(persisted: Persisted) -> Node {
    let config = Config::new(DomainName::try_from("d").unwrap());
    let me = Me { key: key(1), profile: profile(1, true), addresses: vec!["/dns/wn1/tcp/7946".into()] };
    let mut node = Node::new(config, me, persisted, 7, at(0));
    drain(&mut node);
    node
}

fn drain(node: &mut Node) -> Vec<Output> {
    std::iter::from_fn(|| node.poll_output()).collect()
}

/// Let time pass up to `until`, with every timeout. Returns the outputs; nothing is persisted.
fn pass(node: &mut Node, until: u64) -> Vec<Output> {
    let mut outputs = Vec::new();
    while let Some(due) = node.poll_timeout().filter(|due| *due <= at(until)) {
        node.handle(Input::Timeout, due);
        outputs.extend(drain(node));
    }
    outputs
}

fn beat(sequence: u64, reign: Option<Reign>) -> Heartbeat {
    Heartbeat {
        sequence,
        incarnation: 1,
        echo: 0,
        heard_ms: Some(10),
        stretch: 1,
        may_stand: true,
        wanted: true,
        load: Load::default(),
        view: View::default(),
        reign,
        knows: 1,
        about: None,
    }
}

/// A sensor as it introduces itself.
fn about(number: u8) -> Member {
    Member {
        key: key(number),
        incarnation: 1,
        state: State::Alive,
        host: profile(number, true).host,
        may_represent: true,
        priority: 0,
        addresses: vec![format!("/dns/wn{number}/tcp/7946").into()],
    }
}

fn reign(term: Term) -> Reign {
    Reign { term, standbys: Vec::new(), covered: 3, version: 1, digest: 0 }
}

fn persisted(outputs: &[Output]) -> Option<Persisted> {
    outputs
        .iter()
        .rev()
        .find_map(|output| if let Output::Persist(persisted) = output { Some(*persisted) } else { None })
}

#[test]
fn nothing_is_claimed_before_the_term_is_on_disk() {
    let mut node = node(Persisted { term: Term(5).next_for(9), incarnation: 3 });
    let outputs = pass(&mut node, 10_000);
    let written = persisted(&outputs).expect("it stands");
    assert!(written.term.round() == 2 && written.incarnation == 4, "{written:?}");
    assert_eq!(node.state(at(10_000)).role, Role::Member);
    assert!(!node.may_serve(at(10_000)));
    node.handle(Input::Persisted(written), at(10_010));
    assert_eq!(node.state(at(10_010)).role, Role::Representative);
    assert!(node.may_serve(at(10_010)));
}

#[test]
fn a_representative_that_stood_still_does_not_serve() {
    let mut node = node(Persisted::default());
    let written = persisted(&pass(&mut node, 3000)).unwrap();
    node.handle(Input::Persisted(written), at(3000));
    pass(&mut node, 6000);
    assert!(node.may_serve(at(6400)));
    assert!(!node.may_serve(at(8000)), "nothing was handled for two seconds");
    // It has no peer to ask.
    node.handle(Input::Timeout, at(8000));
    assert!(node.may_serve(at(8000)));
}

/// Two peers lost their representative, and answer so to every question.
#[test]
fn a_representative_says_partial_until_its_members_obey() {
    let mut node = node(Persisted::default());
    let others = [key(2), key(3)];
    let lost = View { lost: true, ..View::default() };
    for (number, peer) in (2..).zip(others) {
        node.handle(Input::Connected(peer, profile(number, true)), at(0));
    }
    let mut now = 0;
    let say = |node: &mut Node, sequence, view, now| {
        for (number, peer) in (2..).zip(others) {
            let about = Some(Box::new(about(number)));
            let beat = Heartbeat { may_stand: false, about, view, ..beat(sequence, None) };
            node.handle(Input::Received(peer, Message::Heartbeat(beat)), at(now));
        }
    };
    while node.state(at(now)).role != Role::Representative {
        now += 100;
        assert!(now < 20_000, "it never stands");
        if now % 400 == 0 {
            say(&mut node, now, lost, now);
        }
        let outputs: Vec<Output> = pass(&mut node, now).into_iter().chain(drain(&mut node)).collect();
        for output in &outputs {
            if let Output::Send(peer, Message::Question(Question { number, .. })) = output {
                let answer = Answer { number: *number, lost: true, view: lost, best: None };
                node.handle(Input::Received(*peer, Message::Answer(answer)), at(now));
            }
        }
        let outputs = outputs.into_iter().chain(drain(&mut node)).collect::<Vec<_>>();
        if let Some(written) = persisted(&outputs) {
            node.handle(Input::Persisted(written), at(now));
        }
    }
    let state = node.state(at(now));
    assert!(state.partial && state.coverage.len() == 1, "{state:?}");
    let obeyed = View { claim: node.accepted(), ..View::default() };
    say(&mut node, now + 1, obeyed, now);
    pass(&mut node, now + 500);
    let state = node.state(at(now + 500));
    assert!(!state.partial && state.coverage.len() == 3, "{state:?}");
}

#[test]
fn a_claim_needs_the_right_to_make_it() {
    let mut node = node(Persisted::default());
    let term = Term(0).next_for(3);
    node.handle(Input::Connected(key(2), profile(2, false)), at(10));
    node.handle(Input::Received(key(2), Message::Heartbeat(beat(1, Some(reign(term))))), at(20));
    assert_eq!(node.accepted(), None);
    assert_eq!(node.figures(at(20)).refused_total, 1);
    node.handle(Input::Connected(key(3), profile(3, true)), at(30));
    node.handle(Input::Received(key(3), Message::Heartbeat(beat(1, Some(reign(term))))), at(40));
    assert_eq!(node.accepted(), Some(Claim { term, holder: key(3) }));
}

#[test]
fn an_older_term_than_the_disk_holds_is_not_obeyed() {
    let mut node = node(Persisted { term: Term(0).next_for(3).next_for(3), incarnation: 1 });
    node.handle(Input::Connected(key(3), profile(3, true)), at(30));
    let old = Term(0).next_for(3);
    node.handle(Input::Received(key(3), Message::Heartbeat(beat(1, Some(reign(old))))), at(40));
    assert_eq!(node.accepted(), None);
}

#[test]
fn a_term_beyond_all_bounds_is_refused_and_not_remembered() {
    let mut node = node(Persisted::default());
    node.handle(Input::Connected(key(3), profile(3, true)), at(30));
    node.handle(Input::Received(key(3), Message::Heartbeat(beat(1, Some(reign(Term(u64::MAX)))))), at(40));
    let view = View { floor: Term(u64::MAX), ..View::default() };
    node.handle(Input::Received(key(3), Message::Heartbeat(Heartbeat { view, ..beat(2, None) })), at(50));
    assert_eq!((node.accepted(), node.figures(at(60)).refused_total), (None, 2));
    node.handle(Input::Disconnected(key(3)), at(60));
    let written = persisted(&pass(&mut node, 20_000)).expect("it stands");
    assert_eq!(written.term.round(), 1);
}

/// It was linked with its representative and never received the table of members.
#[test]
fn a_sensor_without_the_table_knows_the_representative_it_lost() {
    let mut node = node(Persisted::default());
    node.handle(Input::Connected(key(3), profile(3, true)), at(10));
    let said = Heartbeat { about: Some(Box::new(about(3))), ..beat(1, Some(reign(Term(0).next_for(3)))) };
    node.handle(Input::Received(key(3), Message::Heartbeat(said)), at(20));
    assert_eq!((node.table().len(), node.accepted().map(|claim| claim.holder)), (0, Some(key(3))));
    let written = persisted(&pass(&mut node, 20_000)).expect("it stands once it hears nothing");
    node.handle(Input::Persisted(written), at(20_000));
    pass(&mut node, 20_500);
    let state = node.state(at(20_500));
    assert_eq!(
        (state.role, state.partial),
        (Role::Representative, true),
        "it takes itself for the whole domain"
    );
}

/// Linked with the representative, 3, and with 4; without the table of members.
fn linked_with_two(term: Term) -> Node {
    let mut node = node(Persisted::default());
    for (number, reign) in [(3, Some(reign(term))), (4, None)] {
        node.handle(Input::Connected(key(number), profile(number, true)), at(10));
        let said = Heartbeat { about: Some(Box::new(about(number))), ..beat(1, reign) };
        node.handle(Input::Received(key(number), Message::Heartbeat(said)), at(20));
    }
    node
}

/// The representative died before it sent the table of members, and its link closed with it.
#[test]
fn a_representative_that_died_before_it_sent_the_table_is_not_forgotten() {
    let mut node = linked_with_two(Term(0).next_for(3));
    node.handle(Input::Disconnected(key(3)), at(100));
    let written = persisted(&pass(&mut node, 20_000)).expect("it stands");
    node.handle(Input::Persisted(written), at(20_000));
    let state = |node: &Node, number| node.table().get(&key(number)).map(|row| row.member.state);
    assert_eq!((state(&node, 3), state(&node, 4)), (Some(State::Suspect), Some(State::Suspect)));

    // A peer that comes and goes between two rounds of a representative is known too, and whether it left.
    for (number, leave) in [(5, false), (6, true)] {
        node.handle(Input::Connected(key(number), profile(number, true)), at(20_001));
        let said = Heartbeat { about: Some(Box::new(about(number))), ..beat(1, None) };
        node.handle(Input::Received(key(number), Message::Heartbeat(said)), at(20_002));
        if leave {
            node.handle(Input::Received(key(number), Message::Leave { incarnation: 1 }), at(20_003));
        }
        node.handle(Input::Disconnected(key(number)), at(20_004));
    }
    assert_eq!((state(&node, 5), state(&node, 6)), (Some(State::Suspect), Some(State::Left)));
}

/// A member whose link closed, and that the representative reported since, is as reported.
#[test]
fn a_recently_linked_member_that_was_reported_since_is_not_added_again() {
    let term = Term(0).next_for(3);
    let mut node = linked_with_two(term);
    node.handle(Input::Disconnected(key(4)), at(100));
    let reported = |version, members| {
        Message::Members(Members { term, since: None, version, members, silent: Vec::new() })
    };
    node.handle(Input::Received(key(3), reported(1, vec![(1, about(3)), (1, about(4))])), at(110));
    // The representative has dropped it.
    node.handle(Input::Received(key(3), reported(2, vec![(1, about(3))])), at(120));
    node.handle(Input::Disconnected(key(3)), at(200));
    let written = persisted(&pass(&mut node, 20_000)).expect("it stands");
    node.handle(Input::Persisted(written), at(20_000));
    assert!(node.table().get(&key(3)).is_some() && node.table().get(&key(4)).is_none());
}

/// The representative left, and its link was closed before the next one stood.
#[test]
fn the_next_representative_reports_that_the_previous_one_left() {
    let mut node = node(Persisted::default());
    node.handle(Input::Connected(key(3), profile(3, true)), at(10));
    let term = Term(0).next_for(3);
    node.handle(Input::Received(key(3), Message::Heartbeat(beat(1, Some(reign(term))))), at(20));
    let all = vec![(1, about(3)), (1, about(4))];
    let members = Members { term, since: None, version: 1, members: all, silent: Vec::new() };
    node.handle(Input::Received(key(3), Message::Members(members)), at(30));
    let claim = Claim { term, holder: key(3) };
    node.handle(Input::Received(key(3), Message::Resign { claim, to: Some(key(1)) }), at(100));
    node.handle(Input::Received(key(3), Message::Leave { incarnation: 1 }), at(101));
    node.handle(Input::Disconnected(key(3)), at(102));
    let written = persisted(&pass(&mut node, 20_000)).expect("it stands");
    node.handle(Input::Persisted(written), at(20_000));
    let state = |number| node.table().get(&key(number)).map(|row| row.member.state);
    assert_eq!((state(3), state(4)), (Some(State::Left), Some(State::Suspect)));
}

/// Both peers have no representative and confirm; one of them finds another before the term is on disk.
#[test]
fn a_peer_that_has_found_another_is_no_longer_an_expected_ack() {
    let mut node = node(Persisted::default());
    for number in [2, 3] {
        node.handle(Input::Connected(key(number), profile(number, false)), at(10));
    }
    let view = |lost| View { lost, ..View::default() };
    let mut outputs = Vec::new();
    let mut millis = 10;
    let (sequence, written) = loop {
        millis += 100;
        assert!(millis < 20_000, "it never stands");
        for number in [2, 3] {
            let said = Heartbeat { view: view(true), ..beat(millis, None) };
            node.handle(Input::Received(key(number), Message::Heartbeat(said)), at(millis));
        }
        for output in outputs.drain(..) {
            if let Output::Send(peer, Message::Question(Question { number, .. })) = output {
                let answer = Answer { number, lost: true, view: view(true), best: None };
                node.handle(Input::Received(peer, Message::Answer(answer)), at(millis));
            }
        }
        outputs.extend(pass(&mut node, millis));
        if let Some(written) = persisted(&outputs).filter(|written| written.term != Term(0)) {
            break (millis + 1, written);
        }
    };
    // It covers three: as many as this node would if that peer obeyed it.
    let found = View { claim: Some(Claim { term: written.term, holder: key(4) }), covered: 3, ..view(false) };
    let said = Heartbeat { view: found, ..beat(sequence, None) };
    node.handle(Input::Received(key(3), Message::Heartbeat(said)), at(millis));
    node.handle(Input::Persisted(written), at(millis));
    let claimed = drain(&mut node).into_iter().filter_map(|output| {
        let claims = matches!(output, Output::Send(_, Message::Heartbeat(Heartbeat { reign: Some(_), .. })));
        if let (true, Output::Send(peer, _)) = (claims, output) { Some(peer) } else { None }
    });
    assert_eq!(claimed.collect::<Vec<_>>(), [key(2)], "the other follows a larger part of the domain");
}

#[test]
fn a_message_without_a_link_is_refused() {
    let mut node = node(Persisted::default());
    node.handle(
        Input::Received(key(3), Message::Heartbeat(beat(1, Some(reign(Term(0).next_for(3)))))),
        at(40),
    );
    assert_eq!((node.accepted(), node.figures(at(60)).refused_total), (None, 1));
}

fn number(dice: &mut Dice) -> u64 {
    match dice.below(4) {
        0 => dice.below(4),
        1 => u64::MAX - dice.below(3),
        2 => dice.below(1 << 30),
        _ => dice.draw(),
    }
}

fn some_key(dice: &mut Dice) -> PeerKey {
    key(u8::try_from(dice.below(6)).unwrap())
}

fn some_member(dice: &mut Dice) -> Member {
    let state = [State::Alive, State::Suspect, State::Dead, State::Left];
    Member {
        key: some_key(dice),
        incarnation: number(dice),
        state: state[usize::try_from(dice.below(4)).unwrap()],
        host: HostName::try_from("wn").unwrap(),
        may_represent: dice.happens(500),
        priority: u8::try_from(dice.below(256)).unwrap(),
        addresses: vec!["x".repeat(usize::try_from(dice.below(400)).unwrap()).into(); 3],
    }
}

fn some_claim(dice: &mut Dice) -> Claim {
    Claim { term: Term(number(dice)), holder: some_key(dice) }
}

fn some_view(dice: &mut Dice) -> View {
    let claim = dice.happens(500).then(|| some_claim(dice));
    View {
        claim,
        lost: dice.happens(500),
        floor: Term(number(dice)),
        covered: u16::try_from(dice.below(65_536)).unwrap(),
        held: TableVersion { term: Term(number(dice)), version: number(dice) },
    }
}

fn some_message(dice: &mut Dice) -> Message {
    match dice.below(9) {
        0..=2 => {
            let about = dice.happens(500).then(|| Box::new(some_member(dice)));
            let reign = dice.happens(500).then(|| Reign {
                term: Term(number(dice)),
                standbys: (0..dice.below(4)).map(|_| some_key(dice)).collect(),
                covered: 7,
                version: number(dice),
                digest: dice.draw(),
            });
            let heard_ms = dice.happens(500).then_some(u32::MAX);
            let stretch = u8::try_from(dice.below(256)).unwrap();
            let view = some_view(dice);
            let knows = number(dice);
            Message::Heartbeat(Heartbeat {
                heard_ms,
                stretch,
                view,
                knows,
                about,
                ..beat(number(dice), reign)
            })
        }
        3 => Message::Members(Members {
            term: Term(number(dice)),
            since: dice
                .happens(500)
                .then(|| TableVersion { term: Term(number(dice)), version: number(dice) }),
            version: number(dice),
            members: (0..dice.below(5)).map(|_| (number(dice), some_member(dice))).collect(),
            silent: (0..dice.below(5)).map(|_| (some_key(dice), u32::MAX)).collect(),
        }),
        4 => Message::Question(Question { number: number(dice), claim: None }),
        5 => {
            let best = dice.happens(500).then(|| Box::new(some_member(dice)));
            let view = some_view(dice);
            Message::Answer(Answer { number: number(dice), lost: dice.happens(500), view, best })
        }
        6 => Message::Redirect { claim: some_claim(dice), holder: Box::new(some_member(dice)) },
        7 => Message::Resign { claim: some_claim(dice), to: Some(some_key(dice)) },
        _ => {
            let members = (0..dice.below(5)).map(|_| some_member(dice)).collect();
            Message::Yield { claim: some_claim(dice), members }
        }
    }
}

/// Messages of certified but broken peers cause no panic; tables stay bounded and claims only grow.
#[test]
fn hostile_messages_break_nothing() {
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut node = node(Persisted::default());
        let mut accepted = None;
        let mut now = 10;
        for _ in 0..300 {
            now += dice.below(400);
            let peer = key(u8::try_from(2 + dice.below(4)).unwrap());
            match dice.below(12) {
                0 => node.handle(Input::Connected(peer, profile(2, dice.happens(700))), at(now)),
                1 => node.handle(Input::Disconnected(peer), at(now)),
                2 | 3 => node.handle(Input::Timeout, at(now)),
                _ => node.handle(Input::Received(peer, some_message(&mut dice)), at(now)),
            }
            for output in drain(&mut node) {
                if let Output::Persist(persisted) = output
                    && dice.happens(800)
                {
                    node.handle(Input::Persisted(persisted), at(now));
                }
            }
            assert!(node.accepted() >= accepted, "seed {seed}");
            accepted = node.accepted();
            assert!(node.poll_timeout().is_some());
        }
        assert!(node.table().len() <= 6, "seed {seed}");
    }
}
