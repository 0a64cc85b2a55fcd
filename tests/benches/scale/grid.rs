//! Simulated grid: a thousand domains and their directories on a virtual clock, with the real tables,
//! replication, statements, look-ups and redials; messages take a few milliseconds and are measured as they
//! are framed.
//!
//! Representatives and standbys are simulated individually, the other sensors by their visits. Everything
//! follows from the seed. Not here: what happens inside a domain (`inside`, whose results this grid replays),
//! the cost of connections.

mod sensors;

use crate::count::{self, Flow};
use crate::look_up::{LookUp, Tally};
use crate::machine::{self, Machine, Shape, VirtualClock};
use crate::records;
use crate::speaker::{Role, Speaker};
use overlay::dice::Dice;
use overlay::resolve::LOOKUP_TIMEOUT;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::membership::Term;
use wire::registration::Coverage;
use wire::replication::{Answer, Question};

/// Shortest and longest delay of a message: hosts in one country.
const DELAY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Timeout of a question to a directory that is unreachable, as in `directory::service` and `registrar`.
const UNANSWERED: Duration = Duration::from_millis(3500);

/// One-way trips until a connection is established and both sides have welcomed each other: TCP, Noise,
/// Yamux, hello.
const TRIPS_TO_CONNECT: u32 = 8;

/// Timeout of a dial to a directory that is cut off.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time until a connection to a host that is gone is closed (`TCP_USER_TIMEOUT`; the keepalive closes it
/// after 13 s).
const SILENCE: Duration = Duration::from_secs(10);

/// Shortest and longest sleep of a directory between two polls (`directory::run`).
const SLEEP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A host becomes the representative of its domain, or covers other hosts than before.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at: Duration,
    pub(crate) host: u32,
    pub(crate) term: Term,
    pub(crate) coverage: Coverage,
}

/// Sender of a question.
#[derive(Clone, Debug)]
enum Asker {
    Directory { at: usize, life: u32, id: u64 },
    Speaker(usize),
    LookUp(u64, DomainName),
    Visitor,
}

#[derive(Debug)]
enum Event {
    Look { at: usize, life: u32 },
    Question { from: Asker, to: usize, question: Box<Question> },
    Answer { from: usize, to: Asker, kind: &'static str, answer: Option<Box<Answer>> },
    Change { domain: u32, change: Change },
    State { of: usize, plan: u32 },
    Dial { of: usize },
    Dialled { of: usize, to: usize, life: u32 },
    Refused { of: usize, to: usize },
    Task { of: usize, task: Task },
    Visits,
    LookUp(u64),
    Client { each_second: u64 },
}

/// Periodic tasks of a sensor that holds connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Hear,
    Deny,
    Find,
    Learn { from: u32 },
}

/// The simulated grid.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) shape: Shape,
    pub(crate) machines: Vec<Machine>,
    pub(crate) speakers: Vec<Speaker>,
    /// Messages between the sensors of a role and the directories, summed over the role.
    pub(crate) flows: BTreeMap<Role, Flow>,
    pub(crate) tally: Tally,
    /// Whether sensors with connections learn every domain.
    pub(crate) learns: bool,
    clock: VirtualClock,
    dice: Dice,
    queue: BTreeMap<(Duration, u64), Event>,
    planned: u64,
    look_ups: BTreeMap<u64, LookUp>,
}

impl World {
    pub(crate) fn new(shape: Shape, seed: u64) -> World {
        let clock = VirtualClock::default();
        let machines = (0..shape.directories).map(|at| Machine::new(at, shape, clock.clone())).collect();
        let mut world = World {
            now: Duration::ZERO,
            shape,
            machines,
            speakers: Vec::new(),
            flows: BTreeMap::new(),
            tally: Tally::default(),
            learns: false,
            clock,
            dice: Dice::new(seed),
            queue: BTreeMap::new(),
            planned: 0,
            look_ups: BTreeMap::new(),
        };
        (0..shape.directories).for_each(|at| world.look(at));
        world.plan(Duration::ZERO, Event::Visits);
        world
    }

    /// Schedule the changes of a domain, from now on.
    pub(crate) fn schedule(&mut self, domain: u32, story: &[Change], offset: Duration) {
        for change in story {
            let change = change.clone();
            self.plan(offset + change.at, Event::Change { domain, change });
        }
    }

    /// Make host `host` of a domain a standby from now on.
    pub(crate) fn add_standby(&mut self, domain: u32, host: u32) {
        self.add_speaker(domain, host, Role::Standby);
    }

    /// Kill the domain's representative.
    pub(crate) fn kill_representative(&mut self, domain: u32) {
        let is_it = |speaker: &&mut Speaker| {
            speaker.domain == domain && speaker.role == Role::Representative && !speaker.is_dead
        };
        let speaker = self.speakers.iter_mut().find(is_it).expect("every domain has one");
        speaker.is_dead = true;
    }

    /// Kill a directory's process.
    pub(crate) fn kill(&mut self, at: usize) {
        self.machines[at].kill();
        // The machine closes its connections, so every peer notices at once.
        (0..self.speakers.len()).for_each(|of| self.close(of, at));
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.machines[at].start(at);
        self.meet(at);
        self.look(at);
    }

    /// Cut a directory off from all peers, or reconnect it.
    pub(crate) fn set_cut_off(&mut self, at: usize, is_cut_off: bool) {
        self.machines[at].is_cut_off = is_cut_off;
        if is_cut_off {
            for of in 0..self.speakers.len() {
                let at_most = self.dice.span(SILENCE / 2, SILENCE);
                self.plan(at_most, Event::Refused { of, to: at });
            }
        } else {
            self.meet(at);
        }
    }

    /// From now on, sensors without connections look up this many domains each second, for their clients.
    pub(crate) fn look_up_for_clients(&mut self, each_second: u64) {
        self.plan(Duration::ZERO, Event::Client { each_second });
    }

    /// Reset all counters.
    pub(crate) fn forget_counts(&mut self) {
        self.flows.clear();
        self.tally = Tally::default();
        for machine in &mut self.machines {
            machine.flow = Flow::default();
            machine.busy = Duration::ZERO;
        }
    }

    /// Number of wrong entries: for each directory, the domains whose current representative it does not list
    /// as live.
    pub(crate) fn wrong(&self) -> usize {
        let alive = self.speakers.iter().filter(|it| it.role == Role::Representative && !it.is_dead);
        let holders: BTreeMap<DomainName, PeerKey> =
            alive.map(|speaker| (records::name(speaker.domain), speaker.key())).collect();
        let up = self.machines.iter().filter(|machine| machine.is_up);
        let wrong = up.map(|machine| {
            let right = machine.handle.domains().into_iter().filter(|found| {
                let named = found.record.reach.as_ref().map(|reach| reach.peer);
                !found.lease_remaining.is_zero() && named == holders.get(&found.record.domain).copied()
            });
            holders.len().max(self.shape.domains as usize) - right.count()
        });
        wrong.sum()
    }

    /// Run the simulation for `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some((&(at, number), _)) = self.queue.first_key_value().filter(|((at, _), _)| *at <= until)
        {
            self.set_now(at);
            let event = self.queue.remove(&(at, number)).expect("just seen");
            self.happen(event);
        }
        self.set_now(until);
    }

    /// Run until no directory is wrong, for at most `most`; returns the time taken.
    pub(crate) fn run_until_right(&mut self, most: Duration) -> Option<Duration> {
        let start = self.now;
        while self.wrong() > 0 {
            if self.now - start >= most {
                return None;
            }
            self.run(Duration::from_millis(50));
        }
        Some(self.now - start)
    }

    fn set_now(&mut self, now: Duration) {
        self.now = now;
        self.clock.set(now);
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.planned += 1;
        self.queue.insert((self.now + after, self.planned), event);
    }

    fn delay(&mut self) -> Duration {
        self.dice.span(DELAY.0, DELAY.1)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Look { at, life } => {
                let machine = &self.machines[at];
                if machine.life == life && machine.is_up && machine.planned == Some(self.now) {
                    self.look(at);
                }
            }
            Event::Question { from, to, question } => self.question(from, to, *question),
            Event::Answer { from, to, kind, answer } => self.answer(from, to, kind, answer.map(|it| *it)),
            Event::Change { domain, change } => self.change(domain, change),
            Event::State { of, plan } if self.speakers[of].plans == plan => self.state(of),
            Event::State { .. } => {}
            Event::Dial { of } => self.dial(of),
            Event::Dialled { of, to, life } => self.dialled(of, to, life),
            Event::Refused { of, to } => self.close(of, to),
            Event::Task { of, task } => self.task(of, task),
            Event::Visits => self.visits(),
            Event::LookUp(number) => self.look_up_timeout(number),
            Event::Client { each_second } => self.client(each_second),
        }
    }

    /// Poll a directory: it does what is due.
    fn look(&mut self, at: usize) {
        let (asks, next) = self.machines[at].poll();
        let life = self.machines[at].life;
        for (to, id, question) in asks {
            let now = self.now;
            self.machines[at].flow.send(count::kind(&question), count::question_len(&question), now);
            self.ask(Asker::Directory { at, life, id }, machine::number(to), question);
        }
        let sleep = next.unwrap_or(SLEEP.1).clamp(SLEEP.0, SLEEP.1);
        self.machines[at].planned = Some(self.now + sleep);
        self.plan(sleep, Event::Look { at, life });
    }

    /// Reconnect the other directories to this one.
    fn meet(&mut self, at: usize) {
        for other in (0..self.machines.len()).filter(|other| *other != at) {
            self.machines[at].handle.handle_connected(machine::key(other));
            self.machines[other].handle.handle_connected(machine::key(at));
        }
    }

    fn ask(&mut self, from: Asker, to: usize, question: Question) {
        let is_reached = |asker: &Asker, machines: &[Machine]| match asker {
            Asker::Directory { at, .. } => machines[*at].is_reached(),
            Asker::Speaker(_) | Asker::LookUp(..) | Asker::Visitor => true,
        };
        if let Some(role) = self.role(&from) {
            let (kind, len) = (count::kind(&question), count::question_len(&question));
            self.flows.entry(role).or_default().send(kind, len, self.now);
        }
        if self.machines[to].is_reached() && is_reached(&from, &self.machines) {
            let delay = self.delay();
            self.plan(delay, Event::Question { from, to, question: Box::new(question) });
        } else {
            let after = if matches!(from, Asker::LookUp(..)) { LOOKUP_TIMEOUT } else { UNANSWERED };
            let kind = count::kind(&question);
            self.plan(after, Event::Answer { from: to, to: from, kind, answer: None });
        }
    }

    fn role(&self, asker: &Asker) -> Option<Role> {
        match asker {
            Asker::Directory { .. } => None,
            Asker::Speaker(of) => Some(self.speakers[*of].role),
            Asker::LookUp(number, _) => Some(self.look_ups.get(number).map_or(Role::Plain, |it| it.role)),
            Asker::Visitor => Some(Role::Plain),
        }
    }

    fn question(&mut self, from: Asker, to: usize, question: Question) {
        let kind = count::kind(&question);
        if !self.machines[to].is_reached() {
            self.plan(UNANSWERED, Event::Answer { from: to, to: from, kind, answer: None });
            return;
        }
        let key = match &from {
            Asker::Directory { at, .. } => machine::key(*at),
            Asker::Speaker(of) => self.speakers[*of].key(),
            Asker::LookUp(..) | Asker::Visitor => PeerKey([9; 32]),
        };
        let answer = self.machines[to].answer(key, question);
        self.look(to);
        let delay = self.delay();
        self.plan(delay, Event::Answer { from: to, to: from, kind, answer: Some(Box::new(answer)) });
    }

    fn answer(&mut self, from: usize, to: Asker, kind: &'static str, answer: Option<Answer>) {
        if let (Some(role), Some(answer)) = (self.role(&to), &answer) {
            self.flows.entry(role).or_default().get(kind, count::answer_len(answer), self.now);
        }
        match to {
            Asker::Directory { at, life, id } => {
                if self.machines[at].life != life || !self.machines[at].is_up {
                    return;
                }
                match answer {
                    Some(answer) => self.machines[at].take_answer(machine::key(from), id, kind, answer),
                    None => self.machines[at].handle.handle_failure(machine::key(from), id),
                }
                self.look(at);
            }
            Asker::Speaker(of) => self.answered(of, from, answer),
            Asker::LookUp(number, domain) => {
                let now = self.now;
                if let Some(look_up) = self.look_ups.get_mut(&number) {
                    look_up.answered(from, &domain, answer.as_ref(), now);
                    self.go_on(number);
                }
            }
            Asker::Visitor => {}
        }
    }
}
