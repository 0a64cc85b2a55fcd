//! Connections of members to the representative's core: how they start and end.
//!
//! Pure. Rules: a connection reports for the host of the certificate that authenticated it and for no other.
//! A connection on which nothing is received is closed, so that idle connections take no room.
//! Not here: the frames on them ([`super::receiver`]), what a hello leads to ([`super::admit`]).

use super::copying::MemberCopying;
use super::domain::{Domain, LINKS_MAX, Link};
use super::receiver::Receiver;
use crate::history::copied::OfKind;
use compact_str::CompactString;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::Duration;
use wire::credential::Serial;
use wire::event::Id;
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::FromRepresentative;
use wire::report::minutes::Numbered;
use wire::time::Moment;

/// Timeout for the hello. It fits in one packet: a peer that sends none for this long only holds the
/// connection.
const HELLO_WITHIN: Duration = Duration::from_secs(15);
/// Timeout for frames: a member reports its state every few seconds, so a silent connection is of no use.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub(super) struct Connection {
    pub(super) peer: PeerKey,
    /// Serial number of its certificate.
    pub(super) serial: Serial,
    /// Host that its certificate names.
    pub(super) host: HostName,
    pub(super) since: Moment,
    pub(super) receiver: Receiver,
    pub(super) member: Option<Speaker>,
    /// Whether a frame is being written; queued frames wait.
    pub(super) is_writing: bool,
    pub(super) owed: VecDeque<FromRepresentative>,
    /// Whether it is a standby that has received the watermarks of all members.
    pub(super) knows_marks: bool,
    /// When it is asked for what it stores.
    pub(super) copying: OfKind<MemberCopying>,
    /// Names of the metrics in what it has copied of other hosts.
    pub(super) numbered_copies: Numbered,
    /// When it last had minutes of another host that were missing here.
    pub(super) had_missing: Moment,
}

/// The member on a connection, once its hello is accepted.
pub(super) struct Speaker {
    pub(super) sensor: SensorKey,
    pub(super) host: HostName,
    pub(super) granted: BTreeSet<CompactString>,
    /// Events that it may send again under other numbers, because its journal went back.
    pub(super) known: HashSet<Id>,
}

impl Domain {
    /// Registers a member's stream. The shell has checked that this peer may report for `host`, by the
    /// certificate with this serial number. Returns `None` if there are too many; close the stream then.
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
            copying: OfKind::default(),
            numbered_copies: Numbered::default(),
            had_missing: Moment::default(),
        };
        self.links.insert(link, connection);
        Some(link)
    }

    /// Removes a stream that has ended.
    pub fn disconnect(&mut self, link: Link) {
        let Some(gone) = self.links.remove(&link) else { return };
        self.counts.duplicates_total += gone.receiver.duplicates();
        if let Some(Speaker { host, .. }) = gone.member
            && !self.links.values().any(|other| other.member.as_ref().is_some_and(|s| s.host == host))
        {
            self.hosts.depart(&host, false);
        }
    }

    /// Closes connections on which nothing is received.
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

    /// Sets the fencing term under which it serves from now on.
    pub fn set_term(&mut self, term: u64) {
        self.config.term = term;
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn links_len(&self) -> usize {
        self.links.len()
    }
}
