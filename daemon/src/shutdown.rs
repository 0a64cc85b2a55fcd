//! Shutdown of a daemon: a cancellation token, and the wait for its tasks.
//!
//! Rule: the first SIGINT or SIGTERM cancels the token, and every task finishes its work; the second one
//! exits at once, from the signal handler; [`END_AFTER`] the first the process exits in any case: neither
//! depends on a thread that may be blocked. A task that ends by itself, fails or panics also ends the daemon:
//! no task is optional.
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

/// How long tasks may take to finish after the token is cancelled: long enough to write a checkpoint to a
/// slow disk. What is not written then is read again at the next start.
pub const GRACE: Duration = Duration::from_secs(4);

/// How long after the first signal the process exits, whatever its threads do.
pub const END_AFTER: Duration = Duration::from_millis(4_700);

/// Exit status after the second signal: that of a program ended by SIGINT.
pub const EXIT_CODE_FORCED: i32 = 130;

/// Exit status of a process with tasks still running [`END_AFTER`] the first signal.
pub const EXIT_CODE_STUCK: i32 = 1;

/// Error of a task.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why a daemon ended unexpectedly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A task returned an error.
    #[error("task {task} failed: {failure}")]
    Failed {
        /// Name of the task.
        task: &'static str,
        failure: Failure,
    },
    /// A task panicked.
    #[error("task {task} panicked: {message}")]
    Panicked {
        /// Name of the task.
        task: &'static str,
        /// Panic message.
        message: String,
    },
    /// A task ended before the shutdown.
    #[error("task {task} ended by itself; it should run until shutdown")]
    Left {
        /// Name of the task.
        task: &'static str,
    },
    /// Tasks were still running when the grace period was over; they were aborted.
    #[error("still at work {} s after shutdown, aborted: {}", grace.as_secs_f32(), tasks.join(", "))]
    Stuck {
        /// Names of the tasks.
        tasks: Vec<&'static str>,
        /// Length of the grace period.
        grace: Duration,
    },
}

/// Handlers of the two signals that end a daemon, installed when this is created.
pub struct Signals(signal_hook::iterator::Signals);

/// Guard of the thread that waits for the first signal. After it is dropped, the first signal has no effect.
pub struct Obeying(Handle);

impl Signals {
    /// Install the handlers of SIGINT and SIGTERM.
    ///
    /// # Errors
    /// If the operating system refuses the handlers.
    pub fn catch() -> io::Result<Signals> {
        let has_come = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            // The order matters: the first signal must find the flag unset, and then set it.
            flag::register_conditional_shutdown(number, EXIT_CODE_FORCED, Arc::clone(&has_come))?;
            flag::register(number, Arc::clone(&has_come))?;
        }
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map(Signals)
    }

    /// Cancel `shutdown` at the first signal, on a dedicated thread, because the daemon's threads may be
    /// blocked.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn obey(mut self, shutdown: CancellationToken) -> io::Result<Obeying> {
        let handle = self.0.handle();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let Some(number) = self.0.forever().next() else { return };
            let name = if number == SIGINT { "SIGINT" } else { "SIGTERM" };
            tracing::info!(signal = name, "shutting down; the same again ends the program at once");
            shutdown.cancel();
            std::thread::sleep(END_AFTER);
            // If standard error is closed, nothing can be done.
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
    /// Create an empty set of tasks, which end when `shutdown` is cancelled.
    #[must_use]
    pub fn new(shutdown: CancellationToken) -> Tasks {
        Tasks { shutdown, set: JoinSet::new(), names: BTreeMap::new() }
    }

    /// Spawn a task that ends when the token is cancelled.
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

    /// As [`Tasks::spawn`], for a task that cannot fail except by a panic.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn_sure(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, async move {
            task.await;
            Ok::<(), Failure>(())
        });
    }

    /// Wait until the token is cancelled or a task ends early, which cancels the token; then give the
    /// remaining tasks `grace` to finish, and abort the others.
    ///
    /// # Errors
    /// The first error; later ones are logged. No task is left running in any case.
    pub async fn run(mut self, grace: Duration) -> Result<(), Error> {
        let shutdown = self.shutdown.clone();
        let first = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            Some(ended) = self.set.join_next_with_id() => {
                // The token may have been cancelled after the line above looked at it, so that this task has
                // ended for that reason.
                let requested = match shutdown.is_cancelled() {
                    true => ShutdownRequested::Yes,
                    false => ShutdownRequested::No,
                };
                let early = self.judge(ended, requested);
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
            match (&worst, self.judge(ended, ShutdownRequested::Yes)) {
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
        requested: ShutdownRequested,
    ) -> Result<(), Error> {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let task = self.names.remove(&id).expect("every task is named when spawned");
        match ended {
            Ok((_, Ok(()))) if requested == ShutdownRequested::Yes => Ok(()),
            Ok((_, Ok(()))) => Err(Error::Left { task }),
            Ok((_, Err(failure))) => Err(Error::Failed { task, failure }),
            Err(error) => Err(Error::Panicked { task, message: panic_message(error) }),
        }
    }
}

/// Whether the shutdown was requested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShutdownRequested {
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

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_task_that_ends_at_the_moment_of_the_request_has_not_ended_early() {
        for _ in 0..20_000 {
            let (shutdown, mut tasks) = started();
            for _ in 0..4 {
                obedient(&mut tasks, &shutdown, &Arc::default());
            }
            let requested = tokio::task::spawn_blocking(move || shutdown.cancel());
            tasks.run(GRACE).await.expect("all obey");
            requested.await.expect("it was requested");
        }
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
