//! Feed of a handler: the entries of its subscription, events of the journal and metrics of the host.
//!
//! Rules: entries are removed only after the call that carried them was answered, or with the feed, so that a
//! module that fails or is replaced misses nothing that waits. Entries have the form of `sensor.take`,
//! `sensor.events` and `sensor.metrics`. Nothing more is read while entries wait, so that a slow handler
//! delays nothing else: its subscription misses entries and reports that; of the host's metrics it gets the
//! newest. If a subscription ended, a missed entry says so; if it was stopped, that is a failure.
//! Not here: when the handler is called (`task`).

use super::protocol::{self, Flow};
use crate::channel::hub::{self, Hub, Id, Part};
use crate::journal::reader::{Page, Reader};
use crate::process::boot_time;
use crate::sample::table::Table;
use crate::segments;
use rpc::codec;
use serde::Serialize;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Sleep;
use wire::api::metrics::{Metric, Value};
use wire::api::{self, UnixTime};
use wire::channel::ChannelRequest;
use wire::event::{Event, Kind};
use wire::name_match;
use wire::query::{Form, Integers, Syntax};
use wire::time::Time;

/// Entries taken from the subscription at once.
const ENTRIES_AT_A_TIME: usize = 64;
/// Most events per read, and most events checked for them.
const EVENTS_AT_A_TIME: usize = 256;
const LOOKED_AT_MAX: usize = 10_000;
/// Most metrics of a sweep that are sent.
const FIGURES_MAX: usize = 4096;
/// Longest wait for an entry before the next request: less than the time after which an idle subscription
/// ends. Also the pause after a failed read.
const WAIT: Duration = Duration::from_secs(20);

/// Sources of feeds; cheap to clone.
#[derive(Clone)]
pub struct Sources {
    pub hub: Hub,
    pub reader: Reader,
    pub sweeps: watch::Receiver<Option<Arc<Table>>>,
}

/// Feed of one handler.
pub struct Feed {
    flow: Flow,
    hub: Hub,
    subscribed: Option<Id>,
    journal: Journal,
    sweeps: watch::Receiver<Option<Arc<Table>>>,
    /// Encoded entries that are not sent yet, or were sent in a call that was not answered.
    entries: VecDeque<String>,
    booted: Time,
    trouble: Option<String>,
}

struct Journal {
    reader: Reader,
    next: watch::Receiver<u64>,
    cursor: u64,
    /// Read in progress; it continues when another source delivers first.
    reading: Option<JoinHandle<Result<Page<Entry>, segments::Error>>>,
    /// Pause after a failed read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Feed {
    /// Subscribes to what the handler requests, from now on.
    ///
    /// # Errors
    /// If the subscription is refused.
    pub fn new(sources: &Sources, flow: Flow) -> Result<Feed, hub::Error> {
        let subscribed = flow
            .processes
            .clone()
            .map(|wanted| sources.hub.subscribe_own(Part::Module, wanted))
            .transpose()?;
        let reader = sources.reader.clone();
        let mut next = reader.next();
        let cursor = *next.borrow_and_update();
        let mut sweeps = sources.sweeps.clone();
        sweeps.mark_unchanged();
        Ok(Feed {
            flow,
            hub: sources.hub.clone(),
            subscribed,
            journal: Journal { reader, next, cursor, reading: None, pause: None },
            sweeps,
            entries: VecDeque::new(),
            booted: boot_time::booted(),
            trouble: None,
        })
    }

    /// Changes the request from now on. What waits stays. Subscribes again if the subscription has ended.
    ///
    /// # Errors
    /// If the subscription is refused: the feed stays as it was.
    pub fn alter(&mut self, flow: Flow) -> Result<(), hub::Error> {
        match (self.subscribed.filter(|id| self.hub.has(*id)), flow.processes.clone()) {
            (Some(id), Some(wanted)) if self.flow.processes.as_ref() != Some(&wanted) => {
                self.hub.alter::<hub::Error>(id, |_| Ok(wanted.clone()))?;
            }
            (Some(_), Some(_)) => {}
            (None, Some(wanted)) => {
                self.subscribed = Some(self.hub.subscribe_own(Part::Module, wanted)?);
                if self.flow.processes.is_some() {
                    self.miss_samples();
                }
            }
            (_, None) => self.end_subscription(),
        }
        if self.flow.events.is_none() {
            self.journal.cursor = *self.journal.next.borrow_and_update();
        }
        if self.flow.events != flow.events {
            // The read in progress has the old selection; it is repeated.
            self.journal.reading = None;
        }
        self.flow = flow;
        Ok(())
    }

    /// Waits until there are entries to send. Safe to cancel.
    pub async fn ready(&mut self) {
        while self.entries.is_empty() {
            let Feed { flow, hub, subscribed, journal, sweeps, .. } = self;
            let delivery = tokio::select! {
                delivery = take_entries(hub, *subscribed, flow.processes.as_ref()) => delivery,
                delivery = journal.read(flow) => Delivery::Entries(delivery),
                delivery = swept(sweeps, &flow.metrics) => Delivery::Entries(delivery),
            };
            self.take(delivery);
        }
    }

    fn take(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Entries(entries) => self.entries.extend(entries.iter().map(written)),
            Delivery::Answer(answer) => {
                let of_subscription = |entry| api::entries::Entry::of(entry, self.booted);
                let entries = answer.entries.into_iter().map(of_subscription);
                self.entries.extend(entries.map(|entry| written(&entry)));
                // What still waits in it comes first.
                if let Some(reason) = answer.status.quarantined.filter(|_| answer.status.waiting.0 == 0) {
                    self.trouble = Some(format!("its subscription was stopped: {reason}"));
                    self.end_subscription();
                }
            }
            Delivery::Again(Ok(id)) => {
                self.subscribed = Some(id);
                self.miss_samples();
            }
            Delivery::Again(Err(error)) => {
                self.trouble = Some(error.to_string());
                self.subscribed = None;
            }
        }
    }

    /// Builds a call with the entries that wait; returns it with their number.
    #[must_use]
    pub fn call(&self) -> (String, usize) {
        protocol::call_handle(self.entries.iter())
    }

    /// Removes the first entries, after the call that carried them was answered.
    pub fn mark_delivered(&mut self, entries: usize) {
        self.entries.drain(..entries.min(self.entries.len()));
    }

    /// Number of entries that wait here.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.entries.len()
    }

    /// Failure of the feed, returned once: the caller must alter or drop the feed.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// The number of samples missed is unknown; 1 is reported.
    fn miss_samples(&mut self) {
        self.entries.push_back(written(&missed("samples, as the subscription had ended", 1)));
    }

    fn end_subscription(&mut self) {
        if let Some(id) = self.subscribed.take() {
            // A subscription that ended by itself is fine too.
            let _ = self.hub.unsubscribe(id);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.end_subscription();
    }
}

enum Delivery {
    Answer(Box<hub::Answer>),
    Entries(Vec<Entry>),
    /// The subscription had ended, because nothing was taken from it, and was made again.
    Again(Result<Id, hub::Error>),
}

async fn take_entries(hub: &Hub, subscribed: Option<Id>, wanted: Option<&ChannelRequest>) -> Delivery {
    let (Some(id), Some(wanted)) = (subscribed, wanted) else { return std::future::pending().await };
    loop {
        match hub.take(id, ENTRIES_AT_A_TIME, WAIT).await {
            Ok(answer) if answer.entries.is_empty() && answer.status.quarantined.is_none() => {}
            Ok(answer) => return Delivery::Answer(Box::new(answer)),
            Err(_) => return Delivery::Again(hub.subscribe_own(Part::Module, wanted.clone())),
        }
    }
}

impl Journal {
    /// Reads the next events. Safe to cancel.
    async fn read(&mut self, flow: &Flow) -> Vec<Entry> {
        let Some(kinds) = &flow.events else { return std::future::pending().await };
        loop {
            if let Some(pause) = &mut self.pause {
                pause.await;
                self.pause = None;
            }
            if self.reading.is_none() {
                if self.cursor >= *self.next.borrow_and_update() {
                    if self.next.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                    continue;
                }
                self.reading = Some(self.begin(kinds.clone()));
            }
            let Some(reading) = &mut self.reading else { continue };
            let page = reading.await;
            self.reading = None;
            let Ok(Ok(page)) = page else {
                // A failed read may succeed later; the pause prevents a busy loop.
                self.pause = Some(Box::pin(tokio::time::sleep(WAIT)));
                continue;
            };
            self.cursor = page.cursor.max(self.cursor);
            let mut entries = page.events;
            if page.missed > 0 {
                entries.insert(0, missed("events", page.missed));
            }
            if !entries.is_empty() {
                return entries;
            }
        }
    }
}

impl Journal {
    fn begin(&self, kinds: Vec<Kind>) -> JoinHandle<Result<Page<Entry>, segments::Error>> {
        let (reader, cursor) = (self.reader.clone(), self.cursor);
        tokio::task::spawn_blocking(move || {
            let fits = |event: &Event| kinds.is_empty() || kinds.contains(&event.content.kind);
            let take =
                |event: &Event| fits(event).then(|| Entry::Event { event: Box::new(event.clone().into()) });
            reader.read_some(cursor, EVENTS_AT_A_TIME, LOOKED_AT_MAX, take)
        })
    }
}

/// An entry that does not come from the subscription.
#[derive(Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Entry {
    Event { event: Box<api::events::Event> },
    Missed { of: &'static str, count: u64 },
    Figures { time: UnixTime, figures: Vec<Metric> },
}

fn missed(of: &'static str, count: u64) -> Entry {
    Entry::Missed { of, count }
}

async fn swept(
    sweeps: &mut watch::Receiver<Option<Arc<Table>>>,
    names: &[compact_str::CompactString],
) -> Vec<Entry> {
    if names.is_empty() {
        return std::future::pending().await;
    }
    loop {
        if sweeps.changed().await.is_err() {
            return std::future::pending().await;
        }
        let Some(table) = sweeps.borrow_and_update().clone() else { continue };
        let fits = |name: &str| names.iter().any(|wanted| name_match::matches(wanted, name));
        let rows = table.rows().filter(|(metric, _)| fits(&metric.name)).take(FIGURES_MAX);
        let figures: Vec<Metric> =
            rows.map(|(metric, value)| Metric { value: Some(Value(value)), ..Metric::of(metric) }).collect();
        if !figures.is_empty() {
            return vec![Entry::Figures { time: UnixTime(table.time()), figures }];
        }
    }
}

/// Encodes an entry as JSON; one that is too long for a call becomes a missed entry.
fn written(entry: &impl Serialize) -> String {
    let text = json(entry);
    if text.len() + 64 > protocol::CALL_LEN_MAX_BYTES {
        return json(&missed("entries too long for a call", 1));
    }
    text
}

fn json(entry: &impl Serialize) -> String {
    const FORM: Form = Form { syntax: Syntax::Json, integers: Integers::Number };
    let mut text = codec::document(FORM, entry, &[]).expect("its maps have texts as keys");
    text.truncate(text.trim_end().len());
    text
}
