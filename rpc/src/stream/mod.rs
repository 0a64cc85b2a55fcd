//! Streams: the successive answers of a read method as server-sent events on one connection.
//!
//! ```text
//! GET /api/v1/METHOD?…&follow=SECONDS ─▶ request ─▶ Follows::begin: declared, permitted, counted ─▶ Following (the body)
//!                    a task per subscription: when due ─▶ dispatch ─▶ event ─▶ table ─▶ its streams
//!                    each second: streams without permission are closed; idle ones are sent a comment
//! ```
//! Rules: identical requests share one subscription, with one call and one encoding; permissions are checked
//! when a stream starts and each second after; the lock is held for one decision, never across an await; a
//! subscription ends with its last stream.
//! Not here: decisions (`table`, `limits`), encoding (`event`), sockets (`guarded_stream`).

pub(crate) mod backpressure;
pub(crate) mod body;
pub(crate) mod request;

mod event;
mod limits;
mod position;
mod table;

use crate::codec::json;
use crate::codec::value::{Name, Value};
use crate::dispatch::encoded_answer::Answered;
use crate::dispatch::method::{Handler, Method, Reading};
use crate::dispatch::params::BIG_INTEGERS;
use crate::dispatch::permissions::{CallTarget, Permissions, Permit, Scope};
use crate::dispatch::statistics::Statistics;
use crate::dispatch::{Dispatcher, checked, now, too_large};
use crate::fault::Fault;
use crate::stream_limits::StreamLimits;
use backpressure::ClientConnection;
use body::Following;
use bytes::Bytes;
use event::Event;
use limits::Asker;
use request::StreamRequest;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use table::{Key, Next, Place, Table};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use wire::fault;
use wire::query::Viewer;
use wire::time::Moment;

/// Parameter of methods that wait until there is data (long polling).
const WAIT: &str = "wait";

/// All streams of one listener.
pub(crate) struct Follows {
    inner: Mutex<Inner>,
    bounds: StreamLimits,
    statistics: Arc<Statistics>,
    began: Instant,
    to_ask: mpsc::Sender<Asking>,
}

struct Inner {
    table: Table<Option<Arc<Grant>>>,
    /// Cancels the task of each subscription.
    stops: BTreeMap<u64, CancellationToken>,
    /// Number of subscriptions so far with a position of their own.
    positions: u64,
}

/// Permissions of a client when its stream started.
struct Grant {
    access: Arc<dyn Permissions>,
    method: &'static str,
    domain: Option<String>,
    host: Option<String>,
}

/// State of the task of a subscription.
struct Asking {
    question: u64,
    method: &'static str,
    arguments: Vec<Value>,
    stop: CancellationToken,
    /// Whether each call continues at the cursor of the previous answer.
    has_cursor: bool,
    /// Permit of the first stream's call, until the first answer.
    held: Option<Permit>,
    /// Local user or role on whose behalf it asks; all its streams share one answer.
    viewer: Viewer,
}

/// The tasks of one listener's subscriptions.
pub(crate) struct Tasks {
    new: mpsc::Receiver<Asking>,
}

impl Follows {
    pub(crate) fn new(bounds: StreamLimits, statistics: Arc<Statistics>) -> (Arc<Follows>, Tasks) {
        let (to_ask, new) = mpsc::channel(bounds.questions.max(1));
        let inner =
            Mutex::new(Inner { table: Table::new(bounds.clone()), stops: BTreeMap::new(), positions: 0 });
        (Arc::new(Follows { inner, bounds, statistics, began: Instant::now(), to_ask }), Tasks { new })
    }

    /// Number of streams.
    pub(crate) fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// Start a stream of `method`.
    ///
    /// # Errors
    /// If the method cannot be streamed, the caller may not call it, the parameters are wrong, or a limit is
    /// reached.
    pub(crate) fn begin(
        self: &Arc<Self>,
        dispatcher: &Dispatcher,
        scope: &Scope,
        (method, arguments): (&Method, Vec<Value>),
        every: Duration,
        conversation: &ClientConnection,
    ) -> Result<Following, Fault> {
        let declaration = &method.declaration;
        let name = declaration.name;
        if declaration.reading != Reading::Only || matches!(method.handler, Handler::Introspection(_)) {
            return Err(Fault::invalid_request(format!(
                "{name} cannot be followed: expected a method that reads how something is"
            )));
        }
        let (params, held) = checked(method, arguments.clone(), &dispatcher.limits, scope)?;
        let is_none =
            |value: &Value| matches!(value, Value::Nil | Value::Int(0)) || *value == Value::Double(0.0);
        if params.value(WAIT).is_some_and(|value| !is_none(value)) {
            return Err(Fault::invalid_params(format!(
                "{WAIT}: expected none where {name} is followed, found one; follow says how often it is asked"
            )));
        }
        let integers = given(&arguments, BIG_INTEGERS);
        let mut values = params.values().to_vec();
        for (name, value) in values.iter_mut().filter(|(name, _)| declaration.is_time(name)) {
            // A span before now is relative to each call, not to the first one.
            if let Some(text @ Value::Text(_)) = given(&arguments, name) {
                *value = text.clone();
            }
        }
        values.extend(integers.map(|value| (Name::Borrowed(BIG_INTEGERS), value.clone())));
        values.sort_by(|(one, _), (other, _)| one.cmp(other));
        let values = Value::Struct(values);
        let has_cursor = position::has_cursor(declaration);
        let position = if has_cursor { self.new_position() } else { 0 };
        let viewer = scope.viewer;
        let key = Key { method: name, params: json::write_answer(&values), every, position, viewer };
        let owned = |name| params.text(name).map(|text| text.map(str::to_owned));
        let (domain, host) = (owned("domain")?, owned("host")?);
        let access = scope.access.clone();
        let account = access.as_ref().map(|access| access.who().into());
        let permit = access.map(|access| Arc::new(Grant { access, method: name, domain, host }));
        let asker = Asker { source: conversation.source.key(), account };
        let place = self.take(key, asker, permit, |question, stop| Asking {
            question,
            method: name,
            arguments: vec![values],
            stop,
            has_cursor,
            held: Some(held),
            viewer,
        })?;
        Ok(Following::new(Arc::clone(self), place, Arc::clone(&conversation.pipe)))
    }

    /// A new number for a subscription that advances by its own cursor, which later streams cannot share.
    fn new_position(&self) -> u64 {
        let mut inner = self.lock();
        inner.positions += 1;
        inner.positions
    }

    fn take(
        &self,
        key: Key,
        asker: Asker,
        permit: Option<Arc<Grant>>,
        asking: impl FnOnce(u64, CancellationToken) -> Asking,
    ) -> Result<Place, Fault> {
        let busy = |refused: &dyn std::fmt::Display| Fault::new(fault::BUSY, refused.to_string());
        let mut inner = self.lock();
        let started = inner.table.begin(key, asker, permit, self.now());
        let (place, is_new) = started.map_err(|refused| {
            self.statistics.follows_refused_total.add(1);
            busy(&refused)
        })?;
        if is_new {
            let stop = CancellationToken::new();
            if self.to_ask.try_send(asking(place.question, stop.clone())).is_err() {
                inner.table.leave(place);
                return Err(busy(&"expected fewer new streams at a time; try again later"));
            }
            inner.stops.insert(place.question, stop);
        }
        drop(inner);
        self.statistics.follows_total.add(1);
        self.statistics.followers.add(1);
        Ok(place)
    }

    /// The next event for the stream at `place`.
    pub(crate) fn next(&self, place: Place, is_clear: bool, waker: &Waker) -> Next {
        let next = self.lock().table.poll(place, is_clear, waker, self.now());
        match &next {
            Next::Event(_, skipped) => {
                self.statistics.updates_total.add(1);
                self.statistics.updates_skipped_total.add(*skipped);
            }
            Next::Comment | Next::Nothing | Next::End(_) => {}
        }
        next
    }

    /// Remove the stream at `place`; `is_cut` is whether its client read nothing in time.
    pub(crate) fn leave(&self, place: Place, is_cut: bool) {
        let mut inner = self.lock();
        if inner.table.leave(place)
            && let Some(stop) = inner.stops.remove(&place.question)
        {
            stop.cancel();
        }
        drop(inner);
        self.statistics.followers.subtract(1);
        self.statistics.followers_cut_total.add(u64::from(is_cut));
    }

    /// Close all streams.
    pub(crate) fn end(&self) {
        let woken = self.lock().table.end();
        wake(woken);
    }

    /// Close streams that lost their permission, and send comments on idle ones.
    fn look(&self) {
        let (silent, all) = {
            let mut inner = self.lock();
            (inner.table.silent(self.now()), inner.table.all())
        };
        wake(silent);
        // Not under the lock: the permissions have a lock of their own.
        for (place, permit) in all {
            let Some(Err(fault)) = permit.map(|permit| permit.check()) else { continue };
            let waker = self.lock().table.let_go(place, self.farewell(&fault));
            self.statistics.followers_cut_total.add(1);
            wake(waker);
        }
    }

    /// The last event of a stream.
    fn farewell(&self, fault: &Fault) -> Bytes {
        Event::fault(0, now(), fault).bytes(0).1
    }

    /// Send an answer to all streams of a subscription. Returns whether it was delivered, and not replaced by
    /// a fault.
    fn put(&self, question: u64, number: u64, answer: Result<Bytes, Fault>) -> bool {
        let most = self.bounds.answer_bytes;
        let written = answer.and_then(|text| if text.len() > most { Err(too_large(most)) } else { Ok(text) });
        let len_bytes = written.as_ref().map_or(0, Bytes::len);
        let slow = Fault::new(
            fault::BUSY,
            "expected that answers are taken as they come, found too much waiting for slow clients; follow again, \
             less often",
        );
        let (has_room, gone) = self.lock().table.make_room(question, len_bytes, &self.farewell(&slow));
        self.statistics.followers_cut_total.add(gone.len() as u64);
        wake(gone);
        let written = if has_room { written } else { Err(slow) };
        if let Err(fault) = &written
            && does_not_pass(fault)
        {
            wake(self.lock().table.let_all_go(question, &self.farewell(fault)));
            return false;
        }
        let event = match &written {
            Ok(json) => Event::answer(number, now(), &String::from_utf8_lossy(json)),
            Err(fault) => Event::fault(number, now(), fault),
        };
        let woken = self.lock().table.put(question, event, self.now());
        wake(woken);
        written.is_ok()
    }

    fn now(&self) -> Moment {
        Moment(self.began.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change behind the lock is complete in one step, so a poisoned lock is safe.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grant {
    fn check(&self) -> Result<(), Fault> {
        let (domain, host) = (self.domain.as_deref(), self.host.as_deref());
        self.access.may_still(CallTarget { method: self.method, is_reading: true, domain, host, kind: None })
    }
}

impl Tasks {
    /// Run the tasks of the subscriptions, as long as it is polled.
    pub(crate) async fn run(mut self, follows: Arc<Follows>, dispatcher: Arc<Dispatcher>) {
        let mut asked = JoinSet::new();
        let mut look = interval(follows.bounds.look_interval);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(asking) = self.new.recv() => {
                    asked.spawn(asking.run(Arc::clone(&follows), Arc::clone(&dispatcher)));
                }
                Some(_) = asked.join_next() => {}
                _ = look.tick() => follows.look(),
            }
        }
    }
}

impl Asking {
    async fn run(mut self, follows: Arc<Follows>, dispatcher: Arc<Dispatcher>) {
        let stop = self.stop.clone();
        let asking = async {
            let mut number = 0;
            loop {
                let at = follows.lock().table.ask_at(self.question, follows.now());
                let Some(at) = at else { return };
                sleep_until(follows.began + at.0).await;
                // Otherwise a slow client would skip answers, and events with them.
                if self.has_cursor && !follows.lock().table.is_given(self.question) {
                    continue;
                }
                let answer = dispatcher
                    .call_for_all(self.viewer, follows.bounds.ask_time, self.method, self.arguments.clone())
                    .await
                    .map(Answered::into_json);
                drop(self.held.take());
                number += 1;
                let is_delivered = follows.put(self.question, number, answer.clone());
                if self.has_cursor
                    && is_delivered
                    && let Ok(answer) = answer
                {
                    position::advance(&mut self.arguments, &answer);
                }
            }
        };
        tokio::select! {
            () = asking => {}
            () = stop.cancelled() => {}
        }
    }
}

impl StreamRequest {
    /// Parse the stream parameters of a request; `None` if it requests a single answer.
    pub(crate) fn of_request<B>(request: &hyper::Request<B>) -> Result<Option<StreamRequest>, Fault> {
        let accept = request.headers().get(hyper::header::ACCEPT).and_then(|value| value.to_str().ok());
        StreamRequest::of(request.uri().query().unwrap_or_default(), accept)
    }
}

/// Whether the fault is permanent for this subscription. An answer that is too large now may be smaller
/// later.
fn does_not_pass(fault: &Fault) -> bool {
    fault::is_final(fault.code) && fault.code != fault::TOO_LARGE
}

/// The argument `name` of the call.
fn given<'a>(arguments: &'a [Value], name: &str) -> Option<&'a Value> {
    let Some(Value::Struct(members)) = arguments.first() else { return None };
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn wake(all: impl IntoIterator<Item = Waker>) {
    all.into_iter().for_each(Waker::wake);
}
