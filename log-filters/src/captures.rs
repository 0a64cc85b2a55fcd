//! Positions of the captures of a matching pattern, restricted to those that a rule uses.
//!
//! Pure. The filter's pattern set has already decided which pattern matches, so nothing is searched twice
//! here. A pattern anchored at the line's start is matched once from there: by a one-pass automaton if each
//! byte leaves one choice, otherwise by a bounded backtracker; unused groups are not tracked. Other patterns,
//! and texts too long for the backtracker, use the general engine.

use crate::pattern;
use regex::bytes::Regex;
use regex_automata::dfa::onepass;
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Capture, Hir, HirKind, Look};

/// Largest one-pass automaton of a pattern, in bytes: a whole record of 15 captures needs half of it.
const ONE_PASS_LEN_MAX_BYTES: usize = 512 << 10;
/// Largest one-pass automata of a filter together, in bytes; further patterns use the backtracker.
pub(crate) const ONE_PASS_ALL_LEN_MAX_BYTES: usize = 4 << 20;
/// Most memory of a backtracker for visited states, in bytes: a pattern of 500 states over a line of 4 KiB.
const VISITED_LEN_MAX_BYTES: usize = 256 << 10;

/// Captures of one pattern that the rule uses.
#[derive(Debug)]
pub(crate) struct Captures {
    walk: Walk,
    regex: Regex,
    /// For each slot its group in `regex` and its group in `walk`.
    groups: Vec<Option<(usize, usize)>>,
}

#[derive(Debug)]
enum Walk {
    OnePass(Box<onepass::DFA>),
    Backtrack(BoundedBacktracker),
    General,
}

/// Scratch memory of the matching; one for all patterns of an engine.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    slots: Vec<Option<NonMaxUsize>>,
    backtrack: Option<backtrack::Cache>,
    one_pass: Option<onepass::Cache>,
    /// Positions of the captures, by slot of the rule.
    pub(crate) spans: Spans,
}

/// Start and end of each capture, by slot.
pub(crate) type Spans = Vec<Option<(usize, usize)>>;

impl Captures {
    /// Prepare to find the groups `names` of `source`, which was compiled to `regex`.
    ///
    /// `room` is the remaining memory for one-pass automata, in bytes.
    pub(crate) fn new(source: &str, regex: Regex, names: &[String], room: &mut usize) -> Captures {
        let mut kept = Vec::new();
        let walk = walk(source, names, &mut kept, room);
        let groups = names
            .iter()
            .map(|name| {
                let whole = regex.capture_names().position(|known| known == Some(name))?;
                let own = kept.iter().position(|known| known == name).map_or(0, |at| at + 1);
                Some((whole, own))
            })
            .collect();
        Captures { walk, regex, groups }
    }

    /// Match `text` and store the positions of the captures in `scratch.spans`. Returns whether the pattern
    /// matches.
    pub(crate) fn find(&self, text: &[u8], scratch: &mut Scratch) -> bool {
        scratch.spans.clear();
        if self.groups.is_empty() {
            return true;
        }
        let input = Input::new(text).anchored(Anchored::Yes);
        let slots = &mut scratch.slots;
        slots.clear();
        let found = match &self.walk {
            Walk::OnePass(automaton) => {
                slots.resize(automaton.get_nfa().group_info().slot_len(), None);
                let cache = scratch.one_pass.get_or_insert_with(|| automaton.create_cache());
                automaton.reset_cache(cache);
                automaton.try_search_slots(cache, &input, slots).ok()
            }
            Walk::Backtrack(backtracker) if text.len() < backtracker.max_haystack_len() => {
                slots.resize(backtracker.get_nfa().group_info().slot_len(), None);
                let cache = scratch.backtrack.get_or_insert_with(|| backtracker.create_cache());
                backtracker.reset_cache(cache);
                backtracker.try_search_slots(cache, &input, slots).ok()
            }
            Walk::Backtrack(_) | Walk::General => None,
        };
        let Some(found) = found else { return self.find_by_regex(text, &mut scratch.spans) };
        let place = |at: usize| slots.get(at).copied().flatten().map(NonMaxUsize::get);
        let span = |group: usize| Some((place(2 * group)?, place(2 * group + 1)?));
        scratch.spans.extend(self.groups.iter().map(|group| group.and_then(|(_, own)| span(own))));
        found.is_some()
    }

    fn find_by_regex(&self, text: &[u8], spans: &mut Spans) -> bool {
        let mut locations = self.regex.capture_locations();
        let fits = self.regex.captures_read(&mut locations, text).is_some();
        spans.extend(self.groups.iter().map(|group| group.and_then(|(whole, _)| locations.get(whole))));
        fits
    }
}

/// Choose the fastest matcher for `source`; `kept` receives the names of its groups, in order.
fn walk(source: &str, names: &[String], kept: &mut Vec<String>, room: &mut usize) -> Walk {
    if names.is_empty() {
        return Walk::General;
    }
    let Ok(hir) = regex_automata::util::syntax::parse_with(source, &pattern::syntax()) else {
        return Walk::General;
    };
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return Walk::General;
    }
    let pruned = prune(&hir, names, kept);
    let config = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(pattern::COMPILED_LEN_MAX_BYTES))
        .which_captures(WhichCaptures::All);
    let Ok(nfa) = NFA::compiler().configure(config).build_from_hir(&pruned) else { return Walk::General };
    let one_pass = onepass::DFA::builder()
        .configure(onepass::Config::new().size_limit(Some(ONE_PASS_LEN_MAX_BYTES.min(*room))))
        .build_from_nfa(nfa.clone());
    if let Ok(automaton) = one_pass {
        *room = room.saturating_sub(automaton.memory_usage());
        return Walk::OnePass(Box::new(automaton));
    }
    let config = backtrack::Config::new().visited_capacity(VISITED_LEN_MAX_BYTES);
    debug_assert_eq!(MatchKind::default(), MatchKind::LeftmostFirst, "as the general engine finds");
    match BoundedBacktracker::builder().configure(config).build_from_nfa(nfa) {
        Ok(backtracker) => Walk::Backtrack(backtracker),
        Err(_) => Walk::General,
    }
}

/// The pattern with only the groups `names`; its depth is bounded by the parser.
fn prune(hir: &Hir, names: &[String], kept: &mut Vec<String>) -> Hir {
    match hir.kind() {
        HirKind::Capture(capture) => match capture.name.as_deref().filter(|name| is_wanted(name, names)) {
            None => prune(&capture.sub, names, kept),
            Some(name) => {
                kept.push(name.to_owned());
                let index = u32::try_from(kept.len()).expect("a source of 4 KiB has fewer groups");
                let sub = Box::new(prune(&capture.sub, names, kept));
                Hir::capture(Capture { index, name: Some(name.into()), sub })
            }
        },
        HirKind::Repetition(repetition) => {
            let sub = prune(&repetition.sub, names, kept);
            Hir::repetition(repetition.with(sub))
        }
        HirKind::Concat(several) => Hir::concat(several.iter().map(|one| prune(one, names, kept)).collect()),
        HirKind::Alternation(several) => {
            Hir::alternation(several.iter().map(|one| prune(one, names, kept)).collect())
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
    }
}

fn is_wanted(name: &str, names: &[String]) -> bool {
    names.iter().any(|wanted| wanted == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, names: &[&str], text: &str) -> &'static str {
        let regex = pattern::compile(source).expect(source);
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let captures = Captures::new(source, regex.clone(), &names, &mut ONE_PASS_ALL_LEN_MAX_BYTES.clone());
        let mut scratch = Scratch::default();
        // Twice, and after another pattern: no state of an earlier search may be left.
        let fits = captures.find(text.as_bytes(), &mut scratch);
        assert!(captures.find(text.as_bytes(), &mut scratch) == fits);
        let expected = regex.captures(text.as_bytes());
        assert_eq!(fits, expected.is_some(), "{source} on {text}");
        let expected: Spans = names
            .iter()
            .map(|name| expected.as_ref()?.name(name).map(|found| (found.start(), found.end())))
            .collect();
        if fits {
            assert_eq!(scratch.spans, expected, "{source} on {text}");
        }
        match captures.walk {
            Walk::OnePass(_) => "one pass",
            Walk::Backtrack(_) => "backtrack",
            Walk::General => "general",
        }
    }

    #[test]
    fn captures_are_those_of_the_general_engine() {
        let job =
            r"^(?:_slurm: )?(?P<what>\w+) (?P<job>(?P<array>\d+)_(?P<task>\d+)|\d+(?:\+\d+)?)(?: on (\S+))?";
        for text in ["start 9_1 on x", "_slurm: end 12", "end 12+3", "end", ""] {
            assert_eq!(check(job, &["what", "job", "task"], text), "backtrack");
            assert_eq!(check(job, &["task", "array"], text), "backtrack");
        }
        assert_eq!(check(r"^(?P<a>[a-z]+)=(?P<b>\d+)", &["b", "a"], "abc=12 x"), "one pass");
        assert_eq!(check(r"(?P<a>\d+) done", &["a"], "job 12 done"), "general");
        assert_eq!(check(r"^(?P<x>a)|b(?P<y>c)", &["x", "y"], "zbc"), "general");
        assert_eq!(check(r"(?m)^(?P<x>b)", &["x"], "a\nb"), "general");
        assert_eq!(check(r"^(?P<x>a)|^b(?P<y>c)", &["x", "y"], "bc"), "one pass");
    }

    #[test]
    fn a_text_too_long_for_the_backtracker_is_still_searched() {
        let long = "x".repeat(1 << 20);
        assert_eq!(check(r"^(?P<a>x*?)(?P<b>x?)$", &["a", "b"], &long), "backtrack");
    }
}
