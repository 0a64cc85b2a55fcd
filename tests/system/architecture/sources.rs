//! Rules for source files: length, head comment, name, exports, no unfinished work.
//!
//! Rule: a file that would need an exception is split instead.
//! Not here: purity (`purity`), functions that are too long (clippy).

use super::{Text, assert_none, code, texts};

/// Most lines of a file including its tests; also for files of tests.
const LINES_MAX: usize = 500;
/// Fewest lines of the head comment of a file that is part of a program.
const DOC_LINES_MIN: usize = 2;
/// File names without meaning.
const BANNED: &[&str] =
    &["util.rs", "utils.rs", "common.rs", "helper.rs", "helpers.rs", "misc.rs", "shared.rs"];
/// Marks of unfinished work, concatenated so that this file contains none.
const UNDONE: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNDONE_CODE: &[&str] = &[concat!("to", "do!"), concat!("unimple", "mented!"), concat!("#[", "ignore")];

fn problems(file: &Text) -> Vec<String> {
    let mut problems = Vec::new();
    let mut complain = |problem: String| problems.push(format!("{}: {problem}", file.path));
    if BANNED.contains(&file.name()) {
        complain("a name that says nothing; name the concept".into());
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        complain(format!("expected at most {LINES_MAX} lines with its tests, found {lines}"));
    }
    let doc = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    let least = if file.path.contains("/src/") && !is_test(file) { DOC_LINES_MIN } else { 1 };
    if doc < least {
        complain(format!("expected {least} lines of //! at the beginning, found {doc}"));
    }
    for (at, line) in file.text.lines().enumerate() {
        if let Some(mark) = UNDONE.iter().find(|mark| code::names(line, mark)) {
            complain(format!("line {}: {mark}", at + 1));
        }
    }
    let bare = code::code(&file.text);
    for (at, line) in bare.lines().enumerate() {
        if let Some(mark) = UNDONE_CODE.iter().find(|mark| line.contains(**mark)) {
            complain(format!("line {}: {mark}", at + 1));
        }
        if let Some(from) = foreign_export(&bare, line) {
            complain(format!("line {}: pub use of {from}, which is not of this crate", at + 1));
        }
    }
    problems
}

/// Whether the whole file consists of tests of one crate. The system tests (`tests/src`, `tests/system`) are
/// a crate themselves.
fn is_test(file: &Text) -> bool {
    file.path.contains("/tests/") || file.name() == "tests.rs"
}

/// Crate from which a line re-exports, if it is another one.
fn foreign_export<'a>(file: &str, line: &'a str) -> Option<&'a str> {
    let path = line.trim_start().strip_prefix("pub use ")?.trim_start_matches("::");
    let first = path.split(|char: char| !(char.is_alphanumeric() || char == '_')).next()?;
    let own = ["crate", "self", "super"].contains(&first);
    let declared = file.lines().any(|line| {
        let words = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        words.strip_prefix("mod ").is_some_and(|name| name.trim_end_matches([';', '{', ' ']) == first)
    });
    (!own && !declared).then_some(first)
}

#[test]
fn every_source_file_keeps_the_rules() {
    let files = texts(".rs");
    assert!(files.len() >= 60, "found only {} source files", files.len());
    let problems: Vec<_> = files.iter().flat_map(problems).collect();
    assert_none(&problems);
}

#[test]
fn what_breaks_a_rule_is_found() {
    let check = |path: &str, text: &str, expected: &str| {
        let found = problems(&Text::new(path, text));
        let fits = if expected.is_empty() {
            found.is_empty()
        } else {
            found.iter().any(|one| one.contains(expected))
        };
        assert!(fits, "{path}: expected {expected:?}, found {found:?}");
    };
    let doc = "//! What it is.\n//! Rule: one.\n";
    check("a/src/b.rs", doc, "");
    check("a/src/b.rs", "//! What it is.\nfn a() {}\n", "expected 2 lines of //!");
    check("a/tests/b.rs", "//! What it is.\n", "");
    check("a/tests/b.rs", "fn a() {}\n", "expected 1 lines of //!");
    check("a/src/common.rs", doc, "a name that says nothing");
    let long = format!("{doc}{}", "fn a() {}\n".repeat(LINES_MAX - 2));
    check("a/src/b.rs", &long, "");
    check("a/src/b.rs", &format!("{long}#[cfg(test)]\nmod tests {{\n}}\n"), "expected at most 500 lines");
    let longer = format!("{long}fn b() {{}}\n");
    for path in ["a/src/b.rs", "tests/system/b.rs", "a/tests/b.rs"] {
        check(path, &longer, "expected at most 500 lines");
    }
    check("a/src/b.rs", &format!("{doc}// {}: more\n", UNDONE[0]), "line 3");
    for mark in UNDONE_CODE {
        check("a/src/b.rs", &format!("{doc}{mark}\n"), "line 3");
        check("a/src/b.rs", &format!("{doc}// not {mark}\n"), "");
    }
    check("a/src/b.rs", &format!("{doc}pub use serde::Serialize;\n"), "pub use of serde");
    check("a/src/b.rs", &format!("{doc}pub use ::wire::event;\n"), "pub use of wire");
    check("a/src/b.rs", &format!("{doc}mod event;\npub use event::Event;\n"), "");
    check("a/src/b.rs", &format!("{doc}pub use crate::event::Event;\npub use super::a;\n"), "");
}
