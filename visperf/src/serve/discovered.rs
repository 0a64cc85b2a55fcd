//! Hosts of domains for service discovery, from each representative's `domain.hosts`.
//!
//! Rule: an answer is reused for [`FRESH_FOR`]; each reader asks a bounded number of representatives at a
//! time, and waits no longer than [`DEADLINE`]; for a domain that does not answer, its last answer is used,
//! and after [`BELIEVED_FOR`] without an answer none of its hosts is live.
//! Not here: the answer's form (`directory::discovery`).

use super::remote_domains::RemoteDomains;
use crate::hop;
use directory::discovery::{HostState, Hosts, Listed};
use overlay::clock;
use rpc::codec::value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wire::id::{DomainName, HostName};
use wire::time::Moment;

/// Time for which an answer is reused: much less than a minute, the interval of Prometheus.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// Time without an answer of a representative, after which its hosts are listed as last seen: as long as its
/// record is valid; another representative takes over within it.
const BELIEVED_FOR: Duration = Duration::from_secs(15);

/// Longest wait of a reader: less than the timeout of Prometheus.
const DEADLINE: Duration = Duration::from_secs(5);

/// Timeout of a representative, shorter than the reader's, so that its outcome is known before.
const ASKED_FOR: Duration = Duration::from_millis(4500);

/// Most representatives that one reader asks at a time.
const ASKED_MAX: usize = 32;

/// Last answer of a representative.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    asked: Moment,
    /// Start of the current series of failures.
    silent: Option<Moment>,
    hosts: Vec<(HostName, HostState)>,
}

impl Row {
    /// Its hosts; live ones become last seen after a long series of failures.
    fn told(&self, now: Moment) -> Vec<(HostName, HostState)> {
        let is_believed = self.silent.is_none_or(|since| now.since(since) < BELIEVED_FOR);
        let as_thought = |state| match state {
            HostState::Live if !is_believed => HostState::LastSeen,
            HostState::Live | HostState::LastSeen | HostState::Left => state,
        };
        self.hosts.iter().map(|(host, state)| (host.clone(), as_thought(*state))).collect()
    }
}

type Rows = BTreeMap<DomainName, Row>;

type Kept = Arc<Mutex<Rows>>;

/// List of hosts for service discovery, from representatives.
pub(crate) fn hosts(others: RemoteDomains) -> Hosts {
    let kept = Kept::default();
    Hosts::new(move |found| {
        let (others, kept) = (others.clone(), Arc::clone(&kept));
        let domains: Vec<DomainName> = found.into_iter().map(|found| found.record.domain).collect();
        async move {
            // For a domain that has not answered by then, the last answer is used.
            let _ = tokio::time::timeout(DEADLINE, refresh(&others, &kept, &domains)).await;
            let (mut kept, now) = (lock(&kept), clock::now());
            // Domains that are gone are removed by the next reader of all domains.
            if domains.len() > 1 {
                kept.retain(|domain, _| domains.contains(domain));
            }
            let told = domains.into_iter().filter_map(|domain| {
                let hosts = kept.get(&domain)?.told(now);
                Some((domain, hosts))
            });
            told.collect::<Listed>()
        }
    })
}

async fn refresh(others: &RemoteDomains, kept: &Kept, domains: &[DomainName]) {
    let seats = Arc::new(Semaphore::new(ASKED_MAX));
    let mut asking = JoinSet::new();
    for domain in domains {
        let is_fresh = |row: &Row| row.silent.is_none() && clock::now().since(row.asked) < FRESH_FOR;
        if lock(kept).get(domain).is_some_and(is_fresh) {
            continue;
        }
        let (others, kept, seats, domain) =
            (others.clone(), Arc::clone(kept), Arc::clone(&seats), domain.clone());
        asking.spawn(async move {
            // The semaphore is never closed.
            let _seat = seats.acquire().await;
            let question = hop::question("domain.hosts", Vec::new(), ASKED_FOR, 1);
            match others.ask(&domain, question, ASKED_FOR).await {
                Ok(answer) => {
                    let row = Row { asked: clock::now(), silent: None, hosts: states(&answer) };
                    drop(lock(&kept).insert(domain, row));
                }
                Err(fault) => {
                    tracing::debug!(%domain, message = %fault.message, "its hosts are as they were");
                    if let Some(row) = lock(&kept).get_mut(&domain) {
                        row.silent.get_or_insert(clock::now());
                    }
                }
            }
        });
    }
    while asking.join_next().await.is_some() {}
}

/// The hosts in an answer of `domain.hosts`, each with its state; an unknown state counts as last seen.
fn states(answer: &Value) -> Vec<(HostName, HostState)> {
    let rows = answer.get("hosts").and_then(Value::as_array).unwrap_or_default();
    let hosts = rows.iter().filter_map(|row| {
        let host = HostName::try_from(row.get("host").and_then(Value::as_text)?).ok()?;
        let state = row.get("state").and_then(Value::as_text).and_then(HostState::of_word);
        Some((host, state.unwrap_or(HostState::LastSeen)))
    });
    hosts.collect()
}

fn lock(kept: &Kept) -> MutexGuard<'_, Rows> {
    // Entries are inserted complete.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        HostName::try_from(name).unwrap()
    }

    #[test]
    fn each_host_is_as_its_representative_says() {
        let row = |name: &'static str, state: &'static str| {
            Value::object([("host", Value::from(name)), ("state", state.into())])
        };
        let rows =
            [row("n1", "live"), row("n2", "last_seen"), row("n3", "left"), row("n4", "odd"), row("", "live")];
        let expected = [
            (host("n1"), HostState::Live),
            (host("n2"), HostState::LastSeen),
            (host("n3"), HostState::Left),
            (host("n4"), HostState::LastSeen),
        ];
        assert_eq!(states(&Value::object([("hosts", Value::array(rows))])), expected);
        assert_eq!(states(&Value::from("nothing")), []);
    }

    #[test]
    fn hosts_of_a_representative_that_is_asked_in_vain_are_not_live_for_ever() {
        let at = |secs| Moment(Duration::from_secs(secs));
        let hosts = vec![(host("n1"), HostState::Live), (host("n2"), HostState::Left)];
        let row = |silent| Row { asked: at(100), silent, hosts: hosts.clone() };
        assert_eq!(row(None).told(at(900)), hosts, "it was not asked since, or answered");
        assert_eq!(row(Some(at(160))).told(at(174)), hosts, "another may take over");
        let late = [(host("n1"), HostState::LastSeen), (host("n2"), HostState::Left)];
        assert_eq!(row(Some(at(160))).told(at(175)), late);
    }
}
