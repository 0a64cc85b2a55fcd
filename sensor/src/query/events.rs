//! `sensor.events`, and what `domain.events` has in common with it: what was found in the logs, from a cursor on.
//!
//! A cursor names the journal, by the sensor's key, and the sequence number of the next event in it; it outlives
//! restarts, and a journal that was begun anew refuses it. The last events that fit are looked for from the newest
//! back. Reading the disk is done where it may block.

use super::found::{Found, Rest};
use super::{chosen, declared};
use crate::journal::reader::{Page, Reader};
use crate::representative::cursor::Cursor;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::apart::Apart;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::written::Answered;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::event::{Content, Event, Kind};
use wire::query::Form;
use wire::time::Time;

/// Most events of one answer: about 5 MB of XML.
const LIMIT_MAX: i64 = 10_000;
/// Longest wait for a first event, in seconds: below the time after which a call is given up.
const WAIT_MAX_SECS: f64 = 25.0;
/// Events looked at in one go before other queries get a turn at the disk's thread.
pub(super) const LOOKED_AT_MAX: usize = 200_000;
/// Of the last events so many are looked at first, and then twice as many each time: mostly they fit.
pub(super) const LOOKED_AT_FIRST: usize = 1_024;

/// What the methods read from.
#[derive(Clone)]
pub struct Events {
    reader: Reader,
    joiner: Arc<Mutex<Joiner>>,
    ending: CancellationToken,
    apart: Apart,
}

/// Readings at a time: each is short, and one that waits for its first event is none.
pub(super) const READ_AT_ONCE_MAX: usize = 16;

/// What is asked for.
pub(super) struct Wanted {
    pub(super) limit: usize,
    /// Whether the last that fit are wanted.
    pub(super) is_last: bool,
    kinds: Vec<Kind>,
    calls: Option<Vec<CompactString>>,
    job: Option<String>,
    user: Option<String>,
    host: Option<String>,
    since: Option<Time>,
    until: Option<Time>,
    pub(super) wait: Duration,
}

/// Ids of the calls that the wanted job and user mean now; nobody's if none is wanted.
#[derive(Default)]
pub(super) struct Chosen {
    of_job: HashSet<CompactString>,
    of_user: HashSet<CompactString>,
}

impl Wanted {
    /// Whether the calls must be known to say what fits.
    pub(super) fn chooses_calls(&self) -> bool {
        self.job.is_some() || self.user.is_some()
    }

    /// Looked up anew for each reading, since calls come while one waits.
    pub(super) fn chosen(&self, joiner: &Joiner) -> Chosen {
        let of_job = self.job.as_ref().map(|job| chosen::event_ids_of_job(joiner, job));
        let of_user = self.user.as_ref().map(|user| chosen::event_ids_of_user(joiner, user));
        Chosen { of_job: of_job.unwrap_or_default(), of_user: of_user.unwrap_or_default() }
    }

    pub(super) fn fits(&self, event: &Event, chosen: &Chosen) -> bool {
        let content = &event.content;
        (self.kinds.is_empty() || self.kinds.contains(&content.kind))
            && self.calls.as_ref().is_none_or(|calls| calls.contains(&event.call))
            && self.job.as_ref().is_none_or(|job| *job == content.job || chosen.of_job.contains(&event.call))
            && self
                .user
                .as_ref()
                .is_none_or(|user| *user == content.user || chosen.of_user.contains(&event.call))
            && self.host.as_ref().is_none_or(|host| is_party(content, host))
            && self.since.is_none_or(|since| content.time >= since)
            && self.until.is_none_or(|until| content.time <= until)
    }
}

impl Events {
    /// Of a journal; with the calls, for the names under which a call's events stand. Once `ending` fires nobody waits any longer
    /// for events.
    #[must_use]
    pub fn new(reader: Reader, joiner: Arc<Mutex<Joiner>>, ending: CancellationToken) -> Events {
        Events { reader, joiner, ending, apart: Apart::new("reading the journal", READ_AT_ONCE_MAX) }
    }

    /// `sensor.events`.
    #[must_use]
    pub fn method(&self) -> Method {
        self.answering(declared::sensor_events())
    }

    /// `domain.events` of a sensor that is its whole domain.
    #[must_use]
    pub fn method_of_domain(&self) -> Method {
        self.answering(declared::domain_events())
    }

    fn answering(&self, declaration: Declaration) -> Method {
        let own = self.clone();
        declaration.handler_writing(move |params, form| {
            let own = own.clone();
            async move { own.answer(&params, form).await }
        })
    }

    async fn answer(&self, params: &Params, form: Option<Form>) -> Result<Answered, Fault> {
        let wanted = Arc::new(self.wanted(params)?);
        if wanted.is_last {
            return self.last(wanted, form).await;
        }
        let mut next = self.reader.next();
        let mut cursor = match params.text("cursor")?.unwrap_or_default() {
            "" => 0,
            "end" => *next.borrow_and_update(),
            text => self.place(text)?,
        };
        let (mut found, mut missed) = (Found::new(form), 0);
        let deadline = tokio::time::sleep(wanted.wait);
        tokio::pin!(deadline);
        loop {
            let newest = *next.borrow_and_update();
            let page;
            (page, found) = self.read(cursor, found, Arc::clone(&wanted)).await?;
            missed += page.missed;
            let went_on = page.cursor != cursor;
            cursor = page.cursor;
            // A reading ends early where few of the events looked at fit: then there is more to look at.
            if found.len() < wanted.limit && went_on && cursor < newest {
                continue;
            }
            if found.len() > 0 || wanted.wait.is_zero() {
                return Ok(self.shown(found, cursor, missed));
            }
            tokio::select! {
                () = self.ending.cancelled() => return Ok(self.shown(found, cursor, missed)),
                () = &mut deadline => return Ok(self.shown(found, cursor, missed)),
                changed = next.changed() => if changed.is_err() {
                    return Ok(self.shown(found, cursor, missed));
                }
            }
        }
    }

    fn cursor(&self, at: u64) -> Cursor {
        Cursor::new(self.reader.key(), at)
    }

    /// The place in this journal that a cursor means.
    fn place(&self, text: &str) -> Result<u64, Fault> {
        let cursor: Cursor = text.parse().map_err(|_| {
            Fault::invalid_params(format!(
                "cursor: expected a cursor of a former answer, \"end\" or \"\", found {text:?}"
            ))
        })?;
        cursor.at(self.reader.key()).ok_or_else(|| {
            Fault::invalid_params(format!(
                "cursor: {text} is of another sensor, or from before this one's state was begun anew: no place here \
                 is meant by it; go on with \"\" (the oldest event kept) or \"end\""
            ))
        })
    }

    /// The last events that fit, looked for from the newest back.
    async fn last(&self, wanted: Arc<Wanted>, form: Option<Form>) -> Result<Answered, Fault> {
        let (newest, oldest) = (*self.reader.next().borrow(), self.reader.oldest());
        let (mut found, mut missed) = (VecDeque::new(), 0);
        let (mut end, mut looked_at) = (newest, wanted.limit.max(LOOKED_AT_FIRST));
        while found.len() < wanted.limit && end > oldest {
            let begin = end.saturating_sub(looked_at as u64).max(oldest);
            let (part, damaged) = self.last_of(begin, end, Arc::clone(&wanted), form).await?;
            for event in part.into_iter().rev().take(wanted.limit - found.len()) {
                found.push_front(event);
            }
            missed += damaged;
            end = begin;
            looked_at = (looked_at * 2).min(LOOKED_AT_MAX);
        }
        let mut all = Found::new(form);
        found.into_iter().for_each(|one| all.append(one));
        Ok(self.shown(all, newest, missed))
    }

    /// The last of these events that fit, as many as are wanted; and how many of them cannot be read.
    async fn last_of(
        &self,
        begin: u64,
        end: u64,
        wanted: Arc<Wanted>,
        form: Option<Form>,
    ) -> Result<(VecDeque<Found>, u64), Fault> {
        let reader = self.reader.clone();
        let joiner = Arc::clone(&self.joiner);
        let reading = move || {
            let chosen = chosen_of(&wanted, &joiner);
            let mut last = VecDeque::new();
            let page = reader.read_before(begin, end, |event| {
                if wanted.fits(event, &chosen) {
                    if last.len() == wanted.limit {
                        last.pop_front();
                    }
                    let mut one = Found::new(form);
                    add(&mut one, event, &joiner);
                    last.push_back(one);
                }
                None::<()>
            });
            page.map(|page| (last, page.missed)).map_err(unreadable)
        };
        self.apart.run(reading).await
    }

    /// What fits from `cursor` on, up to what is wanted, behind what was found before.
    async fn read(
        &self,
        cursor: u64,
        mut found: Found,
        wanted: Arc<Wanted>,
    ) -> Result<(Page<()>, Found), Fault> {
        let reader = self.reader.clone();
        let joiner = Arc::clone(&self.joiner);
        let reading = move || {
            let chosen = chosen_of(&wanted, &joiner);
            let limit = wanted.limit - found.len();
            let take = |event: &Event| wanted.fits(event, &chosen).then(|| add(&mut found, event, &joiner));
            let page = reader.read_some(cursor, limit, LOOKED_AT_MAX, take).map_err(unreadable)?;
            Ok((page, found))
        };
        self.apart.run(reading).await
    }

    fn shown(&self, found: Found, cursor: u64, missed: u64) -> Answered {
        found.answer(&Rest { cursor: self.cursor(cursor).to_string(), missed, unheard: &[] })
    }

    fn wanted(&self, params: &Params) -> Result<Wanted, Fault> {
        Wanted::new(params, |call| {
            chosen::event_ids_of_call(&self.joiner.lock().unwrap_or_else(PoisonError::into_inner), call)
        })
    }
}

impl Wanted {
    /// What these parameters ask for; `ids` gives the ids under which events of a call stand.
    pub(super) fn new(params: &Params, ids: impl Fn(&str) -> Vec<CompactString>) -> Result<Wanted, Fault> {
        let kind = |word: &str| {
            Kind::from_word(word).ok_or_else(|| {
                let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
                Fault::invalid_params(format!("kind: expected one of {}, found {word:?}", known.join(", ")))
            })
        };
        let secs = params.number("wait")?.unwrap_or(0.0);
        let is_last = params.flag("last")? == Some(true);
        if is_last && (params.value("cursor").is_some() || secs > 0.0) {
            return Err(Fault::invalid_params(
                "last: expected neither cursor nor wait beside it, for it begins at the newest event; to go on from \
                 there give the cursor of its answer, without last",
            ));
        }
        Ok(Wanted {
            limit: usize::try_from(params.need_whole("limit")?).unwrap_or(1),
            is_last,
            kinds: params.texts("kind")?.into_iter().map(kind).collect::<Result<_, _>>()?,
            calls: params.text("call")?.map(ids),
            job: params.text("job")?.map(ToOwned::to_owned),
            user: params.text("user")?.map(ToOwned::to_owned),
            host: params.text("on_host")?.map(ToOwned::to_owned),
            since: params.time("since")?,
            until: params.time("until")?,
            wait: Duration::from_secs_f64(secs.clamp(0.0, WAIT_MAX_SECS)),
        })
    }
}

/// One more event, whose call is told by the id that it has now: some become known by a better one.
fn add(found: &mut Found, event: &Event, joiner: &Mutex<Joiner>) {
    let present = joiner.lock().unwrap_or_else(PoisonError::into_inner).present_id(&event.call).cloned();
    found.add(event, present.as_ref().unwrap_or(&event.call));
}

fn chosen_of(wanted: &Wanted, joiner: &Mutex<Joiner>) -> Chosen {
    match wanted.chooses_calls() {
        true => wanted.chosen(&joiner.lock().unwrap_or_else(PoisonError::into_inner)),
        false => Chosen::default(),
    }
}

/// What is stored cannot be read.
pub(super) fn unreadable(error: crate::segments::Error) -> Fault {
    Fault::new(rpc::fault::SYSTEM, error.to_string())
}

/// Whether a host acts in an event or is acted on.
fn is_party(content: &Content, host: &str) -> bool {
    let parties = content.from.split(',').chain(content.to.split(','));
    parties.map(str::trim).any(|party| super::calls::is_host(party, host))
}

pub(super) fn declaration(name: &'static str, summary: &'static str) -> Declaration {
    Declaration::new(name, summary)
        .reading()
        .details(
            "Give the cursor of one answer to the next call to go on where it ended; a cursor outlives restarts. \
             missed counts events that were deleted to keep the disk budget before this cursor could read them.",
        )
        .parameter(Parameter::new(
            "cursor",
            Type::Text,
            "where to go on, as a former answer gave it; \"\" is the oldest event kept, \"end\" after the newest",
        ))
        .parameter(
            Parameter::new("limit", Type::Whole { min: 1, max: LIMIT_MAX }, "at most so many events")
                .default(1000),
        )
        .parameter(
            Parameter::new("last", Type::Flag, "the last `limit` events that fit, oldest first, instead of the first from the cursor on")
                .default(false),
        )
        .parameter(Parameter::new("kind", Type::Texts, "only events of this kind, or of these kinds"))
        .parameter(Parameter::new("call", Type::Text, "only events of this call; * or \u{2026} in it stand for any characters"))
        .parameter(Parameter::new("job", Type::Text, "only events of calls that bear this job number, or are a part of it"))
        .parameter(Parameter::new("user", Type::Text, "only events of this user's calls"))
        .parameter(Parameter::new(
            "on_host",
            Type::Text,
            "only those from or to this host (with or without its domain)",
        ))
        .parameter(Parameter::new("since", Type::Time, "only events whose time is this or later"))
        .parameter(Parameter::new("until", Type::Time, "only events whose time is this or earlier"))
        .parameter(Parameter::new("wait", Type::Span, "how long to wait for a first event, at most 25 s"))
        .returns("struct", "events, cursor, missed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Id, Source};
    use wire::id::{Generation, SensorKey};

    #[test]
    fn an_event_that_prints_no_user_and_another_number_is_found_by_its_call() {
        let wanted = Wanted {
            limit: 1,
            is_last: false,
            kinds: Vec::new(),
            calls: None,
            job: Some("94".into()),
            user: Some("ada".into()),
            host: None,
            since: None,
            until: None,
            wait: Duration::ZERO,
        };
        let mut content = Content::new(Kind::JobStart, Time::from_micros(1));
        content.job = "100".into();
        let event = Event {
            id: Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 },
            seen: Time::from_micros(1),
            call: "slurm:94_2".into(),
            content,
            source: Source { host: "h".into(), file: "/f".into(), filter: "slurmctld".into() },
        };
        let call = || HashSet::from([CompactString::from("slurm:94_2")]);
        assert!(wanted.fits(&event, &Chosen { of_job: call(), of_user: call() }));
        assert!(!wanted.fits(&event, &Chosen { of_job: call(), ..Chosen::default() }));
        assert!(!wanted.fits(&event, &Chosen { of_user: call(), ..Chosen::default() }));
    }
}
