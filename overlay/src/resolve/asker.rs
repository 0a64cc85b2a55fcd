//! Look-up of domains: one [`Resolver`] for all callers of a daemon, which queries the directories.
//!
//! ```text
//! resolve(domain, deadline) ─▶ Resolver ─▶ Ask ─▶ Directories
//!                      ─▶ records, through the authorizer ─▶ Resolver ─▶ all callers that wait
//! ```
//! Rules: a record counts only if the authorizer accepts it. Before a directory is asked for a domain, it is
//! asked for its list of admitted domains with their roots, and again if its answer cannot be verified with
//! these, or if they are old. A sensor that holds a connection to a directory, as a representative and its
//! standbys do, requests the list each minute and looks up every domain in it. A sensor that connects only
//! for a question requests no more than it needs, because there are hundreds of thousands of them. The
//! answers are stored on disk, and a file that cannot be read is moved aside.
//! Not here: which answer counts (`resolve`), connections (`directories`).

use super::stored::{FILE_NAME, LEN_MAX_BYTES};
use super::{Outcome, Output, Reply, Resolver, Resolving, VerifiedRecord};
use crate::authenticator::Authenticator;
use crate::clock;
use crate::contacts::Keep;
use crate::dice::Dice;
use crate::directories::Directories;
use crate::identity::refused::Refused;
use crate::identity::trust::DOMAINS_HEARD_MAX;
use crate::whole_file;
use daemon::state_file;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use wire::credential::Statement;
use wire::id::{DomainName, PeerKey};
use wire::registration::Record;
use wire::replication::{Answer, Question, Resolved, ResolvedStatement};
use wire::time::Moment;

/// Most callers that wait at a time; more are answered from memory.
pub const WAITING_MAX: usize = 10_000;

/// Interval at which the answers are stored, if they changed.
pub const STORE_INTERVAL: Duration = Duration::from_secs(30);

/// How long a directory's list of admitted domains is used without a new request, give or take
/// [`ADMITTED_JITTER_PERCENT`], if the connection to the directory is held.
pub const ADMITTED_FOR: Duration = Duration::from_secs(60);

/// Jitter of that interval between sensors: a list is tens of kilobytes, and sensors that a directory's
/// restart synchronized no longer request it in the same second after a few minutes.
pub const ADMITTED_JITTER_PERCENT: u32 = 20;

/// The same without a held connection. The list of a large grid is tens of kilobytes: if every sensor that
/// gets a question each minute requested it each minute, the directories would send little else.
pub const ASKED_FOR: Duration = Duration::from_secs(3600);

/// Interval of checks whether to request the list of a connected directory: soon after it connects, so that
/// the domains that it admits are admitted here.
const HEAR_INTERVAL: Duration = Duration::from_secs(1);

/// Domains without a look-up so far that are looked up per check, so that they are known when every directory
/// is dead: when a thousand domains start at once, three thousand sensors do so, each asking two directories
/// for each name.
pub const LEARNED_EACH_LOOK: usize = 2;

/// With at most this many domains, every sensor looks them up, not only those that hold connections.
pub const LEARNED_BY_ALL_MAX: usize = 32;

/// Timeout of a directory's answer.
const DEADLINE: Duration = Duration::from_secs(3);

/// Longest sleep between two checks of what is due.
const SLEEP_MAX: Duration = Duration::from_secs(1);

struct Shared {
    state: Mutex<State>,
    woken: Notify,
}

struct State {
    resolver: Resolver,
    waiting: BTreeMap<DomainName, Vec<oneshot::Sender<Outcome>>>,
    waiting_total: usize,
}

/// Handle for look-ups of domains; cheap to clone.
#[derive(Clone)]
pub struct Asker(Arc<Shared>);

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").field("waiting", &self.lock().waiting_total).finish_non_exhaustive()
    }
}

impl Asker {
    /// Look up `domain`'s representative. After `deadline`, returns what is known.
    pub async fn resolve(&self, domain: &DomainName, deadline: Duration) -> Outcome {
        let answer = {
            let mut state = self.lock();
            let now = clock::now();
            match state.resolver.resolve(domain, now) {
                Resolving::Now(outcome) => return outcome,
                Resolving::Asked if state.waiting_total >= WAITING_MAX => {
                    return state.resolver.last_known(domain, now);
                }
                Resolving::Asked => {}
            }
            let (waiter, answer) = oneshot::channel();
            state.waiting_total += 1;
            state.waiting.entry(domain.clone()).or_default().push(waiter);
            answer
        };
        self.0.woken.notify_one();
        match tokio::time::timeout(deadline, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => self.last_known(domain),
        }
    }

    /// As [`Asker::resolve`], after the last answer turned out to be useless: asks the directories even if
    /// they answered lately.
    pub async fn resolve_again(&self, domain: &DomainName, deadline: Duration) -> Outcome {
        self.lock().resolver.doubt(domain);
        self.resolve(domain, deadline).await
    }

    /// Store this daemon's own record, which it published as the representative of its domain; valid for
    /// `lease`.
    pub fn take_own(&self, record: Record, statement: Statement, lease: Duration) {
        let own = VerifiedRecord { record, statement, age: Duration::ZERO, remaining: lease };
        self.lock().resolver.handle_own(own, clock::now());
    }

    /// What is stored about `domain`, without asking a directory.
    #[must_use]
    pub fn last_known(&self, domain: &DomainName) -> Outcome {
        self.lock().resolver.last_known(domain, clock::now())
    }

    /// Every stored domain, by name.
    #[must_use]
    pub fn known(&self) -> Vec<DomainName> {
        self.lock().resolver.known().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The resolver is consistent between its methods, and none of them panics half way.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The questions to send now, and how long until the next check. Sends finished look-ups to their
    /// callers.
    fn poll(&self) -> (Vec<(PeerKey, DomainName)>, Duration) {
        let now = clock::now();
        let mut state = self.lock();
        state.resolver.handle_timeout(now);
        let mut asks = Vec::new();
        while let Some(output) = state.resolver.poll_output() {
            match output {
                Output::Ask { directory, domain } => asks.push((directory, domain)),
                Output::Found(domain, outcome) => {
                    let waiting = state.waiting.remove(&domain).unwrap_or_default();
                    state.waiting_total -= waiting.len();
                    for waiter in waiting {
                        // The caller's deadline may have passed.
                        let _ = waiter.send(outcome.clone());
                    }
                }
            }
        }
        let due = state.resolver.poll_timeout().map(|at| at.since(now));
        (asks, due.unwrap_or(SLEEP_MAX).min(SLEEP_MAX))
    }
}

/// The task behind every [`Asker`].
#[derive(Debug)]
pub struct Asking {
    asker: Asker,
    parts: Arc<Parts>,
    path: PathBuf,
    stored: u64,
}

#[derive(Debug)]
struct Parts {
    gate: Arc<Authenticator>,
    directories: Arc<Directories>,
    /// When each directory last sent its list of admitted domains. The lock is held during a request, so that
    /// there is only one at a time.
    heard: BTreeMap<PeerKey, tokio::sync::Mutex<Option<Moment>>>,
    /// This sensor's interval of requests for the list of a directory with a held connection.
    hears_each: Duration,
}

impl Asking {
    /// Read what was stored in the folder `state`; `seed` decides which directory is asked first.
    ///
    /// # Errors
    /// If the system refuses to read the file or to move a damaged one aside.
    pub fn open(
        state: &Path,
        gate: Arc<Authenticator>,
        directories: Arc<Directories>,
        seed: u64,
    ) -> io::Result<(Asking, Asker)> {
        let path = state.join(FILE_NAME);
        let mut resolver = Resolver::new(directories.keys(), seed);
        let read = state_file::read(&path, LEN_MAX_BYTES as u64).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
        })?;
        if let Some(bytes) = read {
            match resolver.take_back(&bytes, clock::now(), clock::calendar()) {
                Ok(domains) => tracing::info!(domains, "remembered as last seen"),
                Err(error) => {
                    let aside = path.with_extension("unreadable");
                    fs::rename(&path, &aside)?;
                    tracing::error!(%error, aside = %aside.display(), "no domain is remembered");
                }
            }
        }
        let stored = resolver.revision();
        let state = State { resolver, waiting: BTreeMap::new(), waiting_total: 0 };
        let asker = Asker(Arc::new(Shared { state: Mutex::new(state), woken: Notify::new() }));
        let heard = directories.keys().into_iter().map(|key| (key, tokio::sync::Mutex::new(None))).collect();
        let hears_each = hears_each(seed);
        let parts = Arc::new(Parts { gate, directories, heard, hears_each });
        Ok((Asking { asker: asker.clone(), parts, path, stored }, asker))
    }

    /// Look up until `shutdown`, then store.
    ///
    /// # Errors
    /// If the answers cannot be stored at the end; an earlier failure is logged, and storing is retried.
    pub async fn run(mut self, shutdown: CancellationToken) -> io::Result<()> {
        let mut storing = tokio::time::interval(STORE_INTERVAL);
        let mut hearing = tokio::time::interval(HEAR_INTERVAL);
        hearing.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut asking, mut heard) = (JoinSet::new(), JoinSet::new());
        let mut unlearned = VecDeque::new();
        loop {
            let (asks, sleep) = self.asker.poll();
            for (directory, domain) in asks {
                let parts = Arc::clone(&self.parts);
                asking.spawn(async move {
                    // The timeout includes the wait for another request to a dead directory.
                    let reply = tokio::time::timeout(DEADLINE, parts.ask(directory, &domain)).await;
                    (directory, domain, reply.unwrap_or(Reply::Nothing))
                });
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.asker.0.woken.notified() => {}
                Some(Ok((directory, domain, reply))) = asking.join_next() => {
                    self.asker.lock().resolver.handle_reply(directory, &domain, reply, clock::now());
                }
                Some(listed) = heard.join_next() => {
                    // A task that failed has received no list.
                    let domains: Vec<DomainName> = listed.ok().and_then(Result::ok).unwrap_or_default();
                    let state = self.asker.lock();
                    unlearned.extend(domains.into_iter().filter(|domain| !state.resolver.knows(domain)));
                    unlearned.truncate(DOMAINS_HEARD_MAX);
                }
                _ = hearing.tick(), if heard.is_empty() => {
                    for directory in self.parts.directories.connected() {
                        let parts = Arc::clone(&self.parts);
                        heard.spawn(async move { parts.hear_in_passing(directory).await });
                    }
                    let mut state = self.asker.lock();
                    for domain in unlearned.drain(..LEARNED_EACH_LOOK.min(unlearned.len())) {
                        // The answer is stored by the resolver.
                        let _ = state.resolver.resolve(&domain, clock::now());
                    }
                }
                () = tokio::time::sleep(sleep) => {}
                _ = storing.tick() => {
                    if let Err(error) = self.store().await {
                        tracing::warn!(%error, "what is known of domains could not be stored; it will be tried again");
                    }
                }
            }
        }
        self.store().await
    }

    async fn store(&mut self) -> io::Result<()> {
        let (revision, bytes) = {
            let state = self.asker.lock();
            let revision = state.resolver.revision();
            if revision == self.stored {
                return Ok(());
            }
            (revision, state.resolver.to_bytes(clock::now(), clock::calendar()))
        };
        let bytes = bytes.map_err(io::Error::other)?;
        let path = self.path.clone();
        // Writing waits for the disk, which must not block this thread.
        let written = tokio::task::spawn_blocking(move || whole_file::replace(&path, &bytes)).await;
        written.map_err(io::Error::other)??;
        self.stored = revision;
        Ok(())
    }
}

impl Parts {
    /// Ask `directory` for `domain`, and verify the answer.
    async fn ask(&self, directory: PeerKey, domain: &DomainName) -> Reply {
        if self.hear(directory, ASKED_FOR, Keep::ForMore).await.is_err() {
            return Reply::Nothing;
        }
        let question = Question::Resolve(domain.clone());
        let asked = self.directories.ask(directory, question, Keep::ForMore, DEADLINE).await;
        match asked {
            Ok(Answer::Resolved(Resolved::Known { primary, partial })) => {
                self.known(directory, *primary, partial).await
            }
            Ok(Answer::Resolved(Resolved::Left { number, age })) => Reply::Left { number, age },
            Ok(Answer::Resolved(Resolved::Unknown)) => Reply::Unknown,
            Ok(_) => Reply::Nothing,
            Err(error) => {
                tracing::debug!(%error, %domain, "not looked up there");
                Reply::Nothing
            }
        }
    }

    async fn known(
        &self,
        directory: PeerKey,
        primary: ResolvedStatement,
        partial: Vec<ResolvedStatement>,
    ) -> Reply {
        let mut opened = self.open(directory, &primary);
        // The domain may have been admitted, or its root changed, since the list was received.
        let is_old = |refused: &Refused| {
            matches!(
                refused,
                Refused::UnknownDomain { .. } | Refused::Root { .. } | Refused::RootDisputed { .. }
            )
        };
        if opened.as_ref().is_err_and(is_old)
            && self.hear(directory, Duration::from_secs(2), Keep::ForMore).await.is_ok()
        {
            opened = self.open(directory, &primary);
        }
        match opened {
            Ok(primary) => {
                let partial = partial.iter().filter_map(|stated| self.open(directory, stated).ok()).collect();
                Reply::Known { primary: Box::new(primary), partial }
            }
            Err(refused) => {
                // The audit log has the refusal once, and whose record it is.
                tracing::debug!(%directory, %refused, "rejected an answer of a directory");
                Reply::Nothing
            }
        }
    }

    fn open(&self, directory: PeerKey, stated: &ResolvedStatement) -> Result<VerifiedRecord, Refused> {
        let (record, _) = self.gate.open_statement(directory, &stated.statement)?;
        Ok(VerifiedRecord {
            record,
            statement: stated.statement.clone(),
            age: stated.age,
            remaining: stated.remaining,
        })
    }

    /// Request the list of a connected directory, if it is due. Returns the domains to look up.
    async fn hear_in_passing(&self, directory: PeerKey) -> Result<Vec<DomainName>, ()> {
        let is_held = self.directories.is_held(directory);
        let fresh = if is_held { self.hears_each } else { ASKED_FOR };
        let domains = self.hear(directory, fresh, Keep::AsItIs).await?;
        Ok(if is_held || domains.len() <= LEARNED_BY_ALL_MAX { domains } else { Vec::new() })
    }

    /// Request the list of domains that `directory` admits, unless the last one is newer than `fresh`;
    /// returns their names, or nothing if the list was not requested.
    async fn hear(&self, directory: PeerKey, fresh: Duration, keep: Keep) -> Result<Vec<DomainName>, ()> {
        let Some(heard) = self.heard.get(&directory) else { return Err(()) };
        let mut heard = heard.lock().await;
        if heard.is_some_and(|at| clock::now().since(at) < fresh) {
            return Ok(Vec::new());
        }
        let mut all = BTreeMap::new();
        let mut after = None;
        loop {
            let question = Question::Admitted { after: after.clone() };
            let asked = self.directories.ask(directory, question, keep, DEADLINE).await;
            let Ok(Answer::Admitted { domains, more }) = asked else {
                // While the directory is out of reach, its last list counts.
                return if heard.is_some() { Ok(Vec::new()) } else { Err(()) };
            };
            let last = domains.last().map(|(name, _)| name.clone());
            all.extend(domains);
            // Names must increase, so that the loop ends whatever the directory sends.
            if !more || last.is_none() || last <= after || all.len() > DOMAINS_HEARD_MAX {
                break;
            }
            after = last;
        }
        let names = all.keys().cloned().collect();
        if let Err(refused) = self.gate.decide(|gate| gate.trust().hear_only(directory, all)) {
            tracing::error!(%directory, %refused, "rejected the directory's list of admitted domains");
            return Err(());
        }
        *heard = Some(clock::now());
        Ok(names)
    }
}

/// How often the sensor with this seed requests the lists of directories with held connections.
#[must_use]
pub fn hears_each(seed: u64) -> Duration {
    Dice::new(seed).jittered(ADMITTED_FOR, ADMITTED_JITTER_PERCENT)
}
