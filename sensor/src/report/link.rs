//! A member's report at work: one lasting stream to the present representative, made again whenever it ends.
//!
//! [`Link`] reads the journal for the [`Sender`] where it may block, hands it sweeps and the host's state, and tells
//! the tail what is acknowledged. [`Way`] knows where the representative is.
//! Rule: a stream that ended costs nothing but what was on it: the next one begins where its representative asks.
//! Not here: what is sent and in which order ([`super::sender`]), the network (the composing program).

use super::outbox::Outbox;
use super::sender::{Counts, Error, Held, Identity, Sender};
use crate::journal::reader::Reader;
use crate::sample::table::Table;
use crate::segments;
use crate::tail::handle::MachineClock;
use crate::tail::ingest::Clock as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::report::marks::MarkList;
use wire::report::{Events, HostState, Mark, Marks};

/// How often the host's state is told: three of them missing make a host silent.
const STATE_EVERY: Duration = Duration::from_secs(5);
/// How long the representative may take to answer the hello.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// How long the last words may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// Least and longest time between two streams; it doubles from one that was of no use to the next.
const PAUSE_LEAST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(10);
/// Bytes read at a time: answers are short.
const INBOUND_LEN_BYTES: usize = 4 << 10;
/// A stream that stood for so long was well.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// The way to whoever represents the domain.
pub trait Way: Send {
    /// A stream to it.
    type Stream: AsyncRead + AsyncWrite + Send;

    /// A new stream to the present representative, once there is one.
    fn open(&mut self) -> impl Future<Output = Self::Stream> + Send;

    /// Returns when the stream opened last leads to the representative no more. May be dropped and asked again.
    fn moved(&mut self) -> impl Future<Output = ()> + Send;
}

/// What a report takes from its sensor.
pub struct Own {
    /// Who it is.
    pub identity: Identity,
    /// Reads the journal.
    pub reader: Reader,
    /// The same, for reports.
    pub outbox: Outbox,
    /// The host's sweeps.
    pub tables: watch::Receiver<Option<Arc<Table>>>,
    /// How the host is.
    pub state: Box<dyn Fn() -> HostState + Send>,
    /// What some representative has had, as the journal remembers it.
    pub acknowledged: Box<dyn Fn() -> Option<u64> + Send>,
    /// What representatives' stores had when this run began.
    pub marks: MarkList,
    /// The representative's store has everything before the mark.
    pub acknowledge: Box<dyn Fn(Mark) + Send>,
    /// The representative told this of all members' events, for the time that this sensor represents the domain.
    pub learn: Box<dyn Fn(Marks) + Send>,
    /// Whether everything durable is on its way, and more is waited for.
    pub awaits: Box<dyn Fn(bool) + Send>,
}

/// What was done and how it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of the sender.
    pub counts: Counts,
    /// Streams that were opened.
    pub streams_total: u64,
    /// Whether a representative takes the report now.
    pub is_open: bool,
    /// Why the last stream was of no use, if it was refused.
    pub trouble: Option<String>,
}

/// The figures of a link, for others.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<Figures>>);

impl Board {
    /// The figures now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        // Plain figures, written whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task.
pub struct Link {
    own: Own,
    /// Away while it reads.
    outbox: Option<Outbox>,
    /// Whether events are told, beside how the host is.
    tells_events: bool,
    /// Nothing could be read of the journal when it was durable so far: it is looked at again later.
    fruitless: Option<u64>,
    sender: Sender,
    board: Board,
}

/// Why a stream ended.
enum Ended {
    /// The daemon ends.
    Farewell,
    /// Another one represents the domain now.
    Moved,
    /// It broke, or nothing came.
    Broken(String),
    /// What came is not what is spoken, or the representative refused.
    Useless(Error),
}

type Reading = JoinHandle<(Outbox, Result<Option<Events>, segments::Error>)>;

impl Link {
    /// A report that has not started.
    #[must_use]
    pub fn new(own: Own) -> Link {
        let sender = Sender::new(own.identity.clone(), own.marks.clone());
        let outbox = own.outbox.another();
        let board = Board::default();
        Link { own, outbox: Some(outbox), tells_events: true, fruitless: None, sender, board }
    }

    /// A report of the host alone, for a representative that has the journal itself.
    #[must_use]
    pub fn without_events(self) -> Link {
        Link { tells_events: false, ..self }
    }

    /// What it does, for others.
    #[must_use]
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Report along `way` until `shutdown`; then say so.
    pub async fn run(mut self, mut way: impl Way, shutdown: CancellationToken) {
        let mut pause = PAUSE_LEAST;
        loop {
            let Some(stream) = self.opened(&mut way, &shutdown).await else { return };
            self.board.lock().streams_total += 1;
            let began = MachineClock.monotonic();
            let ended = self.report(stream, &mut way, &shutdown).await;
            (self.own.awaits)(false);
            self.sender.disconnect();
            self.show();
            let trouble = match ended {
                Ended::Farewell => return,
                Ended::Moved => {
                    pause = PAUSE_LEAST;
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
            self.board.lock().trouble = trouble;
            let was_well = MachineClock.monotonic().saturating_sub(began) >= WELL_AFTER;
            if was_well {
                pause = PAUSE_LEAST;
            }
            let pausing = tokio::time::sleep(jittered(pause));
            pause = (pause * 2).min(PAUSE_MOST);
            if self.away(pausing, &shutdown).await.is_none() {
                return;
            }
        }
    }

    /// A stream; none if the daemon ends first.
    async fn opened<W: Way>(&mut self, way: &mut W, shutdown: &CancellationToken) -> Option<W::Stream> {
        self.away(way.open(), shutdown).await
    }

    /// Wait; the sweeps of the meantime are not sent, and are counted.
    async fn away<T>(&mut self, waiting: impl Future<Output = T>, shutdown: &CancellationToken) -> Option<T> {
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
        let mut figures = self.board.lock();
        (figures.counts, figures.is_open) = (self.sender.counts(), self.sender.is_open());
    }

    /// Report on one stream until it ends.
    async fn report<W: Way>(
        &mut self,
        stream: W::Stream,
        way: &mut W,
        shutdown: &CancellationToken,
    ) -> Ended {
        let (mut read, mut write) = tokio::io::split(stream);
        let (oldest, next) = self.own.outbox.held();
        self.sender
            .connect(Held { oldest, next, acknowledged: (self.own.acknowledged)() }, MachineClock.wall());
        let mut durable = self.own.reader.durables();
        let mut telling = tokio::time::interval(STATE_EVERY);
        let answer_due = tokio::time::sleep(ANSWER_WITHIN);
        tokio::pin!(answer_due);
        let mut reading: Option<Reading> = None;
        let mut inbound = Vec::with_capacity(INBOUND_LEN_BYTES);
        let mut is_unflushed = false;
        loop {
            if reading.is_none() {
                let durable = *durable.borrow_and_update();
                reading = self.begin_reading(durable);
                (self.own.awaits)(reading.is_none() && self.awaits(durable));
            }
            let has_output = !self.sender.output().is_empty();
            tokio::select! {
                () = shutdown.cancelled() => {
                    self.farewell(write).await;
                    return Ended::Farewell;
                }
                () = way.moved() => return Ended::Moved,
                () = &mut answer_due, if !self.sender.is_open() => {
                    return Ended::Broken("the representative did not answer the hello".into());
                }
                got = read.read_buf(&mut inbound) => match got {
                    Ok(0) => return Ended::Broken("the representative ended it".into()),
                    Ok(_) => {
                        if let Err(error) = self.handle_bytes(&inbound) {
                            return Ended::Useless(error);
                        }
                        inbound.clear();
                    }
                    Err(error) => return Ended::Broken(error.to_string()),
                },
                put = put(&mut write, self.sender.output(), is_unflushed) => match put {
                    Ok(0) if has_output => return Ended::Broken("nothing more can be written".into()),
                    Ok(len) => {
                        self.sender.consume(len);
                        is_unflushed = has_output;
                    }
                    Err(error) => return Ended::Broken(error.to_string()),
                },
                done = done(&mut reading) => {
                    let Some((outbox, read)) = done else { return Ended::Farewell };
                    self.outbox = Some(outbox);
                    reading = None;
                    match read {
                        Ok(Some(events)) => self.sender.handle_events(events),
                        Ok(None) => self.fruitless = Some(*durable.borrow()),
                        Err(error) => return Ended::Broken(format!("the journal cannot be read: {error}")),
                    }
                }
                // The loop looks what there is.
                Ok(()) = durable.changed(), if reading.is_none() => {}
                Ok(()) = self.own.tables.changed() => self.sweep(),
                _ = telling.tick(), if self.sender.is_open() => {
                    self.fruitless = None;
                    let state = (self.own.state)();
                    self.sender.handle_state(state);
                }
            }
        }
    }

    /// Read what the sender wants of the journal, if there is any.
    fn begin_reading(&mut self, durable: u64) -> Option<Reading> {
        if !self.tells_events || self.fruitless == Some(durable) {
            return None;
        }
        let wanted = self.sender.wanted().filter(|wanted| wanted.from < durable)?;
        // Away only while another reading goes on, which the caller knows; else it was lost with a panic.
        let mut outbox = self.outbox.take().unwrap_or_else(|| self.own.outbox.another());
        Some(tokio::task::spawn_blocking(move || {
            let read = outbox.read(wanted.from, wanted.limit);
            (outbox, read)
        }))
    }

    /// Whether there is room for events, and all that is durable is on its way.
    fn awaits(&self, durable: u64) -> bool {
        self.tells_events && self.sender.wanted().is_some_and(|wanted| wanted.from >= durable)
    }

    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let handled = self.sender.handle_bytes(bytes);
        if let Some(mark) = self.sender.take_acknowledged() {
            (self.own.acknowledge)(mark);
        }
        self.sender.take_told().into_iter().for_each(&self.own.learn);
        self.show();
        handled
    }

    /// The last words.
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

/// The reading under way, when it is done; none if the process ends and does no more such work.
async fn done(reading: &mut Option<Reading>) -> Option<(Outbox, Result<Option<Events>, segments::Error>)> {
    match reading {
        Some(reading) => match reading.await {
            Ok(done) => Some(done),
            Err(error) if error.is_cancelled() => None,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
        None => std::future::pending().await,
    }
}

/// Write some of the output, or flush what was written: how many bytes were taken. May be dropped while it waits.
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

/// From half of `pause` to all of it: members do not come back all at once.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    let part = getrandom::u32().unwrap_or(u32::MAX);
    half + half.mul_f64(f64::from(part) / f64::from(u32::MAX))
}
