//! Temporary folder of a demo: removed when the demo ends; the folder of a killed demo, by the next one.
//!
//! A demo that is killed cannot remove its folder. So each demo locks a file in its folder; the kernel
//! releases the lock however the process ends, and the next demo removes the folders whose lock is free.
//! Rule: only folders of this user with such a file are removed, and none whose owner is alive.

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tempfile::TempDir;

/// Prefix of the folders' names.
const PREFIX: &str = "visperf-demo-";
/// File that the owner locks.
const LOCK_FILE: &str = "owner";

pub(crate) struct DemoFolder {
    folder: TempDir,
    _lock: File,
}

impl DemoFolder {
    /// Create a folder in `parent`, and remove the folders that dead demos left there.
    pub(crate) fn new(parent: &Path) -> anyhow::Result<DemoFolder> {
        take_away_abandoned(parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .with_context(|| format!("cannot make a folder for the demo in {}", parent.display()))?;
        let path = folder.path().join(LOCK_FILE);
        let mut lock = File::create_new(&path).with_context(|| format!("cannot make {}", path.display()))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("cannot lock {}", path.display()))?;
        // A lock file without text is of a demo that is still starting; from now on other demos may test the
        // lock.
        writeln!(lock, "visperf up --demo, process {}", std::process::id())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(DemoFolder { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Remove the folders of dead demos; a failure is ignored, and the next demo tries again.
fn take_away_abandoned(parent: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == me);
        if ours && is_abandoned(&entry.path()) {
            let _stays = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK_FILE)) else { return false };
    let made = lock.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    made && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_demos_are_taken_away_and_those_of_the_living_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let made = |name: &str, lock: Option<&str>| {
            let folder = parent.path().join(name);
            std::fs::create_dir_all(folder.join("sensor")).unwrap();
            if let Some(text) = lock {
                std::fs::write(folder.join(LOCK_FILE), text).unwrap();
            }
            folder
        };
        let living = DemoFolder::new(parent.path()).unwrap();
        let dead = made("visperf-demo-dead", Some("visperf up --demo, process 1\n"));
        let beginning = made("visperf-demo-new", Some(""));
        let other = made("visperf-demo-other", None);
        let foreign = made("something", Some("x"));
        let second = DemoFolder::new(parent.path()).unwrap();
        let there = [&dead, &beginning, &other, &foreign].map(|folder| folder.exists());
        assert_eq!(there, [false, true, true, true]);
        assert!(living.path().exists() && second.path().exists());
        let path = second.path().to_owned();
        drop(second);
        assert!(!path.exists());
    }
}
