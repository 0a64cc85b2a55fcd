//! `sensor.channels`, `sensor.subscribe`, `sensor.take`, `sensor.alter`, `sensor.unsubscribe`,
//! `sensor.subscriptions`: subscriptions whose rate, filter, condition and budget the consumer changes at run
//! time, evaluated here.
//!
//! Rule: each entry is delivered once. The answer has the number of the next entry, so that the client
//! detects a lost answer. Scripts are accepted only from direct clients of this daemon.
//! Not here: the evaluation (`channel`), the encoding of entries (`take_answer`), subscriptions to other
//! hosts (`relays`).

pub mod relays;
mod request;
mod take_answer;

use crate::channel::fields::Subject;
use crate::channel::fields::call::Calls;
use crate::channel::fields::event::Events;
use crate::channel::fields::metric::Metrics;
use crate::channel::fields::process::Processes;
use crate::channel::hub::{Answer, Error, Hub, IDLE_MAX, Id, QUEUES_MAX_BYTES, SUBSCRIPTIONS_MAX};
use crate::channel::subscription::Status;
use crate::process::boot_time::booted;
use crate::representative::cursor::Cursor;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::forward::Caller;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed::method;
use rpc::fault::Fault;
use std::future::ready;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::channels::{
    AlterParams, Bounds, Channel, Channels as Kinds, ChannelsParams, Field, FieldKind, Settings,
    SubscribeParams, Subscription, Subscriptions, SubscriptionsParams, UnsubscribeParams,
};
use wire::api::entries::{TakeAnswer, TakeParams};
use wire::channel::{ChannelRequest, Kind, RATE_MAX_HZ, RATE_MIN_HZ};
use wire::fault;
use wire::time::Time;

/// Longest wait for a first entry: below the timeout of a call.
const WAIT_MAX: Duration = Duration::from_secs(25);
/// Most lookups of user names at the same time.
const NAMES_AT_ONCE_MAX: usize = 4;
/// Part of the caller's time that is reserved for the answer to arrive.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// Data that the methods read.
#[derive(Clone)]
pub struct Channels {
    pub hub: Hub,
    /// Cancelled when the sensor shuts down: waiting calls then fail.
    pub ending: CancellationToken,
}

impl Channels {
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        let own = || self.clone();
        let (subscribing, altering, ending, listing, taking) = (own(), own(), own(), own(), own());
        let names = BlockingPool::new("asking for a user's number", NAMES_AT_ONCE_MAX);
        let of_altered = names.clone();
        // Read once, so that a process has the same start as long as the sensor runs.
        let booted = booted();
        vec![
            method(|_, ChannelsParams {}| ready(Ok(kinds()))),
            method(move |caller, SubscriptionsParams {}| ready(Ok(listing.subscriptions(caller)))),
            method(move |caller, params: SubscribeParams| {
                let (own, caller, names) = (subscribing.clone(), *caller, names.clone());
                async move { own.subscribe(&caller, &params, &names).await }
            }),
            method(move |caller, params: AlterParams| {
                let (own, caller, names) = (altering.clone(), *caller, of_altered.clone());
                async move { own.alter(&caller, &params, &names).await }
            }),
            method(move |caller, params: UnsubscribeParams| ready(ending.unsubscribe(caller, &params))),
            method(move |caller, params: TakeParams| {
                let (taking, caller) = (taking.clone(), *caller);
                async move { taking.take(&caller, &params, booted).await }
            }),
        ]
    }

    async fn subscribe(
        &self,
        caller: &Caller,
        params: &SubscribeParams,
        names: &BlockingPool,
    ) -> Result<Subscription, Fault> {
        let SubscribeParams { kind, settings, cursor } = params;
        of_peer(caller, settings)?;
        let uid = uid(*kind, settings, names).await?;
        let wanted =
            request::changed(ChannelRequest { kind: *kind, ..ChannelRequest::default() }, settings, uid)?;
        let place = self.place(*kind, cursor.as_deref())?;
        let id = self.hub.subscribe_from(caller.principal(), wanted, place)?;
        Ok(self.standing(id, &self.hub.status(id)?))
    }

    /// Returns the place in the journal where a subscription starts.
    fn place(&self, kind: Kind, cursor: Option<&str>) -> Result<Option<u64>, Fault> {
        let Some(given) = cursor else { return Ok(None) };
        let journal = self.hub.journal().filter(|_| kind.happens()).ok_or_else(|| {
            Fault::invalid_params("cursor: expected none but for kind event or call; leave it out")
        })?;
        match given {
            "" => return Ok(Some(journal.oldest())),
            "end" => return Ok(None),
            _ => {}
        }
        let place = given.parse::<Cursor>().ok().and_then(|cursor| cursor.at(journal.key()));
        place.map(Some).ok_or_else(|| {
            Fault::invalid_params(format!(
                "cursor: expected a cursor of sensor.events or of a subscription of this sensor, \"end\" or \"\" (the \
                 oldest event kept), found {given:?}"
            ))
        })
    }

    /// Returns the state of a subscription, with its place in the journal.
    fn standing(&self, id: Id, stands: &Status) -> Subscription {
        let journal = self.hub.journal().filter(|_| stands.wanted.kind.happens());
        let cursor = journal.map(|journal| Cursor::new(journal.key(), stands.place).to_string());
        Subscription { cursor, ..standing(id, stands) }
    }

    /// Returns the cursor from which the client that received `answer` can continue in the journal if the
    /// subscription ends. `None` with a script, which may hold back events that it has read.
    fn place_after(&self, answer: &Answer) -> Option<Cursor> {
        let wanted = &answer.status.wanted;
        let journal = self.hub.journal().filter(|_| wanted.kind.happens() && wanted.script.is_none())?;
        let at = take_answer::place_after(&answer.entries, answer.status.waiting.0, answer.status.place)?;
        Some(Cursor::new(journal.key(), at))
    }

    async fn alter(
        &self,
        caller: &Caller,
        params: &AlterParams,
        names: &BlockingPool,
    ) -> Result<Subscription, Fault> {
        of_peer(caller, &params.settings)?;
        let id = self.id(caller, &params.subscription)?;
        // Looked up before anything is locked.
        let uid = uid(self.hub.status(id)?.wanted.kind, &params.settings, names).await?;
        let altered = self
            .hub
            .alter(id, |wanted| request::changed(wanted, &params.settings, uid).map_err(AlterError::Fault));
        altered.map(|stands| self.standing(id, &stands)).map_err(|refused| match refused {
            AlterError::Fault(fault) => fault,
            AlterError::Hub(error) => error.into(),
        })
    }

    /// Returns the subscription that a call names; a subscription of another client is unknown to the caller.
    fn id(&self, caller: &Caller, subscription: &str) -> Result<Id, Fault> {
        let id = subscription.parse()?;
        self.hub.admit(id, caller.principal())?;
        Ok(id)
    }

    fn unsubscribe(&self, caller: &Caller, params: &UnsubscribeParams) -> Result<Subscription, Fault> {
        let id = self.id(caller, &params.subscription)?;
        Ok(self.standing(id, &self.hub.unsubscribe(id)?))
    }

    fn subscriptions(&self, caller: &Caller) -> Subscriptions {
        let all = self.hub.statuses();
        let fastest = all.iter().map(|(_, stands)| stands.wanted.rate.hz()).reduce(f64::max);
        let principal = caller.principal();
        // Ids and scripts are shown only to owners; the sensor's own subscriptions have no id.
        let shown = |(id, stands): &(Id, Status)| {
            let mut shown = self.standing(*id, stands);
            if !self.hub.is_shown(*id, principal) {
                shown = shown.shown_to_all();
            }
            if !self.hub.is_listed(*id, principal) {
                let owner = self.hub.part_of(*id).map(|part| part.as_str().to_owned());
                shown = Subscription { subscription: None, script: None, cursor: None, owner, ..shown };
            }
            shown
        };
        Subscriptions { subscriptions: all.iter().map(shown).collect(), rate_hz: fastest.unwrap_or_default() }
    }

    async fn take(&self, caller: &Caller, params: &TakeParams, booted: Time) -> Result<TakeAnswer, Fault> {
        let (id, (limit, wait)) =
            (self.id(caller, &params.subscription)?, patience(params, caller.time_left));
        let answer = tokio::select! {
            answer = self.hub.take(id, limit, wait) => answer?,
            () = self.ending.cancelled() => return Err(Fault::unavailable("the sensor ends; subscribe again when it is back")),
        };
        let cursor = self.place_after(&answer).map(|place| place.to_string());
        Ok(TakeAnswer { cursor, ..take_answer::take_answer(answer, booted, params.packed) })
    }
}

/// Returns the most entries of a call, and how long it waits for the first: less than the time that its
/// caller has `left`.
fn patience(params: &TakeParams, left: Duration) -> (usize, Duration) {
    let limit = usize::try_from(params.limit).unwrap_or(1);
    (limit, params.wait.0.min(WAIT_MAX).min(left.saturating_sub(ANSWER_TIME)))
}

/// Looks up the uid of the user whose processes a call selects, if it selects by user.
async fn uid(kind: Kind, settings: &Settings, names: &BlockingPool) -> Result<Option<u32>, Fault> {
    match request::user_of_processes(kind, settings) {
        Some(user) => names.run(move || request::uid(&user)).await.map(Some),
        None => Ok(None),
    }
}

/// Rejects scripts from another daemon. A script's resources are limited, but it is a program, and a daemon
/// does not state which client it forwards for.
fn of_peer(caller: &Caller, settings: &Settings) -> Result<(), Fault> {
    if caller.peer.is_some() && settings.script.as_ref().is_some_and(|script| !script.trim().is_empty()) {
        return Err(Fault::new(
            fault::FORBIDDEN,
            "script: expected none in a subscription that another daemon hands on; ask the sensor of that host itself, or the \
             representative of its domain",
        ));
    }
    Ok(())
}

/// Reason why a subscription is not altered.
enum AlterError {
    Fault(Fault),
    Hub(Error),
}

impl From<Error> for AlterError {
    fn from(error: Error) -> AlterError {
        AlterError::Hub(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let code = match error {
            Error::Wanted(_) | Error::NoRolls => fault::INVALID_PARAMS,
            Error::Full | Error::Queues(_) => fault::BUSY,
            Error::Unknown(_) => fault::NOT_FOUND,
            Error::Own(_) => fault::FORBIDDEN,
            Error::Random(_) => fault::SYSTEM,
        };
        Fault::new(code, error.to_string())
    }
}

fn fields<S: Subject>(kind: Kind) -> Channel {
    let numbers = S::numbers().iter().map(|number| (number.name, number.unit, number.help));
    let texts = S::texts().iter().map(|text| (text.name, "", text.help));
    Channel {
        kind: kind.into(),
        fields: numbers.map(field(FieldKind::Number)).chain(texts.map(field(FieldKind::Text))).collect(),
        selection: kind.selectors().iter().map(|selector| (*selector).to_owned()).collect(),
    }
}

fn field(kind: FieldKind) -> impl Fn((&'static str, &'static str, &'static str)) -> Field {
    move |(name, unit, help)| Field {
        name: name.to_owned(),
        kind,
        unit: unit.to_owned(),
        help: help.to_owned(),
    }
}

fn kinds() -> Kinds {
    let kinds = Kind::ALL.map(|kind| match kind {
        Kind::Process => fields::<Processes>(kind),
        Kind::Host => fields::<Metrics>(kind),
        Kind::Event => fields::<Events>(kind),
        Kind::Call => fields::<Calls>(kind),
    });
    let bounds = Bounds {
        rate_min_hz: RATE_MIN_HZ,
        rate_max_hz: RATE_MAX_HZ,
        subscriptions_max: SUBSCRIPTIONS_MAX as u64,
        queues_max_bytes: QUEUES_MAX_BYTES,
        idle_max_seconds: IDLE_MAX.as_secs_f64(),
    };
    Kinds { kinds: kinds.to_vec(), bounds }
}

fn standing(id: Id, stands: &Status) -> Subscription {
    let wanted = &stands.wanted;
    Subscription {
        subscription: Some(id.to_string()),
        owner: None,
        kind: wanted.kind.into(),
        selection: Some((&wanted.selection).into()),
        rate_hz: wanted.rate.hz(),
        filter: Some(wanted.filter.to_string()),
        condition: wanted.condition.as_ref().map(ToString::to_string),
        is_true: stands.is_true,
        script: wanted.script.clone(),
        changes: Some(wanted.changes),
        only_signals: Some(wanted.only_signals),
        budget: wanted.budget.into(),
        revision: stands.revision,
        next: Some(stands.next),
        due: stands.counts.due_total,
        empty: Some(stands.counts.empty_total),
        waiting: Some(stands.waiting.0 as u64),
        waiting_bytes: Some(stands.waiting.1 as u64),
        missed: stands.missed_total,
        throttled: stands.throttled_total,
        cpu_seconds: stands.cpu.as_secs_f64(),
        bytes: Some(stands.bytes_total),
        quarantined: stands.quarantined.clone(),
        cursor: None,
    }
}
