//! All subscriptions of a sensor: the handle by which they are made, altered, taken from and ended.
//!
//! Shell: the lock, the clocks and who waits. Rules: what takes time to make is made outside the lock; a subscription from which
//! nobody takes ends; the sensor sweeps as often as the fastest of them wants.
//! Not here: what a subscription is (`subscription`), the evaluation (`evaluating`), reading the journal (`pump`).

use super::subscription::{self, Prepared, Standing, Subscription, swept};
use crate::journal::reader::Reader;
use crate::process::tap::Tap;
use crate::sample::beat::{Wish, locked, running};
use crate::sample::schedule::Rate;
use crate::serving::roll::Rolls;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use wire::channel::stream::Entry;
use wire::channel::{Kind, Wanted};
use wire::query::Asker;

/// Most subscriptions of a sensor.
pub const SUBSCRIPTIONS_MAX: usize = 256;
/// Most bytes that the queues of all subscriptions may have together: as much of each as none says otherwise.
pub const QUEUES_MAX_BYTES: u64 = 64 << 20;
/// A subscription ends when nobody has taken from it for so long.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// Which subscription: drawn at random, so that nobody takes another's by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Id, Error> {
        let number = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(Id).ok_or_else(|| Error::Unknown(text.chars().take(32).collect()))
    }
}

/// A part of the sensor that subscribes for itself. Nobody else alters such a subscription, takes from it or ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The flight recorder: a condition of one of its triggers.
    Recorder,
    /// A module.
    Module,
}

impl Part {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Part::Recorder => "recorder",
            Part::Module => "module",
        }
    }

    /// What is to be changed instead.
    const fn instead(self) -> &'static str {
        match self {
            Part::Recorder => "[[sensor.recorder.triggers]] of the configuration",
            Part::Module => "what the module wants (sensor.modules)",
        }
    }
}

/// Whose a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Client,
    /// The daemon that handed it on, and for whom.
    Peer(Asker),
    Own(Part),
}

/// Why a subscription is refused or not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be made.
    #[error(transparent)]
    Wanted(#[from] subscription::Error),
    /// There are too many.
    #[error("expected at most {SUBSCRIPTIONS_MAX} subscriptions, found as many; end one, or ask again later")]
    Full,
    /// There is no room for its queue.
    #[error(
        "expected queues of at most {QUEUES_MAX_BYTES} bytes together, found {0} more; ask for a smaller queue_bytes, or \
         end another subscription"
    )]
    Queues(u64),
    /// There is none.
    #[error("no subscription {0:?}; one from which nobody takes for {IDLE_MAX:?} ends; subscribe again")]
    Unknown(String),
    /// It is the sensor's own.
    #[error(
        "subscription: expected one of a caller, found one of the {}'s own; change {} instead",
        .0.as_str(),
        .0.instead()
    )]
    Own(Part),
    /// Nobody here knows who serves jobs.
    #[error(
        "selection: expected neither job nor call, as this daemon does not know who serves them; ask the sensor of that host"
    )]
    NoRolls,
    /// No number could be drawn.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

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

#[derive(Default)]
pub(super) struct Shared {
    pub(super) slots: Mutex<BTreeMap<Id, Slot>>,
    /// By the number of the kind.
    wishes: [OnceLock<Wish>; Kind::ALL.len()],
    journal: OnceLock<Reader>,
    rolls: OnceLock<Rolls>,
}

pub(super) struct Slot {
    pub(super) subscription: Subscription,
    owner: Owner,
    taken_at: Duration,
    pub(super) arrived: Arc<Notify>,
}

impl Hub {
    /// What is to be given to the sampler, once.
    #[must_use]
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(super::evaluating::Evaluating(Arc::clone(&self.0)))
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

    /// A new subscription.
    ///
    /// # Errors
    /// If it cannot be made, or there are too many; there is none then.
    pub fn subscribe(&self, wanted: Wanted) -> Result<Id, Error> {
        self.subscribe_for(None, wanted)
    }

    /// A new subscription of another daemon, for itself or for one account: that alone may take from it then, beside clients
    /// of this one.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_for(&self, owner: Option<Asker>, wanted: Wanted) -> Result<Id, Error> {
        self.subscribe_from(owner, wanted, None)
    }

    /// The same; of what happens, from this number in the journal on instead of from now on.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_from(
        &self,
        owner: Option<Asker>,
        wanted: Wanted,
        place: Option<u64>,
    ) -> Result<Id, Error> {
        self.make(owner.map_or(Owner::Client, Owner::Peer), wanted, place)
    }

    /// A new subscription of a part of the sensor itself.
    ///
    /// # Errors
    /// Likewise.
    pub fn subscribe_own(&self, part: Part, wanted: Wanted) -> Result<Id, Error> {
        self.make(Owner::Own(part), wanted, None)
    }

    fn make(&self, owner: Owner, wanted: Wanted, place: Option<u64>) -> Result<Id, Error> {
        let prepared = self.prepared(wanted)?;
        let id = Id(getrandom::u64().map_err(Error::Random)?);
        let now = running();
        let mut slots = locked(&self.0.slots);
        if slots.len() >= SUBSCRIPTIONS_MAX {
            return Err(Error::Full);
        }
        let mut subscription = Subscription::new(prepared, now);
        let newest = || self.0.journal.get().map_or(0, |journal| *journal.next().borrow());
        subscription.go_to(place.unwrap_or_else(newest), 0, 0);
        make_sure_of_room(&slots, None, subscription.wanted())?;
        slots.insert(id, Slot { subscription, owner, taken_at: now, arrived: Arc::default() });
        self.0.wish_for(&slots);
        Ok(id)
    }

    /// Another thing wanted by a subscription: `change` makes it of what it wants now, and again where somebody else altered it
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
            let mut slots = locked(&self.0.slots);
            if found(&mut slots, id)?.subscription.revision() != before.revision {
                continue;
            }
            make_sure_of_room(&slots, Some(id), &wanted)?;
            let slot = found(&mut slots, id)?;
            slot.subscription.alter(prepared, running());
            slot.taken_at = running();
            let standing = slot.subscription.standing();
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
        let arrived = Arc::clone(&found(&mut locked(&self.0.slots), id)?.arrived);
        let deadline = tokio::time::sleep(wait);
        tokio::pin!(deadline);
        let mut is_over = wait.is_zero();
        loop {
            let arrival = arrived.notified();
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

    /// The same, of one kind.
    pub fn miss_of(&self, kind: Kind, count: u64, of: f64, at_ns: u64) {
        let mut slots = locked(&self.0.slots);
        for slot in slots.values_mut().filter(|slot| slot.subscription.wanted().kind == kind) {
            slot.subscription.miss(count, of, at_ns);
            slot.arrived.notify_waiters();
        }
    }

    /// End those from which nobody takes, where no sweeps come that would do so.
    pub fn drop_idle(&self, now: Duration) {
        let mut slots = locked(&self.0.slots);
        if drop_idle(&mut slots, now) {
            self.0.wish_for(&slots);
        }
    }

    /// Move a subscription, with what waits in it, to another place, where this is wanted. Two must not be handed over in
    /// opposite directions at once.
    ///
    /// # Errors
    /// If there is none, there are too many at the other place, or what is wanted cannot be made: it stays then as it was.
    pub fn hand_over(&self, id: Id, to: &Hub, wanted: Wanted) -> Result<(), Error> {
        let prepared = to.prepared(wanted.clone())?;
        let (mut here, mut there) = (locked(&self.0.slots), locked(&to.0.slots));
        if there.len() >= SUBSCRIPTIONS_MAX {
            return Err(Error::Full);
        }
        make_sure_of_room(&there, None, &wanted)?;
        let mut slot = here.remove(&id).ok_or_else(|| Error::Unknown(id.to_string()))?;
        slot.subscription.alter(prepared, running());
        slot.subscription.begin_anew();
        there.insert(id, slot);
        self.0.wish_for(&here);
        to.0.wish_for(&there);
        Ok(())
    }

    /// Whether who asks, a client or another daemon, may have to do with it.
    ///
    /// # Errors
    /// If not, or there is none: one of another daemon, or account, is none to who asks.
    pub fn admit(&self, id: Id, asker: Option<Asker>) -> Result<(), Error> {
        match (locked(&self.0.slots).get(&id).map(|slot| slot.owner), asker) {
            (Some(Owner::Own(part)), None) => Err(Error::Own(part)),
            (Some(Owner::Client | Owner::Peer(_)), None) => Ok(()),
            (Some(Owner::Peer(owner)), Some(asker)) if owner == asker => Ok(()),
            (Some(_), Some(_)) | (None, _) => Err(Error::Unknown(id.to_string())),
        }
    }

    /// The part of the sensor whose own it is, if it is of one.
    #[must_use]
    pub fn part_of(&self, id: Id) -> Option<Part> {
        match locked(&self.0.slots).get(&id)?.owner {
            Owner::Own(part) => Some(part),
            Owner::Client | Owner::Peer(_) => None,
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
        Ok(found(&mut locked(&self.0.slots), id)?.subscription.standing())
    }

    /// How all of them stand.
    #[must_use]
    pub fn standings(&self) -> Vec<(Id, Standing)> {
        let slots = locked(&self.0.slots);
        slots.iter().map(|(id, slot)| (*id, slot.subscription.standing())).collect()
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
        let mut slots = locked(&self.0.slots);
        let slot = found(&mut slots, id)?;
        slot.taken_at = running();
        // One that is stopped is waited for too: who asks again and again would find it so without end, and it may be altered.
        if !slot.subscription.has_waiting() && !is_over {
            return Ok(None);
        }
        let (taken, standing) = (slot.subscription.take(limit), slot.subscription.standing());
        drop(slots);
        Ok(Some(Answer { entries: taken.entries().collect(), standing }))
    }
}

fn found(slots: &mut BTreeMap<Id, Slot>, id: Id) -> Result<&mut Slot, Error> {
    slots.get_mut(&id).ok_or_else(|| Error::Unknown(id.to_string()))
}

/// Whether all queues have room beside this one, which takes the place of that of `id`.
fn make_sure_of_room(slots: &BTreeMap<Id, Slot>, id: Option<Id>, wanted: &Wanted) -> Result<(), Error> {
    let others = slots.iter().filter(|(other, _)| Some(**other) != id);
    let taken = others.map(|(_, slot)| u64::from(slot.subscription.wanted().budget.queue_bytes)).sum::<u64>();
    let more = (taken + u64::from(wanted.budget.queue_bytes)).saturating_sub(QUEUES_MAX_BYTES);
    if more > 0 { Err(Error::Queues(more)) } else { Ok(()) }
}

impl Shared {
    /// Have what flows come as often as the fastest of its kind that is not stopped.
    pub(super) fn wish_for(&self, slots: &BTreeMap<Id, Slot>) {
        for kind in Kind::ALL {
            let live = slots.values().map(|slot| &slot.subscription).filter(|one| one.is_live());
            let rates = live.filter(|one| one.wanted().kind == kind).map(|one| swept(one.wanted().rate));
            let fastest = rates.reduce(|a, b: Rate| if b.hz() > a.hz() { b } else { a });
            if let Some(wish) = self.wishes[kind as usize].get() {
                wish.set(fastest);
            }
        }
    }
}

/// End those from which nobody takes; whether there were any.
pub(super) fn drop_idle(slots: &mut BTreeMap<Id, Slot>, now: Duration) -> bool {
    let before = slots.len();
    slots.retain(|_, slot| {
        let is_kept = now.saturating_sub(slot.taken_at) < IDLE_MAX;
        if !is_kept {
            slot.arrived.notify_waiters();
        }
        is_kept
    });
    slots.len() != before
}

/// CPU time of this thread.
pub(crate) fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
