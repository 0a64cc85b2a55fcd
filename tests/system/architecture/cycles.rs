//! Import cycles: the top-level modules of a crate import one another in no cycle.
//!
//! A top-level module is a file or folder below `src/`, with everything in it; the root (`lib.rs`, `main.rs`)
//! is none. Rule: of each group of modules at least one cycle is reported, with a file for each import.
//! Not here: the order of the modules (`rooms`), dependencies between crates (`dependencies`).

use super::{Text, assert_none, code, texts};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// For each module, the modules that it imports, each with a file that does so.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

/// Cycles in the crate whose sources are in the folder `source`.
fn problems(source: &str, files: &[Text]) -> Vec<String> {
    let imports = imports(source, files);
    let (mut problems, mut reported) = (Vec::new(), BTreeSet::new());
    for module in imports.keys() {
        let Some(cycle) = cycle(&imports, module).filter(|_| !reported.contains(module)) else { continue };
        let steps = cycle.iter().zip(cycle.iter().cycle().skip(1));
        let steps = steps.map(|(from, to)| format!("{from} imports {to} ({})", imports[from][to]));
        problems.push(format!("{source}: {}", steps.collect::<Vec<_>>().join(", ")));
        reported.extend(cycle);
    }
    problems
}

fn imports<'a>(source: &str, files: &'a [Text]) -> Imports<'a> {
    let own =
        files.iter().filter_map(|file| Some((file, file.path.strip_prefix(source)?.strip_prefix('/')?)));
    let own: Vec<_> = own.filter(|(_, path)| !["lib.rs", "main.rs", "bin"].contains(&top(path))).collect();
    let modules: BTreeSet<&str> = own.iter().map(|(_, path)| top(path)).collect();
    let mut imports = Imports::new();
    for (file, path) in own.iter().filter(|(_, path)| !path.ends_with("tests.rs")) {
        let text = code::code(code::without_tests(&file.text));
        let named = roots(path).flat_map(|root| names_after(&text, &root)).collect::<BTreeSet<_>>();
        let imported = modules.iter().filter(|module| **module != top(path) && named.contains(**module));
        let row = imports.entry(top(path)).or_default();
        imported.for_each(|module| _ = row.entry(*module).or_insert(&file.path));
    }
    imports
}

/// Top-level module of a file, by its path below `src/`.
fn top(path: &str) -> &str {
    match path.split_once('/') {
        Some((folder, _)) => folder,
        None if ["lib.rs", "main.rs"].contains(&path) => path,
        None => path.strip_suffix(".rs").unwrap_or(path),
    }
}

/// Prefixes by which a file names the modules of the root: `crate::`, and `super::` once for each level.
fn roots(path: &str) -> impl Iterator<Item = String> {
    let levels = path.split('/').filter(|part| *part != "mod.rs").count();
    ["crate::".to_owned(), "super::".repeat(levels)].into_iter()
}

/// The names that follow `prefix`, each alone or in braces.
fn names_after(text: &str, prefix: &str) -> Vec<String> {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" :: ", "::");
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let word = |text: &str| text.trim_start().split(|char| !is_word(char)).next().unwrap_or("").to_owned();
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let before = &text[..at];
        if before.ends_with(is_word) || before.ends_with("::") {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(items(group).into_iter().map(word)),
            None => names.push(word(rest)),
        }
    }
    names
}

/// Items of a group of imports; `group` is the text after its opening brace.
fn items(group: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&group[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

/// The shortest cycle through a module, which it starts with.
fn cycle<'a>(imports: &Imports<'a>, module: &'a str) -> Option<Vec<&'a str>> {
    let (mut open, mut reached) = (VecDeque::from([vec![module]]), BTreeSet::new());
    while let Some(path) = open.pop_front() {
        for next in path.last().and_then(|last| imports.get(last)).into_iter().flat_map(BTreeMap::keys) {
            if *next == module {
                return Some(path);
            }
            if reached.insert(*next) {
                open.push_back(path.iter().copied().chain([*next]).collect());
            }
        }
    }
    None
}

#[test]
fn the_top_level_modules_of_a_crate_import_one_another_in_no_cycle() {
    let files = texts(".rs");
    let root = |file: &Text| {
        let path = file.path.strip_suffix("/lib.rs").or(file.path.strip_suffix("/main.rs"))?;
        path.ends_with("/src").then(|| path.to_owned())
    };
    let sources: BTreeSet<String> = files.iter().filter_map(root).collect();
    assert!(sources.len() >= 12, "{sources:?}");
    assert_none(&sources.iter().flat_map(|source| problems(source, &files)).collect::<Vec<_>>());
}

#[test]
fn a_cycle_is_found() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let files: Vec<_> = files.iter().map(|(path, text)| Text::new(path, *text)).collect();
        assert_eq!(problems("a/src", &files), expected, "{files:?}");
    };
    let b = ("a/src/b.rs", "use crate::c::X;\n");
    check(&[b, ("a/src/c.rs", "// crate::b\nuse crate::bar::y;\n"), ("a/src/bar.rs", "")], &[]);
    let found = ["a/src: b imports c (a/src/b.rs), c imports b (a/src/c.rs)"];
    check(&[b, ("a/src/c.rs", "use super::b::Y;\n")], &found);
    check(&[b, ("a/src/c.rs", "fn f() { crate :: b::g() }\n")], &found);
    check(&[b, ("a/src/c.rs", "use crate::{\n    d::{self, b},\n    b,\n};\n"), ("a/src/d.rs", "")], &found);
    check(&[b, ("a/src/c.rs", "#[cfg(test)]\nmod tests;\nuse crate::b::Y;\n")], &found);
    let found = ["a/src: b imports c (a/src/b.rs), c imports b (a/src/c/x.rs)"];
    check(&[b, ("a/src/c/x.rs", "use super::super::b::Y;\n")], &found);
    check(&[b, ("a/src/c/x.rs", "use super::b::Y;\n")], &[]);
    check(
        &[b, ("a/src/c/mod.rs", "use super::b::Y;\n")],
        &["a/src: b imports c (a/src/b.rs), c imports b (a/src/c/mod.rs)"],
    );
    check(&[b, ("a/src/c.rs", "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n")], &[]);
    check(&[b, ("a/src/c/tests.rs", "use crate::b;\n"), ("a/src/c/mod.rs", "")], &[]);
    check(&[b, ("a/src/lib.rs", "use crate::b;\nmod c;\n"), ("x/src/c.rs", "use crate::b;\n")], &[]);
}

#[test]
fn one_cycle_is_reported_for_each_group() {
    let files = ["b>c", "c>d", "d>b", "e>b", "f>g", "g>f"].map(|pair| {
        let (from, to) = pair.split_once('>').unwrap();
        Text::new(&format!("a/src/{from}.rs"), format!("use crate::{to};\n"))
    });
    let found = problems("a/src", &files);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("a/src: b imports c (") && found[1].starts_with("a/src: f imports g ("),
        "{found:?}"
    );
}
