//! Blocking pool: runs work that may block, such as reading files or resolving names.
//!
//! Rule: the work runs on threads of its own, a limited number at a time; further work is queued first in,
//! first out. Queued work delays only its own callers, and a permit is returned when the work is done, even
//! if its caller is gone.
//! Not here: the timeout of the caller (`dispatcher`).

use crate::fault::Fault;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Pool of threads for one kind of work.
#[derive(Clone, Debug)]
pub struct BlockingPool {
    what: &'static str,
    turns: Arc<Semaphore>,
}

impl BlockingPool {
    /// Create a pool for the work `what` ("reading the journal"), `at_once` pieces of it at a time.
    #[must_use]
    pub fn new(what: &'static str, at_once: usize) -> BlockingPool {
        BlockingPool { what, turns: Arc::new(Semaphore::new(at_once)) }
    }

    /// Run `work` and return its result.
    ///
    /// # Errors
    /// The fault of `work`; an internal fault if it panics, or if the daemon ends first.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let failed = || Fault::internal(format!("{} failed; the daemon's log says more", self.what));
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| failed())?;
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        working.await.map_err(|_| failed())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use wire::fault::INTERNAL;

    #[tokio::test]
    async fn work_that_blocks_holds_up_only_what_waits_for_its_turn() {
        let apart = BlockingPool::new("the test", 1);
        let (go_on, gate) = mpsc::sync_channel::<()>(1);
        let (began, has_started) = tokio::sync::oneshot::channel();
        let own = apart.clone();
        let blocked = tokio::spawn(async move {
            own.run(move || {
                began.send(()).expect("the test waits");
                gate.recv().map_err(|_| Fault::unavailable("the gate is gone"))
            })
            .await
        });
        has_started.await.expect("it begins");
        // The blocked work holds the only thread; aborting its caller does not release the permit.
        blocked.abort();
        let second = apart.run(|| Ok(2));
        tokio::pin!(second);
        let early = tokio::time::timeout(Duration::from_millis(50), &mut second).await;
        assert!(early.is_err(), "two at a time: {early:?}");
        go_on.send(()).expect("it still waits");
        assert_eq!(second.await, Ok(2));
    }

    #[tokio::test]
    async fn a_panic_is_a_fault_and_gives_the_turn_back() {
        let apart = BlockingPool::new("the test", 1);
        let failed = apart.run(|| -> Result<(), Fault> { panic!("as the test wants") }).await;
        assert_eq!(failed.expect_err("it panicked").code, INTERNAL);
        assert_eq!(apart.run(|| Ok(())).await, Ok(()));
    }
}
