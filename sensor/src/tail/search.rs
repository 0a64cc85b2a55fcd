//! Search of a file among its siblings after it was renamed or copied, by identity and content, not by name.
//!
//! Only files of a rotation that happened entirely between two looks, which were never read, are found by
//! name.
//! Not here: the comparison of two files ([`super::follow`]).

use super::follow::{self, Candidate, Fingerprint, Recognition, RecognitionMeans, same_file};
use super::probe::{self, Stat};
use crate::journal::frame::{FileRecord, Identity};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Siblings looked at: a directory of logs holds fewer, a spool directory must not stop the sensor.
const SIBLINGS_MAX: usize = 4096;
/// Looks at a directory until two agree: a rotation renames one file after another, and a look in between can
/// miss one. In a directory that changes all the time the last look counts.
const LOOKS_MAX: usize = 8;

/// The plain files beside a path, with the path itself.
pub(super) struct Siblings {
    files: Vec<(PathBuf, Stat)>,
    /// Files in other followed folders.
    elsewhere: Vec<(PathBuf, Stat)>,
}

impl Siblings {
    /// Look at the directory of a path.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn of(path: &Path) -> io::Result<Siblings> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let mut files = list(directory)?;
        for _ in 1..LOOKS_MAX {
            let again = list(directory)?;
            let is_same = |(one, other): (&(PathBuf, Stat), &(PathBuf, Stat))| {
                one.0 == other.0 && same_file(&one.1.identity, &other.1.identity)
            };
            let agrees = files.len() == again.len() && files.iter().zip(&again).all(is_same);
            files = again;
            if agrees {
                break;
            }
        }
        Ok(Siblings { files, elsewhere: Vec::new() })
    }

    /// With the files at these paths, for [`Siblings::same`] alone: a file may have been moved to another
    /// followed folder, but a copy of it is not searched in all of them.
    pub(super) fn and(mut self, paths: &[PathBuf]) -> Siblings {
        let folder = self.files.first().and_then(|(path, _)| path.parent().map(Path::to_owned));
        let others = paths.iter().filter(|path| path.parent() != folder.as_deref());
        self.elsewhere = others.filter_map(|path| Some((path.clone(), probe::stat(path).ok()?))).collect();
        self
    }

    /// The sibling that is this very inode.
    pub(super) fn same(&self, identity: &Identity) -> Option<&Path> {
        self.files
            .iter()
            .chain(&self.elsewhere)
            .find(|(_, stat)| same_file(identity, &stat.identity))
            .map(|(path, _)| path.as_path())
    }

    /// A sibling that is another inode and holds everything that was read of a file, but for those `taken`.
    pub(super) fn copy(
        &self,
        path: &Path,
        known: &Fingerprint,
        taken: &[Identity],
        roots: &[PathBuf],
        means: RecognitionMeans,
    ) -> Option<(File, Stat)> {
        let free = |stat: &Stat| !taken.iter().any(|taken| same_file(taken, &stat.identity));
        for (sibling, _) in self.files.iter().filter(|(_, stat)| stat.size >= known.offset && free(stat)) {
            let Ok((file, stat)) = probe::open(sibling, roots) else { continue };
            let Ok(content_fits) = probe::content_fits(&file, known) else { continue };
            let is_named_so = rotated(path, sibling);
            let candidate = Candidate { identity: stat.identity, size: stat.size, content_fits, is_named_so };
            if follow::recognise(known, &candidate, means) == Recognition::Copy {
                tracing::debug!(path = %sibling.display(), "a copy holds what is left to read");
                return Some((file, stat));
            }
        }
        None
    }

    /// Rotated files younger than all that were read and older than `before`, the oldest first: they were
    /// written and rotated away between two looks.
    pub(super) fn between(
        &self,
        path: &Path,
        known: &FileRecord,
        before: Option<i128>,
    ) -> Vec<(PathBuf, Identity)> {
        let mut found: Vec<(i128, i128, &PathBuf, Identity)> = Vec::new();
        for (sibling, stat) in &self.files {
            let Some(born) = stat.identity.born else { continue };
            // An unpacked or restored file was last written before its birth.
            let is_live_log = stat.modified >= born;
            if known.is_news(&stat.identity)
                && before.is_none_or(|before| born <= before)
                && is_live_log
                && rotated(path, sibling)
            {
                found.push((born, stat.modified, sibling, stat.identity));
            }
        }
        found.sort();
        found.into_iter().map(|(_, _, path, identity)| (path.clone(), identity)).collect()
    }
}

/// The plain files of a directory, by name.
fn list(directory: &Path) -> io::Result<Vec<(PathBuf, Stat)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(SIBLINGS_MAX) {
        let path = entry?.path();
        if let Ok(stat) = probe::stat(&path)
            && stat.kind == FileType::RegularFile
        {
            files.push((path, stat));
        }
    }
    files.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(files)
}

/// Whether a name is that of a rotated log: the log's own, then `.`, `-` or `_`, then digits, dashes, dots,
/// underscores, colons and `T`.
fn rotated(path: &Path, sibling: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(OsStr::as_bytes).unwrap_or_default().to_vec();
    let (own, other) = (name(path), name(sibling));
    let Some([b'.' | b'-' | b'_', rest @ ..]) = other.strip_prefix(&own[..]) else { return false };
    rest.iter().any(u8::is_ascii_digit)
        && rest.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':' | b'_' | b'T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rotated_files() {
        let log = Path::new("/var/log/slurmctld.log");
        for good in ["slurmctld.log.1", "slurmctld.log-20261120", "slurmctld.log.2026-11-20T10:00"] {
            assert!(rotated(log, &Path::new("/var/log").join(good)), "{good}");
        }
        for bad in
            ["slurmctld.log", "slurmctld.log.1.gz", "slurmctld.log.old", "slurmctld.log.", "slurmd.log.1"]
        {
            assert!(!rotated(log, &Path::new("/var/log").join(bad)), "{bad}");
        }
    }
}
