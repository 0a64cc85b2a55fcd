//! When a representative states its record, and under which numbers.
//!
//! Pure. Rule: at once when what it says changes, though not more often than directories take it for ever, and each
//! [`RENEWAL_INTERVAL`] when nothing does; a directory that knows a higher number is answered as if something had
//! changed.
//! Not here: signing and sending (`registrar`), what a number may be (`numbers`).

use super::numbers::Numbers;
use crate::election;
use std::time::Duration;
use wire::credential::Chain;
use wire::id::{HostName, PeerKey};
use wire::membership::{Member, Term};
use wire::registration::{Coverage, PART_HOSTS_MAX};
use wire::replication::Number;
use wire::time::Moment;

/// How often the record is stated when nothing changes: a third of a lease.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Least time between two statements: as often as directories take them for ever.
pub const CHANGE_INTERVAL: Duration = Duration::from_millis(500);

/// What makes two statements differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Under which term the domain elected its representative.
    pub elected: Term,
    /// For which hosts it answers.
    pub coverage: Coverage,
    /// Why to believe it.
    pub chain: Chain,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// State it under these numbers.
    Now {
        /// Term of the record.
        term: u64,
        /// Number within the term.
        sequence: u64,
    },
    /// Nothing for so long, if nothing changes.
    In(Duration),
}

/// What was stated, and what follows from it.
#[derive(Debug, Default)]
pub struct Stating {
    numbers: Numbers,
    last: Option<(Content, Moment)>,
    /// A directory knows higher numbers: state again.
    again: bool,
}

impl Stating {
    /// This sensor does not represent its domain: when it does again, it states at once.
    pub fn rest(&mut self) {
        self.last = None;
    }

    /// It represents its domain, and would say `content`. [`Due::Now`] counts as stated.
    pub fn due(&mut self, content: &Content, now: Moment) -> Due {
        if let Some((last, at)) = &self.last {
            let interval = if self.again || last != content { CHANGE_INTERVAL } else { RENEWAL_INTERVAL };
            let passed = now.since(*at);
            if passed < interval {
                return Due::In(interval.saturating_sub(passed));
            }
        }
        self.last = Some((content.clone(), now));
        self.again = false;
        let (term, sequence) = self.numbers.next(content.elected.0);
        Due::Now { term, sequence }
    }

    /// A directory holds `highest`, which the statements of `me` have to exceed.
    pub fn exceed(&mut self, me: PeerKey, highest: Number) {
        self.again |= self.numbers.exceed(me, highest);
    }
}

/// Which hosts are answered for, as the sensor sees it.
pub fn coverage<'a>(state: &election::State, members: impl Iterator<Item = &'a Member>) -> Coverage {
    let covered = &state.coverage;
    let total = u32::try_from(covered.len()).unwrap_or(u32::MAX);
    if !state.partial {
        return Coverage::Whole { hosts: total };
    }
    let is_covered = |key: &PeerKey| covered.binary_search(key).is_ok();
    let members = members.filter(|member| is_covered(&member.key));
    let mut hosts: Vec<HostName> = members.map(|member| member.host.clone()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.truncate(PART_HOSTS_MAX);
    Coverage::Part { hosts, hosts_total: total }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::credential::{Certificate, Roles, Serial};
    use wire::id::DomainName;
    use wire::sealed::Sealed;
    use wire::time::Time;

    const ME: PeerKey = PeerKey([5; 32]);

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    fn content(elected: u64, hosts: u32) -> Content {
        let certificate = Certificate {
            domain: DomainName::try_from("d").unwrap(),
            root: ME,
            peer: ME,
            host: HostName::try_from("h").unwrap(),
            roles: Roles::SENSOR,
            priority: 0,
            serial: Serial(1),
            issued: Time::default(),
            expires: Time::default(),
        };
        let certificate = Sealed::new(&certificate, ME, |_| [0; 64]).unwrap();
        let chain = Chain { certificate, delegation: None };
        Content { elected: Term(elected), coverage: Coverage::Whole { hosts }, chain }
    }

    #[test]
    fn what_does_not_change_is_renewed_and_what_does_is_told_soon() {
        let mut stating = Stating::default();
        assert_eq!(stating.due(&content(3, 9), at(0)), Due::Now { term: 3, sequence: 1 });
        assert_eq!(stating.due(&content(3, 9), at(1000)), Due::In(Duration::from_secs(4)));
        assert_eq!(stating.due(&content(3, 8), at(400)), Due::In(Duration::from_millis(100)));
        assert_eq!(stating.due(&content(3, 8), at(1000)), Due::Now { term: 3, sequence: 2 });
        assert_eq!(stating.due(&content(3, 8), at(6000)), Due::Now { term: 3, sequence: 3 });
    }

    #[test]
    fn a_higher_number_of_a_directory_is_followed_at_once_and_a_new_reign_waits_for_nothing() {
        let mut stating = Stating::default();
        stating.due(&content(3, 9), at(0));
        stating.exceed(ME, Number { term: 7, peer: PeerKey([1; 32]), sequence: 2 });
        assert_eq!(stating.due(&content(3, 9), at(600)), Due::Now { term: 8, sequence: 1 });
        stating.rest();
        assert_eq!(stating.due(&content(9, 9), at(601)), Due::Now { term: 9, sequence: 1 });
    }
}
