//! Links in documents: every link to a file of the tree has an existing target.
//!
//! Rule: links in code and links that leave the tree are not checked.
//! Not here: whether the documents are correct.

use super::{Text, assert_none, texts};
use std::path::Path;
use system_tests::program;

/// Problems of one document; `exists` checks whether a path from the root exists.
fn problems(document: &Text, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    let mut in_code = false;
    for (at, line) in document.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            continue;
        }
        for target in targets(line) {
            let path = target.split('#').next().unwrap_or("");
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if path.starts_with('/') || !exists(&folder.join(path)) {
                problems.push(format!("{}:{}: a link to {path}, which is not there", document.path, at + 1));
            }
        }
    }
    problems
}

/// Targets of the links `[text](target)` in a line, outside of code.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (number, part) in line.split('`').enumerate() {
        // `[`code`](target)`: the target follows the code.
        let outside = number % 2 == 0;
        let begins = part.match_indices("](").filter(|_| outside);
        found.extend(begins.filter_map(|(at, _)| part[at + 2..].split(')').next()));
    }
    found.iter().map(|target| target.split_whitespace().next().unwrap_or("")).collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let documents: Vec<_> =
        texts(".md").into_iter().filter(|text| !text.path.starts_with("shared/")).collect();
    for needed in ["README.md", "ARCHITECTURE.md", "docs/methods.md"] {
        assert!(documents.iter().any(|document| document.path == needed), "{needed} is missing");
    }
    let root = program::workspace();
    let exists = |path: &Path| root.join(path).exists();
    let problems: Vec<_> = documents.iter().flat_map(|document| problems(document, exists)).collect();
    assert_none(&problems);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let check = |text: &str, expected: usize| {
        let there = |path: &Path| path == Path::new("docs/a.md") || path == Path::new("docs/../README.md");
        assert_eq!(problems(&Text::new("docs/b.md", text), there).len(), expected, "{text}");
    };
    check("[a](a.md) and [top](../README.md#start)", 0);
    check("[`a`](a.md) [b](#here) [c](https://example.org/x) [d](a.md \"title\")", 0);
    check("[a](missing.md)", 1);
    check("[`a`](missing.md)", 1);
    check("[a](/docs/a.md)", 1);
    check("`[a](missing.md)`\n```\n[a](missing.md)\n```\n[a](missing.md)", 1);
}
