//! All subscriptions of a sensor: the handle by which they are made, altered, taken from and ended.
//!
//! Shell: the lock, the clocks and who waits. Rules: the lock is held for moments, never while a subscription is made or evaluated;
//! a subscription from which no client takes ends; its owner alone uses it, and root and the daemon's own user; the sensor
//! sweeps as often as the fastest of them wants.
//! Not here: what a subscription is (`subscription`), the evaluation (`evaluating`), how owners share (`budget`), reading the journal
//! (`pump`).

pub use super::budget::Budget;
use super::budget::{Shares, Taken};
use super::evaluating::{Evaluating, Lane};
use super::owner::Owner;
pub use super::owner::Part;
pub use super::refusal::{Error, Id};
use super::subscription::{Prepared, Standing, Subscription, swept};
use crate::journal::reader::Reader;
use crate::process::tap::Tap;
use crate::sample::beat::{Wish, locked, running};
use crate::sample::schedule::Rate;
use crate::serving::roll::Rolls;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use wire::channel::stream::Entry;
use wire::channel::{Kind, Wanted};
use wire::query::{Principal, Viewer};

/// Most subscriptions of a sensor.
pub const SUBSCRIPTIONS_MAX: usize = 256;
/// Most bytes that the queues of all subscriptions may have together: as much of each as none says otherwise.
pub const QUEUES_MAX_BYTES: u64 = 64 << 20;
/// As many subscriptions an owner may have in any case, and as many bytes of queues for them.
pub(crate) const OWN_MIN: u64 = 8;
pub(crate) const OWN_QUEUES_MIN_BYTES: u64 = 2 << 20;
/// A subscription ends when no one has taken from it for so long.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// What was taken.
#[derive(Debug)]
pub struct Answer {
    /// The entries, the oldest first.
    pub entries: Vec<Entry>,
    /// How the subscription stands.
    pub standing: Standing,
}

/// All subscriptions; to be cloned freely.
#[derive(Clone, Default)]
pub struct Hub(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) slots: Mutex<BTreeMap<Id, Arc<Slot>>>,
    pub(super) shares: Arc<Mutex<Shares<Owner>>>,
    /// By the number of the kind.
    wishes: [OnceLock<Wish>; Kind::ALL.len()],
    /// Whether there are subscriptions to processes, by lane, so that a sweep need not look.
    has_processes: [AtomicBool; Lane::ALL.len()],
    journal: OnceLock<Reader>,
    rolls: OnceLock<Rolls>,
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
    /// When a client took from it, in nanoseconds of the clock of waiting.
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
    /// What is to be given to the sampler, once.
    #[must_use]
    pub fn tap(&self) -> Box<dyn Tap> {
        self.tap_of(None)
    }

    /// The same, of one lane.
    pub(super) fn tap_of(&self, lane: Option<Lane>) -> Box<dyn Tap> {
        Box::new(Evaluating::new(Arc::clone(&self.0), lane))
    }

    /// Whether there is a subscription to processes in this lane.
    pub(super) fn has_processes(&self, lane: Lane) -> bool {
        self.0.has_processes[lane as usize].load(Ordering::Acquire)
    }

    /// By this it has what flows of a kind come as often as its subscriptions want; a second one is not used.
    pub fn set_wish(&self, kind: Kind, wish: Wish) {
        // A sensor is put together once.
        let _ = self.0.wishes[kind as usize].set(wish);
    }

    /// What happens is read from here; a second one is not used.
    pub fn set_journal(&self, journal: Reader) {
        let _ = self.0.journal.set(journal);
    }

    /// Who serves jobs and calls is known here; a second one is not used.
    pub fn set_rolls(&self, rolls: Rolls) {
        let _ = self.0.rolls.set(rolls);
    }

    /// Where events are read.
    #[must_use]
    pub fn journal(&self) -> Option<&Reader> {
        self.0.journal.get()
    }

    /// None yet; what they use is counted in `budget`, with what those of other hubs use.
    #[must_use]
    pub fn with_budget(budget: Budget) -> Hub {
        Hub(Arc::new(Shared::new(budget)))
    }

    /// The same, of what another host shows: its sensor has left out what the viewer may not see.
    #[must_use]
    pub fn relaying(budget: Budget) -> Hub {
        Hub(Arc::new(Shared { is_relaying: true, ..Shared::new(budget) }))
    }

    /// A new subscription of the daemon itself.
    ///
    /// # Errors
    /// If it cannot be made, or there are too many; there is none then.
    pub fn subscribe(&self, wanted: Wanted) -> Result<Id, Error> {
        self.subscribe_for(Principal::OWN, wanted)
    }

    /// A new subscription of a client or another daemon, which alone may use it then.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_for(&self, owner: Principal, wanted: Wanted) -> Result<Id, Error> {
        self.subscribe_from(owner, wanted, None)
    }

    /// The same; of what happens, from this number in the journal on instead of from now on.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_from(&self, owner: Principal, wanted: Wanted, place: Option<u64>) -> Result<Id, Error> {
        let viewer = (!self.0.is_relaying).then_some(owner.viewer);
        self.make((Owner::of(owner), viewer), wanted, place)
    }

    /// A new subscription of a part of the sensor itself.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_own(&self, part: Part, wanted: Wanted) -> Result<Id, Error> {
        self.make((Owner::Own(part), None), wanted, None)
    }

    fn make(
        &self,
        (owner, viewer): (Owner, Option<Viewer>),
        wanted: Wanted,
        place: Option<u64>,
    ) -> Result<Id, Error> {
        let prepared = self.prepared(wanted)?;
        let id = Id(getrandom::u64().map_err(Error::Random)?);
        let now = running();
        let mut slots = locked(&self.0.slots);
        let newest = || self.0.journal.get().map_or(0, |journal| *journal.next().borrow());
        make_sure_of_room(&slots, owner, None, prepared.wanted())?;
        let subscription = Subscription::of(prepared, viewer, now);
        subscription.go_to(place.unwrap_or_else(newest), 0, 0);
        let slot =
            Slot { subscription, owner, taken_at_ns: AtomicU64::new(nanos(now)), arrived: Notify::new() };
        slots.insert(id, Arc::new(slot));
        self.0.wish_for(&slots);
        Ok(id)
    }

    /// Another thing wanted by a subscription: `change` makes it of what it wants now, and again where another client altered it
    /// meanwhile.
    ///
    /// # Errors
    /// If there is none, or what is wanted cannot be made: it goes on as before then.
    pub fn alter<E: From<Error>>(
        &self,
        id: Id,
        change: impl Fn(Wanted) -> Result<Wanted, E>,
    ) -> Result<Standing, E> {
        loop {
            let before = self.standing(id)?;
            let wanted = change(before.wanted)?;
            let prepared = self.prepared(wanted.clone())?;
            let slots = locked(&self.0.slots);
            let slot = found(&slots, id)?;
            if wanted.budget.queue_bytes > slot.subscription.wanted().budget.queue_bytes {
                make_sure_of_room(&slots, slot.owner, Some(id), &wanted)?;
            }
            let Some(standing) = slot.subscription.alter_of(before.revision, prepared, running()) else {
                continue;
            };
            slot.is_used();
            self.0.wish_for(&slots);
            return Ok(standing);
        }
    }

    /// End a subscription; gives how it stood.
    ///
    /// # Errors
    /// If there is none.
    pub fn unsubscribe(&self, id: Id) -> Result<Standing, Error> {
        let mut slots = locked(&self.0.slots);
        let slot = slots.remove(&id).ok_or_else(|| Error::Unknown(id.to_string()))?;
        self.0.wish_for(&slots);
        drop(slots);
        slot.arrived.notify_waiters();
        Ok(slot.subscription.standing())
    }

    /// At most `limit` entries, the oldest; waits until there is one, at most so long.
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
            // Before it is looked, so that what comes just after is not missed.
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

    /// So many samples, of those that the source makes `of` times a second, did not come from it.
    pub fn miss(&self, count: u64, of: f64, at_ns: u64) {
        for kind in Kind::ALL {
            self.miss_of(kind, count, of, at_ns);
        }
    }

    /// The same, of those to processes in one lane.
    pub(super) fn miss_in(&self, lane: Lane, count: u64, of: f64, at_ns: u64) {
        for (_, slot) in self.of_kinds(&[Kind::Process]) {
            if Lane::of(&slot.subscription.wanted()) == lane {
                slot.subscription.miss(count, of, at_ns);
                slot.arrived.notify_waiters();
            }
        }
    }

    /// The same, of one kind.
    pub fn miss_of(&self, kind: Kind, count: u64, of: f64, at_ns: u64) {
        for (_, slot) in self.of_kinds(&[kind]) {
            slot.subscription.miss(count, of, at_ns);
            slot.arrived.notify_waiters();
        }
    }

    /// End those from which no one takes, where no sweeps come that would do so.
    pub fn drop_idle(&self, now: Duration) {
        self.0.drop_idle(now);
    }

    /// Move a subscription, with what waits in it, to another place, where this is wanted. Two must not be handed over in
    /// opposite directions at once.
    ///
    /// # Errors
    /// If there is none, there are too many at the other place, or what is wanted cannot be made: it stays then as it was.
    pub fn hand_over(&self, id: Id, to: &Hub, wanted: Wanted) -> Result<(), Error> {
        let prepared = to.prepared(wanted.clone())?;
        let (mut here, mut there) = (locked(&self.0.slots), locked(&to.0.slots));
        let owner = found(&here, id)?.owner;
        make_sure_of_room(&there, owner, None, &wanted)?;
        let slot = here.remove(&id).ok_or_else(|| Error::Unknown(id.to_string()))?;
        slot.subscription.alter(prepared, running());
        slot.subscription.begin_anew();
        there.insert(id, slot);
        self.0.wish_for(&here);
        to.0.wish_for(&there);
        Ok(())
    }

    /// Whether a client or another daemon may use a subscription: its owner, and a client on behalf of root or the daemon's own user.
    ///
    /// # Errors
    /// If not, or there is none: one of another owner does not exist for it.
    pub fn admit(&self, id: Id, principal: Principal) -> Result<(), Error> {
        match (self.slot(id)?.owner, principal.asker) {
            (owner, _) if owner.admits(principal) => Ok(()),
            (Owner::Own(part), None) => Err(Error::Own(part)),
            (Owner::Own(_) | Owner::Client(_) | Owner::Peer(_), _) => Err(Error::Unknown(id.to_string())),
        }
    }

    /// Whether the list of subscriptions names one to a client or another daemon: of those that cannot be told apart, such as clients on
    /// TCP, each knows its own.
    #[must_use]
    pub fn is_listed(&self, id: Id, principal: Principal) -> bool {
        let is_identified = principal.asker.is_some() || principal.viewer != Viewer::Anonymous;
        is_identified && self.admit(id, principal).is_ok()
    }

    /// Whether what a subscription wants and finds is shown: to those who may use it, as it was computed of what they may see.
    #[must_use]
    pub fn is_shown(&self, id: Id, principal: Principal) -> bool {
        let is_trusted = principal.asker.is_none() && principal.viewer.is_trusted();
        self.admit(id, principal).is_ok() || (is_trusted && self.has(id))
    }

    /// The part of the sensor whose own it is, if it is of one.
    #[must_use]
    pub fn part_of(&self, id: Id) -> Option<Part> {
        match self.slot(id).ok()?.owner {
            Owner::Own(part) => Some(part),
            Owner::Client(_) | Owner::Peer(_) => None,
        }
    }

    /// Whether it is there.
    #[must_use]
    pub fn has(&self, id: Id) -> bool {
        locked(&self.0.slots).contains_key(&id)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        locked(&self.0.slots).is_empty()
    }

    /// How a subscription stands.
    ///
    /// # Errors
    /// If there is none.
    pub fn standing(&self, id: Id) -> Result<Standing, Error> {
        Ok(self.slot(id)?.subscription.standing())
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

    fn prepared(&self, wanted: Wanted) -> Result<Prepared, Error> {
        let mut prepared = Prepared::new(wanted, thread_time)?;
        let wanted = prepared.wanted();
        let (job, call) = (wanted.selection.job.as_deref(), wanted.selection.call.as_deref());
        if wanted.kind == Kind::Process && (job.is_some() || call.is_some()) {
            let served = self.0.rolls.get().ok_or(Error::NoRolls)?.of(job, call);
            prepared.set_served(served);
        }
        Ok(prepared)
    }

    /// What waits, or nothing if that is wanted too; `None` to wait for it.
    fn take_now(&self, id: Id, limit: usize, is_over: bool) -> Result<Option<Answer>, Error> {
        let slot = self.slot(id)?;
        slot.is_used();
        // One that is stopped is waited for too: who asks again and again would find it so without end, and it may be altered.
        let taken = slot.subscription.take_standing(limit, is_over);
        Ok(taken.map(|(taken, standing)| Answer { entries: taken.entries().collect(), standing }))
    }
}

fn found(slots: &BTreeMap<Id, Arc<Slot>>, id: Id) -> Result<&Arc<Slot>, Error> {
    slots.get(&id).ok_or_else(|| Error::Unknown(id.to_string()))
}

/// Whether there is room for a subscription of `owner` with its queue beside all others, in place of that of `id` if it is one.
fn make_sure_of_room(
    slots: &BTreeMap<Id, Arc<Slot>>,
    owner: Owner,
    id: Option<Id>,
    wanted: &Wanted,
) -> Result<(), Error> {
    let (mut places, mut bytes) = (Taken::of(SUBSCRIPTIONS_MAX as u64), Taken::of(QUEUES_MAX_BYTES));
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
            wishes: Default::default(),
            has_processes: Default::default(),
            journal: OnceLock::new(),
            rolls: OnceLock::new(),
            is_relaying: false,
        }
    }

    /// Have what flows come as often as the fastest of its kind that is not stopped.
    pub(super) fn wish_for(&self, slots: &BTreeMap<Id, Arc<Slot>>) {
        let live: Vec<_> = slots
            .values()
            .filter(|slot| slot.subscription.is_live())
            .map(|slot| slot.subscription.wanted())
            .collect();
        for kind in Kind::ALL {
            let rates = live.iter().filter(|wanted| wanted.kind == kind).map(|wanted| swept(wanted.rate));
            let fastest = rates.reduce(|a, b: Rate| if b.hz() > a.hz() { b } else { a });
            if let Some(wish) = self.wishes[kind as usize].get() {
                wish.set(fastest);
            }
        }
        for lane in Lane::ALL {
            let mut all = slots.values().map(|slot| slot.subscription.wanted());
            let has = all.any(|wanted| wanted.kind == Kind::Process && Lane::of(&wanted) == lane);
            self.has_processes[lane as usize].store(has, Ordering::Release);
        }
    }

    /// End those from which no client takes.
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
            self.wish_for(&slots);
        }
    }

    /// As after a subscription was stopped.
    pub(super) fn wish(&self) {
        self.wish_for(&locked(&self.slots));
    }
}

/// CPU time of this thread.
pub(crate) fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
