//! Pagination of calls: their order, and the cursor of the next page.
//!
//! Pure. Rule: the order is total (a call's latest time, then its id), and a cursor names the last call of a
//! page by both. So a call that is new or that changes between two pages moves no other call into a page or
//! out of one. A cursor depends on no state of a daemon: every sensor and every representative of the domain
//! accepts it.
//! A call that changes while pages are read is at its new place: with oldest first it appears again at the
//! end; with newest first it is on a first page that is read later.
//! Not here: which calls match (`calls`).

use call_store::answer::Place;
use compact_str::CompactString;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fmt;
use std::str::FromStr;
use wire::api::calls::CallOrder;
use wire::call::Call;
use wire::time::Time;

/// Longest accepted cursor, in bytes: an id has texts of a log, of 64 KiB each, and each byte may take three
/// here.
const CURSOR_LEN_MAX_BYTES: usize = 1 << 20;

/// Characters percent-encoded in the id of a cursor; the others need no quotes in a shell or a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'/').remove(b':').remove(b'_');

/// Returns the name of an order in cursors.
pub(super) const fn word_of(order: CallOrder) -> &'static str {
    match order {
        CallOrder::Newest => "newest",
        CallOrder::Oldest => "oldest",
    }
}

/// Cursor: the last call of a page, by its place in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    order: CallOrder,
    latest: Option<Time>,
    id: CompactString,
}

/// A text that could not be parsed as a cursor of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a cursor as an answer gave it in `next`")]
pub(super) struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cursor { order, latest, id } = self;
        let id = utf8_percent_encode(id, ENCODED);
        match latest {
            Some(time) => write!(f, "{}/{}/{id}", word_of(*order), time.micros()),
            None => write!(f, "{}//{id}", word_of(*order)),
        }
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        if text.len() > CURSOR_LEN_MAX_BYTES {
            return Err(CursorError);
        }
        let mut parts = text.splitn(3, '/');
        let (Some(order), Some(micros), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(CursorError);
        };
        let latest = match micros {
            "" => None,
            micros => Some(Time::from_micros(micros.parse().map_err(|_| CursorError)?)),
        };
        let id = percent_decode_str(id).decode_utf8().map_err(|_| CursorError)?;
        Ok(Cursor {
            order: [CallOrder::Newest, CallOrder::Oldest]
                .into_iter()
                .find(|known| word_of(*known) == order)
                .ok_or(CursorError)?,
            latest,
            id: id.into(),
        })
    }
}

impl Cursor {
    pub(super) fn order(&self) -> CallOrder {
        self.order
    }

    /// Returns the place of the last call, without the order.
    pub(super) fn place(self) -> Place {
        Place { latest: self.latest, id: self.id }
    }

    fn of(call: &Call, order: CallOrder) -> Cursor {
        Cursor { order, latest: call.latest(), id: call.id.clone() }
    }

    /// Returns whether the call comes after this place.
    fn is_before(&self, call: &Call) -> bool {
        let place = (call.latest(), call.id.as_str()).cmp(&(self.latest, self.id.as_str()));
        match self.order {
            CallOrder::Newest => place.is_lt(),
            CallOrder::Oldest => place.is_gt(),
        }
    }
}

/// Returns the cursor of the page that follows a call.
pub(super) fn cursor_after(call: &Call, order: CallOrder) -> String {
    Cursor::of(call, order).to_string()
}

/// Returns at most `limit` of the calls after `cursor`, in `order`, and the cursor of the next page if there
/// is one.
pub(super) fn page(
    mut calls: Vec<Call>,
    order: CallOrder,
    cursor: Option<&Cursor>,
    limit: usize,
) -> (Vec<Call>, Option<Cursor>) {
    calls.retain(|call| cursor.is_none_or(|cursor| cursor.is_before(call)));
    calls.sort_by(|one, other| (one.latest(), &one.id).cmp(&(other.latest(), &other.id)));
    if order == CallOrder::Newest {
        calls.reverse();
    }
    let has_more = calls.len() > limit;
    calls.truncate(limit);
    let next = calls.last().filter(|_| has_more).map(|last| Cursor::of(last, order));
    (calls, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::call::State;

    fn call(id: &str, secs: Option<i64>) -> Call {
        let none = CompactString::default;
        Call {
            id: id.into(),
            job: none(),
            name: none(),
            user: none(),
            from: none(),
            state: State::Running,
            submitted: None,
            offered: None,
            selected: None,
            started: secs.map(|secs| Time::from_micros(secs * 1_000_000)),
            ended: None,
            offers: Vec::new(),
            hosts: Vec::new(),
            outcome: None,
            code: none(),
            signal: none(),
            reason: none(),
            tries: 1,
            events: 1,
            details: None,
        }
    }

    fn ids(calls: &[Call]) -> Vec<&str> {
        calls.iter().map(|call| call.id.as_str()).collect()
    }

    /// Reads all pages of two calls; `change` changes the calls after each page.
    fn read(order: CallOrder, mut calls: Vec<Call>, mut change: impl FnMut(&mut Vec<Call>)) -> Vec<String> {
        let (mut cursor, mut read) = (None, Vec::new());
        loop {
            let (shown, next) = page(calls.clone(), order, cursor.as_ref(), 2);
            read.extend(ids(&shown).into_iter().map(str::to_owned));
            let Some(next) = next else { return read };
            cursor = Some(next.to_string().parse().expect("a cursor"));
            change(&mut calls);
        }
    }

    #[test]
    fn pages_have_every_call_once_also_of_one_time_or_none() {
        let calls = || {
            vec![
                call("a:/1", Some(1)),
                call("b", Some(1)),
                call("c", Some(1)),
                call("d", None),
                call("e", None),
            ]
        };
        assert_eq!(read(CallOrder::Oldest, calls(), |_| {}), ["d", "e", "a:/1", "b", "c"]);
        assert_eq!(read(CallOrder::Newest, calls(), |_| {}), ["c", "b", "a:/1", "e", "d"]);
        assert_eq!(page(calls(), CallOrder::Oldest, None, 5).1, None, "the last page has no next");
    }

    #[test]
    fn new_calls_move_no_others_between_pages() {
        let calls = || (1..=6).map(|number| call(&format!("c{number}"), Some(number))).collect::<Vec<_>>();
        let mut number = 100;
        let mut add = |calls: &mut Vec<Call>| {
            number += 1;
            calls.push(call(&format!("new{number}"), Some(number)));
        };
        assert_eq!(read(CallOrder::Newest, calls(), &mut add), ["c6", "c5", "c4", "c3", "c2", "c1"]);
        let oldest = read(CallOrder::Oldest, calls(), |calls| {
            if calls.len() < 8 {
                add(calls)
            }
        });
        assert_eq!(&oldest[..6], ["c1", "c2", "c3", "c4", "c5", "c6"]);
        assert!(oldest[6..].iter().all(|id| id.starts_with("new")), "{oldest:?}");
    }

    #[test]
    fn the_cursor_of_any_id_is_read_again_and_needs_no_quotes() {
        let long = "/d".repeat(64 << 10);
        for id in ["slurm:17", "gridftp:/a b/it's;rm#2", "x%41+\u{202e}\u{1b}\u{e9}", long.as_str()] {
            let cursor = Cursor::of(&call(id, Some(1)), CallOrder::Newest);
            let text = cursor.to_string();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "%-./:_".contains(c);
            assert!(text.chars().all(is_plain), "{text}");
            assert_eq!(text.parse(), Ok(cursor));
        }
        assert_eq!(Cursor::of(&call("slurm:17", None), CallOrder::Oldest).to_string(), "oldest//slurm:17");
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in
            ["", "newest", "newest/1", "first/1/a", "newest/x/a", &"x".repeat(CURSOR_LEN_MAX_BYTES + 1)]
        {
            assert_eq!(text.parse::<Cursor>(), Err(CursorError), "{text}");
        }
        let cursor: Cursor = "oldest//a/b/c".parse().expect("a cursor");
        assert_eq!((cursor.order(), cursor.latest, cursor.id.as_str()), (CallOrder::Oldest, None, "a/b/c"));
    }
}
