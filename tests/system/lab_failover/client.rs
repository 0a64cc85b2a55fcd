//! A client that queries the members of a domain, a random one every 100 ms, whether or not earlier queries
//! were answered.
//!
//! Rule: each query has its own thread, so that none waits for another. Not here: which members are queried.

use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use system_tests::lab::{Daemon, Host};
use system_tests::query::{self, Answer};
use system_tests::random::Random;
use system_tests::wait::now;

/// Interval between two queries.
pub(super) const ASKED_EACH: Duration = Duration::from_millis(100);
/// An answer within this time does not count as waiting.
const PROMPT: Duration = Duration::from_millis(250);

/// The members to query, shared by all clients.
#[derive(Clone, Default)]
pub(super) struct Members(Arc<RwLock<Vec<(Host, SocketAddr)>>>);

impl Members {
    /// Set the members to query from now on.
    pub(super) fn are(&self, members: &[&Daemon]) {
        let members = members.iter().map(|daemon| (daemon.host().clone(), daemon.address().unwrap()));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = members.collect();
    }

    /// One of them, at random.
    pub(super) fn one(&self, random: &mut Random) -> Option<(Host, SocketAddr)> {
        let members = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let at = random.below(members.len().max(1) as u64);
        members.get(usize::try_from(at).ok()?).cloned()
    }
}

/// A query.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) at: Instant,
    /// The queried host.
    pub(super) host: String,
    /// When it was answered, with the representative or the error.
    pub(super) answered: Option<(Instant, Result<String, String>)>,
}

impl Asked {
    /// The representative in the answer.
    pub(super) fn named(&self) -> Option<&String> {
        self.answered.as_ref()?.1.as_ref().ok()
    }

    /// Whether a fault or an error was received.
    pub(super) fn failed(&self) -> bool {
        self.answered.as_ref().is_some_and(|(_, answer)| answer.is_err())
    }

    /// Whether it is still waiting, for longer than [`PROMPT`].
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.answered.is_none() && now - self.at > PROMPT
    }

    /// When the answer came, if it was late or an error. After an error the client waits for its next query.
    pub(super) fn waited_until(&self) -> Option<Instant> {
        let (answered, answer) = self.answered.as_ref()?;
        match answer {
            Err(_) => Some((*answered).max(self.at + ASKED_EACH)),
            Ok(_) => (*answered - self.at > PROMPT).then_some(*answered),
        }
    }
}

/// For how long a client waited in all: the time covered by queries, in the order of sending, that were answered late
/// or with an error.
pub(super) fn waited(asked: &[Asked]) -> Duration {
    let (mut sum, mut end) = (Duration::ZERO, None);
    for one in asked {
        let Some(until) = one.waited_until() else { continue };
        let from = end.map_or(one.at, |end| one.at.max(end));
        sum += until.saturating_duration_since(from);
        end = end.max(Some(until));
    }
    sum
}

/// Queries random members.
pub(super) struct Client {
    asked: Arc<Mutex<BTreeMap<u64, Asked>>>,
    ends: Arc<AtomicBool>,
}

impl Client {
    /// Start to query.
    pub(super) fn start(members: Members, seed: u64) -> Client {
        let client = Client { asked: Arc::default(), ends: Arc::default() };
        let (asked, ends) = (Arc::clone(&client.asked), Arc::clone(&client.ends));
        let mut random = Random::new(seed);
        std::thread::spawn(move || {
            for number in 0.. {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                if let Some((host, address)) = members.one(&mut random) {
                    let question = Asked { at: now(), host: host.name().to_owned(), answered: None };
                    asked.lock().unwrap_or_else(PoisonError::into_inner).insert(number, question);
                    let asked = Arc::clone(&asked);
                    std::thread::spawn(move || {
                        let answer = ask(&host, address);
                        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Some(question) = asked.get_mut(&number) {
                            question.answered = Some((now(), answer));
                        }
                    });
                }
                std::thread::sleep(ASKED_EACH);
            }
        });
        client
    }

    /// The queries since `since`, in the order of sending; earlier ones are dropped.
    pub(super) fn asked_since(&self, since: Instant) -> Vec<Asked> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, one| one.at >= since);
        asked.values().cloned().collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn ask(host: &Host, address: SocketAddr) -> Result<String, String> {
    match host.run(|| query::ask(address, "domain.summary", &json!({}))) {
        Ok(Answer::Result(summary)) => match summary["representative"].as_str() {
            Some(named) => Ok(named.to_owned()),
            None => Err(format!("no representative in {summary}")),
        },
        Ok(Answer::Fault { code, message, .. }) => Err(format!("fault {code}: {message}")),
        Err(error) => Err(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_which_a_client_waits_are_counted_once_and_those_between_are_not() {
        let start = now();
        let query = |at, answered, answer: Result<String, String>| Asked {
            at: start + Duration::from_millis(at),
            host: "h2".to_owned(),
            answered: Some((start + Duration::from_millis(answered), answer)),
        };
        let late = || Ok("h3".to_owned());
        let failed = || Err("no representative".to_owned());
        // Late until 1,300, with a prompt answer before; failures from 2,000 to 2,200; late from 5,000 to 5,300.
        let asked = [
            query(0, 1300, late()),
            query(100, 900, late()),
            query(200, 201, late()),
            query(2000, 2001, failed()),
            query(2100, 2101, failed()),
            query(5000, 5300, late()),
            query(5400, 5410, late()),
        ];
        assert_eq!(waited(&asked), Duration::from_millis(1300 + 200 + 300));
        assert_eq!(waited(&[]), Duration::ZERO);
    }
}
