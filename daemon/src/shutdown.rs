//! How a daemon ends: a token that says so, and the wait for its tasks.
//!
//! Rule: the first SIGINT or SIGTERM fires the token and every task finishes what it holds; the second
//! one exits at once, from the signal's handler, and [`END_AFTER`] the first the process exits in any case: neither depends on
//! a thread that may be held up. A task that ends by itself, fails or panics ends the daemon too: none is optional.
//! Not here: what a task has to save before it ends (each task knows).

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Handle;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long tasks may take to finish after the token fired: long enough to write a checkpoint to a slow
/// disk. What is not written then is read again at the next start.
pub const GRACE: Duration = Duration::from_secs(4);

/// How long after the first signal the process exits, whatever its threads do.
pub const END_AFTER: Duration = Duration::from_millis(4_700);

/// Exit status after the second signal: that of a program ended by SIGINT.
pub const EXIT_CODE_FORCED: i32 = 130;

/// Exit status of a process whose threads were still at work [`END_AFTER`] the first signal.
pub const EXIT_CODE_STUCK: i32 = 1;

/// What a task fails with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a daemon ended other than as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A task failed.
    #[error("task {task} failed: {failure}")]
    Failed {
        /// Its name.
        task: &'static str,
        /// With what.
        failure: Failure,
    },
    /// A task panicked.
    #[error("task {task} panicked: {message}")]
    Panicked {
        /// Its name.
        task: &'static str,
        /// What it said.
        message: String,
    },
    /// A task ended unasked.
    #[error("task {task} ended by itself; it should run until shutdown")]
    Left {
        /// Its name.
        task: &'static str,
    },
    /// Tasks were still at work when the grace period was over; they were aborted.
    #[error("still at work {} s after shutdown, aborted: {}", grace.as_secs_f32(), tasks.join(", "))]
    Stuck {
        /// Their names.
        tasks: Vec<&'static str>,
        /// How long they were given.
        grace: Duration,
    },
}

/// The two signals that end a daemon, caught from the moment this exists.
pub struct Signals(signal_hook::iterator::Signals);

/// That the signals are obeyed. Dropped, the first one has no effect any more.
pub struct Obeying(Handle);

impl Signals {
    /// Catch SIGINT and SIGTERM from now on.
    ///
    /// # Errors
    /// If the system refuses the handlers.
    pub fn catch() -> io::Result<Signals> {
        let has_come = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it.
            flag::register_conditional_shutdown(number, EXIT_CODE_FORCED, Arc::clone(&has_come))?;
            flag::register(number, Arc::clone(&has_come))?;
        }
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map(Signals)
    }

    /// Fire `shutdown` at the first signal, on a thread of its own: those of the daemon may be held up.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn obey(mut self, shutdown: CancellationToken) -> io::Result<Obeying> {
        let handle = self.0.handle();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let Some(number) = self.0.forever().next() else { return };
            let name = if number == SIGINT { "SIGINT" } else { "SIGTERM" };
            tracing::info!(signal = name, "shutting down; the same again ends the program at once");
            shutdown.cancel();
            std::thread::sleep(END_AFTER);
            // Nothing can be done about a standard error that is gone.
            let secs = END_AFTER.as_secs_f32();
            let _ = writeln!(io::stderr(), "visperf: still at work {secs} s after {name}, exiting");
            std::process::exit(EXIT_CODE_STUCK);
        })?;
        Ok(Obeying(handle))
    }
}

impl Drop for Obeying {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The named tasks of a daemon. Dropping it aborts them all.
#[derive(Debug)]
pub struct Tasks {
    shutdown: CancellationToken,
    set: JoinSet<Result<(), Failure>>,
    names: BTreeMap<Id, &'static str>,
}

impl Tasks {
    /// No tasks yet; they are to end when `shutdown` fires.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Tasks {
        Tasks { shutdown, set: JoinSet::new(), names: BTreeMap::new() }
    }

    /// Run a task that ends when the token fires.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn<E: Into<Failure>>(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let id = self.set.spawn(async move { task.await.map_err(Into::into) }).id();
        self.names.insert(id, name);
    }

    /// As [`Tasks::spawn`], of a task in which nothing can go wrong but its own defects.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn_sure(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, async move {
            task.await;
            Ok::<(), Failure>(())
        });
    }

    /// Wait until the token fires or a task ends without being asked, which fires the token; then give
    /// the rest `grace` to finish and abort what has not.
    ///
    /// # Errors
    /// The first thing that went wrong; later ones are logged. No task is left in any case.
    pub async fn run(mut self, grace: Duration) -> Result<(), Error> {
        let shutdown = self.shutdown.clone();
        let first = tokio::select! {
            // A task that ended because the token fired must not be taken for one that left by itself.
            biased;
            () = shutdown.cancelled() => Ok(()),
            Some(ended) = self.set.join_next_with_id() => {
                let early = self.judge(ended, Asked::No);
                shutdown.cancel();
                early
            }
        };
        let rest = self.drain(grace).await;
        match (first, rest) {
            (Ok(()), rest) => rest,
            (Err(first), Ok(())) => Err(first),
            (Err(first), Err(later)) => {
                tracing::error!(error = %later, "while shutting down");
                Err(first)
            }
        }
    }

    async fn drain(&mut self, grace: Duration) -> Result<(), Error> {
        let deadline = tokio::time::Instant::now() + grace;
        let mut worst = Ok(());
        while let Ok(Some(ended)) = tokio::time::timeout_at(deadline, self.set.join_next_with_id()).await {
            match (&worst, self.judge(ended, Asked::Yes)) {
                (_, Ok(())) => {}
                (Ok(()), Err(error)) => worst = Err(error),
                (Err(_), Err(error)) => tracing::error!(%error, "while shutting down"),
            }
        }
        if self.set.is_empty() {
            return worst;
        }
        let mut tasks: Vec<&'static str> = self.names.values().copied().collect();
        tasks.sort_unstable();
        self.set.shutdown().await;
        let stuck = Error::Stuck { tasks, grace };
        if worst.is_ok() {
            return Err(stuck);
        }
        tracing::error!(error = %stuck, "while shutting down");
        worst
    }

    fn judge(
        &mut self,
        ended: Result<(Id, Result<(), Failure>), JoinError>,
        asked: Asked,
    ) -> Result<(), Error> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let task = self.names.remove(&id).expect("every task is named when spawned");
        match ended {
            Ok((_, Ok(()))) if asked == Asked::Yes => Ok(()),
            Ok((_, Ok(()))) => Err(Error::Left { task }),
            Ok((_, Err(failure))) => Err(Error::Failed { task, failure }),
            Err(error) => Err(Error::Panicked { task, message: panic_message(error) }),
        }
    }
}

/// Whether the tasks have been asked to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Yes,
    No,
}

fn panic_message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => payload.downcast::<&'static str>().map_or("no message".into(), |t| (*t).into()),
        },
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn started() -> (CancellationToken, Tasks) {
        let shutdown = CancellationToken::new();
        (shutdown.clone(), Tasks::new(shutdown))
    }

    fn obedient(tasks: &mut Tasks, shutdown: &CancellationToken, ended: &Arc<AtomicU32>) {
        let (shutdown, ended) = (shutdown.clone(), Arc::clone(ended));
        tasks.spawn("obedient", async move {
            shutdown.cancelled().await;
            ended.fetch_add(1, Ordering::SeqCst);
            Ok::<(), Failure>(())
        });
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn tasks_that_obey_end_well() {
        let (shutdown, mut tasks) = started();
        let ended = Arc::default();
        obedient(&mut tasks, &shutdown, &ended);
        obedient(&mut tasks, &shutdown, &ended);
        shutdown.cancel();
        tasks.run(GRACE).await.expect("all obey");
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_task_that_fails_ends_the_others_and_is_named() {
        let (shutdown, mut tasks) = started();
        let ended = Arc::default();
        obedient(&mut tasks, &shutdown, &ended);
        tasks.spawn("broken", async { Err("no disk") });
        let error = tasks.run(GRACE).await.expect_err("it failed").to_string();
        assert_eq!(error, "task broken failed: no disk");
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_panic_is_an_error_with_its_message() {
        let (_shutdown, mut tasks) = started();
        tasks.spawn("wild", async {
            if true {
                panic!("table {} is broken", 7);
            }
            Ok::<(), Failure>(())
        });
        let error = tasks.run(GRACE).await.expect_err("it panicked").to_string();
        assert_eq!(error, "task wild panicked: table 7 is broken");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_task_that_leaves_is_an_error() {
        let (_shutdown, mut tasks) = started();
        tasks.spawn("short", async { Ok::<(), Failure>(()) });
        assert!(matches!(tasks.run(GRACE).await, Err(Error::Left { task: "short" })));
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_stuck_task_is_aborted_after_the_grace_period_and_named() {
        let (shutdown, mut tasks) = started();
        let ended = Arc::default();
        obedient(&mut tasks, &shutdown, &ended);
        tasks.spawn("stuck", pending::<Result<(), Failure>>());
        shutdown.cancel();
        let began = tokio::time::Instant::now();
        let error = tasks.run(Duration::from_secs(3)).await.expect_err("one is stuck").to_string();
        assert_eq!(error, "still at work 3 s after shutdown, aborted: stuck");
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}
