//! Representatives of the simulation: each reports its coverage to directories, in terms that only increase.

use super::{Announcement, Event, World};
use crate::replication::statements::{domain, host, leave, representative, statement};
use wire::registration::Coverage;
use wire::replication::Number;

/// One representative of a domain; after a split there are several.
pub(super) struct Speaker {
    pub(super) domain: usize,
    pub(super) number: Number,
    pub(super) hosts: Vec<usize>,
    /// Side of the partition whose directories it reaches; `None`: all.
    pub(super) side: Option<bool>,
    pub(super) life: u32,
    pub(super) silent: bool,
}

impl World {
    /// Representatives send nothing more.
    pub(crate) fn silence(&mut self) {
        self.speakers.iter_mut().for_each(|speaker| speaker.silent = true);
    }

    pub(super) fn new_speaker(&mut self, domain: usize, hosts: Vec<usize>, side: Option<bool>) {
        self.terms[domain] += 1;
        self.represented[domain] += 1;
        let peer = representative(domain, self.represented[domain]);
        let number = Number { term: self.terms[domain], peer, sequence: 0 };
        self.speakers.push(Speaker { domain, number, hosts, side, life: 0, silent: false });
        let of = self.speakers.len() - 1;
        self.after(1, Event::Renew { of, life: 0 });
    }

    pub(super) fn renew(&mut self, of: usize, life: u32) {
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
        self.say(side, &Announcement::Record(Box::new(opened)));
        let wait = 4500 + self.dice.below(1000);
        self.after(wait, Event::Renew { of, life });
    }

    /// Send to two reachable directories, sometimes twice.
    pub(super) fn say(&mut self, side: Option<bool>, said: &Announcement) {
        let reached: Vec<usize> = (0..self.machines.len())
            .filter(|&at| side.is_none_or(|side| self.machines[at].side == side))
            .collect();
        if reached.is_empty() {
            return;
        }
        let first = self.index(reached.len());
        for step in 0..2 {
            let to = reached[(first + step) % reached.len()];
            let times = if self.one_in(10) { 2 } else { 1 };
            for _ in 0..times {
                if let Some(delay) = self.delay() {
                    self.after(delay, Event::Said { to, said: said.clone() });
                }
            }
        }
    }

    pub(super) fn leave(&mut self, of: usize) {
        let speaker = &mut self.speakers[of];
        if speaker.silent {
            return;
        }
        speaker.silent = true;
        speaker.number.sequence += 1;
        let (of_domain, number, side) = (speaker.domain, speaker.number, speaker.side);
        self.laws.may_leave(&domain(of_domain), number);
        self.say(side, &Announcement::Leave(leave(domain(of_domain), number)));
        if self.one_in(2) {
            self.new_speaker(of_domain, (0..4).collect(), None);
        }
    }
}
