//! The representative's core: members' connections in, their answers and the domain's state out.
//!
//! Pure but for reading its own store where a member's journal has gone back. The shell gives each stream a
//! [`Link`] ([`Domain::connect`]), feeds what it reads ([`Domain::handle_bytes`]) while
//! [`Domain::has_room`], writes what [`Domain::poll_output`] gives and says when it is written
//! ([`Domain::handle_written`]); whenever something came it takes a commit ([`Domain::take_commit`]), runs it
//! where it may block, and brings it back ([`Domain::handle_committed`]). Acknowledgements follow from that
//! and from nothing else.
//! Rule: one member's frames touch its own rows only; what it says wrongly closes its own connection.
//! Not here: what a hello leads to ([`super::admit`]), what is answered to queries ([`super::view`]).

use super::claims::Claims;
use super::connection::{Connection, Speaker};
use super::cursor::{Feed, Known};
use super::hosts::Hosts;
use super::receiver::{Arrived, Names, Said};
use super::replay::Joining;
use super::store;
use super::store::frame::{Batch, Member};
use super::store::ledger::Ledger;
use super::store::writer::{Commit, Store};
use super::told::Told;
use crate::report::record::joined;
use crate::segments::Error;
use crate::segments::disk::Disk;
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wire::event::Id;
use wire::id::{HostName, SensorKey};
use wire::report::{Allowance, Durable, FromRepresentative, Mark, Run, StoreKey, encode};
use wire::time::{Moment, Time};

/// Calls kept of the domain: some hours of a large one, in about 100 MB at most.
pub const CALLS_MAX: usize = 50_000;
/// Most connections at once.
pub const LINKS_MAX: usize = 4096;

/// How a representative behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// Fencing term under which it serves.
    pub term: u64,
    /// How much each member may send.
    pub allowance: Allowance,
    /// Events asked for, at most, of a member's past that another representative has had already.
    pub backfill: u64,
    /// What the store may use.
    pub store: store::Config,
    /// Hosts whose logs any member may read, though they have a sensor.
    pub shared_hosts: BTreeSet<HostName>,
    /// Calls that are kept.
    pub calls_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            term: 1,
            // Five hundred members that all send at once take 128 MB.
            allowance: Allowance { events_len_bytes: 256 << 10, stride: 1 },
            backfill: 50_000,
            store: store::Config::default(),
            shared_hosts: BTreeSet::new(),
            calls_max: CALLS_MAX,
        }
    }
}

/// Why the store is not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its folder cannot be made.
    #[error("the folder of the domain's events cannot be made: {0}; check the state directory")]
    Folder(std::io::Error),
    /// No key can be drawn for a new store.
    #[error("the system gives no random numbers")]
    Random,
    /// As it says.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The clocks, given from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The clock that never goes back.
    pub moment: Moment,
    /// The time of day.
    pub wall: Time,
}

/// One stream of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub(super) u64);

/// What the shell must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this, then call [`Domain::handle_written`].
    Send(Link, Vec<u8>),
    /// Close the stream, once what was given before is written; the link is gone.
    Close(Link, CompactString),
}

/// What was done since the start; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events stored.
    pub events_total: u64,
    /// Events that came again and were dropped.
    pub duplicates_total: u64,
    /// Events that members told as lost.
    pub lost_total: u64,
    /// Events set aside for the host they claim.
    pub refused_total: u64,
    /// Samples unpacked.
    pub samples_total: u64,
    /// Connections closed for what they said.
    pub closed_total: u64,
    /// Commits.
    pub commits_total: u64,
}

/// The core.
pub struct Domain {
    pub(super) config: Config,
    pub(super) store: Store,
    pub(super) feed: Feed,
    pub(super) joiner: Joiner,
    pub(super) claims: Claims,
    pub(super) told: Told,
    /// Of which sensors marks were forgotten from which event on, as their journals have gone back.
    pub(super) forgotten: Vec<(SensorKey, u64)>,
    /// When the first look at who is there was.
    pub(super) began: Option<Moment>,
    pub(super) hosts: Hosts,
    pub(super) links: BTreeMap<Link, Connection>,
    names: Names,
    pub(super) next_link: u64,
    closing: VecDeque<Output>,
    /// Links that can be written to and are owed something.
    ready: BTreeSet<Link>,
    /// Sensors of which something waits for the disk, and what is under way.
    pub(super) dirty: BTreeSet<SensorKey>,
    pub(super) under_way: Vec<(SensorKey, u64)>,
    pub(super) counts: Counts,
}

impl Domain {
    /// Open the store on this disk. Returns what a person should be told, too.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        fresh_key: StoreKey,
    ) -> Result<(Domain, Vec<String>), Error> {
        let mut joining = Joining(Joiner::new(config.calls_max));
        let (store, notes) = Store::open(disk, config.store, fresh_key, &mut joining)?;
        let domain = Domain {
            feed: Feed::new(store.reader()),
            store,
            joiner: joining.0,
            claims: Claims::new(config.shared_hosts.clone()),
            config,
            told: Told::default(),
            forgotten: Vec::new(),
            began: None,
            hosts: Hosts::default(),
            links: BTreeMap::new(),
            names: Names::default(),
            next_link: 0,
            closing: VecDeque::new(),
            ready: BTreeSet::new(),
            dirty: BTreeSet::new(),
            under_way: Vec::new(),
            counts: Counts::default(),
        };
        domain.learn();
        Ok((domain, notes))
    }

    /// Whether more may be read from members.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.store.has_room()
    }

    /// Bytes of a stream.
    pub fn handle_bytes(&mut self, link: Link, bytes: &[u8], now: Now) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        connection.receiver.push(bytes);
        // The link may be closed by what it says.
        while let Some(connection) = self.links.get_mut(&link) {
            match connection.receiver.take(&mut self.names) {
                Ok(Some(said)) => self.handle(link, said, now),
                Ok(None) => return,
                Err(error) => self.refuse(link, &error.to_string()),
            }
        }
    }

    fn handle(&mut self, link: Link, said: Said, now: Now) {
        if let Said::Hello(hello) = said {
            if let Err(why) = self.admit(link, *hello, now) {
                self.refuse(link, &why.to_string());
            }
            return;
        }
        let Some(connection) = self.links.get(&link) else { return };
        let Some(speaker) = &connection.member else { return };
        let (peer, sensor, name) = (connection.peer, speaker.sensor, speaker.host.clone());
        self.claims.heard(&name, peer, now.moment);
        let share = self.hosts.share_len_bytes();
        let Some(host) = self.hosts.get_mut(&name) else { return };
        host.heard = now.moment;
        match said {
            Said::Sweep(shape, sweep) => match host.sweep(&shape, &sweep, share) {
                Ok(()) => self.counts.samples_total += shape.len() as u64,
                Err(error) => self.refuse(link, &error.to_string()),
            },
            Said::State(state) => host.state = *state,
            Said::Events(arrived) => {
                if let Err(error) = self.store_events(link, sensor, arrived, now) {
                    self.refuse(link, &error.to_string());
                }
            }
            // Said again, so that the member hears at once that it is here.
            Said::Nothing => {
                self.dirty.insert(sensor);
            }
            Said::Leave => {
                self.hosts.depart(&name, true);
                self.claims.release(&name, peer);
            }
            Said::Hello(_) => {}
        }
    }

    /// Store what is new and may be said; count the rest.
    fn store_events(
        &mut self,
        link: Link,
        sensor: SensorKey,
        arrived: Arrived,
        now: Now,
    ) -> Result<(), Error> {
        let Some(speaker) = self.links.get_mut(&link).and_then(|link| link.member.as_mut()) else {
            return Ok(());
        };
        let batches = sort_out(speaker, sensor, arrived, now.wall);
        for mut batch in batches {
            for run in &mut batch.runs {
                let lane = self.store.lane(sensor, run.generation);
                for record in &mut run.records {
                    let id = Id { sensor, generation: lane, offset: record.offset, number: record.number };
                    joined(record, id, &mut self.joiner);
                }
            }
            self.store.append(&mut batch)?;
            self.counts.events_total += batch.len();
            self.counts.lost_total = self.counts.lost_total.saturating_add(batch.lost);
            self.counts.refused_total += batch.refused;
        }
        self.dirty.insert(sensor);
        Ok(())
    }

    /// Close a connection for what it said.
    pub(super) fn refuse(&mut self, link: Link, why: &str) {
        let Some(connection) = self.links.get(&link) else { return };
        tracing::warn!(peer = %connection.peer, why, "a member's report is refused");
        self.counts.closed_total += 1;
        let why: CompactString = why.chars().take(400).collect();
        if !connection.is_writing {
            self.closing.push_back(Output::Send(link, framed(&FromRepresentative::Refused(why.clone()))));
        }
        self.close(link, why);
    }

    /// Close a connection.
    pub(super) fn close(&mut self, link: Link, why: CompactString) {
        self.disconnect(link);
        self.closing.push_back(Output::Close(link, why));
    }

    /// Owe a member a frame.
    pub(super) fn owe(&mut self, link: Link, frame: FromRepresentative) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        // A later acknowledgement or allowance says all of an earlier one.
        let replaced = connection
            .owed
            .iter_mut()
            .find(|owed| std::mem::discriminant(*owed) == std::mem::discriminant(&frame));
        match (replaced, frame) {
            (Some(FromRepresentative::Marks(owed)), FromRepresentative::Marks(later)) => owed.merge(later),
            (Some(owed), frame) => *owed = frame,
            (None, frame) => connection.owed.push_back(frame),
        }
        if !connection.is_writing {
            self.ready.insert(link);
        }
    }

    /// From now on, each member may send so much.
    pub fn set_allowance(&mut self, allowance: Allowance) {
        self.config.allowance = allowance;
        let open: Vec<Link> =
            self.links.iter().filter(|(_, link)| link.member.is_some()).map(|(link, _)| *link).collect();
        for link in open {
            self.owe(link, FromRepresentative::Allow(allowance));
        }
    }

    /// What the shell must do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.closing.pop_front() {
            return Some(output);
        }
        loop {
            let link = self.ready.pop_first()?;
            let Some(connection) = self.links.get_mut(&link) else { continue };
            let Some(frame) = connection.owed.pop_front() else { continue };
            connection.is_writing = true;
            return Some(Output::Send(link, framed(&frame)));
        }
    }

    /// What [`Output::Send`] gave is written.
    pub fn handle_written(&mut self, link: Link) {
        if let Some(connection) = self.links.get_mut(&link) {
            connection.is_writing = false;
            if !connection.owed.is_empty() {
                self.ready.insert(link);
            }
        }
    }

    /// Whether something waits for the disk.
    #[must_use]
    pub fn wants_commit(&self) -> bool {
        self.store.is_waiting()
    }

    /// What waits for the disk, unless a commit is under way.
    ///
    /// # Errors
    /// As [`Store::take_commit`].
    pub fn take_commit(&mut self) -> Result<Option<Commit>, Error> {
        let joiner = &self.joiner;
        let Some(commit) = self.store.take_commit(|| Joining::snapshot_of(joiner))? else {
            if self.store.is_idle() {
                // Something came again, and nothing new with it.
                self.note_dirty();
                self.acknowledge();
            }
            return Ok(None);
        };
        self.note_dirty();
        Ok(Some(commit))
    }

    fn note_dirty(&mut self) {
        let ledger: &Ledger = self.store.ledger();
        let next_of = |sensor: &SensorKey| Some((*sensor, ledger.members.get(sensor)?.next));
        self.under_way = std::mem::take(&mut self.dirty).iter().filter_map(next_of).collect();
    }

    /// A commit was run with success: acknowledge what is in it.
    pub fn handle_committed(&mut self, commit: Commit) {
        self.store.settle(commit);
        self.counts.commits_total += 1;
        self.acknowledge();
    }

    fn acknowledge(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let (store, at) = (self.store.ledger().key, *self.feed.reader().next().borrow());
        let durable: BTreeMap<SensorKey, u64> = std::mem::take(&mut self.under_way).into_iter().collect();
        let told = |(link, connection): (&Link, &Connection)| {
            let sensor = connection.member.as_ref()?.sensor;
            Some((*link, *durable.get(&sensor)?))
        };
        let told: Vec<(Link, u64)> = self.links.iter().filter_map(told).collect();
        for (link, next) in told {
            let mark = Mark { store, at, next };
            self.owe(link, FromRepresentative::Durable(Durable { next, mark }));
        }
        self.tell_standbys(&durable);
    }

    /// What was told of its predecessors' stores while this sensor was a standby.
    pub fn know(&mut self, told: Told) {
        self.told = told;
        self.learn();
    }

    /// Sensors whose journals ended before an event of which there was a mark; each once.
    pub fn take_forgotten(&mut self) -> Vec<(SensorKey, u64)> {
        std::mem::take(&mut self.forgotten)
    }

    /// Tell readers what is known of the sensors.
    pub(super) fn learn(&self) {
        let members = self.store.ledger().members.values();
        let marks = |member: &Member| match member.rewound {
            None => member.marks.iter().copied().chain(self.told.of(member.sensor)).collect(),
            Some(_) => Vec::new(),
        };
        let known: Known = members.map(|member| (member.sensor, (member.from, marks(member)))).collect();
        self.feed.learn(known, self.told.stores().collect());
    }

    /// What was done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let open: u64 = self.links.values().map(|link| link.receiver.duplicates()).sum();
        Counts { duplicates_total: self.counts.duplicates_total + open, ..self.counts }
    }
}

fn framed(frame: &FromRepresentative) -> Vec<u8> {
    let mut out = Vec::new();
    encode(frame, &mut out).expect("answers are short");
    out
}

/// Batches of what is new and may be said, with what may not be counted in them.
fn sort_out(speaker: &mut Speaker, sensor: SensorKey, arrived: Arrived, wall: Time) -> Vec<Batch> {
    let fresh = |first: u64| Batch {
        at: 0,
        sensor,
        first,
        next: first,
        lost: 0,
        refused: 0,
        stored: wall,
        runs: Vec::new(),
    };
    let mut batches = Vec::new();
    let mut batch = fresh(arrived.first);
    batch.lost = arrived.lost;
    for run in split_known(speaker, sensor, arrived.runs) {
        let (run, is_known) = run;
        let len = run.records.len() as u64;
        let may_say = speaker.granted.contains(&run.source.host);
        if is_known || !may_say {
            batch.next += len;
            batch.refused += if may_say { 0 } else { len };
            continue;
        }
        if batch.runs.is_empty() {
            batch.first = batch.next;
        } else if batch.first + batch.len() != batch.next {
            let next = batch.next;
            batches.push(std::mem::replace(&mut batch, fresh(next)));
        }
        batch.next += len;
        batch.runs.push(run);
    }
    batch.next = arrived.next;
    batches.push(batch);
    batches
}

/// The runs, and whether their events were stored before under other numbers.
fn split_known(speaker: &mut Speaker, sensor: SensorKey, runs: Vec<Run>) -> Vec<(Run, bool)> {
    if speaker.known.is_empty() {
        return runs.into_iter().map(|run| (run, false)).collect();
    }
    let mut split = Vec::new();
    for run in runs {
        let Run { generation, source, seen, records } = run;
        for record in records {
            let id = Id { sensor, generation, offset: record.offset, number: record.number };
            let is_known = speaker.known.remove(&id);
            split.push((Run { generation, source: source.clone(), seen, records: vec![record] }, is_known));
        }
    }
    split
}
