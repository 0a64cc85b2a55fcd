//! Simulation of directories and representatives on a virtual clock: messages are delayed, lost and cut off,
//! directories pause, crash and restart from an older snapshot, domains split, fail over and leave.
//!
//! The seed determines everything. This file moves the messages and runs the machines; the checks are in
//! `laws`.

mod faults;
mod speakers;

use crate::replication::laws::Laws;
use crate::replication::statements::{ROOT, domain};
use directory::admission::{Admission, List};
use directory::opened::{Opened, OpenedItem, OpenedLeave};
use directory::registry::Registry;
use directory::replicate::{Output, Replicas};
use directory::stored_domain::StoredDomain;
use overlay::dice::Dice;
use speakers::Speaker;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use wire::id::PeerKey;
use wire::replication::{ReplicaAnswer, ReplicaQuestion};
use wire::time::Moment;

/// Mechanism that is switched off to see the laws fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    Nothing,
    /// Directories replicate the full duration of a lease instead of the remaining time.
    Remaining,
    /// Leaves are not replicated.
    Leaves,
    /// No digests, only hints.
    Digests,
    /// A directory does not accept higher terms from others.
    HigherTerms,
    /// Records from a snapshot are live again.
    LastSeen,
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
        said: Announcement,
    },
    /// A renewal of a representative.
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
enum Announcement {
    Record(Box<Opened>),
    Leave(OpenedLeave),
}

pub(crate) struct Machine {
    pub(crate) replicas: Replicas,
    /// Offset of its clock to the true time.
    ahead: Duration,
    pub(crate) up: bool,
    paused: bool,
    waiting: Vec<Event>,
    life: u32,
    disk: Vec<StoredDomain>,
    disk_at: Duration,
    /// Side of a network partition.
    side: bool,
}

pub(crate) struct World {
    pub(crate) now: Duration,
    dice: Dice,
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
        let count = 2 + index(&mut dice, 6);
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
            let side = world.one_in(2);
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

    /// Process events until `until`; the laws are checked after each.
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

    fn one_in(&mut self, most: u64) -> bool {
        self.dice.below(most) == 0
    }

    fn index(&mut self, most: usize) -> usize {
        index(&mut self.dice, most)
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

    /// Delay of a message; some are lost, some are delayed by a faulty network.
    fn delay(&mut self) -> Option<u64> {
        if self.calm {
            return Some(1 + self.dice.below(80));
        }
        if self.one_in(15) {
            return None;
        }
        if self.one_in(20) {
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
                // No process waits for an answer to a question before its restart.
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
                    Announcement::Record(opened) => {
                        let number = opened.number();
                        let domain = opened.record().domain.clone();
                        let before = replicas.registry().revision();
                        let taken = replicas.state(number.peer, *opened, now);
                        if taken.is_ok() && replicas.registry().revision() != before {
                            self.laws.accepted(&domain, number, self.now);
                        }
                    }
                    Announcement::Leave(left) => {
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
}

impl Machine {
    pub(crate) fn ahead(&self) -> Duration {
        self.ahead
    }

    fn runs(&self) -> bool {
        self.up && !self.paused
    }
}

fn index(dice: &mut Dice, most: usize) -> usize {
    usize::try_from(dice.below(most as u64)).expect("small")
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
