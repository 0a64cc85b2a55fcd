//! Finds the call of an event among several with one name, for shared names such as a problem's nickname or a
//! file.
//!
//! Pure. Rule: an event belongs to the oldest call of its name for which its file has reported neither this
//! kind nor a later one. A call reported by another file is the same one only if the times agree. Calls with
//! the same reports form one class, so choosing from a thousand open calls, or ten thousand finished ones,
//! costs no more than from ten.
//! Not here: creating calls, and names that belong to one call for ever ([`crate::join`]).

use compact_str::CompactString;
use std::collections::{HashMap, VecDeque};
use wire::event::Kind;
use wire::id::Generation;
use wire::time::Time;

/// Tolerance between two logs for the time of the same transfer.
pub(crate) const SAME_TRANSFER_MICROS: i64 = 2_000_000;
/// Bits of the ranks in [`is_before_start`].
const BEFORE_START: u32 = 0b111;
/// How many open calls of one name are checked against an event of another file.
const OPEN_LOOKED_AT: usize = 64;

/// Kinds that each file has reported of a call, as bits by rank; sorted by file.
pub(crate) type KindsByFile = Vec<(Generation, u32)>;

/// Everything that the choice depends on, except the times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class {
    kinds_by_file: KindsByFile,
    is_started: bool,
    is_ended: bool,
}

/// Place of a call in the index: its class and its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexKey {
    class: Class,
    started: Option<i64>,
    ended: Option<i64>,
}

impl IndexKey {
    pub(crate) fn new(kinds_by_file: &KindsByFile, started: Option<Time>, ended: Option<Time>) -> IndexKey {
        IndexKey {
            class: Class {
                kinds_by_file: kinds_by_file.clone(),
                is_started: started.is_some(),
                is_ended: ended.is_some(),
            },
            started: started.map(Time::micros),
            ended: ended.map(Time::micros),
        }
    }
}

/// Calls of one class, oldest first, and indexed by their times.
#[derive(Clone, Debug, Default)]
struct Members {
    slots: Ordered<u64>,
    by_start: Ordered<(i64, u64)>,
    by_end: Ordered<(i64, u64)>,
}

/// A sorted set. Nearly all insertions are at its end and removals at its start, and most names have one
/// call: a deque takes a tenth of the memory of a tree.
#[derive(Clone, Debug)]
struct Ordered<T>(VecDeque<T>);

impl<T> Default for Ordered<T> {
    fn default() -> Ordered<T> {
        Ordered(VecDeque::new())
    }
}

impl<T: Ord + Copy> Ordered<T> {
    fn insert(&mut self, value: T) {
        if let Err(at) = self.0.binary_search(&value) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, value);
        }
    }

    fn remove(&mut self, value: T) {
        if let Ok(at) = self.0.binary_search(&value) {
            self.0.remove(at);
        }
    }

    fn range(&self, from: T, to: T) -> impl Iterator<Item = &T> {
        let start = self.0.partition_point(|value| *value < from);
        let end = self.0.partition_point(|value| *value <= to);
        self.0.range(start..end)
    }
}

/// Index of all calls with shared names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// A name has few classes, so they are searched one by one.
    groups: HashMap<CompactString, Vec<(Class, Members)>>,
}

impl Shared {
    /// Insert a call under its names.
    pub(crate) fn file(&mut self, names: &[CompactString], slot: u64, index_key: &IndexKey) {
        for name in names {
            if !self.groups.contains_key(name) {
                self.groups.insert(name.clone(), Vec::with_capacity(1));
            }
            let group = self.groups.get_mut(name).expect("just made");
            let at = group.iter().position(|(class, _)| *class == index_key.class);
            let at = at.unwrap_or_else(|| {
                group.push((index_key.class.clone(), Members::default()));
                group.len() - 1
            });
            let members = &mut group[at].1;
            members.slots.insert(slot);
            index_key.started.into_iter().for_each(|at| members.by_start.insert((at, slot)));
            index_key.ended.into_iter().for_each(|at| members.by_end.insert((at, slot)));
        }
    }

    /// Remove a call that was inserted with this key.
    pub(crate) fn unfile(&mut self, names: &[CompactString], slot: u64, index_key: &IndexKey) {
        for name in names {
            let Some(group) = self.groups.get_mut(name) else { continue };
            let Some(at) = group.iter().position(|(class, _)| *class == index_key.class) else { continue };
            let members = &mut group[at].1;
            members.slots.remove(slot);
            index_key.started.into_iter().for_each(|at| members.by_start.remove((at, slot)));
            index_key.ended.into_iter().for_each(|at| members.by_end.remove((at, slot)));
            if members.slots.0.is_empty() {
                group.swap_remove(at);
            }
            if group.is_empty() {
                self.groups.remove(name);
            }
        }
    }

    /// The call for an event of this kind and time in `file`, under the first of `names` that has one; a call
    /// of another file must also satisfy `fits`.
    pub(crate) fn find(
        &self,
        names: &[CompactString],
        file: Generation,
        (kind, time): (Kind, Time),
        fits: &dyn Fn(u64) -> bool,
    ) -> Option<u64> {
        names.iter().find_map(|name| {
            let group = self.groups.get(name)?;
            let choices = group.iter().filter_map(|(class, members)| {
                let slot = choose(class, members, file, (kind, time), fits)?;
                Some((class.kinds_of(file) & (1 << rank(Kind::JobStart)) == 0, slot))
            });
            // A call whose start the file has reported is preferred.
            choices.min().map(|(_, slot)| slot)
        })
    }
}

impl Class {
    /// Kinds that this file has reported.
    fn kinds_of(&self, file: Generation) -> u32 {
        self.kinds_by_file.iter().find(|(known, _)| *known == file).map_or(0, |&(_, kinds)| kinds)
    }

    /// Kinds that any file has reported.
    fn kinds(&self) -> u32 {
        self.kinds_by_file.iter().fold(0, |all, (_, kinds)| all | kinds)
    }
}

/// The call of a class that the event may belong to.
#[expect(clippy::wildcard_enum_match_arm, reason = "most kinds are alike here")]
fn choose(
    class: &Class,
    members: &Members,
    file: Generation,
    (kind, time): (Kind, Time),
    fits: &dyn Fn(u64) -> bool,
) -> Option<u64> {
    let oldest = || members.slots.0.front().copied();
    let oldest_fit = || members.slots.0.iter().take(OPEN_LOOKED_AT).copied().find(|&slot| fits(slot));
    let earliest = (time.micros().saturating_sub(SAME_TRANSFER_MICROS), 0);
    let near = |by_moment: &Ordered<(i64, u64)>| {
        let last = (time.micros().saturating_add(SAME_TRANSFER_MICROS), u64::MAX);
        by_moment.range(earliest, last).map(|&(_, slot)| slot).filter(|&slot| fits(slot)).min()
    };
    let next = |by_moment: &Ordered<(i64, u64)>| {
        let slots = by_moment.range(earliest, (i64::MAX, u64::MAX)).map(|&(_, slot)| slot);
        slots.take(OPEN_LOOKED_AT).find(|&slot| fits(slot))
    };
    let own = class.kinds_of(file);
    if own != 0 {
        // The file's own call, unless another file reported its end at another time.
        return match (rank(kind) > highest_rank(own), class.is_ended) {
            (false, _) => None,
            (true, false) => oldest(),
            (true, true) if is_before_start(kind) => next(&members.by_end),
            (true, true) => near(&members.by_end),
        };
    }
    match kind {
        // A run whose submission is read later than its start.
        _ if is_before_start(kind) && class.is_started && class.kinds() & BEFORE_START == 0 => {
            next(&members.by_start)
        }
        Kind::JobSubmit => None,
        Kind::JobStart if !class.is_started && !class.is_ended && is_selected(class) => oldest_fit(),
        Kind::TransferStart | Kind::JobStart => near(&members.by_start),
        _ if class.is_ended => near(&members.by_end),
        _ if is_opened(class, kind) => oldest_fit(),
        _ => None,
    }
}

/// Whether a call opened by another file may receive this event; if only its host was selected, only an end
/// may follow.
fn is_opened(class: &Class, kind: Kind) -> bool {
    class.is_started || (kind == Kind::JobEnd && is_selected(class))
}

fn is_selected(class: &Class) -> bool {
    class.kinds() & (1 << rank(Kind::JobSelect)) != 0
}

/// Kinds of events before the start.
fn is_before_start(kind: Kind) -> bool {
    matches!(kind, Kind::JobSubmit | Kind::ServerList | Kind::JobSelect)
}

/// Position of a kind in the life of a call.
#[expect(clippy::wildcard_enum_match_arm, reason = "most kinds are alike here")]
fn rank(kind: Kind) -> u32 {
    match kind {
        Kind::JobSubmit | Kind::JobReject => 0,
        Kind::ServerList => 1,
        Kind::JobSelect => 2,
        Kind::JobStart | Kind::TransferStart => 3,
        Kind::JobEnd | Kind::TransferEnd => 5,
        _ => 4,
    }
}

fn highest_rank(kinds: u32) -> u32 {
    31 - kinds.leading_zeros().min(31)
}

/// Record that `file` reported an event of this kind.
pub(crate) fn add_kind(kinds_by_file: &mut KindsByFile, file: Generation, kind: Kind) {
    let bit = 1 << rank(kind);
    match kinds_by_file.binary_search_by_key(&file, |&(known, _)| known) {
        Ok(at) => kinds_by_file[at].1 |= bit,
        Err(at) => kinds_by_file.insert(at, (file, bit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Generation = Generation(1);
    const B: Generation = Generation(2);

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    /// Reports of the files about a call, with its start and end.
    type Life<'a> = (&'a [(Generation, Kind)], Option<i64>, Option<i64>);

    fn shared(calls: &[Life<'_>]) -> Shared {
        let mut shared = Shared::default();
        for (slot, (kinds, started, ended)) in (0u64..).zip(calls) {
            let mut kinds_by_file = KindsByFile::new();
            kinds.iter().for_each(|&(file, kind)| add_kind(&mut kinds_by_file, file, kind));
            shared.file(&["n".into()], slot, &IndexKey::new(&kinds_by_file, started.map(at), ended.map(at)));
        }
        shared
    }

    fn check(shared: &Shared, file: Generation, kind: Kind, secs: i64, expected: Option<u64>) {
        assert_eq!(
            shared.find(&["n".into()], file, (kind, at(secs)), &|_| true),
            expected,
            "{file:?} {kind} {secs}"
        );
    }

    #[test]
    fn the_oldest_call_that_lacks_the_kind_is_chosen() {
        let submitted: &[_] = &[(A, Kind::JobSubmit)];
        let selected: &[_] = &[(A, Kind::JobSubmit), (A, Kind::JobSelect)];
        let all = shared(&[(selected, None, None), (submitted, None, None), (submitted, None, None)]);
        check(&all, A, Kind::JobSelect, 5, Some(1));
        check(&all, A, Kind::JobEnd, 5, Some(0));
        check(&all, A, Kind::JobSubmit, 5, None);
        // Another file's start and end may follow a selection; its submission never does.
        check(&all, B, Kind::JobEnd, 5, Some(0));
        check(&all, B, Kind::JobSubmit, 5, None);
        check(&all, B, Kind::JobStart, 5, Some(0));
        check(&shared(&[(submitted, None, None)]), B, Kind::JobStart, 5, None);
    }

    #[test]
    fn what_another_file_reported_must_agree_in_time() {
        let whole: &[_] = &[(A, Kind::TransferStart), (A, Kind::TransferEnd)];
        let all = shared(&[(whole, Some(10), Some(20)), (whole, Some(30), Some(40))]);
        check(&all, B, Kind::TransferStart, 31, Some(1));
        check(&all, B, Kind::TransferStart, 25, None);
        check(&all, B, Kind::TransferEnd, 19, Some(0));
        check(&all, B, Kind::TransferEnd, 30, None);
        check(&all, A, Kind::TransferEnd, 20, None);
    }

    #[test]
    fn a_request_is_of_the_next_run_in_another_file() {
        let run: &[_] = &[(B, Kind::JobStart), (B, Kind::JobEnd)];
        let asked: &[_] = &[(A, Kind::JobSubmit), (B, Kind::JobStart), (B, Kind::JobEnd)];
        let all =
            shared(&[(run, Some(10), Some(90)), (run, Some(30), Some(40)), (asked, Some(50), Some(60))]);
        check(&all, A, Kind::JobSubmit, 5, Some(0));
        check(&all, A, Kind::JobSubmit, 20, Some(1));
        check(&all, A, Kind::JobSubmit, 45, None);
        check(&all, A, Kind::JobSelect, 46, Some(2));
        check(&all, A, Kind::JobSelect, 70, None);
    }

    #[test]
    fn a_call_that_does_not_fit_is_not_chosen() {
        let whole: &[_] = &[(A, Kind::TransferStart), (A, Kind::TransferEnd)];
        let open: &[_] = &[(A, Kind::TransferStart)];
        let all = shared(&[(whole, Some(10), Some(20)), (whole, Some(11), Some(21)), (open, Some(12), None)]);
        for (unfit, expected) in [(9, 0), (0, 1)] {
            let found = all.find(&["n".into()], B, (Kind::TransferEnd, at(21)), &|slot| slot != unfit);
            assert_eq!(found, Some(expected), "{unfit}");
        }
        assert_eq!(all.find(&["n".into()], B, (Kind::TransferEnd, at(21)), &|slot| slot == 2), Some(2));
    }

    #[test]
    fn what_is_taken_away_is_gone_from_every_index() {
        let mut all = shared(&[(&[(A, Kind::TransferStart)], Some(10), Some(20))]);
        let mut kinds_by_file = KindsByFile::new();
        add_kind(&mut kinds_by_file, A, Kind::TransferStart);
        all.unfile(&["n".into()], 0, &IndexKey::new(&kinds_by_file, Some(at(10)), Some(at(20))));
        assert!(all.groups.is_empty());
    }
}
