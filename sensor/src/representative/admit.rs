//! Admission of members: which events a member is requested to send after its hello, and which hosts it may
//! report for.
//!
//! Rules: a known sensor continues where its stored events end. A sensor whose journal has gone back (a disk
//! that lost synced data) continues where its journal ends now; events that it reads again are recognized by
//! their ids. An unknown sensor sends all events that no representative has acknowledged, and at most the
//! configured number of those that one has.
//! A new session of a daemon ends its old one.

use super::claims::{self, HELD_FOR};
use super::connection::Speaker;
use super::copying::Turn;
use super::domain::{Domain, Link, Now};
use super::hosts::HOSTS_MAX;
use super::store::frame::Member;
use crate::history::copied::Kind;
use crate::segments;
use std::collections::{BTreeMap, HashSet};
use wire::at_end::AtEnd;
use wire::event::Id;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::{FromRepresentative, Hello, Offer, OfferMore, Resume};

/// Most sensors of one daemon that the store remembers: each new state directory makes one.
pub const SENSORS_OF_PEER_MAX: usize = 8;
/// Most sensors that the store remembers in all.
pub const SENSORS_MAX: usize = 2 * HOSTS_MAX;

/// Peer key of a sensor that is in no domain and has no key: it reports to itself. The events that it stored
/// under this key stay its own, whatever key it gets later.
pub const NO_PEER: PeerKey = PeerKey([0; 32]);

/// Reason why a hello is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another daemon holds the host.
    #[error(transparent)]
    Claim(#[from] claims::Error),
    /// The certificate names another host.
    #[error(
        "its hello is of host {found}, its certificate of {expected}; a sensor goes by its certificate's host"
    )]
    Host {
        found: HostName,
        /// Host that the certificate names.
        expected: HostName,
    },
    /// Another daemon holds the sensor.
    #[error(
        "sensor {sensor} is that of daemon {holder}; two state directories hold a copy of one journal: remove one of them"
    )]
    Sensor {
        sensor: SensorKey,
        /// Daemon that the sensor key belongs to.
        holder: PeerKey,
    },
    /// The table of hosts is full.
    #[error("{HOSTS_MAX} hosts report; no more are taken")]
    Full,
    /// Events of the sensor are still being written to disk.
    #[error("the journal has gone back while its events are being stored; come again in a moment")]
    Busy,
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] segments::Error),
}

impl Domain {
    pub(super) fn admit(&mut self, link: Link, mut hello: Hello, now: Now) -> Result<(), Error> {
        // Whatever a store reported: the journal has no such event yet.
        hello.marks.retain(|mark| mark.next <= hello.next);
        let Some(connection) = self.links.get(&link) else { return Ok(()) };
        let (peer, serial) = (connection.peer, connection.serial);
        if hello.host != connection.host {
            return Err(Error::Host { found: hello.host, expected: connection.host.clone() });
        }
        let former = self.store.ledger().members.get(&hello.sensor).cloned();
        self.claims.claim(&hello.host, (peer, serial), now.moment)?;
        // A host that lost its key but not its journal still has its sensor.
        let is_others =
            |former: &&Member| former.peer != peer && former.peer != NO_PEER && former.host != hello.host;
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
        if self.watermarks.forget_beyond(hello.sensor, hello.next) {
            self.forgotten.push((hello.sensor, hello.next));
        }
        self.store.set_member(member)?;
        self.dirty.insert(hello.sensor);
        self.publish_marks();
        let connection = self.links.get_mut(&link).expect("asked above");
        connection.receiver.open(next);
        let stores = hello.stores.0.unwrap_or_default();
        let turn = |has: bool| if has { Turn::Due(now.moment) } else { Turn::Never };
        connection.copying.of_mut(Kind::Minutes).turn = turn(stores.minutes);
        connection.copying.of_mut(Kind::Samples).turn = turn(stores.samples.0 == Some(true));
        connection.member = Some(Speaker { sensor: hello.sensor, host: hello.host, granted, known });
        let has_samples = AtEnd(Some(self.has_copies(Kind::Samples)));
        let more = AtEnd(Some(OfferMore { has_calls: self.has_call_history, has_samples }));
        let offer = AtEnd(Some(Offer { has_minutes: self.has_copies(Kind::Minutes), more }));
        let (store, term, allowance) = (self.store.ledger().key, self.config.term, self.config.allowance);
        self.queue_frame(
            link,
            FromRepresentative::Resume(Resume { store, term, next, allowance, refused_hosts, offer }),
        );
        Ok(())
    }

    fn end_older_sessions(&mut self, link: Link, peer: PeerKey) {
        let older =
            self.links.iter().filter(|(other, connection)| **other != link && connection.peer == peer);
        let older: Vec<Link> = older.map(|(other, _)| *other).collect();
        for other in older {
            self.close(other, "a new session of the same daemon has started".into());
        }
    }

    /// Makes `link` the only stream that reports for this host: the stream of a previous holder ends, and
    /// other members that named the host may no longer report its events.
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

    /// Makes room for a new sensor where there are too many, of this daemon or in all: forgets the
    /// disconnected one that was last seen longest ago.
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

    /// Returns the sensor's updated record, and the events that it may send again under other numbers.
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
            // Watermarks use numbers that mean other events now.
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

    /// Reads the ids of the sensor's events that were stored before its journal went back and that it may
    /// send again.
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
        // Events that are read again come first; after them nothing comes again.
        if member.next > to + 2 * known.len() as u64 {
            member.rewound = None;
            known.clear();
        }
        Ok(known)
    }
}
