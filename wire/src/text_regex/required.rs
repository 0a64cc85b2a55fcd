//! Part without digits that every match of a regular expression has.
//!
//! Pure. Not here: what is searched with it (`TextRegex`).

use regex::bytes::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Returns an expression that finds the part of each match of `expression`; `None` if matches have no such part.
pub(super) fn finder(expression: &str) -> Option<Regex> {
    let hir = ParserBuilder::new().utf8(false).build().parse(expression).ok()?;
    let mut finder = String::from("(?-u)");
    for (nth, part) in parts(&hir)?.iter().enumerate() {
        finder.push_str(if nth > 0 { "|" } else { "" });
        for byte in part {
            write!(finder, "\\x{byte:02x}").ok()?;
        }
    }
    Regex::new(&finder).ok()
}

/// Returns parts without digits; each match has one of them. Of those known, the ones whose shortest is longest.
fn parts(hir: &Hir) -> Option<BTreeSet<Vec<u8>>> {
    let inner: &[Hir] = match hir.kind() {
        HirKind::Concat(all) => all,
        HirKind::Capture(group) => std::slice::from_ref(&*group.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => std::slice::from_ref(&*repeated.sub),
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Alternation(_) => &[],
    };
    let ends = [ExtractKind::Prefix, ExtractKind::Suffix];
    let ends = ends.into_iter().filter_map(|end| without_digits(hir, end));
    ends.chain(inner.iter().filter_map(parts)).max_by_key(|parts| parts.iter().map(Vec::len).min())
}

/// Returns the parts of what each match starts or ends with; `None` if one of them has digits alone, or nothing.
fn without_digits(hir: &Hir, end: ExtractKind) -> Option<BTreeSet<Vec<u8>>> {
    let found = Extractor::new().kind(end).extract(hir);
    let parts = found.literals()?.iter().map(|literal| {
        let parts = literal.as_bytes().split(u8::is_ascii_digit);
        parts.max_by_key(|part| part.len()).filter(|part| !part.is_empty()).map(<[u8]>::to_vec)
    });
    let parts: BTreeSet<_> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_that_each_match_has_is_required() {
        let required = |expression| {
            let hir =
                ParserBuilder::new().utf8(false).build().parse(expression).expect("it is an expression");
            let parts = parts(&hir)?;
            Some(
                parts
                    .into_iter()
                    .map(|part| String::from_utf8(part).expect("of letters"))
                    .collect::<Vec<_>>(),
            )
        };
        for (expression, parts) in [
            ("wn12[0-9]:.*SIGSEGV", &["SIGSEGV"][..]),
            ("user04[0-9]|NODE_FAIL", &["NODE_FAIL", "user"]),
            (".*a failed b.*", &["a failed b"]),
            ("(?:.*(died))+[0-9]*$", &["died"]),
            ("12ab3c", &["ab"]),
            ("(?i)no", &["NO", "No", "nO", "no"]),
        ] {
            assert_eq!(required(expression).expect("there is one"), parts, "{expression}");
        }
        for expression in ["^(120034|3456)5$", "a*", "", "a|5", "[[:^ascii:]]", "(?-u:[^a])", "(x*y*)*"] {
            assert_eq!(required(expression), None, "{expression}");
        }
    }
}
