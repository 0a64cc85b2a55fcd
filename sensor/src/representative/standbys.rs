//! Watermarks sent to standbys: how much of all members' events is stored, so that the next representative
//! knows what readers have seen.
//!
//! Pure. Rule: only events that are on disk are included. A new standby receives all watermarks, then those
//! of what was stored since.
//! Not here: how a standby uses them ([`super::watermarks`]).

use super::domain::{Domain, Link, Now};
use super::hosts::{ElectionEntry, Liveness, Role};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::id::{HostName, SensorKey};
use wire::report::{FromRepresentative, Marks};

/// How long after it takes over a representative waits for members' watermarks: events of a member that has
/// not reported by then may be delivered to readers again.
const MARKS_WITHIN: Duration = Duration::from_secs(3);

/// A host that was last seen this recently is awaited too: just after a takeover, hosts that are alive have
/// not been seen yet.
const LATELY: Duration = Duration::from_secs(10);

impl Domain {
    /// Sets what the election knows of the hosts.
    pub fn apply_election(&mut self, election: &BTreeMap<HostName, ElectionEntry>, now: Now) {
        self.hosts.apply_election(election, now.wall, now.moment);
        self.await_marks(election, now);
        for connection in self.links.values_mut() {
            let host = connection.member.as_ref().and_then(|member| self.hosts.get(&member.host));
            connection.knows_marks &= host.is_some_and(|host| host.role == Role::Standby);
        }
        self.send_watermarks(&BTreeMap::new());
    }

    /// Lets readers of another store's cursor wait until every host that is alive, or was recently, has sent
    /// its watermarks, for [`MARKS_WITHIN`] at most.
    fn await_marks(&mut self, election: &BTreeMap<HostName, ElectionEntry>, now: Now) {
        let began = *self.began.get_or_insert(now.moment);
        let is_awaited = |(host, entry): (&HostName, &ElectionEntry)| {
            self.hosts.get(host).is_none()
                && match entry.gone {
                    None => true,
                    Some((Liveness::Left, _)) => false,
                    Some((_, heard)) => now.wall.since(heard) < LATELY,
                }
        };
        if now.moment.since(began) >= MARKS_WITHIN || !election.iter().any(is_awaited) {
            self.feed.settle();
        }
    }

    /// Sends standbys the numbers up to which these sensors' events are on disk, beside what they received
    /// before.
    pub(super) fn send_watermarks(&mut self, stored: &BTreeMap<SensorKey, u64>) {
        let is_standby =
            |host: &HostName| self.hosts.get(host).is_some_and(|host| host.role == Role::Standby);
        let standbys = self.links.iter().filter_map(|(link, connection)| {
            let member = connection.member.as_ref()?;
            is_standby(&member.host).then_some((*link, connection.knows_marks))
        });
        let standbys: Vec<(Link, bool)> = standbys.collect();
        if standbys.is_empty() {
            return;
        }
        let (store, at) = (self.store.ledger().key, *self.feed.reader().next().borrow());
        for (link, knows) in standbys {
            let members: Vec<_> = match knows {
                true => stored.iter().map(|(sensor, next)| (*sensor, *next)).collect(),
                false => self.all_stored(stored),
            };
            let members: Vec<_> = members
                .into_iter()
                .map(|(sensor, next)| (sensor, self.limit_to_valid(sensor, next)))
                .collect();
            if knows && members.is_empty() {
                continue;
            }
            self.queue_frame(
                link,
                FromRepresentative::Marks(Marks { store, at, members, whole: AtEnd(Some(!knows)) }),
            );
            if let Some(connection) = self.links.get_mut(&link) {
                connection.knows_marks = true;
            }
        }
    }

    /// Limits `next` to the numbers that still mean the same events: later ones of a journal that went back
    /// do not.
    fn limit_to_valid(&self, sensor: SensorKey, next: u64) -> u64 {
        let rewound = self.store.ledger().members.get(&sensor).and_then(|member| member.rewound);
        rewound.map_or(next, |(to, _)| next.min(to))
    }

    /// Returns how far each sensor's events are on disk. A sensor with events that wait for the disk is left
    /// out; its watermark is sent when they are written.
    fn all_stored(&self, stored: &BTreeMap<SensorKey, u64>) -> Vec<(SensorKey, u64)> {
        let settled = |sensor: &SensorKey| !self.dirty.contains(sensor) && !self.is_under_way(*sensor);
        let members = self.store.ledger().members.values();
        let watermarks = members.filter_map(|member| {
            let next = stored.get(&member.sensor).copied();
            Some((member.sensor, next.or_else(|| settled(&member.sensor).then_some(member.next))?))
        });
        watermarks.collect()
    }
}
