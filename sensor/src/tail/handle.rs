//! The tail's thread, and the handle to it.
//!
//! Shell. The only place where the tail reads clocks, waits and starts a thread.

use super::ingest::{Clock, Ingest, Parts};
use super::interpret::{Filters, Join};
use super::path_set::PathSet;
use super::status::{FileStatus, StatusTable, TailStatus};
use super::watch::{Wake, Wakeup, Watch};
use super::{Config, Error};
use crate::journal::packing::Packing;
use crate::journal::reader::Reader;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use wire::id::SensorKey;
use wire::report::Mark;
use wire::report::marks::MarkList;
use wire::time::Time;

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    #[allow(clippy::disallowed_methods)] // The shell's clock: everything else gets the value.
    fn wall(&self) -> Time {
        Time::from(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        span(rustix::time::ClockId::Boottime)
    }

    fn work(&self) -> Duration {
        span(rustix::time::ClockId::ThreadCPUTime)
    }
}

fn span(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A running tail.
pub struct Handle {
    wakeup: Arc<Wakeup>,
    status: Arc<StatusTable>,
    reader: Reader,
    sensor: SensorKey,
    marks: MarkList,
    thread: Mutex<Option<JoinHandle<()>>>,
    packing: Mutex<Option<Packing>>,
}

impl Handle {
    /// Open the state directory and follow the configured files in a thread of its own.
    ///
    /// # Errors
    /// As [`Ingest::open`]; or if the system gives no thread or no random number.
    pub fn start(
        config: Config,
        state: &Path,
        filters: Box<dyn Filters>,
        join: Box<dyn Join>,
    ) -> Result<Handle, Error> {
        let mut key = [0; 8];
        getrandom::fill(&mut key).map_err(|error| Error::System {
            what: "draw a key".into(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let fresh_key = SensorKey(u64::from_le_bytes(key));
        let watched = PathSet::new(&config.files)?;
        let parts = Parts { filters, join, clock: Box::new(MachineClock), fresh_key };
        let ingest = Ingest::open(config, state, parts)?;
        let wakeup = Arc::new(Wakeup::default());
        let (status, reader, sensor) = (ingest.status(), ingest.reader(), ingest.sensor());
        let marks = ingest.marks();
        let packing = Packing::start(ingest.packer())
            .map_err(|source| Error::System { what: "start a thread".into(), source })?;
        let watch = Watch::new(wakeup.clone(), watched);
        let waited = wakeup.clone();
        let thread = std::thread::Builder::new()
            .name("tail".into())
            .spawn(move || run(ingest, watch, &waited))
            .map_err(|source| Error::System { what: "start a thread".into(), source })?;
        Ok(Handle {
            wakeup,
            status,
            reader,
            sensor,
            marks,
            thread: Mutex::new(Some(thread)),
            packing: Mutex::new(Some(packing)),
        })
    }

    /// The sequence number that the next event will get; it changes whenever events are added.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.reader.next()
    }

    /// The status of every file that is followed.
    #[must_use]
    pub fn files(&self) -> Vec<FileStatus> {
        self.status.files()
    }

    /// What is wrong with the tail as a whole, and what the receiver has.
    #[must_use]
    pub fn status(&self) -> TailStatus {
        self.status.tail()
    }

    /// A reader of the events.
    #[must_use]
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// This sensor's key.
    #[must_use]
    pub fn sensor(&self) -> SensorKey {
        self.sensor
    }

    /// What receivers' stores had when the tail started.
    #[must_use]
    pub fn marks(&self) -> MarkList {
        self.marks.clone()
    }

    /// The receiver's store has everything before `mark.next`.
    pub fn acknowledge(&self, mark: Mark) {
        self.wakeup.notify(|wake| wake.acknowledged = Some(mark));
    }

    /// Set whether a reader has every durable event and waits for more: events are then durable sooner.
    pub fn await_durable(&self, waits: bool) {
        if self.reader.await_durable(waits) {
            self.wakeup.notify(|wake| wake.awaited = true);
        }
    }

    /// Whether the thread still runs; it ends only by [`Handle::stop`] or a defect.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Read what there is, make it durable, and return when that is done. A further call does nothing.
    pub fn stop(&self) {
        self.wakeup.notify(|wake| wake.stop = true);
        drop(self.packing.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the tail ended by a defect; the journal is as after a crash");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(mut ingest: Ingest, mut watch: Watch, wakeup: &Wakeup) {
    let status = ingest.status();
    let mut wake = Wake::all();
    loop {
        if let Some(mark) = wake.acknowledged {
            ingest.acknowledge(mark);
        }
        if wake.stop {
            ingest.drain();
            return;
        }
        status.set_at_work(true);
        let wait = ingest.turn(&wake);
        let is_new = watch.set(ingest.directories());
        ingest.set_watch_trouble(watch.trouble());
        status.set_at_work(false);
        wake = wakeup.wait(if is_new { Duration::ZERO } else { wait });
        wake.all |= is_new;
    }
}
