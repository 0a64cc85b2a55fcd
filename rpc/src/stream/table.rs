//! Table of streams: when each subscription is due, which stream gets which answer, skips some, or is closed.
//!
//! ```text
//! begin ─▶ a place ─▶ poll: an event, a comment, nothing yet, the end ─▶ leave
//! ask_at ─▶ (the shell calls the method) ─▶ put: an event for all streams of that subscription ─▶ wakers
//! ```
//! Pure: callers pass `now`, and wake the returned wakers. Invariants: a subscription makes one call for all
//! its streams, and never two at a time; a slow stream gets only the latest event, with the number of skipped
//! ones; of events that are no longer the latest, at most [`StreamLimits::held_bytes`] are retained, by
//! closing streams that are behind; nothing is sent after the permission ended.
//! Not here: calling and waking (`mod`), clients that read nothing (`guarded_stream`), limits (`limits`).

use super::event::Event;
use super::limits::{Asker, Refused, StreamCounts};
use crate::stream_limits::StreamLimits;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;
use wire::query::Viewer;
use wire::time::Moment;

/// Key of a subscription: streams with equal keys share one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) method: &'static str,
    /// Parameters, as JSON.
    pub(crate) params: String,
    pub(crate) every: Duration,
    /// Number of a subscription that advances by a cursor, and is therefore shared with no other stream;
    /// otherwise 0.
    pub(crate) position: u64,
    /// Local user or role on whose behalf it asks: answers may differ.
    pub(crate) viewer: Viewer,
}

/// Identifier of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) question: u64,
    pub(crate) follower: u64,
}

/// Next action for a stream.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this event, after the given number of skipped ones.
    Event(Arc<Event>, u64),
    /// Send a comment, so that the connection is not forgotten.
    Comment,
    /// Nothing yet: the waker will be called.
    Nothing,
    /// End the stream, with these as the last bytes.
    End(Option<Bytes>),
}

/// The table; `W` is stored with each stream, for checking its permission again.
#[derive(Debug)]
pub(crate) struct Table<W> {
    bounds: StreamLimits,
    places: StreamCounts,
    by_key: BTreeMap<Key, u64>,
    questions: BTreeMap<u64, Question<W>>,
    /// Number of the next subscription or stream.
    next_id: u64,
    is_ended: bool,
}

#[derive(Debug)]
struct Question<W> {
    key: Key,
    /// Time of the next call.
    next: Moment,
    latest: Option<(Arc<Event>, Moment)>,
    /// Earlier events that are still being sent.
    held: Vec<Weak<Event>>,
    followers: BTreeMap<u64, Follower<W>>,
}

#[derive(Debug)]
struct Follower<W> {
    asker: Asker,
    whose: W,
    /// Number of the last event that was sent or is to be skipped.
    seen: u64,
    /// Time of the last event or comment.
    last: Moment,
    waker: Option<Waker>,
    /// It was sent an event that its client has not read completely, as far as is known.
    has_in_hand: bool,
    /// The stream ends, with this as the last bytes.
    end: Option<Option<Bytes>>,
}

impl<W: Clone> Table<W> {
    pub(crate) fn new(bounds: StreamLimits) -> Table<W> {
        let places = StreamCounts::new(&bounds);
        let (by_key, questions) = (BTreeMap::new(), BTreeMap::new());
        Table { bounds, places, by_key, questions, next_id: 1, is_ended: false }
    }

    /// Add a stream of `key`. Returns whether it is the first, so that the subscription must be started.
    pub(crate) fn begin(
        &mut self,
        key: Key,
        asker: Asker,
        whose: W,
        now: Moment,
    ) -> Result<(Place, bool), Refused> {
        let known = self.by_key.get(&key).copied();
        let question = known.unwrap_or(self.next_id);
        self.places.take(&asker, question)?;
        let follower = self.next_id + 1;
        self.next_id += 2;
        let every = key.every;
        let asked = self.questions.entry(question).or_insert_with(|| Question {
            key: key.clone(),
            next: now,
            latest: None,
            held: Vec::new(),
            followers: BTreeMap::new(),
        });
        self.by_key.entry(key).or_insert(question);
        // A recent answer is sent to a new stream; an older one could be mistaken for the present state.
        let seen = asked.latest.as_ref().map_or(0, |(event, at)| {
            if now.since(*at) <= every * 2 { event.number() - 1 } else { event.number() }
        });
        let end = self.is_ended.then_some(None);
        let one = Follower { asker, whose, seen, last: now, waker: None, has_in_hand: false, end };
        asked.followers.insert(follower, one);
        Ok((Place { question, follower }, known.is_none()))
    }

    /// Remove a stream. Returns whether it was the last of its subscription, which is then removed.
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        let Some(question) = self.questions.get_mut(&place.question) else { return false };
        let Some(gone) = question.followers.remove(&place.follower) else { return false };
        let is_last = question.followers.is_empty();
        if is_last && let Some(forgotten) = self.questions.remove(&place.question) {
            self.by_key.remove(&forgotten.key);
        }
        self.places.leave(&gone.asker, place.question);
        is_last
    }

    /// Number of streams.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Time of the subscription's next call, which then counts as made; `None` if it has no stream any more.
    pub(crate) fn ask_at(&mut self, question: u64, now: Moment) -> Option<Moment> {
        let asked = self.questions.get_mut(&question)?;
        let at = asked.next.max(now);
        // At multiples of the interval: a call that takes longer skips some, and does not shift the others.
        let every = asked.key.every;
        let beats = at.since(asked.next).as_millis() / every.as_millis().max(1) + 1;
        asked.next = asked.next.plus(every * u32::try_from(beats).unwrap_or(u32::MAX));
        Some(at)
    }

    /// Whether every stream of the subscription was sent its latest answer.
    pub(crate) fn is_given(&self, question: u64) -> bool {
        let Some(asked) = self.questions.get(&question) else { return true };
        let latest = asked.latest.as_ref().map_or(0, |(event, _)| event.number());
        asked.followers.values().all(|one| one.seen >= latest || one.end.is_some())
    }

    /// Whether there is room for an answer of this length, if needed after closing streams that are behind.
    pub(crate) fn make_room(
        &mut self,
        question: u64,
        len_bytes: usize,
        farewell: &Bytes,
    ) -> (bool, Vec<Waker>) {
        if self.held_bytes() + len_bytes <= self.bounds.held_bytes {
            return (true, Vec::new());
        }
        let Some(asked) = self.questions.get_mut(&question) else { return (true, Vec::new()) };
        let latest = asked.latest.as_ref().map_or(0, |(event, _)| event.number());
        let behind = asked
            .followers
            .values_mut()
            .filter(|one| one.seen < latest && one.has_in_hand && one.end.is_none());
        let woken = behind.filter_map(|one| one.let_go(Some(farewell.clone()))).collect();
        (false, woken)
    }

    /// Set the next event of a subscription. Returns the wakers.
    pub(crate) fn put(&mut self, question: u64, event: Event, now: Moment) -> Vec<Waker> {
        let Some(asked) = self.questions.get_mut(&question) else { return Vec::new() };
        asked.held.retain(|event| event.strong_count() > 0);
        if let Some((before, _)) = asked.latest.replace((Arc::new(event), now)) {
            let before = Arc::downgrade(&before);
            asked.held.extend((before.strong_count() > 0).then_some(before));
        }
        asked.followers.values_mut().filter_map(|one| one.waker.take()).collect()
    }

    /// Next action for the stream at `place`; `is_clear` is whether its client has read everything. If there
    /// is nothing, `waker` is stored.
    pub(crate) fn poll(&mut self, place: Place, is_clear: bool, waker: &Waker, now: Moment) -> Next {
        let keep_alive = self.bounds.keep_alive;
        let Some(asked) = self.questions.get_mut(&place.question) else { return Next::End(None) };
        let Some(one) = asked.followers.get_mut(&place.follower) else { return Next::End(None) };
        if let Some(last) = &one.end {
            return Next::End(last.clone());
        }
        one.has_in_hand &= !is_clear;
        if is_clear
            && let Some((event, _)) = asked.latest.as_ref().filter(|(event, _)| event.number() > one.seen)
        {
            let skipped = event.number() - one.seen - 1;
            (one.seen, one.last, one.has_in_hand) = (event.number(), now, true);
            return Next::Event(Arc::clone(event), skipped);
        }
        if is_clear && now.since(one.last) >= keep_alive {
            one.last = now;
            return Next::Comment;
        }
        if !one.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            one.waker = Some(waker.clone());
        }
        Next::Nothing
    }

    /// The wakers of idle streams.
    pub(crate) fn silent(&mut self, now: Moment) -> Vec<Waker> {
        let keep_alive = self.bounds.keep_alive;
        let followers = self.questions.values_mut().flat_map(|question| question.followers.values_mut());
        let silent = followers.filter(|one| now.since(one.last) >= keep_alive);
        silent.filter_map(|one| one.waker.take()).collect()
    }

    /// All streams, for checking their permissions.
    pub(crate) fn all(&self) -> Vec<(Place, W)> {
        let of = |(id, question): (&u64, &Question<W>)| {
            let place = |follower: &u64| Place { question: *id, follower: *follower };
            let followers = question.followers.iter().filter(|(_, one)| one.end.is_none());
            followers.map(|(id, one)| (place(id), one.whose.clone())).collect::<Vec<_>>()
        };
        self.questions.iter().flat_map(of).collect()
    }

    /// Close the stream at `place` with `last`. Returns its waker.
    pub(crate) fn let_go(&mut self, place: Place, last: Bytes) -> Option<Waker> {
        self.questions.get_mut(&place.question)?.followers.get_mut(&place.follower)?.let_go(Some(last))
    }

    /// Close all streams of a subscription with `last`. Returns their wakers.
    pub(crate) fn let_all_go(&mut self, question: u64, last: &Bytes) -> Vec<Waker> {
        let Some(asked) = self.questions.get_mut(&question) else { return Vec::new() };
        asked.followers.values_mut().filter_map(|one| one.let_go(Some(last.clone()))).collect()
    }

    /// Close all streams, and every later one. Returns the wakers.
    pub(crate) fn end(&mut self) -> Vec<Waker> {
        self.is_ended = true;
        let followers = self.questions.values_mut().flat_map(|question| question.followers.values_mut());
        followers.filter_map(|one| one.let_go(None)).collect()
    }

    /// Bytes of events that are not the latest and still being sent.
    fn held_bytes(&self) -> usize {
        let held = self.questions.values().flat_map(|question| question.held.iter());
        held.filter_map(Weak::upgrade).map(|event| event.len_bytes()).sum()
    }
}

impl<W> Follower<W> {
    fn let_go(&mut self, last: Option<Bytes>) -> Option<Waker> {
        self.end.get_or_insert(last);
        self.waker.take()
    }
}

#[cfg(test)]
mod tests;
