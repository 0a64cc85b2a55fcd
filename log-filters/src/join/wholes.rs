//! Calls with parts, such as job arrays: finds parts and parents, and combines their data.
//!
//! Pure. Rule: only for a parent that consists only of its parts. Not here: how the parts are combined
//! (`whole`).

use super::{CLOCKS_DIFFER_MICROS, Entry, Joiner, LIVES_LOOKED_AT};
use crate::whole;
use wire::call::Call;

impl Joiner {
    /// The parent of the call with this id, if it consists only of its parts.
    #[must_use]
    pub fn whole_of(&self, id: &str) -> Option<Call> {
        let part = self.slot(id).map(|slot| &self.entries[&slot]).filter(|entry| entry.is_part)?;
        self.parent(part).map(|slot| self.shown(slot))
    }

    /// The call as displayed: a part inherits from its parent what its own events do not say, and a parent
    /// combines its parts.
    pub(super) fn shown(&self, slot: u64) -> Call {
        let entry = &self.entries[&slot];
        let parts = self.parts(slot).map(|part| self.entries[&part].progress.call());
        let mut call = whole::with_parts(entry.progress.call(), parts);
        if let Some(parent) = self.parent(entry).map(|slot| self.entries[&slot].progress.call()) {
            call.submitted = call.submitted.or(parent.submitted);
            if let (Some(own), Some(whole)) = (&mut call.details, &parent.details) {
                own.inherit(whole);
            }
            for (own, whole) in
                [(&mut call.user, parent.user), (&mut call.name, parent.name), (&mut call.from, parent.from)]
            {
                if own.is_empty() {
                    *own = whole;
                }
            }
        }
        if call.is_job() {
            let usage = self.usages.of_call(&entry.names, &call);
            // A middleware may log the user at the end of a job only, but it starts the processes as that user.
            if let Some(proved) = usage.iter().find(|usage| usage.is_proved && call.user.is_empty()) {
                call.user = proved.user.clone();
            }
            if let Some(details) = &mut call.details {
                details.usage = usage;
            }
        }
        call
    }

    /// The parts of a call that consists only of parts.
    pub(super) fn parts(&self, slot: u64) -> impl Iterator<Item = u64> {
        let names = if self.parts.is_empty() { &[] } else { self.entries[&slot].names.as_slice() };
        let parts = names.iter().filter_map(|name| self.parts.get(name)).flatten().copied();
        parts.filter(move |part| self.parent(&self.entries[part]) == Some(slot))
    }

    /// The parent of a call: of several with that name, the latest that started no later than the call.
    pub(super) fn parent(&self, entry: &Entry) -> Option<u64> {
        let lives = self.by_name.get(entry.parent.as_ref()?)?;
        let has_started = |slot: &u64| {
            self.entries[slot].progress.first.micros() <= entry.progress.first.micros() + CLOCKS_DIFFER_MICROS
        };
        lives.latest(LIVES_LOOKED_AT).rev().find(has_started).or_else(|| lives.iter().next())
    }
}
