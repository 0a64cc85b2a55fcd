//! Wholes and their parts: which call is a part of which, and what each shows of the other.
//!
//! Pure. Rule: only of a whole that is no more than its parts, an array's. Not here: what a whole reports of them (`whole`).

use super::{CLOCKS_DIFFER_MICROS, Entry, Joiner, LIVES_LOOKED_AT};
use crate::whole;
use wire::call::Call;

impl Joiner {
    /// The whole that is no more than its parts, of which the call of this id is one.
    #[must_use]
    pub fn whole_of(&self, id: &str) -> Option<Call> {
        let part = self.slot(id).map(|slot| &self.entries[&slot]).filter(|entry| entry.is_part)?;
        self.parent(part).map(|slot| self.shown(slot))
    }

    /// A part takes from the whole what its own events do not say, and a whole from its parts.
    pub(super) fn shown(&self, slot: u64) -> Call {
        let entry = &self.entries[&slot];
        let parts = self.parts(slot).map(|part| self.entries[&part].progress.call());
        let mut call = whole::with_parts(entry.progress.call(), parts);
        if let Some(parent) = self.parent(entry).map(|slot| self.entries[&slot].progress.call()) {
            call.submitted = call.submitted.or(parent.submitted);
            for (own, whole) in
                [(&mut call.user, parent.user), (&mut call.name, parent.name), (&mut call.from, parent.from)]
            {
                if own.is_empty() {
                    *own = whole;
                }
            }
        }
        call
    }

    /// The parts of a call that is no more than they are.
    pub(super) fn parts(&self, slot: u64) -> impl Iterator<Item = u64> {
        let names = if self.parts.is_empty() { &[] } else { self.entries[&slot].names.as_slice() };
        let parts = names.iter().filter_map(|name| self.parts.get(name)).flatten().copied();
        parts.filter(move |part| self.parent(&self.entries[part]) == Some(slot))
    }

    /// The call that this one is a part of: of several of that name the last that had started.
    pub(super) fn parent(&self, entry: &Entry) -> Option<u64> {
        let lives = self.by_name.get(entry.parent.as_ref()?)?;
        let has_started = |slot: &u64| {
            self.entries[slot].progress.first.micros() <= entry.progress.first.micros() + CLOCKS_DIFFER_MICROS
        };
        lives.latest(LIVES_LOOKED_AT).rev().find(has_started).or_else(|| lives.iter().next())
    }
}
