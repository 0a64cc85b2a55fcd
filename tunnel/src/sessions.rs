//! Sessions of a proxy: how many carriers in all and of each source, found again by their tokens.
//!
//! Pure; callers draw the tokens and say when a carrier ended. Invariant: each that was admitted leaves once; a source
//! without carriers takes no space. Rule: a client that knows a token may resume its session, from any address: networks change
//! those, and what is carried is encrypted for its two ends.
//! Not here: the carriers (`carrier`), the sockets.

use crate::carrier::frame::{Refused, Token};
use std::collections::BTreeMap;

/// Most carriers at a time: as many as there may be registrations, each with two windows of 1 MiB at worst.
pub const SESSIONS_MAX: usize = 1024;

/// Most of one source: a whole site may sit behind one address.
pub const SESSIONS_OF_SOURCE_MAX: usize = 256;

/// The table; `S` is a source, `T` what is kept of each carrier.
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
    /// Whether one more of `source` may be opened: asked before anything is done for it.
    ///
    /// # Errors
    /// If there are as many as may be, in all or of it; that is counted.
    pub fn check(&mut self, source: &S) -> Result<(), Refused> {
        let of_source = self.sources.get(source).copied().unwrap_or(0);
        if self.open.len() < SESSIONS_MAX && of_source < SESSIONS_OF_SOURCE_MAX {
            return Ok(());
        }
        self.refused_total += 1;
        Err(Refused::Full)
    }

    /// One more.
    ///
    /// # Errors
    /// As [`Sessions::check`]; or if the token is taken, which dice do not do.
    pub fn open(&mut self, token: Token, source: S, kept: T) -> Result<(), Refused> {
        self.check(&source)?;
        if self.open.contains_key(&token) {
            return Err(Refused::Full);
        }
        *self.sources.entry(source.clone()).or_insert(0) += 1;
        self.open.insert(token, (source, kept));
        Ok(())
    }

    /// What is kept of the carrier that `token` names.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(&self, token: Token) -> Result<&T, Refused> {
        self.open.get(&token).map(|(_, kept)| kept).ok_or(Refused::Unknown)
    }

    /// It ended.
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many were refused because there was no place.
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
