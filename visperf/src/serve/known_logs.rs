//! Discovery of known logs: finds the logs of middleware on this host, at the paths that the filters name.
//!
//! Rule: only files that can be read now count; the tail watches their globs from then on.

use log_filters::registry::Registry;
use sensor::config::Tail;
use sensor::tail::probe;
use std::path::{Path, PathBuf};

/// Most directory entries that are examined for one glob.
const LOOKED_AT_MAX: usize = 10_000;

/// One tail for every glob of the filters that matches a readable file now.
pub(crate) fn find(registry: &Registry) -> Vec<Tail> {
    let mut tails = Vec::new();
    for filter in registry.iter() {
        for glob in filter.paths() {
            if matches(glob).iter().any(|path| probe::open(path, &[PathBuf::from("/")]).is_ok()) {
                let mut tail = Tail::new(glob.clone());
                tail.spec.filter = Some(filter.name().to_owned());
                tails.push(tail);
            }
        }
    }
    tails
}

/// Plain files that match a glob of an absolute path.
fn matches(glob: &str) -> Vec<PathBuf> {
    let Ok(compiled) = globset::GlobBuilder::new(glob).literal_separator(true).build() else {
        return Vec::new();
    };
    let matcher = compiled.compile_matcher();
    let parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty()).collect();
    let mut folders = vec![PathBuf::from("/")];
    let mut looked_at = 0;
    for (depth, part) in parts.iter().enumerate() {
        let last = depth + 1 == parts.len();
        let mut next = Vec::new();
        for folder in &folders {
            for path in step(folder, part, &mut looked_at) {
                if if last { path.is_file() && matcher.is_match(&path) } else { path.is_dir() } {
                    next.push(path);
                }
            }
        }
        folders = next;
    }
    folders
}

fn step(folder: &Path, part: &str, looked_at: &mut usize) -> Vec<PathBuf> {
    if !part.contains(['*', '?', '[', '{']) {
        return vec![folder.join(part)];
    }
    let Ok(glob) = globset::Glob::new(part) else { return Vec::new() };
    let matcher = glob.compile_matcher();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        *looked_at += 1;
        if *looked_at > LOOKED_AT_MAX {
            break;
        }
        if matcher.is_match(entry.file_name()) {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_find_plain_files_at_any_depth() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/one")).expect("made");
        std::fs::create_dir_all(root.join("a/two")).expect("made");
        for name in ["a/one/x.log", "a/two/x.log", "a/two/y.txt"] {
            std::fs::write(root.join(name), "").expect("written");
        }
        let shown = root.display();
        assert_eq!(
            matches(&format!("{shown}/a/*/*.log")),
            [root.join("a/one/x.log"), root.join("a/two/x.log")]
        );
        assert_eq!(matches(&format!("{shown}/a/one/x.log")), [root.join("a/one/x.log")]);
        assert!(matches(&format!("{shown}/a/one")).is_empty(), "a folder is no log");
        assert!(matches(&format!("{shown}/b/*")).is_empty());
    }
}
