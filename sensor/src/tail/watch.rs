//! Wake-up of the tail's thread: by changes of files that the kernel reports, by requests, or by time.
//!
//! Where the kernel reports no changes (watches exhausted, network file systems) the files are polled
//! instead, and the health of the sensor says so.
//! Not here: what a change means ([`super::ingest`]).

use super::path_set::PathSet;
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use wire::report::Mark;

/// Changed paths collected between two turns; with more of them everything is looked at.
const PATHS_MAX: usize = 1024;

/// Pause between two turns: the first change of a burst is looked at at once, and the others together.
const COALESCE: Duration = Duration::from_millis(5);

/// Why the tail wakes up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Look at everything.
    pub all: bool,
    /// Paths that changed.
    pub paths: BTreeSet<PathBuf>,
    /// Read to the end, and end the thread.
    pub stop: bool,
    /// The receiver has everything before this mark.
    pub acknowledged: Option<Mark>,
    /// A reader waits for events to be durable.
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

/// Wakes the tail's thread, from any thread.
#[derive(Debug, Default)]
pub struct Wakeup {
    wake: Mutex<Wake>,
    woken: Condvar,
}

impl Wakeup {
    /// Wake the tail; `add` adds the reason.
    pub fn notify(&self, add: impl FnOnce(&mut Wake)) {
        let mut wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut wake);
        if wake.paths.len() > PATHS_MAX {
            wake.paths.clear();
            wake.all = true;
        }
        self.woken.notify_one();
    }

    /// Wait until the tail is woken, at most so long. It pauses first, so that a burst makes few turns,
    /// unless `at_most` is zero or it is stopped.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> Wake {
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = at_most.min(COALESCE);
        let paused = self.woken.wait_timeout_while(wake, pause, |wake| !wake.stop);
        let (wake, _) = paused.unwrap_or_else(PoisonError::into_inner);
        let waited = self.woken.wait_timeout_while(wake, at_most - pause, |wake| wake.is_empty());
        let (mut wake, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *wake)
    }
}

/// Watches folders and wakes the tail for changes of files that matter.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    events: Arc<Events>,
    watched: BTreeMap<PathBuf, Watched>,
    trouble: Option<String>,
}

/// How changes in a folder are noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Watched {
    ByKernel,
    /// Polled: it is on a network file system of this kind.
    Network(&'static str),
    /// Polled: the kernel refused to watch it, and is asked again.
    Refused(String),
}

impl Watched {
    /// Why the folder is polled, if it is.
    fn polled_because(&self) -> Option<String> {
        match self {
            Watched::ByKernel => None,
            Watched::Network(kind) => Some(format!("it is on {kind}")),
            Watched::Refused(why) => Some(why.clone()),
        }
    }
}

impl Watch {
    /// Wake the tail for changes of files that `paths` names, or of their rotated siblings.
    #[must_use]
    pub fn new(wakeup: Arc<Wakeup>, paths: PathSet) -> Watch {
        let (watched, trouble) = (BTreeMap::new(), None);
        Watch { watcher: None, events: Arc::new(Events { wakeup, paths }), watched, trouble }
    }

    /// Make the watcher; the kernel may have refused one before.
    fn make_watcher(&mut self) {
        let events = Arc::clone(&self.events);
        match notify::recommended_watcher(move |event| events.handle(event)) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => {
                self.trouble = Some(format!(
                    "the kernel does not report changes of files ({error}); they are looked for instead"
                ));
            }
        }
    }

    /// Watch these folders and no others. A folder that does not exist is tried again each time. Returns
    /// whether a watch is new: earlier changes in that folder were not reported.
    #[must_use]
    pub fn set(&mut self, directories: &BTreeSet<PathBuf>) -> bool {
        if self.watcher.is_none() {
            self.make_watcher();
        }
        let Some(watcher) = &mut self.watcher else { return false };
        let mut is_new = false;
        self.watched.retain(|directory, watched| {
            let keep = directories.contains(directory) && directory.is_dir();
            if !keep && *watched == Watched::ByKernel {
                // The folder may be gone already, and its watch with it.
                let _gone = watcher.unwatch(directory);
            }
            keep
        });
        for directory in directories {
            if self.watched.contains_key(directory) || !directory.is_dir() {
                continue;
            }
            let watched = match network(directory) {
                Some(kind) => Watched::Network(kind),
                None => match watcher.watch(directory, RecursiveMode::NonRecursive) {
                    Ok(()) => Watched::ByKernel,
                    Err(error) => Watched::Refused(error.to_string()),
                },
            };
            is_new |= watched == Watched::ByKernel;
            self.watched.insert(directory.clone(), watched);
        }
        self.trouble = self.watched.iter().find_map(|(directory, watched)| {
            let (directory, why) = (directory.display(), watched.polled_because()?);
            Some(format!(
                "the kernel does not report changes in {directory} ({why}); they are looked for instead"
            ))
        });
        // Watches may become available again: those folders are tried again with the next call.
        self.watched.retain(|_, watched| !matches!(watched, Watched::Refused(_)));
        is_new
    }

    /// What is wrong with watching, if anything.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// Handler of the kernel's events: wakes the tail for those that concern a log.
struct Events {
    wakeup: Arc<Wakeup>,
    paths: PathSet,
}

impl Events {
    fn handle(&self, event: notify::Result<notify::Event>) {
        match event {
            Ok(event) if !event.need_rescan() => self.pass_on(event),
            Ok(_) | Err(_) => self.wakeup.notify(|wake| wake.all = true),
        }
    }

    /// Wake the tail if the event concerns a log; an access changes none.
    fn pass_on(&self, event: notify::Event) {
        if !matters(event.kind) {
            return;
        }
        let concerned: Vec<_> = event.paths.into_iter().filter(|path| self.paths.concerns(path)).collect();
        if !concerned.is_empty() {
            self.wakeup.notify(|wake| wake.paths.extend(concerned));
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
        let wakeup = Wakeup::default();
        wakeup.notify(|wake| wake.stop = true);
        assert!(wakeup.wait(Duration::from_secs(3600)).stop);
        assert!(wakeup.wait(Duration::ZERO).is_empty(), "it is taken once");
    }

    #[test]
    fn too_many_paths_become_a_look_at_everything() {
        let wakeup = Wakeup::default();
        wakeup.notify(|wake| wake.paths.extend((0..=PATHS_MAX).map(|n| PathBuf::from(n.to_string()))));
        let wake = wakeup.wait(Duration::ZERO);
        assert!(wake.all && wake.paths.is_empty());
    }

    #[test]
    fn a_change_wakes_for_logs_and_for_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("a.log");
        let wakeup = Arc::new(Wakeup::default());
        let paths = PathSet::new(&[Spec::new(log.to_str().unwrap())]).unwrap();
        let mut watch = Watch::new(wakeup.clone(), paths);
        assert!(watch.set(&BTreeSet::from([directory.path().to_owned()])));
        assert_eq!(watch.trouble(), None);
        std::fs::write(directory.path().join("other"), "x").unwrap();
        std::fs::write(&log, "x\n").unwrap();
        assert_eq!(wakeup.wait(Duration::from_secs(30)).paths, BTreeSet::from([log]));
    }
}
