//! Layers of a crate: its folders and top-level files in order, each importing only those below it.
//!
//! So there is no import cycle between them. Not here: which crate may use which (`dependencies`).

use super::{Text, assert_none, code, texts};

/// Layers of a crate, the highest first: folders, or files beside them (`run` is `run.rs` and `run/`). A
/// file that is not named is below all of them, `lib.rs` too.
const ROOMS: &[(&str, &[&str])] = &[
    ("rpc", &["http", "stream", "dispatch", "codec"]),
    (
        "sensor",
        &[
            "run",
            "query",
            "filters",
            "config",
            "module",
            "control",
            "archive",
            "findings",
            "recorder",
            "job_usage",
            "job_series",
            "process_history",
            "channel",
            "serving",
            "report",
            "representative",
            "tail",
            "journal",
            "process",
            "call_history",
            "history",
            "sample",
            "segments",
        ],
    ),
];

/// Imports of a higher layer, and folders that have no place.
fn problems(name: &str, order: &[&str], files: &[Text]) -> Vec<String> {
    let mut problems = Vec::new();
    let source = format!("{name}/src/");
    for file in files {
        let Some(path) = file.path.strip_prefix(&source) else { continue };
        let place = |layer: &str| order.iter().position(|known| *known == layer);
        let floor = match path.split_once('/') {
            Some((folder, _)) => place(folder),
            // Beside the folders.
            None => Some(path.strip_suffix(".rs").and_then(place).unwrap_or(order.len())),
        };
        let Some(floor) = floor else {
            problems.push(format!("{}: expected a folder of {order:?}", file.path));
            continue;
        };
        for (at, line) in code::code(code::without_tests(&file.text)).lines().enumerate() {
            let names = |higher: &&&str| code::names(line, &format!("crate::{higher}"));
            if let Some(higher) = order[..floor].iter().find(names) {
                problems.push(format!("{}:{}: it is below {higher}, which it imports", file.path, at + 1));
            }
            if line.contains("crate::{") {
                problems.push(format!("{}:{}: one import for each folder", file.path, at + 1));
            }
        }
    }
    problems
}

#[test]
fn layers_import_only_those_below_them() {
    let files = texts(".rs");
    for (name, order) in ROOMS {
        let own: Vec<_> =
            files.iter().filter(|file| file.path.starts_with(&format!("{name}/src/"))).collect();
        for layer in *order {
            let paths = [format!("{name}/src/{layer}/mod.rs"), format!("{name}/src/{layer}.rs")];
            assert!(own.iter().any(|file| paths.contains(&file.path)), "{paths:?} are not there");
        }
        assert_none(&problems(name, order, &files));
    }
}

#[test]
fn an_import_upwards_is_found() {
    let check = |path: &str, text: &str, expected: usize| {
        let found = problems("a", &["high", "low"], &[Text::new(path, text)]);
        assert_eq!(found.len(), expected, "{path}: {text}: {found:?}");
    };
    check("a/src/high/x.rs", "use crate::low::y;\nuse crate::limits::Z;\n", 0);
    check("a/src/low/x.rs", "use crate::high::y;\n", 1);
    check("a/src/low/x.rs", "fn f() { crate::high::g() }\n", 1);
    check("a/src/low/x.rs", "// crate::high\nuse crate::highest::z;\n", 0);
    check("a/src/low/x.rs", "use crate::{high, low};\n", 1);
    check("a/src/lib.rs", "pub mod high;\nuse crate::low::z;\n", 1);
    check("a/src/high.rs", "mod x;\nuse crate::low::y;\n", 0);
    check("a/src/low.rs", "mod x;\nuse crate::high::y;\n", 1);
    check("a/src/limits.rs", "use crate::low::y;\n", 1);
    check("a/src/other/x.rs", "", 1);
    check("b/src/low/x.rs", "use crate::high::y;\n", 0);
}
