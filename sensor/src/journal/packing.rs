//! Thread that compresses the closed segments of the journal.
//!
//! Shell. It has the lowest priority, and works on one block at a time, so events and queries do not wait for
//! it; it ends within one block. Not here: what is compressed ([`super::packer`]).

use super::packer::{Packer, Step};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a new closed segment is looked for: a busy sensor closes one in minutes.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long to wait after the disk refused: it may be full until an operator deletes something.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The highest niceness.
const NICE: i32 = 19;

/// The running thread; it ends when this is dropped.
pub struct Packing {
    ends: Arc<AtomicBool>,
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Packing {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(packer: Packer) -> io::Result<Packing> {
        let ends = Arc::new(AtomicBool::new(false));
        let (end, ended) = sync_channel(1);
        let seen = Arc::clone(&ends);
        let thread =
            std::thread::Builder::new().name("pack".into()).spawn(move || run(packer, &seen, &ended))?;
        Ok(Packing { ends, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.end = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that compresses the journal ended by a defect; nothing is lost");
        }
    }
}

fn run(mut packer: Packer, ends: &AtomicBool, ended: &Receiver<()>) {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!("the journal is compressed at normal priority: {error}");
    }
    let mut has_failed = false;
    loop {
        let step = packer.step(&|| !ends.load(Ordering::Relaxed));
        if let (Err(error), false) = (&step, has_failed) {
            tracing::warn!("could not compress a segment of the journal: {error}; retrying every minute");
        }
        has_failed = step.is_err();
        let pause = match step {
            Ok(Step::Done) => Duration::ZERO,
            Ok(Step::Idle) => LOOK_EVERY,
            Err(_) => RETRY_AFTER,
        };
        match ended.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
