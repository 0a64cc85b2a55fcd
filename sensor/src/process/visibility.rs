//! Visibility of processes: what a viewer may see is what `/proc` would show to that user, and no more,
//! whatever rights the sensor has.
//!
//! Rules: the I/O counters of a process are visible to its user alone (`/proc/PID/io`, ptrace(2) "Ptrace
//! access mode checking"); where `/proc` is mounted with `hidepid`, the processes of other users are absent
//! (proc(5)). The group exempted by the mount option `gid=` is not looked up: its members see only their own
//! processes. A process belongs to its real user; of a set-user-ID program, `/proc` shows less to the user
//! that started it.
//! Not here: who the viewer is (`rpc`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wire::process::{Life, Process};
use wire::query::Viewer;

use crate::sample::ticker::running;

/// How often the mount options are read.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Visibility for one viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visibility {
    viewer: Viewer,
    /// Whether the processes of other users are absent.
    is_hiding: bool,
}

impl Visibility {
    /// Everything: for the sensor itself.
    pub const ALL: Visibility = Visibility { viewer: Viewer::Trusted, is_hiding: false };

    /// Visibility for this viewer on this host, with the current mount options of `/proc`.
    #[must_use]
    pub fn of(viewer: Viewer) -> Visibility {
        Visibility { viewer, is_hiding: !viewer.is_trusted() && is_hiding_now() }
    }

    /// Visibility for this viewer; `is_hiding` says whether `/proc` is mounted with `hidepid`.
    #[must_use]
    pub const fn with(viewer: Viewer, is_hiding: bool) -> Visibility {
        Visibility { viewer, is_hiding }
    }

    /// Whether everything is visible.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.viewer.is_trusted()
    }

    #[must_use]
    pub fn is_hiding(self) -> bool {
        self.is_hiding
    }

    /// Whether a process of this user is visible at all.
    #[must_use]
    pub fn shows(self, uid: u32) -> bool {
        !self.is_hiding || self.viewer.may_inspect(uid)
    }

    /// Whether all of a process of this user is visible.
    #[must_use]
    pub fn inspects(self, uid: u32) -> bool {
        self.viewer.may_inspect(uid)
    }

    /// Copy of the process with only what is visible; `None` if the process is not visible.
    #[must_use]
    pub fn redact(self, process: &Process) -> Option<Process> {
        self.shows(process.uid).then(|| {
            let mut seen = process.clone();
            self.blank(&mut seen);
            seen
        })
    }

    /// Removes what is not visible from a process.
    pub fn blank(self, process: &mut Process) {
        if !self.inspects(process.uid) {
            process.usage.io = None;
        }
    }

    /// Removes what is not visible from an ended process.
    pub fn blank_life(self, life: &mut Life) {
        if let Some(usage) = life.usage.as_mut().filter(|_| !self.inspects(life.uid)) {
            usage.io = None;
        }
    }
}

/// Whether `/proc` hides the processes of other users. Read again now and then: an administrator may remount
/// it.
fn is_hiding_now() -> bool {
    static IS_HIDING: AtomicBool = AtomicBool::new(false);
    /// When to read next, in seconds on the monotonic clock.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = running().as_secs();
    let next = NEXT.load(Ordering::Acquire);
    if now >= next {
        // If it cannot be read, the last known state holds.
        if let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") {
            IS_HIDING.store(is_hiding(&mounts, Path::new("/proc")), Ordering::Release);
        }
        NEXT.store(now + LOOK_EVERY.as_secs(), Ordering::Release);
    }
    IS_HIDING.load(Ordering::Acquire)
}

/// Whether the last mount at `proc` in a `mountinfo` is a proc file system that hides the processes of other
/// users.
fn is_hiding(mountinfo: &str, proc: &Path) -> bool {
    let of_proc = |line: &&str| line.split(' ').nth(4).is_some_and(|point| Path::new(point) == proc);
    let Some(last) = mountinfo.lines().rfind(of_proc) else { return false };
    let Some((_, of_kind)) = last.split_once(" - ") else { return false };
    let mut words = of_kind.split(' ');
    let (kind, options) = (words.next(), words.nth(1).unwrap_or_default());
    let hides = |option: &str| option.strip_prefix("hidepid=").is_some_and(|how| how != "0" && how != "off");
    kind == Some("proc") && options.split(',').any(hides)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::process::Io;

    #[test]
    fn a_mount_hides_or_does_not() {
        let check = |options: &str, expected: bool| {
            let text = format!(
                "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:20 / /proc rw,nosuid - proc proc rw{options}\n"
            );
            assert_eq!(is_hiding(&text, Path::new("/proc")), expected, "{options}");
        };
        check("", false);
        check(",hidepid=0", false);
        check(",hidepid=off", false);
        for how in ["1", "2", "4", "noaccess", "invisible", "ptraceable"] {
            check(&format!(",gid=5,hidepid={how}"), true);
        }
        assert!(!is_hiding("", Path::new("/proc")));
        assert!(
            !is_hiding("1 1 0:1 / /proc rw - tmpfs t rw,hidepid=2", Path::new("/proc")),
            "no file system of processes"
        );
    }

    #[test]
    fn what_is_not_the_viewers_is_absent() {
        let mut process = Process { uid: 1000, ..Process::default() };
        process.usage.io = Some(Io::default());
        let check = |viewer: Viewer, is_hiding: bool, expected: Option<bool>| {
            let seen = Visibility::with(viewer, is_hiding).redact(&process);
            assert_eq!(seen.map(|seen| seen.usage.io.is_some()), expected, "{viewer:?} {is_hiding}");
        };
        for is_hiding in [false, true] {
            check(Viewer::Trusted, is_hiding, Some(true));
            check(Viewer::User(1000), is_hiding, Some(true));
        }
        for viewer in [Viewer::User(1001), Viewer::Anonymous] {
            check(viewer, false, Some(false));
            check(viewer, true, None);
        }
    }
}
