//! Membership table of a domain: every member and its state, with a number for each change.
//!
//! Pure. The representative owns the table. Every other sensor holds a copy, by which it finds the next
//! candidates and, once promoted, knows the domain. A copy is updated with the changes since its number. The
//! numbers continue from one representative to the next, so that a change of representative does not send 500
//! tables. [`Table::digest`] is the same for equal tables on every machine.
//!
//! Rules: a later incarnation replaces an earlier one. What a member says of itself takes precedence over
//! what others say of it. Two keys may have the same host name (a sensor that lost its key is another
//! sensor). The table has at most [`MEMBERS_MAX`] rows: the members that died or left longest ago make room;
//! a live one is never dropped for a new one.
//!
//! Not here: when a member becomes suspect (`election`), load (stored with the link that it was received on).

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Member, Members, State, TableVersion, Term};
use wire::time::Moment;

mod rank;

pub use rank::Rank;

/// Most members of a domain: twice the intended size of a star (500); a larger domain must be divided.
pub const MEMBERS_MAX: usize = 1024;

/// A higher number cannot be genuine: a thousand changes a second for almost ten thousand years.
const VERSION_MAX: u64 = 1 << 48;

/// What a peer may do in the domain, by its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The host in its certificate.
    pub host: HostName,
    /// Whether it may represent the domain.
    pub may_represent: bool,
    /// Priority in an election, set by the operator: the highest represents.
    pub priority: u8,
}

/// One member in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub member: Member,
    /// Its place in the order of candidates.
    pub rank: Rank,
    /// Number of its last change.
    pub changed: u64,
    /// Since when it has been in its state, as far as this sensor knows.
    pub since: Moment,
    /// At the representative, when it was last seen. In a copy, the time of the last update if it is alive,
    /// otherwise the time that the representative reported.
    pub heard: Moment,
}

/// Number of members by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Seen lately.
    pub alive: usize,
    /// Not seen for a while.
    pub suspect: usize,
    /// Considered gone.
    pub dead: usize,
    /// Announced that they leave.
    pub left: usize,
}

/// The membership table; its rules are at the head of this file.
#[derive(Clone, Debug)]
pub struct Table {
    domain: DomainName,
    rows: BTreeMap<PeerKey, Row>,
    /// Term of the numbers, and the last number.
    held: TableVersion,
    /// Term and last number under the previous representative, which copies may still hold.
    before: TableVersion,
    /// The cached hash; none after a change.
    digest: Option<u64>,
    /// Members rejected because the table was full.
    refused_total: u64,
}

impl Table {
    /// The empty table of `domain`.
    #[must_use]
    pub fn new(domain: DomainName) -> Table {
        Table {
            domain,
            rows: BTreeMap::new(),
            held: TableVersion::default(),
            before: TableVersion::default(),
            digest: None,
            refused_total: 0,
        }
    }

    #[must_use]
    pub fn get(&self, key: &PeerKey) -> Option<&Row> {
        self.rows.get(key)
    }

    /// Every row, by key.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Term and number of the last change in this copy.
    #[must_use]
    pub fn held(&self) -> TableVersion {
        self.held
    }

    /// Members rejected since the start because the table was full.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused_total
    }

    #[must_use]
    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for row in self.rows.values() {
            match row.member.state {
                State::Alive => count.alive += 1,
                State::Suspect => count.suspect += 1,
                State::Dead => count.dead += 1,
                State::Left => count.left += 1,
            }
        }
        count
    }

    /// Become the owner of the table, under `term`; the numbers continue from the copy. Members that are
    /// alive or suspect count as seen at `now`.
    pub fn own(&mut self, term: Term, now: Moment) {
        if term != self.held.term {
            self.before = self.held;
        }
        self.held.term = term;
        for row in self.rows.values_mut() {
            if matches!(row.member.state, State::Alive | State::Suspect) {
                row.heard = row.heard.max(now);
            }
        }
    }

    /// Record that `key` was seen.
    pub fn touch(&mut self, key: &PeerKey, now: Moment) {
        if let Some(row) = self.rows.get_mut(key) {
            row.heard = now;
        }
    }

    /// Insert or replace a member by what it says of itself. Returns whether anything changed.
    pub fn meet(&mut self, member: Member, now: Moment) -> bool {
        if let Some(row) = self.rows.get_mut(&member.key)
            && member.incarnation < row.member.incarnation
        {
            // Another sensor reported an incarnation that the member never had.
            row.member.incarnation = member.incarnation;
        }
        self.put(member, now)
    }

    /// Insert or replace a member by what another sensor says of it. Returns whether anything changed; an
    /// earlier incarnation changes nothing.
    pub fn put(&mut self, member: Member, now: Moment) -> bool {
        if let Some(row) = self.rows.get(&member.key) {
            if member.incarnation < row.member.incarnation || member == row.member {
                return false;
            }
        } else if self.rows.len() >= MEMBERS_MAX && !self.make_room() {
            self.refused_total += 1;
            return false;
        }
        let since = match self.rows.get(&member.key) {
            Some(row) if row.member.state == member.state => row.since,
            _ => now,
        };
        self.held.version += 1;
        self.digest = None;
        let changed = self.held.version;
        let rank = self.rank(&member);
        self.rows.insert(member.key, Row { member, rank, changed, since, heard: now });
        true
    }

    /// Set the state of `key`. Returns whether that changed anything.
    pub fn mark(&mut self, key: &PeerKey, state: State, now: Moment) -> bool {
        let Some(row) = self.rows.get_mut(key) else { return false };
        if row.member.state == state {
            return false;
        }
        self.held.version += 1;
        self.digest = None;
        row.member.state = state;
        row.changed = self.held.version;
        row.since = now;
        true
    }

    /// Drop members that have been dead for `dead_kept`, or left `left_kept` ago. Copies notice it by the
    /// digest.
    pub fn forget(&mut self, dead_kept: Duration, left_kept: Duration, now: Moment) {
        let before = self.rows.len();
        self.rows.retain(|_, row| match row.member.state {
            State::Alive | State::Suspect => true,
            State::Dead => now.since(row.since) < dead_kept,
            State::Left => now.since(row.since) < left_kept,
        });
        if self.rows.len() != before {
            self.held.version += 1;
            self.digest = None;
        }
    }

    /// The changes that a copy at `held` lacks; the whole table if its number is not of this sequence.
    #[must_use]
    pub fn changes_since(&self, held: TableVersion, now: Moment) -> Members {
        let own = held.term == self.held.term && held.version <= self.held.version;
        let before = held.term == self.before.term && held.version <= self.before.version;
        let known = held.term != Term::NONE && (own || before);
        let from = if known { held.version } else { 0 };
        let rows = || self.rows.values().filter(|row| !known || row.changed > from);
        let secs = |row: &Row| u32::try_from(now.since(row.heard).as_secs()).unwrap_or(u32::MAX);
        let silent = rows().filter(|row| row.member.state != State::Alive);
        Members {
            term: self.held.term,
            since: known.then_some(held),
            version: self.held.version,
            members: rows().map(|row| (row.changed, row.member.clone())).collect(),
            silent: silent.map(|row| (row.member.key, secs(row))).collect(),
        }
    }

    /// Update this copy. Returns false if earlier changes are missing, so that the whole table must be
    /// requested, or if `members` exceeds its bounds.
    pub fn apply(&mut self, members: Members, now: Moment) -> bool {
        if members.members.len() > MEMBERS_MAX || members.version > VERSION_MAX {
            return false;
        }
        match members.since {
            None => {
                let listed: BTreeMap<_, _> =
                    members.members.iter().map(|(_, member)| (member.key, ())).collect();
                self.rows.retain(|key, _| listed.contains_key(key));
            }
            Some(since) if since == self.held => {}
            Some(_) => return false,
        }
        let silent: BTreeMap<_, _> = members.silent.into_iter().take(MEMBERS_MAX).collect();
        for (changed, member) in members.members.into_iter().filter(|(_, member)| member.is_bounded()) {
            let known = self.rows.get(&member.key).filter(|row| row.member.state == member.state);
            let since = known.map_or(now, |row| row.since);
            let is_alive = member.state == State::Alive;
            let heard = match silent.get(&member.key).filter(|_| !is_alive) {
                Some(secs) => Moment(now.0.saturating_sub(Duration::from_secs((*secs).into()))),
                None => known.filter(|_| !is_alive).map_or(now, |row| row.heard),
            };
            if self.rows.len() < MEMBERS_MAX || self.rows.contains_key(&member.key) {
                let rank = self.rank(&member);
                self.rows.insert(member.key, Row { member, rank, changed, since, heard });
            }
        }
        self.held = TableVersion { term: members.term, version: members.version };
        self.before = TableVersion::default();
        self.digest = None;
        true
    }

    /// Invalidate the number of this copy, because its content is wrong: the whole table is requested next.
    pub fn doubt(&mut self) {
        self.held = TableVersion { term: Term::NONE, version: self.held.version };
    }

    /// A hash of the whole table, the same on every machine. Without `since`, ranks and numbers.
    pub fn digest(&mut self) -> u64 {
        if let Some(digest) = self.digest {
            return digest;
        }
        let mut hash = Sha256::new();
        for row in self.rows.values() {
            let member = &row.member;
            hash.update(member.key.0);
            hash.update(member.incarnation.to_le_bytes());
            hash.update([member.state as u8, u8::from(member.may_represent), member.priority]);
            for text in std::iter::once(member.host.as_str()).chain(member.addresses.iter().map(|a| &**a)) {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
            hash.update([0xff; 8]);
        }
        let hash = hash.finalize();
        let digest = u64::from_le_bytes(hash[..8].try_into().expect("a hash has 32 bytes"));
        self.digest = Some(digest);
        digest
    }

    fn rank(&self, member: &Member) -> Rank {
        match self.rows.get(&member.key) {
            Some(row) if row.member.priority == member.priority => row.rank,
            _ => Rank::of(&self.domain, member.key, member.priority),
        }
    }

    /// Drop the member that died or left longest ago; false if there is none.
    fn make_room(&mut self) -> bool {
        let gone = self.rows.values().filter(|row| matches!(row.member.state, State::Dead | State::Left));
        let Some(key) = gone.min_by_key(|row| (row.since, row.member.key)).map(|row| row.member.key) else {
            return false;
        };
        self.rows.remove(&key);
        self.held.version += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u32, state: State) -> Member {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let host = HostName::try_from(format!("wn{number}").as_str()).unwrap();
        let addresses = vec![format!("/dns/wn{number}/tcp/7946").into()];
        Member { key: PeerKey(key), incarnation: 1, state, host, may_represent: true, priority: 0, addresses }
    }

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn owned(members: u32) -> Table {
        let mut table = Table::new(DomainName::try_from("d").unwrap());
        table.own(Term(1), at(0));
        for number in 0..members {
            assert!(table.put(member(number, State::Alive), at(0)));
        }
        table
    }

    #[test]
    fn a_copy_follows_by_changes_and_has_the_same_digest() {
        let mut table = owned(5);
        let mut copy = Table::new(DomainName::try_from("d").unwrap());
        assert!(copy.apply(table.changes_since(copy.held(), at(1)), at(1)));
        assert_eq!(copy.digest(), table.digest());
        table.mark(&member(2, State::Alive).key, State::Dead, at(2));
        assert_ne!(copy.digest(), table.digest());
        let changes = table.changes_since(copy.held(), at(1));
        assert_eq!(changes.members.len(), 1, "only what changed");
        assert!(copy.apply(changes, at(3)));
        assert_eq!(copy.digest(), table.digest());
    }

    #[test]
    fn how_long_a_host_was_silent_goes_from_copy_to_copy() {
        let mut table = owned(2);
        table.mark(&member(1, State::Alive).key, State::Dead, at(10));
        let heard = |table: &Table| table.get(&member(1, State::Alive).key).unwrap().heard;
        let sent = |table: &Table, now| table.changes_since(TableVersion::default(), at(now));
        let mut standby = Table::new(DomainName::try_from("d").unwrap());
        assert!(standby.apply(sent(&table, 3_600), at(3_600)));
        assert_eq!(heard(&standby), at(0));
        // An earlier version does not send it: the stored value remains.
        let unsaid = Members { silent: Vec::new(), ..sent(&table, 4_000) };
        assert!(standby.apply(unsaid, at(4_000)));
        assert_eq!(heard(&standby), at(0));
        standby.own(Term(9), at(4_001));
        assert_eq!(heard(&standby), at(0), "a new representative did not hear it either");
        assert_eq!(standby.get(&member(0, State::Alive).key).unwrap().heard, at(4_001));
    }

    #[test]
    fn numbers_go_on_under_the_next_representative() {
        let table = owned(5);
        let (mut next, mut other) =
            (Table::new(DomainName::try_from("d").unwrap()), Table::new(DomainName::try_from("d").unwrap()));
        assert!(next.apply(table.changes_since(next.held(), at(1)), at(1)));
        assert!(other.apply(table.changes_since(other.held(), at(1)), at(1)));
        next.own(Term(9), at(2));
        next.mark(&member(0, State::Alive).key, State::Suspect, at(2));
        let changes = next.changes_since(other.held(), at(1));
        assert_eq!(changes.members.len(), 1, "a change of representative sends no whole table");
        assert!(other.apply(changes, at(3)));
        assert_eq!((other.digest(), other.held()), (next.digest(), next.held()));
    }

    #[test]
    fn a_copy_of_another_line_gets_the_whole_and_loses_what_is_not_in_it() {
        let table = owned(3);
        let mut stranger = Table::new(DomainName::try_from("d").unwrap());
        stranger.own(Term(7), at(0));
        stranger.put(member(40, State::Alive), at(0));
        let changes = table.changes_since(stranger.held(), at(1));
        assert_eq!((changes.since, changes.members.len()), (None, 3));
        assert!(stranger.apply(changes, at(1)));
        assert_eq!(stranger.len(), 3);
    }

    #[test]
    fn changes_that_do_not_follow_are_refused() {
        let mut table = owned(3);
        let mut copy = Table::new(DomainName::try_from("d").unwrap());
        assert!(copy.apply(table.changes_since(copy.held(), at(1)), at(1)));
        let behind = copy.held();
        table.mark(&member(1, State::Alive).key, State::Dead, at(2));
        let early = table.changes_since(behind, at(1));
        assert!(copy.apply(early.clone(), at(3)));
        assert!(!copy.apply(early, at(4)), "said twice");
    }

    #[test]
    fn an_earlier_life_does_not_replace_a_later_one() {
        let mut table = owned(1);
        let later = Member { incarnation: 3, ..member(0, State::Alive) };
        assert!(table.put(later, at(1)));
        assert!(!table.put(Member { incarnation: 2, ..member(0, State::Left) }, at(2)));
        assert_eq!(table.count(), Count { alive: 1, ..Count::default() });
    }

    #[test]
    fn what_a_member_says_of_itself_goes_before_what_others_report() {
        let mut table = owned(1);
        assert!(table.put(Member { incarnation: u64::MAX, ..member(0, State::Dead) }, at(1)));
        assert!(table.meet(member(0, State::Alive), at(2)));
        assert_eq!(table.count(), Count { alive: 1, ..Count::default() });
    }

    #[test]
    fn an_absurd_number_is_refused() {
        let mut copy = Table::new(DomainName::try_from("d").unwrap());
        let members = Members {
            term: Term(1),
            since: None,
            version: u64::MAX,
            members: Vec::new(),
            silent: Vec::new(),
        };
        assert!(!copy.apply(members, at(0)));
    }

    #[test]
    fn a_full_table_drops_the_longest_dead_and_never_a_live_one() {
        let most = u32::try_from(MEMBERS_MAX).unwrap();
        let mut table = owned(most);
        assert!(!table.put(member(most, State::Alive), at(1)));
        assert_eq!(table.refused_total(), 1);
        table.mark(&member(5, State::Alive).key, State::Dead, at(2));
        table.mark(&member(4, State::Alive).key, State::Dead, at(3));
        assert!(table.put(member(most, State::Alive), at(4)));
        assert!(table.get(&member(5, State::Alive).key).is_none());
        assert!(table.get(&member(4, State::Alive).key).is_some());
    }

    #[test]
    fn the_dead_are_forgotten_in_time() {
        let mut table = owned(2);
        table.mark(&member(0, State::Alive).key, State::Dead, at(10));
        table.forget(Duration::from_secs(60), Duration::from_secs(5), at(69));
        assert_eq!(table.len(), 2);
        table.forget(Duration::from_secs(60), Duration::from_secs(5), at(70));
        assert_eq!(table.len(), 1);
    }
}
