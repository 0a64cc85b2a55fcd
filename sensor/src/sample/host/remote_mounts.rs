//! Queries of remote file systems, which may never answer: a hung file server must not delay the other
//! metrics.
//!
//! Shell. Each query runs on its own thread, for which the sweep never waits: it collects the finished
//! answers and reports a mount as failing when its answer is overdue. A thread inside a hung mount cannot be
//! ended; it is left behind when [`RemoteMounts`] is dropped. There are at most [`ASKED_AT_ONCE_MAX`] of
//! them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two queries of a mount: each query is a request to a file server that serves many hosts.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// Timeout after which a mount is reported as failing (as in node_exporter).
pub const DEADLINE: Duration = Duration::from_secs(5);

/// Limit on concurrent queries: with so many mounts hung, the others are reported as failing too.
pub const ASKED_AT_ONCE_MAX: usize = 8;

/// Stack size of a query thread: enough for one system call.
const STACK_LEN_BYTES: usize = 128 << 10;

/// Result of `statvfs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Total size, in bytes.
    pub size: u64,
    /// Free bytes.
    pub free: u64,
    /// Bytes available to ordinary users.
    pub available: u64,
    /// Limit on files (inodes).
    pub files: u64,
    /// Free files (inodes).
    pub files_free: u64,
    /// Whether it is mounted read-only.
    pub read_only: bool,
}

/// The query function: `statvfs` outside tests.
pub type Statvfs = Arc<dyn Fn(&Path) -> io::Result<Figures> + Send + Sync>;

/// The state of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It answered a query started at most [`INTERVAL`] and [`DEADLINE`] ago.
    Known(Figures),
    /// It refused, or its answer is overdue by [`DEADLINE`].
    Failing,
    /// No answer yet, and none is overdue.
    Pending,
}

/// The mounts and their pending queries.
pub struct RemoteMounts {
    ask: Statvfs,
    mounts: BTreeMap<PathBuf, MountState>,
}

#[derive(Debug, Default)]
struct MountState {
    /// Time of the first request or, after an answer, start time of the query that was answered last.
    since: Duration,
    answer: Option<Option<Figures>>,
    asked: Option<JoinHandle<io::Result<Figures>>>,
    /// Start time of the current query, or of the last one.
    asked_at: Duration,
    wanted: bool,
}

impl RemoteMounts {
    /// Creates it without mounts.
    #[must_use]
    pub fn new(ask: Statvfs) -> RemoteMounts {
        RemoteMounts { ask, mounts: BTreeMap::new() }
    }

    /// Returns the state of the mount at `path` at `now`; starts another query if one is due. Never waits.
    pub fn reply(&mut self, path: &Path, now: Duration) -> Reply {
        if !self.mounts.contains_key(path) {
            self.mounts.insert(path.to_owned(), MountState { since: now, ..MountState::default() });
        }
        let under_way = self.mounts.values().filter(|mount| mount.asked.is_some()).count();
        let mount = self.mounts.get_mut(path).expect("put in above");
        mount.wanted = true;
        mount.take_answer();
        let due = mount.answer.is_none() || now.saturating_sub(mount.asked_at) >= INTERVAL;
        if mount.asked.is_none() && due && under_way < ASKED_AT_ONCE_MAX {
            mount.begin(path, &self.ask, now);
        }
        mount.reply(now)
    }

    /// Forgets the mounts that were not requested since the last call. A hung mount is remembered until it
    /// answers, so that it has never two queries at a time.
    pub fn forget_others(&mut self) {
        self.mounts.retain(|_, mount| {
            mount.take_answer();
            std::mem::take(&mut mount.wanted) || mount.asked.is_some()
        });
    }
}

impl MountState {
    fn begin(&mut self, path: &Path, ask: &Statvfs, now: Duration) {
        let (ask, path) = (Arc::clone(ask), path.to_owned());
        let thread = std::thread::Builder::new().name("statvfs".to_owned()).stack_size(STACK_LEN_BYTES);
        self.asked_at = now;
        match thread.spawn(move || ask(&path)) {
            Ok(asked) => self.asked = Some(asked),
            // No thread is available: the mount is reported as failing until the next query.
            Err(_) => self.answer = Some(None),
        }
    }

    fn take_answer(&mut self) {
        if let Some(asked) = self.asked.take_if(|asked| asked.is_finished()) {
            self.answer = Some(asked.join().ok().and_then(Result::ok));
            self.since = self.asked_at;
        }
    }

    fn reply(&self, now: Duration) -> Reply {
        let late = self.asked.is_some() && now.saturating_sub(self.asked_at) > DEADLINE;
        let stale = now.saturating_sub(self.since) > INTERVAL + DEADLINE;
        match self.answer {
            _ if late || stale => Reply::Failing,
            Some(Some(figures)) => Reply::Known(figures),
            Some(None) => Reply::Failing,
            None => Reply::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::sync::{Condvar, Mutex};

    const FIGURES: Figures =
        Figures { size: 10, free: 5, available: 4, files: 3, files_free: 2, read_only: false };

    /// A file server: mounts whose name contains "hung" answer only after `let_go`.
    #[derive(Default)]
    struct Server {
        free: Mutex<bool>,
        changed: Condvar,
    }

    impl Server {
        fn ask(self: &Arc<Server>, began: SyncSender<PathBuf>) -> Statvfs {
            let server = Arc::clone(self);
            Arc::new(move |path| {
                began.send(path.to_owned()).expect("the test listens");
                if path.to_string_lossy().contains("hung") {
                    let free = server.free.lock().unwrap();
                    drop(server.changed.wait_while(free, |free| !*free).unwrap());
                }
                match path.to_string_lossy().contains("bad") {
                    true => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
                    false => Ok(FIGURES),
                }
            })
        }

        fn let_go(&self) {
            *self.free.lock().unwrap() = true;
            self.changed.notify_all();
        }
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn set_up() -> (Arc<Server>, Receiver<PathBuf>, RemoteMounts) {
        let server = Arc::new(Server::default());
        let (began, asked) = sync_channel(100);
        let mounts = RemoteMounts::new(server.ask(began));
        (server, asked, mounts)
    }

    /// Repeats the request until the answer has come; `now` does not change meanwhile.
    fn settled(mounts: &mut RemoteMounts, path: &str, now: Duration) -> Reply {
        // At least a minute, as the query thread may have to wait for a CPU.
        for _ in 0..60_000 {
            let reply = mounts.reply(Path::new(path), now);
            let settled = mounts.mounts[Path::new(path)].asked.is_none();
            if settled {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{path} did not answer");
    }

    #[test]
    fn a_hung_mount_is_reported_and_holds_up_no_other() {
        let (server, _asked, mut mounts) = set_up();
        assert_eq!(mounts.reply(Path::new("/hung"), secs(0)), Reply::Pending);
        assert_eq!(settled(&mut mounts, "/good", secs(0)), Reply::Known(FIGURES));
        assert_eq!(mounts.reply(Path::new("/hung"), secs(5)), Reply::Pending);
        assert_eq!(mounts.reply(Path::new("/hung"), secs(6)), Reply::Failing);
        assert_eq!(settled(&mut mounts, "/good", secs(6)), Reply::Known(FIGURES));
        server.let_go();
        assert_eq!(settled(&mut mounts, "/hung", secs(7)), Reply::Known(FIGURES));
    }

    #[test]
    fn a_mount_is_asked_once_an_interval_and_never_twice_at_a_time() {
        let (server, asked, mut mounts) = set_up();
        mounts.reply(Path::new("/hung"), secs(0));
        let mut names = vec![asked.recv().expect("its thread has started")];
        for second in 0..25 {
            settled(&mut mounts, "/good", secs(second));
            mounts.reply(Path::new("/hung"), secs(second));
            mounts.forget_others();
        }
        mounts.forget_others();
        mounts.reply(Path::new("/hung"), secs(26));
        // The query function records each call before it answers, and every answer except the hung one has
        // come.
        names.extend(asked.try_iter());
        let count = |name: &str| names.iter().filter(|path| path.as_os_str() == name).count();
        assert_eq!((count("/good"), count("/hung")), (3, 1));
        server.let_go();
    }

    #[test]
    fn a_mount_that_refuses_is_failing() {
        let (_server, _asked, mut mounts) = set_up();
        assert_eq!(settled(&mut mounts, "/bad", secs(0)), Reply::Failing);
    }

    #[test]
    fn hung_threads_are_bounded() {
        let (server, asked, mut mounts) = set_up();
        for n in 0..ASKED_AT_ONCE_MAX {
            mounts.reply(Path::new(&format!("/hung{n}")), secs(0));
        }
        for _ in 0..ASKED_AT_ONCE_MAX {
            asked.recv().expect("asked");
        }
        assert_eq!(mounts.reply(Path::new("/good"), secs(0)), Reply::Pending);
        assert_eq!(mounts.reply(Path::new("/good"), secs(16)), Reply::Failing);
        assert!(asked.try_recv().is_err(), "no further thread was started");
        server.let_go();
    }
}
