//! Index of the ended jobs of all domains, which a directory reads from the representatives: a search finds the jobs of domains
//! that do not answer, too.
//!
//! Rules: only domains that are registered now are asked, a few at a time; pages are stored in
//! their order, each whole or not at all; a domain that cannot be asked holds up no other. Not here: the database (`call_store::job_index`), how a domain is asked (the
//! composing program).

use crate::config::JobsConfig;
use crate::handle::Handle;
use crate::registry::State;
use call_store::answer::Error;
use call_store::job_index::{IndexLimit, JobIndex};
use rpc::dispatch::method::{self, Registry};
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::api::job_index::{DirectoryJobs, DirectoryJobsParams, IndexPosition, JobIndexPage, JobIndexParams};
use wire::id::DomainName;
use wire::report::calls::POSITIONS_MAX;

/// Shortest time between two rounds: how far the index is behind.
const ROUND_MIN: Duration = Duration::from_secs(10);

/// What a domain adds to that, so that ten thousand are a hundred questions a second.
const ROUND_OF_DOMAIN: Duration = Duration::from_millis(10);

/// Most domains that are asked at a time.
const AT_ONCE: usize = 32;

/// Time of a domain in a round, and as long for its last answer; it goes on in the next round.
const TURN: Duration = Duration::from_secs(10);

/// Name of the database, in a folder of its own.
const FILE: &str = "jobs/index.db";

/// Answer of a domain.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Result<JobIndexPage, Fault>> + Send + 'a>>;

/// The domains that can be asked.
pub trait Domains: Send + Sync {
    /// Asks the representative of a domain for what follows.
    fn page<'a>(&'a self, domain: &'a DomainName, params: &'a JobIndexParams) -> Asked<'a>;
}

/// Index of a directory; cheap to clone.
#[derive(Clone)]
pub struct Indexing(Arc<Shared>);

struct Shared {
    index: JobIndex,
    table: Handle,
    domains: Box<dyn Domains>,
    pages: AtomicU64,
    deleted: AtomicU64,
    unanswered: AtomicU64,
    /// Why the last page could not be stored.
    problem: Mutex<Option<String>>,
}

impl Indexing {
    /// An index in the folder of a directory, of the domains of its table. Nothing is opened before there is a page.
    #[must_use]
    pub fn new(folder: &Path, config: JobsConfig, table: Handle, domains: Box<dyn Domains>) -> Indexing {
        let limit = IndexLimit { bytes: config.bytes, age: config.age };
        Indexing(Arc::new(Shared {
            index: JobIndex::new(&folder.join(FILE), limit),
            table,
            domains,
            pages: AtomicU64::default(),
            deleted: AtomicU64::default(),
            unanswered: AtomicU64::default(),
            problem: Mutex::default(),
        }))
    }

    /// Reads what follows in each domain, again and again, until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        loop {
            let started = Instant::now();
            let domains = tokio::select! {
                // A page is stored whole or not at all.
                () = shutdown.cancelled() => return,
                domains = self.round() => domains,
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep_until(started + ROUND_MIN.max(ROUND_OF_DOMAIN * domains)) => {}
            }
        }
    }

    /// Reads what follows in each domain that is registered now; returns how many these are.
    async fn round(&self) -> u32 {
        let live = self.0.table.domains_where(|known| known.state == State::Live, usize::MAX);
        let mut waiting: Vec<DomainName> = live.into_iter().map(|found| found.record.domain).collect();
        let domains = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(domain) = waiting.pop()
            {
                let own = self.clone();
                asked.spawn(async move { own.read(&domain).await });
            }
            if asked.join_next().await.is_none() {
                return domains;
            }
        }
    }

    /// Reads what follows in a domain.
    async fn read(&self, domain: &DomainName) {
        let Err(error) = self.pages(domain, Instant::now() + TURN).await else { return };
        if matches!(error, Error::Damaged) {
            // The fault of the domain alone.
            self.0.unanswered.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%domain, %error, "jobs of the domain are not in the index");
        } else if self.lock_problem().replace(error.to_string()).is_none() {
            tracing::error!(%error, "the index of jobs cannot be stored");
        }
    }

    /// Stores what follows in a domain, page by page, until `end`; the next page is asked for while one is stored.
    async fn pages(&self, domain: &DomainName, end: Instant) -> Result<(), Error> {
        let mut reached = self.0.index.reached(domain).await?;
        let mut next = self.ask(domain, &reached).await;
        while let Some(page) = next {
            let is_new = !reached.contains(&page.reached);
            reached.retain(|at| at.store != page.reached.store);
            reached.truncate(POSITIONS_MAX - 1);
            reached.push(page.reached.clone());
            // A page that reaches no further would follow for ever.
            let is_more = is_new && !page.is_end && Instant::now() < end;
            let following = async { if is_more { self.ask(domain, &reached).await } else { None } };
            let (stored, following) = tokio::join!(self.store(domain, &page), following);
            stored?;
            next = following;
        }
        Ok(())
    }

    async fn ask(&self, domain: &DomainName, reached: &[IndexPosition]) -> Option<JobIndexPage> {
        let params = JobIndexParams { reached: reached.to_vec() };
        match self.0.domains.page(domain, &params).await {
            Ok(page) => Some(page),
            Err(fault) => {
                self.0.unanswered.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%domain, %fault, "the domain does not state its jobs");
                None
            }
        }
    }

    async fn store(&self, domain: &DomainName, page: &JobIndexPage) -> Result<(), Error> {
        let deleted = self.0.index.take(domain, page, self.0.table.calendar()).await?;
        self.0.deleted.fetch_add(deleted, Ordering::Relaxed);
        self.0.pages.fetch_add(1, Ordering::Relaxed);
        if self.lock_problem().take().is_some() {
            tracing::info!("the index of jobs is stored again");
        }
        Ok(())
    }

    /// Searches the index.
    ///
    /// # Errors
    /// If it cannot be read, or if the search is not a valid one.
    pub async fn search(&self, params: &DirectoryJobsParams) -> Result<DirectoryJobs, Fault> {
        let found = self.0.index.search(params).await;
        found.map_err(|error| match matches!(error, Error::TooMuch | Error::Cursor) {
            true => Fault::invalid_params(error.to_string()),
            false => Fault::unavailable(format!("the index of jobs cannot be read: {error}")),
        })
    }

    /// Problems, as sentences.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let problem = self.lock_problem();
        problem.iter().map(|problem| format!("the index of jobs cannot be stored: {problem}")).collect()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        vec![
            ("pages_total", of(&self.0.pages)),
            ("deleted_total", of(&self.0.deleted)),
            ("unanswered_total", of(&self.0.unanswered)),
        ]
    }

    fn lock_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.0.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds `directory.jobs`; without an index it says so.
///
/// # Errors
/// If a method of the same name is already registered.
pub fn add(registry: &mut Registry, indexing: Option<Indexing>) -> Result<(), method::Error> {
    registry.add(typed::method(move |_, params: DirectoryJobsParams| {
        let indexing = indexing.clone();
        async move {
            let indexing = indexing.ok_or_else(|| {
                Fault::not_found(
                    "this directory has no index of jobs ([directory.jobs] of its configuration)",
                )
            })?;
            indexing.search(&params).await
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::{Clock as _, SystemClock};
    use crate::testing::{part, statement};
    use std::collections::BTreeMap;
    use wire::api::UnixTime;
    use wire::api::jobs::Job;

    /// Domains, each with so many jobs; one that has none does not answer, and one with [`STUCK`] states always that more follows.
    struct MadeUp(BTreeMap<&'static str, u64>);

    /// Jobs of a page.
    const PAGE: u64 = 10;

    const STUCK: u64 = 13;

    impl Domains for MadeUp {
        fn page<'a>(&'a self, domain: &'a DomainName, params: &'a JobIndexParams) -> Asked<'a> {
            Box::pin(async move {
                let jobs = self.0.get(domain.as_str()).copied().ok_or_else(|| Fault::unavailable("away"))?;
                let from = params.reached.first().map_or(0, |reached| reached.key);
                let key = (from + PAGE).min(jobs);
                let ended = Some(UnixTime(SystemClock.calendar()));
                let job = |number: u64| Job { id: format!("slurm:{number}"), ended, ..Job::default() };
                let listed: Vec<Job> = (from + 1..=key).map(job).collect();
                let reached = IndexPosition { store: "00".to_owned(), key };
                Ok(JobIndexPage::new(reached, key == jobs && jobs != STUCK, &listed))
            })
        }
    }

    fn indexing(folder: &Path, jobs: &[(&'static str, u64)]) -> Indexing {
        let table = Handle::new(crate::registry::Registry::new(9), SystemClock);
        for (peer, name) in [(1, "a"), (2, "b"), (3, "c")] {
            let opened = statement(name, peer, peer.into(), 1, part(&["n1"]));
            table.register(opened.record().clone()).expect("accepted");
        }
        let domains = Box::new(MadeUp(jobs.iter().copied().collect()));
        Indexing::new(folder, JobsConfig::default(), table, domains)
    }

    async fn counts(indexing: &Indexing) -> Vec<(String, u64)> {
        let found = indexing.search(&DirectoryJobsParams::default()).await.expect("an answer");
        found.domains.into_iter().map(|one| (one.domain, one.jobs)).collect()
    }

    #[tokio::test]
    async fn a_round_reads_what_follows_in_each_domain_that_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = indexing(folder.path(), &[("a", 35), ("c", 10), ("gone", 9)]);
        assert_eq!(counts(&first).await, []);
        first.round().await;
        assert_eq!(counts(&first).await, [("a".to_owned(), 35), ("c".to_owned(), 10)]);
        assert_eq!(first.counters()[0], ("pages_total", 5));
        assert_eq!(first.counters()[2], ("unanswered_total", 1));
        // The next run goes on, and one without anything new asks once.
        let next = indexing(folder.path(), &[("a", 45), ("b", 5), ("c", 10)]);
        next.round().await;
        let expected = [("a".to_owned(), 45), ("b".to_owned(), 5), ("c".to_owned(), 10)];
        assert_eq!((counts(&next).await, next.counters()[0].1), (expected.to_vec(), 3));
        assert_eq!(next.health(), [""; 0]);
        let id = Some("slurm:17".to_owned());
        let found = next.search(&DirectoryJobsParams { id, ..DirectoryJobsParams::default() }).await;
        let found: Vec<String> = found.expect("an answer").jobs.into_iter().map(|job| job.domain).collect();
        assert_eq!(found, ["a"]);
    }

    #[tokio::test]
    async fn a_domain_that_states_for_ever_that_more_follows_ends_its_turn() {
        let folder = tempfile::tempdir().expect("a folder");
        let stuck = indexing(folder.path(), &[("a", STUCK), ("b", 5)]);
        stuck.round().await;
        assert_eq!(counts(&stuck).await, [("a".to_owned(), STUCK), ("b".to_owned(), 5)]);
        assert_eq!(stuck.counters()[0].1, 4);
    }

    #[tokio::test]
    async fn an_index_that_cannot_be_stored_is_shown_until_it_can() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("jobs"), "in the way").expect("written");
        let indexing = indexing(folder.path(), &[("a", 3)]);
        indexing.round().await;
        assert_eq!(indexing.health().len(), 1, "{:?}", indexing.health());
        std::fs::remove_file(folder.path().join("jobs")).expect("removed");
        indexing.round().await;
        assert_eq!((counts(&indexing).await, indexing.health().len()), (vec![("a".to_owned(), 3)], 0));
    }
}
