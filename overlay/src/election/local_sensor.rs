//! This sensor, as the other members of the domain see it.
//!
//! Pure. Invariant: key, rank and incarnation do not change while the process runs; a sensor that stops does
//! not start again.

use super::Persisted;
use crate::membership::{Profile, Rank};
use compact_str::CompactString;
use wire::id::{DomainName, PeerKey};
use wire::membership::{ADDRESSES_MAX, Load, Member, State};

/// Identity of this sensor.
#[derive(Clone, Debug)]
pub struct Me {
    /// Its public key.
    pub key: PeerKey,
    /// Its permissions, by its certificate.
    pub profile: Profile,
    /// Addresses at which others can dial it, the best first; those beyond [`ADDRESSES_MAX`] are cut.
    pub addresses: Vec<CompactString>,
}

#[derive(Clone, Debug)]
pub(super) struct LocalSensor {
    me: Me,
    rank: Rank,
    incarnation: u64,
    load: Load,
    is_stopping: bool,
}

impl LocalSensor {
    /// A new incarnation of the sensor.
    pub(super) fn new(mut me: Me, domain: &DomainName, persisted: Persisted) -> LocalSensor {
        me.addresses.truncate(ADDRESSES_MAX);
        LocalSensor {
            rank: Rank::of(domain, me.key, me.profile.priority),
            incarnation: persisted.incarnation.saturating_add(1),
            load: Load::default(),
            is_stopping: false,
            me,
        }
    }

    pub(super) fn key(&self) -> PeerKey {
        self.me.key
    }

    pub(super) fn may_represent(&self) -> bool {
        self.me.profile.may_represent
    }

    pub(super) fn priority(&self) -> u8 {
        self.me.profile.priority
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(super) fn load(&self) -> Load {
        self.load
    }

    pub(super) fn set_load(&mut self, load: Load) {
        self.load = load;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// This sensor as a row of the table of members.
    pub(super) fn member(&self) -> Member {
        Member {
            key: self.me.key,
            incarnation: self.incarnation,
            state: State::Alive,
            host: self.me.profile.host.clone(),
            may_represent: self.me.profile.may_represent,
            priority: self.me.profile.priority,
            addresses: self.me.addresses.clone(),
        }
    }
}
