//! `domain.events`: events from the logs of all hosts, starting at a cursor.
//!
//! A cursor survives a change of the representative: the next one returns the events that were not read
//! (`representative::cursor`).
//! The disk is read where that may block.
//! Not here: the parameters ([`super::events`]).

use super::calls::owners;
use super::domain::{absent, silent_hosts};
use super::encoded_events::{AnswerFields, EncodedEvents};
use super::event_query::{EventQuery, MatchingCalls};
use super::events::{LOOKED_AT_FIRST, LOOKED_AT_MAX, READ_AT_ONCE_MAX, unreadable};
use crate::call_ids;
use crate::representative::cursor::{Cursor, Feed, Page};
use crate::representative::service::Handle;
use crate::representative::store::reader::Stored;
use call_store::answer::Owners;
use compact_str::CompactString;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::encoded_answer::Answered;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::events::{DomainEventsParams, EventsParams};
use wire::query::{Form, Viewer};

/// Polling interval while waiting for members' watermarks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Data that the method reads.
#[derive(Clone)]
pub struct Events {
    service: Handle,
    ending: CancellationToken,
    pool: BlockingPool,
}

impl Events {
    /// Reads the events that members reported. Calls that wait for events return when `ending` is cancelled.
    #[must_use]
    pub fn new(service: Handle, ending: CancellationToken) -> Events {
        Events { service, ending, pool: BlockingPool::new("reading the domain's events", READ_AT_ONCE_MAX) }
    }

    /// `domain.events`.
    #[must_use]
    pub fn method(self) -> Method {
        typed::method_writing(move |caller, DomainEventsParams(params), form| {
            let (own, viewer) = (self.clone(), caller.viewer);
            async move { own.answer(params, viewer, form).await }
        })
    }

    async fn answer(
        &self,
        params: EventsParams,
        viewer: Viewer,
        form: Option<Form>,
    ) -> Result<Answered, Fault> {
        let (found, cursor, missed) = self.page(params, owners(viewer).await, form).await?;
        let unheard = silent_hosts(&self.service).await;
        found.answer(&AnswerFields { cursor: cursor.to_string(), missed, unheard: &unheard })
    }

    /// Returns the events, the cursor to continue from, and how many events are no longer stored.
    async fn page(
        &self,
        params: EventsParams,
        owners: Owners,
        form: Option<Form>,
    ) -> Result<(EncodedEvents, Cursor, u64), Fault> {
        let feed = self.service.feed().await.map_err(absent)?;
        let asked = params.cursor.clone().unwrap_or_default();
        let wanted = Arc::new(self.wanted(params, owners).await?);
        if wanted.is_last {
            return self.last(&feed, wanted, form).await;
        }
        let deadline = tokio::time::sleep(wanted.wait);
        tokio::pin!(deadline);
        let mut cursor = cursor_of(&asked, &feed)?;
        if feed.is_from_elsewhere(&cursor) {
            self.await_marks(&feed).await;
        }
        let mut next = feed.reader().next();
        let (mut found, mut missed) = (EncodedEvents::new(form), 0);
        loop {
            next.mark_unchanged();
            let left = wanted.limit - found.len();
            let page = self.read(&feed, cursor.clone(), left, Arc::clone(&wanted)).await?;
            missed += page.missed;
            let went_on = page.cursor != cursor;
            cursor = page.cursor;
            self.append(&mut found, &page.events).await?;
            // A read ends early where few of the examined events match: then there are more to examine.
            if found.len() < wanted.limit && went_on && page.has_more {
                continue;
            }
            if found.len() > 0 || wanted.wait.is_zero() {
                return Ok((found, cursor, missed));
            }
            tokio::select! {
                () = self.ending.cancelled() => return Ok((found, cursor, missed)),
                () = &mut deadline => return Ok((found, cursor, missed)),
                // The next call is forwarded to the new representative.
                () = self.service.closed() => return Ok((found, cursor, missed)),
                changed = next.changed() => if changed.is_err() {
                    return Ok((found, cursor, missed));
                }
            }
        }
    }

    /// Waits until the watermarks of other stores are known.
    async fn await_marks(&self, feed: &Feed) {
        let brought = async {
            while !feed.is_settled() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = self.ending.cancelled() => {}
            () = self.service.closed() => {}
            () = brought => {}
        }
    }

    async fn wanted(&self, params: EventsParams, owners: Owners) -> Result<EventQuery, Fault> {
        let asked = self.service.ask(move |domain, _| {
            EventQuery::new(&params, owners, |call| call_ids::event_ids_of_call(domain.calls(), call))
        });
        asked.await.map_err(absent)?
    }

    async fn read(
        &self,
        feed: &Feed,
        cursor: Cursor,
        limit: usize,
        wanted: Arc<EventQuery>,
    ) -> Result<Page, Fault> {
        let chosen = self.chosen(&wanted).await?;
        let feed = feed.clone();
        let fits = move |stored: &Stored| wanted.fits(&stored.event, &chosen);
        self.pool.run(move || feed.read_some(&cursor, limit, LOOKED_AT_MAX, fits).map_err(unreadable)).await
    }

    /// Returns the last events that match, searching backwards from the newest.
    async fn last(
        &self,
        feed: &Feed,
        wanted: Arc<EventQuery>,
        form: Option<Form>,
    ) -> Result<(EncodedEvents, Cursor, u64), Fault> {
        let (cursor, newest, oldest) = (feed.end(), *feed.reader().next().borrow(), feed.reader().oldest());
        let (mut parts, mut found, mut missed) = (VecDeque::new(), 0, 0);
        let (mut end, mut looked_at) = (newest, wanted.limit.max(LOOKED_AT_FIRST));
        while found < wanted.limit && end > oldest {
            let begin = end.saturating_sub(looked_at as u64).max(oldest);
            let chosen = self.chosen(&wanted).await?;
            let (reader, fitting) = (feed.reader().clone(), Arc::clone(&wanted));
            let looked = usize::try_from(end - begin).unwrap_or(usize::MAX);
            let fits = move |stored: &Stored| stored.at < end && fitting.fits(&stored.event, &chosen);
            let reading = move || reader.read_some(begin, usize::MAX, looked, fits).map_err(unreadable);
            let page = self.pool.run(reading).await?;
            let last = page.events.len().saturating_sub(wanted.limit - found);
            let mut part = EncodedEvents::new(form);
            self.append(&mut part, &page.events[last..]).await?;
            found += part.len();
            parts.push_front(part);
            missed += page.missed;
            end = begin;
            looked_at = (looked_at * 2).min(LOOKED_AT_MAX);
        }
        let mut all = EncodedEvents::new(form);
        parts.into_iter().for_each(|part| all.append(part));
        Ok((all, cursor, missed))
    }

    /// Adds these events, each with the present id of its call.
    async fn append(&self, found: &mut EncodedEvents, events: &[Stored]) -> Result<(), Fault> {
        if events.is_empty() {
            return Ok(());
        }
        let mut calls: Vec<CompactString> = events.iter().map(|stored| stored.event.call.clone()).collect();
        let asked = self.service.ask(move |domain, _| {
            for call in &mut calls {
                if let Some(present) = domain.calls().present_id(call) {
                    call.clone_from(present);
                }
            }
            calls
        });
        let calls = asked.await.map_err(absent)?;
        events.iter().zip(&calls).for_each(|(stored, call)| found.add(&stored.event, call));
        Ok(())
    }

    /// Returns the ids of the calls that match now.
    async fn chosen(&self, wanted: &Arc<EventQuery>) -> Result<MatchingCalls, Fault> {
        if !wanted.chooses_calls() {
            return Ok(MatchingCalls::default());
        }
        let wanted = Arc::clone(wanted);
        self.service.ask(move |domain, _| wanted.chosen(domain.calls())).await.map_err(absent)
    }
}

fn cursor_of(asked: &str, feed: &Feed) -> Result<Cursor, Fault> {
    match asked {
        "" => Ok(feed.oldest()),
        "end" => Ok(feed.end()),
        text => {
            text.parse().map_err(|error| Fault::invalid_params(format!("cursor: {error}, \"end\" or \"\"")))
        }
    }
}
