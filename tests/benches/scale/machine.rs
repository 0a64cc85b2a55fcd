//! Directory of the simulated grid: the real table and replication on the virtual clock.

use crate::count::{self, Flow};
use crate::records::{Believing, ROOT, name, time};
use directory::admission::{Admission, List};
use directory::handle::{Clock, Handle};
use directory::registry::{DOMAINS_MAX, Registry};
use directory::replicate::{Output, Replicas};
use directory::snapshot::Snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::id::PeerKey;
use wire::replication::{Answer, Question};
use wire::time::{Moment, Time};

/// The clock of the whole grid, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct VirtualClock(Arc<AtomicU64>);

impl VirtualClock {
    pub(crate) fn set(&self, now: Duration) {
        self.0.store(u64::try_from(now.as_nanos()).expect("centuries"), Ordering::Relaxed);
    }

    fn passed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment(self.passed())
    }

    fn calendar(&self) -> Time {
        time(self.passed())
    }
}

/// A directory. A dead one retains what is on its disk.
pub(crate) struct Machine {
    pub(crate) handle: Handle,
    pub(crate) is_up: bool,
    pub(crate) is_cut_off: bool,
    pub(crate) life: u32,
    /// When its next poll is scheduled.
    pub(crate) planned: Option<Duration>,
    pub(crate) flow: Flow,
    /// Time that the table took, measured on this computer's real clock.
    pub(crate) busy: Duration,
    disk: Snapshot,
    shape: Shape,
    clock: VirtualClock,
}

/// Size of the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) domains: u32,
    pub(crate) hosts: u32,
    pub(crate) directories: usize,
}

pub(crate) fn key(at: usize) -> PeerKey {
    PeerKey([u8::try_from(100 + at).expect("few"); 32])
}

pub(crate) fn number(key: PeerKey) -> usize {
    usize::from(key.0[0]) - 100
}

impl Machine {
    pub(crate) fn new(at: usize, shape: Shape, clock: VirtualClock) -> Machine {
        let disk = Snapshot::default();
        let handle = open(at, shape, &clock, 0, disk.clone());
        Machine {
            handle,
            is_up: true,
            is_cut_off: false,
            life: 0,
            planned: None,
            flow: Flow::default(),
            busy: Duration::ZERO,
            disk,
            shape,
            clock,
        }
    }

    /// Whether other daemons can reach it.
    pub(crate) fn is_reached(&self) -> bool {
        self.is_up && !self.is_cut_off
    }

    /// Kill its process; its last snapshot has the present state.
    pub(crate) fn kill(&mut self) {
        self.disk = self.handle.snapshot();
        self.is_up = false;
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.is_up = true;
        self.life += 1;
        self.planned = None;
        self.handle = open(at, self.shape, &self.clock, self.life, self.disk.clone());
    }

    /// Answer a question.
    pub(crate) fn answer(&mut self, from: PeerKey, question: Question) -> Answer {
        let now = self.clock.passed();
        let kind = count::kind(&question);
        self.flow.get(kind, count::question_len(&question), now);
        let answer = self.timed(|handle| handle.answer(from, question, &Believing));
        self.flow.send(kind, count::answer_len(&answer), now);
        answer
    }

    /// Handle another directory's answer.
    pub(crate) fn take_answer(&mut self, from: PeerKey, id: u64, kind: &'static str, answer: Answer) {
        self.flow.get(kind, count::answer_len(&answer), self.clock.passed());
        let unbelieved = self.timed(|handle| handle.take_answer(from, id, answer, &Believing));
        assert_eq!(unbelieved, 0, "everything is believed here");
    }

    /// Questions to send, and the time until its next poll.
    pub(crate) fn poll(&mut self) -> (Vec<(PeerKey, u64, Question)>, Option<Duration>) {
        let (outputs, next) = self.timed(Handle::poll);
        let asks = outputs.into_iter().filter_map(|output| match output {
            Output::Ask { to, id, question } => Some((to, id, Question::Replica(question))),
            Output::Ended(_) => None,
        });
        (asks.collect(), next)
    }

    #[allow(clippy::disallowed_methods)] // The cost of the table is measured by the real clock.
    fn timed<T>(&mut self, act: impl FnOnce(&Handle) -> T) -> T {
        let began = Instant::now();
        let result = act(&self.handle);
        self.busy += began.elapsed();
        result
    }
}

fn open(at: usize, shape: Shape, clock: &VirtualClock, life: u32, disk: Snapshot) -> Handle {
    let mut admitted = List::default();
    for domain in 0..shape.domains {
        admitted.add(name(domain), ROOT).expect("as many as there may be");
    }
    let peers: Vec<PeerKey> = (0..shape.directories).filter(|other| *other != at).map(key).collect();
    let mut registry = Registry::new(DOMAINS_MAX);
    assert_eq!(disk.take_back(&mut registry, clock.now(), clock.calendar()), 0, "its own snapshot fits");
    let seed = (at as u64) << 32 | u64::from(life);
    let admission = Admission::new(admitted, List::default());
    let replicas = Replicas::among(registry, admission, &peers, seed, clock.now()).expect("few directories");
    Handle::among(replicas, clock.clone())
}
