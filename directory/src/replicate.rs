//! Replication between one to seven directories: what one accepts from representatives and exchanges with its
//! peers.
//!
//! ```text
//! representative -> this   statement                 this -> others   hints (at most 50 ms later)
//! other -> this            fetch of what it lacks    this -> other    items with what is left of their leases
//! each 5 s, to each other  digest; the answer lists what differs; what is missing here is fetched
//! ```
//! Pure: callers pass `now`, verified statements and a seed, and send what [`Replicas::poll_output`] returns.
//! Invariants: only a new number from the representative itself starts a lease. An item from another
//! directory ends no later than there: the whole time since the request is subtracted, and so is the time for
//! which this directory was paused while a statement waited. Every collection in this file is bounded.
//! Not here: statements of representatives (`intake`), the table (`registry`, `replica_view`), signatures and
//! streams (the shell).

use crate::admission::{self, Admission};
use crate::opened::OpenedItem;
use crate::peer::{Ask, Peer};
use crate::registry::Registry;
use crate::registry::outcome;
use crate::replica_view::BUCKETS_U16;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::replication::{
    DETAILS_MAX, Detail, FETCH_MAX, ITEMS_LEN_MAX_BYTES, ReplicaAnswer, ReplicaQuestion,
};
use wire::time::Moment;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most peer directories: each of the seven stores everything, and each statement already travels six times.
pub const PEERS_MAX: usize = 6;

/// Interval at which each peer is sent a digest, with a jitter of a tenth.
pub const DIGEST_INTERVAL: Duration = Duration::from_secs(5);

/// How long changes are gathered before the peers are notified: many statements share a message, and the
/// delay is not noticeable.
pub const HINT_DELAY: Duration = Duration::from_millis(50);

/// Timeout of an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// Time after which a directory that reached no peer answers from its own table: by then every living
/// representative has stated its record twice.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest interval between two looks at the clock, so that a pause of the process is noticed.
pub const TICK_INTERVAL: Duration = Duration::from_secs(1);

/// Actions for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a question to another directory. Pass the answer to [`Replicas::handle_answer`] with this number,
    /// or call [`Replicas::handle_failure`] if there is none.
    Ask {
        /// Key of the other directory.
        to: PeerKey,
        /// Number of the question.
        id: u64,
        question: ReplicaQuestion,
    },
    /// The lease of this domain ended; for the log.
    Ended(DomainName),
}

/// Why a statement, or a question of another directory, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A record must come on the connection of the representative that signed it.
    #[error("a statement of {signer} came from {from}; expected it from its signer alone")]
    NotOwn {
        /// Peer that sent the record.
        from: PeerKey,
        /// Representative that signed the record.
        signer: PeerKey,
    },
    /// The domain is not admitted, or exceeds its rate limit.
    #[error(transparent)]
    Admission(#[from] admission::Refused),
    /// The table refuses the statement.
    #[error(transparent)]
    Registry(#[from] outcome::Refused),
    /// Only configured directories may ask for replicas.
    #[error(
        "{from} is no directory that this one knows; list it among the peers of the other's configuration"
    )]
    NotAPeer {
        /// Peer that asked.
        from: PeerKey,
    },
}

/// More peer directories than [`PEERS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} other directories; expected at most {PEERS_MAX}")]
pub struct TooManyPeers {
    /// Number of peers.
    pub found: usize,
}

/// The table and its replication with the peer directories.
#[derive(Debug)]
pub struct Replicas {
    pub(crate) registry: Registry,
    pub(crate) admission: Admission,
    pub(crate) peers: Vec<Peer>,
    /// Domains changed by their representatives; the peers are not notified yet.
    pub(crate) changed: BTreeSet<DomainName>,
    pub(crate) hint_at: Option<Moment>,
    outputs: VecDeque<Output>,
    asked_total: u64,
    seed: u64,
    drawn: u64,
    /// When the clock was last read; `None` before the first time.
    pub(crate) ticked: Option<Moment>,
    /// Length of the last pause, and until when statements may have waited through it.
    pub(crate) away: Option<(Duration, Moment)>,
    /// When the directory settles at the latest: until then an unknown domain may still be learnt. `None`
    /// once settled.
    settles_at: Option<Moment>,
}

impl Replicas {
    /// A directory without peers that accepts only statements of its own process: settled at once.
    #[must_use]
    pub fn alone(registry: Registry) -> Replicas {
        Replicas {
            registry,
            admission: Admission::default(),
            peers: Vec::new(),
            changed: BTreeSet::new(),
            hint_at: None,
            outputs: VecDeque::new(),
            asked_total: 0,
            seed: 0,
            drawn: 0,
            ticked: None,
            away: None,
            settles_at: None,
        }
    }

    /// A directory that starts at `now` with `peers`, and with the snapshot's content in `registry`. `seed`
    /// randomizes the digest schedule.
    ///
    /// # Errors
    /// If there are too many peers.
    pub fn among(
        registry: Registry,
        admission: Admission,
        peers: &[PeerKey],
        seed: u64,
        now: Moment,
    ) -> Result<Replicas, TooManyPeers> {
        if peers.len() > PEERS_MAX {
            return Err(TooManyPeers { found: peers.len() });
        }
        let settles_at = Some(now.plus(SETTLE_TIMEOUT));
        let ticked = Some(now);
        let mut replicas = Replicas { admission, seed, settles_at, ticked, ..Replicas::alone(registry) };
        // At once: the sooner the peers answer, the sooner this directory can.
        replicas.peers = peers.iter().map(|&key| Peer::new(key, now)).collect();
        Ok(replicas)
    }

    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The table, for statements of this process and for the content of a snapshot.
    pub fn registry_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Admission list and rate limits.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Replace the list that commands write. Domains that are no longer admitted are removed.
    pub fn admit(&mut self, kept: admission::List) {
        for domain in self.admission.replace_kept(kept) {
            self.registry.forget(&domain);
        }
    }

    /// Whether an unknown domain is unknown to all directories, as far as this one can know; before that it
    /// is unknown **yet**.
    #[must_use]
    pub fn is_settled(&self, now: Moment) -> bool {
        self.settles_at.is_none_or(|at| at <= now)
    }

    /// Answer a question of another directory.
    ///
    /// # Errors
    /// If the other directory is not configured as a peer.
    pub fn handle_question(
        &mut self,
        from: PeerKey,
        question: ReplicaQuestion,
        now: Moment,
    ) -> Result<ReplicaAnswer<OpenedItem>, Refused> {
        let Some(at) = self.peers.iter().position(|peer| peer.key == from) else {
            return Err(Refused::NotAPeer { from });
        };
        Ok(match question {
            ReplicaQuestion::Hints(details) => {
                self.want(at, details);
                self.fetch(at, now);
                ReplicaAnswer::Taken
            }
            ReplicaQuestion::Digest { start, buckets, sums } => {
                self.registry.expire(now).into_iter().for_each(|domain| self.ended(domain));
                let (details, buckets) = self.registry.details(start, buckets, &sums, DETAILS_MAX);
                ReplicaAnswer::Details { details, buckets, settled: self.is_settled(now) }
            }
            ReplicaQuestion::Fetch(domains) => self.items(&domains, now),
        })
    }

    /// Process the answer of another directory to question `id`. An answer after the timeout is ignored.
    pub fn handle_answer(&mut self, from: PeerKey, id: u64, answer: ReplicaAnswer<OpenedItem>, now: Moment) {
        let Some(at) = self.peers.iter().position(|peer| peer.key == from) else { return };
        let Some(ask) = self.peers[at].asks.remove(&id) else { return };
        let elapsed = now.since(ask.at());
        match (ask, answer) {
            (
                Ask::Digest { start, buckets, .. },
                ReplicaAnswer::Details { details, buckets: seen, settled },
            ) => {
                self.want(at, details);
                let peer = &mut self.peers[at];
                // At least one, so that a round ends whatever the peer answers.
                let seen = seen.max(1);
                peer.rest = (seen < buckets).then(|| ((start + seen) % BUCKETS_U16, buckets - seen));
                peer.settled = settled;
                peer.heard = true;
            }
            (Ask::Fetch { details, .. }, ReplicaAnswer::Items { items, domains: looked_at }) => {
                for item in items {
                    self.merge(item, elapsed, now);
                }
                let looked_at = usize::try_from(looked_at).unwrap_or(usize::MAX).max(1);
                details.into_iter().skip(looked_at).for_each(|detail| self.peers[at].want(detail));
            }
            // The answer is of another kind than the question; ignore it.
            (Ask::Digest { .. } | Ask::Fetch { .. } | Ask::Hints { .. }, _) => {}
        }
        // A domain is fetched from one peer at a time; now another peer may have to be asked.
        (0..self.peers.len()).for_each(|at| self.fetch(at, now));
        self.finish_round(at, now);
    }

    /// Process the failure of question `id` to `from`: the connection closed, or the answer cannot be
    /// trusted.
    pub fn handle_failure(&mut self, from: PeerKey, id: u64) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.key == from) {
            peer.asks.remove(&id);
            // The requested domains will differ again in the next digest.
            peer.heard = false;
        }
    }

    /// Process the connection of another directory: a digest is due at once.
    pub fn handle_connected(&mut self, peer: PeerKey, now: Moment) {
        if let Some(peer) = self.peers.iter_mut().find(|known| known.key == peer) {
            peer.digest_at = now;
        }
    }

    /// Process the time `now`: expire leases and open questions, send the digests and hints that are due.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.look_at_clock(now);
        for domain in self.registry.expire(now) {
            self.ended(domain);
        }
        if self.settles_at.is_some_and(|at| at <= now) {
            self.settles_at = None;
        }
        if self.hint_at.is_some_and(|at| at <= now) {
            self.hint(now);
        }
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            if peer.give_up(now, ANSWER_TIMEOUT) {
                peer.heard = false;
            }
            if peer.digest_at <= now {
                self.peers[at].digest_at = now.plus(self.next_interval());
                let start = u16::try_from(self.draw() % u64::from(BUCKETS_U16)).expect("below a thousand");
                self.ask_digest(at, start, BUCKETS_U16, now);
            }
            self.fetch(at, now);
        }
    }

    /// When to call [`Replicas::handle_timeout`] next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let peers = self.peers.iter().flat_map(|peer| {
            let given_up = peer.asks.values().map(|ask| ask.at().plus(ANSWER_TIMEOUT));
            given_up.chain([peer.digest_at])
        });
        let tick = self.ticked.map(|ticked| ticked.plus(TICK_INTERVAL));
        let own = [self.registry.next_expiry(), self.settles_at, self.hint_at, tick];
        own.into_iter().flatten().chain(peers).min()
    }

    /// The next action; `None` if there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether [`Replicas::poll_output`] has an action.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    fn ended(&mut self, domain: DomainName) {
        // Bounded in case the shell never polls: no more than the domains in the table.
        if self.outputs.len() < crate::registry::DOMAINS_MAX {
            self.outputs.push_back(Output::Ended(domain));
        }
    }

    fn hint(&mut self, now: Moment) {
        self.hint_at = None;
        let changed: Vec<DomainName> = std::mem::take(&mut self.changed).into_iter().collect();
        for part in changed.chunks(DETAILS_MAX) {
            let details: Vec<Detail> =
                part.iter().filter_map(|domain| self.registry.detail(domain)).collect();
            for at in 0..self.peers.len() {
                if self.peers[at].may_hint() {
                    let question = ReplicaQuestion::Hints(details.clone());
                    self.ask(at, Ask::Hints { at: now }, question);
                }
            }
        }
    }

    fn ask_digest(&mut self, at: usize, start: u16, buckets: u16, now: Moment) {
        if self.peers[at].asks.values().any(|ask| matches!(ask, Ask::Digest { .. })) {
            return;
        }
        let question = ReplicaQuestion::Digest { start, buckets, sums: self.registry.sums().to_vec() };
        self.ask(at, Ask::Digest { at: now, start, buckets }, question);
    }

    fn ask(&mut self, at: usize, ask: Ask, question: ReplicaQuestion) {
        self.asked_total += 1;
        let id = self.asked_total;
        let peer = &mut self.peers[at];
        peer.asks.insert(id, ask);
        self.outputs.push_back(Output::Ask { to: peer.key, id, question });
    }

    /// Note what that peer has and this directory lacks.
    fn want(&mut self, at: usize, details: Vec<Detail>) {
        for detail in details.into_iter().take(DETAILS_MAX) {
            let admitted = self.admission.knows(&detail.domain);
            if admitted && self.registry.lacks(&detail) {
                self.peers[at].want(detail);
            }
        }
    }

    /// Request the missing domains, up to the limit of open questions.
    fn fetch(&mut self, at: usize, now: Moment) {
        while self.peers[at].may_fetch() && !self.peers[at].wanted.is_empty() {
            let mut details = Vec::new();
            let mut later = BTreeMap::new();
            while details.len() < FETCH_MAX
                && let Some((domain, detail)) = self.peers[at].wanted.pop_first()
            {
                // A fetch from another peer may bring it, but perhaps an older version.
                if self.peers.iter().any(|peer| peer.is_fetching(&domain)) {
                    later.insert(domain, detail);
                } else if self.registry.lacks(&detail) {
                    details.push(detail);
                }
            }
            self.peers[at].wanted.append(&mut later);
            if details.is_empty() {
                return;
            }
            let domains = details.iter().map(|detail| detail.domain.clone()).collect();
            self.ask(at, Ask::Fetch { at: now, details }, ReplicaQuestion::Fetch(domains));
        }
    }

    fn items(&self, domains: &[DomainName], now: Moment) -> ReplicaAnswer<OpenedItem> {
        let (mut items, mut len_bytes, mut looked_at) = (Vec::new(), 0, 0);
        for domain in domains.iter().take(FETCH_MAX) {
            if len_bytes >= ITEMS_LEN_MAX_BYTES {
                break;
            }
            let of_domain = self.registry.items(domain, now);
            len_bytes += of_domain.iter().map(OpenedItem::len_bytes).sum::<usize>();
            items.extend(of_domain);
            looked_at += 1;
        }
        ReplicaAnswer::Items { items, domains: looked_at }
    }

    fn merge(&mut self, item: OpenedItem, elapsed: Duration, now: Moment) {
        let (domain, root) = item.domain_and_root();
        let admitted = root.is_some_and(|root| self.admission.check(domain, root).is_ok());
        if !admitted {
            return;
        }
        if self.registry.merge(item, elapsed, now).is_err() {
            // Another directory accepted the item and this one does not: the counter shows it.
            self.registry.count_refused();
        }
    }

    /// If a part of a digest is completely processed, request the next part, or note after the last one that
    /// nothing is missing.
    fn finish_round(&mut self, at: usize, now: Moment) {
        let peer = &mut self.peers[at];
        let is_busy = !peer.wanted.is_empty()
            || peer.asks.values().any(|ask| matches!(ask, Ask::Fetch { .. } | Ask::Digest { .. }));
        if is_busy || !peer.heard {
            return;
        }
        peer.heard = false;
        if let Some((start, buckets)) = peer.rest.take() {
            self.ask_digest(at, start, buckets, now);
        } else if peer.settled {
            self.settles_at = None;
        }
    }

    /// Time to the next digest, with jitter, so that the digests to the peers do not coincide.
    fn next_interval(&mut self) -> Duration {
        let tenth = u64::try_from(DIGEST_INTERVAL.as_millis()).expect("short") / 10;
        DIGEST_INTERVAL - Duration::from_millis(tenth) + Duration::from_millis(self.draw() % (2 * tenth))
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        xxh3_64_with_seed(&self.drawn.to_le_bytes(), self.seed)
    }
}
