//! A client that asks the members of a domain, each 100 ms another, whatever becomes of the questions before.
//!
//! Rule: each question has a thread, so that none waits for another. Not here: which members are asked.

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

/// Between two questions.
pub(super) const ASKED_EACH: Duration = Duration::from_millis(100);
/// An answer that took no longer is none that was waited for.
const PROMPT: Duration = Duration::from_millis(250);

/// The members that are asked, shared by all that ask.
#[derive(Clone, Default)]
pub(super) struct Members(Arc<RwLock<Vec<(Host, SocketAddr)>>>);

impl Members {
    /// Only these are asked from now on.
    pub(super) fn are(&self, members: &[&Daemon]) {
        let members = members.iter().map(|daemon| (daemon.host().clone(), daemon.address().unwrap()));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = members.collect();
    }

    /// One of them.
    pub(super) fn one(&self, random: &mut Random) -> Option<(Host, SocketAddr)> {
        let members = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let at = random.below(members.len().max(1) as u64);
        members.get(usize::try_from(at).ok()?).cloned()
    }
}

/// One question.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// When.
    pub(super) at: Instant,
    /// Which host.
    pub(super) whom: String,
    /// When it was answered, with the representative or what came instead.
    pub(super) answered: Option<(Instant, Result<String, String>)>,
}

impl Asked {
    /// The representative that was named.
    pub(super) fn named(&self) -> Option<&String> {
        self.answered.as_ref()?.1.as_ref().ok()
    }

    /// Whether a fault or nothing came.
    pub(super) fn failed(&self) -> bool {
        self.answered.as_ref().is_some_and(|(_, answer)| answer.is_err())
    }

    /// Whether it still waits, longer than most wait.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.answered.is_none() && now - self.at > PROMPT
    }

    /// Until when an answer was waited for, if it was.
    pub(super) fn waited_until(&self) -> Option<Instant> {
        let (answered, answer) = self.answered.as_ref()?;
        (answer.is_err() || *answered - self.at > PROMPT).then_some(*answered)
    }
}

/// Asks members in turn at random.
pub(super) struct Client {
    asked: Arc<Mutex<BTreeMap<u64, Asked>>>,
    ends: Arc<AtomicBool>,
}

impl Client {
    /// Begins to ask.
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
                    let question = Asked { at: now(), whom: host.name().to_owned(), answered: None };
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

    /// What was asked since `since`, in the order of asking; what was asked before is forgotten.
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
