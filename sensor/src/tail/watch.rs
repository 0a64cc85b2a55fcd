//! Waiting for something to happen: changes told by the kernel, a request, or time.
//!
//! Where the kernel cannot tell (watches exhausted, network file systems) the files are looked at again
//! and again instead, and that is said.
//! Not here: what a change means ([`super::ingest`]).

use super::path_set::PathSet;
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wire::report::Mark;

/// Changed paths held between two turns; with more of them everything is looked at.
const PATHS_MAX: usize = 1024;

/// Rest so long between two turns: of a burst the first change is looked at once, and the others together.
const COALESCE: Duration = Duration::from_millis(5);

/// Why the tail goes to work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Look at everything.
    pub all: bool,
    /// These paths changed.
    pub paths: BTreeSet<PathBuf>,
    /// Finish.
    pub stop: bool,
    /// The receiver has everything before this sequence number.
    pub acknowledged: Option<Mark>,
    /// Somebody waits for events to be durable.
    pub awaited: bool,
}

impl Wake {
    /// Look at everything.
    #[must_use]
    pub fn all() -> Wake {
        Wake { all: true, ..Wake::default() }
    }

    fn is_empty(&self) -> bool {
        *self == Wake::default()
    }
}

/// What wakes the tail, from any thread.
#[derive(Debug, Default)]
pub struct Bell {
    wake: Mutex<Wake>,
    rung: Condvar,
}

impl Bell {
    /// Something happened: say what.
    pub fn ring(&self, say: impl FnOnce(&mut Wake)) {
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        say(&mut wake);
        if wake.paths.len() > PATHS_MAX {
            wake.paths.clear();
            wake.all = true;
        }
        self.rung.notify_one();
    }

    /// Wait for something to happen, at most so long; but rest first, so that a burst makes few turns. Who has
    /// nothing to wait for does not rest.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> Wake {
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = at_most.min(COALESCE);
        let rested = self.rung.wait_timeout_while(wake, rest, |wake| !wake.stop);
        let (wake, _) = rested.unwrap_or_else(PoisonError::into_inner);
        let waited = self.rung.wait_timeout_while(wake, at_most - rest, |wake| wake.is_empty());
        let (mut wake, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *wake)
    }
}

/// Watches folders and rings the bell for files that matter.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    hearing: Arc<Hearing>,
    watched: BTreeMap<PathBuf, Watched>,
    trouble: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Watched {
    ByKernel,
    ByLooking(String),
}

impl Watch {
    /// Ring `bell` for changes of files that `paths` names, or of their rotated siblings.
    #[must_use]
    pub fn new(bell: Arc<Bell>, paths: PathSet) -> Watch {
        let (watched, trouble) = (BTreeMap::new(), None);
        Watch { watcher: None, hearing: Arc::new(Hearing { bell, paths }), watched, trouble }
    }

    /// Make the watcher if there is none: the kernel may have had no more to give before.
    fn take_up(&mut self) {
        let hearing = Arc::clone(&self.hearing);
        match notify::recommended_watcher(move |event| hearing.hear(event)) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => {
                self.trouble = Some(format!(
                    "changes of files are not told by the kernel ({error}); they are looked for instead"
                ));
            }
        }
    }

    /// Watch these folders and no others. A folder that is not there is tried again each time. Returns
    /// whether a watch is new: what happened in that folder before it no one told.
    #[must_use]
    pub fn set(&mut self, directories: &BTreeSet<PathBuf>) -> bool {
        if self.watcher.is_none() {
            self.take_up();
        }
        let Some(watcher) = &mut self.watcher else { return false };
        let mut is_new = false;
        self.watched.retain(|directory, watched| {
            let keep = directories.contains(directory) && directory.is_dir();
            if !keep && *watched == Watched::ByKernel {
                // It may be gone already, and its watch with it.
                let _gone = watcher.unwatch(directory);
            }
            keep
        });
        for directory in directories {
            if self.watched.contains_key(directory) || !directory.is_dir() {
                continue;
            }
            let watched = match network(directory) {
                Some(kind) => Watched::ByLooking(format!("it is on {kind}")),
                None => match watcher.watch(directory, RecursiveMode::NonRecursive) {
                    Ok(()) => Watched::ByKernel,
                    Err(error) => Watched::ByLooking(error.to_string()),
                },
            };
            is_new |= watched == Watched::ByKernel;
            self.watched.insert(directory.clone(), watched);
        }
        // Exhausted watches may come back: those folders are tried again at the next call.
        self.trouble = self.watched.iter().find_map(|(directory, watched)| match watched {
            Watched::ByKernel => None,
            Watched::ByLooking(why) => {
                let directory = directory.display();
                Some(format!(
                    "changes in {directory} are not told by the kernel ({why}); they are looked for instead"
                ))
            }
        });
        let retry =
            |watched: &Watched| matches!(watched, Watched::ByLooking(why) if !why.starts_with("it is on "));
        self.watched.retain(|_, watched| !retry(watched));
        is_new
    }

    /// What is wrong with watching, if anything.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// Hears events and rings the bell for those that concern a log.
struct Hearing {
    bell: Arc<Bell>,
    paths: PathSet,
}

impl Hearing {
    fn hear(&self, event: notify::Result<notify::Event>) {
        match event {
            Ok(event) if !event.need_rescan() => self.pass_on(event),
            Ok(_) | Err(_) => self.bell.ring(|wake| wake.all = true),
        }
    }

    /// Reading and closing concern no one.
    fn pass_on(&self, event: notify::Event) {
        if !matters(event.kind) {
            return;
        }
        let concerned: Vec<_> = event.paths.into_iter().filter(|path| self.paths.concerns(path)).collect();
        if !concerned.is_empty() {
            self.bell.ring(|wake| wake.paths.extend(concerned));
        }
    }
}

fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(_) => false,
        EventKind::Modify(ModifyKind::Metadata(_))
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(
            ModifyKind::Any | ModifyKind::Data(_) | ModifyKind::Name(_) | ModifyKind::Other,
        )
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

/// The kind of a file system on which other machines change files without this kernel knowing.
fn network(directory: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(directory).ok()?.f_type;
    match u32::try_from(kind).unwrap_or_default() {
        0x6969 => Some("NFS"),
        0xFF53_4D42 | 0xFE53_4D42 | 0x517B => Some("SMB"),
        0x6573_5546 => Some("FUSE"),
        0x00C3_6400 => Some("Ceph"),
        0x0BD0_0BD0 => Some("Lustre"),
        0x4750_4653 => Some("GPFS"),
        0x5346_414F => Some("AFS"),
        0x0102_1997 => Some("9P"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::Spec;

    #[test]
    fn a_request_to_stop_is_not_lost_and_comes_at_once() {
        let bell = Bell::default();
        bell.ring(|wake| wake.stop = true);
        assert!(bell.wait(Duration::from_secs(3600)).stop);
        assert!(bell.wait(Duration::ZERO).is_empty(), "it is taken once");
    }

    #[test]
    fn too_many_paths_become_a_look_at_everything() {
        let bell = Bell::default();
        bell.ring(|wake| wake.paths.extend((0..=PATHS_MAX).map(|n| PathBuf::from(n.to_string()))));
        let wake = bell.wait(Duration::ZERO);
        assert!(wake.all && wake.paths.is_empty());
    }

    #[test]
    fn a_change_rings_for_logs_and_for_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("a.log");
        let bell = Arc::new(Bell::default());
        let paths = PathSet::new(&[Spec::new(log.to_str().unwrap())]).unwrap();
        let mut watch = Watch::new(bell.clone(), paths);
        assert!(watch.set(&BTreeSet::from([directory.path().to_owned()])));
        assert_eq!(watch.trouble(), None);
        std::fs::write(directory.path().join("other"), "x").unwrap();
        std::fs::write(&log, "x\n").unwrap();
        assert_eq!(bell.wait(Duration::from_secs(30)).paths, BTreeSet::from([log]));
    }
}
