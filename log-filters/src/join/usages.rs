//! Measured usage of jobs, by the names that the processes gave them.
//!
//! Pure. Rules: a usage may be known before its call, and is kept until newer ones need the room: the sensor with most
//! loses its oldest. One whose call is not in memory is handed over for the stored calls.
//! Not here: what a usage is (`wire::call::usage`), and to which of the calls with its name it belongs (`job_usage`).

use super::changes::LateUsage;
use super::shares::Shares;
use super::{Joiner, LIVES_LOOKED_AT};
use crate::found::Found;
use crate::job_usage::belongs;
use compact_str::{CompactString, format_compact};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wire::call::Call;
use wire::call::usage::Usage;
use wire::event::Id;
use wire::id::SensorKey;

/// Most usages in memory: of a few thousand jobs on several hosts each, in about 20 MiB.
const USAGES_MAX: usize = 65_536;

/// Most scopes whose calls are looked for: products and their clusters.
const SCOPES_MAX: usize = 256;

/// Usage with the names of its job, the best first, and the sensor that measured it.
pub(super) type Named = (SensorKey, Vec<CompactString>, Usage);

/// Usages, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Usages {
    all: BTreeMap<u64, Named>,
    by_name: HashMap<CompactString, Vec<u64>>,
    shares: Shares,
    next: u64,
    /// Scopes of calls, by product.
    scopes: BTreeMap<CompactString, BTreeSet<CompactString>>,
    last_scope: CompactString,
}

impl Usages {
    /// Takes in a usage; returns whether it is news.
    pub(super) fn take(&mut self, (sensor, names, usage): Named) -> bool {
        let Some(first) = names.first() else { return false };
        let mut known = self.by_name.get(first).into_iter().flatten();
        if let Some(slot) = known.find(|slot| usage.is_same(&self.all[*slot].2)).copied() {
            if !usage.is_newer(&self.all[&slot].2) {
                return false;
            }
            self.unname(slot);
            self.name(slot, (sensor, names, usage));
            return true;
        }
        while self.all.len() >= USAGES_MAX {
            let oldest = self.shares.largest().and_then(|sensor| self.shares.take(sensor, 0));
            let Some(oldest) = oldest else { return false };
            self.unname(oldest);
            self.all.remove(&oldest);
        }
        let slot = self.next;
        self.next += 1;
        self.shares.push(sensor, slot);
        self.name(slot, (sensor, names, usage));
        true
    }

    fn name(&mut self, slot: u64, named: Named) {
        for name in &named.1 {
            self.by_name.entry(name.clone()).or_default().push(slot);
        }
        self.all.insert(slot, named);
    }

    fn unname(&mut self, slot: u64) {
        let Some((_, names, _)) = self.all.get(&slot) else { return };
        for name in names {
            if let Some(slots) = self.by_name.get_mut(name) {
                slots.retain(|known| *known != slot);
                if slots.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    /// Records that there are calls of this scope: a product, or a product and a cluster.
    pub(super) fn note_scope(&mut self, scope: &CompactString) {
        if *scope == self.last_scope {
            return;
        }
        self.last_scope = scope.clone();
        let count: usize = self.scopes.values().map(BTreeSet::len).sum();
        if count < SCOPES_MAX {
            self.scopes.entry(product_of(scope).into()).or_default().insert(scope.clone());
        }
    }

    /// Names of calls that a name of a usage may mean.
    fn names_of_calls(&self, name: &str) -> Vec<CompactString> {
        let Some((product, job)) = name.split_once(':') else { return Vec::new() };
        let scopes = self.scopes.get(product).into_iter().flatten();
        scopes.map(|scope| format_compact!("{scope}:{job}")).collect()
    }

    /// Returns the usages of a call that has these names, by host and time.
    pub(super) fn of_call(&self, names: &[CompactString], call: &Call) -> Vec<Usage> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let slots: BTreeSet<u64> =
            names.iter().filter_map(|name| self.by_name.get(&plain(name))).flatten().copied().collect();
        let found = slots.iter().map(|slot| &self.all[slot].2);
        let mut usages: Vec<Usage> = found.filter(|usage| belongs(usage, call)).cloned().collect();
        if call.user.is_empty() {
            let is_proved = usages.iter().any(|usage| usage.is_proved);
            // Whose job it is, is not known: of several users that claim it, none is believed.
            let is_disputed = usages.windows(2).any(|pair| pair[0].uid != pair[1].uid);
            usages.retain(|usage| usage.is_proved || !(is_proved || is_disputed));
        }
        usages.sort_by(|one, other| (&one.host, one.started).cmp(&(&other.host, other.started)));
        usages
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Named> {
        self.all.values()
    }
}

impl Joiner {
    /// Takes in an event of a usage, if it is one.
    pub(super) fn take_usage(&mut self, found: &Found, id: Id) {
        let Some((names, usage)) = Usage::of_event(&found.content, id) else { return };
        let of_calls: Vec<CompactString> =
            names.iter().flat_map(|name| self.usages.names_of_calls(name)).collect();
        if !self.usages.take((id.sensor, names.clone(), usage.clone())) {
            return;
        }
        let lives = of_calls.iter().filter_map(|name| self.by_name.get(name));
        let slots: Vec<u64> = lives.flat_map(|lives| lives.latest(LIVES_LOOKED_AT)).collect();
        if slots.is_empty() {
            self.note_late(LateUsage { names, usage });
        }
        slots.into_iter().for_each(|slot| self.note_change(slot, false));
    }
}

fn product_of(scope: &str) -> &str {
    scope.split_once('/').map_or(scope, |(product, _)| product)
}

/// The name of a call without its cluster.
fn plain(name: &str) -> CompactString {
    match name.split_once(':') {
        Some((scope, job)) => format_compact!("{}:{job}", product_of(scope)),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests;
