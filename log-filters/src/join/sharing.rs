//! Calls with shared names: finds the one that an event belongs to.
//!
//! Pure. Rule: an event of another file must agree with the call in user, start and outcome, as far as both
//! are known.
//! Not here: the order of such calls (`namesakes`).

use super::Joiner;
use crate::found::Found;
use crate::namesakes::IndexKey;
use compact_str::CompactString;
use wire::event::Id;

impl Joiner {
    /// The call of the previous event, if both are of one record and one name: a list of servers and the
    /// choice of its first.
    pub(super) fn of_record(&self, names: &[CompactString], id: Id) -> Option<u64> {
        let (generation, offset, name, slot) = self.last_record.as_ref()?;
        let same = id.number > 0 && *generation == id.generation && *offset == id.offset;
        (same && names.first() == Some(name) && self.entries.contains_key(slot)).then_some(*slot)
    }

    /// The call with one of these names that the event may belong to; `None` if it opens a new one.
    pub(super) fn namesake(&self, found: &Found, names: &[CompactString], id: Id) -> Option<u64> {
        let content = &found.content;
        let fits = |slot: u64| self.entries[&slot].progress.agrees_with(content);
        self.shared.find(names, id.generation, (content.kind, content.time), &fits)
    }

    /// Update the place of a call in the index of shared names.
    pub(super) fn file(&mut self, slot: u64) {
        let entry = self.entries.get_mut(&slot).expect("the caller has it");
        if entry.kinds_by_file.is_empty() {
            return;
        }
        let index_key = IndexKey::new(&entry.kinds_by_file, entry.progress.started(), entry.progress.ended());
        if entry.index_key.as_deref() == Some(&index_key) {
            return;
        }
        if let Some(former) = &entry.index_key {
            self.shared.unfile(&entry.names, slot, former);
        }
        self.shared.file(&entry.names, slot, &index_key);
        entry.index_key = Some(Box::new(index_key));
    }
}
