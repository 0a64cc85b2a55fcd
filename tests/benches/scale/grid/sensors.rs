//! Behaviour of sensors in the simulated grid: they state records, dial, query admissions and revocations,
//! look up domains.

use super::{Asker, Change, DIAL_TIMEOUT, Event, TRIPS_TO_CONNECT, Task, World};
use crate::look_up::LookUp;
use crate::speaker::{Role, Speaker};
use crate::{machine, records};
use overlay::net::redial::Target;
use overlay::{finder, resolve::asker, revocation_sync};
use std::time::Duration;
use wire::id::DomainName;
use wire::replication::{Answer, Question, Stated};
use wire::time::Moment;

impl World {
    pub(super) fn add_speaker(&mut self, domain: u32, host: u32, role: Role) -> usize {
        let of = self.speakers.len();
        let speaker = Speaker::new((domain, host), role, self.shape.directories, self.now);
        self.speakers.push(speaker);
        self.plan(Duration::ZERO, Event::Dial { of });
        let first = self.dice.span(Duration::ZERO, revocation_sync::OFTEN);
        self.plan(first, Event::Task { of, task: Task::Deny });
        self.plan(first, Event::Task { of, task: Task::Find });
        self.plan(asker::hears_each(of as u64), Event::Task { of, task: Task::Hear });
        of
    }

    pub(super) fn change(&mut self, domain: u32, change: Change) {
        let Change { host, term, coverage, .. } = change;
        let is_it = |speaker: &Speaker| speaker.domain == domain && speaker.host == host;
        let of = self.speakers.iter().position(is_it);
        let of = of.unwrap_or_else(|| self.add_speaker(domain, host, Role::Representative));
        self.speakers[of].reign(term, coverage);
        self.state(of);
    }

    pub(super) fn state(&mut self, of: usize) {
        let now = self.now;
        let Some(next) = self.speakers[of].state(now) else { return };
        self.speakers[of].plans += 1;
        let plan = self.speakers[of].plans;
        self.plan(next, Event::State { of, plan });
        (0..self.shape.directories).for_each(|to| self.send(of, to));
    }

    fn send(&mut self, of: usize, to: usize) {
        if let Some(statement) = self.speakers[of].send(to) {
            self.ask(Asker::Speaker(of), to, Question::State(Box::new(statement)));
        }
    }

    /// Handle a directory's answer to a representative or standby, or its absence.
    pub(super) fn answered(&mut self, of: usize, from: usize, answer: Option<Answer>) {
        match answer {
            Some(Answer::Stated(stated)) => {
                self.speakers[of].set_answered(from);
                if let Stated::Behind { highest } = stated {
                    self.speakers[of].exceed(highest);
                    self.state(of);
                }
                assert!(!matches!(stated, Stated::Refused(_)), "{stated:?}");
                self.send(of, from);
            }
            Some(Answer::Admitted { domains, more: true }) => {
                let after = domains.last().map(|(name, _)| name.clone());
                self.ask(Asker::Speaker(of), from, Question::Admitted { after });
            }
            Some(_) => {}
            None => {
                self.speakers[of].set_answered(from);
                self.send(of, from);
            }
        }
    }

    pub(super) fn close(&mut self, of: usize, to: usize) {
        let now = self.now;
        self.speakers[of].closed(to, now);
        self.plan_dial(of);
    }

    fn plan_dial(&mut self, of: usize) {
        let speaker = &self.speakers[of];
        if let Some(due) = speaker.redial.poll_timeout().filter(|_| !speaker.is_dead) {
            self.plan(due.0.saturating_sub(self.now), Event::Dial { of });
        }
    }

    pub(super) fn dial(&mut self, of: usize) {
        while let Some(dial) = self.speakers[of].redial.poll_dial(Moment(self.now)) {
            let Target::Peer(key) = dial.target else { unreachable!("only directories are dialled") };
            let to = machine::number(key);
            let trip = self.delay();
            let machine = &self.machines[to];
            let (life, is_reached, is_cut_off) = (machine.life, machine.is_reached(), machine.is_cut_off);
            match (self.speakers[of].is_dead, is_reached, is_cut_off) {
                (true, ..) => {}
                (_, true, _) => self.plan(trip * TRIPS_TO_CONNECT, Event::Dialled { of, to, life }),
                (_, _, true) => self.plan(DIAL_TIMEOUT, Event::Refused { of, to }),
                (_, _, false) => self.plan(trip * 2, Event::Refused { of, to }),
            }
        }
        self.plan_dial(of);
    }

    pub(super) fn dialled(&mut self, of: usize, to: usize, life: u32) {
        if self.machines[to].life != life || !self.machines[to].is_reached() {
            return self.close(of, to);
        }
        let now = self.now;
        self.speakers[of].opened(to, now);
        if !std::mem::replace(&mut self.speakers[of].ways[to].has_received, true) {
            self.ask(Asker::Speaker(of), to, Question::Admitted { after: None });
            let is_first = self.speakers[of].ways.iter().filter(|way| way.has_received).count() == 1;
            if self.learns && is_first {
                self.plan(Duration::from_secs(1), Event::Task { of, task: Task::Learn { from: 0 } });
            }
        }
        self.send(of, to);
    }

    fn ask_all(&mut self, of: usize, question: &Question) {
        for to in 0..self.shape.directories {
            if self.speakers[of].ways[to].is_open {
                self.ask(Asker::Speaker(of), to, question.clone());
            }
        }
    }

    pub(super) fn task(&mut self, of: usize, task: Task) {
        if self.speakers[of].is_dead {
            return;
        }
        let own = records::name(self.speakers[of].domain);
        let role = self.speakers[of].role;
        let (again, task) = match task {
            Task::Hear => {
                self.ask_all(of, &Question::Admitted { after: None });
                (asker::hears_each(of as u64), task)
            }
            Task::Deny => {
                self.ask_all(of, &Question::DenyLists(own));
                (revocation_sync::OFTEN, task)
            }
            Task::Find => {
                if role == Role::Representative {
                    self.look_up(role, &[own]);
                }
                (finder::SELDOM, task)
            }
            Task::Learn { from } => {
                let each = u32::try_from(asker::LEARNED_EACH_LOOK).expect("few");
                let until = (from + each).min(self.shape.domains);
                let names: Vec<DomainName> = (from..until).map(records::name).collect();
                self.look_up(role, &names);
                if until == self.shape.domains {
                    return;
                }
                (Duration::from_secs(1), Task::Learn { from: until })
            }
        };
        self.plan(again, Event::Task { of, task });
    }

    pub(super) fn look_up(&mut self, role: Role, names: &[DomainName]) {
        let number = self.planned;
        let seed = self.dice.draw();
        let look_up = LookUp::begin(role, names, self.shape.directories, seed, self.now);
        self.look_ups.insert(number, look_up);
        self.planned += 1;
        self.go_on(number);
    }

    pub(super) fn go_on(&mut self, number: u64) {
        let Some(look_up) = self.look_ups.get_mut(&number) else { return };
        let asks = look_up.asks(&mut self.tally);
        let (is_over, due) = (look_up.is_over(), look_up.due());
        if is_over {
            self.look_ups.remove(&number);
        } else if let Some(due) = due {
            self.plan(due.saturating_sub(self.now), Event::LookUp(number));
        }
        for (to, domain) in asks {
            self.ask(Asker::LookUp(number, domain.clone()), to, Question::Resolve(domain));
        }
    }

    pub(super) fn look_up_timeout(&mut self, number: u64) {
        let now = self.now;
        if let Some(look_up) = self.look_ups.get_mut(&number)
            && look_up.due().is_some_and(|due| due <= now)
        {
            look_up.timeout(now);
            self.go_on(number);
        }
    }

    /// Sensors without connections query the revocation list of their domain at one directory from time to
    /// time; all those due within a tenth of a second are simulated together.
    pub(super) fn visits(&mut self) {
        const STEP: Duration = Duration::from_millis(100);
        let plain = u64::from(self.shape.domains) * u64::from(self.shape.hosts.saturating_sub(3));
        let steps = revocation_sync::SELDOM.as_millis() / STEP.as_millis();
        let steps = u64::try_from(steps).expect("few");
        // The remainder of the division is distributed at random.
        let more = u64::from(self.dice.below(steps) < plain % steps);
        for _ in 0..plain / steps + more {
            let to = usize::try_from(self.dice.below(self.shape.directories as u64)).expect("few");
            let domain = u32::try_from(self.dice.below(self.shape.domains.into())).expect("as many");
            self.ask(Asker::Visitor, to, Question::DenyLists(records::name(domain)));
        }
        self.plan(STEP, Event::Visits);
    }

    /// Simulate a hundredth of a second of clients' look-ups. A sensor that asks a directory each minute also
    /// queries it each hour for the admitted domains: three directories, sixty look-ups.
    pub(super) fn client(&mut self, each_second: u64) {
        const PARTS: u64 = 100;
        let (directories, domains) = (self.shape.directories, self.shape.domains);
        let look_ups_each_hour = asker::ASKED_FOR.as_secs() / 60;
        for _ in 0..each_second / PARTS {
            let domain = u32::try_from(self.dice.below(domains.into())).expect("as many");
            self.look_up(Role::Plain, &[records::name(domain)]);
            if self.dice.below(look_ups_each_hour) < directories as u64 {
                let to = usize::try_from(self.dice.below(directories as u64)).expect("few");
                self.ask(Asker::Visitor, to, Question::Admitted { after: None });
            }
        }
        self.plan(Duration::from_millis(1000 / PARTS), Event::Client { each_second });
    }
}
