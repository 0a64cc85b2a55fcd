//! `sensor.channels`, `sensor.subscribe`, `sensor.take`, `sensor.alter`, `sensor.unsubscribe`, `sensor.subscriptions`:
//! rate, filter, condition and budget set by the consumer while it runs, evaluated here.
//!
//! Rule: entries are handed out once; the number of the next is told, so that a lost answer is noticed. Scripts are taken only
//! from who asks this daemon itself.
//! Not here: the evaluation (`channel`), entries as values (`stream`), subscriptions to other hosts (`relays`).

pub mod relays;
pub(crate) mod stream;
mod wanted;

use super::{declared, processes, shape};
use crate::channel::fields::Subject;
use crate::channel::fields::call::Calls;
use crate::channel::fields::event::Events;
use crate::channel::fields::metric::Metrics;
use crate::channel::fields::process::Processes;
use crate::channel::hub::{Answer, Error, Hub, IDLE_MAX, Id, QUEUES_MAX_BYTES, SUBSCRIPTIONS_MAX};
use crate::channel::subscription::Standing;
use crate::representative::cursor::Cursor;
use rpc::apart::Apart;
use rpc::elsewhere::Caller;
use rpc::fault::{self, Fault};
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::channel::{Kind, RATE_MAX_HZ, RATE_MIN_HZ, Wanted};
use wire::time::Time;

/// Most entries of one answer: at the fastest rate a second.
const LIMIT_MAX: i64 = 1000;
/// Longest wait for a first entry, in seconds: below the time after which a call is given up.
const WAIT_MAX_SECS: f64 = 25.0;
/// Names of users asked for at a time.
const NAMES_AT_ONCE_MAX: usize = 4;
/// What is shown to everyone of a subscription: what it costs, and nothing of what it looks for or finds.
const SHOWN_TO_ALL: [&str; 8] =
    ["kind", "rate", "budget", "revision", "due", "missed", "throttled", "cpu_seconds"];
/// What is kept of the caller's time for the answer to arrive.
const ANSWER_TIME: Duration = Duration::from_millis(500);

pub(super) const STANDING: &str = "due counts the samples that were due, empty those of which nothing passed, missed the entries \
     left out, throttled those of them that all subscriptions together, or those of one user, used too much CPU time for; cpu_seconds and bytes are what it took since it was made; quarantined tells why it was stopped, if it is. Those that the sensor made \
     for itself have an owner (recorder, module) and no subscription to name them by: nobody else changes them.";
const DETAILS: &str = "filter: cpu > 0.5 and name ~ \"^slurm\" and rss_bytes changes by 1M top 10 by cpu; condition: sum cpu > 3.5 \
     until 2.5 for 10 s; sensor.channels tells the fields. selection: {name, user, command, pid, under, job, call} of \
     processes, {metric} of the host, {name, user, job, call, kind, outcome} of events, {name, user, job, call, outcome} of calls; \
     budget: {cpu_ms, bytes, queue_bytes}. A subscription from which nobody takes for 60 seconds ends.";

/// What the methods answer from.
#[derive(Clone)]
pub struct Channels {
    /// The subscriptions.
    pub hub: Hub,
    /// Fired when the sensor ends: nobody waits any longer.
    pub ending: CancellationToken,
}

impl Channels {
    /// All of them.
    #[must_use]
    pub fn methods(&self) -> Vec<Method> {
        let own = || self.clone();
        let (subscribing, altering, ending, listing, taking) = (own(), own(), own(), own(), own());
        let names = Apart::new("asking for a user's number", NAMES_AT_ONCE_MAX);
        let of_altered = names.clone();
        // Looked at once, so that a process has one start as long as the sensor runs.
        let booted = processes::booted();
        vec![
            declared::sensor_channels().handler_now(|_| Ok(kinds())),
            declared::sensor_subscriptions()
                .handler_for(move |caller, _| std::future::ready(Ok(listing.subscriptions(caller)))),
            declared::sensor_subscribe().handler_for(move |caller, params| {
                let (own, caller, names) = (subscribing.clone(), *caller, names.clone());
                async move { own.subscribe(&caller, &params, &names).await }
            }),
            declared::sensor_alter().handler_for(move |caller, params| {
                let (own, caller, names) = (altering.clone(), *caller, of_altered.clone());
                async move { own.alter(&caller, &params, &names).await }
            }),
            declared::sensor_unsubscribe()
                .handler_for(move |caller, params| std::future::ready(ending.unsubscribe(caller, &params))),
            declared::sensor_take().handler_for(move |caller, params| {
                let (taking, caller) = (taking.clone(), *caller);
                async move { taking.take(&caller, &params, booted).await }
            }),
        ]
    }

    async fn subscribe(&self, caller: &Caller, params: &Params, names: &Apart) -> Result<Value, Fault> {
        of_peer(caller, params)?;
        let kind = wanted::kind(params)?;
        let uid = uid(kind, params, names).await?;
        let wanted = wanted::changed(Wanted { kind, ..Wanted::default() }, params, uid)?;
        let place = self.place(kind, params)?;
        let id = self.hub.subscribe_from(caller.principal(), wanted, place)?;
        Ok(self.told(id, &self.hub.standing(id)?))
    }

    /// Where in the journal a call wants to begin.
    fn place(&self, kind: Kind, params: &Params) -> Result<Option<u64>, Fault> {
        let Some(given) = params.text("cursor")? else { return Ok(None) };
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

    /// How a subscription stands, with its place in the journal.
    fn told(&self, id: Id, stands: &Standing) -> Value {
        let mut told = standing(id, stands);
        if let (true, Some(journal), Value::Struct(members)) =
            (stands.wanted.kind.happens(), self.hub.journal(), &mut told)
        {
            let cursor = Cursor::new(journal.key(), stands.place);
            members.push(("cursor".into(), Value::Text(cursor.to_string())));
        }
        told
    }

    /// Where whoever was given `answer` goes on in the journal, should the subscription end. A script may hold back what it saw.
    fn place_after(&self, answer: &Answer) -> Option<Cursor> {
        let wanted = &answer.standing.wanted;
        let journal = self.hub.journal().filter(|_| wanted.kind.happens() && wanted.script.is_none())?;
        let at = stream::place_after(&answer.entries, answer.standing.waiting.0, answer.standing.place)?;
        Some(Cursor::new(journal.key(), at))
    }

    async fn alter(&self, caller: &Caller, params: &Params, names: &Apart) -> Result<Value, Fault> {
        of_peer(caller, params)?;
        let id = self.id(caller, params)?;
        // Before anything is locked.
        let uid = uid(self.hub.standing(id)?.wanted.kind, params, names).await?;
        let altered =
            self.hub.alter(id, |wanted| wanted::changed(wanted, params, uid).map_err(Refused::Fault));
        altered.map(|stands| self.told(id, &stands)).map_err(|refused| match refused {
            Refused::Fault(fault) => fault,
            Refused::Hub(error) => error.into(),
        })
    }

    /// The subscription that a call names; one of another daemon's is none to who asks.
    fn id(&self, caller: &Caller, params: &Params) -> Result<Id, Fault> {
        let id = id(params)?;
        self.hub.admit(id, caller.principal())?;
        Ok(id)
    }

    fn unsubscribe(&self, caller: &Caller, params: &Params) -> Result<Value, Fault> {
        let id = self.id(caller, params)?;
        Ok(self.told(id, &self.hub.unsubscribe(id)?))
    }

    fn subscriptions(&self, caller: &Caller) -> Value {
        let all = self.hub.standings();
        let fastest = all.iter().map(|(_, stands)| stands.wanted.rate.hz()).reduce(f64::max);
        // Which they are, and what their scripts say, is for their owners; the sensor's own have no name.
        let told = |(id, stands): &(Id, Standing)| {
            let mut told = self.told(*id, stands);
            let principal = caller.principal();
            if let (false, Value::Struct(members)) = (self.hub.is_shown(*id, principal), &mut told) {
                members.retain(|(name, _)| SHOWN_TO_ALL.contains(&name.as_ref()));
            }
            if let (false, Value::Struct(members)) = (self.hub.is_listed(*id, principal), &mut told) {
                members.retain(|(name, _)| !matches!(name.as_ref(), "subscription" | "script" | "cursor"));
                let part = self.hub.part_of(*id);
                members.extend(part.map(|part| (Name::Borrowed("owner"), Value::from(part.as_str()))));
            }
            told
        };
        Value::object([
            ("subscriptions", Value::array(all.iter().map(told))),
            ("rate", fastest.map_or(Value::Double(0.0), Value::Double)),
        ])
    }

    async fn take(&self, caller: &Caller, params: &Params, booted: Time) -> Result<Value, Fault> {
        let (id, (limit, wait)) = (self.id(caller, params)?, patience(params, caller.time_left)?);
        let answer = tokio::select! {
            answer = self.hub.take(id, limit, wait) => answer?,
            () = self.ending.cancelled() => return Err(Fault::unavailable("the sensor ends; subscribe again when it is back")),
        };
        let is_packed = params.flag("packed")?.unwrap_or(false);
        Ok(if is_packed {
            stream::packed(&answer, booted)
        } else {
            stream::answer(&answer, booted, self.place_after(&answer))
        })
    }
}

/// How many entries a call takes at most, and how long it waits for the first: no longer than who asks has `left`.
fn patience(params: &Params, left: Duration) -> Result<(usize, Duration), Fault> {
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let wait = params.number("wait")?.unwrap_or(0.0).clamp(0.0, WAIT_MAX_SECS);
    Ok((limit, Duration::from_secs_f64(wait).min(left.saturating_sub(ANSWER_TIME))))
}

/// The number of the user whose processes a call selects, if it does.
async fn uid(kind: Kind, params: &Params, names: &Apart) -> Result<Option<u32>, Fault> {
    match wanted::user_of_processes(kind, params)? {
        Some(user) => names.run(move || wanted::uid(&user)).await.map(Some),
        None => Ok(None),
    }
}

/// What a script may do is bounded, but it is a program: not from another daemon, which does not say for whom it asks.
fn of_peer(caller: &Caller, params: &Params) -> Result<(), Fault> {
    if caller.peer.is_some() && params.text("script")?.is_some_and(|script| !script.trim().is_empty()) {
        let told = "script: expected none in a subscription that another daemon hands on; ask the sensor of that host itself, or whoever represents its domain";
        return Err(Fault::new(fault::FORBIDDEN, told));
    }
    Ok(())
}

/// Why a subscription is not altered.
enum Refused {
    Fault(Fault),
    Hub(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Hub(error)
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

fn id(params: &Params) -> Result<Id, Fault> {
    Ok(params.need_text("subscription")?.parse::<Id>()?)
}

fn with_wanted(declaration: Declaration) -> Declaration {
    declaration
        .details(DETAILS)
        .parameter(Parameter::new("selection", Type::Struct, "which are meant; all unless given"))
        .parameter(Parameter::new("rate", Type::Number, "samples a second, 0.1 to 1000; 1 unless given"))
        .parameter(Parameter::new("filter", Type::Text, "which of them pass; all unless given"))
        .parameter(Parameter::new(
            "condition",
            Type::Text,
            "what is signalled when it becomes true and false",
        ))
        .parameter(Parameter::new("script", Type::Text, "what the filter cannot say (docs/channels.md)"))
        .parameter(Parameter::new(
            "changes",
            Type::Flag,
            "tell only what is other than in the sample before; no unless given",
        ))
        .parameter(Parameter::new(
            "only_signals",
            Type::Flag,
            "tell the condition's signals and no samples; no unless given",
        ))
        .parameter(Parameter::new("budget", Type::Struct, "what it may cost"))
}

pub(super) fn declaration_of_subscribe() -> Declaration {
    const KINDS: [&str; 4] =
        [Kind::Process.as_str(), Kind::Host.as_str(), Kind::Event.as_str(), Kind::Call.as_str()];
    let summary = "subscribe to what flows at this sensor; take what comes with sensor.take";
    with_wanted(Declaration::new("sensor.subscribe", summary))
        .parameter(Parameter::new("kind", Type::choice(&KINDS), "what flows").default(KINDS[0]))
        .parameter(Parameter::new(
            "cursor",
            Type::Text,
            "of events and calls: where to begin, as sensor.events gives it; with the next event unless given",
        ))
        .returns("struct", "subscription and how it stands, as in sensor.subscriptions")
}

pub(super) fn declaration_of_alter() -> Declaration {
    let summary = "change what a subscription wants, while it runs; what is not given stays";
    with_wanted(Declaration::new("sensor.alter", summary))
        .parameter(of_subscription())
        .returns("struct", "subscription and how it stands, as in sensor.subscriptions")
}

pub(super) fn declaration_of_unsubscribe() -> Declaration {
    Declaration::new("sensor.unsubscribe", "end a subscription; what waits is given up")
        .parameter(of_subscription())
        .returns("struct", "subscription and how it stood, as in sensor.subscriptions")
}

pub(super) fn declaration_of_take() -> Declaration {
    Declaration::new(
        "sensor.take",
        "take what waits of a subscription, the oldest first; each entry is given once",
    )
    .parameter(of_subscription())
    .parameter(
        Parameter::new("limit", Type::Whole { min: 1, max: LIMIT_MAX }, "at most so many entries")
            .default(100),
    )
    .parameter(
        Parameter::new("wait", Type::Span, "how long to wait for a first entry, at most 25 s").default(0.0),
    )
    .parameter(
        Parameter::new(
            "packed",
            Type::Flag,
            "entries as daemons hand them on: bytes, and when the host booted",
        )
        .default(false),
    )
    .returns("struct", "entries, next, missed, waiting, revision, cursor, condition, quarantined")
}

fn of_subscription() -> Parameter {
    Parameter::new("subscription", Type::Text, "as sensor.subscribe gave it").required()
}

fn fields<S: Subject>(kind: Kind) -> Value {
    let numbers = S::numbers().iter().map(|number| (number.name, "number", number.unit, number.help));
    let fields = numbers.chain(S::texts().iter().map(|text| (text.name, "text", "", text.help)));
    let field = |(name, kind, unit, help): (&'static str, &'static str, &'static str, &'static str)| {
        Value::object([("name", name), ("type", kind), ("unit", unit), ("help", help)])
    };
    let selection = kind.selectors().iter().map(|selector| Value::from(*selector));
    Value::object([
        ("kind", Value::from(kind.as_str())),
        ("fields", Value::array(fields.map(field))),
        ("selection", Value::array(selection)),
    ])
}

fn kinds() -> Value {
    let kinds = Kind::ALL.map(|kind| match kind {
        Kind::Process => fields::<Processes>(kind),
        Kind::Host => fields::<Metrics>(kind),
        Kind::Event => fields::<Events>(kind),
        Kind::Call => fields::<Calls>(kind),
    });
    let bounds = Value::object([
        ("rate_min", Value::Double(RATE_MIN_HZ)),
        ("rate_max", Value::Double(RATE_MAX_HZ)),
        ("subscriptions_max", Value::UInt(SUBSCRIPTIONS_MAX as u64)),
        ("queues_max_bytes", Value::UInt(QUEUES_MAX_BYTES)),
        ("idle_max_seconds", Value::Double(IDLE_MAX.as_secs_f64())),
    ]);
    Value::object([("kinds", Value::array(kinds)), ("bounds", bounds)])
}

fn standing(id: Id, stands: &Standing) -> Value {
    let wanted = &stands.wanted;
    let mut members: Vec<(Name, Value)> = vec![
        ("subscription".into(), Value::Text(id.to_string())),
        ("kind".into(), Value::from(wanted.kind.as_str())),
        ("selection".into(), wanted::selection(&wanted.selection)),
        ("rate".into(), Value::Double(wanted.rate.hz())),
        ("filter".into(), Value::Text(wanted.filter.to_string())),
        ("changes".into(), Value::Bool(wanted.changes)),
        ("only_signals".into(), Value::Bool(wanted.only_signals)),
        ("budget".into(), wanted::budget(wanted.budget)),
        ("revision".into(), Value::UInt(stands.revision)),
        ("next".into(), Value::UInt(stands.next)),
        ("due".into(), Value::UInt(stands.counts.due_total)),
        ("empty".into(), Value::UInt(stands.counts.empty_total)),
        ("waiting".into(), Value::UInt(stands.waiting.0 as u64)),
        ("waiting_bytes".into(), Value::UInt(stands.waiting.1 as u64)),
        ("missed".into(), Value::UInt(stands.missed_total)),
        ("throttled".into(), Value::UInt(stands.throttled_total)),
        ("cpu_seconds".into(), Value::Double(stands.cpu.as_secs_f64())),
        ("bytes".into(), Value::Double(stands.bytes_total)),
    ];
    let mut maybe = |name: &'static str, value: Option<Value>| {
        members.extend(value.map(|value| (Name::Borrowed(name), value)));
    };
    maybe("condition", wanted.condition.as_ref().map(|condition| Value::Text(condition.to_string())));
    maybe("is_true", stands.is_true.map(Value::Bool));
    maybe("script", wanted.script.clone().map(Value::Text));
    maybe("quarantined", stands.quarantined.clone().map(Value::Text));
    Value::Struct(members)
}
