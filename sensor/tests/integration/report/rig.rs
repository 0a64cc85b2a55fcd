//! A domain in memory: members with real journals, a representative with a real store, disks that lose power,
//! and bytes that move only when the test moves them.

use crate::simulated::{Random, Simulated};
use log_filters::found::{Change, Found};
use sensor::journal::fold::Replay;
use sensor::journal::frame::{Batch, Birth, Identity, Print, Record};
use sensor::journal::writer::{Journal, Memories};
use sensor::journal::{self};
use sensor::report::outbox::Outbox;
use sensor::report::sender::{Identity as Myself, JournalRange, Sender};
use sensor::representative::domain::{Config, Domain, Link, Now, Output};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::call::{Authority, Keys, Naming};
use wire::credential::Serial;
use wire::event::{Content, Id, Kind, Outcome};
use wire::id::{Generation, HostName, PeerKey, SensorKey};
use wire::report::StoreKey;
use wire::report::marks::MarkList;
use wire::time::{Moment, Time};

/// Bytes per line of the simulated log: the event of line N is at N times this offset.
pub const LINE: u64 = 10;

pub struct Nothing;

impl Replay for Nothing {
    fn calls(&mut self, _: &[u8]) {}
    fn memory(&mut self, _: &[u8], _: &str, _: Vec<Change>) {}
    fn record(&mut self, _: Id, _: &Record) {}
}

impl Memories for Nothing {
    fn calls(&self) -> Vec<u8> {
        Vec::new()
    }
    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        Vec::new()
    }
}

pub struct Member {
    pub disk: Simulated,
    pub config: journal::Config,
    pub journal: Journal,
    pub outbox: Outbox,
    pub sender: Sender,
    pub key: SensorKey,
    pub peer: PeerKey,
    pub host: HostName,
    pub link: Option<Link>,
    /// Bytes on their way to the member.
    pub inbound: Vec<u8>,
    pub filler: usize,
}

pub fn host(name: &str) -> HostName {
    HostName::try_from(name).unwrap()
}

pub fn myself(key: SensorKey, own: &HostName) -> Myself {
    Myself {
        program: "test".into(),
        sensor: key,
        host: own.clone(),
        hosts: Vec::new(),
        boot: "boot".into(),
        started: Time::from_micros(1),
        stores: wire::report::Stores::default(),
    }
}

impl Member {
    pub fn new(nth: u8, config: journal::Config) -> Member {
        let (disk, key) = (Simulated::default(), SensorKey(1000 + u64::from(nth)));
        let (journal, _) = Journal::open(Arc::new(disk.clone()), config, key, &mut Nothing).unwrap();
        let own = host(&format!("h{nth}"));
        let outbox = Outbox::new(Arc::new(disk.clone()), journal.reader());
        let mut member = Member {
            sender: Sender::new(myself(key, &own), MarkList::default()),
            outbox,
            disk,
            config,
            journal,
            key,
            peer: PeerKey([nth + 1; 32]),
            host: own,
            link: None,
            inbound: Vec::new(),
            filler: 0,
        };
        member.born();
        member
    }

    fn born(&mut self) {
        let generation = Generation(self.journal.state().head.next_generation);
        self.journal
            .born(&Birth {
                generation,
                path: b"/log".to_vec(),
                filter: "test".into(),
                host: self.host.as_str().into(),
                identity: Identity::default(),
                directory: 0,
                offset: 0,
                before: Print::default(),
                within_line: false,
            })
            .unwrap();
    }

    fn generation(&self) -> Generation {
        Generation(self.journal.state().head.next_generation - 1)
    }

    /// Lines of the log that were read, durable or not.
    pub fn lines(&self) -> u64 {
        self.journal.state().generations[&self.generation()].offset / LINE
    }

    /// Reads some more lines of the log: one event each.
    pub fn read(&mut self, lines: u64) {
        let from = self.lines();
        let records = (from..from + lines).map(|line| self.record(line)).collect();
        self.append(records, from + lines);
    }

    pub fn record(&self, line: u64) -> Record {
        let mut content = Content::new(Kind::JobSubmit, Time::from_micros(line as i64 * 1_000_000));
        content.job = format!("{line}").into();
        if self.filler > 0 {
            let filler = "x".repeat(self.filler);
            content.attributes.push(("filler".into(), wire::event::Value::Text(filler.as_str().into())));
        }
        let keys = keys(&format!("{}-{line}", self.key), Authority::Scheduler);
        Record { found: Found { offset: line * LINE, number: 0, content, keys: Some(keys) }, call: "".into() }
    }

    pub fn append(&mut self, records: Vec<Record>, lines: u64) {
        let generation = self.generation();
        let mut batch = Batch { offset: lines * LINE, counted_to: lines * LINE, ..Batch::empty(generation) };
        batch.records = records;
        self.journal.append(&mut batch).unwrap();
        if self.journal.wants_new_segment() {
            self.journal.begin_segment(&Nothing).unwrap();
        }
    }

    pub fn sync(&mut self) {
        self.journal.sync().unwrap();
    }

    /// Simulates a power loss of the host: what was not synced is partly lost, and is read again.
    pub fn lose_power(&mut self, random: &mut Random) {
        self.link = None;
        self.inbound.clear();
        self.disk.lose_power(random);
        self.reopen();
        self.start_again();
    }

    /// Restarts the process: its state comes from the journal.
    pub fn start_again(&mut self) {
        let marks = self.journal.state().head.marks.0.clone();
        self.sender = Sender::new(myself(self.key, &self.host), marks.unwrap_or_default());
    }

    pub fn reopen(&mut self) {
        let (journal, _) =
            Journal::open(Arc::new(self.disk.clone()), self.config, SensorKey(0), &mut Nothing).unwrap();
        self.journal = journal;
        if !self.journal.state().generations.contains_key(&self.generation()) {
            // The power loss came before the file was recorded.
            self.born();
        }
        self.outbox = Outbox::new(Arc::new(self.disk.clone()), self.journal.reader());
        assert_eq!(self.journal.state().head.sensor, self.key);
    }

    /// Sends durable events: as many as there is space for, in at most `readings` reads.
    pub fn report(&mut self, readings: usize, limit: usize) {
        for _ in 0..readings {
            let Some(wanted) = self.sender.next_read() else { return };
            let Some(events) = self.outbox.read(wanted.from, wanted.limit.min(limit)).unwrap() else {
                return;
            };
            self.sender.handle_events(events);
        }
    }

    pub fn connect(&mut self, domain: &mut Domain) {
        self.disconnect(domain);
        let (oldest, next) = self.outbox.range();
        let acknowledged = self.journal.state().head.acknowledged;
        self.sender.connect(JournalRange { oldest, next, acknowledged }, Time::from_micros(7));
        self.link = domain.connect((self.peer, Serial(0)), self.host.clone(), Moment::default());
    }

    pub fn disconnect(&mut self, domain: &mut Domain) {
        if let Some(link) = self.link.take() {
            domain.disconnect(link);
        }
        self.sender.disconnect();
        self.inbound.clear();
    }

    /// Moves at most this many bytes in each direction.
    pub fn move_bytes(&mut self, domain: &mut Domain, most: usize, now: Now) {
        let Some(link) = self.link else { return };
        let bytes = self.sender.output()[..most.min(self.sender.output().len())].to_vec();
        self.sender.consume(bytes.len());
        domain.handle_bytes(link, &bytes, now);
        let some: Vec<u8> = self.inbound.drain(..most.min(self.inbound.len())).collect();
        if self.sender.handle_bytes(&some).is_err() {
            self.disconnect(domain);
        }
        if let Some(mark) = self.sender.take_acknowledged() {
            self.journal.acknowledge(mark).unwrap();
        }
    }
}

pub fn keys(name: &str, authority: Authority) -> Keys {
    Keys { scope: "test".into(), names: vec![name.into()], parent: None, naming: Naming::Unique, authority }
}

pub struct Rig {
    pub disk: Simulated,
    pub config: Config,
    pub domain: Domain,
    pub members: Vec<Member>,
    pub now: Now,
    /// Acknowledges before the disk has synced: the error that the tests must detect.
    pub acknowledges_early: bool,
    pub closed: Vec<String>,
}

pub fn open(disk: &Simulated, config: &Config, key: u64) -> Domain {
    Domain::open(Arc::new(disk.clone()), config.clone(), StoreKey(key)).unwrap().0
}

pub fn now_at(secs: u64) -> Now {
    Now {
        moment: Moment(Duration::from_secs(secs)),
        wall: Time::from_micros(i64::try_from(secs).unwrap() * 1_000_000),
    }
}

impl Rig {
    pub fn new(members: u8, config: Config) -> Rig {
        let disk = Simulated::default();
        Rig {
            domain: open(&disk, &config, 77),
            disk,
            config,
            members: (0..members).map(|nth| Member::new(nth, journal::Config::default())).collect(),
            now: now_at(1000),
            acknowledges_early: false,
            closed: Vec::new(),
        }
    }

    /// Delivers the output of the representative.
    pub fn deliver(&mut self) {
        while let Some(output) = self.domain.poll_output() {
            match output {
                Output::Send(link, bytes) => {
                    self.domain.handle_written(link);
                    if let Some(member) = self.members.iter_mut().find(|member| member.link == Some(link)) {
                        member.inbound.extend(bytes);
                    }
                }
                Output::Close(link, why) => {
                    self.closed.push(why.to_string());
                    if let Some(member) = self.members.iter_mut().find(|member| member.link == Some(link)) {
                        member.link = None;
                        member.sender.disconnect();
                        member.inbound.clear();
                    }
                }
                Output::Copy(_) | Output::Fetch(..) | Output::FetchCalls(..) => panic!("nothing is copied"),
            }
        }
    }

    pub fn commit(&mut self) {
        let Some(mut commit) = self.domain.take_commit().unwrap() else { return };
        if !self.acknowledges_early {
            commit.run().unwrap();
        }
        self.domain.handle_committed(commit);
    }

    /// Runs until nothing moves any more: everything durable is reported and acknowledged.
    pub fn settle(&mut self) {
        for member in &mut self.members {
            member.sync();
        }
        let mut quiet = 0;
        while quiet < 3 {
            let before = (self.domain.counts(), self.progress());
            for member in &mut self.members {
                if member.link.is_none() {
                    member.connect(&mut self.domain);
                }
                member.report(usize::MAX, usize::MAX);
                member.move_bytes(&mut self.domain, usize::MAX, self.now);
            }
            self.commit();
            self.deliver();
            quiet = if (self.domain.counts(), self.progress()) == before { quiet + 1 } else { 0 };
        }
    }

    fn progress(&self) -> Vec<(usize, Option<u64>, usize)> {
        let of = |member: &Member| {
            (member.sender.output().len(), member.journal.state().head.acknowledged, member.inbound.len())
        };
        self.members.iter().map(of).collect()
    }

    /// Simulates a power loss of the representative's host, and its restart.
    pub fn lose_power(&mut self, random: &mut Random) {
        self.disk.lose_power(random);
        self.restart();
    }

    pub fn restart(&mut self) {
        self.domain = open(&self.disk, &self.config, 78);
        self.hang_up();
    }

    /// Starts another representative, with this disk.
    pub fn fail_over(&mut self, disk: Simulated, key: u64) {
        self.disk = disk;
        self.domain = open(&self.disk, &self.config, key);
        self.hang_up();
    }

    fn hang_up(&mut self) {
        for member in &mut self.members {
            member.link = None;
            member.sender.disconnect();
            member.inbound.clear();
        }
    }

    /// Counts how often each event is stored.
    pub fn stored(&self) -> BTreeMap<Id, u32> {
        let feed = self.domain.feed();
        let page = feed.read(&feed.oldest(), usize::MAX, |_| true).unwrap();
        let mut stored = BTreeMap::new();
        for event in page.events {
            *stored.entry(event.event.id).or_default() += 1;
        }
        stored
    }

    /// Returns the number of events that are not stored, and of those stored more than once.
    pub fn faults(&self) -> (usize, usize) {
        let stored = self.stored();
        let wanted = self.members.iter().flat_map(|member| {
            let generation = Generation(member.journal.state().head.next_generation - 1);
            (0..member.lines()).map(move |line| Id {
                sensor: member.key,
                generation,
                offset: line * LINE,
                number: 0,
            })
        });
        let lost = wanted.filter(|id| !stored.contains_key(id)).count();
        (lost, stored.values().filter(|times| **times > 1).count())
    }
}

/// Creates an event of a job on a host.
pub fn event(kind: Kind, secs: i64, job: &str, to: &str, authority: Authority) -> Record {
    let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
    (content.job, content.to) = (job.into(), to.into());
    content.outcome = (kind == Kind::JobEnd).then_some(Outcome::Ok);
    Record {
        found: Found {
            offset: secs.unsigned_abs() * LINE,
            number: 0,
            content,
            keys: Some(keys(job, authority)),
        },
        call: "".into(),
    }
}
