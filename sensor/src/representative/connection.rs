//! The connections of members to the representative's core: how they begin and end.
//!
//! Pure. Rules: a connection speaks for the host of the certificate that was shown on it and for no other;
//! one on which nothing is said is closed, so that connections are not held for nothing.
//! Not here: what is said on them ([`super::receiver`]), what a hello leads to ([`super::admit`]).

use super::domain::{Domain, LINKS_MAX, Link};
use super::receiver::Receiver;
use compact_str::CompactString;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::Duration;
use wire::credential::Serial;
use wire::event::Id;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::FromRepresentative;
use wire::time::Moment;

/// A hello takes one packet: without one for so long, somebody only holds the connection.
const HELLO_WITHIN: Duration = Duration::from_secs(15);
/// A member tells how it is every few seconds: without a word for so long, its connection is of no use.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub(super) struct Connection {
    pub(super) peer: PeerKey,
    /// Of its certificate.
    pub(super) serial: Serial,
    /// The host of its certificate.
    pub(super) host: HostName,
    pub(super) since: Moment,
    pub(super) receiver: Receiver,
    pub(super) member: Option<Speaker>,
    /// A frame is being written; what is owed waits.
    pub(super) is_writing: bool,
    pub(super) owed: VecDeque<FromRepresentative>,
    /// It is a standby, and was told how much of all members' events is stored.
    pub(super) knows_marks: bool,
}

/// Who speaks on a connection.
pub(super) struct Speaker {
    pub(super) sensor: SensorKey,
    pub(super) host: HostName,
    pub(super) granted: BTreeSet<CompactString>,
    /// Events that may come again under other numbers, as the journal has gone back.
    pub(super) known: HashSet<Id>,
}

impl Domain {
    /// A member's stream is open; the shell has checked that this peer may report for `host`, by a certificate of this number.
    /// `None`: there are too many, close it.
    pub fn connect(
        &mut self,
        (peer, serial): (PeerKey, Serial),
        host: HostName,
        now: Moment,
    ) -> Option<Link> {
        if self.links.len() >= LINKS_MAX {
            return None;
        }
        let link = Link(self.next_link);
        self.next_link += 1;
        let connection = Connection {
            peer,
            serial,
            host,
            since: now,
            receiver: Receiver::default(),
            member: None,
            is_writing: false,
            owed: VecDeque::new(),
            knows_marks: false,
        };
        self.links.insert(link, connection);
        Some(link)
    }

    /// A stream has ended.
    pub fn disconnect(&mut self, link: Link) {
        let Some(gone) = self.links.remove(&link) else { return };
        self.counts.duplicates_total += gone.receiver.duplicates();
        if let Some(Speaker { host, .. }) = gone.member
            && !self.links.values().any(|other| other.member.as_ref().is_some_and(|s| s.host == host))
        {
            self.hosts.depart(&host, false);
        }
    }

    /// Close connections on which nothing is said.
    pub fn close_silent(&mut self, now: Moment) {
        let is_silent = |connection: &Connection| match &connection.member {
            None => now.since(connection.since) >= HELLO_WITHIN,
            Some(speaker) => {
                let host = self.hosts.get(&speaker.host);
                host.is_some_and(|host| now.since(host.heard) >= SILENCE_MAX)
            }
        };
        let silent = self.links.iter().filter(|(_, connection)| is_silent(connection));
        let silent: Vec<Link> = silent.map(|(link, _)| *link).collect();
        for link in silent {
            self.close(link, "nothing was said for long".into());
        }
    }

    /// The fencing term under which it serves from now on.
    pub fn set_term(&mut self, term: u64) {
        self.config.term = term;
    }

    /// How many connections there are.
    #[must_use]
    pub fn links_len(&self) -> usize {
        self.links.len()
    }
}
