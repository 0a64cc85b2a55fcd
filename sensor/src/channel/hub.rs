//! Registry of all subscriptions of a sensor: the handle that makes, alters, reads and ends them.
//!
//! Shell: the lock, the clocks and the waiting clients. Rules: the lock is held for moments, never while a
//! subscription is made or evaluated; a subscription that no client reads ends; only its owner may use it,
//! besides root and the daemon's own user; the sensor sweeps as often as the fastest subscription requires.
//! Not here: one subscription (`subscription`), the evaluation (`scheduler`), how owners share CPU time
//! (`budget`), reading the journal (`pump`).

pub use super::budget::Budget;
use super::budget::{Shares, Usage};
use super::owner::Owner;
pub use super::owner::Part;
pub use super::refusal::{Error, Id};
use super::scheduler::{Lane, Scheduler};
use super::subscription::{CompiledRequest, Status, Subscription, sweep_rate};
use crate::journal::reader::Reader;
use crate::process::tap::Tap;
use crate::sample::schedule::Rate;
use crate::sample::ticker::{Demand, locked, running};
use crate::serving::roster::Rosters;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use wire::channel::stream::Entry;
use wire::channel::{ChannelRequest, Kind};
use wire::query::{Principal, Viewer};

/// Most subscriptions of a sensor.
pub const SUBSCRIPTIONS_MAX: usize = 256;
/// Most bytes of all queues together: the default queue size for each of [`SUBSCRIPTIONS_MAX`] subscriptions.
pub const QUEUES_MAX_BYTES: u64 = 64 << 20;
/// Subscriptions, and bytes of queues for them, that an owner may have even when half of the rest is less.
pub(crate) const OWN_MIN: u64 = 8;
pub(crate) const OWN_QUEUES_MIN_BYTES: u64 = 2 << 20;
/// A subscription ends when no client has read it for this long.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// Entries taken from a subscription.
#[derive(Debug)]
pub struct Answer {
    /// The entries, the oldest first.
    pub entries: Vec<Entry>,
    /// Status of the subscription.
    pub status: Status,
}

/// Registry of all subscriptions; cheap to clone.
#[derive(Clone, Default)]
pub struct Hub(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) slots: Mutex<BTreeMap<Id, Arc<Slot>>>,
    pub(super) shares: Arc<Mutex<Shares<Owner>>>,
    /// Requested rates, indexed by kind.
    demands: [OnceLock<Demand>; Kind::ALL.len()],
    /// Whether there are subscriptions to processes, by lane, so that a sweep need not look.
    has_processes: [AtomicBool; Lane::ALL.len()],
    journal: OnceLock<Reader>,
    rolls: OnceLock<Rosters>,
    is_relaying: bool,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::new(Budget::default())
    }
}

pub(super) struct Slot {
    pub(super) subscription: Subscription,
    pub(super) owner: Owner,
    /// When a client last took from it, in nanoseconds on the monotonic clock.
    taken_at_ns: AtomicU64,
    pub(super) arrived: Notify,
}

impl Slot {
    fn is_used(&self) {
        self.taken_at_ns.store(nanos(running()), Ordering::Relaxed);
    }

    fn taken_at(&self) -> Duration {
        Duration::from_nanos(self.taken_at_ns.load(Ordering::Relaxed))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Hub {
    /// Creates the tap for the sampler; to be called once.
    #[must_use]
    pub fn tap(&self) -> Box<dyn Tap> {
        self.tap_of(None)
    }

    /// Creates the tap for one lane, or for both.
    pub(super) fn tap_of(&self, lane: Option<Lane>) -> Box<dyn Tap> {
        Box::new(Scheduler::new(Arc::clone(&self.0), lane))
    }

    /// Whether there is a subscription to processes in this lane.
    pub(super) fn has_processes(&self, lane: Lane) -> bool {
        self.0.has_processes[lane as usize].load(Ordering::Acquire)
    }

    /// Sets the handle that requests the rate of a kind's source, so that it is as fast as the fastest
    /// subscription. A second call is ignored.
    pub fn set_demand(&self, kind: Kind, demand: Demand) {
        // A sensor is assembled once.
        let _ = self.0.demands[kind as usize].set(demand);
    }

    /// Sets the journal that events are read from. A second call is ignored.
    pub fn set_journal(&self, journal: Reader) {
        let _ = self.0.journal.set(journal);
    }

    /// Sets the rolls, which list the processes that serve jobs and calls. A second call is ignored.
    pub fn set_rosters(&self, rolls: Rosters) {
        let _ = self.0.rolls.set(rolls);
    }

    #[must_use]
    pub fn journal(&self) -> Option<&Reader> {
        self.0.journal.get()
    }

    /// Creates an empty hub whose CPU time counts in `budget`, together with that of other hubs.
    #[must_use]
    pub fn with_budget(budget: Budget) -> Hub {
        Hub(Arc::new(Shared::new(budget)))
    }

    /// Creates a hub for the data of another host, whose sensor has already left out what the viewer may not
    /// see.
    #[must_use]
    pub fn relaying(budget: Budget) -> Hub {
        Hub(Arc::new(Shared { is_relaying: true, ..Shared::new(budget) }))
    }

    /// Subscribes for the daemon itself.
    ///
    /// # Errors
    /// If the request is invalid or there are too many subscriptions; none is made then.
    pub fn subscribe(&self, wanted: ChannelRequest) -> Result<Id, Error> {
        self.subscribe_for(Principal::OWN, wanted)
    }

    /// Subscribes for a client or another daemon, which alone may use the subscription.
    ///
    /// # Errors
    /// As for [`subscribe`](Self::subscribe).
    pub fn subscribe_for(&self, owner: Principal, wanted: ChannelRequest) -> Result<Id, Error> {
        self.subscribe_from(owner, wanted, None)
    }

    /// Subscribes for a client or another daemon; events and calls start at this number in the journal
    /// instead of now.
    ///
    /// # Errors
    /// As for [`subscribe`](Self::subscribe).
    pub fn subscribe_from(
        &self,
        owner: Principal,
        wanted: ChannelRequest,
        place: Option<u64>,
    ) -> Result<Id, Error> {
        let viewer = (!self.0.is_relaying).then_some(owner.viewer);
        self.make((Owner::of(owner), viewer), wanted, place)
    }

    /// Subscribes for a part of the sensor itself.
    ///
    /// # Errors
    /// As for [`subscribe`](Self::subscribe).
    pub fn subscribe_own(&self, part: Part, wanted: ChannelRequest) -> Result<Id, Error> {
        self.make((Owner::Own(part), None), wanted, None)
    }

    fn make(
        &self,
        (owner, viewer): (Owner, Option<Viewer>),
        wanted: ChannelRequest,
        place: Option<u64>,
    ) -> Result<Id, Error> {
        let compiled = self.compiled(wanted)?;
        let id = Id(getrandom::u64().map_err(Error::Random)?);
        let now = running();
        let mut slots = locked(&self.0.slots);
        let newest = || self.0.journal.get().map_or(0, |journal| *journal.next().borrow());
        make_sure_of_room(&slots, owner, None, compiled.wanted())?;
        let subscription = Subscription::of(compiled, viewer, now);
        subscription.go_to(place.unwrap_or_else(newest), 0, 0);
        let slot =
            Slot { subscription, owner, taken_at_ns: AtomicU64::new(nanos(now)), arrived: Notify::new() };
        slots.insert(id, Arc::new(slot));
        self.0.update_demands(&slots);
        Ok(id)
    }

    /// Alters a subscription: `change` computes the new request from the current one, and is called again if
    /// another client altered it meanwhile.
    ///
    /// # Errors
    /// If there is no such subscription or the new request is invalid: the subscription stays as it was.
    pub fn alter<E: From<Error>>(
        &self,
        id: Id,
        change: impl Fn(ChannelRequest) -> Result<ChannelRequest, E>,
    ) -> Result<Status, E> {
        loop {
            let before = self.status(id)?;
            let wanted = change(before.wanted)?;
            let compiled = self.compiled(wanted.clone())?;
            let slots = locked(&self.0.slots);
            let slot = found(&slots, id)?;
            if wanted.budget.queue_bytes > slot.subscription.wanted().budget.queue_bytes {
                make_sure_of_room(&slots, slot.owner, Some(id), &wanted)?;
            }
            let Some(status) = slot.subscription.alter_of(before.revision, compiled, running()) else {
                continue;
            };
            slot.is_used();
            self.0.update_demands(&slots);
            return Ok(status);
        }
    }

    /// Ends a subscription; returns its last status.
    ///
    /// # Errors
    /// If there is no such subscription.
    pub fn unsubscribe(&self, id: Id) -> Result<Status, Error> {
        let mut slots = locked(&self.0.slots);
        let slot = slots.remove(&id).ok_or_else(|| Error::Unknown(id.to_string()))?;
        self.0.update_demands(&slots);
        drop(slots);
        slot.arrived.notify_waiters();
        Ok(slot.subscription.status())
    }

    /// Takes the oldest entries, at most `limit`; waits for a first one for at most `wait`.
    ///
    /// # Errors
    /// If there is no such subscription, or it ends meanwhile.
    pub async fn take(&self, id: Id, limit: usize, wait: Duration) -> Result<Answer, Error> {
        let slot = self.slot(id)?;
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_over = wait.is_zero();
        loop {
            let arrival = slot.arrived.notified();
            tokio::pin!(arrival);
            // Registered before the check, so that an entry that arrives just after it is not missed.
            arrival.as_mut().enable();
            if let Some(answer) = self.take_now(id, limit, is_over)? {
                return Ok(answer);
            }
            tokio::select! {
                () = &mut arrival => {}
                () = &mut deadline => is_over = true,
            }
        }
    }

    /// Counts `count` lost samples of sources that make `of` samples per second, for every kind.
    pub fn miss(&self, count: u64, of: f64, at_ns: u64) {
        for kind in Kind::ALL {
            self.miss_of(kind, count, of, at_ns);
        }
    }

    /// Counts lost samples of processes for the subscriptions in one lane.
    pub(super) fn miss_in(&self, lane: Lane, count: u64, of: f64, at_ns: u64) {
        for (_, slot) in self.of_kinds(&[Kind::Process]) {
            if Lane::of(&slot.subscription.wanted()) == lane {
                slot.subscription.miss(count, of, at_ns);
                slot.arrived.notify_waiters();
            }
        }
    }

    /// Counts lost samples for the subscriptions of one kind.
    pub fn miss_of(&self, kind: Kind, count: u64, of: f64, at_ns: u64) {
        for (_, slot) in self.of_kinds(&[kind]) {
            slot.subscription.miss(count, of, at_ns);
            slot.arrived.notify_waiters();
        }
    }

    /// Ends the subscriptions that no client reads.
    pub fn drop_idle(&self, now: Duration) {
        self.0.drop_idle(now);
    }

    /// Moves a subscription, with what waits in its queue, to another hub, where it gets this request. Two
    /// hand-overs in opposite directions at the same time would deadlock.
    ///
    /// # Errors
    /// If there is no such subscription, the other hub is full, or the request is invalid: the subscription
    /// then stays where it was.
    pub fn hand_over(&self, id: Id, to: &Hub, wanted: ChannelRequest) -> Result<(), Error> {
        let compiled = to.compiled(wanted.clone())?;
        let (mut here, mut there) = (locked(&self.0.slots), locked(&to.0.slots));
        let owner = found(&here, id)?.owner;
        make_sure_of_room(&there, owner, None, &wanted)?;
        let slot = here.remove(&id).ok_or_else(|| Error::Unknown(id.to_string()))?;
        slot.subscription.alter(compiled, running());
        slot.subscription.restart();
        there.insert(id, slot);
        self.0.update_demands(&here);
        to.0.update_demands(&there);
        Ok(())
    }

    /// Checks that a client or another daemon may use a subscription: its owner may, and a client on behalf
    /// of root or the daemon's own user.
    ///
    /// # Errors
    /// If it may not, or there is no such subscription: to another owner it does not exist.
    pub fn admit(&self, id: Id, principal: Principal) -> Result<(), Error> {
        match (self.slot(id)?.owner, principal.asker) {
            (owner, _) if owner.admits(principal) => Ok(()),
            (Owner::Own(part), None) => Err(Error::Own(part)),
            (Owner::Own(_) | Owner::Client(_) | Owner::Peer(_), _) => Err(Error::Unknown(id.to_string())),
        }
    }

    /// Whether the list of subscriptions shows this one to a client or another daemon. Clients that cannot be
    /// distinguished, such as clients on TCP, get no list: each knows its own subscriptions.
    #[must_use]
    pub fn is_listed(&self, id: Id, principal: Principal) -> bool {
        let is_identified = principal.asker.is_some() || principal.viewer != Viewer::Anonymous;
        is_identified && self.admit(id, principal).is_ok()
    }

    /// Whether the request and results of a subscription are shown: to those that may use it, because it was
    /// computed from what they may see, and to root and the daemon's own user.
    #[must_use]
    pub fn is_shown(&self, id: Id, principal: Principal) -> bool {
        let is_trusted = principal.asker.is_none() && principal.viewer.is_trusted();
        self.admit(id, principal).is_ok() || (is_trusted && self.has(id))
    }

    /// The part of the sensor that owns it, if one does.
    #[must_use]
    pub fn part_of(&self, id: Id) -> Option<Part> {
        match self.slot(id).ok()?.owner {
            Owner::Own(part) => Some(part),
            Owner::Client(_) | Owner::Peer(_) => None,
        }
    }

    #[must_use]
    pub fn has(&self, id: Id) -> bool {
        locked(&self.0.slots).contains_key(&id)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        locked(&self.0.slots).is_empty()
    }

    /// Status of a subscription.
    ///
    /// # Errors
    /// If there is no such subscription.
    pub fn status(&self, id: Id) -> Result<Status, Error> {
        Ok(self.slot(id)?.subscription.status())
    }

    pub(super) fn slot(&self, id: Id) -> Result<Arc<Slot>, Error> {
        found(&locked(&self.0.slots), id).cloned()
    }

    pub(super) fn all(&self) -> Vec<(Id, Arc<Slot>)> {
        locked(&self.0.slots).iter().map(|(id, slot)| (*id, Arc::clone(slot))).collect()
    }

    pub(super) fn of_kinds(&self, kinds: &[Kind]) -> Vec<(Id, Arc<Slot>)> {
        let mut all = self.all();
        all.retain(|(_, slot)| kinds.contains(&slot.subscription.wanted().kind));
        all
    }

    fn compiled(&self, wanted: ChannelRequest) -> Result<CompiledRequest, Error> {
        let mut compiled = CompiledRequest::new(wanted, thread_time)?;
        let wanted = compiled.wanted();
        let (job, call) = (wanted.selection.job.as_deref(), wanted.selection.call.as_deref());
        if wanted.kind == Kind::Process && (job.is_some() || call.is_some()) {
            let served = self.0.rolls.get().ok_or(Error::NoRolls)?.of(job, call);
            compiled.set_served(served);
        }
        Ok(compiled)
    }

    /// Takes what waits; `None` if nothing waits, unless the wait is over.
    fn take_now(&self, id: Id, limit: usize, is_over: bool) -> Result<Option<Answer>, Error> {
        let slot = self.slot(id)?;
        slot.is_used();
        // A stopped subscription is waited for too: a client that polls without pause would otherwise get its
        // answer at once each time, and the subscription may be altered.
        let batch = slot.subscription.take_status(limit, is_over);
        Ok(batch.map(|(batch, status)| Answer { entries: batch.entries().collect(), status }))
    }
}

fn found(slots: &BTreeMap<Id, Arc<Slot>>, id: Id) -> Result<&Arc<Slot>, Error> {
    slots.get(&id).ok_or_else(|| Error::Unknown(id.to_string()))
}

/// Checks that there is room for a subscription of `owner` and its queue beside all others. With `id`, it
/// replaces that one.
fn make_sure_of_room(
    slots: &BTreeMap<Id, Arc<Slot>>,
    owner: Owner,
    id: Option<Id>,
    wanted: &ChannelRequest,
) -> Result<(), Error> {
    let (mut places, mut bytes) = (Usage::of(SUBSCRIPTIONS_MAX as u64), Usage::of(QUEUES_MAX_BYTES));
    for (_, slot) in slots.iter().filter(|(other, _)| Some(**other) != id) {
        places.add(slot.owner == owner, 1);
        bytes.add(slot.owner == owner, slot.subscription.wanted().budget.queue_bytes.into());
    }
    if places.lacks(1, OWN_MIN, owner.is_trusted()) > 0 {
        return Err(Error::Full);
    }
    match bytes.lacks(wanted.budget.queue_bytes.into(), OWN_QUEUES_MIN_BYTES, owner.is_trusted()) {
        0 => Ok(()),
        lacking => Err(Error::Queues(lacking)),
    }
}

impl Shared {
    fn new(budget: Budget) -> Shared {
        Shared {
            slots: Mutex::default(),
            shares: budget.0,
            demands: Default::default(),
            has_processes: Default::default(),
            journal: OnceLock::new(),
            rolls: OnceLock::new(),
            is_relaying: false,
        }
    }

    /// Requests that each kind's source runs as often as the fastest subscription that is not stopped.
    pub(super) fn update_demands(&self, slots: &BTreeMap<Id, Arc<Slot>>) {
        let live: Vec<_> = slots
            .values()
            .filter(|slot| slot.subscription.is_live())
            .map(|slot| slot.subscription.wanted())
            .collect();
        for kind in Kind::ALL {
            let rates =
                live.iter().filter(|wanted| wanted.kind == kind).map(|wanted| sweep_rate(wanted.rate));
            let fastest = rates.reduce(|a, b: Rate| if b.hz() > a.hz() { b } else { a });
            if let Some(demand) = self.demands[kind as usize].get() {
                demand.set(fastest);
            }
        }
        for lane in Lane::ALL {
            let mut all = slots.values().map(|slot| slot.subscription.wanted());
            let has = all.any(|wanted| wanted.kind == Kind::Process && Lane::of(&wanted) == lane);
            self.has_processes[lane as usize].store(has, Ordering::Release);
        }
    }

    /// Ends the subscriptions that no client reads.
    pub(super) fn drop_idle(&self, now: Duration) {
        let mut slots = locked(&self.slots);
        let before = slots.len();
        slots.retain(|_, slot| {
            let is_kept = now.saturating_sub(slot.taken_at()) < IDLE_MAX;
            if !is_kept {
                slot.arrived.notify_waiters();
            }
            is_kept
        });
        if slots.len() != before {
            self.update_demands(&slots);
        }
    }

    /// Updates the requested rates after a subscription was stopped.
    pub(super) fn demand(&self) {
        self.update_demands(&locked(&self.slots));
    }
}

/// CPU time of this thread.
pub(crate) fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
