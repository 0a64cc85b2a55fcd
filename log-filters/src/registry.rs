//! Registry of filters: chooses the filter of a log file.
//!
//! Pure: users' filters are passed as texts. Rule: a user's filter replaces the shipped one of the same name;
//! a refused filter is reported, and all others stay, including the shipped one of its name.

use crate::engine::{Engine, Source};
use crate::error::Error;
use crate::filter::Filter;
use jiff::tz::TimeZone;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::time::Time;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Number of lines at the start of a file that decide its filter.
pub const FIRST_LINES: usize = 64;
/// A filter must match at least one in this many of the first lines.
const FIRST_LINES_SHARE: usize = 8;
/// The start of a file is binary if at least one byte in this many is not text; single ones in names do not
/// count.
const NOISE_SHARE: usize = 20;

/// Most names suggested for a mistyped one.
const NEAR_MAX: usize = 5;

/// Available filters, by name.
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
    /// If it is refused; the registry is then unchanged.
    pub fn add(&mut self, file: &str, text: &str) -> Result<Arc<Filter>, Error> {
        let filter = Filter::parse(file, text)?;
        let name = filter.name().to_owned();
        self.insert(filter);
        Ok(Arc::clone(&self.filters[&name]))
    }

    fn insert(&mut self, filter: Filter) {
        self.filters.insert(filter.name().to_owned(), Arc::new(filter));
    }

    /// Look up a filter by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Filter>> {
        self.filters.get(name)
    }

    /// All filters, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Filter>> {
        self.filters.values()
    }

    /// Error text for an unknown name: similar names, and the command that lists all.
    #[must_use]
    pub fn no_filter(&self, given: &str) -> String {
        let meant = match self.near(given)[..] {
            [] => String::new(),
            ref near => format!("did you mean {}? ", near.join(" or ")),
        };
        format!("no filter is called {given:?}; {meant}`visperf filter list` shows them all")
    }

    /// Names of filters that are similar to this one, or that belong to a product of this name.
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

    /// The filter for a file with this name that starts with these bytes.
    #[must_use]
    pub fn choose(&self, file_name: &str, beginning: &[u8]) -> Option<&Arc<Filter>> {
        self.choice(file_name, beginning).ok().map(|choice| choice.filter)
    }

    /// The filter for a file, and the reason of the choice.
    ///
    /// A name that only one filter claims decides, unless the start is clearly something else. Otherwise, or
    /// if several claim it, the filter that matches most of the first lines is chosen. For a file without a
    /// complete line the name decides.
    ///
    /// # Errors
    /// If no filter reads the file: the filters that claim its name, and the number of lines examined.
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

/// Chosen filter for a file.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The chosen filter.
    pub filter: &'a Arc<Filter>,
    /// Reason of the choice.
    pub by: By,
    /// Number of first lines that it matches by its `first_lines`.
    pub known: usize,
    /// Number of first lines examined, at most [`FIRST_LINES`].
    pub lines: usize,
}

/// Reason of the choice of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It is the only one that claims the file name, or no filter matches the first lines.
    Name,
    /// Of several that claim the name it matches most of the first lines.
    NameAndLines,
    /// It matches most of the first lines; no filter claims the name, or those that do are wrong.
    Lines,
}

/// No filter reads the file.
#[derive(Clone, Debug)]
pub struct Unchosen<'a> {
    /// Filters that claim the file name but do not match the start of the file.
    pub refused: Vec<&'a Arc<Filter>>,
    /// Number of first lines examined.
    pub lines: usize,
}

/// The first lines of a file.
struct FirstLines<'a> {
    lines: Vec<&'a [u8]>,
    /// Number of lines with a newline.
    whole: usize,
    /// It contains more bytes that are not text than stray ones.
    is_noise: bool,
}

impl<'a> FirstLines<'a> {
    fn new(beginning: &'a [u8]) -> FirstLines<'a> {
        let whole = memchr::memchr_iter(b'\n', beginning).take(FIRST_LINES).count();
        // There is no line after the last newline.
        let text = beginning.strip_suffix(b"\n").unwrap_or(beginning);
        let lines: Vec<&[u8]> = text.split(|&b| b == b'\n').take(FIRST_LINES).collect();
        let odd = text.iter().filter(|&&b| b < b' ' && !b.is_ascii_whitespace() && b != 0x1b).count();
        FirstLines { lines, whole, is_noise: odd * NOISE_SHARE > text.len() }
    }

    /// Number of lines that the filter's `first_lines` match; if the filter has stamps, a line must start
    /// with one.
    fn known_by(&self, filter: &Filter) -> usize {
        let Some(set) = filter.first_lines() else { return 0 };
        let is_stamped = |line: &[u8]| filter.prefix.iter().any(|format| format.read(line).is_some());
        let known = |line: &[u8]| (filter.prefix.is_empty() || is_stamped(line)) && set.fits(line);
        self.lines.iter().filter(|line| known(line)).count()
    }

    /// Whether any line has a stamp of the filter, or is matched by one of its rules.
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

    /// The filter that matches most of the lines, if it matches enough.
    fn best<'f>(&self, candidates: &[&'f Arc<Filter>]) -> Option<(&'f Arc<Filter>, usize)> {
        let scores = candidates.iter().map(|filter| self.known_by(filter)).enumerate();
        let (best, score) = scores.max_by_key(|&(at, score)| (score, usize::MAX - at))?;
        (score > 0 && score * FIRST_LINES_SHARE >= self.lines.len()).then(|| (candidates[best], score))
    }
}

fn claims(filter: &Filter, file_name: &str) -> bool {
    filter.names.is_match(file_name) || unrotated(file_name).is_some_and(|name| filter.names.is_match(name))
}

/// Whether two names of equal length differ in at most two letters.
fn differ_little(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let same_start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_start..], &other[same_start..]);
    let same_end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    one.len().max(other.len()) - same_end <= 2
}

/// The name without its rotation suffix; `None` if it has none.
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
        let message = |given: &str| Registry::shipped().no_filter(given);
        for (given, near) in
            [("slurmctl", "slurmctld"), ("slurnd", "slurmd"), ("PBS", "torque-server"), ("Slurm", "slurmd")]
        {
            assert!(message(given).contains(near), "{}", message(given));
        }
        for given in ["nope", "", "é"] {
            assert!(!message(given).contains("did you mean"), "{}", message(given));
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
