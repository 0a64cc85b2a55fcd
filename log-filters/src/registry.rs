//! Which filters there are, and which of them reads a file.
//!
//! Pure: users' filters come in as texts. Rule: a user's filter replaces the shipped one of its name; one
//! that is refused is reported and leaves the others, and the shipped one of its name, as they are.

use crate::error::Error;
use crate::filter::Filter;
use std::collections::BTreeMap;
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Lines of a file's beginning that choose its filter.
pub const FIRST_LINES: usize = 64;
/// Share of the first lines that a filter must know, as one in so many.
const FIRST_LINES_SHARE: usize = 8;

/// The filters at hand, by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    filters: BTreeMap<String, Arc<Filter>>,
}

impl Registry {
    /// The filters that come with the program.
    ///
    /// # Panics
    /// If a shipped filter does not compile, which a test rules out.
    #[must_use]
    pub fn shipped() -> Registry {
        let mut registry = Registry::default();
        for (file, text) in SHIPPED {
            match Filter::parse_shipped(file, text) {
                Ok(filter) => registry.insert(filter),
                Err(error) => panic!("shipped filter: {error}"),
            }
        }
        registry
    }

    /// Add a user's filter; it replaces one of the same name.
    ///
    /// # Errors
    /// If it is refused; the registry is then as before.
    pub fn add(&mut self, file: &str, text: &str) -> Result<Arc<Filter>, Error> {
        let filter = Filter::parse(file, text)?;
        let name = filter.name().to_owned();
        self.insert(filter);
        Ok(Arc::clone(&self.filters[&name]))
    }

    fn insert(&mut self, filter: Filter) {
        self.filters.insert(filter.name().to_owned(), Arc::new(filter));
    }

    /// The filter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Filter>> {
        self.filters.get(name)
    }

    /// Every filter, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Filter>> {
        self.filters.values()
    }

    /// The filter that reads a file of this name which begins with these bytes, if any does.
    ///
    /// A name that one filter claims decides; otherwise, and between several, the one that knows most
    /// of the first lines.
    #[must_use]
    pub fn choose(&self, file_name: &str, beginning: &[u8]) -> Option<&Arc<Filter>> {
        let claims: Vec<_> = self.iter().filter(|filter| claims(filter, file_name)).collect();
        if let [only] = claims.as_slice() {
            return Some(only);
        }
        let lines: Vec<&[u8]> = beginning.split(|&b| b == b'\n').take(FIRST_LINES).collect();
        let by_lines = |candidates: &[&'_ Arc<Filter>]| -> Option<usize> {
            let scores = candidates.iter().map(|filter| known_lines(filter, &lines)).enumerate();
            let (best, score) = scores.max_by_key(|&(at, score)| (score, usize::MAX - at))?;
            (score > 0 && score * FIRST_LINES_SHARE >= lines.len().min(FIRST_LINES)).then_some(best)
        };
        if claims.is_empty() {
            let all: Vec<_> = self.iter().collect();
            return by_lines(&all).map(|at| all[at]);
        }
        Some(claims[by_lines(&claims).unwrap_or(0)])
    }
}

fn claims(filter: &Filter, file_name: &str) -> bool {
    filter.names.is_match(file_name) || unrotated(file_name).is_some_and(|name| filter.names.is_match(name))
}

fn known_lines(filter: &Filter, lines: &[&[u8]]) -> usize {
    let Some(set) = &filter.first_lines else { return 0 };
    lines.iter().filter(|line| set.fits(line)).count()
}

/// The name without a rotation suffix, if it has one.
#[must_use]
pub fn unrotated(file_name: &str) -> Option<&str> {
    let (stem, suffix) = file_name.rsplit_once(['.', '-'])?;
    let digits = !suffix.is_empty() && suffix.bytes().all(|b| b.is_ascii_digit()) && suffix.len() <= 14;
    (!stem.is_empty() && (digits || matches!(suffix, "old" | "bak" | "prev"))).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_filter_compiles_and_passes_its_tests() {
        let registry = Registry::shipped();
        assert_eq!(registry.iter().count(), SHIPPED.len(), "two shipped filters share a name");
        let mut problems = String::new();
        for filter in registry.iter() {
            assert!(filter.tests() > 0, "{} carries no test", filter.name());
            for failure in crate::test_lines::run(filter) {
                problems += &format!("{}: {}: {}\n", filter.name(), failure.test, failure.message);
            }
        }
        assert!(problems.is_empty(), "{problems}");
    }

    #[test]
    fn rotation_suffixes_are_cut() {
        for (name, expected) in [
            ("slurmctld.log.1", Some("slurmctld.log")),
            ("slurmctld.log-20261120", Some("slurmctld.log")),
            ("SchedLog.old", Some("SchedLog")),
            ("slurmctld.log", None),
            ("accounting", None),
            (".1", None),
        ] {
            assert_eq!(unrotated(name), expected, "{name}");
        }
    }
}
