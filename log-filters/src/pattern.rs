//! Regexes of filters, bounded in size: a filter may come from an untrusted author.
//!
//! Pure. Patterns match bytes, with Unicode off (a Unicode `\d` makes sets of patterns 200 times slower and
//! no log needs it). Both the length of the source and the compiled size are limited, because a limit on the
//! size alone did not prevent exhaustion in other programs.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, MatchKind, PatternSet, meta, util::syntax};

/// Longest source of a pattern, in bytes.
pub(crate) const SOURCE_LEN_MAX_BYTES: usize = 4 << 10;
/// Largest compiled program of a pattern, in bytes.
pub(crate) const COMPILED_LEN_MAX_BYTES: usize = 1 << 20;
/// Largest lazy automaton of a pattern, in bytes.
const AUTOMATON_LEN_MAX_BYTES: usize = 2 << 20;
/// Largest compiled program of all patterns of a filter together, in bytes.
const SET_LEN_MAX_BYTES: usize = 8 << 20;
/// Deepest nesting within a pattern.
const NESTING_MAX: u32 = 64;

/// Compile one pattern.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    check_length(source)?;
    RegexBuilder::new(source)
        .unicode(false)
        .nest_limit(NESTING_MAX)
        .size_limit(COMPILED_LEN_MAX_BYTES)
        .dfa_size_limit(AUTOMATON_LEN_MAX_BYTES)
        .build()
        .map_err(|error| explain(&error))
}

fn check_length(source: &str) -> Result<(), String> {
    if source.len() > SOURCE_LEN_MAX_BYTES {
        return Err(format!(
            "the regex has {} bytes; at most {SOURCE_LEN_MAX_BYTES} are allowed: split it over several rules",
            source.len()
        ));
    }
    Ok(())
}

fn explain(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => format!(
            "the regex compiles to more than {limit} bytes; use smaller repetition counts, or `*` and `+`"
        ),
        regex::Error::Syntax(text) => {
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let hint = if reason.contains("look-around") {
                "; look-ahead and look-behind are not supported: use `unless`"
            } else if reason.contains("backreferences") {
                "; back-references are not supported"
            } else {
                ""
            };
            format!("the regex cannot be read: {reason}{hint}\n{text}")
        }
        other => format!("the regex cannot be used: {other}"),
    }
}

/// Parser options of all patterns.
pub(crate) fn syntax() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).nest_limit(NESTING_MAX)
}

/// A set of patterns, matched together.
#[derive(Debug)]
pub(crate) struct Set {
    /// Patterns anchored at the line's start: one pass finds the first match, and ends where none is possible
    /// any more.
    bound: Option<Part>,
    /// All other patterns.
    free: Option<Part>,
    /// All patterns, each by itself: used where the first match is not wanted.
    all: Part,
}

#[derive(Debug)]
struct Part {
    regex: meta::Regex,
    /// Numbers of its patterns in the set, ascending.
    numbers: Vec<usize>,
    found: Pool<PatternSet, MakeFound>,
}

type MakeFound =
    Box<dyn Fn() -> PatternSet + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>;

impl Part {
    fn new(sources: &[&str], numbers: Vec<usize>, kind: MatchKind) -> Result<Part, String> {
        let own: Vec<&str> = numbers.iter().map(|&number| sources[number]).collect();
        let regex = meta::Regex::builder()
            .configure(
                meta::Config::new()
                    .match_kind(kind)
                    .utf8_empty(false)
                    .nfa_size_limit(Some(SET_LEN_MAX_BYTES))
                    .hybrid_cache_capacity(AUTOMATON_LEN_MAX_BYTES)
                    .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit),
            )
            .syntax(self::syntax())
            .build_many(&own)
            .map_err(|error| {
                format!(
                    "the filter's regexes together cannot be used ({error}); at most {SET_LEN_MAX_BYTES} compiled bytes are allowed"
                )
            })?;
        let len = regex.pattern_len();
        Ok(Part { regex, numbers, found: Pool::new(Box::new(move || PatternSet::new(len))) })
    }

    /// Call `visit` for each matching pattern, ascending, until it returns true. Returns whether it did.
    fn fitting(&self, text: &[u8], mut visit: impl FnMut(usize) -> bool) -> bool {
        let mut found = self.found.get();
        found.clear();
        self.regex.which_overlapping_matches(&Input::new(text), &mut found);
        found.iter().any(|pattern| visit(self.numbers[pattern.as_usize()]))
    }
}

impl Set {
    /// Compile the set; every source has been accepted by [`compile`].
    pub(crate) fn new(sources: &[&str]) -> Result<Set, String> {
        let (mut bound, mut free) = (Vec::new(), Vec::new());
        for (number, source) in sources.iter().enumerate() {
            let hir = regex_automata::util::syntax::parse_with(source, &syntax())
                .map_err(|error| error.to_string())?;
            let starts = hir.properties().look_set_prefix().contains(regex_syntax::hir::Look::Start);
            if starts { bound.push(number) } else { free.push(number) }
        }
        let part = |numbers: Vec<usize>, kind| match numbers.is_empty() {
            true => Ok(None),
            false => Part::new(sources, numbers, kind).map(Some),
        };
        // If all patterns are anchored, the engine itself prefers the first match. Otherwise a match at the
        // line's start would hide matches further on.
        Ok(Set {
            all: Part::new(sources, (0..sources.len()).collect(), MatchKind::All)?,
            bound: part(bound, MatchKind::LeftmostFirst)?,
            free: part(free, MatchKind::All)?,
        })
    }

    /// The first matching pattern that `wanted` accepts.
    #[inline]
    pub(crate) fn first(&self, text: &[u8], mut wanted: impl FnMut(usize) -> bool) -> Option<usize> {
        let input = Input::new(text).anchored(Anchored::Yes);
        let bound = self.bound.as_ref().and_then(|part| {
            part.regex.search_half(&input).map(|found| part.numbers[found.pattern().as_usize()])
        });
        let before = bound.unwrap_or(usize::MAX);
        if let Some(free) = self.free.as_ref().filter(|free| free.numbers[0] < before) {
            let mut chosen = None;
            free.fitting(text, |number| {
                chosen = (number < before && wanted(number)).then_some(number);
                chosen.is_some() || number >= before
            });
            if chosen.is_some() {
                return chosen;
            }
        }
        let bound = bound?;
        if wanted(bound) {
            return Some(bound);
        }
        let mut chosen = None;
        self.all.fitting(text, |number| {
            chosen = (number > bound && wanted(number)).then_some(number);
            chosen.is_some()
        });
        chosen
    }

    /// Whether any pattern matches.
    pub(crate) fn fits(&self, text: &[u8]) -> bool {
        self.first(text, |_| true).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_patterns_are_refused_with_a_reason() {
        for (source, reason) in [
            ("a{1000}{1000}".to_owned(), "compiles to more"),
            ("x".repeat(SOURCE_LEN_MAX_BYTES + 1), "at most 4096"),
            ("(".repeat(100) + &")".repeat(100), "nest"),
            ("(?=a)".to_owned(), "look-ahead"),
            ("(a".to_owned(), "unclosed"),
        ] {
            let error = compile(&source).expect_err(&source);
            assert!(error.contains(reason), "{error}");
        }
    }

    /// Compare the set with each pattern by itself.
    fn check(sources: &[&str], text: &str, refused: usize) {
        let set = Set::new(sources).expect("small");
        let fits = |source: &str| compile(source).expect(source).is_match(text.as_bytes());
        let expected = (0..sources.len()).find(|&n| n != refused && fits(sources[n]));
        let found = set.first(text.as_bytes(), |n| n != refused);
        assert_eq!(found, expected, "{sources:?} on {text:?} without {refused}");
    }

    #[test]
    fn the_first_pattern_that_fits_is_found() {
        let sets: [&[&str]; 5] = [
            &["^a", "b", r"^\w+$", "z"],
            &[r"\((\d+)\) was accepted", r"^(?:\(\d+\)|\*\*)"],
            &[r"^(?:\(\d+\)|\*\*)", r"\((\d+)\) was accepted"],
            &["^ab.*x$", "^ab", "^a", "c", "^", "d"],
            &["b", "a"],
        ];
        for set in sets {
            for text in ["ab", "** pid (7) was accepted", "(7) x", "abcx", "abcd", "cab", "z", "", "a\nb"] {
                for refused in 0..=set.len() {
                    check(set, text, refused);
                }
            }
        }
    }
}
