//! Hosts of domains for service discovery, from each representative's `domain.hosts`.
//!
//! Rule: an answer is reused for [`FRESH_FOR`]; concurrent readers share one query of a representative; each
//! reader asks a bounded number of representatives at a time, and waits no longer than [`DEADLINE`]; for a
//! domain that does not answer, its last answer is used, and after [`BELIEVED_FOR`] without an answer none of
//! its hosts is live.
//! Not here: the answer's form (`directory::discovery`).

use super::remote_domains::RemoteDomains;
use crate::hop;
use directory::discovery::{HostState, Hosts, Listed};
use overlay::clock;
use rpc::codec::value::Value;
use rpc::fault::Fault;
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
    fn hosts_at(&self, now: Moment) -> Vec<(HostName, HostState)> {
        let is_believed = self.silent.is_none_or(|since| now.since(since) < BELIEVED_FOR);
        let as_thought = |state| match state {
            HostState::Live if !is_believed => HostState::LastSeen,
            HostState::Live | HostState::LastSeen | HostState::Left => state,
        };
        self.hosts.iter().map(|(host, state)| (host.clone(), as_thought(*state))).collect()
    }
}

/// End of the last query of a representative; locked while one is in progress.
type LastQuery = Arc<tokio::sync::Mutex<Option<Moment>>>;

#[derive(Debug, Default)]
struct Domains {
    rows: BTreeMap<DomainName, Row>,
    queries: BTreeMap<DomainName, LastQuery>,
}

impl Domains {
    fn is_fresh(&self, domain: &DomainName, now: Moment) -> bool {
        let is_fresh = |row: &Row| row.silent.is_none() && now.since(row.asked) < FRESH_FOR;
        self.rows.get(domain).is_some_and(is_fresh)
    }

    fn take(&mut self, domain: DomainName, answer: Result<Value, Fault>, now: Moment) {
        match answer {
            Ok(answer) => {
                self.rows.insert(domain, Row { asked: now, silent: None, hosts: states(&answer) });
            }
            Err(fault) => {
                tracing::debug!(%domain, message = %fault.message, "its hosts are as they were");
                if let Some(row) = self.rows.get_mut(&domain) {
                    row.silent.get_or_insert(now);
                }
            }
        }
    }
}

type Cache = Arc<Mutex<Domains>>;

/// List of hosts for service discovery, from representatives.
pub(crate) fn hosts(others: RemoteDomains) -> Hosts {
    let cache = Cache::default();
    Hosts::new(move |found| {
        let (others, cache) = (others.clone(), Arc::clone(&cache));
        let domains: Vec<DomainName> = found.into_iter().map(|found| found.record.domain).collect();
        let ask = move |domain: DomainName| {
            let others = others.clone();
            async move {
                let question = hop::question("domain.hosts", Vec::new(), ASKED_FOR, 1);
                others.ask(&domain, question, ASKED_FOR).await
            }
        };
        async move { read(&cache, domains, ask).await }
    })
}

/// The hosts of these domains; `ask` queries the representative of one.
async fn read<F>(
    cache: &Cache,
    domains: Vec<DomainName>,
    ask: impl Fn(DomainName) -> F + Clone + Send + 'static,
) -> Listed
where
    F: Future<Output = Result<Value, Fault>> + Send,
{
    // For a domain that has not answered by then, the last answer is used.
    let _ = tokio::time::timeout(DEADLINE, refresh(cache, &domains, ask)).await;
    let (mut cached, now) = (lock(cache), clock::now());
    // Domains that are gone are removed by the next reader of all domains.
    if domains.len() > 1 {
        cached.rows.retain(|domain, _| domains.contains(domain));
        cached.queries.retain(|domain, _| domains.contains(domain));
    }
    let listed = domains.into_iter().filter_map(|domain| {
        let hosts = cached.rows.get(&domain)?.hosts_at(now);
        Some((domain, hosts))
    });
    listed.collect()
}

async fn refresh<F>(
    cache: &Cache,
    domains: &[DomainName],
    ask: impl Fn(DomainName) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<Value, Fault>> + Send,
{
    let arrived = clock::now();
    let seats = Arc::new(Semaphore::new(ASKED_MAX));
    let mut asking = JoinSet::new();
    for domain in domains {
        let mut cached = lock(cache);
        if cached.is_fresh(domain, arrived) {
            continue;
        }
        let query = Arc::clone(cached.queries.entry(domain.clone()).or_default());
        let (cache, seats, ask, domain) =
            (Arc::clone(cache), Arc::clone(&seats), ask.clone(), domain.clone());
        asking.spawn(async move {
            let mut ended = query.lock().await;
            // The query of another reader has ended meanwhile.
            if ended.is_some_and(|ended| ended >= arrived) {
                return;
            }
            // The semaphore is never closed.
            let _seat = seats.acquire().await;
            let answer = ask(domain.clone()).await;
            let now = clock::now();
            lock(&cache).take(domain, answer, now);
            *ended = Some(now);
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

fn lock(cache: &Cache) -> MutexGuard<'_, Domains> {
    // Entries are inserted complete.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn hosts_of_a_representative_that_does_not_answer_are_not_live_for_ever() {
        let at = |secs| Moment(Duration::from_secs(secs));
        let hosts = vec![(host("n1"), HostState::Live), (host("n2"), HostState::Left)];
        let row = |silent| Row { asked: at(100), silent, hosts: hosts.clone() };
        assert_eq!(row(None).hosts_at(at(900)), hosts, "it was not asked since, or answered");
        assert_eq!(row(Some(at(160))).hosts_at(at(174)), hosts, "another may take over");
        let late = [(host("n1"), HostState::LastSeen), (host("n2"), HostState::Left)];
        assert_eq!(row(Some(at(160))).hosts_at(at(175)), late);
    }

    /// Queries of a representative that answer when the gate has permits.
    struct GatedQueries {
        count: AtomicUsize,
        gate: Semaphore,
        answer: Result<Value, Fault>,
    }

    impl GatedQueries {
        fn new(answer: Result<Value, Fault>) -> Arc<GatedQueries> {
            Arc::new(GatedQueries { count: AtomicUsize::new(0), gate: Semaphore::new(0), answer })
        }

        async fn read(self: Arc<Self>, cache: Cache) -> Listed {
            let ask = move |_| {
                let asked = Arc::clone(&self);
                async move {
                    asked.count.fetch_add(1, Ordering::Relaxed);
                    let _permit = asked.gate.acquire().await;
                    asked.answer.clone()
                }
            };
            read(&cache, vec![DomainName::try_from("UT-ICL").unwrap()], ask).await
        }

        /// Lets every reader that has started wait, then answers.
        async fn open(&self) {
            pause().await;
            self.gate.add_permits(9);
        }
    }

    /// Lets the other tasks of this thread run.
    async fn pause() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn concurrent_readers_share_one_query_of_a_representative() {
        let rows = [Value::object([("host", Value::from("n1")), ("state", "live".into())])];
        let answer = Value::object([("hosts", Value::array(rows))]);
        for (answer, listed) in [(Ok(answer), 1), (Err(Fault::not_found("no such domain")), 0)] {
            let (cache, asked) = (Cache::default(), GatedQueries::new(answer));
            let read = || Arc::clone(&asked).read(Arc::clone(&cache));
            let (one, two, three, ()) = tokio::join!(read(), read(), read(), asked.open());
            assert_eq!([one.len(), two.len(), three.len()], [listed; 3]);
            assert_eq!(asked.count.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn a_reader_that_goes_away_leaves_the_query_to_the_next() {
        let rows = [Value::object([("host", Value::from("n1")), ("state", "live".into())])];
        let (cache, asked) =
            (Cache::default(), GatedQueries::new(Ok(Value::object([("hosts", Value::array(rows))]))));
        let first = tokio::spawn(Arc::clone(&asked).read(Arc::clone(&cache)));
        pause().await;
        let next = tokio::spawn(Arc::clone(&asked).read(Arc::clone(&cache)));
        pause().await;
        first.abort();
        asked.open().await;
        assert_eq!(next.await.unwrap().len(), 1);
        assert_eq!(asked.count.load(Ordering::Relaxed), 2);
    }
}
