//! Architecture rules, enforced: which crate may depend on which, how long a file is, what its head comment
//! must have, which modules may import one another.
//!
//! Rule: every rule is a function from texts to problems, so that each is also tested on a text that violates
//! it; the test over the source tree first asserts that it found the tree.
//! Not here: what the compiler and clippy enforce (`Cargo.toml`, `clippy.toml`).

mod code;
mod cycles;
mod dependencies;
mod links;
mod manifests;
mod purity;
mod rooms;
mod sources;
mod words;

use std::path::{Path, PathBuf};
use system_tests::program;

/// A text file of the source tree, by its path from the root.
#[derive(Clone, Debug)]
struct Text {
    path: String,
    text: String,
}

impl Text {
    fn new(path: &str, text: impl Into<String>) -> Text {
        Text { path: path.to_owned(), text: text.into() }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Every text file whose name has this ending, except build outputs.
fn texts(ending: &str) -> Vec<Text> {
    let root = program::workspace();
    let mut found = Vec::new();
    collect(root, root, ending, &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(root: &Path, folder: &Path, ending: &str, found: &mut Vec<Text>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy();
        let built = ["target", "node_modules", ".git", "artifacts", "corpus"].contains(&&*name);
        if path.is_dir() && !path.is_symlink() && !built {
            collect(root, &path, ending, found);
        } else if path.is_file() && name.ends_with(ending) {
            let inside = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            found.push(Text { path: inside, text: std::fs::read_to_string(&path).unwrap() });
        }
    }
}

#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
