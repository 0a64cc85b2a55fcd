//! Simulation of one domain: the real election and membership, each host separately, on the simulator.
//!
//! Not here: reports (`reports`), the domain's directories (`grid`), which replay the changes recorded here.

use crate::grid::Change;
use overlay::election::Role;
use overlay::registrar::schedule::coverage;
use overlay::simulator::{Domain, Traffic};
use std::time::Duration;

/// Polling interval for the representative.
const LOOK: Duration = Duration::from_millis(100);

/// A domain from its cold start on.
pub(crate) struct Inside {
    pub(crate) domain: Domain,
    /// Changes of the representative, as the domain's directories would receive them.
    pub(crate) story: Vec<Change>,
}

impl Inside {
    /// Start all hosts at once; each knows two seeds and no other host.
    pub(crate) fn start(hosts: usize, seed: u64) -> Inside {
        let mut domain = Domain::new(hosts, seed, |_| {});
        domain.world.measures = true;
        domain.start_all();
        Inside { domain, story: Vec::new() }
    }

    /// Run for `span`, recording changes of the representative.
    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.domain.world.now() + span;
        while self.domain.world.now() < until {
            self.domain.run(LOOK);
            self.look();
        }
    }

    /// Run until all hosts see one representative that covers every host; returns the time taken.
    pub(crate) fn run_until_one(&mut self, most: Duration) -> Option<Duration> {
        let start = self.domain.world.now();
        while self.domain.world.now() - start < most {
            self.run(LOOK);
            if self.domain.agreed_by_all().is_some() {
                return Some(self.domain.world.now() - start);
            }
        }
        None
    }

    fn look(&mut self) {
        for at in self.domain.serving() {
            let (Some(state), Some(node)) = (self.domain.state(at), self.domain.node(at)) else { continue };
            let coverage = coverage(&state, node.table().rows().map(|row| &row.member));
            let host = u32::try_from(at).expect("few");
            let last = self.story.iter().rev().find(|change| change.host == host);
            if last.is_none_or(|last| (last.term, &last.coverage) != (state.term, &coverage)) {
                let now = self.domain.world.now();
                self.story.push(Change { at: now, host, term: state.term, coverage });
            }
        }
    }

    /// The hosts that have this role now.
    pub(crate) fn hosts_of(&self, role: Role) -> Vec<usize> {
        let is_it = |at: &usize| self.domain.state(*at).is_some_and(|state| state.role == role);
        (0..self.domain.world.len()).filter(is_it).collect()
    }

    /// Total traffic of `hosts` so far.
    pub(crate) fn traffic(&self, hosts: &[usize]) -> Traffic {
        hosts.iter().map(|at| self.domain.world.traffic(*at)).fold(Traffic::default(), plus)
    }
}

/// Sum of two traffic counters.
pub(crate) fn plus(one: Traffic, other: Traffic) -> Traffic {
    Traffic {
        sent: one.sent + other.sent,
        sent_bytes: one.sent_bytes + other.sent_bytes,
        longest_bytes: one.longest_bytes.max(other.longest_bytes),
        got: one.got + other.got,
        got_bytes: one.got_bytes + other.got_bytes,
    }
}
