//! What a member's hello leads to: which events it is asked for, and what it may speak for.
//!
//! Rules: a known sensor goes on where its stored events end; one whose journal has gone back (a disk that
//! lied) goes on where that ends now, and what it reads again is known by its ids. An unknown sensor gives
//! everything that no representative has had, and of the rest at most the configured number of events.
//! A new session of a daemon ends its old one.

use super::claims::{self, HELD_FOR};
use super::connection::Speaker;
use super::domain::{Domain, Link, Now};
use super::hosts::HOSTS_MAX;
use super::store::frame::Member;
use crate::segments;
use std::collections::{BTreeMap, HashSet};
use wire::event::Id;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::{FromRepresentative, Hello, Resume};

/// Sensors of one daemon that are remembered: each new state directory makes one.
pub const SENSORS_OF_PEER_MAX: usize = 8;
/// Sensors that are remembered in all.
pub const SENSORS_MAX: usize = 2 * HOSTS_MAX;

/// The daemon of a sensor that has no key, as it is in no domain: it reports to itself. What it left behind is
/// the sensor's own, whatever key it gets.
pub const NOBODY: PeerKey = PeerKey([0; 32]);

/// Why a hello is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another daemon has that host.
    #[error(transparent)]
    Claim(#[from] claims::Error),
    /// The certificate is of another host.
    #[error(
        "its hello is of host {found}, its certificate of {expected}; a sensor goes by its certificate's host"
    )]
    Host {
        /// As said.
        found: HostName,
        /// By the certificate.
        expected: HostName,
    },
    /// Another daemon has that sensor.
    #[error(
        "sensor {sensor} is that of daemon {holder}; two state directories hold a copy of one journal: remove one of them"
    )]
    Sensor {
        /// Which sensor.
        sensor: SensorKey,
        /// Whose.
        holder: PeerKey,
    },
    /// There is no room.
    #[error("{HOSTS_MAX} hosts report; no more are taken")]
    Full,
    /// Its events are on their way to the disk.
    #[error("the journal has gone back while its events are being stored; come again in a moment")]
    Busy,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] segments::Error),
}

impl Domain {
    pub(super) fn admit(&mut self, link: Link, mut hello: Hello, now: Now) -> Result<(), Error> {
        // Whatever a store said: there is no such event yet.
        hello.marks.retain(|mark| mark.next <= hello.next);
        let Some(connection) = self.links.get(&link) else { return Ok(()) };
        let (peer, serial) = (connection.peer, connection.serial);
        if hello.host != connection.host {
            return Err(Error::Host { found: hello.host, expected: connection.host.clone() });
        }
        let former = self.store.ledger().members.get(&hello.sensor).cloned();
        self.claims.claim(&hello.host, (peer, serial), now.moment)?;
        // A host whose key alone was lost has its sensor as before.
        let is_others =
            |former: &&Member| former.peer != peer && former.peer != NOBODY && former.host != hello.host;
        if let Some(former) = former.as_ref().filter(is_others)
            && now.wall.since(former.heard) < HELD_FOR
        {
            return Err(Error::Sensor { sensor: hello.sensor, holder: former.peer });
        }
        self.end_older_sessions(link, peer);
        self.end_other_speakers(link, &hello.host);
        let (member, known) = self.member(former, &hello, peer, now)?;
        self.make_room(peer, hello.sensor)?;
        if !self.hosts.arrive(&hello, peer, now.wall, now.moment) {
            return Err(Error::Full);
        }
        let (granted, refused_hosts) =
            claims::granted(&self.claims, peer, &hello.host, &hello.hosts, now.moment);
        let next = member.next;
        if self.told.forget_beyond(hello.sensor, hello.next) {
            self.forgotten.push((hello.sensor, hello.next));
        }
        self.store.set_member(member)?;
        self.dirty.insert(hello.sensor);
        self.learn();
        let connection = self.links.get_mut(&link).expect("asked above");
        connection.receiver.open(next);
        connection.member = Some(Speaker { sensor: hello.sensor, host: hello.host, granted, known });
        let (store, term, allowance) = (self.store.ledger().key, self.config.term, self.config.allowance);
        self.owe(link, FromRepresentative::Resume(Resume { store, term, next, allowance, refused_hosts }));
        Ok(())
    }

    fn end_older_sessions(&mut self, link: Link, peer: PeerKey) {
        let older =
            self.links.iter().filter(|(other, connection)| **other != link && connection.peer == peer);
        let older: Vec<Link> = older.map(|(other, _)| *other).collect();
        for other in older {
            self.close(other, "a new session of the same daemon has begun".into());
        }
    }

    /// Only `link` speaks for this host from now on: a previous holder's stream ends, and others that named it are no longer
    /// believed about it.
    fn end_other_speakers(&mut self, link: Link, host: &HostName) {
        let is_shared = self.claims.is_shared(host);
        let mut previous = Vec::new();
        for (other, connection) in self.links.iter_mut().filter(|(other, _)| **other != link) {
            let Some(speaker) = &mut connection.member else { continue };
            if speaker.host == *host {
                previous.push(*other);
            } else if !is_shared {
                speaker.granted.retain(|granted| !host.is_spelled(granted));
            }
        }
        for other in previous {
            self.close(other, "another daemon has this host now".into());
        }
    }

    /// Forget the sensor of this daemon, or of all, that was heard longest ago, if there are too many.
    fn make_room(&mut self, peer: PeerKey, sensor: SensorKey) -> Result<(), Error> {
        let members = &self.store.ledger().members;
        if members.contains_key(&sensor) {
            return Ok(());
        }
        let of_peer = members.values().filter(|member| member.peer == peer).count() >= SENSORS_OF_PEER_MAX;
        if !of_peer && members.len() < SENSORS_MAX {
            return Ok(());
        }
        let connected = |member: &Member| {
            self.links.values().any(|link| link.member.as_ref().is_some_and(|s| s.sensor == member.sensor))
        };
        let candidates =
            members.values().filter(|member| (!of_peer || member.peer == peer) && !connected(member));
        let Some(oldest) = candidates.min_by_key(|member| member.heard).map(|member| member.sensor) else {
            return Err(Error::Full);
        };
        self.store.forget_member(oldest)?;
        Ok(())
    }

    /// The sensor as it is from now on, and the events that it may bring again under other numbers.
    fn member(
        &self,
        former: Option<Member>,
        hello: &Hello,
        peer: PeerKey,
        now: Now,
    ) -> Result<(Member, HashSet<Id>), Error> {
        let Some(mut member) = former else {
            let unknown = hello.acknowledged.unwrap_or(hello.oldest);
            let from = unknown.min(hello.next.saturating_sub(self.config.backfill)).max(hello.oldest);
            let member = Member {
                sensor: hello.sensor,
                peer,
                host: hello.host.clone(),
                next: from,
                from,
                rewound: None,
                marks: hello.marks.clone(),
                lanes: BTreeMap::new(),
                lost: 0,
                refused: 0,
                heard: now.wall,
            };
            return Ok((member, HashSet::new()));
        };
        (member.peer, member.host, member.heard) = (peer, hello.host.clone(), now.wall);
        if hello.next < member.next {
            if self.dirty.contains(&hello.sensor) || self.is_under_way(hello.sensor) {
                return Err(Error::Busy);
            }
            tracing::warn!(sensor = %hello.sensor, to = hello.next, from = member.next, "a member's journal has gone back");
            member.rewound = Some((hello.next, self.store.ledger().next));
            member.next = hello.next;
            // Marks speak of numbers that mean other events now.
            member.marks.clear();
        } else {
            member.marks.clone_from(&hello.marks);
            if member.rewound.is_some() {
                member.marks.clear();
            }
        }
        let known = self.read_known(&mut member)?;
        Ok((member, known))
    }

    /// Events of the sensor that were stored before its journal went back, as far as they may come again.
    fn read_known(&self, member: &mut Member) -> Result<HashSet<Id>, Error> {
        let Some((to, at)) = member.rewound else { return Ok(HashSet::new()) };
        let reader = self.feed.reader();
        let mut known = HashSet::new();
        reader.read(reader.oldest(), usize::MAX, |stored| {
            if stored.event.id.sensor == member.sensor && stored.number >= to && stored.at < at {
                known.insert(stored.event.id);
            }
            false
        })?;
        // What is read again comes first; after that nothing comes again.
        if member.next > to + 2 * known.len() as u64 {
            member.rewound = None;
            known.clear();
        }
        Ok(known)
    }
}
