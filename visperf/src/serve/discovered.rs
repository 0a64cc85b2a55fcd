//! The hosts of domains, for service discovery: what each domain's representative says in `domain.hosts`.
//!
//! Rule: each domain is asked once in [`FRESH_FOR`] however many ask, a bounded number at a time, and nobody waits
//! longer than [`DEADLINE`]; of a domain that does not answer, the hosts that it named last are told.
//! Not here: the answer's form (`directory::discovery`).

use super::elsewhere;
use super::others::Others;
use directory::discovery::{Hosts, Listed};
use overlay::clock;
use rpc::value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wire::id::{DomainName, HostName};
use wire::time::Moment;

/// A list is told for so long without asking again: a target's absence is no hurry, and Prometheus asks each minute.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// How long a reader waits for representatives: less than Prometheus does.
const DEADLINE: Duration = Duration::from_secs(5);

/// Representatives asked at a time.
const ASKED_MAX: usize = 32;

type Kept = Arc<Mutex<BTreeMap<DomainName, (Moment, Vec<HostName>)>>>;

/// Lists hosts by asking representatives.
pub(crate) fn hosts(others: Others) -> Hosts {
    let kept = Kept::default();
    Hosts::new(move |found| {
        let (others, kept) = (others.clone(), Arc::clone(&kept));
        let domains: Vec<DomainName> = found.into_iter().map(|found| found.record.domain).collect();
        async move {
            // What has not answered by then is as it was.
            let _ = tokio::time::timeout(DEADLINE, refresh(&others, &kept, &domains)).await;
            let mut kept = lock(&kept);
            // Domains that are gone are forgotten with the first reader of all.
            if domains.len() > 1 {
                kept.retain(|domain, _| domains.contains(domain));
            }
            let told = domains.into_iter().filter_map(|domain| {
                let hosts = kept.get(&domain)?.1.clone();
                Some((domain, hosts))
            });
            told.collect::<Listed>()
        }
    })
}

async fn refresh(others: &Others, kept: &Kept, domains: &[DomainName]) {
    let seats = Arc::new(Semaphore::new(ASKED_MAX));
    let mut asking = JoinSet::new();
    for domain in domains {
        let is_fresh = |(at, _): &(Moment, Vec<HostName>)| clock::now().since(*at) < FRESH_FOR;
        if lock(kept).get(domain).is_some_and(is_fresh) {
            continue;
        }
        let (others, kept, seats, domain) =
            (others.clone(), Arc::clone(kept), Arc::clone(&seats), domain.clone());
        asking.spawn(async move {
            // Never closed.
            let _seat = seats.acquire().await;
            match others
                .ask(&domain, elsewhere::question("domain.hosts", Vec::new(), DEADLINE, 1), DEADLINE)
                .await
            {
                Ok(answer) => drop(lock(&kept).insert(domain, (clock::now(), names(&answer)))),
                Err(fault) => {
                    tracing::debug!(%domain, message = %fault.message, "its hosts are as they were")
                }
            }
        });
    }
    while asking.join_next().await.is_some() {}
}

/// The names in an answer of `domain.hosts`.
fn names(answer: &Value) -> Vec<HostName> {
    let hosts = answer.get("hosts").and_then(Value::as_array).unwrap_or_default();
    let named = hosts.iter().filter_map(|host| host.get("host").and_then(Value::as_text));
    named.filter_map(|name| HostName::try_from(name).ok()).collect()
}

fn lock(kept: &Kept) -> MutexGuard<'_, BTreeMap<DomainName, (Moment, Vec<HostName>)>> {
    // Rows are put in whole.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
