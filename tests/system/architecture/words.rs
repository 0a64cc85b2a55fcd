//! Plain words: comments, texts and documents do not use the words for which the field has a better term.
//!
//! Text in backticks or in a code block is a name or the output of a program, and is not checked; nor are the
//! values and quoted words in a string, which may come from logs of other programs.

use super::{Text, assert_none, code, texts};

/// Banned words, and their replacements.
const BANNED: &[(&str, &str)] = &[
    ("told", "sent, reported, printed, shown"),
    ("tell", "send, report, print, show"),
    ("tells", "sends, reports, prints, shows"),
    ("whoever", "the client, the peer, the caller that …"),
    ("whom", "the client, the peer, the caller"),
    ("somebody", "a client, another peer"),
    ("nobody", "no client, no peer, no one"),
    ("anew", "again"),
    ("begun", "started"),
    ("hangs on", "depends on"),
    ("in vain", "without success"),
    ("heard of", "received from, known"),
    ("of which", "a noun"),
    ("the former", "the previous"),
    ("stands for", "represents"),
    ("stands in", "is in, replaces"),
];

/// Whole strings that are allowed, each with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("nobody", "name of a Unix account, and a value in the configuration"),
    ("begun", "label in a picture that the tests of the viewer compare"),
];
/// This file, which lists the words.
const LIST: &str = "tests/system/architecture/words.rs";

/// The prose of a line.
fn prose(line: &str, is_code: bool) -> Option<&str> {
    if !is_code {
        return Some(line);
    }
    let at = line.find("//")?;
    let comment = line[at..].trim_start_matches(['/', '!']);
    // A line of code may contain a URL in a text.
    (at == 0 || line[..at].ends_with([' ', ';', '{', ',', ')'])).then_some(comment)
}

/// The line without text in backticks or quotes.
fn without_names(line: &str) -> String {
    line.split('`')
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ")
        .split('"')
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The prose of a string: without escapes and values.
fn string_prose(string: &str) -> String {
    let plain = string.replace("\\\"", "\"").replace("\\n", " ").replace('\\', " ");
    let mut parts = plain.split('{');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('}').map_or(part, |(_, after)| after));
    let text: Vec<&str> = std::iter::once(first).chain(rest).flat_map(str::split_whitespace).collect();
    text.join(" ")
}

/// Whether the line has the words; a word with `_` or `-` is a name.
fn has(line: &str, words: &str) -> bool {
    let is_letter =
        |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || "_-".contains(char));
    line.match_indices(words).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + words.len()..].chars().next())
    })
}

fn problems(file: &Text) -> Vec<String> {
    let (mut problems, mut is_fenced) = (Vec::new(), false);
    let is_code = file.path.ends_with(".rs");
    for (at, line) in file.text.lines().enumerate() {
        let Some(prose) = prose(line, is_code) else { continue };
        if prose.trim_start().starts_with("```") {
            is_fenced = !is_fenced && !is_code;
        }
        if is_fenced {
            continue;
        }
        problems.extend(complaints(file, at + 1, prose));
    }
    if is_code && file.path != LIST {
        for (line, string) in code::strings(&file.text) {
            if !ALLOWED.iter().any(|(allowed, _)| string.eq_ignore_ascii_case(allowed)) {
                problems.extend(complaints(file, line, &string_prose(&string)));
            }
        }
    }
    problems
}

fn complaints(file: &Text, line: usize, prose: &str) -> Vec<String> {
    let plain = without_names(prose).to_lowercase();
    let found = BANNED.iter().filter(|(word, _)| has(&plain, word));
    found.map(|(word, instead)| format!("{}:{line}: expected {instead}, found {word:?}", file.path)).collect()
}

#[test]
fn comments_texts_and_documents_are_in_plain_words() {
    let files: Vec<_> = texts(".rs").into_iter().chain(texts(".md")).collect();
    assert!(files.len() > 1_000, "found only {} files", files.len());
    assert_none(&files.iter().flat_map(problems).collect::<Vec<_>>());
}

#[test]
fn a_banned_word_is_found_in_prose_alone() {
    let check = |path: &str, text: &str, expected: usize| {
        assert_eq!(problems(&Text::new(path, text)).len(), expected, "{path}: {text}");
    };
    check("a.rs", "// It is told.\n", 1);
    check("a.rs", "let told = 1; // it is shown\n", 0);
    check("a.rs", "/// Whoever asks in vain.\n", 2);
    check("a.rs", "/// `told` and untold.\n", 0);
    check("a.rs", "let at = \"http://told-host.example\";\n", 0);
    check("a.rs", "f(\"it is told\", \"NOBODY\", \"a line is told \\\n in vain\");\n", 3);
    check("a.rs", "f(\"{told} is `told`, {told:?} \\\"told\\\", --tell a::is_told\");\n", 0);
    check("a.md", "Nobody tells.\n\n```text\ntold\n```\n`nobody`, \"nobody\"\n", 2);
}
