//! Which whole a call is a part of.
//!
//! Pure. Rule: only of a whole that is no more than its parts, an array's. Not here: what a whole tells of them (`whole`).

use super::Joiner;
use wire::call::Call;

impl Joiner {
    /// The whole that is no more than its parts, of which the call of this id is one.
    #[must_use]
    pub fn whole_of(&self, id: &str) -> Option<Call> {
        let part = self.slot(id).map(|slot| &self.entries[&slot]).filter(|entry| entry.is_part)?;
        self.parent(part).map(|slot| self.shown(slot))
    }
}
