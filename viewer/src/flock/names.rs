//! Interned program names: each is stored once and has a number.
//!
//! Pure. Bounded: beyond [`NAMES_MAX`] all further programs share one name.

use crate::grid::text::shown;
use std::collections::BTreeMap;

/// Distinct names; a host has some hundred.
pub const NAMES_MAX: usize = 4_096;
/// Name shared by the rest.
const OTHERS: &str = "others";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// The table of names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<String>,
    ids: BTreeMap<String, NameId>,
    refused: u64,
}

impl Names {
    /// The number of a name as reported by a sensor.
    pub fn id(&mut self, name: &str) -> NameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let mut text = shown(name).text;
        if self.texts.len() >= NAMES_MAX {
            self.refused += 1;
            text = OTHERS.to_owned();
        }
        if let Some(&id) = self.ids.get(&text) {
            return id;
        }
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    #[must_use]
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id.0 as usize).map_or("", String::as_str)
    }

    /// All names, in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Number of names beyond the limit, counted at each use.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_beyond_the_bound_all_share_one() {
        let mut names = Names::default();
        let one = names.id("bash");
        assert_eq!((names.id("bash"), names.text(one)), (one, "bash"));
        let odd = names.id("a\u{202e}b");
        assert_eq!(names.id("a\u{202e}b"), odd);
        assert_eq!(names.text(odd), "a\u{fffd}b");
        for number in 0..NAMES_MAX {
            names.id(&format!("p{number}"));
        }
        let (beyond, further) = (names.id("x"), names.id("y"));
        assert_eq!((beyond, names.text(beyond)), (further, "others"));
        assert!(names.refused() > 0 && names.texts.len() <= NAMES_MAX + 1);
    }
}
