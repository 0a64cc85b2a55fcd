//! A log under a name that tells nothing gets the filter that its usual name would give it.
//!
//! Over every log of the collection, so that no filter takes another product's log by its first lines.

mod collection;

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
