//! Values shared between the logs of one product.
//!
//! Pure. Rule: if several logs store a value of one name under one key, the value of the latest record is
//! used, and of records with equal times the greater text; so the order in which logs are read does not
//! matter. The values of each log have their own limits, and are dropped when the log is no longer read.
//! Invariant: at most `KEYS_MAX` keys and `LEN_MAX_BYTES` per log, and `LOGS_MAX` logs per product.
//! Not here: values that a log stores for itself (`memory`).

use crate::found::Change;
use compact_str::CompactString;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::time::Time;

/// Most keys that one log shares: enough for servers and sessions, not for the jobs of a year.
pub(crate) const KEYS_MAX: usize = 4_096;
/// Most bytes of the keys and values that one log shares.
const LEN_MAX_BYTES: usize = 512 << 10;
/// Most logs of one product that share values.
const LOGS_MAX: usize = 64;

/// Name and value, with the time of their record.
type Dated = (CompactString, CompactString, Option<Time>);

/// Shared values of all products. A clone is another handle to the same values.
#[derive(Clone, Debug, Default)]
pub struct AcrossLogs {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    next_log: u64,
    products: BTreeMap<CompactString, BTreeMap<u64, Values>>,
}

/// Values shared by one log.
#[derive(Debug, Default)]
struct Values {
    entries: HashMap<CompactString, (Vec<Dated>, u64)>,
    by_turn: BTreeMap<u64, CompactString>,
    next_turn: u64,
    len_bytes: usize,
}

/// Handle of one log to the shared values of its product.
#[derive(Debug)]
pub(crate) struct Log {
    all: AcrossLogs,
    scope: CompactString,
    number: u64,
    forgotten: u64,
}

impl AcrossLogs {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Create the handle of a log of the product whose calls have this scope.
    pub(crate) fn log(&self, scope: CompactString) -> Log {
        let mut inner = self.lock();
        inner.next_log += 1;
        Log { all: self.clone(), scope, number: inner.next_log, forgotten: 0 }
    }
}

impl Log {
    /// Number of keys dropped because a limit was reached.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Store values under a key.
    pub(crate) fn remember(
        &mut self,
        key: CompactString,
        values: Vec<(CompactString, CompactString)>,
        time: Option<Time>,
    ) {
        let mut inner = self.all.lock();
        let logs = inner.products.entry(self.scope.clone()).or_default();
        if !logs.contains_key(&self.number) && logs.len() >= LOGS_MAX {
            self.forgotten += 1;
            return;
        }
        self.forgotten += logs.entry(self.number).or_default().remember(key, values, time);
    }

    /// Drop the values that this log shares under a key. Returns whether there were any.
    pub(crate) fn forget(&mut self, key: &str) -> bool {
        let mut inner = self.all.lock();
        let values = inner.products.get_mut(&self.scope).and_then(|logs| logs.get_mut(&self.number));
        values.is_some_and(|values| values.forget(key))
    }

    /// Look up `names` under a key, in all logs of the product.
    pub(crate) fn recall(&self, key: &str, names: &[CompactString]) -> Vec<(CompactString, CompactString)> {
        let inner = self.all.lock();
        let Some(logs) = inner.products.get(&self.scope) else { return Vec::new() };
        let latest = |name: &CompactString| {
            let known = logs.values().filter_map(|values| values.entries.get(key));
            let dated = known.flat_map(|(values, _)| values).filter(|(own, _, _)| own == name);
            dated
                .max_by(|a, b| (a.2, &a.1).cmp(&(b.2, &b.1)))
                .map(|(name, value, _)| (name.clone(), value.clone()))
        };
        names.iter().filter_map(latest).collect()
    }

    /// Changes that restore the shared values of this log, oldest key first.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let inner = self.all.lock();
        let values = inner.products.get(&self.scope).and_then(|logs| logs.get(&self.number));
        let Some(values) = values else { return Vec::new() };
        let entries = values.by_turn.values().filter_map(|key| Some((key, values.entries.get(key)?)));
        let each = entries.flat_map(|(key, (dated, _))| {
            dated.iter().map(|(name, value, time)| Change::RememberAcross {
                key: key.clone(),
                values: vec![(name.clone(), value.clone())],
                time: *time,
            })
        });
        each.collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let mut inner = self.all.lock();
        if let Some(logs) = inner.products.get_mut(&self.scope) {
            logs.remove(&self.number);
            if logs.is_empty() {
                inner.products.remove(&self.scope);
            }
        }
    }
}

impl Values {
    /// Store values under a key. Returns how many keys were dropped for it.
    fn remember(
        &mut self,
        key: CompactString,
        values: Vec<(CompactString, CompactString)>,
        time: Option<Time>,
    ) -> u64 {
        let mut dated = self.take(&key);
        for (name, value) in values {
            dated.retain(|(known, _, _)| *known != name);
            dated.push((name, value, time));
        }
        self.len_bytes += len_bytes(&key, &dated);
        self.by_turn.insert(self.next_turn, key.clone());
        self.entries.insert(key, (dated, self.next_turn));
        self.next_turn += 1;
        let mut dropped = 0;
        while self.entries.len() > KEYS_MAX || self.len_bytes > LEN_MAX_BYTES {
            let Some((_, oldest)) = self.by_turn.first_key_value().map(|(turn, key)| (*turn, key.clone()))
            else {
                break;
            };
            self.take(&oldest);
            dropped += 1;
        }
        dropped
    }

    fn forget(&mut self, key: &str) -> bool {
        let is_known = self.entries.contains_key(key);
        self.take(key);
        is_known
    }

    /// Remove a key, and return its values.
    fn take(&mut self, key: &str) -> Vec<Dated> {
        let Some((dated, turn)) = self.entries.remove(key) else { return Vec::new() };
        self.by_turn.remove(&turn);
        self.len_bytes -= len_bytes(key, &dated);
        dated
    }
}

fn len_bytes(key: &str, dated: &[Dated]) -> usize {
    key.len() + dated.iter().map(|(name, value, _)| name.len() + value.len()).sum::<usize>()
}
