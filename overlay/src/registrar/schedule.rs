//! Schedule of a representative's records, and their numbers.
//!
//! Pure. Rule: a record is due at once when its content changes, but no more often than directories accept
//! forever, and each [`RENEWAL_INTERVAL`] if nothing changes. A directory that knows a higher number counts
//! as a change.
//! Not here: signing and sending (`registrar`), the choice of a number (`numbers`).

use super::numbers::Numbers;
use crate::election;
use std::time::Duration;
use wire::credential::Chain;
use wire::id::{HostName, PeerKey};
use wire::membership::{Member, Term};
use wire::registration::{Coverage, PART_HOSTS_MAX};
use wire::replication::Number;
use wire::time::Moment;

/// Interval of records if nothing changes: a third of a lease.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Least time between two records: the rate that directories accept forever.
pub const CHANGE_INTERVAL: Duration = Duration::from_millis(500);

/// Content of a record that makes a new one due when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The term that the domain elected its representative in.
    pub elected: Term,
    /// The hosts that it answers for.
    pub coverage: Coverage,
    /// The certificate chain of the representative.
    pub chain: Chain,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Publish the record with these numbers.
    Now {
        term: u64,
        /// Number within the term.
        sequence: u64,
    },
    /// Nothing for this long, if nothing changes.
    In(Duration),
}

/// The last record, and the numbers of the next.
#[derive(Debug, Default)]
pub struct Schedule {
    numbers: Numbers,
    last: Option<(Content, Moment)>,
    /// A directory knows higher numbers: a record is due again.
    again: bool,
}

impl Schedule {
    /// This sensor does not represent its domain. When it does again, a record is due at once.
    pub fn rest(&mut self) {
        self.last = None;
    }

    /// This sensor represents its domain with `content`. The caller must publish the record on [`Due::Now`].
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

    /// A directory holds `highest`, which the records of `me` must exceed.
    pub fn exceed(&mut self, me: PeerKey, highest: Number) {
        self.again |= self.numbers.exceed(me, highest);
    }
}

/// The hosts that the representative answers for, as this sensor sees it.
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
    fn an_unchanged_record_is_renewed_and_a_changed_one_is_sent_soon() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.due(&content(3, 9), at(0)), Due::Now { term: 3, sequence: 1 });
        assert_eq!(schedule.due(&content(3, 9), at(1000)), Due::In(Duration::from_secs(4)));
        assert_eq!(schedule.due(&content(3, 8), at(400)), Due::In(Duration::from_millis(100)));
        assert_eq!(schedule.due(&content(3, 8), at(1000)), Due::Now { term: 3, sequence: 2 });
        assert_eq!(schedule.due(&content(3, 8), at(6000)), Due::Now { term: 3, sequence: 3 });
    }

    #[test]
    fn a_higher_number_of_a_directory_is_followed_at_once_and_a_new_reign_waits_for_nothing() {
        let mut schedule = Schedule::default();
        schedule.due(&content(3, 9), at(0));
        schedule.exceed(ME, Number { term: 7, peer: PeerKey([1; 32]), sequence: 2 });
        assert_eq!(schedule.due(&content(3, 9), at(600)), Due::Now { term: 8, sequence: 1 });
        schedule.rest();
        assert_eq!(schedule.due(&content(9, 9), at(601)), Due::Now { term: 9, sequence: 1 });
    }
}
