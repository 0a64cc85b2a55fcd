//! Representative or standby of the simulated grid: when it states which record, by the real `Schedule`, and
//! to which directories it is connected, by the real `Redial`.

use crate::machine;
use crate::records::{self, Numbered};
use overlay::net::redial::{Redial, Target};
use overlay::registrar::schedule::{Content, Due, Schedule};
use std::time::Duration;
use wire::credential::{Chain, Statement};
use wire::id::PeerKey;
use wire::membership::Term;
use wire::registration::Coverage;
use wire::time::Moment;

/// Role of a sensor in its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Representative,
    Standby,
    Plain,
}

/// Connection to one directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub(crate) is_open: bool,
    /// Whether a statement is in flight.
    is_sending: bool,
    /// Whether the current statement was not sent here yet.
    is_behind: bool,
    /// Whether it queried the admitted domains since it started.
    pub(crate) has_received: bool,
}

/// A sensor that holds a connection to every directory.
pub(crate) struct Speaker {
    pub(crate) domain: u32,
    pub(crate) host: u32,
    pub(crate) role: Role,
    pub(crate) is_dead: bool,
    pub(crate) ways: Vec<Way>,
    pub(crate) redial: Redial,
    /// Number of the current schedule for statements; events of older schedules are ignored.
    pub(crate) plans: u32,
    schedule: Schedule,
    reign: Option<(Term, Coverage)>,
    chain: Chain,
    current: Option<Statement>,
}

impl Speaker {
    pub(crate) fn new((domain, host): (u32, u32), role: Role, directories: usize, now: Duration) -> Speaker {
        let seed = u64::from(domain) << 32 | u64::from(host);
        let mut redial = Redial::new(seed);
        for at in 0..directories {
            let target = Target::Peer(machine::key(at));
            redial.keep(target, Vec::new(), false, Moment(now)).expect("at most seven");
        }
        Speaker {
            domain,
            host,
            role,
            is_dead: false,
            ways: vec![Way::default(); directories],
            redial,
            plans: 0,
            schedule: Schedule::default(),
            reign: None,
            chain: records::chain(domain, host),
            current: None,
        }
    }

    pub(crate) fn key(&self) -> PeerKey {
        records::peer(self.domain, self.host)
    }

    /// Make it the representative of its domain, for these hosts.
    pub(crate) fn reign(&mut self, term: Term, coverage: Coverage) {
        self.role = Role::Representative;
        self.reign = Some((term, coverage));
    }

    /// Create a new statement if one is due; returns the time until the next poll.
    pub(crate) fn state(&mut self, now: Duration) -> Option<Duration> {
        let (elected, coverage) = self.reign.clone().filter(|_| !self.is_dead)?;
        let content = Content { elected, coverage: coverage.clone(), chain: self.chain.clone() };
        match self.schedule.due(&content, Moment(now)) {
            Due::In(span) => Some(span),
            Due::Now { term, sequence } => {
                let numbered = Numbered { term, sequence };
                let whose = (self.domain, self.host);
                self.current = Some(records::statement(whose, numbered, coverage, self.chain.clone(), now));
                self.ways.iter_mut().for_each(|way| way.is_behind = true);
                Some(overlay::registrar::schedule::RENEWAL_INTERVAL)
            }
        }
    }

    /// Statement to send to directory `to` now: one at a time, and always the current one.
    pub(crate) fn send(&mut self, to: usize) -> Option<Statement> {
        let way = &mut self.ways[to];
        if self.is_dead || !way.is_open || way.is_sending || !way.is_behind {
            return None;
        }
        let current = self.current.clone()?;
        (way.is_sending, way.is_behind) = (true, false);
        Some(current)
    }

    /// The statement was answered, or timed out.
    pub(crate) fn set_answered(&mut self, to: usize) {
        self.ways[to].is_sending = false;
    }

    /// A directory knows a higher number.
    pub(crate) fn exceed(&mut self, highest: wire::replication::Number) {
        let me = self.key();
        self.schedule.exceed(me, highest);
    }

    pub(crate) fn opened(&mut self, to: usize, now: Duration) {
        self.ways[to].is_open = true;
        self.redial.handle_connected(&Target::Peer(machine::key(to)), Moment(now));
    }

    /// The connection was closed, or could not be opened.
    pub(crate) fn closed(&mut self, to: usize, now: Duration) {
        if self.ways[to].is_open {
            // A directory that was away receives the current statement as soon as it is back.
            self.ways[to].is_behind = true;
        }
        self.ways[to].is_open = false;
        self.ways[to].is_sending = false;
        self.redial.handle_failed(&Target::Peer(machine::key(to)), Moment(now));
    }
}
