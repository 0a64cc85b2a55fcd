//! Core of the representative: takes the bytes of members' connections, and produces answers to them and the
//! domain's state.
//!
//! Pure, except that it reads its own store where a member's journal has gone back. The shell registers each
//! stream as a [`Link`] ([`Domain::connect`]), passes on what it reads ([`Domain::handle_bytes`]) while
//! [`Domain::has_room`], writes the output of [`Domain::poll_output`] and confirms each write
//! ([`Domain::handle_written`]). Whenever something was received it takes a commit ([`Domain::take_commit`]),
//! runs it where it may block, and hands it back ([`Domain::handle_committed`]). Acknowledgements are sent
//! after that and at no other time.
//! Rule: the frames of one member change its own rows only; an invalid frame closes its own connection only.
//! Not here: what a hello leads to ([`super::admit`]), the results of queries ([`super::view`]).

use super::batches::split_into_batches;
use super::claims::Claims;
use super::connection::Connection;
use super::copying::Copying;
use super::cursor::{Feed, SensorMarks};
use super::hosts::Hosts;
use super::receiver::{Message, Names, NewEvents};
use super::record::joined;
use super::replay::CallReplay;
use super::store;
use super::store::frame::Member;
use super::store::ledger::Ledger;
use super::store::writer::{Commit, Store};
use super::watermarks::Watermarks;
use crate::history::copied::{Copied, Kind, OfKind};
use crate::segments::Error;
use crate::segments::disk::Disk;
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wire::event::Id;
use wire::id::{HostName, SensorKey};
use wire::report::calls::FetchCalls;
use wire::report::minutes::Fetch;
use wire::report::{Allowance, Durable, FromRepresentative, Mark, StoreKey, encode};
use wire::time::{Moment, Time};

/// Most calls stored of the domain: some hours of a large domain, in about 100 MB at most.
pub const CALLS_MAX: usize = 50_000;
/// Most connections at once.
pub const LINKS_MAX: usize = 4096;

/// Configuration of a representative.
#[derive(Clone, Debug)]
pub struct Config {
    /// Fencing term under which it serves.
    pub term: u64,
    /// How much each member may send.
    pub allowance: Allowance,
    /// Most events of a member's past that it is requested to send although another representative has
    /// acknowledged them.
    pub backfill: u64,
    /// Limits of the store.
    pub store: store::Config,
    /// Hosts whose logs any member may read, although they have a sensor of their own.
    pub shared_hosts: BTreeSet<HostName>,
    /// Most calls stored.
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

/// Reason why the store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder could not be created.
    #[error("the folder of the domain's events cannot be made: {0}; check the state directory")]
    Folder(std::io::Error),
    /// The operating system returned no random number for the key of a new store.
    #[error("the system gives no random numbers")]
    Random,
    #[error(transparent)]
    Store(#[from] Error),
}

/// The time, passed in by the shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic clock.
    pub moment: Moment,
    /// Time of day.
    pub wall: Time,
}

/// Handle of one stream of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub(super) u64);

/// Action that the shell must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write this, then call [`Domain::handle_written`].
    Send(Link, Vec<u8>),
    /// Close the stream after everything given before is written; the link is no longer valid.
    Close(Link, CompactString),
    /// Store this; if there is no room, call [`Domain::handle_not_copied`].
    Copy(Copied),
    /// Read this from the copies, then call [`Domain::send_answer`].
    Fetch(Link, Kind, Fetch),
    /// Read these calls from the domain's history, then call [`Domain::send_calls`].
    FetchCalls(Link, FetchCalls),
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub events_total: u64,
    /// Events that were received again and dropped.
    pub duplicates_total: u64,
    /// Events that members reported as lost.
    pub lost_total: u64,
    /// Events refused because their member may not report for the host that they name.
    pub refused_total: u64,
    /// Samples decoded.
    pub samples_total: u64,
    /// Connections closed because of an invalid frame or a refused hello.
    pub closed_total: u64,
    /// Commits that succeeded.
    pub commits_total: u64,
}

pub struct Domain {
    pub(super) config: Config,
    pub(super) store: Store,
    pub(super) feed: Feed,
    pub(super) joiner: Joiner,
    pub(super) claims: Claims,
    pub(super) watermarks: Watermarks,
    /// Sensors whose watermarks beyond an event were forgotten because their journals went back, with that
    /// event.
    pub(super) forgotten: Vec<(SensorKey, u64)>,
    /// When the roles and hosts of the election were passed in for the first time.
    pub(super) began: Option<Moment>,
    pub(super) hosts: Hosts,
    pub(super) copying: OfKind<Copying>,
    /// Whether the domain's calls are stored.
    pub(super) has_call_history: bool,
    pub(super) links: BTreeMap<Link, Connection>,
    pub(super) names: Names,
    pub(super) next_link: u64,
    pub(super) closing: VecDeque<Output>,
    /// Links with frames to send and no write in progress.
    ready: BTreeSet<Link>,
    /// Sensors with events that wait for a commit; then sensors with events in the commit that is running,
    /// and how far.
    pub(super) dirty: BTreeSet<SensorKey>,
    pub(super) under_way: Vec<(SensorKey, u64)>,
    pub(super) counts: Counts,
}

impl Domain {
    /// Opens the store on this disk. Also returns notes to log for the operator.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(
        disk: Arc<dyn Disk>,
        config: Config,
        fresh_key: StoreKey,
    ) -> Result<(Domain, Vec<String>), Error> {
        let mut joining = CallReplay(Joiner::new(config.calls_max));
        let (store, notes) = Store::open(disk, config.store, fresh_key, &mut joining)?;
        let domain = Domain {
            feed: Feed::new(store.reader()),
            store,
            joiner: joining.0,
            claims: Claims::new(config.shared_hosts.clone()),
            config,
            watermarks: Watermarks::default(),
            forgotten: Vec::new(),
            began: None,
            hosts: Hosts::default(),
            copying: OfKind::default(),
            has_call_history: false,
            links: BTreeMap::new(),
            names: Names::default(),
            next_link: 0,
            closing: VecDeque::new(),
            ready: BTreeSet::new(),
            dirty: BTreeSet::new(),
            under_way: Vec::new(),
            counts: Counts::default(),
        };
        domain.publish_marks();
        Ok((domain, notes))
    }

    /// Returns whether more may be read from members.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.store.has_room()
    }

    /// Handles bytes received on a stream.
    pub fn handle_bytes(&mut self, link: Link, bytes: &[u8], now: Now) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        connection.receiver.push(bytes);
        // Handling a frame may close the link.
        while let Some(connection) = self.links.get_mut(&link) {
            match connection.receiver.take(&mut self.names) {
                Ok(Some(message)) => self.handle(link, message, now),
                Ok(None) => return,
                Err(error) => self.refuse(link, &error.to_string()),
            }
        }
    }

    fn handle(&mut self, link: Link, message: Message, now: Now) {
        if let Message::Hello(hello) = message {
            if let Err(why) = self.admit(link, *hello, now) {
                self.refuse(link, &why.to_string());
            }
            return;
        }
        let Some(connection) = self.links.get(&link) else { return };
        let Some(speaker) = &connection.member else { return };
        let (peer, sensor, name) = (connection.peer, speaker.sensor, speaker.host.clone());
        self.claims.renew(&name, peer, now.moment);
        let share = self.hosts.share_len_bytes();
        let Some(host) = self.hosts.get_mut(&name) else { return };
        host.heard = now.moment;
        match message {
            Message::Sweep(shape, sweep) => match host.sweep(&shape, &sweep, share) {
                Ok(()) => self.counts.samples_total += shape.len() as u64,
                Err(error) => self.refuse(link, &error.to_string()),
            },
            Message::State(state) => host.state = *state,
            Message::Events(new_events) => {
                if let Err(error) = self.store_events(link, sensor, new_events, now) {
                    self.refuse(link, &error.to_string());
                }
            }
            // Acknowledged again, so that the member learns at once that the events are stored.
            Message::Nothing => {
                self.dirty.insert(sensor);
            }
            Message::Leave => {
                self.hosts.depart(&name, true);
                self.claims.release(&name, peer);
            }
            Message::Answer(answer) => {
                if let Err(why) = self.handle_answer(link, answer, now) {
                    self.refuse(link, &why);
                }
            }
            Message::Fetch(kind, fetch) => self.handle_fetch(link, kind, fetch),
            Message::FetchCalls(fetch) => self.handle_fetch_calls(link, fetch),
            Message::Hello(_) => {}
        }
    }

    /// Stores the events that are new and permitted; counts the rest.
    fn store_events(
        &mut self,
        link: Link,
        sensor: SensorKey,
        new_events: NewEvents,
        now: Now,
    ) -> Result<(), Error> {
        let Some(speaker) = self.links.get_mut(&link).and_then(|link| link.member.as_mut()) else {
            return Ok(());
        };
        let batches = split_into_batches(speaker, sensor, new_events, now.wall);
        for mut batch in batches {
            for run in &mut batch.runs {
                let lane = self.store.lane(sensor, run.generation);
                for record in &mut run.records {
                    let (offset, number) = (record.offset, record.number);
                    let id = Id { sensor, generation: run.generation, offset, number };
                    joined(record, (id, lane), &mut self.joiner);
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

    /// Closes a connection because of what it sent.
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

    /// Closes a connection.
    pub(super) fn close(&mut self, link: Link, why: CompactString) {
        self.disconnect(link);
        self.closing.push_back(Output::Close(link, why));
    }

    /// Queues a frame for a member.
    pub(super) fn queue_frame(&mut self, link: Link, frame: FromRepresentative) {
        let Some(connection) = self.links.get_mut(&link) else { return };
        // A later acknowledgement or allowance replaces an earlier one.
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

    /// Changes how much each member may send, and notifies the members.
    pub fn set_allowance(&mut self, allowance: Allowance) {
        self.config.allowance = allowance;
        let open: Vec<Link> =
            self.links.iter().filter(|(_, link)| link.member.is_some()).map(|(link, _)| *link).collect();
        for link in open {
            self.queue_frame(link, FromRepresentative::Allow(allowance));
        }
    }

    /// Returns the next action for the shell.
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

    /// Handles the confirmation that the frame of [`Output::Send`] is written.
    pub fn handle_written(&mut self, link: Link) {
        if let Some(connection) = self.links.get_mut(&link) {
            connection.is_writing = false;
            if !connection.owed.is_empty() {
                self.ready.insert(link);
            }
        }
    }

    /// Returns whether something waits for a commit.
    #[must_use]
    pub fn wants_commit(&self) -> bool {
        self.store.is_waiting()
    }

    /// Takes what waits for the disk as a commit, unless a commit is running.
    ///
    /// # Errors
    /// As [`Store::take_commit`].
    pub fn take_commit(&mut self) -> Result<Option<Commit>, Error> {
        let joiner = &self.joiner;
        let Some(commit) = self.store.take_commit(|| CallReplay::snapshot_of(joiner))? else {
            if self.store.is_idle() {
                // Events were received again, and nothing new with them.
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

    /// Handles a commit that succeeded: acknowledges the events in it.
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
        let acknowledged = |(link, connection): (&Link, &Connection)| {
            let sensor = connection.member.as_ref()?.sensor;
            Some((*link, *durable.get(&sensor)?))
        };
        let acknowledged: Vec<(Link, u64)> = self.links.iter().filter_map(acknowledged).collect();
        for (link, next) in acknowledged {
            let mark = Mark { store, at, next };
            self.queue_frame(link, FromRepresentative::Durable(Durable { next, mark }));
        }
        self.send_watermarks(&durable);
    }

    /// Takes over the watermarks of earlier stores that this sensor received as a standby.
    pub fn set_watermarks(&mut self, watermarks: Watermarks) {
        self.watermarks = watermarks;
        self.publish_marks();
    }

    /// Takes the sensors whose journals ended before an event that a watermark names; each is returned once.
    pub fn take_forgotten(&mut self) -> Vec<(SensorKey, u64)> {
        std::mem::take(&mut self.forgotten)
    }

    /// Publishes to readers what is known of each sensor's events.
    pub(super) fn publish_marks(&self) {
        let members = self.store.ledger().members.values();
        let marks = |member: &Member| match member.rewound {
            None => member.marks.iter().copied().chain(self.watermarks.of(member.sensor)).collect(),
            Some(_) => Vec::new(),
        };
        let known: SensorMarks =
            members.map(|member| (member.sensor, (member.from, marks(member)))).collect();
        self.feed.set_marks(known, self.watermarks.stores().collect());
    }

    /// Returns the counters.
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
