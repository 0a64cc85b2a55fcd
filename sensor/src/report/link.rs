//! Connection of a member to the present representative: one long-lived stream, reconnected whenever it ends.
//!
//! [`Link`] reads the journal for the [`Sender`] where it may block, hands it sweeps and the host's state,
//! and passes acknowledgements to the tail. [`Route`] finds the representative.
//! Rule: a stream that ended loses only what was on it: the next one starts where its representative
//! requests.
//! Not here: what is sent and in which order ([`super::sender`]), the network (the composing program).

use super::call_copying::CallCopying;
use super::copying::{CopyInputs, Copying};
use super::outbox::Outbox;
use super::sender::{Counts, Error, Identity, JournalRange, Sender};
use crate::history::copied::Kind;
use crate::journal::reader::Reader;
use crate::sample::table::Table;
use crate::segments;
use crate::tail::handle::MachineClock;
use crate::tail::ingest::Clock as _;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::backoff::Backoff;
use wire::report::marks::MarkList;
use wire::report::{Events, HostState, Mark, Marks};

/// Interval of reports of the host's state: after three missing ones a host counts as silent.
const STATE_EVERY: Duration = Duration::from_secs(5);
/// Timeout for the representative's answer to the hello.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Timeout for sending the leave message.
const FAREWELL: Duration = Duration::from_secs(1);
/// Delays before reconnecting, after streams in a row that failed within `WELL_AFTER`.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
/// Bytes read at a time: answers are short.
const INBOUND_LEN_BYTES: usize = 4 << 10;
/// A stream that lasted this long resets the delay before reconnecting.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// Transport to the sensor that represents the domain.
pub trait Route: Send {
    type Stream: AsyncRead + AsyncWrite + Send;

    /// Opens a new stream to the present representative, once there is one.
    fn open(&mut self) -> impl Future<Output = Self::Stream> + Send;

    /// Waits until the last opened stream no longer leads to the representative. Cancel safe: it may be
    /// dropped and called again.
    fn moved(&mut self) -> impl Future<Output = ()> + Send;
}

/// Inputs and callbacks that a report takes from its sensor.
pub struct LinkInputs {
    pub identity: Identity,
    /// Reader of the journal, for its durable position.
    pub reader: Reader,
    /// Reader of the journal's events for reports.
    pub outbox: Outbox,
    /// Newest sweep of the host.
    pub tables: watch::Receiver<Option<Arc<Table>>>,
    /// Returns the host's state.
    pub state: Box<dyn Fn() -> HostState + Send>,
    /// Returns the events that a representative has acknowledged, as the journal recorded it.
    pub acknowledged: Box<dyn Fn() -> Option<u64> + Send>,
    /// Watermarks of representatives' stores when this run started.
    pub marks: MarkList,
    /// Called when the representative's store has everything before the mark.
    pub acknowledge: Box<dyn Fn(Mark) + Send>,
    /// Called with the watermarks of all members' events that the representative sent, for when this sensor
    /// represents the domain.
    pub add_watermarks: Box<dyn Fn(Marks) + Send>,
    /// Called with whether all durable events are sent and the report waits for more.
    pub awaits: Box<dyn Fn(bool) + Send>,
    /// What is stored of this host, and copies of other hosts.
    pub copying: Arc<CopyInputs>,
}

/// Counters and state of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Counters of the sender.
    pub counts: Counts,
    /// Number of streams that were opened.
    pub streams_total: u64,
    /// Whether a representative accepts the report now.
    pub is_open: bool,
    /// Reason why the last stream was refused, if it was.
    pub trouble: Option<String>,
}

/// Shared counters and state of a link.
#[derive(Clone, Default)]
pub struct LinkStatus(Arc<Mutex<Figures>>);

impl LinkStatus {
    /// Returns the present counters and state.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        // Plain numbers, each written completely.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Link {
    own: LinkInputs,
    /// `None` while a read is running on another thread.
    outbox: Option<Outbox>,
    /// Whether it reports events, beside the host's state.
    sends_events: bool,
    /// Durable position at which the journal had nothing to read; the read is tried again later.
    fruitless: Option<u64>,
    sender: Sender,
    status: LinkStatus,
}

/// Reason why a stream ended.
enum Ended {
    /// The daemon shuts down.
    Farewell,
    /// Another sensor represents the domain now.
    Moved,
    /// The stream broke, or no answer came.
    Broken(String),
    /// The representative sent an invalid frame, or refused.
    Useless(Error),
}

/// Events that were read from the journal.
type EventsRead = (Outbox, Result<Option<Events>, segments::Error>);

type Reading = JoinHandle<EventsRead>;

impl Link {
    /// Creates a report that has not started.
    #[must_use]
    pub fn new(own: LinkInputs) -> Link {
        let sender = Sender::new(own.identity.clone(), own.marks.clone());
        let outbox = own.outbox.another();
        let status = LinkStatus::default();
        Link { own, outbox: Some(outbox), sends_events: true, fruitless: None, sender, status }
    }

    /// Reports the host's state and samples only, for a representative that has the journal itself.
    #[must_use]
    pub fn without_events(self) -> Link {
        Link { sends_events: false, ..self }
    }

    /// Returns the shared counters and state.
    #[must_use]
    pub fn status(&self) -> LinkStatus {
        self.status.clone()
    }

    /// Reports through `route` until `shutdown`; then sends a leave message.
    pub async fn run(mut self, mut route: impl Route, shutdown: CancellationToken) {
        let mut failures = 0_u32;
        loop {
            let Some(stream) = self.open_stream(&mut route, &shutdown).await else { return };
            self.status.lock().streams_total += 1;
            let began = MachineClock.monotonic();
            let ended = self.report(stream, &mut route, &shutdown).await;
            (self.own.awaits)(false);
            self.sender.disconnect();
            self.show();
            let trouble = match ended {
                Ended::Farewell => return,
                Ended::Moved => {
                    failures = 0;
                    None
                }
                Ended::Broken(reason) => {
                    tracing::debug!(reason, "the stream to the representative ended");
                    None
                }
                Ended::Useless(error) => {
                    tracing::warn!(%error, "the report is not taken");
                    Some(error.to_string())
                }
            };
            self.status.lock().trouble = trouble;
            let was_well = MachineClock.monotonic().saturating_sub(began) >= WELL_AFTER;
            if was_well {
                failures = 0;
            }
            let pausing = tokio::time::sleep(jittered(BACKOFF.pause(failures)));
            failures = failures.saturating_add(1);
            if self.wait_offline(pausing, &shutdown).await.is_none() {
                return;
            }
        }
    }

    /// Opens a stream; `None` if the daemon shuts down first.
    async fn open_stream<W: Route>(
        &mut self,
        route: &mut W,
        shutdown: &CancellationToken,
    ) -> Option<W::Stream> {
        self.wait_offline(route.open(), shutdown).await
    }

    /// Waits; sweeps in the meantime are not sent, and are counted.
    async fn wait_offline<T>(
        &mut self,
        waiting: impl Future<Output = T>,
        shutdown: &CancellationToken,
    ) -> Option<T> {
        let mut waiting = std::pin::pin!(waiting);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return None,
                done = &mut waiting => return Some(done),
                Ok(()) = self.own.tables.changed() => self.sweep(),
            }
        }
    }

    fn sweep(&mut self) {
        let table = self.own.tables.borrow_and_update().clone();
        if let Some(table) = table {
            self.sender.handle_sweep(&table);
        }
        self.show();
    }

    fn show(&self) {
        let mut figures = self.status.lock();
        (figures.counts, figures.is_open) = (self.sender.counts(), self.sender.is_open());
    }

    /// Reports on one stream until it ends.
    async fn report<W: Route>(
        &mut self,
        stream: W::Stream,
        route: &mut W,
        shutdown: &CancellationToken,
    ) -> Ended {
        let (mut read, mut write) = tokio::io::split(stream);
        let Err(ended) = self.exchange(&mut read, &mut write, route, shutdown).await;
        if matches!(ended, Ended::Farewell) && shutdown.is_cancelled() {
            self.farewell(write).await;
        }
        ended
    }

    async fn exchange<W: Route>(
        &mut self,
        read: &mut (impl AsyncRead + Unpin),
        write: &mut (impl AsyncWrite + Unpin),
        route: &mut W,
        shutdown: &CancellationToken,
    ) -> Result<Infallible, Ended> {
        let (oldest, next) = self.own.outbox.range();
        let range = JournalRange { oldest, next, acknowledged: (self.own.acknowledged)() };
        self.sender.connect(range, MachineClock.wall());
        let mut durable = self.own.reader.durables();
        let mut state_ticks = tokio::time::interval(STATE_EVERY);
        let answer_due = tokio::time::sleep(ANSWER_WITHIN);
        tokio::pin!(answer_due);
        let mut reading: Option<Reading> = None;
        let mut copying = Copying::new(Arc::clone(&self.own.copying));
        let mut calls = CallCopying::new(Arc::clone(&self.own.copying));
        let mut inbound = Vec::with_capacity(INBOUND_LEN_BYTES);
        let mut is_unflushed = false;
        loop {
            if reading.is_none() {
                let durable = *durable.borrow_and_update();
                reading = self.begin_reading(durable);
                (self.own.awaits)(reading.is_none() && self.is_caught_up(durable));
            }
            if !copying.is_reading() {
                self.sender.take_fetch().into_iter().for_each(|fetch| copying.read(fetch));
            }
            let has_output = !self.sender.output().is_empty();
            tokio::select! {
                () = shutdown.cancelled() => return Err(Ended::Farewell),
                () = route.moved() => return Err(Ended::Moved),
                () = &mut answer_due, if !self.sender.is_open() => {
                    return Err(Ended::Broken("the representative did not answer the hello".into()));
                }
                got = read.read_buf(&mut inbound) => {
                    self.handle_read(got, &inbound, &mut copying)?;
                    self.sender.take_calls().into_iter().for_each(|answer| calls.store(answer));
                    inbound.clear();
                }
                put = put(write, self.sender.output(), is_unflushed) => {
                    self.handle_put(put, has_output)?;
                    is_unflushed = has_output;
                }
                done = done(&mut reading) => {
                    reading = None;
                    self.handle_events(done, *durable.borrow())?;
                }
                answer = copying.read_done() => self.sender.handle_answer(answer),
                fetch = calls.next() => fetch.into_iter().for_each(|fetch| self.sender.request_calls(fetch)),
                // The loop checks what can be read.
                Ok(()) = durable.changed(), if reading.is_none() => {}
                Ok(()) = self.own.tables.changed() => self.sweep(),
                now = state_ticks.tick(), if self.sender.is_open() => {
                    self.fruitless = None;
                    let state = (self.own.state)();
                    self.sender.handle_state(state);
                    self.request_copies(&mut copying, now);
                    calls.prepare(&self.sender, now);
                }
            }
        }
    }

    /// Handles what was read from the stream.
    fn handle_read(
        &mut self,
        got: std::io::Result<usize>,
        bytes: &[u8],
        copying: &mut Copying,
    ) -> Result<(), Ended> {
        match got {
            Ok(0) => return Err(Ended::Broken("the representative ended it".into())),
            Ok(_) => self.handle_bytes(bytes).map_err(Ended::Useless)?,
            Err(error) => return Err(Ended::Broken(error.to_string())),
        }
        for answer in self.sender.take_answers() {
            let now = Instant::now();
            copying.store(answer, now);
            self.request_copies(copying, now);
        }
        Ok(())
    }

    /// Requests minutes and samples of all hosts, if it is a standby and it is time for it.
    fn request_copies(&mut self, copying: &mut Copying, now: Instant) {
        for kind in Kind::ALL {
            if self.sender.offers(kind)
                && let Some(fetch) = copying.fetch(kind, now)
            {
                self.sender.request(kind, fetch);
            }
        }
    }

    /// Handles what was written to the stream.
    fn handle_put(&mut self, put: std::io::Result<usize>, has_output: bool) -> Result<(), Ended> {
        match put {
            Ok(0) if has_output => Err(Ended::Broken("nothing more can be written".into())),
            Ok(len) => {
                self.sender.consume(len);
                Ok(())
            }
            Err(error) => Err(Ended::Broken(error.to_string())),
        }
    }

    /// Handles what was read from the journal.
    fn handle_events(&mut self, done: Option<EventsRead>, durable: u64) -> Result<(), Ended> {
        let (outbox, read) = done.ok_or(Ended::Farewell)?;
        self.outbox = Some(outbox);
        match read {
            Ok(Some(events)) => self.sender.handle_events(events),
            Ok(None) => self.fruitless = Some(durable),
            Err(error) => return Err(Ended::Broken(format!("the journal cannot be read: {error}"))),
        }
        Ok(())
    }

    /// Starts to read the events that the sender requests from the journal, if there are any.
    fn begin_reading(&mut self, durable: u64) -> Option<Reading> {
        if !self.sends_events || self.fruitless == Some(durable) {
            return None;
        }
        let next_read = self.sender.next_read().filter(|next_read| next_read.from < durable)?;
        // It is missing only while another read runs, which the caller excludes; otherwise it was lost in a
        // panic.
        let mut outbox = self.outbox.take().unwrap_or_else(|| self.own.outbox.another());
        Some(tokio::task::spawn_blocking(move || {
            let read = outbox.read(next_read.from, next_read.limit);
            (outbox, read)
        }))
    }

    /// Returns whether there is room for events and all durable events are sent.
    fn is_caught_up(&self, durable: u64) -> bool {
        self.sends_events && self.sender.next_read().is_some_and(|next_read| next_read.from >= durable)
    }

    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let handled = self.sender.handle_bytes(bytes);
        if let Some(mark) = self.sender.take_acknowledged() {
            (self.own.acknowledge)(mark);
        }
        self.sender.take_watermarks().into_iter().for_each(&self.own.add_watermarks);
        self.show();
        handled
    }

    /// Sends the leave message.
    async fn farewell(&mut self, mut write: impl AsyncWrite + Unpin) {
        self.sender.leave();
        let saying = async {
            write.write_all(self.sender.output()).await?;
            write.flush().await?;
            write.shutdown().await
        };
        if !matches!(tokio::time::timeout(FAREWELL, saying).await, Ok(Ok(()))) {
            tracing::debug!("could not notify the representative that this sensor leaves");
        }
    }
}

/// Waits for the running read; `None` if it was cancelled because the process is ending.
async fn done(reading: &mut Option<Reading>) -> Option<EventsRead> {
    match reading {
        Some(reading) => match reading.await {
            Ok(done) => Some(done),
            Err(error) if error.is_cancelled() => None,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
        None => std::future::pending().await,
    }
}

/// Writes some of the output, or flushes what was written. Returns the number of bytes written. Cancel safe.
async fn put(
    write: &mut (impl AsyncWrite + Unpin),
    output: &[u8],
    is_unflushed: bool,
) -> std::io::Result<usize> {
    match (output.is_empty(), is_unflushed) {
        (false, _) => write.write(output).await,
        (true, true) => write.flush().await.map(|()| 0),
        (true, false) => std::future::pending().await,
    }
}

/// Returns a random delay from half of `pause` to all of it, so that members do not reconnect all at once.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    let part = getrandom::u32().unwrap_or(u32::MAX);
    half + half.mul_f64(f64::from(part) / f64::from(u32::MAX))
}
