//! Telling standbys how much of all members' events is stored: what readers have seen, should one of them follow.
//!
//! Pure. Rule: only what is on disk is told; all of it to who is a standby newly, then what was stored since.
//! Not here: what a standby does with it ([`super::told`]).

use super::domain::{Domain, Link, Now};
use super::hosts::{Place, Role};
use std::collections::{BTreeMap, BTreeSet};
use wire::id::{HostName, SensorKey};
use wire::report::{FromRepresentative, Marks};

impl Domain {
    /// What the election knows of the hosts.
    pub fn place(&mut self, places: &BTreeMap<HostName, Place>, now: Now) {
        self.hosts.place(places, now.wall, now.moment);
        self.await_marks(places);
        for connection in self.links.values_mut() {
            let host = connection.member.as_ref().and_then(|member| self.hosts.get(&member.host));
            connection.knows_marks &= host.is_some_and(|host| host.role == Role::Standby);
        }
        self.tell_standbys(&BTreeMap::new());
    }

    /// Readers who come from another representative wait for those who are there and have not said how far they were stored.
    fn await_marks(&self, places: &BTreeMap<HostName, Place>) {
        let speakers = self.links.values().filter_map(|link| link.member.as_ref());
        let heard: BTreeSet<&HostName> = speakers.map(|speaker| &speaker.host).collect();
        if places.iter().all(|(host, place)| place.gone.is_some() || heard.contains(host)) {
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
            if knows && members.is_empty() {
                continue;
            }
            self.owe(link, FromRepresentative::Marks(Marks { store, at, members }));
            if let Some(connection) = self.links.get_mut(&link) {
                connection.knows_marks = true;
            }
        }
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
