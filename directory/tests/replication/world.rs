//! A grid of directories and representatives on a virtual clock: messages are delayed, lost and cut off,
//! directories pause, crash and come back from an older snapshot, domains split, fail over and leave.
//!
//! Everything follows from the seed. What is checked is in `laws`.

use crate::laws::Laws;
use crate::statements::{ROOT, domain, host, leave, representative, statement};
use directory::admission::{Admission, List};
use directory::kept::Kept;
use directory::opened::{Opened, OpenedItem, OpenedLeave};
use directory::registry::{LEASE, Registry};
use directory::replicate::{Output, Replicas};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use wire::id::PeerKey;
use wire::registration::Coverage;
use wire::replication::{Number, ReplicaAnswer, ReplicaQuestion};
use wire::time::Moment;

/// What is switched off to see the laws fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    Nothing,
    /// Directories hand on a whole lease instead of what is left.
    Remaining,
    /// Nobody hands on leaves.
    Leaves,
    /// No digests: only hints.
    Digests,
    /// A directory does not take over higher terms from others.
    HigherTerms,
    /// What a snapshot held is live again.
    LastSeen,
}

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    pub(crate) fn one_in(&mut self, most: u64) -> bool {
        self.below(most) == 0
    }

    fn index(&mut self, most: usize) -> usize {
        usize::try_from(self.below(most as u64)).expect("small")
    }
}

#[derive(Debug)]
enum Event {
    Question {
        from: usize,
        to: usize,
        id: u64,
        life: u32,
        question: ReplicaQuestion,
    },
    Answer {
        from: usize,
        to: usize,
        id: u64,
        life: u32,
        answer: ReplicaAnswer<OpenedItem>,
    },
    Said {
        to: usize,
        said: Said,
    },
    /// A representative's renewal.
    Renew {
        of: usize,
        life: u32,
    },
    Fault,
    Snapshot {
        at: usize,
    },
    Resume {
        at: usize,
    },
    Restart {
        at: usize,
    },
}

#[derive(Clone, Debug)]
enum Said {
    Record(Box<Opened>),
    Leave(OpenedLeave),
}

/// One representative of a domain; after a split there are several.
struct Speaker {
    domain: usize,
    number: Number,
    hosts: Vec<usize>,
    /// Which directories it reaches, of all.
    side: Option<bool>,
    life: u32,
    silent: bool,
}

pub(crate) struct Machine {
    pub(crate) replicas: Replicas,
    /// Its clock is so far ahead of the true one.
    ahead: Duration,
    pub(crate) up: bool,
    paused: bool,
    waiting: Vec<Event>,
    life: u32,
    disk: Vec<Kept>,
    disk_at: Duration,
    /// Which side of a cut it is on.
    side: bool,
}

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) dice: Dice,
    off: Off,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    scheduled: u64,
    pub(crate) machines: Vec<Machine>,
    speakers: Vec<Speaker>,
    terms: Vec<u64>,
    represented: Vec<usize>,
    cut: bool,
    calm: bool,
    pub(crate) laws: Laws,
}

pub(crate) const DOMAINS: usize = 6;

pub(crate) fn key(at: usize) -> PeerKey {
    PeerKey([u8::try_from(100 + at).expect("few"); 32])
}

impl World {
    pub(crate) fn new(seed: u64, off: Off) -> World {
        let mut dice = Dice::new(seed);
        let count = 2 + dice.index(6);
        let mut world = World {
            now: Duration::ZERO,
            dice,
            off,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            scheduled: 0,
            machines: Vec::new(),
            speakers: Vec::new(),
            terms: vec![0; DOMAINS],
            represented: vec![0; DOMAINS],
            cut: false,
            calm: false,
            laws: Laws::new(count),
        };
        for at in 0..count {
            let ahead = Duration::from_millis(world.dice.below(1_000_000));
            let replicas = fresh(at, count, seed, Registry::new(100), Moment(ahead));
            let side = world.dice.one_in(2);
            let disk = Vec::new();
            let machine = Machine {
                replicas,
                ahead,
                up: true,
                paused: false,
                waiting: Vec::new(),
                life: 0,
                disk,
                disk_at: Duration::ZERO,
                side,
            };
            world.machines.push(machine);
            world.after(3000, Event::Snapshot { at });
        }
        for domain in 0..DOMAINS {
            world.new_speaker(domain, (0..4).collect(), None);
        }
        world.after(2000, Event::Fault);
        world
    }

    /// Let events happen until `until`; the laws are looked at after each.
    pub(crate) fn run(&mut self, until: Duration) {
        loop {
            let queued = self.queue.peek().map(|Reverse((at, _))| *at);
            let timers = self.machines.iter().enumerate().filter(|(_, machine)| machine.runs());
            let timer = timers
                .filter_map(|(at, machine)| {
                    Some((machine.replicas.poll_timeout()?.0.saturating_sub(machine.ahead), at))
                })
                .min();
            let next = queued.into_iter().chain(timer.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            self.now = self.now.max(next);
            match timer {
                Some((due, at)) if queued.is_none_or(|queued| due <= queued) => {
                    let now = self.local(at);
                    self.machines[at].replicas.handle_timeout(now);
                    self.drain(at);
                }
                _ => {
                    let Reverse((_, number)) = self.queue.pop().expect("just seen");
                    let event = self.events.remove(&number).expect("queued");
                    self.happen(event);
                }
            }
        }
        self.now = self.now.max(until);
        for at in 0..self.machines.len() {
            self.look(at);
        }
    }

    /// No fault from now on, and all those there are end.
    pub(crate) fn heal(&mut self) {
        self.calm = true;
        self.cut = false;
        for at in 0..self.machines.len() {
            if !self.machines[at].up {
                self.restart(at);
            }
            self.resume(at);
        }
        for speaker in &mut self.speakers {
            speaker.side = None;
        }
        let machines = self
            .machines
            .iter()
            .map(|machine| (machine.replicas.registry(), Moment(self.now + machine.ahead)));
        self.laws.healed(self.now, machines);
    }

    /// Representatives say nothing more.
    pub(crate) fn silence(&mut self) {
        self.speakers.iter_mut().for_each(|speaker| speaker.silent = true);
    }

    fn local(&self, at: usize) -> Moment {
        Moment(self.now + self.machines[at].ahead)
    }

    fn after(&mut self, millis: u64, event: Event) {
        self.scheduled += 1;
        self.queue.push(Reverse((self.now + Duration::from_millis(millis), self.scheduled)));
        self.events.insert(self.scheduled, event);
    }

    fn send(&mut self, from: usize, to: usize, event: Event) {
        if self.cut && self.machines[from].side != self.machines[to].side {
            return;
        }
        if let Some(delay) = self.delay() {
            self.after(delay, event);
        }
    }

    /// How long a message takes; some are lost, some wait for a sick network.
    fn delay(&mut self) -> Option<u64> {
        if self.calm {
            return Some(1 + self.dice.below(80));
        }
        if self.dice.one_in(15) {
            return None;
        }
        if self.dice.one_in(20) {
            return Some(500 + self.dice.below(3000));
        }
        Some(1 + self.dice.below(150))
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Renew { of, life } => self.renew(of, life),
            Event::Fault => self.fault(),
            Event::Snapshot { at } => {
                if self.machines[at].runs() {
                    let now = self.local(at);
                    let machine = &mut self.machines[at];
                    machine.disk = machine.replicas.registry().to_keep(now).collect();
                    machine.disk_at = self.now;
                }
                let wait = 3000 + self.dice.below(9000);
                self.after(wait, Event::Snapshot { at });
            }
            Event::Resume { at } => self.resume(at),
            Event::Restart { at } => self.restart(at),
            Event::Question { to, .. } | Event::Answer { to, .. } | Event::Said { to, .. } => {
                if self.machines[to].runs() {
                    self.receive(event);
                } else if self.machines[to].up {
                    self.machines[to].waiting.push(event);
                }
            }
        }
    }

    fn receive(&mut self, event: Event) {
        match event {
            Event::Question { from, to, id, life, question } => {
                let now = self.local(to);
                let answer = self.machines[to].replicas.handle_question(key(from), question, now);
                self.drain(to);
                let answer = self.tampered(answer.expect("all know each other"));
                self.send(to, from, Event::Answer { from: to, to: from, id, life, answer });
            }
            Event::Answer { from, to, id, life, answer } => {
                // An answer to a question of an earlier life finds nobody waiting.
                if self.machines[to].life == life {
                    let now = self.local(to);
                    self.machines[to].replicas.handle_answer(key(from), id, answer, now);
                    self.drain(to);
                }
            }
            Event::Said { to, said } => {
                let now = self.local(to);
                let replicas = &mut self.machines[to].replicas;
                match said {
                    Said::Record(opened) => {
                        let number = opened.number();
                        let domain = opened.record().domain.clone();
                        let before = replicas.registry().revision();
                        let taken = replicas.state(number.peer, *opened, now);
                        if taken.is_ok() && replicas.registry().revision() != before {
                            self.laws.accepted(&domain, number, self.now);
                        }
                    }
                    Said::Leave(left) => {
                        let (number, domain) = (left.number(), left.leave.domain.clone());
                        if replicas.leave(number.peer, left, now) == Ok(true) {
                            self.laws.left(to, &domain, number);
                        }
                    }
                }
                self.drain(to);
            }
            Event::Renew { .. }
            | Event::Fault
            | Event::Snapshot { .. }
            | Event::Resume { .. }
            | Event::Restart { .. } => {
                unreachable!("no message")
            }
        }
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.machines[at].replicas.poll_output() {
            let Output::Ask { to, id, question } = output else { continue };
            let is_digest = matches!(question, ReplicaQuestion::Digest { .. });
            if is_digest && self.off == Off::Digests {
                continue;
            }
            let to = usize::from(to.0[0]) - 100;
            let life = self.machines[at].life;
            self.send(at, to, Event::Question { from: at, to, id, life, question });
        }
        self.look(at);
    }

    fn look(&mut self, at: usize) {
        if self.machines[at].up {
            let now = self.local(at);
            self.laws.look(at, self.machines[at].replicas.registry(), now, self.now);
        }
    }

    /// What a directory without the mechanism would have answered.
    fn tampered(&self, answer: ReplicaAnswer<OpenedItem>) -> ReplicaAnswer<OpenedItem> {
        let ReplicaAnswer::Items { mut items, domains } = answer else { return answer };
        match self.off {
            Off::Remaining => {
                for item in &mut items {
                    if let OpenedItem::Statement { remaining, .. } = item {
                        *remaining = LEASE;
                    }
                }
            }
            Off::Leaves => items.retain(|item| !matches!(item, OpenedItem::Farewell { .. })),
            Off::HigherTerms => items.retain(|item| match item {
                OpenedItem::Statement { opened, .. } => opened.record().term < 2,
                OpenedItem::Farewell { .. } | OpenedItem::Denial(_) => true,
            }),
            Off::Nothing | Off::Digests | Off::LastSeen => {}
        }
        ReplicaAnswer::Items { items, domains }
    }

    fn new_speaker(&mut self, domain: usize, hosts: Vec<usize>, side: Option<bool>) {
        self.terms[domain] += 1;
        self.represented[domain] += 1;
        let peer = representative(domain, self.represented[domain]);
        let number = Number { term: self.terms[domain], peer, sequence: 0 };
        self.speakers.push(Speaker { domain, number, hosts, side, life: 0, silent: false });
        let of = self.speakers.len() - 1;
        self.after(1, Event::Renew { of, life: 0 });
    }

    fn renew(&mut self, of: usize, life: u32) {
        let speaker = &mut self.speakers[of];
        if speaker.silent || speaker.life != life {
            return;
        }
        speaker.number.sequence += 1;
        let hosts: Vec<_> = speaker.hosts.iter().map(|&at| host(at)).collect();
        let coverage = if hosts.len() == 4 {
            Coverage::Whole { hosts: 4 }
        } else {
            Coverage::Part { hosts_total: u32::try_from(hosts.len()).expect("few"), hosts }
        };
        let opened = statement(domain(speaker.domain), speaker.number, coverage);
        self.laws.said(&domain(speaker.domain), speaker.number, self.now);
        let side = speaker.side;
        self.say(side, &Said::Record(Box::new(opened)));
        let wait = 4500 + self.dice.below(1000);
        self.after(wait, Event::Renew { of, life });
    }

    /// To two directories that can be reached, sometimes twice.
    fn say(&mut self, side: Option<bool>, said: &Said) {
        let reached: Vec<usize> = (0..self.machines.len())
            .filter(|&at| side.is_none_or(|side| self.machines[at].side == side))
            .collect();
        if reached.is_empty() {
            return;
        }
        let first = self.dice.index(reached.len());
        for step in 0..2 {
            let to = reached[(first + step) % reached.len()];
            let times = if self.dice.one_in(10) { 2 } else { 1 };
            for _ in 0..times {
                if let Some(delay) = self.delay() {
                    self.after(delay, Event::Said { to, said: said.clone() });
                }
            }
        }
    }

    fn fault(&mut self) {
        if self.calm {
            return;
        }
        let wait = 500 + self.dice.below(5000);
        self.after(wait, Event::Fault);
        let (machine, of) = (self.dice.index(self.machines.len()), self.dice.index(self.speakers.len()));
        match self.dice.below(8) {
            0 => self.cut = !self.cut,
            1 if self.machines[machine].up => {
                self.machines[machine].paused = true;
                let away = 200 + self.dice.below(20_000);
                self.after(away, Event::Resume { at: machine });
            }
            1..=3 => self.crash(machine),
            // Fail-over: the representative falls silent, another takes a higher term.
            4 => {
                let domain = self.speakers[of].domain;
                self.speakers[of].silent = true;
                self.new_speaker(domain, (0..4).collect(), None);
            }
            // A split: the old one goes on with some hosts, a new one has the others.
            5 => {
                let domain = self.speakers[of].domain;
                let side = self.dice.one_in(2);
                self.speakers[of].hosts = vec![0, 1];
                self.speakers[of].side = Some(side);
                self.new_speaker(domain, vec![1, 2, 3], Some(!side));
            }
            6 => self.speakers[of].silent = true,
            _ => self.leave(of),
        }
    }

    fn leave(&mut self, of: usize) {
        let speaker = &mut self.speakers[of];
        if speaker.silent {
            return;
        }
        speaker.silent = true;
        speaker.number.sequence += 1;
        let (of_domain, number, side) = (speaker.domain, speaker.number, speaker.side);
        self.laws.may_leave(&domain(of_domain), number);
        self.say(side, &Said::Leave(leave(domain(of_domain), number)));
        if self.dice.one_in(2) {
            self.new_speaker(of_domain, (0..4).collect(), None);
        }
    }

    fn crash(&mut self, at: usize) {
        if !self.machines[at].up {
            return;
        }
        let lost_disk = self.dice.one_in(6);
        let machine = &mut self.machines[at];
        machine.up = false;
        machine.paused = false;
        machine.waiting.clear();
        if lost_disk {
            machine.disk.clear();
        }
        self.laws.forgot(at);
        let away = 100 + self.dice.below(25_000);
        self.after(away, Event::Restart { at });
    }

    fn restart(&mut self, at: usize) {
        if self.machines[at].up {
            return;
        }
        let count = self.machines.len();
        // Another boot: its clock began anew.
        self.machines[at].ahead = Duration::from_millis(self.dice.below(1_000_000));
        let now = self.local(at);
        let seed = self.dice.below(u64::MAX);
        let mut registry = Registry::new(100);
        let since = self.now - self.machines[at].disk_at;
        for kept in self.machines[at].disk.clone() {
            if self.off == Off::LastSeen
                && let Some(primary) = &kept.primary
                && let Some(statement) = primary.statement.clone()
            {
                let opened = Opened::signed(primary.record.clone(), statement).expect("has a reach");
                let _ = registry.register(opened, now);
            }
            registry.take_back(kept, since, now).expect("place");
        }
        self.laws.restarted(at, &registry, now);
        let machine = &mut self.machines[at];
        machine.replicas = fresh(at, count, seed, registry, now);
        machine.up = true;
        machine.life += 1;
        self.look(at);
    }

    fn resume(&mut self, at: usize) {
        self.machines[at].paused = false;
        for event in std::mem::take(&mut self.machines[at].waiting) {
            self.receive(event);
        }
    }
}

impl Machine {
    pub(crate) fn ahead(&self) -> Duration {
        self.ahead
    }

    fn runs(&self) -> bool {
        self.up && !self.paused
    }
}

fn fresh(at: usize, count: usize, seed: u64, registry: Registry, now: Moment) -> Replicas {
    let mut list = List::default();
    for of in 0..DOMAINS {
        list.add(domain(of), ROOT).expect("few");
    }
    let peers: Vec<PeerKey> = (0..count).filter(|&other| other != at).map(key).collect();
    let admission = Admission::new(list, List::default());
    Replicas::among(registry, admission, &peers, seed ^ at as u64, now).expect("few")
}
