//! Memory of the engine between lines: values under keys, bounded.
//!
//! Pure. Invariant: at most [`KEYS_MAX`] keys and [`LEN_MAX_BYTES`]; the key that was not changed for the
//! longest time is dropped first, and counted.

use crate::found::Change;
use compact_str::CompactString;
use std::collections::{BTreeMap, HashMap};
use wire::time::Time;

/// Most keys of one engine: processes, sessions and jobs between two lines.
pub(crate) const KEYS_MAX: usize = 65_536;
/// Most bytes of one engine, keys and values: 65,536 keys with 128 bytes each.
const LEN_MAX_BYTES: usize = 8 << 20;
/// Most values under one key.
const VALUES_MAX: usize = 64;

/// Values under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) values: Vec<(CompactString, CompactString)>,
    pub(crate) offset: u64,
    pub(crate) time: Option<Time>,
    turn: u64,
}

impl Entry {
    /// Bytes of its values and their names.
    fn len_bytes(&self) -> usize {
        self.values.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Memory {
    entries: HashMap<CompactString, Entry>,
    by_turn: BTreeMap<u64, CompactString>,
    next_turn: u64,
    forgotten: u64,
    /// Bytes of all keys and values.
    len_bytes: usize,
}

impl Memory {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Number of keys dropped because a limit was reached.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Store values under a key; the offset and time are those of the record that created the key.
    pub(crate) fn remember(
        &mut self,
        key: CompactString,
        values: Vec<(CompactString, CompactString)>,
        offset: u64,
        time: Option<Time>,
    ) {
        let turn = self.next_turn;
        self.next_turn += 1;
        if !self.entries.contains_key(&key) {
            self.len_bytes += key.len();
        }
        let fresh = || Entry { values: Vec::new(), offset, time, turn };
        let entry = self.entries.entry(key.clone()).or_insert_with(fresh);
        self.by_turn.remove(&entry.turn);
        entry.turn = turn;
        let before = entry.len_bytes();
        for (name, value) in values {
            match entry.values.iter().position(|(known, _)| *known == name) {
                Some(at) => entry.values[at].1 = value,
                None if entry.values.len() < VALUES_MAX => entry.values.push((name, value)),
                None => {}
            }
        }
        self.len_bytes = self.len_bytes + entry.len_bytes() - before;
        self.by_turn.insert(turn, key);
        while self.entries.len() > KEYS_MAX || self.len_bytes > LEN_MAX_BYTES {
            let Some((_, oldest)) = self.by_turn.pop_first() else { return };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.len_bytes -= oldest.len() + entry.len_bytes();
            }
            self.forgotten += 1;
        }
    }

    /// Drop a key. Returns whether it existed.
    pub(crate) fn forget(&mut self, key: &str) -> bool {
        match self.entries.remove(key) {
            Some(entry) => {
                self.by_turn.remove(&entry.turn);
                self.len_bytes -= key.len() + entry.len_bytes();
                true
            }
            None => false,
        }
    }

    /// Changes that restore this memory, oldest key first.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.by_turn.values().filter_map(|key| {
            self.entries.get(key).map(|entry| Change::Remember {
                key: key.clone(),
                values: entry.values.clone(),
                offset: entry.offset,
                time: entry.time,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(memory: &mut Memory, key: &str, name: &str, value: &str, offset: u64) {
        memory.remember(key.into(), vec![(name.into(), value.into())], offset, None);
    }

    #[test]
    fn values_are_added_and_the_origin_stays() {
        let mut memory = Memory::default();
        remember(&mut memory, "k", "a", "1", 10);
        remember(&mut memory, "k", "b", "2", 20);
        remember(&mut memory, "k", "a", "3", 30);
        let entry = memory.get("k").expect("just remembered");
        assert_eq!(entry.values, [("a".into(), "3".into()), ("b".into(), "2".into())]);
        assert_eq!(entry.offset, 10);
    }

    #[test]
    fn bytes_are_bounded_and_counted_right() {
        let mut memory = Memory::default();
        let long = "x".repeat(LEN_MAX_BYTES / 4);
        for n in 0..20 {
            remember(&mut memory, &n.to_string(), "a", &long, 0);
            remember(&mut memory, &n.to_string(), "a", &long, 0);
            remember(&mut memory, "empty", "a", "", 0);
        }
        assert!(memory.len_bytes <= LEN_MAX_BYTES && memory.get("19").is_some());
        assert!(memory.get("0").is_none() && memory.forgotten() > 0);
        for n in 0..20 {
            memory.forget(&n.to_string());
        }
        memory.forget("empty");
        assert_eq!(memory.len_bytes, 0, "everything forgotten, nothing left");
    }

    #[test]
    fn the_longest_unchanged_key_goes_first() {
        let mut memory = Memory::default();
        for n in 0..KEYS_MAX {
            remember(&mut memory, &n.to_string(), "a", "1", 0);
        }
        remember(&mut memory, "0", "a", "2", 0);
        remember(&mut memory, "new", "a", "1", 0);
        assert!(memory.get("0").is_some());
        assert!(memory.get("1").is_none());
        assert_eq!(memory.forgotten(), 1);
    }
}
