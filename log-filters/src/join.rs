//! Joins events to calls: finds the job, transfer or request that an event belongs to.
//!
//! Pure. Rules: a repeated or late event does not create a second call, but a number reused after its call is
//! over does. Where logs differ, accounting is preferred to the scheduler, the scheduler to a host. The
//! number of stored calls is limited: when the limit is reached, the sensor that opened most calls (`shares`)
//! loses its oldest finished one, and the loss is counted.
//! Not here: how an event changes its call (`progress`).

use crate::chief::{self, Chief};
use crate::found::Found;
use crate::lives::Lives;
use crate::namesakes::{IndexKey, KindsByFile, Shared, add_kind};
use crate::progress::Progress;
use compact_str::{CompactString, format_compact};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};
use wire::call::{Call, Keys, Naming, State};
use wire::event::{Id, Kind};
use wire::id::{Generation, SensorKey};

pub mod changes;
mod shares;
mod sharing;
mod snapshot;
mod usages;
mod wholes;

use shares::Shares;

/// Default limit of stored calls: some hours of a busy cluster, in about 20 MB.
pub const CALLS_DEFAULT: usize = 20_000;
/// How many of the oldest calls are searched for a finished one when room is needed.
const OLDEST_LOOKED_AT: usize = 64;
/// Tolerance for the clocks of two daemons, and for accounting in whole seconds.
const CLOCKS_DIFFER_MICROS: i64 = 1_000_000;
/// How long after its end a late log may report the call's start.
const LATE_START_MICROS: i64 = 60_000_000;
/// How long after its end logs may still report about a call: a host may be slow to end its processes.
const LATE_END_MICROS: i64 = 1_800_000_000;
/// How many of the latest calls of a reused number are searched for a late event.
const LIVES_LOOKED_AT: usize = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// Sensor whose event opened it.
    owner: SensorKey,
    names: Vec<CompactString>,
    /// Index of the name that its id is made of.
    chief: Chief,
    /// Previous ids: its own, and those of calls merged into it.
    absorbed: Vec<CompactString>,
    parent: Option<CompactString>,
    /// Whether the parent consists only of its parts.
    is_part: bool,
    progress: Progress,
    /// Kinds that each file has reported, for shared names.
    kinds_by_file: KindsByFile,
    /// Its place among the calls of its shared names, if it has any.
    #[serde(skip)]
    index_key: Option<Box<IndexKey>>,
}

/// All calls of a sensor, indexed by names and ids.
#[derive(Clone, Debug)]
pub struct Joiner {
    /// Boxed, because the nodes of a tree that grows at its end stay half empty.
    entries: BTreeMap<u64, Box<Entry>>,
    /// Calls by name, oldest first.
    by_name: HashMap<CompactString, Lives>,
    shared: Shared,
    /// Parts by the name of their parent, for parents that consist only of parts.
    parts: HashMap<CompactString, VecDeque<u64>>,
    by_id: HashMap<CompactString, u64>,
    shares: Shares,
    next: u64,
    /// Record of the last event: its file, offset and primary name, and the call it was joined to.
    last_record: Option<(Generation, u64, CompactString, u64)>,
    calls_max: usize,
    dropped: u64,
    /// `None` unless changes are collected.
    waiting: Option<changes::Waiting>,
    usages: usages::Usages,
}

impl Default for Joiner {
    fn default() -> Joiner {
        Joiner::new(CALLS_DEFAULT)
    }
}

impl Joiner {
    /// Create a joiner that stores at most `calls_max` calls.
    #[must_use]
    pub fn new(calls_max: usize) -> Joiner {
        Joiner {
            entries: BTreeMap::new(),
            by_name: HashMap::new(),
            shared: Shared::default(),
            parts: HashMap::new(),
            by_id: HashMap::new(),
            shares: Shares::default(),
            next: 0,
            last_record: None,
            calls_max: calls_max.max(1),
            dropped: 0,
            waiting: None,
            usages: usages::Usages::default(),
        }
    }

    /// Join an event to its call. Returns the call's id, empty if the event belongs to no call.
    pub fn join(&mut self, found: &Found, id: Id) -> CompactString {
        self.join_in_lane(found, id, id.generation)
    }

    /// As [`Joiner::join`], for events of several sensors: each of their generations has a lane of its own.
    pub fn join_in_lane(&mut self, found: &Found, event: Id, lane: Generation) -> CompactString {
        let Some(keys) = &found.keys else {
            self.take_usage(found, event);
            return CompactString::default();
        };
        let id = Id { generation: lane, ..event };
        self.usages.note_scope(&keys.scope);
        let names: Vec<CompactString> = keys.names.iter().map(|name| scoped(keys, name)).collect();
        let slot = match keys.naming {
            Naming::Unique | Naming::Part => self.unique(found, &names),
            Naming::Shared => self.of_record(&names, id).or_else(|| self.namesake(found, &names, id)),
        };
        let slot = slot.unwrap_or_else(|| self.open(found, keys, &names, id));
        self.add_names(slot, &names);
        self.add_parent(slot, keys, &names);
        let had_ended = self.had_ended(slot);
        let entry = self.entries.get_mut(&slot).expect("found or opened above");
        if keys.naming == Naming::Shared || !entry.kinds_by_file.is_empty() {
            add_kind(&mut entry.kinds_by_file, id.generation, found.content.kind);
        }
        let job = name_of_job(keys, &found.content.job);
        entry.progress.known_as(job, u8::try_from(names.len()).unwrap_or(u8::MAX));
        entry.progress.state_details(&found.content, keys.authority, event);
        entry.progress.apply(&found.content, keys.authority);
        if keys.naming != Naming::Shared {
            self.rename(slot, &names);
        }
        let call_id = self.entries[&slot].progress.id.clone();
        self.file(slot);
        self.note_change(slot, had_ended);
        self.last_record = names.into_iter().next().map(|name| (id.generation, id.offset, name, slot));
        call_id
    }

    /// Set the parent of a call, unless it is the call itself.
    fn add_parent(&mut self, slot: u64, keys: &Keys, names: &[CompactString]) {
        let Some(parent) = &keys.parent else { return };
        let entry = self.entries.get_mut(&slot).expect("the caller has it");
        if entry.parent.is_some() {
            return;
        }
        let parent = scoped(keys, parent);
        if names.contains(&parent) {
            return;
        }
        if keys.naming == Naming::Part {
            entry.is_part = true;
            self.parts.entry(parent.clone()).or_default().push_back(slot);
        }
        entry.parent = Some(parent);
    }

    /// The call with this id or previous id; else the latest with this name.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Call> {
        self.slot(id).map(|slot| self.shown(slot))
    }

    /// Present id of the call that has or had this one.
    #[must_use]
    pub fn present_id(&self, id: &str) -> Option<&CompactString> {
        self.by_id.get(id).map(|slot| &self.entries[slot].progress.id)
    }

    /// All ids under which events of this call are known.
    #[must_use]
    pub fn ids(&self, id: &str) -> Vec<CompactString> {
        let Some(entry) = self.slot(id).map(|slot| &self.entries[&slot]) else { return Vec::new() };
        std::iter::once(entry.progress.id.clone()).chain(entry.absorbed.iter().cloned()).collect()
    }

    /// All calls, in the order in which they became known.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = Call> + '_ {
        self.entries.keys().map(|&slot| self.shown(slot))
    }

    /// Number of stored calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no call is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of calls dropped because the limit was reached.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn slot(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).copied().or_else(|| self.by_name.get(id)?.last())
    }

    /// The call with the event's names; `None` if the event opens a new one.
    ///
    /// Each name selects one of its calls. A call is skipped if it also has a name that selected another one:
    /// then it is an earlier or later use of all its names. The remaining calls were known by different names
    /// and are now merged.
    fn unique(&mut self, found: &Found, names: &[CompactString]) -> Option<u64> {
        if let [only] = names {
            return self.life_of(only, found);
        }
        let lives: Vec<Option<u64>> = names.iter().map(|name| self.life_of(name, found)).collect();
        let is_another = |slot: u64| {
            let known = &self.entries[&slot].names;
            let mut others =
                names.iter().zip(&lives).filter(|(_, life)| life.is_some_and(|life| life != slot));
            others.any(|(name, _)| known.contains(name))
        };
        let mut slots: Vec<u64> = lives.iter().flatten().copied().filter(|&slot| !is_another(slot)).collect();
        slots.sort_unstable();
        slots.dedup();
        match slots.as_slice() {
            [] => lives.into_iter().flatten().max(),
            [only] => Some(*only),
            several => Some(self.merge(several)),
        }
    }

    /// The call of a name that the event belongs to: the latest, or the one that was still open at the
    /// event's time if the latest started after it; `None` if the event opens a new one.
    fn life_of(&self, name: &CompactString, found: &Found) -> Option<u64> {
        let lives = self.by_name.get(name)?;
        let last = lives.last()?;
        let progress = &self.entries[&last].progress;
        if is_new_life(progress, found) || self.is_whole_again(last, found) {
            return None;
        }
        let time = found.content.time.micros();
        if progress.first.micros() <= time + CLOCKS_DIFFER_MICROS {
            return Some(last);
        }
        let was_open = |&slot: &u64| {
            let ended = self.entries[&slot].progress.ended();
            slot != last && ended.is_some_and(|ended| time <= ended.micros() + CLOCKS_DIFFER_MICROS)
        };
        Some(lives.latest(LIVES_LOOKED_AT).find(was_open).unwrap_or(last))
    }

    /// Whether the event submits a new array (or other call with parts) under a reused number: such a call
    /// has no end of its own.
    fn is_whole_again(&self, slot: u64, found: &Found) -> bool {
        let content = &found.content;
        if content.kind != Kind::JobSubmit || self.parts.is_empty() {
            return false;
        }
        let submitted = self.entries[&slot].progress.submitted();
        submitted.is_some_and(|at| content.time.micros() > at.micros() + 2 * CLOCKS_DIFFER_MICROS)
            && self.parts(slot).next().is_some()
    }

    fn open(&mut self, found: &Found, keys: &Keys, names: &[CompactString], id: Id) -> u64 {
        self.make_room();
        let slot = self.next;
        self.next += 1;
        let call_id = match keys.naming {
            Naming::Shared => format_compact!("{}@{}-{}", names[0], id.generation, id.offset),
            Naming::Unique | Naming::Part => self.free_id(&names[0]),
        };
        self.by_id.insert(call_id.clone(), slot);
        let progress = Progress::new(call_id, found.content.time);
        let entry = Entry {
            owner: id.sensor,
            names: Vec::with_capacity(names.len()),
            chief: Chief::default(),
            absorbed: Vec::new(),
            parent: None,
            is_part: false,
            progress,
            kinds_by_file: KindsByFile::new(),
            index_key: None,
        };
        self.entries.insert(slot, Box::new(entry));
        self.shares.push(id.sensor, slot);
        slot
    }

    /// An unused id for a new call of this name: the name, with `#` and a number from the second call on.
    fn free_id(&self, name: &CompactString) -> CompactString {
        let lives = self.by_name.get(name).into_iter().flat_map(|lives| lives.latest(LIVES_LOOKED_AT));
        let last = lives.filter_map(|slot| chief::life(name, &self.entries[&slot].progress.id)).max();
        let mut life = last.map_or(1, |life| life.saturating_add(1));
        loop {
            let id = chief::id(name, life);
            if !self.by_id.contains_key(&id) {
                return id;
            }
            life += 1;
        }
    }

    /// Update the id to the primary name, in whatever order the events were received: an array task is `9_7`
    /// even if its submission reported only `9`. Previous ids stay known.
    fn rename(&mut self, slot: u64, names: &[CompactString]) {
        let entry = self.entries.get_mut(&slot).expect("the caller has it");
        entry.chief.hear(&entry.names, names);
        let name = entry.chief.name(&entry.names);
        if chief::life(name, &entry.progress.id).is_some() {
            return;
        }
        let name = name.clone();
        // A call with the better name may have been merged into one that became known earlier.
        let former = entry.absorbed.iter().find(|id| chief::life(&name, id).is_some()).cloned();
        let id = former.unwrap_or_else(|| self.free_id(&name));
        self.by_id.insert(id.clone(), slot);
        let entry = self.entries.get_mut(&slot).expect("looked at above");
        entry.absorbed.retain(|known| *known != id);
        let former = std::mem::replace(&mut entry.progress.id, id);
        entry.absorbed.push(former.clone());
        self.note_former(slot, &former);
    }

    fn add_names(&mut self, slot: u64, names: &[CompactString]) {
        let entry = self.entries.get_mut(&slot).expect("the caller has it");
        for name in names {
            if entry.names.contains(name) {
                continue;
            }
            // The caller files it again under all names.
            if let Some(former) = entry.index_key.take() {
                self.shared.unfile(&entry.names, slot, &former);
            }
            entry.names.push(name.clone());
            bear(&mut self.by_name, name, slot);
        }
    }

    /// Merge several calls into the oldest.
    fn merge(&mut self, slots: &[u64]) -> u64 {
        let into = slots[0];
        for &slot in &slots[1..] {
            let id = self.entries[&slot].progress.id.clone();
            self.note_former(slot, &id);
            let Some(other) = self.remove(slot) else { continue };
            for id in std::iter::once(&other.progress.id).chain(&other.absorbed) {
                self.by_id.insert(id.clone(), into);
            }
            self.add_names(into, &other.names);
            let entry = self.entries.get_mut(&into).expect("it is the oldest");
            entry.chief.absorb(&entry.names, other.chief, &other.names);
            entry.absorbed.push(other.progress.id.clone());
            entry.absorbed.extend(other.absorbed);
            if entry.parent.is_none() {
                (entry.parent, entry.is_part) = (other.parent, other.is_part);
                if let Some(parent) = entry.parent.clone().filter(|_| entry.is_part) {
                    self.parts.entry(parent).or_default().push_back(into);
                }
            }
            entry.progress.absorb(&other.progress);
        }
        into
    }

    /// Whether the call may be dropped: a call with parts stays until they are gone, and then has their
    /// outcome.
    fn is_over(&self, slot: u64) -> bool {
        self.entries[&slot].progress.state() == State::Ended && self.parts(slot).next().is_none()
    }

    fn make_room(&mut self) {
        while self.entries.len() >= self.calls_max {
            let over = |slot: &u64| !self.entries.contains_key(slot) || self.is_over(*slot);
            let Some(owner) = self.shares.largest() else { return };
            let at = self.shares.oldest(owner).take(OLDEST_LOOKED_AT).position(over).unwrap_or(0);
            let Some(slot) = self.shares.take(owner, at) else { return };
            let whole =
                self.entries.get(&slot).filter(|entry| entry.is_part).and_then(|entry| self.parent(entry));
            self.note_drop(slot);
            if let Some(part) = self.remove(slot) {
                self.dropped += 1;
                if let Some(whole) = whole.and_then(|whole| self.entries.get_mut(&whole)) {
                    whole.progress.outlive(&part.progress.call());
                }
            }
        }
    }

    fn remove(&mut self, slot: u64) -> Option<Box<Entry>> {
        let entry = self.entries.remove(&slot)?;
        if let Some(index_key) = &entry.index_key {
            self.shared.unfile(&entry.names, slot, index_key);
        }
        if let Some(parent) = entry.parent.as_ref().filter(|_| entry.is_part)
            && let Some(parts) = self.parts.get_mut(parent)
        {
            // Usually the oldest part is removed first.
            if let Some(at) = parts.iter().position(|&part| part == slot) {
                parts.remove(at);
            }
            if parts.is_empty() {
                self.parts.remove(parent);
            }
        }
        for name in &entry.names {
            if self.by_name.get_mut(name).is_some_and(|lives| lives.remove(slot)) {
                self.by_name.remove(name);
            }
        }
        for id in std::iter::once(&entry.progress.id).chain(&entry.absorbed) {
            self.by_id.remove(id);
        }
        Some(entry)
    }
}

/// Index a call by a name.
fn bear(by_name: &mut HashMap<CompactString, Lives>, name: &CompactString, slot: u64) {
    match by_name.get_mut(name) {
        Some(lives) => lives.insert(slot),
        None => {
            by_name.insert(name.clone(), Lives::One(slot));
        }
    }
}

/// The job number of the event's call: a record may give that of the whole array, or the part's own number
/// besides its index in the array. Then the primary name is the number that other logs print.
fn name_of_job<'a>(keys: &'a Keys, job: &'a CompactString) -> &'a CompactString {
    let is_lesser = keys.parent.as_ref() == Some(job) || keys.names.contains(job);
    if is_lesser && keys.naming != Naming::Shared { &keys.names[0] } else { job }
}

fn scoped(keys: &Keys, name: &str) -> CompactString {
    let mut scoped = CompactString::with_capacity(keys.scope.len() + 1 + name.len());
    scoped.push_str(&keys.scope);
    scoped.push(':');
    scoped.push_str(name);
    scoped
}

/// Whether the event belongs to a new call that reuses the name of a finished one.
#[expect(clippy::wildcard_enum_match_arm, reason = "most kinds are alike here")]
fn is_new_life(progress: &Progress, found: &Found) -> bool {
    let Some(ended) = progress.ended().filter(|_| progress.is_final()) else { return false };
    let content = &found.content;
    let after = |time: wire::time::Time, slack: i64| time.micros() > ended.micros() + slack;
    match content.kind {
        Kind::JobSubmit | Kind::ServerList | Kind::TransferStart => after(content.time, CLOCKS_DIFFER_MICROS),
        // A scheduler logs its selection and the end by one clock; a host's clock may differ.
        Kind::JobSelect if progress.is_selected() => after(content.time, CLOCKS_DIFFER_MICROS),
        Kind::JobSelect | Kind::JobStart => after(content.time, LATE_START_MICROS),
        Kind::JobEnd if after(content.ended.unwrap_or(content.time), LATE_END_MICROS) => true,
        _ => content.submitted.is_some_and(|submitted| after(submitted, CLOCKS_DIFFER_MICROS)),
    }
}
