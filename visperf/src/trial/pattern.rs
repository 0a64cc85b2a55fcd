//! Generator of a regex for lines of one shape: variable parts become captures, named after the word before
//! them.
//!
//! Pure. Every pattern matches the line from which it was made.

use crate::trial::shape::{Piece, pieces};
use std::fmt::Write as _;

/// Longest word that names a capture, in bytes: a longer one makes the pattern hard to read.
const NAME_LEN_MAX_BYTES: usize = 20;
/// Words that do not describe the value after them.
const EMPTY_WORDS: &[&str] = &["at", "for", "in", "is", "of", "on", "the", "was", "with"];

/// A regex for lines of this shape, and the names of its captures.
pub(crate) fn of(example: &str) -> (String, Vec<String>) {
    let mut draft = Draft { regex: "^".to_owned(), captures: Vec::new() };
    let (mut at, mut before) = (0, "");
    for piece in pieces(example) {
        at += piece.text().len();
        let next = example[at..].chars().next();
        let (kind, inner) = match piece {
            Piece::Literal(text) => {
                draft.literal(text);
                before = text;
                continue;
            }
            Piece::Number(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => ("n", r"\d+".to_owned()),
            Piece::Number(_) => ("n", r"\d[\d.,:-]*".to_owned()),
            Piece::Id(text) if text.contains(':') => ("id", r"[\w.@:-]+".to_owned()),
            Piece::Id(_) => ("id", r"[\w.@-]+".to_owned()),
            Piece::Uuid(_) => ("uuid", "[0-9A-Fa-f-]{36}".to_owned()),
            Piece::Quoted(text) => ("text", in_quotes(text)),
            Piece::Path(text) => ("path", value(text, next)),
            Piece::Value(text) => ("v", value(text, next)),
        };
        draft.capture(std::mem::take(&mut before), kind, &inner);
    }
    draft.regex.push('$');
    (draft.regex, draft.captures)
}

/// A regex for the beginning of lines of this shape, without captures.
pub(crate) fn without_captures(example: &str) -> String {
    let (mut regex, captures) = of(example);
    for name in captures {
        regex = regex.replace(&format!("(?P<{name}>"), "(?:");
    }
    regex.pop();
    regex
}

struct Draft {
    regex: String,
    captures: Vec<String>,
}

impl Draft {
    fn literal(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\t' {
                self.regex.push_str(r"\t");
                continue;
            }
            if r"\.+*?()|[]{}^$".contains(c) {
                self.regex.push('\\');
            }
            self.regex.push(c);
        }
    }

    /// Add a capture, named after the last word before it, else by its kind and number.
    fn capture(&mut self, before: &str, kind: &str, inner: &str) {
        let before = before.trim_end_matches([' ', '=', ':', '[', '(', '#', '<']);
        let letters = |c: char| c.is_ascii_alphabetic() || c == '_';
        let word = before[before.trim_end_matches(letters).len()..].to_ascii_lowercase();
        let names = (2..=NAME_LEN_MAX_BYTES).contains(&word.len())
            && word.starts_with(|c: char| c.is_ascii_alphabetic())
            && !EMPTY_WORDS.contains(&word.as_str())
            && !self.captures.contains(&word);
        let name = if names { word } else { format!("{kind}{}", self.captures.len() + 1) };
        let _ = write!(self.regex, "(?P<{name}>{inner})");
        self.captures.push(name);
    }
}

fn in_quotes(text: &str) -> String {
    if text.starts_with('"') { "\"[^\"]*\"".to_owned() } else { "'[^']*'".to_owned() }
}

/// A regex for a value that ends at `next`, with or without quotes.
fn value(text: &str, next: Option<char>) -> String {
    let plain = match next {
        None | Some(' ' | '\t') => r"\S+".to_owned(),
        Some(c @ (']' | '=' | '|' | '&' | ',' | ';' | ')' | '}')) => {
            format!("[^{}{c}]+", if c == ']' || c == '&' { "\\s\\" } else { "\\s" })
        }
        Some(_) => r"\S+?".to_owned(),
    };
    let quotes = text.len() > 1 && text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']);
    if quotes { format!("{}|{plain}", in_quotes(text)) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(line: &str, expected: &str) {
        let (regex, _) = of(line);
        assert_eq!(regex, expected, "{line}");
        assert!(regex::Regex::new(&regex).unwrap().is_match(line), "{regex} on {line}");
    }

    #[test]
    fn captures_are_whole_words_named_by_the_word_before() {
        check(
            "place job 5121 on tern-w07 slot 3",
            r"^place job (?P<job>\d+) on (?P<id2>[\w.@-]+) slot (?P<slot>\d+)$",
        );
        check("worker wn07.site.org up", r"^worker (?P<worker>[\w.@-]+) up$");
        check("job 1 after job 2", r"^job (?P<job>\d+) after job (?P<n2>\d+)$");
        check("took 3.5s (code 7)", r"^took (?P<took>[\w.@-]+) \(code (?P<code>\d+)\)$");
        check("a=x,b=\"y z\" c=1", r#"^a=(?P<v1>[^\s,]+),b=(?P<v2>"[^"]*"|\S+) c=(?P<v3>\S+)$"#);
        check("rc=0] 4x5y6", r"^rc=(?P<rc>[^\s\]]+)\] (?P<id2>[\w.@-]+)$");
        check("a\tb", r"^a\tb$");
        check("open /srv/x, 5", r"^open (?P<open>[^\s,]+), (?P<n2>\d+)$");
        check("slot w07/3 at 10.0.0.1:80", r"^slot (?P<slot>[\w.@-]+)/(?P<n2>\d+) at (?P<n3>\d[\d.,:-]*)$");
    }

    #[test]
    fn a_beginning_has_no_captures() {
        assert_eq!(without_captures("report job 5"), r"^report job (?:\d+)");
    }

    proptest! {
        // A failing line is printed; no regression file is written beside the source.
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_pattern_fits_its_line(line in "[a-zé0-9 =\"'.,;:()\\[\\]{}&|@/#<$^\\\\_-]{0,60}") {
            let (regex, captures) = of(&line);
            let compiled = regex::Regex::new(&regex).unwrap_or_else(|error| panic!("{error}: {line}"));
            prop_assert!(compiled.is_match(&line), "{} on {}", regex, line);
            prop_assert_eq!(compiled.captures_len(), captures.len() + 1);
            let begins = regex::Regex::new(&without_captures(&line)).unwrap();
            prop_assert!(begins.is_match(&line));
        }
    }
}
