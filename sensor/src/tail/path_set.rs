//! Globs, and the files that they match now.
//!
//! Rule: a wildcard matches within one part of a path; `**` alone matches folders at any depth. Links to
//! folders are not followed.
//! Not here: what a file is and whether it may be read ([`super::probe`]).

use super::{Error, FILES_MAX, Spec};
use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Greatest depth of `**`: logs are not stored deeper, and a loop of mounts ends.
const DEPTH_MAX: usize = 8;

/// Entries looked at in one scan: a glob over a huge tree must not stop the sensor.
const ENTRIES_MAX: usize = 65_536;

/// All globs, compiled.
#[derive(Debug)]
pub struct PathSet {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    base: PathBuf,
    parts: Vec<Part>,
    roots: Vec<PathBuf>,
}

#[derive(Debug)]
enum Part {
    Name(OsString),
    /// The end of a path without wildcards: a file, or a folder whose logs are followed once it exists.
    Whole(OsString),
    /// A wildcard, and whether it matches rotated copies.
    Glob(GlobMatcher, RotatedCopies),
    AnyDepth,
}

/// Whether a wildcard matches rotated copies, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RotatedCopies {
    Matched,
    LeftOut,
}

/// Result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Paths and the index of their spec; a path matched by several belongs to the first.
    pub files: Vec<(PathBuf, usize)>,
    /// Folders in which a change may matter.
    pub directories: BTreeSet<PathBuf>,
    /// Whether a limit cut the scan short.
    pub is_cut: bool,
}

impl PathSet {
    /// Compile the globs; relative ones start at the current directory.
    ///
    /// # Errors
    /// If a glob cannot be read.
    pub fn new(specs: &[Spec]) -> Result<PathSet, Error> {
        Ok(PathSet { patterns: specs.iter().map(Pattern::new).collect::<Result<_, _>>()? })
    }

    /// Roots below which the files of a spec must be.
    #[must_use]
    pub fn roots(&self, spec: usize) -> &[PathBuf] {
        &self.patterns[spec].roots
    }

    /// The spec a path belongs to, if any.
    #[must_use]
    pub fn spec_of(&self, path: &Path) -> Option<usize> {
        self.patterns.iter().position(|pattern| pattern.matches(path))
    }

    /// Whether a change at a path may concern a log: the path is one, or its name starts with that of one.
    #[must_use]
    pub fn concerns(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(path) || pattern.may_be_sibling(path))
    }

    /// The files there are now. A path without wildcards is always one of them, unless it is a folder: then
    /// its logs are.
    #[must_use]
    pub fn scan(&self) -> Scan {
        let (mut scan, mut seen, mut budget) = (Scan::default(), BTreeSet::new(), ENTRIES_MAX);
        for (spec, pattern) in self.patterns.iter().enumerate() {
            let mut found = Vec::new();
            let mut walk =
                Walk { budget: &mut budget, directories: &mut scan.directories, found: &mut found };
            walk.part(&pattern.base, &pattern.parts, 0);
            found.sort();
            for path in found {
                if scan.files.len() == FILES_MAX {
                    scan.is_cut = true;
                } else if seen.insert(path.clone()) {
                    scan.files.push((path, spec));
                }
            }
        }
        scan.is_cut |= budget == 0;
        scan
    }
}

impl Pattern {
    fn new(spec: &Spec) -> Result<Pattern, Error> {
        let error = |why: String| Error::Glob { glob: spec.glob.clone(), why };
        let path = std::path::absolute(&spec.glob).map_err(|why| error(why.to_string()))?;
        let (mut base, mut parts) = (PathBuf::new(), Vec::new());
        for component in path.components() {
            let Component::Normal(name) = component else {
                base.push(component);
                continue;
            };
            let part = Part::new(name).map_err(|why| error(why.to_string()))?;
            match part {
                Part::Name(name) if parts.is_empty() => base.push(name),
                part @ (Part::Name(_) | Part::Whole(_) | Part::Glob(..) | Part::AnyDepth) => parts.push(part),
            }
        }
        if parts.is_empty() {
            let Some(name) = base.file_name().map(OsStr::to_owned) else {
                return Err(error("expected a path to a file".into()));
            };
            base.pop();
            parts.push(Part::Whole(name));
        }
        let roots = if spec.roots.is_empty() { vec![base.clone()] } else { spec.roots.clone() };
        Ok(Pattern { base, parts, roots })
    }

    fn matches(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.base) else { return false };
        let names: Vec<_> = inside.iter().collect();
        matches(&self.parts, &names)
    }

    /// Whether a path may be a rotated file of this pattern. A wildcard is taken to match anything.
    fn may_be_sibling(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else { return false };
        match self.parts.last() {
            Some(Part::Name(own)) => name.as_encoded_bytes().starts_with(own.as_encoded_bytes()),
            Some(Part::Whole(own)) => {
                name.as_encoded_bytes().starts_with(own.as_encoded_bytes())
                    || path.starts_with(self.base.join(own))
            }
            Some(Part::Glob(..) | Part::AnyDepth) => path.starts_with(&self.base),
            None => false,
        }
    }
}

fn matches(parts: &[Part], names: &[&OsStr]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((Part::AnyDepth, parts)), _) => {
            (0..=names.len().min(DEPTH_MAX)).any(|depth| matches(parts, &names[depth..]))
        }
        (Some((Part::Whole(own), _)), Some((name, [inside]))) => {
            own == name && !is_rotated(&inside.to_string_lossy())
        }
        (Some((part, parts)), Some((name, names))) => part.takes(name) && matches(parts, names),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

impl Part {
    fn new(name: &OsStr) -> Result<Part, globset::Error> {
        let Some(text) = name.to_str().filter(|text| text.contains(['*', '?', '[', '{'])) else {
            return Ok(Part::Name(name.to_owned()));
        };
        if text == "**" {
            return Ok(Part::AnyDepth);
        }
        // `folder/*` and `slurmctld*` select logs; `slurmctld.log.*` and `*.1` select rotated copies.
        let stem = text.strip_suffix('*');
        let open = stem.is_some_and(|stem| !stem.ends_with(['.', '-']));
        let rotated = if open { RotatedCopies::LeftOut } else { RotatedCopies::Matched };
        let glob = GlobBuilder::new(text).literal_separator(true).build()?;
        Ok(Part::Glob(glob.compile_matcher(), rotated))
    }

    fn takes(&self, name: &OsStr) -> bool {
        match self {
            Part::Name(own) | Part::Whole(own) => own == name,
            Part::Glob(glob, rotated) => {
                glob.is_match(name)
                    && (*rotated == RotatedCopies::Matched || !is_rotated(&name.to_string_lossy()))
            }
            Part::AnyDepth => false,
        }
    }
}

/// Whether a name is that of a rotated or compressed copy: the log itself is followed through its rotation,
/// so its copies, followed as logs of their own, would give every event twice.
fn is_rotated(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let compressed = [".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z"].iter().any(|end| name.ends_with(end));
    let numbered = name.rsplit_once('.').is_some_and(|(_, end)| end.len() <= 2 && digits(end));
    let dated = name.rsplit_once('-').is_some_and(|(_, end)| end.len() == 8 && digits(end));
    compressed || numbered || dated || [".old", ".bak", "~"].iter().any(|end| name.ends_with(end))
}

struct Walk<'a> {
    budget: &'a mut usize,
    directories: &'a mut BTreeSet<PathBuf>,
    found: &'a mut Vec<PathBuf>,
}

impl Walk<'_> {
    fn part(&mut self, directory: &Path, parts: &[Part], depth: usize) {
        let Some((part, after)) = parts.split_first() else { return };
        self.directories.insert(directory.to_owned());
        match part {
            Part::Name(name) => {
                let path = directory.join(name);
                if after.is_empty() {
                    self.found.push(path);
                } else if path.is_dir() {
                    self.part(&path, after, depth);
                }
            }
            Part::Whole(name) => {
                let path = directory.join(name);
                if path.is_dir() {
                    self.logs_of(&path);
                } else {
                    self.found.push(path);
                }
            }
            Part::Glob(..) => {
                for (name, is_directory) in self.entries(directory) {
                    let path = directory.join(&name);
                    match (part.takes(&name), after.is_empty()) {
                        (true, true) if !is_directory => self.found.push(path),
                        (true, false) if is_directory => self.part(&path, after, depth),
                        _ => {}
                    }
                }
            }
            Part::AnyDepth => {
                self.part(directory, after, depth);
                if depth < DEPTH_MAX {
                    for (name, is_directory) in self.entries(directory) {
                        if is_directory {
                            self.part(&directory.join(name), parts, depth + 1);
                        }
                    }
                }
            }
        }
    }

    /// The files in a folder, without rotated copies, as the glob `folder/*` matches them.
    fn logs_of(&mut self, folder: &Path) {
        self.directories.insert(folder.to_owned());
        for (name, is_directory) in self.entries(folder) {
            if !is_directory && !is_rotated(&name.to_string_lossy()) {
                self.found.push(folder.join(name));
            }
        }
    }

    /// Names in a folder, and whether each is a folder itself. A folder that cannot be read has none.
    fn entries(&mut self, directory: &Path) -> Vec<(OsString, bool)> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut names = Vec::new();
        for entry in entries.flatten() {
            if *self.budget == 0 {
                break;
            }
            *self.budget -= 1;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            names.push((entry.file_name(), is_directory));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_means_its_logs_and_not_their_rotated_copies() {
        for (name, rotated) in [
            ("jobcomp.log", false),
            ("jobcomp.log.1", true),
            ("jobcomp.log.2.gz", true),
            ("slurmctld.log-20261120", true),
            ("SchedLog.old", true),
            ("accounting.20261120", false),
            ("20261120", false),
            ("mrossi.1.log", false),
            ("StarterLog.slot1_1", false),
        ] {
            assert_eq!(is_rotated(name), rotated, "{name}");
        }
        let takes = |glob: &str, name: &str| Part::new(OsStr::new(glob)).expect(glob).takes(OsStr::new(name));
        assert!(takes("*", "a.log") && !takes("*", "a.log.1") && !takes("a*", "a.log.1"));
        assert!(takes("a.log.*", "a.log.1") && takes("*.1", "a.log.1"), "asked for");
    }

    fn check(globs: &[&str], files: &[&str], expected: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let spec = |glob: &&str| Spec::new(directory.path().join(glob).to_str().unwrap());
        let set = PathSet::new(&globs.iter().map(spec).collect::<Vec<_>>()).unwrap();
        let scan = set.scan();
        let found: Vec<_> =
            scan.files.iter().map(|(path, _)| path.strip_prefix(directory.path()).unwrap()).collect();
        assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>());
        for (path, spec) in &scan.files {
            assert_eq!(set.spec_of(path), Some(*spec), "{path:?}");
        }
    }

    #[test]
    fn a_path_without_wildcards_is_a_file_or_the_logs_of_a_folder() {
        check(
            &["a.log", "logs"],
            &["logs/b.log", "logs/b.log.1", "logs/deep/c.log"],
            &["a.log", "logs/b.log"],
        );
        check(&["logs/*"], &["logs/b.log", "logs/b.log.1"], &["logs/b.log"]);
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("later");
        let set = PathSet::new(&[Spec::new(folder.to_str().unwrap())]).unwrap();
        assert_eq!(set.scan().files, [(folder.clone(), 0)], "it is awaited");
        std::fs::create_dir(&folder).unwrap();
        let scan = set.scan();
        assert_eq!(scan.files, [], "it is no log itself");
        assert!(scan.directories.contains(&folder), "what comes in it is noticed");
        let log = folder.join("b.log");
        std::fs::write(&log, "x").unwrap();
        assert_eq!(set.scan().files, [(log.clone(), 0)]);
        assert!(set.concerns(&log) && set.concerns(&folder.join("b.log.1")) && set.spec_of(&log) == Some(0));
        assert_eq!(set.spec_of(&folder.join("b.log.1")), None, "a rotated copy");
    }

    #[test]
    fn globs_match_within_one_part() {
        let files = ["a/x.log", "a/b/y.log", "z.log", "a/x.txt"];
        check(&["*.log"], &files, &["z.log"]);
        check(&["*/*.log"], &files, &["a/x.log"]);
        check(&["**/*.log"], &files, &["a/b/y.log", "a/x.log", "z.log"]);
        check(&["a/x.*", "a/*.log"], &files, &["a/x.log", "a/x.txt"]);
    }

    #[test]
    fn a_plain_path_is_there_even_before_the_file() {
        check(&["none/file"], &[], &["none/file"]);
    }

    #[test]
    fn a_bad_glob_is_refused_by_name() {
        let refused = PathSet::new(&[Spec::new("/x/[a")]).unwrap_err().to_string();
        assert!(refused.contains("/x/[a"), "{refused}");
    }
}
