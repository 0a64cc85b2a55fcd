//! Table of the carriers of a proxy: limits in all and per source, look-up by token.
//!
//! Pure; callers generate the tokens and report when a carrier ended. Invariant: each admitted carrier is
//! removed exactly once; a source without carriers takes no space. Rule: a client that knows a token may
//! resume its carrier from any address: networks change addresses, and the carried bytes are encrypted end to
//! end.
//! Not here: the carriers (`carrier`), the sockets.

use crate::carrier::frame::{Refused, Token};
use std::collections::BTreeMap;

/// Most carriers: as many as registrations, each with two windows of 1 MiB in the worst case.
pub const SESSIONS_MAX: usize = 1024;

/// Most carriers of one source: a whole site may share one address.
pub const SESSIONS_OF_SOURCE_MAX: usize = 256;

/// The table; `S` is a source, `T` the data stored for each carrier.
#[derive(Debug)]
pub struct Sessions<S, T> {
    open: BTreeMap<Token, (S, T)>,
    sources: BTreeMap<S, usize>,
    refused_total: u64,
}

impl<S: Ord, T> Default for Sessions<S, T> {
    fn default() -> Sessions<S, T> {
        Sessions { open: BTreeMap::new(), sources: BTreeMap::new(), refused_total: 0 }
    }
}

impl<S: Ord + Clone, T> Sessions<S, T> {
    /// Check whether `source` may open another carrier, before any work is done for it.
    ///
    /// # Errors
    /// If the limit in all or of the source is reached; the refusal is counted.
    pub fn check(&mut self, source: &S) -> Result<(), Refused> {
        let of_source = self.sources.get(source).copied().unwrap_or(0);
        if self.open.len() < SESSIONS_MAX && of_source < SESSIONS_OF_SOURCE_MAX {
            return Ok(());
        }
        self.refused_total += 1;
        Err(Refused::Full)
    }

    /// Insert a carrier.
    ///
    /// # Errors
    /// As [`Sessions::check`]; or if the token is in use, which does not happen with random tokens.
    pub fn open(&mut self, token: Token, source: S, kept: T) -> Result<(), Refused> {
        self.check(&source)?;
        if self.open.contains_key(&token) {
            return Err(Refused::Full);
        }
        *self.sources.entry(source.clone()).or_insert(0) += 1;
        self.open.insert(token, (source, kept));
        Ok(())
    }

    /// The data stored for the carrier with this token.
    ///
    /// # Errors
    /// If there is no such carrier.
    pub fn find(&self, token: Token) -> Result<&T, Refused> {
        self.open.get(&token).map(|(_, kept)| kept).ok_or(Refused::Unknown)
    }

    /// The data stored for each carrier.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.open.values().map(|(_, kept)| kept)
    }

    /// Remove a carrier that ended. Returns its data.
    pub fn close(&mut self, token: Token) -> Option<T> {
        let (source, kept) = self.open.remove(&token)?;
        if let Some(count) = self.sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&source);
            }
        }
        Some(kept)
    }

    /// Number of carriers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Number of refusals because a limit was reached.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused_total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: usize) -> Token {
        Token((number as u128 + 1).to_be_bytes())
    }

    #[test]
    fn one_source_leaves_room_for_others_and_all_are_bounded() {
        let mut sessions = Sessions::default();
        for number in 0..SESSIONS_OF_SOURCE_MAX {
            sessions.open(token(number), 0, ()).expect("room");
        }
        assert_eq!(sessions.open(token(9_999), 0, ()), Err(Refused::Full));
        assert_eq!(sessions.check(&1), Ok(()));
        for number in SESSIONS_OF_SOURCE_MAX..SESSIONS_MAX {
            sessions.open(token(number), number, ()).expect("room");
        }
        assert_eq!(sessions.check(&77_777), Err(Refused::Full), "all places are taken");
        assert_eq!(sessions.refused_total(), 2);
        sessions.close(token(0));
        assert_eq!(sessions.open(token(9_999), 0, ()), Ok(()));
    }

    #[test]
    fn who_left_is_not_found_and_leaves_nothing() {
        let mut sessions = Sessions::default();
        sessions.open(token(1), "a", 7).expect("room");
        assert_eq!(sessions.open(token(1), "b", 8), Err(Refused::Full), "a token names one");
        assert_eq!(sessions.find(token(1)), Ok(&7));
        assert_eq!(sessions.find(token(2)), Err(Refused::Unknown));
        assert_eq!((sessions.close(token(1)), sessions.close(token(1))), (Some(7), None));
        assert!(sessions.is_empty() && sessions.sources.is_empty());
    }
}
