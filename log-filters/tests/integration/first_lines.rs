//! Choice of the filter: a log with a meaningless name gets the filter of its usual name.
//!
//! Over every log of the collection, so that no filter takes another product's log by its first lines.

use crate::collection;

use log_filters::registry::{By, FIRST_LINES};
use std::fs;
use std::path::{Path, PathBuf};

fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("readable").path();
        let about = ["json", "jsonl", "md", "txt"].map(std::ffi::OsStr::new);
        if path.is_dir() {
            files.extend(logs(&path));
        } else if !path.extension().is_some_and(|extension| about.contains(&extension)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn the_first_lines_choose_as_the_name_does() {
    let registry = collection::registry();
    let logs = logs(&collection::folder());
    assert!(logs.len() >= 60, "only {} logs", logs.len());
    let mut problems = Vec::new();
    for path in logs {
        let bytes = fs::read(&path).expect("readable");
        let name = path.file_name().expect("a file").to_string_lossy();
        let [by_name, by_lines] =
            [&*name, "strange"].map(|name| registry.choose(name, &bytes).map(|one| one.name()));
        if by_name.is_none() || by_name != by_lines {
            problems.push(format!("{}: by name {by_name:?}, by its lines {by_lines:?}", path.display()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What decides, given the file's name and its start.
#[test]
fn a_name_does_not_make_a_log_of_something_else() {
    let registry = collection::registry();
    let read = |path: &str| fs::read(collection::folder().join(path)).expect("readable");
    let controller = read("slurm/22.05.8-alpha/slurmctld.log");
    let accounting = read("torque/2.4.16-delta/accounting.20261120");
    let labels = read("slurm/22.05.8-alpha/expected.jsonl");
    let noise: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let check = |name: &str, beginning: &[u8], expected: Option<(&str, By)>| {
        let found = registry.choice(name, beginning);
        let found = found.as_ref().map(|choice| (choice.filter.name(), choice.by));
        assert_eq!(found.ok(), expected, "{name}");
    };
    // New, empty, or started: the name decides.
    check("slurmctld.log", b"", Some(("slurmctld", By::Name)));
    check("slurmctld.log", b"[2026-11-2", Some(("slurmctld", By::Name)));
    check(
        "slurmctld.log",
        b"[2026-11-20T12:00:00.100] something new in this version\n",
        Some(("slurmctld", By::Name)),
    );
    check("slurmctld.log", &controller, Some(("slurmctld", By::Name)));
    // Labels quote lines of the log; such quotes in another form are not a log.
    check("expected.jsonl", &labels, None);
    check("slurmctld.log", &labels, None);
    check("slurmctld.log", &noise, None);
    check("accounting", &noise, None);
    check("slurmctld.log", b"<html>\n<body>\nnot found\n", None);
    // A misleading name.
    check("slurmctld.log", &accounting, Some(("torque-accounting", By::Lines)));
    check("accounting", &accounting, Some(("torque-accounting", By::NameAndLines)));
    check("strange", &controller, Some(("slurmctld", By::Lines)));
}

#[test]
fn the_lines_that_were_looked_at_are_reported() {
    let registry = collection::registry();
    let log = "[2026-11-20T12:00:00.100] sched: x\n".repeat(51);
    let choice = registry.choice("strange", log.as_bytes()).expect("all lines are known");
    assert_eq!((choice.filter.name(), choice.known, choice.lines), ("slurmctld", 51, 51));
    let choice = registry.choice("strange", log.repeat(3).as_bytes()).expect("all lines are known");
    assert_eq!((choice.known, choice.lines), (FIRST_LINES, FIRST_LINES));
    let refusal = registry.choice("slurmctld.log", b"<html>\n<body>\n").expect_err("no log");
    assert_eq!((refusal.refused[0].name(), refusal.refused.len(), refusal.lines), ("slurmctld", 1, 2));
}
