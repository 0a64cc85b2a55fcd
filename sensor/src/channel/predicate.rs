//! Compiled filter: decides which records pass.
//!
//! Pure. Rule: an unknown value passes no predicate; a regular expression is bounded in size when it is
//! compiled, and takes time linear in its text. Not here: the syntax of filters
//! (`wire::channel::expression`), what is remembered of processes (`memory`) and metrics (`host_evaluation`).

use super::fields::{self, Number, Subject, Text, Unknown};
use regex::{Regex, RegexBuilder};
use wire::channel::TEXT_LEN_MAX_BYTES;
use wire::channel::filter::{Comparison, Filter, PREDICATES_MAX, Predicate};

/// Largest compiled regular expression, in bytes: a name or a line needs no more.
const REGEX_MAX_BYTES: usize = 64 << 10;

/// Why a filter is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Unknown field.
    #[error(transparent)]
    Field(#[from] Unknown),
    /// Invalid regular expression, or one that is too large.
    #[error("expected a regular expression, found {pattern:?}: {error}")]
    Pattern {
        /// The pattern, as given.
        pattern: String,
        error: regex::Error,
    },
    /// Too many predicates, or too long a pattern.
    #[error("expected at most {max} {what}, found {found}")]
    TooMuch {
        /// The counted thing, in the plural.
        what: &'static str,
        max: usize,
        found: usize,
    },
    /// A value that the text field never has.
    #[error("expected one of {known} as {field}, found {found:?}")]
    Word {
        field: &'static str,
        /// All values it can have, separated by commas.
        known: String,
        found: String,
    },
    /// It compares with an earlier value, but each record is sent only once.
    #[error("expected nothing of a past, which {0} does not have: it is sent once")]
    NoPast(&'static str),
    /// It names a parent or child, but only processes have them.
    #[error("expected neither parent of nor child of, which only processes have, not {0}")]
    NoFamily(&'static str),
}

/// A compiled filter.
#[derive(Debug)]
pub struct CompiledFilter<S: Subject> {
    tests: Vec<Test<S>>,
    top: Option<(usize, &'static Number<S>)>,
}

#[derive(Debug)]
enum Test<S: Subject> {
    Threshold(&'static Number<S>, Comparison, f64),
    /// The slot stores the value that was last sent.
    Changes(&'static Number<S>, f64, usize),
    /// The slot stores the value that was last seen.
    Growth(&'static Number<S>, Comparison, f64, usize),
    Matches(&'static Text<S>, Regex, bool),
    Is(&'static Text<S>, String, bool),
    ParentOf(u32),
    ChildOf(u32),
}

impl<S: Subject> CompiledFilter<S> {
    /// Compiles the filter.
    ///
    /// # Errors
    /// If it names an unknown field or value, does not fit the kind of record, or is too large.
    pub fn new(filter: &Filter) -> Result<CompiledFilter<S>, Error> {
        let found = filter.predicates.len();
        if found > PREDICATES_MAX {
            return Err(Error::TooMuch { what: "predicates", max: PREDICATES_MAX, found });
        }
        let mut slots = 0..;
        let mut slot = || slots.next().expect("a range without an end");
        let tests = filter.predicates.iter().map(|predicate| test(predicate, &mut slot));
        let tests = tests.collect::<Result<_, _>>()?;
        if !S::HAS_PAST && filter.top.is_some() {
            return Err(Error::NoPast(S::ONE));
        }
        let top = filter.top.as_ref().map(|top| {
            Ok::<_, Unknown>((
                usize::try_from(top.count).unwrap_or(usize::MAX),
                fields::number_named(&top.field)?,
            ))
        });
        Ok(CompiledFilter { tests, top: top.transpose()? })
    }

    /// Whether a predicate uses the command line of a process.
    #[must_use]
    pub fn asks_command(&self) -> bool {
        self.tests.iter().any(
            |test| matches!(test, Test::Matches(text, ..) | Test::Is(text, ..) if text.name == "command"),
        )
    }

    /// Whether the result for a process depends only on its row in the table: while the row is unchanged, so
    /// is the result.
    #[must_use]
    pub fn is_of_rows(&self) -> bool {
        let is_of_row = |test: &Test<S>| match test {
            Test::Threshold(number, ..) => number.name != "cpu",
            Test::Matches(text, ..) | Test::Is(text, ..) => text.name != "command",
            Test::ChildOf(_) => true,
            Test::Changes(..) | Test::Growth(..) | Test::ParentOf(_) => false,
        };
        self.top.is_none() && self.tests.iter().all(is_of_row)
    }

    /// Limit and field of the `top` clause: only the records with the highest values.
    #[must_use]
    pub fn top(&self) -> Option<(usize, &'static Number<S>)> {
        self.top
    }

    /// Number of values that have to be remembered of each record.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.tests.iter().filter(|test| matches!(test, Test::Changes(..) | Test::Growth(..))).count()
    }

    /// Whether a record passes, `secs` after the previous sample; `past` holds its remembered values.
    #[must_use]
    pub fn passes(&self, view: &S::View<'_>, past: &[f64], secs: f64, context: &S::Context) -> bool {
        self.tests.iter().all(|test| match test {
            Test::Threshold(number, comparison, bound) => {
                (number.get)(view).is_some_and(|value| comparison.holds(value, *bound))
            }
            Test::Changes(number, by, slot) => {
                let last = past[*slot];
                (number.get)(view).is_some_and(|value| last.is_nan() || (value - last).abs() > *by)
            }
            Test::Growth(number, comparison, bound, slot) => {
                let growth = |value: f64| (value - past[*slot]) / secs;
                (number.get)(view)
                    .map(growth)
                    .is_some_and(|growth| growth.is_finite() && comparison.holds(growth, *bound))
            }
            Test::Matches(text, regex, is_wanted) => {
                (text.get)(view).is_some_and(|text| regex.is_match(&text) == *is_wanted)
            }
            Test::Is(text, wanted, is_wanted) => {
                (text.get)(view).is_some_and(|text| (*text == **wanted) == *is_wanted)
            }
            Test::ParentOf(pid) => S::is_parent_of(view, *pid, context),
            Test::ChildOf(pid) => S::is_child_of(view, *pid),
        })
    }

    /// Stores the values of a record that was seen.
    pub fn note_seen(&self, view: &S::View<'_>, past: &mut [f64]) {
        for test in &self.tests {
            if let Test::Growth(number, _, _, slot) = test {
                past[*slot] = (number.get)(view).unwrap_or(f64::NAN);
            }
        }
    }

    /// Stores the values of a record that was sent.
    pub fn note_sent(&self, view: &S::View<'_>, past: &mut [f64]) {
        for test in &self.tests {
            if let Test::Changes(number, _, slot) = test {
                past[*slot] = (number.get)(view).unwrap_or(f64::NAN);
            }
        }
    }
}

fn test<S: Subject>(predicate: &Predicate, slot: &mut impl FnMut() -> usize) -> Result<Test<S>, Error> {
    match predicate {
        Predicate::Changes { .. } | Predicate::Growth { .. } if !S::HAS_PAST => {
            return Err(Error::NoPast(S::ONE));
        }
        Predicate::ParentOf(_) | Predicate::ChildOf(_) if !S::HAS_FAMILY => {
            return Err(Error::NoFamily(S::ONE));
        }
        Predicate::Changes { .. }
        | Predicate::Growth { .. }
        | Predicate::ParentOf(_)
        | Predicate::ChildOf(_)
        | Predicate::Threshold { .. }
        | Predicate::Matches { .. }
        | Predicate::Is { .. } => {}
    }
    Ok(match predicate {
        Predicate::Threshold { field, comparison, bound } => {
            Test::Threshold(fields::number_named(field)?, *comparison, *bound)
        }
        Predicate::Changes { field, by } => Test::Changes(fields::number_named(field)?, *by, slot()),
        Predicate::Growth { field, comparison, bound } => {
            Test::Growth(fields::number_named(field)?, *comparison, *bound, slot())
        }
        Predicate::Matches { field, pattern, is_wanted } => {
            Test::Matches(fields::text_named::<S>(field)?, regex(pattern)?, *is_wanted)
        }
        Predicate::Is { field, text, is_wanted } => {
            let field = fields::text_named::<S>(field)?;
            if !field.words.is_empty() && !field.words.contains(&text.as_str()) {
                let known = field.words.join(", ");
                return Err(Error::Word { field: field.name, known, found: text.to_string() });
            }
            Test::Is(field, text.to_string(), *is_wanted)
        }
        Predicate::ParentOf(pid) => Test::ParentOf(*pid),
        Predicate::ChildOf(pid) => Test::ChildOf(*pid),
    })
}

fn regex(pattern: &str) -> Result<Regex, Error> {
    if pattern.len() > TEXT_LEN_MAX_BYTES {
        return Err(Error::TooMuch {
            what: "bytes of a pattern",
            max: TEXT_LEN_MAX_BYTES,
            found: pattern.len(),
        });
    }
    let built =
        RegexBuilder::new(pattern).size_limit(REGEX_MAX_BYTES).dfa_size_limit(REGEX_MAX_BYTES).build();
    built.map_err(|error| Error::Pattern { pattern: pattern.to_owned(), error })
}

/// Keeps the `count` items with the highest values, highest first; items whose value is unknown are dropped.
pub fn keep_top<T>(passed: Vec<T>, count: usize, value: impl Fn(&T) -> Option<f64>) -> Vec<T> {
    let mut valued: Vec<(f64, T)> =
        passed.into_iter().filter_map(|one| Some((value(&one).filter(|it| !it.is_nan())?, one))).collect();
    valued.sort_by(|a, b| b.0.total_cmp(&a.0));
    valued.truncate(count);
    valued.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields::event::Events;
    use super::super::fields::metric::Metrics;
    use super::super::fields::process::Processes;
    use super::*;
    use wire::channel::expression;

    fn check<S: Subject>(filter: &str, expected: &str) {
        let read = expression::filter(filter).expect("understood");
        let error = CompiledFilter::<S>::new(&read).expect_err(filter);
        assert!(error.to_string().contains(expected), "{filter}: {error}");
    }

    #[test]
    fn what_is_unknown_or_too_large_is_refused() {
        let check = check::<Processes>;
        check(
            "rss > 1",
            "expected a number of a process, found \"rss\"; did you mean rss_bytes?; known are cpu,",
        );
        check("cpu ~ \"a\"", "expected a text of a process, found \"cpu\"; known are name,");
        check("top 3 by name", "expected a number of a process, found \"name\"");
        check("name ~ \"(\"", "expected a regular expression, found \"(\"");
        check("name ~ \"(a{1000}){1000}\"", "exceeds size limit");
    }

    #[test]
    fn a_word_that_none_of_them_is_is_refused_with_those_that_there_are() {
        check::<Processes>(
            "state = \"runing\"",
            "expected one of running, sleeping, disk, stopped, traced, zombie, dead, parked, idle as state, found \"runing\"",
        );
        check::<Events>("kind != \"job-end\"", "as kind, found \"job-end\"");
        let all = expression::filter("state != \"running\" and name = \"runing\"").expect("understood");
        CompiledFilter::<Processes>::new(&all).expect("a name can be any text");
    }

    #[test]
    fn what_is_reported_once_has_no_past_and_only_processes_have_families() {
        for filter in ["delay changes by 1", "rate of delay > 1", "top 3 by delay"] {
            check::<Events>(filter, "which an event does not have: it is sent once");
        }
        check::<Events>("child of 7", "only processes have");
        check::<Metrics>("parent of 7", "only processes have");
        let all = expression::filter("rate of value > 1 top 3 by value").expect("understood");
        CompiledFilter::<Metrics>::new(&all).expect("a metric has a past");
    }
}
