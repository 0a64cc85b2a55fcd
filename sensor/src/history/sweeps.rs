//! The history of this host: a thread that stores every sweep.
//!
//! Rule: the sampling thread hands over a pointer and never waits; if the disk is late, sweeps are dropped and
//! counted.

use super::exported::Exported;
use super::handle::Handle;
use super::writing::{self, Next, calendar};
use crate::sample::table::Table;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;

/// Sweeps that wait for the worker: half a minute at 64 Hz, as long as a disk may take to answer.
const QUEUE_LEN: usize = 2048;

/// Sweeps in memory while the history cannot be opened: an hour at 1 Hz.
const WAITING_MAX: usize = 3600;

/// The worker, ready to run.
pub struct Worker {
    folder: PathBuf,
    limits: [Limit; 3],
    host: HostName,
    exported: Exported,
    sweeps: Receiver<Arc<Table>>,
    handle: Handle,
}

/// Sender of sweeps, for the sampling thread.
pub struct Sink {
    sweeps: SyncSender<Arc<Table>>,
    handle: Handle,
}

/// Creates the history of this host in the folder `history` of the state folder, of whose days some may be exported;
/// `None` without limits.
#[must_use]
pub fn set_up(
    limits: Option<[Limit; 3]>,
    state: &Path,
    (host, exported): (HostName, Exported),
) -> Option<(Worker, Sink, Handle)> {
    let (sender, sweeps) = sync_channel(QUEUE_LEN);
    let handle = Handle::new("history");
    let sink = Sink { sweeps: sender, handle: handle.clone() };
    let folder = state.join("history");
    let worker = Worker { folder, limits: limits?, host, exported, sweeps, handle: handle.clone() };
    Some((worker, sink, handle))
}

impl Sink {
    /// Hands a sweep to the worker; a sweep that has no place in the queue is dropped and counted.
    pub fn store(&self, table: &Arc<Table>) {
        let sent = self.sweeps.try_send(Arc::clone(table));
        if let Err(TrySendError::Disconnected(_)) = &sent {
            let error = "its thread has ended by a defect; restart the sensor";
            self.handle.failure().note(Some(error.to_owned()));
        }
        if sent.is_err() {
            self.handle.drop_one();
        }
    }
}

impl Worker {
    /// Stores until the sampling thread has ended, then writes what is left.
    pub fn run(self) {
        let Worker { folder, limits, host, exported, sweeps, handle } = self;
        let try_open = || {
            let mut writer = Writer::open(&folder, limits)?;
            writer.mark_start(&host, calendar());
            Ok(writer)
        };
        let mut waiting: VecDeque<Arc<Table>> = VecDeque::new();
        let opened = writing::open((&handle, &folder), &sweeps, try_open, |table| {
            if waiting.len() == WAITING_MAX {
                waiting.pop_front();
                handle.drop_one();
            }
            waiting.push_back(table);
            Next::Wait
        });
        let Some(mut writer) = opened else { return };
        let store = |writer: &mut Writer, table: Arc<Table>| {
            let sweep = Sweep { time: table.time(), metrics: table.metrics(), values: table.values() };
            writer.push(&host, sweep);
            Next::Wait
        };
        for table in waiting {
            store(&mut writer, table);
        }
        writing::run(writer, &sweeps, (&exported, Some(&host)), store);
    }
}
