//! Task of a relayed stream: rebuilds a table from the host's entries, and shows it to the consumers at each
//! sweep.
//!
//! Shell. Rules: a running call is never cancelled, because the entries that it takes would be lost. A host
//! that no longer knows the stream is subscribed to again at once, one that stopped it after a delay, one
//! that cannot be reached again and again. Entries that it did not send meanwhile count as missed.
//! Not here: the consumers (`relays`).

use super::{AFTER_STOP, AGAIN, HostClient, LIMIT, PATIENCE, Relays, Stream, WAIT};
use crate::channel::event_evaluation::EventOrCall;
use crate::channel::host_evaluation::Sweep;
use crate::channel::relay::{Applied, RebuiltTable, Tables};
use crate::process::tap::Tap;
use crate::representative::cursor::Cursor;
use crate::sample::schedule::Rate;
use crate::sample::ticker::{locked, running};
use rpc::dispatch::typed::{answer_of, params_of};
use rpc::fault::Fault;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use wire::api::channels::{AlterParams, Settings, SubscribeParams, UnsubscribeParams};
use wire::api::entries::{TakeAnswer, TakeParams};
use wire::api::{Request, Span};
use wire::channel::stream::{Body, Entry, RECORDS_MAX};
use wire::channel::{Budget, CPU_MAX_MS, Kind, QUEUE_MAX_BYTES};
use wire::fault;

/// Runs the tasks of the streams.
pub struct StreamRunner {
    pub(super) relays: Relays,
    pub(super) new_streams: mpsc::Receiver<Arc<Stream>>,
    pub(super) asker: Arc<dyn HostClient>,
}

impl StreamRunner {
    /// Runs until `shutdown`.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let (mut tasks, mut streams) = (JoinSet::new(), HashMap::<Id, Arc<Stream>>::new());
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(ended) = tasks.join_next_with_id() => {
                    let stream = streams.remove(&ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id));
                    if let (Err(_), Some(stream)) = (ended, stream) {
                        // Its consumers still wait for it.
                        tracing::error!(host = %stream.key.host, "the task of a stream failed; restarting it");
                        self.feed(stream, AGAIN, &mut tasks, &mut streams);
                    }
                }
                Some(stream) = self.new_streams.recv() => {
                    self.feed(stream, Duration::ZERO, &mut tasks, &mut streams);
                }
            }
        }
    }

    fn feed(
        &self,
        stream: Arc<Stream>,
        after: Duration,
        tasks: &mut JoinSet<()>,
        streams: &mut HashMap<Id, Arc<Stream>>,
    ) {
        let feeding = Feeder::new(Arc::clone(&stream), self.relays.clone(), Arc::clone(&self.asker));
        let task = tasks.spawn(async move {
            tokio::time::sleep(after).await;
            feeding.run().await;
        });
        streams.insert(task.id(), stream);
    }
}

/// State of the task of a stream.
struct Feeder {
    stream: Arc<Stream>,
    relays: Relays,
    asker: Arc<dyn HostClient>,
    source: Option<Source>,
    table: RebuiltTable,
    tables: Tables,
    /// For events and calls: where to continue if the subscription at the host ends.
    place: Option<Cursor>,
    tap: Box<dyn Tap>,
    /// Since when the host cannot be reached.
    away_since: Option<Duration>,
}

/// Reason why a stream does not continue.
enum FeedError {
    /// The host no longer knows the subscription.
    Ended,
    /// The host stopped it, with this reason.
    Stopped(String),
    /// The host rejects the request.
    Refused(Fault),
    /// The host cannot be reached.
    Away(Fault),
}

impl From<Fault> for FeedError {
    fn from(fault: Fault) -> FeedError {
        if fault.code == fault::NOT_FOUND { FeedError::Ended } else { FeedError::Away(fault) }
    }
}

/// Subscription at the host.
#[derive(Clone)]
struct Source {
    id: String,
    rate: Rate,
    /// Whether a whole sample was requested since the table was lost.
    is_mended: bool,
}

impl Feeder {
    fn new(stream: Arc<Stream>, relays: Relays, asker: Arc<dyn HostClient>) -> Feeder {
        let tap = stream.hub.tap();
        Feeder {
            stream,
            relays,
            asker,
            source: None,
            table: RebuiltTable::default(),
            tables: Tables::default(),
            place: None,
            tap,
            away_since: None,
        }
    }

    /// Runs until the stream has no consumers.
    async fn run(mut self) {
        while !self.relays.end_if_idle(&self.stream) {
            self.stream.hub.drop_idle(running());
            let Err(trouble) = self.step().await else {
                self.is_back();
                continue;
            };
            self.away_since.get_or_insert_with(running);
            let (fault, pause) = match trouble {
                // The host's sensor was restarted, or nothing was taken for too long: subscribe again at
                // once.
                FeedError::Ended => {
                    self.source = None;
                    continue;
                }
                FeedError::Stopped(reason) => {
                    (self.unavailable(&format!("it stopped the stream: {reason}")), AFTER_STOP)
                }
                FeedError::Refused(fault) => (Fault::new(fault::INVALID_PARAMS, fault.message), AGAIN),
                FeedError::Away(fault) => (self.unavailable(&fault.message), AGAIN),
            };
            locked(&self.stream.state).failing = Some(fault);
            let stream = Arc::clone(&self.stream);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // A consumer was added, removed or altered.
                () = stream.altered.notified() => tokio::time::sleep(AGAIN).await,
            }
        }
        if let Some(Source { id, .. }) = self.source.take() {
            // If this fails, the subscription ends by itself when nothing is taken.
            self.unsubscribe(id).await;
        }
    }

    /// Clears the failure; entries that the host did not send meanwhile count as missed.
    fn is_back(&mut self) {
        locked(&self.stream.state).failing = None;
        let kind = self.stream.key.kind;
        if kind.happens() {
            // It continues in the journal where it was.
            self.away_since = None;
        }
        let is_known = kind != Kind::Process || self.table.is_known();
        if let (Some(since), Some(source), true) = (self.away_since, &self.source, is_known) {
            let rate_hz = source.rate.hz();
            let away = running().saturating_sub(since).as_secs_f64();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            self.stream.hub.miss((away * rate_hz) as u64, rate_hz, 0);
            self.away_since = None;
        }
    }

    fn unavailable(&self, why: &str) -> Fault {
        Fault::unavailable(format!("{} cannot be subscribed to now: {why}", self.stream.key.host))
    }

    async fn step(&mut self) -> Result<(), FeedError> {
        let Some(source) = self.source.clone() else { return self.begin().await };
        let kind = self.stream.key.kind;
        if kind == Kind::Process && !self.table.is_known() && !source.is_mended {
            self.alter(&source.id, source.rate).await?;
        }
        let wait = Span(WAIT);
        let params = TakeParams { subscription: source.id.clone(), limit: LIMIT, wait, packed: true };
        let (host, viewer) = (&self.stream.key.host, self.stream.key.viewer);
        let mut taking =
            self.asker.call(host, viewer, TakeParams::METHOD, params_of(&params)?, WAIT + PATIENCE);
        // A running call is not cancelled when the rate is altered: the entries that it takes would be lost.
        let answer = loop {
            let rate = self.stream.ticker.rate();
            if self.source.as_ref().is_some_and(|source| source.rate != rate) {
                self.alter(&source.id, rate).await?;
            }
            let stream = Arc::clone(&self.stream);
            tokio::select! {
                answer = &mut taking => break answer?,
                () = stream.altered.notified() => {}
                // A condition may be waiting for a time without events.
                () = tokio::time::sleep(rate.period()), if kind.happens() => {
                    let now = running();
                    self.stream.hub.check_due(self.table.stream.of_source(now), now);
                }
            }
        };
        let answer = answer_of::<TakeParams>(answer)?;
        self.feed(&answer)?;
        if let Some(reason) = answer.quarantined {
            // So that it takes no room there until it ends by itself.
            self.unsubscribe(source.id).await;
            self.source = None;
            return Err(FeedError::Stopped(reason));
        }
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), FeedError> {
        let rate = self.stream.ticker.rate();
        let place = self.place.as_ref().map(ToString::to_string);
        let wanted = self.wanted(rate, place);
        let mut made = self.ask(&wanted, PATIENCE).await;
        if self.place.is_some() && made.as_ref().is_err_and(|fault| fault.code == fault::INVALID_PARAMS) {
            // Its journal is a new one: everything in it was added since.
            let wanted = self.wanted(rate, Some(String::new()));
            made = self.ask(&wanted, PATIENCE).await;
        }
        let made = made.map_err(|fault| match fault.code {
            // For example a user that the host does not know.
            fault::NOT_FOUND | fault::INVALID_PARAMS => FeedError::Refused(fault),
            _ => FeedError::Away(fault),
        })?;
        self.place = made.cursor.and_then(|cursor| cursor.parse().ok());
        let id = made.subscription.ok_or_else(|| unreadable("it names no subscription"))?;
        self.source = Some(Source { id, rate, is_mended: true });
        self.table.restart();
        Ok(())
    }

    /// Alters the rate. After any change, even to the same rate, the host continues with a whole sample.
    async fn alter(&mut self, id: &str, rate: Rate) -> Result<(), FeedError> {
        let settings = Settings { rate_hz: Some(rate.hz()), ..Settings::default() };
        self.ask(&AlterParams { subscription: id.to_owned(), settings }, PATIENCE).await?;
        self.source = Some(Source { id: id.to_owned(), rate, is_mended: true });
        Ok(())
    }

    /// Ends a subscription. If this fails, it ends by itself when nothing is taken.
    async fn unsubscribe(&mut self, subscription: String) {
        let _ended = self.ask(&UnsubscribeParams { subscription }, PATIENCE).await;
    }

    fn feed(&mut self, answer: &TakeAnswer) -> Result<(), FeedError> {
        let packed = answer.packed.as_ref().ok_or_else(|| unreadable("it has no entries"))?;
        let entries: Vec<Entry> =
            postcard::from_bytes(&packed.0).map_err(|error| unreadable(&error.to_string()))?;
        if let Some(booted) = answer.booted {
            locked(&self.stream.state).booted = Some(booted.0);
        }
        let now = running();
        for entry in entries {
            let at_ns = entry.at_ns;
            if self.stream.key.kind != Kind::Process {
                self.feed_other(entry, now)?;
                continue;
            }
            match self.table.apply(entry, now) {
                Applied::Sweep { at, lost } => {
                    self.lose(lost, at_ns);
                    self.tap.swept(self.table.view(), at);
                }
                Applied::Lost(count) => {
                    self.lose(count, at_ns);
                    self.source.iter_mut().for_each(|source| source.is_mended = false);
                }
                Applied::TooMany => {
                    return Err(too_many("processes"));
                }
                Applied::Nothing => {}
            }
        }
        Ok(())
    }

    /// Handles an entry of a kind other than processes.
    fn feed_other(&mut self, entry: Entry, now: Duration) -> Result<(), FeedError> {
        let lost = self.table.stream.lost(&entry);
        let (at_ns, at) = (entry.at_ns, self.table.stream.own(entry.at_ns, now));
        self.lose(lost, at_ns);
        match entry.body {
            Body::Readings { left_out, .. } if left_out > 0 => return Err(too_many("metrics")),
            Body::Readings { sweep, readings, .. } => {
                let table = self.tables.table(readings);
                self.stream.hub.swept_host(&Sweep { number: sweep, at_ns, table: &table }, at);
            }
            Body::Event(event) => {
                self.go_to(event.number + 1);
                self.stream.hub.pass_event(&EventOrCall::Event(&event), at_ns, at);
            }
            Body::Call(call) => {
                // One event may have two entries; the second may not have arrived yet.
                self.go_to(call.number);
                self.stream.hub.pass_event(&EventOrCall::Call(&call), at_ns, at);
            }
            Body::Missed(count) => self.lose(count, at_ns),
            Body::Sample { .. } | Body::Signal { .. } | Body::Quarantined(_) | Body::Figures(_) => {}
        }
        Ok(())
    }

    fn go_to(&mut self, number: u64) {
        let store = self.place.as_ref().and_then(Cursor::store);
        self.place = store.map(|store| Cursor::new(store, number));
    }

    fn lose(&mut self, count: u64, at_ns: u64) {
        if let Some(source) = self.source.as_ref().filter(|_| count > 0) {
            self.stream.hub.miss(count, source.rate.hz(), at_ns);
        }
    }

    fn wanted(&self, rate: Rate, cursor: Option<String>) -> SubscribeParams {
        let key = &self.stream.key;
        let budget = Budget { cpu_ms: CPU_MAX_MS, queue_bytes: QUEUE_MAX_BYTES / 8, ..Budget::default() };
        let settings = Settings {
            selection: key.selection.clone(),
            rate_hz: Some(rate.hz()),
            filter: Some(key.filter.clone()),
            changes: Some(key.kind == Kind::Process),
            budget: Some(budget.into()),
            ..Settings::default()
        };
        SubscribeParams { kind: key.kind, settings, cursor }
    }

    async fn ask<R: Request>(&mut self, request: &R, time: Duration) -> Result<R::Answer, Fault> {
        let key = &self.stream.key;
        answer_of::<R>(self.asker.call(&key.host, key.viewer, R::METHOD, params_of(request)?, time).await?)
    }
}

fn too_many(what: &str) -> FeedError {
    let message = format!("more than {RECORDS_MAX} of its {what} pass; choose fewer");
    FeedError::Away(Fault::unavailable(message))
}

fn unreadable(what: &str) -> Fault {
    Fault::unavailable(format!("the host's answer cannot be read: {what}; is it of another version?"))
}
