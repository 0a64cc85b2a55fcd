//! Recorder: takes triggers and operators' orders, and writes recordings, in a task beside the sampling
//! thread.
//!
//! Shell. Rules: what happened before the cause is on disk at once, because a crash or a full ring would lose
//! it; what comes after the cause is added from the ring, each segment once, by its number. A window is
//! complete when there is a sweep that started after it, because that sweep brings the processes that ended
//! before. Nothing here runs on the sampling thread, and files are written on the blocking pool.
//! Not here: when triggers fire (`trigger`), the ring (`ring`), the folder (`store`).

use super::conditions::{AFTER_STOP, ConditionReport, Conditions};
use super::config::Config;
use super::parts::{put, put_events, serving_of};
use super::ring::StoredSegment as Held;
use super::store::{self, Store, Writing};
use super::tap::Shared as Ring;
use super::trigger::{Count, Now, Trigger, Triggers, WindowRequest};
use crate::channel::hub::Hub;
use crate::journal::reader::Reader;
use crate::process::boot_time::boot_ns;
use crate::process::sampler;
use crate::sample::schedule::Rate;
use crate::sample::ticker::locked;
use crate::serving::watch;
use compact_str::CompactString;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wire::event::Event;
use wire::id::{DomainName, HostName, SensorKey};
use wire::recording::{Block, Cause, End, Header, Serving};
use wire::time::Time;

/// Most open windows: each writes the same sweeps again.
pub const OPEN_MAX: usize = 8;
/// Most ordered windows among them: the others are reserved for triggers.
pub const ORDERED_MAX: usize = OPEN_MAX / 2;
/// Most orders that wait.
const ORDERS_MAX: usize = 16;
/// Events per read of the journal.
const EVENTS_AT_A_TIME: usize = 1024;
/// Most processes in a recording's list of processes that serve jobs.
const SERVING_MAX: usize = 10_000;
/// How often the kind of the source is checked, because the rate depends on it.
const CHANGE_EVERY: Duration = Duration::from_secs(10);
/// How often open windows are checked: for new segments, and for being complete.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How late the end of a process may be reported: a sweep that starts this long after a window brings all
/// processes that ended in it.
const REPORTED_WITHIN: Duration = Duration::from_millis(100);
/// Longest wait for such a sweep, besides the time of two sweeps.
const SWEEP_WITHIN: Duration = Duration::from_secs(2);

/// The sensor's names, for the header of recordings.
#[derive(Clone, Debug)]
pub struct SensorNames {
    pub domain: DomainName,
    pub host: HostName,
    pub sensor: SensorKey,
}

/// Order of an operator to record a window.
#[derive(Clone, Debug)]
pub struct Order {
    /// How long before now.
    pub before: Duration,
    /// How long after now.
    pub after: Duration,
    /// Why, for the header of the recording.
    pub note: CompactString,
}

/// Why an order was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Too many windows are open.
    #[error("{OPEN_MAX} recordings are under way, and there may be no more")]
    Busy,
    /// Too many ordered windows are open.
    #[error("{ORDERED_MAX} recordings that were ordered are under way; order again when one is over")]
    Ordered,
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Disk(String),
    /// The recorder has ended.
    #[error("the sensor is ending")]
    Ended,
}

/// The recorder, ready to run.
pub struct Worker {
    names: SensorNames,
    ring: Ring,
    reader: Reader,
    processes: sampler::Handle,
    serving: watch::Handle,
    channels: Hub,
    config: Config,
    shared: Arc<Shared>,
    orders: mpsc::Receiver<(Order, oneshot::Sender<Result<CompactString, Refusal>>)>,
    open: Vec<Open>,
}

/// Handle for queries and orders; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    ring: Ring,
    shared: Arc<Shared>,
    orders: mpsc::Sender<(Order, oneshot::Sender<Result<CompactString, Refusal>>)>,
    reach: Duration,
    processes: sampler::Handle,
    config: Config,
}

struct Shared {
    store: Mutex<Store>,
    triggers: Mutex<Triggers>,
    trouble: Mutex<Errors>,
}

/// Current errors.
#[derive(Debug, Default)]
struct Errors {
    /// Why the last recording could not be written; `None` if it could.
    unwritten: Option<String>,
    /// Why conditions are not evaluated, by number of the trigger.
    stopped: BTreeMap<usize, String>,
}

impl Errors {
    /// The errors in sentences; `None` without errors.
    fn describe(&self) -> Option<String> {
        let unwritten = self.unwritten.iter();
        let unwritten = unwritten.map(|error| format!("the last recording could not be written: {error}"));
        let errors: Vec<String> = unwritten.chain(self.stopped.values().cloned()).collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    }
}

/// A window that is not complete.
struct Open {
    writing: Writing,
    /// Number of the first segment of the ring that is not written yet.
    next: u64,
    /// Number of the first event that may be in the window.
    events_from: u64,
}

impl Worker {
    /// Opens the folder of recordings. Returns the recorder with its handle, and what a crash left, in
    /// sentences.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn open(
        folder: &Path,
        config: Config,
        names: SensorNames,
        ring: Ring,
        reader: Reader,
        (processes, serving, channels): (sampler::Handle, watch::Handle, Hub),
    ) -> Result<(Worker, Handle, Vec<String>), store::Error> {
        let (store, notices) = Store::open(folder, config.budget_bytes)?;
        let reach = config.ring.map_or(Duration::ZERO, |ring| Duration::from_nanos(ring.reach_ns));
        let triggers = Triggers::new(config.triggers.clone(), reach);
        let shared =
            Shared { store: Mutex::new(store), triggers: Mutex::new(triggers), trouble: Mutex::default() };
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let shared = Arc::new(shared);
        let (of_handle, asked, of_ring) = (Arc::clone(&shared), processes.clone(), ring.clone());
        let handle = Handle {
            ring: of_ring,
            shared: of_handle,
            orders: sender,
            reach,
            processes: asked,
            config: config.clone(),
        };
        let open = Vec::new();
        let worker =
            Worker { names, ring, reader, processes, serving, channels, config, shared, orders, open };
        Ok((worker, handle, notices))
    }

    /// Takes triggers and orders, and writes, until `shutdown`; then ends the open windows.
    pub async fn run(mut self, shutdown: CancellationToken) {
        // Held while it runs: the processes are swept at least this often.
        let demand = self.processes.demand();
        let mut rate = self.rate();
        demand.set(Some(rate));
        let mut events = self.reader.next();
        let mut cursor = *events.borrow_and_update();
        let hears = self.config.triggers.iter().any(|trigger| trigger.condition.is_none());
        let mut conditions = Conditions::watch(&self.channels, self.config.triggers.iter(), AFTER_STOP);
        let mut change = tokio::time::interval(CHANGE_EVERY);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some((order, reply)) = self.orders.recv() => {
                    // The client may be gone.
                    let _ = reply.send(self.execute(order).await);
                }
                changed = events.changed(), if hears => match changed {
                    Ok(()) => {
                        events.borrow_and_update();
                        cursor = self.check_events(cursor).await;
                    }
                    Err(_) => break,
                },
                report = conditions.next() => self.take_up(report).await,
                _ = change.tick() => if self.rate() != rate {
                    rate = self.rate();
                    demand.set(Some(rate));
                },
                _ = look.tick(), if !self.open.is_empty() => self.advance_windows().await,
            }
        }
        demand.set(None);
        for open in std::mem::take(&mut self.open) {
            self.end(open, End::Stopped).await;
        }
    }

    /// Rate of recorded sweeps; it changes when the source of process data is replaced.
    fn rate(&self) -> Rate {
        self.config.rate(self.processes.status().kind)
    }

    /// Checks the events from `cursor` on; returns the next cursor.
    async fn check_events(&mut self, mut cursor: u64) -> u64 {
        loop {
            let (reader, shared) = (self.reader.clone(), Arc::clone(&self.shared));
            let page = blocking(move || {
                let now = now();
                let mut triggers = locked(&shared.triggers);
                let window =
                    |event: &Event| triggers.event(event, now).map(|window| (window, cause_of(event)));
                reader.read_some(cursor, EVENTS_AT_A_TIME, EVENTS_AT_A_TIME, window)
            });
            let Some(Ok(page)) = page.await else { return *self.reader.next().borrow() };
            let goes_on = page.cursor > cursor;
            cursor = page.cursor;
            for (window, cause) in page.events {
                self.record(window, cause).await;
            }
            if !goes_on {
                return cursor;
            }
        }
    }

    /// Handles a report about a condition.
    async fn take_up(&mut self, report: ConditionReport) {
        match report {
            ConditionReport::True { number, at_ns, value } => {
                let window = locked(&self.shared.triggers).signal(number, at_ns, value);
                if let Some(window) = window {
                    self.record(window, Cause::default()).await;
                }
            }
            ConditionReport::Stopped { number, why } => {
                let name = self.config.triggers.get(number).map_or("", |trigger| trigger.name.as_str());
                let notices = format!(
                    "the condition of the trigger {name:?} is stopped, and looked at again after {AFTER_STOP:?}: {why}"
                );
                tracing::warn!("flight recorder: {notices}");
                locked(&self.shared.trouble).stopped.insert(number, notices);
            }
            ConditionReport::GoesOn { number } => drop(locked(&self.shared.trouble).stopped.remove(&number)),
        }
    }

    /// Starts the recording of a trigger; a recording that cannot start is counted.
    async fn record(&mut self, window: WindowRequest, cause: Cause) {
        let WindowRequest { number, trigger, note, at_ns, from_ns, to_ns } = window;
        let started = self.begin(Cause { trigger, note, ..cause }, at_ns, from_ns, to_ns).await;
        if started.is_err() {
            locked(&self.shared.triggers).refuse(number, boot_ns());
        }
        self.note(started.map(drop).map_err(|refusal| refusal.to_string()));
    }

    async fn execute(&mut self, order: Order) -> Result<CompactString, Refusal> {
        let at_ns = boot_ns();
        let cause = Cause { note: order.note, ..Cause::default() };
        let (from_ns, to_ns) = (at_ns.saturating_sub(nanos(order.before)), at_ns + nanos(order.after));
        self.begin(cause, at_ns, from_ns, to_ns).await
    }

    /// Writes what there is of a window, and adds it to the open windows.
    async fn begin(
        &mut self,
        cause: Cause,
        at_ns: u64,
        from_ns: u64,
        to_ns: u64,
    ) -> Result<CompactString, Refusal> {
        let ordered = self.open.iter().filter(|open| open.writing.header().cause.is_order()).count();
        if cause.is_order() && ordered >= ORDERED_MAX {
            return Err(Refusal::Ordered);
        }
        if self.open.len() >= OPEN_MAX {
            return Err(Refusal::Busy);
        }
        let (held, next) = self.ring.freeze(0, from_ns, to_ns);
        let header = self.header(cause, at_ns, (from_ns, to_ns), &held);
        let id = header.id.clone();
        let events_from = held.first().map_or_else(|| *self.reader.next().borrow(), |held| held.events_from);
        let path = locked(&self.shared.store).announce(&header);
        let started = blocking(move || {
            let mut writing = Writing::begin(path, header)?;
            put(&mut writing, held)?;
            writing.sync()?;
            Ok::<_, store::Error>(writing)
        });
        match started.await.unwrap_or_else(|| Err(store::Error::Ended)) {
            Ok(writing) => {
                self.open.push(Open { writing, next, events_from });
                Ok(id)
            }
            Err(error) => {
                locked(&self.shared.store).ended(&id, None);
                Err(Refusal::Disk(error.to_string()))
            }
        }
    }

    fn header(&self, cause: Cause, at_ns: u64, window: (u64, u64), held: &[Held]) -> Header {
        let now = now();
        let at = now.booted.plus(Duration::from_nanos(at_ns));
        Header {
            id: locked(&self.shared.store).free_id(at),
            domain: self.names.domain.clone(),
            host: self.names.host.clone(),
            sensor: self.names.sensor,
            cause,
            at_ns,
            // If the ring does not reach back so far, the header says how far it does.
            from_ns: held.first().map_or(window.0, |held| held.segment.first_ns.max(window.0)),
            to_ns: window.1,
            booted: now.booted,
            hz: self.rate().hz(),
            source: self.processes.status().kind.as_str().into(),
        }
    }

    /// Ends the windows that are complete, and writes the new segments of the others.
    async fn advance_windows(&mut self) {
        for open in std::mem::take(&mut self.open) {
            match self.is_over(open.writing.header().to_ns) {
                true => self.end(open, End::Whole).await,
                false => self.go_on(open).await,
            }
        }
    }

    /// Whether a window with this end is complete: everything in it has arrived, or will not arrive.
    fn is_over(&self, to_ns: u64) -> bool {
        let period = self.rate().period();
        let is_past = |moment_ns: u64, by: Duration| moment_ns > to_ns.saturating_add(nanos(by));
        let now_ns = boot_ns();
        is_past(now_ns, LOOK_EVERY)
            && (is_past(self.ring.swept_ns(), REPORTED_WITHIN) || is_past(now_ns, period * 2 + SWEEP_WITHIN))
    }

    /// Writes the new segments of a window, before the ring drops them.
    async fn go_on(&mut self, mut open: Open) {
        let header = open.writing.header();
        let (held, next) = self.ring.sealed(open.next, header.from_ns, header.to_ns);
        let id = header.id.clone();
        open.next = next;
        if held.is_empty() {
            self.open.push(open);
            return;
        }
        let written = blocking(move || put(&mut open.writing, held).map(|()| open)).await;
        match written.unwrap_or_else(|| Err(store::Error::Ended)) {
            Ok(open) => self.open.push(open),
            Err(error) => {
                locked(&self.shared.store).ended(&id, None);
                self.note(Err(error.to_string()));
            }
        }
    }

    /// Writes the rest of a window.
    async fn end(&self, open: Open, end: End) {
        let Open { mut writing, next, events_from } = open;
        let header = writing.header().clone();
        // Ends the segment under way, so that nothing of the window goes into the next one, and overlapping
        // recordings have the same segments.
        let (held, _) = self.ring.freeze(next, header.from_ns, header.to_ns);
        let (reader, id) = (self.reader.clone(), header.id.clone());
        let serving = self.serving.between(header.from_ns, header.to_ns).into_iter().flat_map(serving_of);
        let serving: Vec<Serving> = serving.take(SERVING_MAX).collect();
        let ended = blocking(move || {
            put(&mut writing, held)?;
            writing.put(&Block::Serving(serving))?;
            put_events(&mut writing, &reader, events_from)?;
            writing.finish(end)
        });
        let ended =
            ended.await.unwrap_or_else(|| Err(store::Error::Ended)).map_err(|error| error.to_string());
        locked(&self.shared.store).ended(&id, ended.as_ref().ok().cloned());
        self.note(ended.map(drop));
    }

    fn note(&self, done: Result<(), String>) {
        if let Err(error) = &done {
            tracing::warn!("flight recorder: {error}");
        }
        locked(&self.shared.trouble).unwritten = done.err();
    }
}

impl Handle {
    /// Records a window; returns the id of the recording.
    ///
    /// # Errors
    /// If it cannot be recorded now.
    pub async fn order(&self, order: Order) -> Result<CompactString, Refusal> {
        let (sender, reply) = oneshot::channel();
        self.orders.send((order, sender)).await.map_err(|_| Refusal::Ended)?;
        reply.await.map_err(|_| Refusal::Ended)?
    }

    /// How far the ring reaches back, unless its memory limits it.
    #[must_use]
    pub fn reach(&self) -> Duration {
        self.reach
    }

    /// Longest time from an order until its recording is complete, if sweeps are on time: until there is the
    /// sweep that brings the processes that ended up to `after`.
    #[must_use]
    pub fn ready_in(&self, after: Duration) -> Duration {
        after + self.config.rate(self.processes.status().kind).period() + REPORTED_WITHIN + LOOK_EVERY * 2
    }

    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Reads the list of recordings.
    pub fn store<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&locked(&self.shared.store))
    }

    /// Each trigger with its counters.
    #[must_use]
    pub fn triggers(&self) -> Vec<(Trigger, Count)> {
        let triggers = locked(&self.shared.triggers);
        triggers.counts().map(|(trigger, count)| (trigger.clone(), count)).collect()
    }

    /// Why the last recording could not be written, and which conditions are stopped, in sentences; `None` if
    /// all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        locked(&self.shared.trouble).describe()
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn cause_of(event: &Event) -> Cause {
    Cause {
        call: event.call.clone(),
        event: compact_str::format_compact!("{}", event.id),
        ..Cause::default()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[allow(clippy::disallowed_methods)] // The shell that converts times since boot to calendar time.
fn now() -> Now {
    let boot_ns = boot_ns();
    let calendar: Time = std::time::SystemTime::now().into();
    Now { boot_ns, booted: calendar.minus(Duration::from_nanos(boot_ns)) }
}
