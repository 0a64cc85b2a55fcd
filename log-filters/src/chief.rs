//! Primary name of a call, which its id is made of.
//!
//! Pure. Rule: the result does not depend on the order of events: the first name of the event with the most
//! names is preferred. Not here: the calls, and the ids in use (`join`).

use crate::sameness::better_job;
use compact_str::{CompactString, format_compact};
use serde::{Deserialize, Serialize};

/// Index of the primary name among a call's names. Small, because every call has one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Chief {
    /// Index in the names of the call.
    at: u16,
    /// Number of names of the event that had it as its first name.
    of: u8,
}

impl Chief {
    /// The primary name, given the names of the call.
    pub(crate) fn name(self, names: &[CompactString]) -> &CompactString {
        &names[usize::from(self.at)]
    }

    /// Whether the index is valid for these names.
    pub(crate) fn is_of(self, names: &[CompactString]) -> bool {
        usize::from(self.at) < names.len()
    }

    /// Process an event with the names `reported`, and keep the better primary name; `names` are all names of
    /// the call.
    pub(crate) fn hear(&mut self, names: &[CompactString], reported: &[CompactString]) {
        self.prefer(names, &reported[0], u8::try_from(reported.len()).unwrap_or(u8::MAX));
    }

    /// Merge the primary name of another call with the names `theirs`, which is the same call.
    pub(crate) fn absorb(&mut self, names: &[CompactString], other: Chief, theirs: &[CompactString]) {
        self.prefer(names, other.name(theirs), other.of);
    }

    fn prefer(&mut self, names: &[CompactString], name: &CompactString, of: u8) {
        let is_better = of > self.of || (of == self.of && better_job(self.name(names), name));
        if is_better && let Some(at) = names.iter().position(|known| known == name) {
            *self = Chief { at: u16::try_from(at).unwrap_or(self.at), of };
        }
    }
}

/// Id of the call number `life` with this name; numbers start at 1.
pub(crate) fn id(name: &CompactString, life: u64) -> CompactString {
    if life == 1 { name.clone() } else { format_compact!("{name}#{life}") }
}

/// Parse an id of this name. Returns the number of the call.
pub(crate) fn life(name: &str, id: &str) -> Option<u64> {
    let rest = id.strip_prefix(name)?;
    if rest.is_empty() { Some(1) } else { rest.strip_prefix('#')?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<CompactString> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn the_event_that_knew_most_names_it_by_its_first() {
        let of = |events: &[&[&str]]| {
            let (mut chief, mut known) = (Chief::default(), Vec::<CompactString>::new());
            for event in events {
                let reported = names(event);
                let new: Vec<_> = reported.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(new);
                chief.hear(&known, &reported);
            }
            chief.name(&known).clone()
        };
        assert_eq!(of(&[&["9"], &["9_7", "9"], &["9"]]), "9_7");
        assert_eq!(of(&[&["9_7", "9"], &["9"]]), "9_7");
        assert_eq!(of(&[&["9"], &["13"]]), of(&[&["13"], &["9"]]));
    }

    #[test]
    fn of_two_calls_that_are_one_the_better_name_holds() {
        let (known, theirs) = (names(&["9", "9_7"]), names(&["9_7", "9"]));
        let (mut own, mut other) = (Chief::default(), Chief::default());
        own.hear(&known, &known[..1]);
        other.hear(&theirs, &theirs);
        own.absorb(&known, other, &theirs);
        assert_eq!(own.name(&known), "9_7");
        assert!(own.is_of(&known) && !own.is_of(&known[..1]) && !Chief::default().is_of(&[]));
    }

    #[test]
    fn an_id_gives_the_life() {
        let name = CompactString::from("slurm:9");
        for number in [1, 2, 17] {
            assert_eq!(life(&name, &id(&name, number)), Some(number));
        }
        assert_eq!(
            (life(&name, "slurm:9_7"), life(&name, "slurm:90"), life(&name, "slurm:")),
            (None, None, None)
        );
    }
}
