//! One sensor's state machine: its sub-states, and the entry through which every input passes.
//!
//! Pure. Invariant: every input is preceded by a look at the time since the last one, so that a sensor whose
//! process was suspended never acts as if it had run; and followed by a report of the state, if it changed.
//! Rule: the sub-states are changed by their own methods only; this folder decides which and in which order.
//! Not here: the transition table (head of `election`), the rules of single sub-states (their files).

mod candidate;
mod claims;
mod connections;
mod heartbeats;
mod queries;
mod representative;

use super::candidacy::Candidacy;
use super::cool_off::CoolOff;
use super::counters::{Counter, Counters};
use super::dialer::Dialer;
use super::health::Health;
use super::leader::Leader;
use super::leadership::Stage;
use super::link::Link;
use super::links::Links;
use super::local_sensor::LocalSensor;
use super::outbox::Outbox;
use super::roster::Roster;
use super::succession::Succession;
use super::terms::Terms;
use super::timers::{Timer, Timers};
use super::{Config, Input, Me, Output, Persisted};
use crate::dice::Dice;
use crate::membership::{Profile, Rank};
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Message, Term};
use wire::time::Moment;

/// One sensor's part in its domain. See the head of `election`.
#[derive(Clone, Debug)]
pub struct Node {
    config: Config,
    dice: Dice,
    local: LocalSensor,
    health: Health,
    cool_off: CoolOff,
    timers: Timers,
    links: Links,
    dialer: Dialer,
    roster: Roster,
    terms: Terms,
    leader: Option<Leader>,
    candidacy: Candidacy,
    stage: Stage,
    counters: Counters,
    outbox: Outbox,
}

impl Node {
    /// A sensor that starts; `seed` makes its jitter differ from that of others.
    #[must_use]
    pub fn new(config: Config, me: Me, persisted: Persisted, seed: u64, now: Moment) -> Node {
        let local = LocalSensor::new(me, &config.domain, persisted);
        let mut dice = Dice::new(seed);
        let heartbeat = now.plus(dice.span(Duration::ZERO, config.heartbeat));
        let mut node = Node {
            dice,
            health: Health::default(),
            cool_off: CoolOff::default(),
            timers: Timers::new(heartbeat, now),
            links: Links::default(),
            dialer: Dialer::new(local.key()),
            roster: Roster::new(config.domain.clone()),
            terms: Terms::new(persisted.term),
            leader: None,
            candidacy: Candidacy::new(now.plus(config.suspicion)),
            stage: Stage::Member,
            counters: Counters::default(),
            outbox: Outbox::default(),
            local,
            config,
        };
        node.persist(persisted.term);
        node.maintain_links(now);
        node.set_deadline(now);
        node
    }

    /// Handle one input; take the outputs with [`Node::poll_output`] after every call.
    pub fn handle(&mut self, input: Input, now: Moment) {
        self.note_input(now);
        match input {
            Input::Connected(peer, profile) => self.on_connected(peer, profile, now),
            Input::Disconnected(peer) => self.on_disconnected(peer, now),
            Input::Received(from, message) => self.on_message(from, message, now),
            Input::Timeout => self.on_timeout(now),
            Input::Persisted(persisted) => self.on_persisted(persisted.term, now),
            Input::LoadMeasured(load) => self.local.set_load(load),
            Input::Stop => self.on_stop(),
        }
        self.report_state(now);
        self.set_deadline(now);
    }

    fn on_connected(&mut self, peer: PeerKey, profile: Profile, now: Moment) {
        let rank = Rank::of(&self.config.domain, peer, profile.priority);
        let is_refused = peer == self.local.key() || self.local.is_stopping();
        if is_refused || !self.links.insert(peer, Link::new(profile, rank, now)) {
            self.refuse();
            self.outbox.push(Output::Disconnect(peer));
            return;
        }
        self.dialer.connected(&peer);
        self.roster.linked(&peer);
        self.send_heartbeat(peer, now);
    }

    fn on_disconnected(&mut self, peer: PeerKey, now: Moment) {
        if let Some(link) = self.links.remove(&peer) {
            self.roster.unlinked(&link, self.stage.represents(), now);
            // At once if the link is needed: a link that breaks is most often a process that restarts.
            self.maintain_links(now);
        } else {
            self.dialer.failed(peer, &self.config, &mut self.dice, now);
        }
    }

    fn on_message(&mut self, from: PeerKey, message: Message, now: Moment) {
        if !self.links.contains(&from) || self.local.is_stopping() {
            self.refuse();
            return;
        }
        match message {
            Message::Heartbeat(heartbeat) => self.on_heartbeat(from, heartbeat, now),
            Message::Members(members) => self.on_members(from, members, now),
            Message::Question(question) => self.on_question(from, question, now),
            Message::Answer(answer) => self.on_answer(from, answer, now),
            Message::Redirect { claim, holder } => self.on_redirect(claim, *holder, now),
            Message::Resign { claim, to } => self.on_resign(from, claim, to, now),
            Message::Leave { incarnation } => self.on_leave(from, incarnation, now),
            Message::Yield { claim, members } => self.on_yield(from, claim, members, now),
        }
    }

    fn on_timeout(&mut self, now: Moment) {
        self.health.note_lag(now.since(self.timers.deadline()), &self.config, now);
        if self.local.is_stopping() {
            return;
        }
        for timer in Timer::ALL {
            // Looked at one by one: a promotion by the check sets the heartbeat.
            if !self.timers.is_due(timer, now) {
                continue;
            }
            match timer {
                Timer::Check if self.stage.represents() => self.run_round(now),
                Timer::Check => self.check_leader(now),
                Timer::Heartbeat => {
                    let next = now.plus(self.dice.jittered(self.config.heartbeat, 5));
                    self.timers.set_heartbeat(next);
                    self.send_heartbeats(now);
                }
            }
        }
        self.maintain_links(now);
    }

    /// The sensor stops: it resigns and leaves, so that no other waits for it.
    fn on_stop(&mut self) {
        let resign = self.stage.leadership().map(|leadership| Message::Resign {
            claim: leadership.claim(),
            to: leadership.standbys().first().copied(),
        });
        for peer in self.links.peers() {
            if let Some(resign) = &resign {
                self.send(peer, resign.clone());
            }
            self.send(peer, Message::Leave { incarnation: self.local.incarnation() });
        }
        self.stage = Stage::Member;
        self.leader = None;
        self.local.stop();
    }

    /// What to do next; call until `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    /// When [`Input::Timeout`] is due; `None` after [`Input::Stop`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        (!self.local.is_stopping()).then_some(self.timers.deadline())
    }

    /// The order of succession as this sensor sees it.
    fn succession(&self, now: Moment) -> Succession<'_> {
        Succession {
            config: &self.config,
            local: &self.local,
            links: &self.links,
            dialer: &self.dialer,
            roster: &self.roster,
            terms: &self.terms,
            leader: self.leader.as_ref(),
            has_cooled_off: self.cool_off.is_over(&self.config, now),
            stretch: self.health.stretch_percent(&self.config, now),
            patience: self.health.patience(&self.config, 1, now),
            now,
        }
    }

    fn refuse(&mut self) {
        self.counters.count(Counter::Refusal);
    }

    fn send(&mut self, peer: PeerKey, message: Message) {
        if !self.outbox.send(peer, message) {
            self.refuse();
        }
    }

    /// Write `term` to disk, or a higher one that was requested before.
    fn persist(&mut self, term: Term) {
        let term = self.terms.request_write(term);
        self.outbox.push(Output::Persist(Persisted { term, incarnation: self.local.incarnation() }));
    }

    fn report_state(&mut self, now: Moment) {
        let reported = self.outbox.reported();
        let leadership = self.stage.leadership();
        // Spares a copy of the coverage with every message.
        if !leadership.zip(reported).is_some_and(|(leadership, state)| leadership.is_described_by(state)) {
            self.outbox.report(self.state(now));
        }
    }

    fn set_deadline(&mut self, now: Moment) {
        let is_pending = match &self.stage {
            Stage::Representative(leadership) => leadership.lease().is_suspended(),
            Stage::Promoting(_) => false,
            Stage::Member => self
                .leader
                .as_ref()
                .is_none_or(|leader| leader.is_gone() || leader.silence(now) > self.config.heartbeat * 2),
        };
        self.timers.set_deadline(is_pending.then_some(self.config.look));
    }
}
