//! `sensor.events` and its common part with `domain.events`: events from the logs, starting at a cursor.
//!
//! A cursor names the journal by the sensor's key, and the sequence number of the next event in it. It
//! survives restarts; a journal that was created again rejects it. A query for the last events that match
//! searches backwards from the newest. The disk is read where that may block.

use super::block_query::BlockQuery;
use super::calls::owners;
use super::encoded_events::{AnswerFields, EncodedEvents};
use super::event_query::{EventQuery, MatchingCalls};
use crate::call_ids;
use crate::journal::reader::{Choose, Page, Reader};
use crate::representative::cursor::Cursor;
use crate::segments::packed::summary::Summary;
use call_store::answer::Owners;
use log_filters::join::Joiner;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::encoded_answer::Answered;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use wire::api::events::{DomainEventsParams, EventsParams, SensorEventsParams};
use wire::event::{Event, Fields};
use wire::query::{Form, Viewer};
use wire::text_regex::TextRegex;

/// Most events examined in one read before other queries get their turn at the disk.
pub(super) const LOOKED_AT_MAX: usize = 200_000;
/// Number of events examined first in a search for the last events; it doubles each time. Mostly the first
/// ones match.
pub(super) const LOOKED_AT_FIRST: usize = 1_024;

/// Data that the methods read.
#[derive(Clone)]
pub struct Events {
    reader: Reader,
    joiner: Arc<Mutex<Joiner>>,
    ending: CancellationToken,
    pool: BlockingPool,
}

/// Most reads at the same time: each is short, and a call that waits for its first event is not reading.
pub(super) const READ_AT_ONCE_MAX: usize = 16;

impl Events {
    /// Reads a journal; the calls give the ids that a call's events have. Calls that wait for events return
    /// when `ending` is cancelled.
    #[must_use]
    pub fn new(reader: Reader, joiner: Arc<Mutex<Joiner>>, ending: CancellationToken) -> Events {
        Events { reader, joiner, ending, pool: BlockingPool::new("reading the journal", READ_AT_ONCE_MAX) }
    }

    /// `sensor.events`.
    #[must_use]
    pub fn method(&self) -> Method {
        let own = self.clone();
        typed::method_writing(move |caller, SensorEventsParams(params), form| {
            let (own, viewer) = (own.clone(), caller.viewer);
            async move { own.answer(&params, viewer, form).await }
        })
    }

    /// `domain.events` of a sensor that is the only one of its domain.
    #[must_use]
    pub fn method_of_domain(&self) -> Method {
        let own = self.clone();
        typed::method_writing(move |caller, DomainEventsParams(params), form| {
            let (own, viewer) = (own.clone(), caller.viewer);
            async move { own.answer(&params, viewer, form).await }
        })
    }

    async fn answer(
        &self,
        params: &EventsParams,
        viewer: Viewer,
        form: Option<Form>,
    ) -> Result<Answered, Fault> {
        let wanted = Arc::new(self.wanted(params, owners(viewer).await)?);
        if wanted.is_last {
            return self.last(wanted, form).await;
        }
        let mut next = self.reader.next();
        let mut cursor = match params.cursor.as_deref().unwrap_or_default() {
            "" => 0,
            "end" => *next.borrow_and_update(),
            text => self.place(text)?,
        };
        let (mut found, mut missed) = (EncodedEvents::new(form), 0);
        let deadline = tokio::time::sleep(wanted.wait);
        tokio::pin!(deadline);
        loop {
            let newest = *next.borrow_and_update();
            let page;
            (page, found) = self.read(cursor, found, Arc::clone(&wanted)).await?;
            missed += page.missed;
            let went_on = page.cursor != cursor;
            cursor = page.cursor;
            // A read ends early where few of the examined events match: then there are more to examine.
            if found.len() < wanted.limit && went_on && cursor < newest {
                continue;
            }
            if found.len() > 0 || wanted.wait.is_zero() {
                return self.to_answer(found, cursor, missed);
            }
            tokio::select! {
                () = self.ending.cancelled() => return self.to_answer(found, cursor, missed),
                () = &mut deadline => return self.to_answer(found, cursor, missed),
                changed = next.changed() => if changed.is_err() {
                    return self.to_answer(found, cursor, missed);
                }
            }
        }
    }

    fn cursor(&self, at: u64) -> Cursor {
        Cursor::new(self.reader.key(), at)
    }

    /// Returns the place in this journal that a cursor names.
    fn place(&self, text: &str) -> Result<u64, Fault> {
        let cursor: Cursor = text.parse().map_err(|_| {
            Fault::invalid_params(format!(
                "cursor: expected a cursor of an earlier answer, \"end\" or \"\", found {text:?}"
            ))
        })?;
        cursor.at(self.reader.key()).ok_or_else(|| {
            Fault::invalid_params(format!(
                "cursor: {text} is of another sensor, or from before this one's state was created again: no place here \
                 is meant by it; go on with \"\" (the oldest event kept) or \"end\""
            ))
        })
    }

    /// Returns the last events that match, searching backwards from the newest.
    async fn last(&self, wanted: Arc<EventQuery>, form: Option<Form>) -> Result<Answered, Fault> {
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
        let mut all = EncodedEvents::new(form);
        found.into_iter().for_each(|one| all.append(one));
        self.to_answer(all, newest, missed)
    }

    /// Returns the last events between `begin` and `end` that match, at most `limit`, and how many of them
    /// cannot be read.
    async fn last_of(
        &self,
        begin: u64,
        end: u64,
        wanted: Arc<EventQuery>,
        form: Option<Form>,
    ) -> Result<(VecDeque<EncodedEvents>, u64), Fault> {
        let reader = self.reader.clone();
        let joiner = Arc::clone(&self.joiner);
        let reading = move || {
            let mut last = VecDeque::new();
            let reader = reader.choosing(Chosen::new(&wanted, &joiner));
            let page = reader.read_before(begin, end, |event| {
                if last.len() == wanted.limit {
                    last.pop_front();
                }
                let mut one = EncodedEvents::new(form);
                add(&mut one, event, &joiner);
                last.push_back(one);
                None::<()>
            });
            page.map(|page| (last, page.missed)).map_err(unreadable)
        };
        self.pool.run(reading).await
    }

    /// Appends the events that match, starting at `cursor`, to those found before, up to the limit.
    async fn read(
        &self,
        cursor: u64,
        mut found: EncodedEvents,
        wanted: Arc<EventQuery>,
    ) -> Result<(Page<()>, EncodedEvents), Fault> {
        let reader = self.reader.clone();
        let joiner = Arc::clone(&self.joiner);
        let reading = move || {
            let limit = wanted.limit - found.len();
            let reader = reader.choosing(Chosen::new(&wanted, &joiner));
            let take = |event: &Event| {
                add(&mut found, event, &joiner);
                Some(())
            };
            let page = reader.read_some(cursor, limit, LOOKED_AT_MAX, take).map_err(unreadable)?;
            Ok((page, found))
        };
        self.pool.run(reading).await
    }

    fn to_answer(&self, found: EncodedEvents, cursor: u64, missed: u64) -> Result<Answered, Fault> {
        found.answer(&AnswerFields { cursor: self.cursor(cursor).to_string(), missed, unheard: &[] })
    }

    fn wanted(&self, params: &EventsParams, owners: Owners) -> Result<EventQuery, Fault> {
        EventQuery::new(params, owners, |call| {
            call_ids::event_ids_of_call(&self.joiner.lock().unwrap_or_else(PoisonError::into_inner), call)
        })
    }
}

/// Adds an event with the present id of its call: some calls get a better id later.
fn add(found: &mut EncodedEvents, event: &Event, joiner: &Mutex<Joiner>) {
    let present = joiner.lock().unwrap_or_else(PoisonError::into_inner).present_id(&event.call).cloned();
    found.add(event, present.as_ref().unwrap_or(&event.call));
}

/// The requested events of a journal, with the calls that match now.
struct Chosen {
    wanted: Arc<EventQuery>,
    calls: MatchingCalls,
    blocks: BlockQuery,
}

impl Chosen {
    fn new(wanted: &Arc<EventQuery>, joiner: &Mutex<Joiner>) -> Chosen {
        let calls = match wanted.chooses_calls() {
            true => wanted.chosen(&joiner.lock().unwrap_or_else(PoisonError::into_inner)),
            false => MatchingCalls::default(),
        };
        Chosen { blocks: wanted.blocks(&calls), calls, wanted: Arc::clone(wanted) }
    }
}

impl Choose for Chosen {
    fn chooses(&self, summary: &Summary) -> bool {
        self.blocks.chooses(summary)
    }

    fn regex(&self) -> Option<&TextRegex> {
        self.wanted.regex()
    }

    fn fits(&self, event: &dyn Fields) -> bool {
        self.wanted.fits(event, &self.calls)
    }
}

/// Converts a failure to read the disk to a fault.
pub(super) fn unreadable(error: crate::segments::Error) -> Fault {
    Fault::new(wire::fault::SYSTEM, error.to_string())
}
