//! Look-ups of domains by the real `Resolver`, as a daemon does them.

use crate::machine;
use crate::records;
use crate::speaker::Role;
use overlay::resolve::{Outcome, Output, Reply, Resolver, Resolving};
use std::time::Duration;
use wire::id::DomainName;
use wire::replication::{Answer, Resolved};
use wire::time::Moment;

/// Results of look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// A live representative was found.
    pub(crate) live: u64,
    /// Only a last-seen representative was found.
    pub(crate) last_seen: u64,
    /// The domain is unknown, has left, or no directory answered.
    pub(crate) nothing: u64,
    /// Found domains on which the directories did not agree.
    pub(crate) disputed: u64,
}

/// A look-up of one or more domains at once.
pub(crate) struct LookUp {
    pub(crate) role: Role,
    resolver: Resolver,
    waited_for: usize,
}

impl LookUp {
    pub(crate) fn begin(
        role: Role,
        names: &[DomainName],
        directories: usize,
        seed: u64,
        now: Duration,
    ) -> LookUp {
        let keys = (0..directories).map(machine::key).collect();
        let mut look_up = LookUp { role, resolver: Resolver::new(keys, seed), waited_for: 0 };
        for name in names {
            let resolving = look_up.resolver.resolve(name, Moment(now));
            assert_eq!(resolving, Resolving::Asked, "nothing is remembered");
            look_up.waited_for += 1;
        }
        look_up
    }

    /// Questions to send, each with its directory; finished look-ups are counted in `tally`.
    pub(crate) fn asks(&mut self, tally: &mut Tally) -> Vec<(usize, DomainName)> {
        let mut asks = Vec::new();
        while let Some(output) = self.resolver.poll_output() {
            match output {
                Output::Ask { directory, domain } => asks.push((machine::number(directory), domain)),
                Output::Found(_, outcome) => {
                    self.waited_for -= 1;
                    tally.add(&outcome);
                }
            }
        }
        asks
    }

    pub(crate) fn is_over(&self) -> bool {
        self.waited_for == 0
    }

    /// When the look-up must be polled again.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.resolver.poll_timeout().map(|due| due.0)
    }

    pub(crate) fn timeout(&mut self, now: Duration) {
        self.resolver.handle_timeout(Moment(now));
    }

    /// Handle a directory's answer, or its absence.
    pub(crate) fn answered(
        &mut self,
        from: usize,
        domain: &DomainName,
        answer: Option<&Answer>,
        now: Duration,
    ) {
        let reply = match answer {
            Some(Answer::Resolved(Resolved::Known { primary, partial })) => Reply::Known {
                primary: Box::new(records::received(primary)),
                partial: partial.iter().map(records::received).collect(),
            },
            Some(Answer::Resolved(Resolved::Left { number, age })) => {
                Reply::Left { number: *number, age: *age }
            }
            Some(Answer::Resolved(Resolved::Unknown)) => Reply::Unknown,
            _ => Reply::Nothing,
        };
        self.resolver.handle_reply(machine::key(from), domain, reply, Moment(now));
    }
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Found(found) => {
                self.disputed += u64::from(!found.agreed);
                if found.primary.remaining.is_zero() {
                    self.last_seen += 1;
                } else {
                    self.live += 1;
                }
            }
            Outcome::Left(_) | Outcome::Unknown | Outcome::Unreachable => self.nothing += 1,
        }
    }
}
