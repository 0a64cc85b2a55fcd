//! Relayed subscriptions to other hosts, at the daemon that represents their domain: consumers with the same
//! request to a host share one stream of it, at the highest rate that one of them requests.
//!
//! Shell: the consumers, and a task for each stream. Rules: a stream ends with its last consumer. While a
//! host cannot be reached its consumers receive the reason, and continue when it answers. Entries lost in
//! transit count as missed for each of them.
//! Not here: what the source evaluates and what is evaluated here (`channel::relay`), reaching the host
//! ([`HostClient`]), the task of a stream (`feeder`).

mod feeder;

use super::{of_peer, request, standing, take_answer};
use crate::channel::budget::Usage;
use crate::channel::hub::{Budget, Error, Hub, Id, OWN_MIN, OWN_QUEUES_MIN_BYTES};
use crate::channel::owner::Owner;
use crate::channel::relay;
use crate::channel::subscription::CompiledRequest;
use crate::sample::schedule::{RATE_MIN_HZ, Rate};
use crate::sample::ticker::{Ticker, locked};
pub use feeder::StreamRunner;
use rpc::codec::value::{Name, Value};
use rpc::dispatch::encoded_answer::Answering;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Answer;
use rpc::dispatch::params::Params;
use rpc::dispatch::typed::answered;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use wire::api::Request;
use wire::api::channels::{
    AlterParams, Selection, Settings, SubscribeParams, Subscription, UnsubscribeParams,
};
use wire::api::entries::{TakeAnswer as Entries, TakeParams};
use wire::channel::filter::Filter;
use wire::channel::{ChannelRequest, Kind};
use wire::fault;
use wire::query::{Form, Viewer};
use wire::time::Time;

/// Methods of subscriptions: the first creates one, the others name it.
pub const METHODS: [&str; 4] =
    [SubscribeParams::METHOD, AlterParams::METHOD, UnsubscribeParams::METHOD, TakeParams::METHOD];
/// Most streams of hosts at the same time: each host of a large domain once.
pub const STREAMS_MAX: usize = 1024;
/// Most subscriptions to other hosts: some for each host of a large domain.
pub const CONSUMERS_MAX: usize = 4096;
/// Most bytes of their queues together: with the sensor's own subscriptions and the rest it fits the memory
/// of the shipped unit (`MemoryMax` of 256 MiB), and half of it is enough for one viewer of 64 hosts.
pub const QUEUES_MAX_BYTES: u64 = 96 << 20;
/// Delay before a host that stopped a stream is subscribed to again.
const AFTER_STOP: Duration = Duration::from_secs(60);
/// How long a host may wait for a first entry before it answers with none; a stream without consumers ends
/// then.
const WAIT: Duration = Duration::from_secs(5);
/// How much longer to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Delay before a host that could not be reached is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Most entries of one call: the most that a sensor returns.
const LIMIT: u64 = 1000;

/// Client that calls methods of a host of the domain.
pub trait HostClient: Send + Sync {
    /// Calls `method` of `host` on behalf of `viewer`, with a timeout of `time`.
    fn call(
        &self,
        host: &str,
        viewer: Viewer,
        method: &'static str,
        params: Vec<(Name, Value)>,
        time: Duration,
    ) -> Answer;
}

/// All relayed streams; cheap to clone.
#[derive(Clone)]
pub struct Relays(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    /// CPU time of all consumers.
    budget: Budget,
    new_streams: mpsc::Sender<Arc<Stream>>,
}

#[derive(Default)]
struct Inner {
    streams: BTreeMap<Key, Arc<Stream>>,
    consumers: BTreeMap<Id, Consumer>,
}

#[derive(Clone)]
struct Consumer {
    stream: Arc<Stream>,
    owner: Owner,
    /// Its filter, as requested.
    filter: Filter,
    queue_bytes: u64,
}

/// Common part of all consumers of a stream: the host, and what its sensor evaluates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    host: String,
    kind: Kind,
    /// Viewer that the stream is for: the host leaves out fields of its processes that this viewer may not
    /// see.
    viewer: Viewer,
    /// As requested: user names are resolved by the host.
    selection: Option<Selection>,
    filter: String,
}

/// Stream of a host.
struct Stream {
    key: Key,
    /// Owner of the consumer that it was created for.
    owner: Owner,
    hub: Hub,
    /// Highest rate that its consumers request.
    ticker: Arc<Ticker>,
    state: Mutex<State>,
    /// Notified when a consumer was added, removed or altered.
    altered: Notify,
}

#[derive(Default)]
struct State {
    booted: Option<Time>,
    /// Reason why the host could not be reached the last time.
    failing: Option<Fault>,
}

impl Relays {
    /// Creates an empty set of streams, and the task that runs them.
    #[must_use]
    pub fn new(asker: Arc<dyn HostClient>) -> (Relays, StreamRunner) {
        let (sender, new_streams) = mpsc::channel(STREAMS_MAX);
        let relays = Relays(Arc::new(Shared {
            inner: Mutex::default(),
            budget: Budget::default(),
            new_streams: sender,
        }));
        (relays.clone(), StreamRunner { relays, new_streams, asker })
    }

    /// Answers a call about a subscription to a host; `None` if `method` is no such method.
    #[must_use]
    pub fn ask(
        &self,
        caller: &Caller,
        host: &str,
        method: &str,
        params: &Params,
        form: Option<Form>,
    ) -> Option<Answering> {
        match method {
            SubscribeParams::METHOD => {
                Some(now(params, form, |params| self.subscribe(caller, host, &params)))
            }
            AlterParams::METHOD => Some(now(params, form, |params| self.alter(caller, &params))),
            UnsubscribeParams::METHOD => Some(now(params, form, |params| self.unsubscribe(caller, &params))),
            TakeParams::METHOD => {
                let (relays, params, caller) = (self.clone(), params.clone().typed::<TakeParams>(), *caller);
                Some(Box::pin(
                    async move { answered::<TakeParams>(&relays.take(&caller, &params?).await?, form) },
                ))
            }
            _ => None,
        }
    }

    fn subscribe(
        &self,
        caller: &Caller,
        host: &str,
        params: &SubscribeParams,
    ) -> Result<Subscription, Fault> {
        let SubscribeParams { kind, settings, cursor } = params;
        of_peer(caller, settings)?;
        if cursor.is_some() {
            return Err(Fault::invalid_params(
                "cursor: expected none in a subscription that is shared with others; ask the sensor of that host itself",
            ));
        }
        let wanted = changed(ChannelRequest { kind: *kind, ..ChannelRequest::default() }, settings)?;
        let selection = settings.selection.clone().filter(|_| !kind.happens());
        let (of_source, rest) = split(&wanted)?;
        let mut inner = locked(&self.0.inner);
        inner.forget_those_that_ended();
        let owner = Owner::of(caller.principal());
        inner.make_sure_of_room(owner, None, &wanted)?;
        let viewer = if *kind == Kind::Process { caller.viewer } else { Viewer::Trusted };
        let key =
            Key { host: host.to_owned(), kind: *kind, viewer, selection, filter: of_source.to_string() };
        let stream = self.stream(&mut inner, owner, key)?;
        // Under the lock: otherwise the stream could end with this consumer in it, if its last one goes
        // meanwhile.
        let id = stream
            .hub
            .subscribe_for(caller.principal(), ChannelRequest { filter: rest, ..wanted.clone() })?;
        let queue_bytes = wanted.budget.queue_bytes.into();
        let consumer = Consumer { stream, owner, filter: wanted.filter, queue_bytes };
        inner.consumers.insert(id, consumer.clone());
        drop(inner);
        consumer.stream.altered.notify_one();
        consumer.standing(id)
    }

    fn alter(&self, caller: &Caller, params: &AlterParams) -> Result<Subscription, Fault> {
        let AlterParams { subscription, settings } = params;
        of_peer(caller, settings)?;
        let id = subscription.parse()?;
        let mut inner = locked(&self.0.inner);
        let Consumer { stream: before, owner, filter, queue_bytes } = inner.of(id, caller)?;
        let wanted = changed(ChannelRequest { filter, ..before.hub.status(id)?.wanted }, settings)?;
        let (of_source, rest) = split(&wanted)?;
        if u64::from(wanted.budget.queue_bytes) > queue_bytes {
            inner.make_sure_of_room(owner, Some(id), &wanted)?;
        }
        let selection = settings.selection.clone().filter(|_| !wanted.kind.happens());
        let selection = selection.or_else(|| before.key.selection.clone());
        let key = Key { selection, filter: of_source.to_string(), ..before.key.clone() };
        let stream = self.stream(&mut inner, owner, key)?;
        let altered = ChannelRequest { filter: rest, ..wanted.clone() };
        if Arc::ptr_eq(&stream, &before) {
            stream.hub.alter(id, |_| Ok::<_, Error>(altered.clone()))?;
        } else {
            // Its queue moves along.
            before.hub.hand_over(id, &stream.hub, altered)?;
        }
        let queue_bytes = wanted.budget.queue_bytes.into();
        let consumer = Consumer { stream, owner, filter: wanted.filter, queue_bytes };
        inner.consumers.insert(id, consumer.clone());
        drop(inner);
        before.altered.notify_one();
        consumer.stream.altered.notify_one();
        consumer.standing(id)
    }

    fn unsubscribe(&self, caller: &Caller, params: &UnsubscribeParams) -> Result<Subscription, Fault> {
        let id = params.subscription.parse()?;
        let mut inner = locked(&self.0.inner);
        let consumer = inner.of(id, caller)?;
        let stood = consumer.standing(id)?;
        consumer.stream.hub.unsubscribe(id)?;
        inner.consumers.remove(&id);
        drop(inner);
        consumer.stream.altered.notify_one();
        Ok(stood)
    }

    /// Returns the stream of `key`, and starts it if there is none.
    fn stream(&self, inner: &mut Inner, owner: Owner, key: Key) -> Result<Arc<Stream>, Fault> {
        if let Some(stream) = inner.streams.get(&key) {
            return Ok(Arc::clone(stream));
        }
        let full = || {
            let message = format!(
                "expected at most {STREAMS_MAX} streams of hosts, and of one user at most half of those that others left, found as many; ask again later"
            );
            Fault::new(fault::BUSY, message)
        };
        let mut taken = Usage::of(STREAMS_MAX as u64);
        inner.streams.values().for_each(|stream| taken.add(stream.owner == owner, 1));
        if taken.lacks(1, OWN_MIN, owner.is_trusted()) > 0 {
            return Err(full());
        }
        let stream = Arc::new(Stream::new(key.clone(), owner, self.0.budget.clone()));
        self.0.new_streams.try_send(Arc::clone(&stream)).map_err(|_| full())?;
        inner.streams.insert(key, Arc::clone(&stream));
        Ok(stream)
    }

    async fn take(&self, caller: &Caller, params: &TakeParams) -> Result<Entries, Fault> {
        let id = params.subscription.parse()?;
        let (limit, wait) = super::patience(params, caller.time_left);
        let mut stream = locked(&self.0.inner).of(id, caller)?.stream;
        loop {
            let is_failing = locked(&stream.state).failing.is_some();
            let taken = stream.hub.take(id, limit, if is_failing { Duration::ZERO } else { wait }).await;
            if matches!(taken, Err(Error::Unknown(_))) {
                // If it was altered meanwhile, it may be in another stream.
                let now = locked(&self.0.inner).of(id, caller)?.stream;
                if !Arc::ptr_eq(&now, &stream) {
                    stream = now;
                    continue;
                }
            }
            let answer = taken?;
            let state = locked(&stream.state);
            return match &state.failing {
                Some(fault) if answer.entries.is_empty() => Err(fault.clone()),
                _ => Ok(take_answer::take_answer(answer, state.booted.unwrap_or_default(), params.packed)),
            };
        }
    }

    /// Removes the stream if it has no consumers; returns whether it did.
    fn end_if_idle(&self, stream: &Stream) -> bool {
        let mut inner = locked(&self.0.inner);
        let is_idle = stream.hub.is_empty();
        if is_idle {
            inner.streams.remove(&stream.key);
            inner.forget_those_that_ended();
        }
        is_idle
    }
}

impl Inner {
    /// Returns the consumer with this id if it belongs to the caller; those of other daemons or accounts are
    /// unknown to it.
    fn of(&self, id: Id, caller: &Caller) -> Result<Consumer, Error> {
        let found = self.consumers.get(&id);
        let found = found.filter(|consumer| consumer.owner.admits(caller.principal()));
        found.cloned().ok_or_else(|| Error::Unknown(id.to_string()))
    }

    /// Checks that there is room for what is requested, beside all consumers except the one that it replaces.
    fn make_sure_of_room(
        &self,
        owner: Owner,
        instead: Option<Id>,
        wanted: &ChannelRequest,
    ) -> Result<(), Fault> {
        let (mut many, mut bytes) = (Usage::of(CONSUMERS_MAX as u64), Usage::of(QUEUES_MAX_BYTES));
        for (_, consumer) in self.consumers.iter().filter(|(id, _)| Some(**id) != instead) {
            many.add(consumer.owner == owner, 1);
            bytes.add(consumer.owner == owner, consumer.queue_bytes);
        }
        let more = wanted.budget.queue_bytes.into();
        let is_trusted = owner.is_trusted();
        if many.lacks(1, OWN_MIN, is_trusted) == 0 && bytes.lacks(more, OWN_QUEUES_MIN_BYTES, is_trusted) == 0
        {
            return Ok(());
        }
        let message = format!(
            "expected at most {CONSUMERS_MAX} subscriptions to other hosts, whose queues have at most \
             {QUEUES_MAX_BYTES} bytes together, and of one user at most half of what others left; ask for a smaller \
             queue_bytes, or again later"
        );
        Err(Fault::new(fault::BUSY, message))
    }

    fn forget_those_that_ended(&mut self) {
        self.consumers.retain(|id, consumer| consumer.stream.hub.has(*id));
    }
}

impl Consumer {
    /// Returns the state of its subscription, with the filter and selection that it requested.
    fn standing(&self, id: Id) -> Result<Subscription, Fault> {
        let mut stands = self.stream.hub.status(id)?;
        stands.wanted.filter = self.filter.clone();
        let standing = standing(id, &stands);
        let selection = self.stream.key.selection.clone().or(standing.selection);
        Ok(Subscription { selection, ..standing })
    }
}

impl Stream {
    fn new(key: Key, owner: Owner, budget: Budget) -> Stream {
        let hub = Hub::relaying(budget);
        let ticker = Arc::new(Ticker::new(Rate::of_processes(RATE_MIN_HZ).expect("the slowest is allowed")));
        hub.set_demand(key.kind, ticker.demand());
        Stream { key, owner, hub, ticker, state: Mutex::default(), altered: Notify::new() }
    }
}

/// Answers a call that does not wait.
fn now<R: Request>(
    params: &Params,
    form: Option<Form>,
    answer: impl FnOnce(R) -> Result<R::Answer, Fault>,
) -> Answering {
    let answer = params.clone().typed().and_then(answer).and_then(|answer| answered::<R>(&answer, form));
    Box::pin(std::future::ready(answer))
}

/// Returns `wanted` with the settings of the call. For kinds that are sampled, the host applies the
/// selection, because it resolves the user names.
fn changed(wanted: ChannelRequest, settings: &Settings) -> Result<ChannelRequest, Fault> {
    match wanted.kind.happens() {
        true => request::changed(wanted, settings, None),
        false => request::changed_but_selection(wanted, settings),
    }
}

/// Splits a filter into the part for the host and the rest; an invalid filter is rejected before.
fn split(wanted: &ChannelRequest) -> Result<(Filter, Filter), Fault> {
    // The users of the selection are not known here.
    let filter =
        ChannelRequest { kind: wanted.kind, filter: wanted.filter.clone(), ..ChannelRequest::default() };
    CompiledRequest::new(filter, || Duration::ZERO)
        .map_err(|error| Fault::invalid_params(error.to_string()))?;
    Ok(relay::split(wanted.kind, &wanted.filter))
}
