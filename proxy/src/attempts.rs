//! Rate limiter of failed logins: per account, per source, and per pair of both for the account's owner.
//!
//! Pure; callers pass `now`. Rules: only failures count; a lock-out always ends, because a bucket refills by
//! itself. If an account logged in from a source lately, the pair has a bucket of its own. Failures of other
//! accounts at that source, and failures under that name elsewhere, then do not delay it: guessing a password
//! does not lock the owner out.
//! Not here: whether a login fails (`login`).

use overlay::identity::throttle::{Rate, Throttle};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::time::Moment;

/// Limit of failures from one source: a person who mistypes, a script that is being set up.
pub const EACH_SOURCE: Rate = Rate { burst: 20, interval: Duration::from_secs(2) };

/// Limit of failures under one name, from all sources.
pub const EACH_ACCOUNT: Rate = Rate { burst: 50, interval: Duration::from_secs(5) };

/// Limit of failures under one name from a source where its owner logged in lately.
pub const AT_HOME: Rate = Rate { burst: 20, interval: Duration::from_secs(1) };

/// The total of failures is not limited: a flood from many sources must not lock everyone out, and a check
/// costs microseconds.
const IN_ALL: Rate = Rate { burst: u32::MAX, interval: Duration::from_nanos(1) };

/// How long a source counts as the owner's after a successful login.
pub const HOME_FOR: Duration = Duration::from_secs(3600);

/// Most pairs of account and source stored as the owner's.
pub const HOMES_MAX: usize = 20_000;

/// Unit of a source: an IPv4 address, or the network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(IpAddr);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Source {
        Source(wire::source::source(address))
    }
}

/// Counters of failed logins.
#[derive(Debug)]
pub struct Attempts {
    by_source: Throttle<Source>,
    by_account: Throttle<String>,
    at_home: Throttle<(String, Source)>,
    homes: BTreeMap<(String, Source), Moment>,
}

impl Default for Attempts {
    fn default() -> Attempts {
        Attempts {
            by_source: Throttle::new(EACH_SOURCE, IN_ALL),
            by_account: Throttle::new(EACH_ACCOUNT, IN_ALL),
            at_home: Throttle::new(AT_HOME, IN_ALL),
            homes: BTreeMap::new(),
        }
    }
}

impl Attempts {
    /// Whether a client may try to log in as `account` now.
    ///
    /// # Errors
    /// The time to wait.
    pub fn check(&self, account: &str, source: Source, now: Moment) -> Result<(), Duration> {
        let pair = (account.to_owned(), source);
        let wait = if self.is_home(&pair, now) {
            self.at_home.wait_of(&pair, now)
        } else {
            self.by_source.wait_of(&source, now).max(self.by_account.wait_of(&pair.0, now))
        };
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Record a failed login.
    pub fn handle_failure(&mut self, account: &str, source: Source, now: Moment) {
        let pair = (account.to_owned(), source);
        if self.is_home(&pair, now) {
            self.at_home.count_anyhow(pair, now);
        } else {
            self.by_source.count_anyhow(source, now);
            self.by_account.count_anyhow(pair.0, now);
        }
    }

    /// Record a successful login.
    pub fn handle_success(&mut self, account: &str, source: Source, now: Moment) {
        let pair = (account.to_owned(), source);
        if self.homes.len() >= HOMES_MAX && !self.homes.contains_key(&pair) {
            self.homes.retain(|_, at| now.since(*at) < HOME_FOR);
            if self.homes.len() >= HOMES_MAX {
                let oldest = self.homes.iter().min_by_key(|(_, at)| **at).map(|(pair, _)| pair.clone());
                oldest.map(|pair| self.homes.remove(&pair));
            }
        }
        self.homes.insert(pair, now);
    }

    fn is_home(&self, pair: &(String, Source), now: Moment) -> bool {
        self.homes.get(pair).is_some_and(|at| now.since(*at) < HOME_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().expect("an address").into()
    }

    fn fail(attempts: &mut Attempts, account: &str, from: Source, times: u32) {
        for _ in 0..times {
            attempts.handle_failure(account, from, at(0));
        }
    }

    #[test]
    fn a_source_and_an_account_each_wait_after_their_failures() {
        let mut attempts = Attempts::default();
        let (one, other) = (source("10.0.0.1"), source("10.0.0.2"));
        fail(&mut attempts, "ana", one, 19);
        assert_eq!(attempts.check("ana", one, at(0)), Ok(()));
        fail(&mut attempts, "ana", one, 1);
        assert_eq!(attempts.check("bob", one, at(0)), Err(Duration::from_secs(2)), "under any name");
        assert_eq!(attempts.check("ana", other, at(0)), Ok(()));
        for number in 2..=5 {
            fail(&mut attempts, "ana", source(&format!("10.0.1.{number}")), 19);
        }
        assert!(attempts.check("ana", other, at(0)).is_err(), "guessed at from many places");
        assert_eq!(attempts.check("bob", other, at(0)), Ok(()));
        assert_eq!(attempts.check("ana", other, at(1000)), Ok(()), "not for good");
    }

    #[test]
    fn a_client_that_logged_in_is_not_kept_out_by_others() {
        let mut attempts = Attempts::default();
        let home = source("10.0.0.1");
        attempts.handle_success("ana", home, at(0));
        fail(&mut attempts, "bob", home, 100);
        for number in 2..=9 {
            fail(&mut attempts, "ana", source(&format!("10.0.1.{number}")), 19);
        }
        assert_eq!(attempts.check("ana", home, at(0)), Ok(()));
        assert!(attempts.check("bob", home, at(0)).is_err());
        fail(&mut attempts, "ana", home, 20);
        assert!(attempts.check("ana", home, at(0)).is_err(), "its own failures count");
        assert_eq!(attempts.check("ana", home, at(1)), Ok(()));
    }

    #[test]
    fn a_network_of_ipv6_is_one_source_and_homes_are_bounded() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::2"));
        assert_ne!(source("2001:db8:0:1::1"), source("2001:db8::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
        let mut attempts = Attempts::default();
        for number in 0..HOMES_MAX as u64 + 5 {
            attempts.handle_success(&format!("a{number}"), source("10.0.0.1"), at(number / 100));
        }
        assert_eq!(attempts.homes.len(), HOMES_MAX);
    }
}
