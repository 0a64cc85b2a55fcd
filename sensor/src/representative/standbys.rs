//! Telling standbys how much of all members' events is stored: what readers have seen, should one of them follow.
//!
//! Pure. Rule: only what is on disk is told; all of it to who is a standby newly, then what was stored since.
//! Not here: what a standby does with it ([`super::told`]).

use super::domain::{Domain, Link, Now};
use super::hosts::{Place, Role, Standing};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::at_end::AtEnd;
use wire::id::{HostName, SensorKey};
use wire::report::{FromRepresentative, Marks};

/// How long after the beginning of its reign a representative may be without members' marks: a member that has not come by then may
/// have its events given again.
const MARKS_WITHIN: Duration = Duration::from_secs(3);

/// A host that was heard so lately is awaited too: at the beginning of a reign hosts that are there are not heard yet.
const LATELY: Duration = Duration::from_secs(10);

impl Domain {
    /// What the election knows of the hosts.
    pub fn place(&mut self, places: &BTreeMap<HostName, Place>, now: Now) {
        self.hosts.place(places, now.wall, now.moment);
        self.await_marks(places, now);
        for connection in self.links.values_mut() {
            let host = connection.member.as_ref().and_then(|member| self.hosts.get(&member.host));
            connection.knows_marks &= host.is_some_and(|host| host.role == Role::Standby);
        }
        self.tell_standbys(&BTreeMap::new());
    }

    /// Readers who come from another representative wait for those who are there, or were lately, and have not said how far they
    /// were stored.
    fn await_marks(&mut self, places: &BTreeMap<HostName, Place>, now: Now) {
        let began = *self.began.get_or_insert(now.moment);
        let is_awaited = |(host, place): (&HostName, &Place)| {
            self.hosts.get(host).is_none()
                && match place.gone {
                    None => true,
                    Some((Standing::Left, _)) => false,
                    Some((_, heard)) => now.wall.since(heard) < LATELY,
                }
        };
        if now.moment.since(began) >= MARKS_WITHIN || !places.iter().any(is_awaited) {
            self.feed.settle();
        }
    }

    /// These sensors' events are on disk up to these numbers, beside what was before.
    pub(super) fn tell_standbys(&mut self, stored: &BTreeMap<SensorKey, u64>) {
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
            let members: Vec<_> =
                members.into_iter().map(|(sensor, next)| (sensor, self.meant(sensor, next))).collect();
            if knows && members.is_empty() {
                continue;
            }
            self.owe(
                link,
                FromRepresentative::Marks(Marks { store, at, members, whole: AtEnd(Some(!knows)) }),
            );
            if let Some(connection) = self.links.get_mut(&link) {
                connection.knows_marks = true;
            }
        }
    }

    /// As far as its numbers mean the events that they meant before: those of a journal that went back do not.
    fn meant(&self, sensor: SensorKey, next: u64) -> u64 {
        let rewound = self.store.ledger().members.get(&sensor).and_then(|member| member.rewound);
        rewound.map_or(next, |(to, _)| next.min(to))
    }

    /// How far each sensor's events are on disk. One of which something waits for the disk is told with that.
    fn all_stored(&self, stored: &BTreeMap<SensorKey, u64>) -> Vec<(SensorKey, u64)> {
        let settled = |sensor: &SensorKey| !self.dirty.contains(sensor) && !self.is_under_way(*sensor);
        let members = self.store.ledger().members.values();
        let told = members.filter_map(|member| {
            let next = stored.get(&member.sensor).copied();
            Some((member.sensor, next.or_else(|| settled(&member.sensor).then_some(member.next))?))
        });
        told.collect()
    }
}
