//! Which filters there are, and which of them reads a file.
//!
//! Pure: users' filters come in as texts. Rule: a user's filter replaces the shipped one of its name; one
//! that is refused is reported and leaves the others, and the shipped one of its name, as they are.

use crate::engine::{Engine, Source};
use crate::error::Error;
use crate::filter::Filter;
use jiff::tz::TimeZone;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::time::Time;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Lines of a file's beginning that choose its filter.
pub const FIRST_LINES: usize = 64;
/// Share of the first lines that a filter must know, as one in so many.
const FIRST_LINES_SHARE: usize = 8;
/// One byte in so many that is no text makes a beginning noise; stray ones in names stay below.
const NOISE_SHARE: usize = 20;

/// Names that are suggested as near another.
const NEAR_MAX: usize = 5;

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

    /// What to say of a name that no filter has: which are near it, and what shows all.
    #[must_use]
    pub fn no_filter(&self, given: &str) -> String {
        let meant = match self.near(given)[..] {
            [] => String::new(),
            ref near => format!("did you mean {}? ", near.join(" or ")),
        };
        format!("no filter is called {given:?}; {meant}`visperf filter list` shows them all")
    }

    /// The names of filters that may be meant by this one, or are of a product of this name.
    fn near(&self, given: &str) -> Vec<&str> {
        let given = given.to_lowercase();
        let is_near = |filter: &&Arc<Filter>| {
            let name = filter.name();
            (!given.is_empty() && name.contains(&given))
                || (given.len() > 3 && given.contains(name))
                || differ_little(name, &given)
                || (given.len() >= 3 && filter.product().to_lowercase().contains(&given))
        };
        self.iter().filter(is_near).map(|filter| filter.name()).take(NEAR_MAX).collect()
    }

    /// The filter that reads a file of this name which begins with these bytes, if any does.
    #[must_use]
    pub fn choose(&self, file_name: &str, beginning: &[u8]) -> Option<&Arc<Filter>> {
        self.choice(file_name, beginning).ok().map(|choice| choice.filter)
    }

    /// The same, and why.
    ///
    /// A name that one filter claims decides, unless the beginning is plainly something else; otherwise, and
    /// between several, the one that knows most of the first lines. A file without a whole line is what its
    /// name says.
    ///
    /// # Errors
    /// If no filter reads it: which claimed its name, and how many lines were looked at.
    pub fn choice(&self, file_name: &str, beginning: &[u8]) -> Result<Choice<'_>, Unchosen<'_>> {
        let first = FirstLines::new(beginning);
        let claims: Vec<_> = self.iter().filter(|filter| claims(filter, file_name)).collect();
        let all: Vec<_> = self.iter().collect();
        let others = OnceCell::new();
        let known_by_another = |filter: &Arc<Filter>| {
            others
                .get_or_init(|| first.best(&all))
                .is_some_and(|(other, _): (&Arc<Filter>, usize)| other.name() != filter.name())
        };
        let (fitting, refused): (Vec<_>, Vec<_>) = claims.iter().copied().partition(|filter| {
            first.whole == 0
                || first.known_by(filter) > 0
                || first.is_read_by(filter, file_name)
                || !(first.is_noise || !filter.prefix.is_empty() || known_by_another(filter))
        });
        let lines = first.lines.len();
        let chosen = |filter, by, known| Choice { filter, by, known, lines };
        match fitting.as_slice() {
            [only] if claims.len() == 1 => Ok(chosen(only, By::Name, first.known_by(only))),
            [] => match first.best(&all) {
                Some((best, known)) => Ok(chosen(best, By::Lines, known)),
                None => Err(Unchosen { refused, lines }),
            },
            several => match first.best(several) {
                Some((best, known)) => Ok(chosen(best, By::NameAndLines, known)),
                None => Ok(chosen(several[0], By::Name, 0)),
            },
        }
    }
}

/// A filter for a file, and why it is the one.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The filter.
    pub filter: &'a Arc<Filter>,
    /// What decided.
    pub by: By,
    /// How many of the first lines it knows by its `first_lines`.
    pub known: usize,
    /// How many of the first lines were looked at: the file's own, at most [`FIRST_LINES`].
    pub lines: usize,
}

/// What decided on a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It claims the file's name, and no other does, or none knows the first lines.
    Name,
    /// Of several that claim the name it knows most of the first lines.
    NameAndLines,
    /// It knows most of the first lines; the name says nothing, or the wrong thing.
    Lines,
}

/// That no filter reads a file.
#[derive(Clone, Debug)]
pub struct Unchosen<'a> {
    /// Filters that claim the file's name, but the file begins with something else.
    pub refused: Vec<&'a Arc<Filter>>,
    /// How many lines were looked at.
    pub lines: usize,
}

/// The beginning of a file.
struct FirstLines<'a> {
    lines: Vec<&'a [u8]>,
    /// How many of them end.
    whole: usize,
    /// More than stray bytes of it are no text.
    is_noise: bool,
}

impl<'a> FirstLines<'a> {
    fn new(beginning: &'a [u8]) -> FirstLines<'a> {
        let whole = memchr::memchr_iter(b'\n', beginning).take(FIRST_LINES).count();
        // What stands behind the last line's end is no line.
        let text = beginning.strip_suffix(b"\n").unwrap_or(beginning);
        let lines: Vec<&[u8]> = text.split(|&b| b == b'\n').take(FIRST_LINES).collect();
        let odd = text.iter().filter(|&&b| b < b' ' && !b.is_ascii_whitespace() && b != 0x1b).count();
        FirstLines { lines, whole, is_noise: odd * NOISE_SHARE > text.len() }
    }

    /// How many lines the filter knows by its `first_lines`; a line is only one of its own if its stamp is.
    fn known_by(&self, filter: &Filter) -> usize {
        let Some(set) = filter.first_lines() else { return 0 };
        let is_stamped = |line: &[u8]| filter.prefix.iter().any(|format| format.read(line).is_some());
        let known = |line: &[u8]| (filter.prefix.is_empty() || is_stamped(line)) && set.fits(line);
        self.lines.iter().filter(|line| known(line)).count()
    }

    /// Whether any line has the filter's stamp, or is taken by one of its rules.
    fn is_read_by(&self, filter: &Arc<Filter>, file_name: &str) -> bool {
        if self.lines.iter().any(|line| filter.prefix.iter().any(|format| format.read(line).is_some())) {
            return true;
        }
        let source = Source {
            file_name: file_name.to_owned(),
            host: String::new(),
            cluster: String::new(),
            zone: TimeZone::UTC,
        };
        let mut engine = Engine::new(Arc::clone(filter), &source);
        let (mut found, seen) = (Vec::new(), Time::default());
        self.lines.iter().for_each(|line| engine.line(line, 0, seen, &mut found));
        engine.idle(seen, &mut found);
        engine.counters().taken > 0
    }

    /// The filter that knows most of the lines, if it knows enough.
    fn best<'f>(&self, candidates: &[&'f Arc<Filter>]) -> Option<(&'f Arc<Filter>, usize)> {
        let scores = candidates.iter().map(|filter| self.known_by(filter)).enumerate();
        let (best, score) = scores.max_by_key(|&(at, score)| (score, usize::MAX - at))?;
        (score > 0 && score * FIRST_LINES_SHARE >= self.lines.len()).then(|| (candidates[best], score))
    }
}

fn claims(filter: &Filter, file_name: &str) -> bool {
    filter.names.is_match(file_name) || unrotated(file_name).is_some_and(|name| filter.names.is_match(name))
}

/// At most two letters apart, at the same places.
fn differ_little(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same_start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_start..], &other[same_start..]);
    let same_end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len().max(other.len()) - same_end <= 2
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
            let _compiles = filter.first_lines();
            for failure in crate::test_lines::run(filter) {
                problems += &format!("{}: {}: {}\n", filter.name(), failure.test, failure.message);
            }
        }
        assert!(problems.is_empty(), "{problems}");
    }

    #[test]
    fn names_that_no_filter_has_are_answered_with_near_ones() {
        let told = |given: &str| Registry::shipped().no_filter(given);
        for (given, near) in
            [("slurmctl", "slurmctld"), ("slurnd", "slurmd"), ("PBS", "torque-server"), ("Slurm", "slurmd")]
        {
            assert!(told(given).contains(near), "{}", told(given));
        }
        for given in ["nope", "", "é"] {
            assert!(!told(given).contains("did you mean"), "{}", told(given));
        }
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
