//! Regexes of filters, within bounds: a filter may come from someone else.
//!
//! Pure. Bytes, Unicode off (a Unicode `\d` makes sets of patterns 200 times slower and no log needs it).
//! Bounds: the length of the source as well as the compiled size, since size alone did not stop
//! exhaustion elsewhere.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::util::pool::Pool;
use regex_automata::{Input, MatchKind, PatternSet, meta, util::syntax};

/// Longest source of a pattern, in bytes.
pub(crate) const SOURCE_LEN_MAX_BYTES: usize = 4 << 10;
/// Largest compiled program of a pattern, in bytes.
const COMPILED_LEN_MAX_BYTES: usize = 1 << 20;
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

/// Several patterns asked at once which of them fit.
#[derive(Debug)]
pub(crate) struct Set {
    all: meta::Regex,
    found: Pool<
        PatternSet,
        Box<dyn Fn() -> PatternSet + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>,
    >,
}

impl Set {
    /// Compile the set; every source has been accepted by [`compile`].
    pub(crate) fn new(sources: &[&str]) -> Result<Set, String> {
        let all = meta::Regex::builder()
            .configure(
                meta::Config::new()
                    // Otherwise a pattern that fits at the line's start hides those that fit further on.
                    .match_kind(MatchKind::All)
                    .utf8_empty(false)
                    .nfa_size_limit(Some(SET_LEN_MAX_BYTES))
                    .hybrid_cache_capacity(AUTOMATON_LEN_MAX_BYTES)
                    .which_captures(regex_automata::nfa::thompson::WhichCaptures::Implicit),
            )
            .syntax(syntax::Config::new().unicode(false).utf8(false).nest_limit(NESTING_MAX))
            .build_many(sources)
            .map_err(|error| {
                format!(
                    "the filter's regexes together cannot be used ({error}); at most {SET_LEN_MAX_BYTES} compiled bytes are allowed"
                )
            })?;
        let len = all.pattern_len();
        Ok(Set { all, found: Pool::new(Box::new(move || PatternSet::new(len))) })
    }

    /// Call `visit` with the number of each pattern that fits, ascending, until it says stop (`true`).
    #[inline]
    pub(crate) fn fitting(&self, text: &[u8], mut visit: impl FnMut(usize) -> bool) {
        let mut found = self.found.get();
        found.clear();
        self.all.which_overlapping_matches(&Input::new(text), &mut found);
        for pattern in found.iter() {
            if visit(pattern.as_usize()) {
                return;
            }
        }
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

    #[test]
    fn a_set_tells_all_that_fit_in_order() {
        let set = Set::new(&["^a", "b", r"^\w+$", "z"]).expect("small");
        let mut fits = Vec::new();
        set.fitting(b"ab", |n| {
            fits.push(n);
            false
        });
        assert_eq!(fits, [0, 1, 2]);
    }

    #[test]
    fn a_pattern_that_fits_further_on_is_not_hidden_by_one_at_the_start() {
        let set = Set::new(&[r"\((\d+)\) was accepted", r"^(?:\(\d+\)|\*\*)"]).expect("small");
        let mut fits = Vec::new();
        set.fitting(b"** pid (7) was accepted", |n| {
            fits.push(n);
            false
        });
        assert_eq!(fits, [0, 1]);
    }
}
