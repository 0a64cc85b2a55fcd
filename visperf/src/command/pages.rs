//! Lists that are longer than one answer: reads page after page, and says what was left out.
//!
//! Not here: the methods, and how their items are printed (the commands).

use crate::client::items;
use crate::command::query::{self, LIMIT_MAX};
use ::client::typed::Answered;
use serde_json::Value;
use std::collections::HashSet;
use wire::api::UnixTime;
use wire::api::calls::{Call, Calls};
use wire::api::job_index::DirectoryJobs;
use wire::api::jobs::{Job, Jobs};
use wire::time::Time;

/// Answer with one page of a list.
pub(crate) trait Page {
    /// Type of the items.
    type Item;
    /// Field of the answer that has them; also what they are, in notes.
    const ITEMS: &'static str;

    /// Takes the items of this page.
    fn take(&mut self) -> Vec<Self::Item>;
    /// Identifies an item: its id, and its submission, as an id may be used again.
    fn id(item: &Self::Item) -> (&str, Option<Time>);
    /// Cursor of the next page.
    fn next(&self) -> Option<&str>;
    /// Number of items on all pages, and whether there may be more.
    fn total(&self) -> (u64, bool);
}

macro_rules! page {
    ($answer:ident, $item:ident, $items:ident, $total:expr) => {
        impl Page for $answer {
            type Item = $item;
            const ITEMS: &'static str = stringify!($items);

            fn take(&mut self) -> Vec<$item> {
                std::mem::take(&mut self.$items)
            }

            fn id(item: &$item) -> (&str, Option<Time>) {
                (&item.id, item.submitted.map(|UnixTime(time)| time))
            }

            fn next(&self) -> Option<&str> {
                self.next.as_deref()
            }

            fn total(&self) -> (u64, bool) {
                $total(self)
            }
        }
    };
}
page!(Calls, Call, calls, |page: &Calls| (page.total, page.total_is_more));
page!(Jobs, Job, jobs, |page: &Jobs| (page.total, page.total_is_more));
// The index does not count.
page!(DirectoryJobs, Job, jobs, |page: &DirectoryJobs| (page.jobs.len() as u64, page.next.is_some()));

/// The items of one or more pages.
pub(crate) struct Pages<P: Page> {
    /// Each item, and its JSON in the daemon's answer.
    pub(crate) items: Vec<(P::Item, Value)>,
    /// Number of pages.
    count: usize,
    /// The answer for the last page, without its items.
    pub(crate) last: P,
    /// Whether the first page was the first of all.
    is_from_start: bool,
}

impl<P: Page> Pages<P> {
    /// Reads as many pages as `limit` items need; `ask` gets the cursor and the limit of a page. An item that changed
    /// between two pages is listed once. Oldest first: as it was last read. Newest first: as it was on its page, or
    /// not at all if its page was still to come.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(crate) fn read<E>(
        first: Option<String>,
        limit: u64,
        mut ask: impl FnMut(Option<String>, u64) -> Result<Answered<P>, E>,
    ) -> Result<Pages<P>, E> {
        let is_from_start = first.is_none();
        let (mut cursor, mut all, mut count) = (first, Vec::<(P::Item, Value)>::new(), 0);
        loop {
            let left = limit - all.len() as u64;
            count += 1;
            let Answered { raw, typed: mut page } = ask(cursor.take(), left.min(LIMIT_MAX))?;
            let found = page.take();
            if !all.is_empty() {
                let again: HashSet<(&str, Option<Time>)> = found.iter().map(P::id).collect();
                all.retain(|(item, _)| !again.contains(&P::id(item)));
            }
            all.extend(found.into_iter().zip(items(&raw, P::ITEMS)));
            cursor = page.next().map(str::to_owned);
            if cursor.is_none() || all.len() as u64 >= limit {
                return Ok(Pages { items: all, count, last: page, is_from_start });
            }
        }
    }

    /// Note on the items that the last answer left out, and how to get them; from a daemon without cursors, at
    /// most as many as one answer has.
    pub(crate) fn left_out(&self) -> Option<String> {
        let (shown, name) = (self.items.len() as u64, P::ITEMS);
        let (total, is_more) = self.last.total();
        match self.last.next().map(wire::shell::quoted) {
            Some(next) if is_more && total <= shown => Some(format!(
                "{}, and there may be more; --cursor {next} shows those that follow",
                wire::shown::count(shown, name.trim_end_matches('s'))
            )),
            Some(next) if is_more => {
                Some(format!("{shown} of more than {total} {name}; --cursor {next} shows those that follow"))
            }
            Some(next) if self.is_from_start => Some(format!(
                "{shown} of {total} {name}; --limit {total} shows all, --cursor {next} those that follow"
            )),
            Some(next) => Some(format!("{shown} of {total} {name}; --cursor {next} shows those that follow")),
            None if self.is_from_start && total > shown && self.count > 1 => Some(format!(
                "{shown} of {total} {name}; the others changed while these were read, and are the newest now: ask again to see them"
            )),
            None if self.is_from_start && total > shown => Some(query::left_out(shown, total, name)),
            None => None,
        }
    }
}
