//! One sensor's part in its domain: the state, and the doors through which things come in and go out.
//!
//! Pure. Invariant: whatever comes in, first the gap since the last call is looked at (`lease`), so that a
//! sensor that stood still never acts as if it had not.
//! Not here: the rules, each in a file of its own (see the head of `election`).

use super::candidacy::Candidacy;
use super::cool_off::CoolOff;
use super::health::Health;
use super::link::{Dial, Link};
use super::{Config, Figures, Output, Persisted, Rank, Role, State};
use crate::dice::Dice;
use crate::membership::{MEMBERS_MAX, Standing, Table};
use compact_str::CompactString;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{ADDRESSES_MAX, Claim, Load, Member, Message, State as MemberState, Term};
use wire::time::Moment;

/// Most links: every member, and as many again that come and go.
const LINKS_MAX: usize = 2 * MEMBERS_MAX;

/// Most outputs waiting: a heartbeat and a table for every link. The shell takes them after every call; if it
/// does not, messages are dropped and counted as refused, as a network would drop them.
const OUTPUTS_MAX: usize = 4 * LINKS_MAX;

/// Who this sensor is.
#[derive(Clone, Debug)]
pub struct Me {
    /// Its key.
    pub key: PeerKey,
    /// What its certificate says.
    pub standing: Standing,
    /// Where others can dial it, the best first; more than [`ADDRESSES_MAX`] are cut.
    pub addresses: Vec<CompactString>,
}

/// What a representative knows of its reign.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub claim: Claim,
    pub since: Moment,
    pub standbys: Vec<PeerKey>,
    /// Who is heard and obeys, by key, ourselves included.
    pub coverage: Vec<PeerKey>,
    /// How many of them were heard within the patience, ourselves included: what another one's `surely` is compared with.
    pub weight: u16,
    /// How many of them were heard within the suspicion, whatever stretches the patience: what others are told, so that only
    /// what is heard without doubt unseats another.
    pub surely: u16,
    /// How many of those that were asked had lost the former one, ourselves included: as many as are to be expected until they
    /// had the time to say that they obey.
    pub promised: u16,
    pub partial: bool,
    /// A higher term of ours that is being written.
    pub raising: Option<Term>,
    /// Since when a higher term without a holder stands in the way.
    pub contested: Option<Moment>,
    /// Whether we still are the one, if we ask; `None` while we serve.
    pub recheck: Option<Recheck>,
    /// Our stretch as told in the last two rounds of heartbeats.
    pub told: [u32; 2],
    /// Where the round of dialling lost members goes on.
    pub cursor: PeerKey,
}

/// A representative that stood still asks its links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recheck {
    /// Since when it runs without a gap.
    pub since: Moment,
    /// The first question of this asking.
    pub first: u64,
    /// Whether it served only itself when it began to ask.
    pub alone: bool,
}

/// What a sensor is at.
#[derive(Clone, Debug)]
pub(super) enum Duty {
    Member,
    /// Waits for its term to be on disk.
    Promoting(Term),
    Representative(Box<Rule>),
}

/// The representative that is obeyed.
#[derive(Clone, Debug)]
pub(super) struct Following {
    pub heard: Moment,
    pub stretch: u8,
    pub standbys: Vec<PeerKey>,
    pub covered: u16,
    /// It resigned, or came back as another life without a claim.
    pub gone: bool,
    /// It resigned to this sensor.
    pub to_us: bool,
}

/// One sensor's part in its domain. See the head of `election`.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) config: Config,
    pub(super) me: Me,
    pub(super) rank: Rank,
    pub(super) incarnation: u64,
    pub(super) dice: Dice,
    pub(super) started: Moment,
    pub(super) links: BTreeMap<PeerKey, Link>,
    pub(super) dials: BTreeMap<PeerKey, Dial>,
    pub(super) table: Table,
    /// The highest claim ever accepted in this life.
    pub(super) accepted: Option<Claim>,
    pub(super) following: Option<Following>,
    /// The last claim that ended by its holder's word: whoever obeys it still just has not heard.
    pub(super) ended: Option<Claim>,
    /// The highest term ever used or accepted, lives before included: nothing below is accepted again.
    pub(super) floor: Term,
    /// The highest term ever heard of: the next promotion goes above it.
    pub(super) highest: Term,
    /// The highest term asked to be written.
    written: Term,
    pub(super) duty: Duty,
    pub(super) candidacy: Candidacy,
    pub(super) health: Health,
    pub(super) cool_off: CoolOff,
    pub(super) load: Load,
    /// Who said that it goes while another one represents the domain: whoever represents it next tells so.
    pub(super) gone: BTreeSet<PeerKey>,
    /// Who was linked and is no longer, and whom the representative had not told of yet: whoever represents the domain next
    /// knows them.
    pub(super) met: BTreeMap<PeerKey, Member>,
    /// Where a representative is said to be.
    pub(super) pointed: Option<Member>,
    pub(super) next_beat: Moment,
    pub(super) next_seeds: Moment,
    /// What `poll_timeout` said.
    pub(super) planned: Moment,
    /// When anything was last handled.
    pub(super) ran: Moment,
    pub(super) figures: Figures,
    pub(super) stopping: bool,
    stated: Option<State>,
    outputs: VecDeque<Output>,
}

impl Node {
    /// A sensor that starts; `seed` sets its jitter apart from others'.
    #[must_use]
    pub fn new(config: Config, me: Me, persisted: Persisted, seed: u64, now: Moment) -> Node {
        let mut me = me;
        me.addresses.truncate(ADDRESSES_MAX);
        let rank = Rank::of(&config.domain, me.key, me.standing.priority);
        let incarnation = persisted.incarnation.saturating_add(1);
        let mut dice = Dice::new(seed);
        let next_beat = now.plus(dice.span(Duration::ZERO, config.heartbeat));
        let mut node = Node {
            rank,
            incarnation,
            dice,
            started: now,
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            table: Table::new(config.domain.clone()),
            accepted: None,
            following: None,
            ended: None,
            floor: persisted.term,
            highest: persisted.term,
            written: persisted.term,
            duty: Duty::Member,
            candidacy: Candidacy::new(now.plus(config.suspicion)),
            health: Health::default(),
            cool_off: CoolOff::default(),
            load: Load::default(),
            gone: BTreeSet::new(),
            met: BTreeMap::new(),
            pointed: None,
            next_beat,
            next_seeds: now,
            planned: next_beat,
            ran: now,
            figures: Figures::default(),
            stopping: false,
            stated: None,
            outputs: VecDeque::new(),
            config,
            me,
        };
        node.persist(node.floor);
        node.reach(now);
        node.plan(now);
        node
    }

    /// A link to `peer` is up, and its certificate was checked. Once per peer, whoever dialled.
    pub fn handle_connected(&mut self, peer: PeerKey, standing: Standing, now: Moment) {
        self.note_run(now);
        if peer == self.me.key || self.stopping || self.links.len() >= LINKS_MAX {
            self.figures.refused_total += 1;
            self.outputs.push_back(Output::Disconnect(peer));
            return;
        }
        self.dials.remove(&peer);
        self.gone.remove(&peer);
        self.met.remove(&peer);
        let rank = Rank::of(&self.config.domain, peer, standing.priority);
        self.links.insert(peer, Link::new(standing, rank, now));
        self.beat_to(peer, now);
        self.plan(now);
    }

    /// The link to `peer` is gone, or a dial failed.
    pub fn handle_disconnected(&mut self, peer: PeerKey, now: Moment) {
        self.note_run(now);
        if let Some(link) = self.links.remove(&peer) {
            self.remember(link, now);
            // At once if we need it: a link that breaks is most often a process that restarts.
            self.reach(now);
        } else {
            self.dial_failed(peer, now);
        }
        self.plan(now);
    }

    /// A message came over the link to `from`.
    pub fn handle_message(&mut self, from: PeerKey, message: Message, now: Moment) {
        self.note_run(now);
        if !self.links.contains_key(&from) || self.stopping {
            self.figures.refused_total += 1;
            return;
        }
        match message {
            Message::Heartbeat(beat) => self.hear(from, beat, now),
            Message::Members(members) => self.learn(from, members, now),
            Message::Question(question) => self.answer(from, question, now),
            Message::Answer(answer) => self.answered(from, answer, now),
            Message::Redirect { claim, holder } => self.redirected(claim, *holder, now),
            Message::Resign { claim, to } => self.resigned(from, claim, to, now),
            Message::Leave { incarnation } => self.left(from, incarnation, now),
            Message::Yield { claim, members } => self.yielded(from, claim, members, now),
        }
        self.tell_state(now);
        self.plan(now);
    }

    /// The moment of [`Node::poll_timeout`] came, or passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        let late = now.since(self.planned);
        self.health.note_lag(late, &self.config, now);
        self.note_run(now);
        if self.stopping {
            return;
        }
        match self.duty {
            Duty::Representative(_) => self.govern(now),
            Duty::Member | Duty::Promoting(_) => self.attend(now),
        }
        if now >= self.next_beat {
            self.next_beat = now.plus(self.dice.jittered(self.config.heartbeat, 5));
            self.beat(now);
        }
        self.reach(now);
        self.tell_state(now);
        self.plan(now);
    }

    /// `persisted` is on disk.
    pub fn handle_persisted(&mut self, persisted: Persisted, now: Moment) {
        self.note_run(now);
        if !self.stopping {
            self.durable(persisted.term, now);
            self.tell_state(now);
        }
        self.plan(now);
    }

    /// How busy the host is.
    pub fn handle_load(&mut self, load: Load) {
        self.load = load;
    }

    /// The daemon stops: say so, so that no one waits. Send what `poll_output` gives, then stop.
    pub fn handle_resign(&mut self, now: Moment) {
        self.note_run(now);
        let resign = match &self.duty {
            Duty::Representative(rule) => {
                Some(Message::Resign { claim: rule.claim, to: rule.standbys.first().copied() })
            }
            Duty::Member | Duty::Promoting(_) => None,
        };
        let peers: Vec<_> = self.links.keys().copied().collect();
        for peer in peers {
            if let Some(resign) = &resign {
                self.send(peer, resign.clone());
            }
            self.send(peer, Message::Leave { incarnation: self.incarnation });
        }
        self.duty = Duty::Member;
        self.following = None;
        self.stopping = true;
        self.tell_state(now);
    }

    /// What to do next; call until `None` after every other call.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Node::handle_timeout`]; `None` once it stops.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        (!self.stopping).then_some(self.planned)
    }

    /// How things stand at `now`.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        match &self.duty {
            Duty::Representative(rule) => State {
                role: Role::Representative,
                representative: Some(self.me.key),
                term: rule.claim.term,
                partial: rule.partial,
                coverage: rule.coverage.clone(),
            },
            Duty::Member | Duty::Promoting(_) => {
                let standby = self.following.as_ref().is_some_and(|f| f.standbys.contains(&self.me.key));
                let heard = self.accepted.filter(|_| !self.is_lost(now));
                State {
                    role: if standby { Role::Standby } else { Role::Member },
                    representative: heard.map(|claim| claim.holder),
                    term: self.accepted.map_or(self.floor, |claim| claim.term),
                    partial: false,
                    coverage: Vec::new(),
                }
            }
        }
    }

    /// The claim this sensor obeys, or makes: the highest it accepted.
    #[must_use]
    pub fn accepted(&self) -> Option<Claim> {
        self.accepted
    }

    /// The domain's members, as far as this sensor knows.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Who would follow, first first, as far as this sensor was told.
    #[must_use]
    pub fn standbys(&self) -> &[PeerKey] {
        match &self.duty {
            Duty::Representative(rule) => &rule.standbys,
            Duty::Member | Duty::Promoting(_) => {
                self.following.as_ref().map_or(&[], |following| following.standbys.as_slice())
            }
        }
    }

    /// How busy `peer` is, if it is connected.
    #[must_use]
    pub fn load_of(&self, peer: &PeerKey) -> Option<Load> {
        self.links.get(peer).map(|link| link.load)
    }

    /// The figures as of `now`.
    #[must_use]
    pub fn figures(&self, now: Moment) -> Figures {
        Figures {
            term: self.floor,
            stretch_percent: self.stretch(now),
            loss_permille: self.health.loss_permille(),
            lag: self.health.lag_at(&self.config, now),
            links: self.links.len(),
            members: self.table.count(),
            members_refused_total: self.table.refused_total(),
            ..self.figures
        }
    }

    /// This sensor as others are told of it.
    pub(super) fn about_us(&self) -> Member {
        Member {
            key: self.me.key,
            incarnation: self.incarnation,
            state: MemberState::Alive,
            host: self.me.standing.host.clone(),
            may_represent: self.me.standing.may_represent,
            priority: self.me.standing.priority,
            addresses: self.me.addresses.clone(),
        }
    }

    pub(super) fn send(&mut self, peer: PeerKey, message: Message) {
        if self.outputs.len() < OUTPUTS_MAX {
            self.outputs.push_back(Output::Send(peer, message));
        } else {
            self.figures.refused_total += 1;
        }
    }

    /// For outputs that must not be lost; they are few.
    pub(super) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Write `term`, or a higher one that was written before.
    pub(super) fn persist(&mut self, term: Term) {
        self.written = self.written.max(term);
        self.output(Output::Persist(Persisted { term: self.written, incarnation: self.incarnation }));
    }

    pub(super) fn tell_state(&mut self, now: Moment) {
        if let (Duty::Representative(rule), Some(stated)) = (&self.duty, &self.stated)
            && stated.role == Role::Representative
            && (stated.term, stated.partial) == (rule.claim.term, rule.partial)
            && stated.coverage == rule.coverage
        {
            return;
        }
        let state = self.state(now);
        if self.stated.as_ref() != Some(&state) {
            self.stated = Some(state.clone());
            self.output(Output::State(state));
        }
    }

    /// By how many per cent our timers are multiplied now.
    pub(super) fn stretch(&self, now: Moment) -> u32 {
        self.health.stretch_percent(&self.config, now)
    }

    /// The same, without a stall that is over: others wait so much longer for this sensor.
    pub(super) fn excuse(&self, now: Moment) -> u32 {
        self.health.excuse_percent(&self.config, now)
    }

    /// The silence after which a peer that tells `stretch` is suspected.
    pub(super) fn patience(&self, stretch: u8, now: Moment) -> Duration {
        let told = if self.config.mechanisms.local_health { u32::from(stretch) * 100 } else { 100 };
        self.config.suspicion * self.excuse(now).max(told) / 100
    }

    fn plan(&mut self, now: Moment) {
        let soon = match &self.duty {
            Duty::Representative(rule) => rule.recheck.is_some(),
            Duty::Promoting(_) => false,
            Duty::Member => self.following.as_ref().is_none_or(|following| {
                following.gone || now.since(following.heard) > self.config.heartbeat * 2
            }),
        };
        let look = if soon { self.ran.plus(self.config.look) } else { self.next_beat };
        self.planned = self.next_beat.min(look);
    }
}
