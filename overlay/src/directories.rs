//! The grid's directories as a daemon talks to them: asked one question at a time, on connections held while they
//! are needed.
//!
//! Rule: to ask is to connect; a connection that nobody needs is given up after [`IDLE`], so that a directory has
//! those of representatives and of whoever asked lately, not of every sensor of a grid. A daemon that is a
//! directory itself asks its own table.
//! Not here: what is stated (`registrar`), what is done with answers (`resolve::asker`).

use crate::clock;
use crate::net::handle::{AskError, Handle};
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use wire::id::PeerKey;
use wire::join::Directory;
use wire::replication::{Answer, QUESTION_LEN_MAX_BYTES, Question};
use wire::time::Moment;

/// A connection to a directory that was not asked for so long is given up, unless it is to be held.
pub const IDLE: Duration = Duration::from_secs(60);

/// Most questions at a time to one directory: below what one peer may have open there.
const ASKED_MAX: usize = 32;

/// Time between two looks whether a dialled directory is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A directory in this process.
pub trait OwnTable: Send + Sync {
    /// The answer to a question of this daemon itself.
    fn answer(&self, question: Question) -> Answer;
}

/// Why a directory did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is not configured.
    #[error("{directory} is no directory of this grid; expected one that is configured")]
    NotConfigured {
        /// Who.
        directory: PeerKey,
    },
    /// It could not be asked.
    #[error("directory {0}")]
    Ask(#[from] AskError),
    /// It does not do that.
    #[error("directory {directory} refused: {reason}")]
    Refused {
        /// Who.
        directory: PeerKey,
        /// In its words.
        reason: String,
    },
    /// What came is no answer to what was asked.
    #[error("directory {directory} answered {what}; is it of another version?")]
    Answer {
        /// Who.
        directory: PeerKey,
        /// What came.
        what: &'static str,
    },
    /// The question is longer than one may be.
    #[error("a question of {len_bytes} bytes to a directory; at most {QUESTION_LEN_MAX_BYTES} are allowed")]
    TooLong {
        /// Its length.
        len_bytes: usize,
    },
}

struct Row {
    directory: Directory,
    asking: Arc<Semaphore>,
    state: Mutex<Use>,
}

/// Whether a connection is wanted.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    dialled: bool,
    asked: Moment,
}

/// All of them; cheap to share.
pub struct Directories {
    net: Handle,
    rows: BTreeMap<PeerKey, Row>,
    own: Option<Arc<dyn OwnTable>>,
}

impl fmt::Debug for Directories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.rows.keys()).finish()
    }
}

impl Directories {
    /// Those configured, each once by its key; `own` where this daemon is one of them.
    #[must_use]
    pub fn new(net: Handle, configured: Vec<Directory>, own: Option<Arc<dyn OwnTable>>) -> Arc<Directories> {
        let mut rows: BTreeMap<PeerKey, Row> = BTreeMap::new();
        for directory in configured {
            // Named twice, by a token and by the configuration: either address will do.
            if let Some(row) = rows.get_mut(&directory.key) {
                row.directory.addresses.extend(directory.addresses);
                continue;
            }
            let (asking, state) = (Arc::new(Semaphore::new(ASKED_MAX)), Mutex::new(Use::default()));
            rows.insert(directory.key, Row { directory, asking, state });
        }
        Arc::new(Directories { net, rows, own })
    }

    /// Their keys.
    #[must_use]
    pub fn keys(&self) -> Vec<PeerKey> {
        self.rows.keys().copied().collect()
    }

    /// Ask `directory`, dialling it if need be; at most `deadline`.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn ask(
        &self,
        directory: PeerKey,
        question: Question,
        deadline: Duration,
    ) -> Result<Answer, Error> {
        let row = self.rows.get(&directory).ok_or(Error::NotConfigured { directory })?;
        if directory == self.net.me()
            && let Some(own) = &self.own
        {
            return told(directory, own.answer(question));
        }
        let bytes = postcard::to_stdvec(&question).expect("a question has no part that cannot be written");
        if bytes.len() > QUESTION_LEN_MAX_BYTES {
            return Err(Error::TooLong { len_bytes: bytes.len() });
        }
        let started = clock::now();
        let asking = async {
            // Never closed.
            let _seat = row.asking.acquire().await;
            self.connect(row).await;
            let left = deadline.saturating_sub(clock::now().since(started));
            self.net.ask(directory, Protocol::Directory, &bytes, left).await
        };
        let answer = match tokio::time::timeout(deadline, asking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(AskError::TimedOut { peer: directory, after: deadline }.into()),
        };
        let unreadable = Error::Answer { directory, what: "what cannot be read" };
        told(directory, postcard::from_bytes(&answer).map_err(|_| unreadable)?)
    }

    /// Wait until questions to `directory` can be asked, dialling it if need be; for ever if it is not configured.
    pub async fn reach(&self, directory: PeerKey) {
        match self.rows.get(&directory) {
            Some(_) if directory == self.net.me() => {}
            Some(row) => self.connect(row).await,
            None => std::future::pending().await,
        }
    }

    /// Dial all of them and stay connected, as a representative does; false: no longer than they are asked.
    /// To be called again and again: it is here that idle connections are given up.
    pub async fn hold(&self, all: bool) {
        let now = clock::now();
        for (&key, row) in self.rows.iter().filter(|(key, _)| **key != self.net.me()) {
            if all {
                lock(&row.state).asked = now;
                self.dial(row).await;
                continue;
            }
            let used = *lock(&row.state);
            if used.dialled && now.since(used.asked) >= IDLE {
                self.give_up(key, row).await;
            }
        }
    }

    async fn give_up(&self, key: PeerKey, row: &Row) {
        lock(&row.state).dialled = false;
        self.net.forget(Target::Peer(key)).await;
        // One that is a member too may be needed for more than this.
        if self.net.principal(key).is_some_and(|principal| principal.domain.is_none()) {
            self.net.close(key).await;
        }
    }

    /// Wait until it is there.
    async fn connect(&self, row: &Row) {
        lock(&row.state).asked = clock::now();
        let key = row.directory.key;
        self.dial(row).await;
        while !self.net.is_ready(key) {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    async fn dial(&self, row: &Row) {
        lock(&row.state).dialled = true;
        let key = row.directory.key;
        // Said again while it is not there: one that is a member too may have been forgotten as such meanwhile.
        if !self.net.is_ready(key) {
            self.net.keep(Target::Peer(key), row.directory.addresses.clone()).await;
        }
    }
}

fn lock(state: &Mutex<Use>) -> MutexGuard<'_, Use> {
    // Two values, each whole.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn told(directory: PeerKey, answer: Answer) -> Result<Answer, Error> {
    if let Answer::Refused(reason) = answer { Err(Error::Refused { directory, reason }) } else { Ok(answer) }
}
