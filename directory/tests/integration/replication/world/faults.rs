//! Faults of the simulation, and the effect of each mechanism that is switched off.

use super::{Event, Off, World, fresh};
use directory::opened::{Opened, OpenedItem};
use directory::registry::{LEASE, Registry};
use std::time::Duration;
use wire::replication::ReplicaAnswer;
use wire::time::Moment;

impl World {
    /// End all faults, and start no others.
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

    pub(super) fn fault(&mut self) {
        if self.calm {
            return;
        }
        let wait = 500 + self.dice.below(5000);
        self.after(wait, Event::Fault);
        let (machine, of) = (self.index(self.machines.len()), self.index(self.speakers.len()));
        match self.dice.below(8) {
            0 => self.cut = !self.cut,
            1 if self.machines[machine].up => {
                self.machines[machine].paused = true;
                let away = 200 + self.dice.below(20_000);
                self.after(away, Event::Resume { at: machine });
            }
            1..=3 => self.crash(machine),
            // Fail-over: the representative stops, another one takes a higher term.
            4 => {
                let domain = self.speakers[of].domain;
                self.speakers[of].silent = true;
                self.new_speaker(domain, (0..4).collect(), None);
            }
            // A split: the old representative continues with some hosts, a new one has the others.
            5 => {
                let domain = self.speakers[of].domain;
                let side = self.one_in(2);
                self.speakers[of].hosts = vec![0, 1];
                self.speakers[of].side = Some(side);
                self.new_speaker(domain, vec![1, 2, 3], Some(!side));
            }
            6 => self.speakers[of].silent = true,
            _ => self.leave(of),
        }
    }

    pub(super) fn crash(&mut self, at: usize) {
        if !self.machines[at].up {
            return;
        }
        let lost_disk = self.one_in(6);
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

    pub(super) fn restart(&mut self, at: usize) {
        if self.machines[at].up {
            return;
        }
        let count = self.machines.len();
        // A reboot: its clock started again.
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

    pub(super) fn resume(&mut self, at: usize) {
        self.machines[at].paused = false;
        for event in std::mem::take(&mut self.machines[at].waiting) {
            self.receive(event);
        }
    }

    /// The answer of a directory without the mechanism.
    pub(super) fn tampered(&self, answer: ReplicaAnswer<OpenedItem>) -> ReplicaAnswer<OpenedItem> {
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
}
