//! Table of streams: when each question is asked, which stream gets which answer, which skips some, which is closed.
//!
//! ```text
//! begin ─▶ a place ─▶ poll: an event, a comment, nothing yet, the end ─▶ leave
//! ask_at ─▶ (asked by the shell) ─▶ put: an event for all streams of that question ─▶ wakers
//! ```
//! Pure: callers pass `now`, and wake the returned wakers. Invariants: a question is asked once for all its streams, and never
//! while it is in work; a slow stream gets only the latest event, with the number of skipped ones; of events that are no
//! longer the latest at most [`StreamLimits::held_bytes`] are kept, by closing streams that are behind; nothing is sent after
//! its permission ended.
//! Not here: asking and waking (`mod`), what takes no bytes at all (`guarded_stream`), limits (`limits`).

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

/// What is asked, and how often: followers of equal ones follow one question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) method: &'static str,
    /// Its parameters, written.
    pub(crate) params: String,
    pub(crate) every: Duration,
    /// The number of a question that advances by a cursor, and is therefore shared with no other follower; 0 of others.
    pub(crate) position: u64,
    /// On whose behalf it is asked: answers may differ.
    pub(crate) viewer: Viewer,
}

/// A follower's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) question: u64,
    pub(crate) follower: u64,
}

/// What a follower gets now.
#[derive(Debug)]
pub(crate) enum Next {
    /// This event; it did not get so many before it.
    Event(Arc<Event>, u64),
    /// A comment, so that the connection is not forgotten.
    Comment,
    /// Nothing yet: it is woken.
    Nothing,
    /// The end, with these as the last bytes.
    End(Option<Bytes>),
}

/// The table; `W` of each stream is for checking its permission again.
#[derive(Debug)]
pub(crate) struct Table<W> {
    bounds: StreamLimits,
    places: StreamCounts,
    by_key: BTreeMap<Key, u64>,
    questions: BTreeMap<u64, Question<W>>,
    /// The number of the next question or follower.
    next_id: u64,
    is_ended: bool,
}

#[derive(Debug)]
struct Question<W> {
    key: Key,
    /// When it is asked next.
    next: Moment,
    latest: Option<(Arc<Event>, Moment)>,
    /// Earlier ones that are still being sent.
    held: Vec<Weak<Event>>,
    followers: BTreeMap<u64, Follower<W>>,
}

#[derive(Debug)]
struct Follower<W> {
    asker: Asker,
    whose: W,
    /// The number of the last event that it got, or need not get.
    seen: u64,
    /// When it got something.
    last: Moment,
    waker: Option<Waker>,
    /// It got an event that it has not taken whole, as far as is known.
    has_in_hand: bool,
    /// It is let go, with this as the last.
    end: Option<Option<Bytes>>,
}

impl<W: Clone> Table<W> {
    pub(crate) fn new(bounds: StreamLimits) -> Table<W> {
        let places = StreamCounts::new(&bounds);
        let (by_key, questions) = (BTreeMap::new(), BTreeMap::new());
        Table { bounds, places, by_key, questions, next_id: 1, is_ended: false }
    }

    /// Adds a stream of `key`; whether it is the first, so that the question has to be asked from now on.
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
        // A fresh answer is sent to a new stream; an older one would be taken for current.
        let seen = asked.latest.as_ref().map_or(0, |(event, at)| {
            if now.since(*at) <= every * 2 { event.number() - 1 } else { event.number() }
        });
        let end = self.is_ended.then_some(None);
        let one = Follower { asker, whose, seen, last: now, waker: None, has_in_hand: false, end };
        asked.followers.insert(follower, one);
        Ok((Place { question, follower }, known.is_none()))
    }

    /// Removes a stream; whether it was the last of its question, which is then forgotten.
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

    /// How many follow.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// When a question is to be asked, which then counts as asked; none if it has no stream any more.
    pub(crate) fn ask_at(&mut self, question: u64, now: Moment) -> Option<Moment> {
        let asked = self.questions.get_mut(&question)?;
        let at = asked.next.max(now);
        // On the beat: an answer that took longer leaves out those beats, it does not shift the others.
        let every = asked.key.every;
        let beats = at.since(asked.next).as_millis() / every.as_millis().max(1) + 1;
        asked.next = asked.next.plus(every * u32::try_from(beats).unwrap_or(u32::MAX));
        Some(at)
    }

    /// Whether each follower of a question was given its latest answer.
    pub(crate) fn is_given(&self, question: u64) -> bool {
        let Some(asked) = self.questions.get(&question) else { return true };
        let latest = asked.latest.as_ref().map_or(0, |(event, _)| event.number());
        asked.followers.values().all(|one| one.seen >= latest || one.end.is_some())
    }

    /// Whether there is room for an answer of so many bytes, after closing streams that are behind if that makes it.
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

    /// The next event of a question; returns the wakers.
    pub(crate) fn put(&mut self, question: u64, event: Event, now: Moment) -> Vec<Waker> {
        let Some(asked) = self.questions.get_mut(&question) else { return Vec::new() };
        asked.held.retain(|event| event.strong_count() > 0);
        if let Some((before, _)) = asked.latest.replace((Arc::new(event), now)) {
            let before = Arc::downgrade(&before);
            asked.held.extend((before.strong_count() > 0).then_some(before));
        }
        asked.followers.values_mut().filter_map(|one| one.waker.take()).collect()
    }

    /// What the follower at `place` gets; `is_clear` when all it got before was taken. Where that is nothing, `waker` is woken.
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

    /// Closes the stream at `place` with `last`; returns its waker.
    pub(crate) fn let_go(&mut self, place: Place, last: Bytes) -> Option<Waker> {
        self.questions.get_mut(&place.question)?.followers.get_mut(&place.follower)?.let_go(Some(last))
    }

    /// Closes all streams of a question with `last`; returns their wakers.
    pub(crate) fn let_all_go(&mut self, question: u64, last: &Bytes) -> Vec<Waker> {
        let Some(asked) = self.questions.get_mut(&question) else { return Vec::new() };
        asked.followers.values_mut().filter_map(|one| one.let_go(Some(last.clone()))).collect()
    }

    /// Closes all streams, and every later one; returns the wakers.
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
