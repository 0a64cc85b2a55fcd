//! Forwarding to other domains: find the representative of a domain, and ask it.
//!
//! Rule: the representative is looked up for each question, from a cache that is seconds old, and again when
//! it cannot be reached; a fault names the daemon that was asked, and the age of an expired record.
//! Not here: how a domain is looked up (`overlay::resolve`, `directory`), which questions are for others
//! (`forward`).

use super::admission_status::AdmissionStatus;
use crate::hop::{self, Hop};
use directory::handle::{Handle as Table, Lookup as InTable};
use overlay::clock;
use overlay::contacts::{Contacts, Keep};
use overlay::net::handle::AskError;
use overlay::net::protocol::Protocol;
use overlay::resolve::Outcome;
use overlay::resolve::asker::Asker;
use rpc::codec::value::Value;
use rpc::dispatch::encoded_answer::Answered;
use rpc::fault::Fault;
use std::sync::Arc;
use std::time::Duration;
use wire::id::DomainName;
use wire::query::Question;
use wire::registration::{Reach, Record};

/// Most time of a question that a look-up may take.
const LOOK_UP_MAX: Duration = Duration::from_secs(3);

/// The same for a domain with a cached record.
const LOOK_UP_KNOWN_MAX: Duration = Duration::from_millis(700);

/// Timeout for connecting to a representative, before another one is looked up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Time after which no further representative is tried: longer than an election and the spread of its result
/// take.
const REACH_MAX: Duration = Duration::from_secs(6);

/// Where domains are looked up.
#[derive(Clone)]
pub(crate) enum Lookup {
    /// In the cache, or at the directories.
    Asked(Asker),
    /// In the own table: this daemon is a directory.
    Table(Table),
}

/// Client of other domains; cheap to clone.
#[derive(Clone)]
pub(crate) struct RemoteDomains {
    pub(crate) lookup: Lookup,
    pub(crate) contacts: Arc<Contacts>,
    /// Refusals of this daemon by others: they explain why no daemon could be asked.
    pub(crate) welcome: AdmissionStatus,
}

/// A representative that can be asked.
struct Place {
    record: Record,
    reach: Reach,
    /// Age of its record, if that has expired.
    last_seen: Option<Duration>,
}

/// Whether the cached record may be used.
#[derive(Clone, Copy)]
enum CachePolicy {
    /// It may be used, if it is seconds old.
    Use,
    /// It was tried without success: look the domain up again.
    Bypass,
}

impl Place {
    fn hop(&self, domain: &DomainName) -> Hop {
        let (peer, host) = (self.reach.peer, Some(self.record.host.clone()));
        Hop { peer, host, part: "representative", domain: Some(domain.clone()) }
    }
}

impl RemoteDomains {
    /// The value that `domain`'s representative answers to `question`, within `time_left`.
    pub(crate) async fn ask(
        &self,
        domain: &DomainName,
        question: Question,
        time_left: Duration,
    ) -> Result<Value, Fault> {
        self.ask_for(domain, question, time_left).await?.value()
    }

    /// The same, encoded in the form that the question names.
    pub(crate) async fn ask_for(
        &self,
        domain: &DomainName,
        mut question: Question,
        time_left: Duration,
    ) -> Result<Answered, Fault> {
        let started = clock::now();
        let left = || time_left.saturating_sub(clock::now().since(started));
        let mut place = self.find(domain, left().min(LOOK_UP_MAX), CachePolicy::Use).await?;
        loop {
            let target = (place.reach.peer, place.reach.addresses.as_slice());
            let reached = self.contacts.reach(target.0, target.1);
            let answered = match tokio::time::timeout(LOOK_AGAIN.min(left()), reached).await {
                Err(_) => Err(None),
                Ok(()) => {
                    let time = left();
                    question.time_left_ms = hop::millis(time);
                    let bytes = question.to_bytes();
                    self.contacts
                        .ask(target, Protocol::Query, &bytes, Keep::ForMore, time)
                        .await
                        .map_err(Some)
                }
            };
            let hop = place.hop(domain);
            match answered {
                Err(error) if is_gone(error.as_ref()) && left() > LOOK_AGAIN => {
                    if clock::now().since(started) > REACH_MAX {
                        return Err(unreached(&hop, &place, error));
                    }
                    // Another daemon may represent the domain by now.
                    place = self.find(domain, left().min(LOOK_UP_MAX), CachePolicy::Bypass).await?;
                }
                Err(None) => return Err(unreached(&hop, &place, None)),
                Err(Some(error)) => return hop::answer_for(&hop, question.form, Err(error)),
                Ok(bytes) => return hop::answer_for(&hop, question.form, Ok(bytes)),
            }
        }
    }

    /// Addresses and key of `domain`'s representative.
    pub(crate) async fn reach_of(&self, domain: &DomainName, time: Duration) -> Result<Reach, Fault> {
        Ok(self.find(domain, time, CachePolicy::Use).await?.reach)
    }

    async fn find(&self, domain: &DomainName, time: Duration, cache: CachePolicy) -> Result<Place, Fault> {
        let resolve = async |asker: &Asker| {
            // With a cached record, the look-up does not wait until every dead directory has timed out.
            let is_known = matches!(asker.last_known(domain), Outcome::Found(_));
            let time = if is_known { time.min(LOOK_UP_KNOWN_MAX) } else { time };
            match cache {
                CachePolicy::Use => asker.resolve(domain, time).await,
                CachePolicy::Bypass => asker.resolve_again(domain, time).await,
            }
        };
        let (record, last_seen) = match &self.lookup {
            Lookup::Asked(asker) => match resolve(asker).await {
                Outcome::Found(found) => {
                    let heard = found.primary;
                    (heard.record, heard.remaining.is_zero().then_some(heard.age))
                }
                outcome @ (Outcome::Left(_) | Outcome::Unknown | Outcome::Unreachable) => {
                    return Err(absent(domain, &outcome, &self.welcome, || asker.known()));
                }
            },
            Lookup::Table(table) => match table.look_up(domain) {
                InTable::Found(found) => (found.record, found.lease_remaining.is_zero().then_some(found.age)),
                InTable::Left(_, age) => return Err(directory::faults::left(domain, age)),
                InTable::Nothing => return Err(directory::faults::unknown(table, domain)),
                InTable::NothingYet => return Err(directory::faults::not_yet(domain)),
            },
        };
        let reach = record.reach.clone().ok_or_else(|| {
            hop::unavailable(format!("{domain} is known to this process alone: it is not in the overlay"))
        })?;
        Ok(Place { record, reach, last_seen })
    }
}

/// Whether the representative could not be reached, or died while it was asked. The methods only read, so
/// another representative may be asked.
fn is_gone(error: Option<&AskError>) -> bool {
    matches!(error, None | Some(AskError::Open { .. } | AskError::Broken { .. }))
}

fn unreached(hop: &Hop, place: &Place, error: Option<AskError>) -> Fault {
    let why = match error {
        Some(error) => error.reason(),
        None => {
            let tried: Vec<&str> = place.reach.addresses.iter().map(wire::address::Address::as_str).collect();
            format!("no connection to {}", tried.join(", "))
        }
    };
    let seen = match place.last_seen {
        Some(age) => format!("; it was last seen {} s ago", age.as_secs()),
        None => String::new(),
    };
    hop::unavailable(format!("{hop} cannot be asked: {why}{seen}"))
}

/// The fault for a domain without a representative to ask. `known` returns the domains in the cache.
pub(crate) fn absent(
    domain: &DomainName,
    outcome: &Outcome,
    welcome: &AdmissionStatus,
    known: impl FnOnce() -> Vec<DomainName>,
) -> Fault {
    match outcome {
        Outcome::Left(age) => directory::faults::left(domain, *age),
        Outcome::Unreachable => {
            let refusals = welcome.health();
            let why = match refusals.as_slice() {
                [] => {
                    "see `visperf info` for the connections, and [overlay] directories in the configuration"
                        .to_owned()
                }
                refusals => refusals.join("; "),
            };
            hop::unavailable(format!(
                "no directory could be asked for {domain}, and it was never known here; {why}"
            ))
        }
        Outcome::Unknown | Outcome::Found(_) => {
            Fault::not_found(match directory::faults::known_words(known()) {
                Some(known) => format!("no domain {domain} is known to the directories; here {known}"),
                None => format!(
                    "no domain {domain} is known to the directories; see `visperf domains` for those that are"
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlay::hub::PeerEvent;
    use wire::id::PeerKey;

    #[test]
    fn a_stranger_that_directories_refuse_learns_why_none_could_be_asked() {
        let (domain, welcome) = (DomainName::try_from("UT-ICL").unwrap(), AdmissionStatus::default());
        let message = |welcome: &AdmissionStatus| {
            absent(&domain, &Outcome::Unreachable, welcome, Vec::new).message.into_owned()
        };
        assert!(
            message(&welcome).ends_with("[overlay] directories in the configuration"),
            "{}",
            message(&welcome)
        );
        let refused = "domain beta is not admitted here".to_owned();
        welcome.take(PeerEvent::Unwelcome(PeerKey([1; 32]), refused.clone()));
        assert!(message(&welcome).ends_with(&refused), "{}", message(&welcome));
        let unknown = absent(&domain, &Outcome::Unknown, &welcome, Vec::new).message;
        assert!(!unknown.contains(&refused), "directories have answered: {unknown}");
    }

    #[test]
    fn an_unknown_domain_is_answered_with_the_known_ones() {
        let (nix, welcome) = (DomainName::try_from("NIX").unwrap(), AdmissionStatus::default());
        let message = |known: &[&str]| {
            let known = known.iter().map(|name| DomainName::try_from(*name).unwrap()).collect();
            absent(&nix, &Outcome::Unknown, &welcome, || known).message.into_owned()
        };
        assert_eq!(message(&["A", "B"]), "no domain NIX is known to the directories; here known are A, B");
        assert!(message(&[]).ends_with("see `visperf domains` for those that are"), "{}", message(&[]));
        let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        assert!(
            message(&many).ends_with("h, i, j and more; ask directory.domains for all"),
            "{}",
            message(&many)
        );
    }

    #[test]
    fn a_document_is_taken_where_one_is_asked_for_and_what_is_no_answer_is_a_fault() {
        use wire::query::{Answer, Form, Integers, Syntax};
        let hop = Hop { peer: PeerKey([1; 32]), host: None, part: "representative", domain: None };
        let form = Some(Form { syntax: Syntax::Json, integers: Integers::Number });
        let bytes = |answer: &Answer<'_>| postcard::to_stdvec(answer).unwrap();
        let answered = |form, bytes: &[u8]| hop::answer_for(&hop, form, Ok(bytes.to_vec()));
        let written = bytes(&Answer::Written(b"{"));
        assert_eq!(answered(form, &written), Ok(Answered::Written("{".into())), "it is not read");
        let packed = bytes(&Answer::Done(&[0]));
        for form in [form, None] {
            assert_eq!(answered(form, &packed), Ok(Answered::Value(Value::Nil)));
            for garbage in [&b""[..], &[9, 9], &written[..written.len() - 1], &bytes(&Answer::Done(&[99]))] {
                let fault = answered(form, garbage).unwrap_err();
                assert_eq!(fault.code, wire::fault::UNAVAILABLE, "{garbage:?}: {fault}");
            }
            let refused = Answer::Fault { code: wire::fault::NOT_FOUND, message: "no such host" };
            assert_eq!(answered(form, &bytes(&refused)), Err(Fault::not_found("no such host")));
        }
        let fault = answered(None, &written).unwrap_err();
        assert!(fault.message.contains("a document came where a value was asked for"), "{fault}");
    }

    #[test]
    fn a_broken_connection_is_reported_without_keys_and_others_are_looked_for() {
        let (peer, domain) = (PeerKey([1; 32]), DomainName::try_from("ALPHA").unwrap());
        let host = Some(wire::id::HostName::try_from("a1").unwrap());
        let hop = Hop { peer, host, part: "representative", domain: Some(domain) };
        let broken = AskError::Broken { peer, reason: "the connection broke".to_owned() };
        assert!(is_gone(Some(&broken)) && !is_gone(Some(&AskError::Stopping)));
        let fault = hop::answer(&hop, Err(broken)).unwrap_err();
        assert_eq!(fault.code, wire::fault::UNAVAILABLE);
        assert_eq!(fault.message, "a1, representative of ALPHA cannot be asked: the connection broke");
    }
}
