//! The transition table at the head of `overlay::election`, held against the state machine: every state meets
//! every input. A pair without a row must leave the state unchanged and put out nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use overlay::election::{Config, Input, Me, Node, Output, Persisted, Phase};
use overlay::membership::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Answer, Claim, Heartbeat, Load, Member, Members, Message, TableVersion};
use wire::membership::{Question, Reign, State, Term, View};
use wire::time::Moment;

const TABLE: &str = include_str!("../../src/election/mod.rs");

/// This sensor, the leader, a member, and a sensor that is not connected.
const US: PeerKey = PeerKey([1; 32]);
const LEADER: PeerKey = PeerKey([2; 32]);
const MEMBER: PeerKey = PeerKey([3; 32]);
const STRANGER: PeerKey = PeerKey([4; 32]);

const PHASES: [Phase; 6] =
    [Phase::Following, Phase::Searching, Phase::Promoting, Phase::Serving, Phase::Rechecking, Phase::Stopped];

/// The next state and the kinds of outputs.
type Step = (String, BTreeSet<String>);

/// A node, the time, and the sequence numbers of its peers.
struct Rig {
    node: Node,
    millis: u64,
    sequence: u64,
    question: u64,
    written: Persisted,
}

fn term(rounds: u32) -> Term {
    (0..rounds).fold(Term(0), |term, _| term.next_for(3))
}

fn profile(peer: PeerKey) -> Profile {
    let host = HostName::try_from(format!("wn{}", peer.0[0]).as_str()).unwrap();
    Profile { host, may_represent: true, priority: 0 }
}

fn member(peer: PeerKey) -> Member {
    Member {
        key: peer,
        incarnation: 1,
        state: State::Alive,
        host: profile(peer).host,
        may_represent: true,
        priority: 0,
        addresses: vec![format!("/dns/wn{}/tcp/7946", peer.0[0]).into()],
    }
}

impl Rig {
    fn new() -> Rig {
        let mut config = Config::new(DomainName::try_from("d").unwrap());
        config.has_seeds = true;
        let me = Me { key: US, profile: profile(US), addresses: member(US).addresses };
        let node = Node::new(config, me, Persisted::default(), 7, Moment(Duration::from_secs(100)));
        Rig { node, millis: 0, sequence: 0, question: 0, written: Persisted::default() }
    }

    fn now(&self) -> Moment {
        Moment(Duration::from_secs(100) + Duration::from_millis(self.millis))
    }

    /// When the next timeout is due.
    fn due(&self) -> u64 {
        let due = self.node.poll_timeout().unwrap_or(self.now());
        u64::try_from((due.0 - Duration::from_secs(100)).as_millis()).unwrap()
    }

    fn handle(&mut self, input: Input) -> Vec<Output> {
        let now = self.now();
        self.node.handle(input, now);
        let outputs: Vec<_> = std::iter::from_fn(|| self.node.poll_output()).collect();
        for output in &outputs {
            if let Output::Persist(persisted) = output {
                self.written = *persisted;
            }
            if let Output::Send(_, Message::Question(question)) = output {
                self.question = question.number;
            }
        }
        outputs
    }

    fn receive(&mut self, from: PeerKey, message: Message) -> Vec<Output> {
        self.handle(Input::Received(from, message))
    }

    fn heartbeat(&mut self, from: PeerKey, view: View, reign: Option<Reign>) -> Vec<Output> {
        self.sequence += 1;
        let heartbeat = Heartbeat {
            sequence: self.sequence,
            incarnation: 1,
            echo: 0,
            heard_ms: Some(10),
            stretch: 1,
            may_stand: false,
            wanted: true,
            load: Load::default(),
            view,
            reign,
            knows: 1,
            about: Some(Box::new(member(from))),
        };
        self.receive(from, Message::Heartbeat(heartbeat))
    }

    fn claim(&mut self, from: PeerKey, term: Term, covered: u16) -> Vec<Output> {
        let view = View { claim: Some(Claim { term, holder: from }), covered, ..View::default() };
        let reign = Reign { term, standbys: vec![US], covered, version: 1, digest: 0 };
        self.heartbeat(from, View { floor: term, ..view }, Some(reign))
    }

    fn answer(&mut self, from: PeerKey, lost: bool, view: View) -> Vec<Output> {
        let number = self.question;
        self.receive(from, Message::Answer(Answer { number, lost, view, best: None }))
    }

    /// How a member sees the domain that obeys what this sensor accepted.
    fn view(&self, lost: bool) -> View {
        let held = self.node.table().held();
        View { claim: self.node.accepted(), lost, held, ..View::default() }
    }

    /// Take the timeouts of `millis`, while the member goes on to send heartbeats.
    fn run(&mut self, millis: u64) -> Vec<Output> {
        let (end, mut outputs) = (self.millis + millis, Vec::new());
        while self.millis < end {
            self.millis += 50;
            if self.node.poll_timeout().is_some_and(|due| due <= self.now()) {
                outputs.extend(self.handle(Input::Timeout));
            }
            if self.millis.is_multiple_of(400) {
                let lost = self.node.phase(self.now()) == Phase::Searching;
                let view = self.view(lost);
                outputs.extend(self.heartbeat(MEMBER, view, None));
            }
        }
        outputs
    }

    /// A node in `phase`, by the usual route.
    fn in_phase(phase: Phase) -> Rig {
        let mut rig = Rig::new();
        for peer in [LEADER, MEMBER] {
            rig.handle(Input::Connected(peer, profile(peer)));
        }
        rig.claim(LEADER, term(2), 3);
        let rows = [US, LEADER, MEMBER].map(|peer| (1, member(peer)));
        let members =
            Members { term: term(2), since: None, version: 1, members: rows.to_vec(), silent: Vec::new() };
        rig.receive(LEADER, Message::Members(members));
        let view = rig.view(false);
        rig.heartbeat(MEMBER, view, None);
        match phase {
            Phase::Following => {}
            Phase::Stopped => drop(rig.handle(Input::Stop)),
            Phase::Searching | Phase::Promoting | Phase::Serving | Phase::Rechecking => {
                rig.run(1_300);
            }
        }
        if matches!(phase, Phase::Promoting | Phase::Serving | Phase::Rechecking) {
            let view = rig.view(true);
            rig.answer(MEMBER, true, view);
        }
        if matches!(phase, Phase::Serving | Phase::Rechecking) {
            let written = rig.written;
            rig.handle(Input::Persisted(written));
            let view = rig.view(false);
            rig.heartbeat(MEMBER, view, None);
            rig.run(450);
        }
        if phase == Phase::Rechecking {
            rig.millis += 1_100;
            rig.handle(Input::Timeout);
        }
        assert_eq!(rig.node.phase(rig.now()), phase);
        rig
    }

    /// Apply the input with this name in the table. Returns the outputs.
    fn apply(&mut self, input: &str) -> Vec<Output> {
        self.millis += 10;
        match input {
            "Connected" => self.handle(Input::Connected(STRANGER, profile(STRANGER))),
            "Disconnected: leader" => self.handle(Input::Disconnected(LEADER)),
            "Disconnected: member" => self.handle(Input::Disconnected(MEMBER)),
            "Timeout" => {
                self.millis = self.due() + 1;
                self.handle(Input::Timeout)
            }
            "Timeout: 1.3 s late" => {
                self.millis = self.due() + 1_300;
                self.handle(Input::Timeout)
            }
            "Timeouts for 1.3 s" => self.run(1_300),
            "Persisted" => {
                let written = self.written;
                self.handle(Input::Persisted(written))
            }
            "LoadMeasured" => self.handle(Input::LoadMeasured(Load::default())),
            "Stop" => self.handle(Input::Stop),
            _ => self.apply_message(input),
        }
    }

    /// Receive the message with this name in the table. Returns the outputs.
    fn apply_message(&mut self, input: &str) -> Vec<Output> {
        let old = Claim { term: term(2), holder: LEADER };
        match input {
            "Heartbeat" => {
                let view = self.view(false);
                self.heartbeat(MEMBER, view, None)
            }
            "Heartbeat: no leader" => {
                let lost = View { lost: true, ..View::default() };
                self.heartbeat(MEMBER, lost, None)
            }
            "Heartbeat: claim of the leader" => self.claim(LEADER, term(2), 2),
            "Heartbeat: higher claim" => self.claim(MEMBER, term(9), 2),
            "Heartbeat: larger coverage" => self.claim(MEMBER, term(1), 7),
            "Heartbeat: leader without claim" => self.heartbeat(LEADER, View::default(), None),
            "Members" => {
                let version = self.node.table().held().version;
                let since = Some(TableVersion { term: term(2), version });
                let (members, silent) = (Vec::new(), Vec::new());
                let members = Members { term: term(2), since, version: version + 1, members, silent };
                self.receive(LEADER, Message::Members(members))
            }
            "Question" => {
                self.receive(MEMBER, Message::Question(Question { number: 1, claim: self.node.accepted() }))
            }
            "Answer: lost too" => {
                let view = self.view(true);
                self.answer(MEMBER, true, view)
            }
            "Answer: obeys" => {
                let view = self.view(false);
                let outputs = self.answer(LEADER, false, view);
                outputs.into_iter().chain(self.answer(MEMBER, false, view)).collect()
            }
            "Answer: higher claim" => {
                let claim = Some(Claim { term: term(9), holder: STRANGER });
                self.answer(MEMBER, false, View { claim, ..View::default() })
            }
            "Redirect" => {
                let (claim, holder) = (Claim { term: term(1), holder: STRANGER }, Box::new(member(STRANGER)));
                self.receive(MEMBER, Message::Redirect { claim, holder })
            }
            "Resign: to this sensor" => self.receive(LEADER, Message::Resign { claim: old, to: Some(US) }),
            "Resign: to another" => self.receive(LEADER, Message::Resign { claim: old, to: Some(MEMBER) }),
            "Leave: leader" => self.receive(LEADER, Message::Leave { incarnation: 1 }),
            "Leave: member" => self.receive(MEMBER, Message::Leave { incarnation: 1 }),
            "Yield" => {
                let members = vec![member(STRANGER)];
                self.receive(LEADER, Message::Yield { claim: old, members })
            }
            _ => panic!("no input of this name: {input}"),
        }
    }
}

/// Every input that the table may name.
const INPUTS: [&str; 26] = [
    "Connected",
    "Disconnected: leader",
    "Disconnected: member",
    "Heartbeat",
    "Heartbeat: no leader",
    "Heartbeat: claim of the leader",
    "Heartbeat: higher claim",
    "Heartbeat: larger coverage",
    "Heartbeat: leader without claim",
    "Members",
    "Question",
    "Answer: lost too",
    "Answer: obeys",
    "Answer: higher claim",
    "Redirect",
    "Resign: to this sensor",
    "Resign: to another",
    "Leave: leader",
    "Leave: member",
    "Yield",
    "Timeout",
    "Timeout: 1.3 s late",
    "Timeouts for 1.3 s",
    "Persisted",
    "LoadMeasured",
    "Stop",
];

fn kind(output: &Output) -> &'static str {
    match output {
        Output::Send(_, Message::Heartbeat(Heartbeat { reign: Some(_), .. })) => "Claim",
        Output::Send(_, Message::Heartbeat(_)) => "Heartbeat",
        Output::Send(_, Message::Members(_)) => "Members",
        Output::Send(_, Message::Question(_)) => "Question",
        Output::Send(_, Message::Answer(_)) => "Answer",
        Output::Send(_, Message::Redirect { .. }) => "Redirect",
        Output::Send(_, Message::Resign { .. }) => "Resign",
        Output::Send(_, Message::Leave { .. }) => "Leave",
        Output::Send(_, Message::Yield { .. }) => "Yield",
        Output::Connect(..) => "Connect",
        Output::Disconnect(_) => "Disconnect",
        Output::DialSeeds => "DialSeeds",
        Output::Persist(_) => "Persist",
        Output::State(_) => "State",
        Output::HandOver(_) => "HandOver",
    }
}

/// The rows of the table by state and input; a row may name several states, and "same" as the next one.
fn rows() -> BTreeMap<(String, String), Step> {
    let mut rows = BTreeMap::new();
    for line in TABLE.lines().filter_map(|line| line.strip_prefix("//! | ")).skip(1) {
        let cells: Vec<_> = line.trim_end_matches('|').split('|').map(str::trim).collect();
        let [states, input, next, outputs] = cells[..] else { panic!("expected four cells: {line}") };
        let outputs = outputs.split(", ").filter(|output| *output != "-").map(str::to_owned);
        let outputs: BTreeSet<_> = outputs.collect();
        let all = "Following, Searching, Promoting, Serving, Rechecking";
        for state in states.replace("all but Stopped", all).split(", ") {
            let next = if next == "same" { state } else { next };
            let step = (next.to_owned(), outputs.clone());
            let before = rows.insert((state.to_owned(), input.to_owned()), step);
            assert_eq!(before, None, "two rows for {state} and {input}");
        }
    }
    assert!(rows.len() > 50, "found {} pairs in the table", rows.len());
    rows
}

#[test]
fn every_state_meets_every_input_as_the_table_says() {
    let mut rows = rows();
    let mut wrong = Vec::new();
    for phase in PHASES {
        for input in INPUTS {
            let mut rig = Rig::in_phase(phase);
            let outputs = rig.apply(input);
            let next = format!("{:?}", rig.node.phase(rig.now()));
            let found: Step = (next, outputs.iter().map(|output| kind(output).to_owned()).collect());
            let state = format!("{phase:?}");
            let unchanged = (state.clone(), BTreeSet::new());
            let expected = rows.remove(&(state.clone(), input.to_owned())).unwrap_or(unchanged);
            if found != expected {
                wrong.push(format!("| {state} | {input} | found {found:?}, the table has {expected:?}"));
            }
        }
    }
    wrong.extend(rows.keys().map(|(state, input)| format!("| {state} | {input} | is no pair of this test")));
    assert!(wrong.is_empty(), "{} pairs differ:\n{}", wrong.len(), wrong.join("\n"));
}
