//! Limits on streams: in all, per address, per account, and of distinct subscriptions.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Invariant: each counted stream is released exactly once; an address or account without streams takes no
//! space.
//! Not here: the subscriptions (`table`).

use crate::dispatch::source::SourceKey;
use crate::stream_limits::StreamLimits;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Client of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) source: SourceKey,
    /// Name of its account, if it logged in.
    pub(crate) account: Option<Arc<str>>,
}

/// The limit that is reached, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("expected at most {0} followers in all, found as many; ask again later")]
    All(usize),
    #[error("expected at most {0} followers from one address or user, found as many; end one of them")]
    Source(usize),
    #[error("expected at most {0} followers of one account, found as many; end one of them")]
    Account(usize),
    #[error("expected at most {0} different questions followed in all, found as many; ask again later")]
    Questions(usize),
    #[error(
        "expected at most {0} different questions followed by one account, found as many; end one of them"
    )]
    QuestionsOfAccount(usize),
}

/// Number of streams and subscriptions now.
#[derive(Debug)]
pub(crate) struct StreamCounts {
    bounds: StreamLimits,
    len: usize,
    of_source: BTreeMap<SourceKey, usize>,
    /// Streams of each account, in all and by subscription.
    of_account: BTreeMap<Arc<str>, (usize, BTreeMap<u64, usize>)>,
    of_question: BTreeMap<u64, usize>,
}

impl StreamCounts {
    pub(crate) fn new(bounds: &StreamLimits) -> StreamCounts {
        StreamCounts {
            bounds: bounds.clone(),
            len: 0,
            of_source: BTreeMap::new(),
            of_account: BTreeMap::new(),
            of_question: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Count one more stream of `asker` for `question`; nothing changes if a limit is reached.
    pub(crate) fn take(&mut self, asker: &Asker, question: u64) -> Result<(), Refused> {
        self.check(asker, question)?;
        self.len += 1;
        *self.of_source.entry(asker.source).or_insert(0) += 1;
        *self.of_question.entry(question).or_insert(0) += 1;
        if let Some(account) = &asker.account {
            let (followers, questions) = self.of_account.entry(Arc::clone(account)).or_default();
            *followers += 1;
            *questions.entry(question).or_insert(0) += 1;
        }
        Ok(())
    }

    fn check(&self, asker: &Asker, question: u64) -> Result<(), Refused> {
        let StreamLimits { followers, followers_of_source, followers_of_account, .. } = self.bounds;
        let StreamLimits { questions, questions_of_account, .. } = self.bounds;
        let from_there = self.of_source.get(&asker.source).copied().unwrap_or(0);
        let of_account = asker.account.as_ref().and_then(|account| self.of_account.get(account));
        let (of_account, asked) = of_account.map_or((0, None), |(count, asked)| (*count, Some(asked)));
        let is_new_of_account = asked.is_none_or(|asked| !asked.contains_key(&question));
        match () {
            () if self.len >= followers => Err(Refused::All(followers)),
            () if from_there >= followers_of_source => Err(Refused::Source(followers_of_source)),
            () if of_account >= followers_of_account => Err(Refused::Account(followers_of_account)),
            () if self.of_question.len() >= questions && !self.of_question.contains_key(&question) => {
                Err(Refused::Questions(questions))
            }
            () if is_new_of_account && asked.map_or(0, BTreeMap::len) >= questions_of_account => {
                Err(Refused::QuestionsOfAccount(questions_of_account))
            }
            () => Ok(()),
        }
    }

    /// Release a stream of `asker` for `question`.
    pub(crate) fn leave(&mut self, asker: &Asker, question: u64) {
        self.len -= 1;
        less(&mut self.of_source, &asker.source);
        less(&mut self.of_question, &question);
        let Some(account) = &asker.account else { return };
        if let Some((followers, questions)) = self.of_account.get_mut(account) {
            *followers -= 1;
            less(questions, &question);
            if *followers == 0 {
                self.of_account.remove(account);
            }
        }
    }
}

fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(last: u8, account: &str) -> Asker {
        Asker { source: SourceKey::User(last.into()), account: Some(account.into()) }
    }

    #[test]
    fn each_bound_holds_for_itself_and_places_come_back() {
        let bounds = StreamLimits {
            followers: 6,
            followers_of_source: 3,
            followers_of_account: 4,
            questions: 3,
            questions_of_account: 2,
            ..StreamLimits::default()
        };
        let mut places = StreamCounts::new(&bounds);
        let (ana, bob) = (asker(1, "ana"), asker(2, "bob"));
        assert_eq!(places.take(&ana, 1), Ok(()));
        assert_eq!(places.take(&ana, 2), Ok(()));
        assert_eq!(places.take(&ana, 3), Err(Refused::QuestionsOfAccount(2)));
        assert_eq!(places.take(&ana, 1), Ok(()));
        assert_eq!(places.take(&ana, 1), Err(Refused::Source(3)));
        assert_eq!(places.take(&asker(2, "ana"), 1), Ok(()));
        assert_eq!(places.take(&asker(2, "ana"), 1), Err(Refused::Account(4)));
        assert_eq!(places.take(&bob, 3), Ok(()));
        assert_eq!(places.take(&bob, 4), Err(Refused::Questions(3)));
        assert_eq!(places.take(&bob, 3), Ok(()));
        assert_eq!(places.take(&asker(3, "eve"), 1), Err(Refused::All(6)));
        for (asker, question) in
            [(&ana, 1), (&ana, 2), (&ana, 1), (&asker(2, "ana"), 1), (&bob, 3), (&bob, 3)]
        {
            places.leave(asker, question);
        }
        let StreamCounts { len, of_source, of_account, of_question, .. } = places;
        assert!(len == 0 && of_source.is_empty() && of_account.is_empty() && of_question.is_empty());
    }
}
