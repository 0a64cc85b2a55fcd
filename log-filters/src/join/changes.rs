//! Changes of calls since they were last taken, for a store of the ended ones.
//!
//! Pure. Rules: a call is taken as it is at that moment, so several changes of it are one. A call that is dropped
//! from memory before it was taken is handed over as it was then. What waits is bounded; changes beyond are
//! counted.
//! Not here: the store.

use super::{Entry, Joiner};
use compact_str::CompactString;
use std::collections::BTreeSet;
use wire::call::usage::Usage;
use wire::call::{State, StoredCall};
use wire::time::Time;

/// Most calls that wait after they were dropped from memory, and most ids that wait.
const WAITING_MAX: usize = 20_000;

/// An id under which no ended call is known any more: the call runs again, or has another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerId {
    /// The id.
    pub id: CompactString,
    /// Time of the call's first event: earlier calls of this id are meant by no change.
    pub first: Time,
}

/// Changes of calls, in the order in which they are to be applied: first the ids that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChanges {
    /// Ids to be forgotten.
    pub former: Vec<FormerId>,
    /// A call may be there twice: dropped, and as a later event opened it again.
    pub left: Vec<StoredCall>,
    /// Usages of jobs that are not in memory: not known yet, or not any more.
    pub late: Vec<LateUsage>,
}

/// Usage of a job, with the names that the processes gave it, as `PRODUCT:JOB`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateUsage {
    /// Names of the job, the best first.
    pub names: Vec<CompactString>,
    /// The usage.
    pub usage: Usage,
}

/// Changes that were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The changes.
    pub changes: CallChanges,
    /// Whether none are left.
    pub is_all: bool,
    /// Number of changes that were lost until now because too many waited.
    pub lost: u64,
}

/// What waits to be taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    slots: BTreeSet<u64>,
    changes: CallChanges,
    lost: u64,
}

impl CallChanges {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.former.is_empty() && self.left.is_empty() && self.late.is_empty()
    }

    /// Forgets the changes.
    pub fn clear(&mut self) {
        *self = CallChanges::default();
    }

    /// Adds later changes.
    pub fn extend(&mut self, later: CallChanges) {
        self.former.extend(later.former);
        self.left.extend(later.left);
        self.late.extend(later.late);
    }
}

impl Waiting {
    fn push_former(&mut self, entry: &Entry, id: &CompactString) {
        match self.changes.former.len() < WAITING_MAX {
            true => self.changes.former.push(FormerId { id: id.clone(), first: entry.progress.first }),
            false => self.lost += 1,
        }
    }
}

impl Joiner {
    /// Collects changes from now on. All calls count as changed: a store may have one as ended that runs again.
    pub fn collect_changes(&mut self) {
        let slots = self.entries.keys().copied().collect();
        self.waiting = Some(Waiting { slots, ..Waiting::default() });
    }

    /// Takes changes since they were last taken, of `limit` calls in memory at most; none unless they are collected.
    pub fn take_changes(&mut self, limit: usize) -> Taken {
        let Some(waiting) = &mut self.waiting else { return Taken { is_all: true, ..Taken::default() } };
        let later = waiting.slots.iter().nth(limit).copied();
        let later = later.map(|first| waiting.slots.split_off(&first)).unwrap_or_default();
        let slots = std::mem::replace(&mut waiting.slots, later);
        let (is_all, lost) = (waiting.slots.is_empty(), waiting.lost);
        let mut changes = std::mem::take(&mut waiting.changes);
        for slot in slots.into_iter().filter(|slot| self.entries.contains_key(slot)) {
            let left = self.left(slot);
            match left.call.state {
                State::Ended => changes.left.push(left),
                State::Waiting | State::Running => {
                    changes.former.push(FormerId { id: left.call.id, first: left.first });
                }
            }
        }
        Taken { changes, is_all, lost }
    }

    /// Whether a call has ended by its own events, if changes are collected.
    pub(super) fn had_ended(&self, slot: u64) -> bool {
        self.waiting.is_some() && self.entries[&slot].progress.state() == State::Ended
    }

    /// Notes a change of a call, and with it of those that show parts of it.
    pub(super) fn note_change(&mut self, slot: u64, had_ended: bool) {
        if self.waiting.is_none() {
            return;
        }
        let entry = &self.entries[&slot];
        let mut slots: Vec<u64> = self.parts(slot).collect();
        slots.extend(self.parent(entry).filter(|_| entry.is_part));
        if had_ended || entry.progress.state() == State::Ended {
            slots.push(slot);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.slots.extend(slots);
        }
    }

    /// Notes that a call has this id no longer.
    pub(super) fn note_former(&mut self, slot: u64, id: &CompactString) {
        if let (Some(waiting), Some(entry)) = (&mut self.waiting, self.entries.get(&slot)) {
            waiting.push_former(entry, id);
        }
    }

    /// Notes a usage whose call is not in memory.
    pub(super) fn note_late(&mut self, late: LateUsage) {
        let Some(waiting) = &mut self.waiting else { return };
        match waiting.changes.late.len() < WAITING_MAX {
            true => waiting.changes.late.push(late),
            false => waiting.lost += 1,
        }
    }

    /// Notes that a call is about to be dropped from memory.
    pub(super) fn note_drop(&mut self, slot: u64) {
        let Some(waiting) = &self.waiting else { return };
        let Some(entry) = self.entries.get(&slot) else { return };
        if !waiting.slots.contains(&slot) && entry.progress.state() == State::Ended {
            return;
        }
        let left = (waiting.changes.left.len() < WAITING_MAX).then(|| self.left(slot));
        let Some(waiting) = &mut self.waiting else { return };
        match left {
            Some(left) => waiting.changes.left.push(left),
            None => waiting.lost += 1,
        }
    }

    fn left(&self, slot: u64) -> StoredCall {
        let (entry, call) = (&self.entries[&slot], self.shown(slot));
        let known = entry.names.iter().chain(&entry.absorbed);
        let aliases: BTreeSet<&CompactString> = known.filter(|name| **name != call.id).collect();
        StoredCall { first: entry.progress.first, aliases: aliases.into_iter().cloned().collect(), call }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use wire::call::Authority;
    use wire::event::{Content, Outcome};

    fn joiner(calls_max: usize) -> Joiner {
        let mut joiner = Joiner::new(calls_max);
        joiner.collect_changes();
        joiner
    }

    fn event(joiner: &mut Joiner, kind: Kind, names: &[&str], secs: i64) {
        part(joiner, kind, names, secs, None);
    }

    fn part(joiner: &mut Joiner, kind: Kind, names: &[&str], secs: i64, parent: Option<&str>) {
        let keys = Keys {
            scope: "test".into(),
            names: names.iter().map(|&name| name.into()).collect(),
            parent: parent.map(Into::into),
            naming: if parent.is_some() { Naming::Part } else { Naming::Unique },
            authority: Authority::Scheduler,
        };
        let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
        content.outcome = (kind == Kind::JobEnd).then_some(Outcome::Ok);
        let found = Found { offset: 0, number: 0, content, keys: Some(keys) };
        let offset = u64::try_from(secs).expect("times are positive");
        let id = Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 };
        joiner.join(&found, id);
    }

    fn shown(changes: &CallChanges) -> (Vec<&str>, Vec<&str>) {
        let former = changes.former.iter().map(|former| former.id.as_str()).collect();
        (former, changes.left.iter().map(|left| left.call.id.as_str()).collect())
    }

    #[test]
    fn an_ended_call_is_taken_once_with_its_aliases_and_a_running_one_is_not() {
        let mut joiner = joiner(9);
        event(&mut joiner, Kind::JobStart, &["1", "one"], 1);
        event(&mut joiner, Kind::JobStart, &["2"], 1);
        assert!(joiner.take_changes(99).changes.is_empty());
        event(&mut joiner, Kind::JobEnd, &["1"], 5);
        let changes = joiner.take_changes(99).changes;
        assert_eq!(shown(&changes), (vec![], vec!["test:1"]));
        assert_eq!(changes.left[0].aliases, ["test:one"]);
        assert_eq!(changes.left[0].first, Time::from_micros(1_000_000));
        assert!(joiner.take_changes(99).changes.is_empty());
    }

    #[test]
    fn a_call_that_runs_again_or_has_another_id_is_no_longer_known_under_its_former_one() {
        let mut joiner = joiner(9);
        event(&mut joiner, Kind::JobStart, &["1"], 1);
        event(&mut joiner, Kind::JobEnd, &["1"], 5);
        assert_eq!(shown(&joiner.take_changes(99).changes), (vec![], vec!["test:1"]));
        event(&mut joiner, Kind::JobRequeue, &["1"], 6);
        assert_eq!(shown(&joiner.take_changes(99).changes), (vec!["test:1"], vec![]));
        event(&mut joiner, Kind::JobEnd, &["1"], 9);
        joiner.take_changes(99);
        event(&mut joiner, Kind::JobStart, &["7"], 7);
        event(&mut joiner, Kind::JobEnd, &["7"], 9);
        joiner.take_changes(99);
        // Its real name becomes known, and both are one.
        event(&mut joiner, Kind::JobStart, &["8", "7"], 7);
        let changes = joiner.take_changes(99).changes;
        assert_eq!(shown(&changes), (vec!["test:7"], vec!["test:8"]));
        assert_eq!(changes.left[0].aliases, ["test:7"]);
    }

    #[test]
    fn a_call_that_runs_when_collection_begins_is_not_known_as_ended() {
        let mut joiner = Joiner::new(9);
        event(&mut joiner, Kind::JobStart, &["1"], 1);
        event(&mut joiner, Kind::JobEnd, &["1"], 5);
        event(&mut joiner, Kind::JobRequeue, &["1"], 6);
        event(&mut joiner, Kind::JobStart, &["2"], 6);
        event(&mut joiner, Kind::JobEnd, &["2"], 7);
        joiner.collect_changes();
        assert_eq!(shown(&joiner.take_changes(99).changes), (vec!["test:1"], vec!["test:2"]));
    }

    #[test]
    fn changes_are_taken_in_parts() {
        let mut joiner = joiner(9);
        for (job, secs) in [("1", 1), ("2", 3), ("3", 5)] {
            event(&mut joiner, Kind::JobStart, &[job], secs);
            event(&mut joiner, Kind::JobEnd, &[job], secs + 1);
        }
        let first = joiner.take_changes(2);
        assert_eq!((shown(&first.changes).1, first.is_all), (vec!["test:1", "test:2"], false));
        let rest = joiner.take_changes(2);
        assert_eq!((shown(&rest.changes).1, rest.is_all), (vec!["test:3"], true));
    }

    #[test]
    fn a_call_dropped_before_it_was_taken_is_handed_over() {
        let mut joiner = joiner(2);
        event(&mut joiner, Kind::JobStart, &["1"], 1);
        event(&mut joiner, Kind::JobEnd, &["1"], 2);
        event(&mut joiner, Kind::JobStart, &["2"], 3);
        event(&mut joiner, Kind::JobStart, &["3"], 4);
        event(&mut joiner, Kind::JobStart, &["4"], 5);
        let changes = joiner.take_changes(99).changes;
        assert_eq!(shown(&changes), (vec![], vec!["test:1", "test:2"]));
        assert_eq!(changes.left[1].call.state, State::Running, "nothing else says what became of it");
        // One that was taken and has not changed is not handed over again.
        event(&mut joiner, Kind::JobEnd, &["3"], 6);
        joiner.take_changes(99);
        event(&mut joiner, Kind::JobStart, &["5"], 7);
        assert!(joiner.take_changes(99).changes.is_empty());
    }

    #[test]
    fn a_whole_changes_with_its_parts() {
        let mut joiner = joiner(9);
        event(&mut joiner, Kind::JobSubmit, &["9"], 1);
        part(&mut joiner, Kind::JobStart, &["9_1"], 2, Some("9"));
        part(&mut joiner, Kind::JobEnd, &["9_1"], 3, Some("9"));
        assert_eq!(shown(&joiner.take_changes(99).changes).1, ["test:9", "test:9_1"]);
    }
}
