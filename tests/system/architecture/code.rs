//! Extraction of the code from a source file: without its tests, comments and texts.
//!
//! Pure. Rule: line numbers are preserved, so that a position in the code is the position in the file.
//! Not here: any rule about the code (`sources`, `purity`).

/// The file up to its tests, which are at its end; `mod tests;` before them ends nothing.
pub(super) fn without_tests(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let next = text[at + line.len()..].lines().next().unwrap_or("");
        if line.trim_end() == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
            return &text[..at];
        }
        at += line.len();
    }
    text
}

/// The text with comments and the contents of string and character literals blanked.
pub(super) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().filter(|char| **char == '\n'));
            out.push(' ');
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// The string literals with the line where each starts, without their quotes.
pub(super) fn strings(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let end = skipped(&chars, at).max(at + 1);
        let part: String = chars[at..end].iter().collect();
        if end > at + 1 && part.starts_with(['"', 'r']) {
            let inside = part.trim_start_matches('r').trim_matches('#');
            found.push((line, inside[1..].strip_suffix('"').unwrap_or(&inside[1..]).to_owned()));
        }
        line += part.matches('\n').count();
        at = end;
    }
    found
}

/// End of the comment or literal that starts at `at`; `at` itself if there is none.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied().unwrap_or('\0');
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match chars[at] {
        '/' if next(1) == '/' => find(chars, at, &['\n']),
        '/' if next(1) == '*' => find(chars, at + 2, &['*', '/']) + 2,
        '"' => quoted(chars, at + 1, '"'),
        'r' if !in_word || chars[at - 1] == 'b' => raw(chars, at),
        // A lifetime has no closing quote after one character.
        '\'' if next(1) == '\\' || next(2) == '\'' => quoted(chars, at + 1, '\''),
        _ => at,
    }
}

fn quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// End of the raw string that starts at `at`: `r"…"`, `r#"…"#`.
fn raw(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|char| **char == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    (find(chars, at + 2 + hashes, &end) + end.len()).min(chars.len())
}

fn find(chars: &[char], from: usize, what: &[char]) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.windows(what.len()).position(|found| found == what).map_or(chars.len(), |ahead| from + ahead)
}

/// Whether the code contains a path: `std :: fs` and `std::fs` are the same, and names match only as a whole.
pub(super) fn names(code: &str, path: &str) -> bool {
    let bare: String = code.split("::").map(str::trim).collect::<Vec<_>>().join("::");
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    bare.match_indices(path).any(|(at, _)| {
        let before = bare[..at].chars().next_back();
        let after = bare[at + path.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[test]
fn comments_and_literals_are_blanked_and_lines_kept() {
    let check = |text: &str, expected: &str| assert_eq!(code(text), expected, "{text}");
    check("a // std::fs\nb", "a  \nb");
    check("a /* x\ny */ b", "a \n  b");
    check(r#"f("std::fs \" x", 'x', '\'', 'a)"#, "f( ,  ,  , 'a)");
    check("f(r\"\\\", r#\"a\"b\"#, br\"x\")", "f( ,  , b )");
    check("for r in a { r # b }", "for r in a { r # b }");
    check("'\"' std::fs \"", "  std::fs  ");
}

#[test]
fn strings_are_found_with_their_lines() {
    let found = strings("f(\"a\", '\"', b) // \"c\"\nlet r = r#\"d\n\"e\"\"#; b\"\"; g(\"\\\"h\\\"\")");
    let expected = [(1, "a"), (2, "d\n\"e\""), (3, ""), (3, "\\\"h\\\"")];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn tests_at_the_end_are_cut_off() {
    let file = "fn a() {}\n#[cfg(test)]\nuse b;\n\n#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(without_tests(file), "fn a() {}\n#[cfg(test)]\nuse b;\n\n");
    let before = "#[cfg(test)]\nmod tests;\nfn a() {}\n";
    assert_eq!(without_tests(before), before);
}

#[test]
fn names_are_whole_words() {
    assert!(names("use std::fs;", "std::fs"));
    assert!(names("use std :: fs ;", "std::fs"));
    assert!(!names("use std::fsync;", "std::fs"));
    assert!(!names("my_tokio()", "tokio"));
    assert!(names("tokio::spawn(x)", "tokio"));
}
