//! Answers to questions on `/visperf/directory/1`, from the lease table.
//!
//! Rule: [`Open`] checks the signatures before the table is locked, never while it is locked. An item that
//! fails the check is refused to its sender and changes nothing.
//! Not here: streams; what a valid chain is (`overlay::identity`, behind [`Open`]).

use crate::handle::{Found, Handle, Lookup};
use crate::opened::{Opened, OpenedDenial, OpenedItem, OpenedLeave};
use crate::registry::State;
use crate::registry::outcome;
use crate::registry::outcome::Accepted;
use crate::replicate;
use std::fmt;
use wire::credential::{Denial, Statement};
use wire::id::{DomainName, PeerKey};
use wire::replication::{
    ADMITTED_TOLD_MAX, Answer, Farewell, Item, Number, Question, ReplicaAnswer, Resolved, ResolvedStatement,
    Stated,
};

/// Longest reason of a refusal, in bytes: a sentence with a name and a key or two.
const REASON_LEN_MAX_BYTES: usize = 1000;

/// Verifier of signed items: the signatures, the certificate chain, its validity times, the signer's rights,
/// the revocations.
pub trait Open {
    /// Reason why an item is rejected, as text for a person.
    type Refused: fmt::Display;

    /// Verify a statement and return its content.
    ///
    /// # Errors
    /// If the verification fails.
    fn statement(&self, statement: Statement) -> Result<Opened, Self::Refused>;

    /// Verify a leave and return its content.
    ///
    /// # Errors
    /// If the verification fails.
    fn farewell(&self, farewell: Farewell) -> Result<OpenedLeave, Self::Refused>;

    /// Verify a revocation list and return its content.
    ///
    /// # Errors
    /// If the verification fails.
    fn denial(&self, denial: Denial) -> Result<OpenedDenial, Self::Refused>;
}

impl Handle {
    /// Answer `question` from the peer `from`; the connection has proved the key of `from`.
    pub fn answer(&self, from: PeerKey, question: Question, open: &impl Open) -> Answer {
        match question {
            Question::State(statement) => Answer::Stated(match open.statement(*statement) {
                Err(refused) => refuse(&refused),
                Ok(opened) => {
                    let (domain, number) = (opened.record().domain.clone(), opened.number());
                    self.stated(&domain, number, self.state(from, opened).map(|_: Accepted| ()))
                }
            }),
            Question::Leave(farewell) => Answer::Stated(match open.farewell(*farewell) {
                Err(refused) => refuse(&refused),
                Ok(left) => {
                    let (domain, number) = (left.leave.domain.clone(), left.number());
                    self.stated(&domain, number, self.leave(from, left).map(|_: bool| ()))
                }
            }),
            Question::Deny(denial) => {
                Answer::Stated(match open.denial(*denial).map(|denial| self.deny(denial)) {
                    Ok(Ok(_)) => Stated::Taken,
                    Ok(Err(refused)) => refuse(&refused),
                    Err(refused) => refuse(&refused),
                })
            }
            Question::Resolve(domain) => Answer::Resolved(self.resolved(&domain)),
            Question::Admitted { after } => {
                let mut domains = self.admitted(after.as_ref(), ADMITTED_TOLD_MAX + 1);
                let more = domains.len() > ADMITTED_TOLD_MAX;
                domains.truncate(ADMITTED_TOLD_MAX);
                // End the page between two names: the next page starts after the last name, so a second root
                // of it would be skipped.
                if more && let Some((last, _)) = domains.last().cloned() {
                    domains.retain(|(name, _)| *name != last);
                }
                Answer::Admitted { domains, more }
            }
            Question::DenyLists(domain) => Answer::DenyLists(self.denials(&domain)),
            Question::Replica(question) => match self.handle_question(from, question) {
                Ok(answer) => Answer::Replica(to_wire(answer)),
                Err(refused) => Answer::Refused(short(&refused)),
            },
        }
    }

    /// Process the answer of another directory to question `id`. Returns how many of its items failed the
    /// verification.
    pub fn take_answer(&self, from: PeerKey, id: u64, answer: Answer, open: &impl Open) -> usize {
        let Answer::Replica(answer) = answer else {
            self.handle_failure(from, id);
            return 0;
        };
        let mut unbelieved = 0;
        let answer = match answer {
            ReplicaAnswer::Taken => ReplicaAnswer::Taken,
            ReplicaAnswer::Details { details, buckets, settled } => {
                ReplicaAnswer::Details { details, buckets, settled }
            }
            ReplicaAnswer::Items { items, domains } => {
                let all = items.len();
                let items: Vec<_> = items.into_iter().filter_map(|item| open_item(item, open)).collect();
                unbelieved = all - items.len();
                ReplicaAnswer::Items { items, domains }
            }
        };
        self.handle_answer(from, id, answer);
        unbelieved
    }

    fn stated(&self, domain: &DomainName, number: Number, result: Result<(), replicate::Refused>) -> Stated {
        let highest = self.highest(domain).unwrap_or(number);
        match result {
            Ok(()) if highest > number => Stated::Partial { highest },
            Ok(()) => Stated::Primary,
            Err(replicate::Refused::Registry(
                outcome::Refused::Behind { .. }
                | outcome::Refused::Left { .. }
                | outcome::Refused::Crowded { .. },
            )) => Stated::Behind { highest },
            Err(refused) => refuse(&refused),
        }
    }

    fn resolved(&self, domain: &DomainName) -> Resolved {
        match self.look_up(domain) {
            Lookup::Left(number, age) => Resolved::Left { number, age },
            Lookup::Nothing => Resolved::Unknown,
            Lookup::NothingYet => Resolved::NotYet,
            Lookup::Found(found) => match statement_of(&found) {
                Some(primary) => {
                    let partial = found.partial.iter().filter_map(statement_of).collect();
                    Resolved::Known { primary: Box::new(primary), partial }
                }
                // A record of a representative in this process has no signature that another host could
                // check.
                None => Resolved::Unknown,
            },
        }
    }
}

fn statement_of(found: &Found) -> Option<ResolvedStatement> {
    let remaining =
        if found.state == State::Live { found.lease_remaining } else { std::time::Duration::ZERO };
    Some(ResolvedStatement {
        statement: Statement::clone(found.statement.as_ref()?),
        age: found.age,
        remaining,
    })
}

fn to_wire(answer: ReplicaAnswer<OpenedItem>) -> ReplicaAnswer<Item> {
    match answer {
        ReplicaAnswer::Taken => ReplicaAnswer::Taken,
        ReplicaAnswer::Details { details, buckets, settled } => {
            ReplicaAnswer::Details { details, buckets, settled }
        }
        ReplicaAnswer::Items { items, domains } => {
            ReplicaAnswer::Items { items: items.iter().filter_map(OpenedItem::to_wire).collect(), domains }
        }
    }
}

fn open_item(item: Item, open: &impl Open) -> Option<OpenedItem> {
    let opened = match item {
        Item::Statement { statement, age, remaining } => {
            open.statement(*statement).map(|opened| OpenedItem::Statement { opened, age, remaining })
        }
        Item::Farewell { farewell, age } => {
            open.farewell(*farewell).map(|left| OpenedItem::Farewell { left, age })
        }
        Item::Denial(denial) => open.denial(*denial).map(OpenedItem::Denial),
    };
    opened
        .inspect_err(|refused| tracing::warn!(%refused, "another directory handed on what does not hold"))
        .ok()
}

fn refuse(refused: &impl fmt::Display) -> Stated {
    Stated::Refused(short(refused))
}

fn short(refused: &impl fmt::Display) -> String {
    let mut text = refused.to_string();
    text.truncate(text.floor_char_boundary(REASON_LEN_MAX_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Admission, List};
    use crate::handle::Clock;
    use crate::registry::Registry;
    use crate::replicate::Replicas;
    use crate::testing::{ROOT, domain, leave, part, statement};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use wire::time::{Moment, Time};

    #[derive(Clone, Default)]
    struct Secs(Arc<AtomicU64>);

    impl Clock for Secs {
        fn now(&self) -> Moment {
            Moment(Duration::from_secs(self.0.load(Ordering::SeqCst)))
        }
        fn calendar(&self) -> Time {
            Time::default()
        }
    }

    /// Accepts everything except what is signed under the all-zero root.
    struct Believing;

    impl Open for Believing {
        type Refused = &'static str;
        fn statement(&self, statement: Statement) -> Result<Opened, &'static str> {
            let record = statement.record.unverified().map_err(|_| "no record")?;
            let root = record.reach.as_ref().map(|reach| reach.root);
            if root == Some(PeerKey([0; 32])) {
                return Err("not signed");
            }
            Opened::signed(record, statement).map_err(|_| "no reach")
        }
        fn farewell(&self, farewell: Farewell) -> Result<OpenedLeave, &'static str> {
            let leave = farewell.leave.unverified().map_err(|_| "no leave")?;
            Ok(OpenedLeave { leave, farewell: Arc::new(farewell) })
        }
        fn denial(&self, _: Denial) -> Result<OpenedDenial, &'static str> {
            Err("none here")
        }
    }

    fn directory(names: &[&str]) -> (Secs, Handle) {
        let mut list = List::default();
        names.iter().for_each(|name| assert!(list.add(domain(name), ROOT).expect("few")));
        let clock = Secs::default();
        let admission = Admission::new(list, List::default());
        let peers = [PeerKey([100; 32])];
        let replicas = Replicas::among(Registry::new(10), admission, &peers, 1, clock.now()).expect("one");
        (clock.clone(), Handle::among(replicas, clock))
    }

    fn state(handle: &Handle, from: u8, opened: &Opened) -> Answer {
        let statement = Statement::clone(opened.statement().expect("signed"));
        handle.answer(PeerKey([from; 32]), Question::State(Box::new(statement)), &Believing)
    }

    #[test]
    fn a_representative_learns_where_it_stands() {
        let (_, handle) = directory(&["a"]);
        let check = |from: u8, opened: Opened, expected: &str| {
            let answer = format!("{:?}", state(&handle, from, &opened));
            assert!(answer.starts_with(&format!("Stated({expected}")), "{answer}");
        };
        check(1, statement("a", 1, 3, 1, part(&["n1"])), "Primary");
        check(2, statement("a", 2, 4, 1, part(&["n2"])), "Primary");
        check(1, statement("a", 1, 3, 2, part(&["n1"])), "Partial { highest: Number { term: 4");
        check(2, statement("a", 2, 3, 9, part(&["n2"])), "Behind { highest: Number { term: 4");
        check(2, statement("a", 1, 3, 3, part(&["n1"])), "Refused(\"a statement of 12D3KooW");
        check(3, statement("b", 3, 3, 3, part(&["n1"])), "Refused(\"b is not admitted here");
        let farewell = Question::Leave(Box::new(Farewell::clone(&leave("a", 2, 4, 2).farewell)));
        let answer = handle.answer(PeerKey([2; 32]), farewell, &Believing);
        assert_eq!(answer, Answer::Stated(Stated::Primary));
        check(1, statement("a", 1, 3, 3, part(&["n1"])), "Behind { highest: Number { term: 4");
    }

    #[test]
    fn a_domain_is_returned_as_it_was_signed_and_before_settling_unknown_is_only_not_yet() {
        let (clock, handle) = directory(&["a", "b"]);
        let resolve = |name: &str| {
            let question = Question::Resolve(domain(name));
            let Answer::Resolved(resolved) = handle.answer(PeerKey([9; 32]), question, &Believing) else {
                panic!("another answer")
            };
            resolved
        };
        assert_eq!(resolve("b"), Resolved::NotYet);
        let (low, high) = (statement("a", 1, 3, 1, part(&["n1"])), statement("a", 2, 4, 1, part(&["n2"])));
        state(&handle, 1, &low);
        state(&handle, 2, &high);
        let Resolved::Known { primary, partial } = resolve("a") else { panic!("known") };
        assert_eq!(&primary.statement, &**high.statement().expect("signed"));
        assert_eq!(&partial[0].statement, &**low.statement().expect("signed"));
        clock.0.store(10, Ordering::SeqCst);
        assert_eq!(resolve("b"), Resolved::Unknown);
        let admitted =
            handle.answer(PeerKey([9; 32]), Question::Admitted { after: Some(domain("a")) }, &Believing);
        assert_eq!(admitted, Answer::Admitted { domains: vec![(domain("b"), ROOT)], more: false });
    }

    #[test]
    fn only_other_directories_replicate_and_what_does_not_hold_is_not_learnt() {
        let (_, handle) = directory(&["a"]);
        let fetch = Question::Replica(wire::replication::ReplicaQuestion::Fetch(vec![domain("a")]));
        let refused = handle.answer(PeerKey([9; 32]), fetch, &Believing);
        assert!(matches!(refused, Answer::Refused(reason) if reason.contains("is no directory")));
        let good = statement("a", 1, 3, 1, part(&["n1"]));
        let mut bad = good.record().clone();
        bad.reach.as_mut().expect("signed").root = PeerKey([0; 32]);
        let chain = good.statement().expect("signed").chain.clone();
        let record = wire::sealed::Sealed::new(&bad, good.peer(), |_| [0; 64]).expect("short");
        let item = Item::Statement {
            statement: Box::new(Statement { record, chain }),
            age: Duration::ZERO,
            remaining: Duration::from_secs(9),
        };
        let answer = Answer::Replica(ReplicaAnswer::Items { items: vec![item], domains: 1 });
        assert_eq!(handle.take_answer(PeerKey([100; 32]), 1, answer, &Believing), 1);
        assert_eq!(handle.resolve(&domain("a")), None);
    }
}
