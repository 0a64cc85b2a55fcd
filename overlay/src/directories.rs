//! Client of the grid's directories: one question at a time.
//!
//! Rule: a daemon asks other daemons only; a directory reads its own table directly.
//! Not here: connections and their timeouts (`contacts`), the content of records (`registrar`), use of the
//! answers (`resolve::asker`).

use crate::contacts::{Contacts, Keep};
use crate::net::handle::AskError;
use crate::net::protocol::Protocol;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wire::address::Address;
use wire::id::PeerKey;
use wire::join::Directory;
use wire::replication::{Answer, QUESTION_LEN_MAX_BYTES, Question};

/// Why a directory did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory is not configured.
    #[error("{directory} is no directory of this grid; expected one that is configured")]
    NotConfigured {
        /// Key of the daemon that was asked.
        directory: PeerKey,
    },
    /// The question could not be sent, or was not answered.
    #[error("directory {0}")]
    Ask(#[from] AskError),
    /// The directory refused the question.
    #[error("directory {directory} refused: {reason}")]
    Refused {
        directory: PeerKey,
        /// The directory's message.
        reason: String,
    },
    /// The answer does not fit the question.
    #[error("directory {directory} answered {what}; is it of another version?")]
    Answer {
        directory: PeerKey,
        /// What was received.
        what: &'static str,
    },
    /// The question exceeds its maximum length.
    #[error("a question of {len_bytes} bytes to a directory; at most {QUESTION_LEN_MAX_BYTES} are allowed")]
    TooLong {
        /// Length of the encoded question.
        len_bytes: usize,
    },
}

/// The configured directories; cheap to share.
pub struct Directories {
    contacts: Arc<Contacts>,
    rows: BTreeMap<PeerKey, Vec<Address>>,
}

impl fmt::Debug for Directories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.rows.keys()).finish()
    }
}

impl Directories {
    /// The configured directories, each once by its key, without the daemon `me` itself.
    #[must_use]
    pub fn new(me: PeerKey, contacts: Arc<Contacts>, configured: Vec<Directory>) -> Arc<Directories> {
        let mut rows: BTreeMap<PeerKey, Vec<Address>> = BTreeMap::new();
        for directory in configured.into_iter().filter(|directory| directory.key != me) {
            // A directory in both the token and the configuration: either address will do.
            rows.entry(directory.key).or_default().extend(directory.addresses);
        }
        Arc::new(Directories { contacts, rows })
    }

    #[must_use]
    pub fn keys(&self) -> Vec<PeerKey> {
        self.rows.keys().copied().collect()
    }

    /// Ask `directory`, dialing it if necessary, for at most `deadline`.
    ///
    /// # Errors
    /// As [`Contacts::ask`]; also if the directory is not configured.
    pub async fn ask(
        &self,
        directory: PeerKey,
        question: Question,
        keep: Keep,
        deadline: Duration,
    ) -> Result<Answer, Error> {
        let (target, bytes) = (self.target(directory)?, written(&question)?);
        decode_answer(
            directory,
            &self.contacts.ask(target, Protocol::Directory, &bytes, keep, deadline).await?,
        )
    }

    /// Ask `directory` through the query interface, as a client would, for at most `deadline`.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn query(
        &self,
        directory: PeerKey,
        question: &[u8],
        deadline: Duration,
    ) -> Result<Vec<u8>, Error> {
        Ok(self
            .contacts
            .ask(self.target(directory)?, Protocol::Query, question, Keep::ForMore, deadline)
            .await?)
    }

    /// The connected directories.
    pub fn connected(&self) -> impl Iterator<Item = PeerKey> {
        self.rows.keys().copied().filter(|&directory| self.contacts.is_ready(directory))
    }

    /// Whether the connection to `directory` is held; see [`Directories::hold`].
    #[must_use]
    pub fn is_held(&self, directory: PeerKey) -> bool {
        self.contacts.is_held(directory)
    }

    /// Wait until `directory` is connected, dialing it if necessary; forever if it is not configured.
    pub async fn reach(&self, directory: PeerKey) {
        match self.rows.get(&directory) {
            Some(addresses) => self.contacts.reach(directory, addresses).await,
            None => std::future::pending().await,
        }
    }

    /// Dial all directories and hold the connections, as a representative does, as long as this is called
    /// repeatedly.
    pub async fn hold(&self) {
        for (&directory, addresses) in &self.rows {
            self.contacts.hold(directory, addresses).await;
        }
    }

    fn target(&self, directory: PeerKey) -> Result<(PeerKey, &[Address]), Error> {
        let addresses = self.rows.get(&directory).ok_or(Error::NotConfigured { directory })?;
        Ok((directory, addresses.as_slice()))
    }
}

fn written(question: &Question) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_stdvec(question).expect("a question has no part that cannot be written");
    if bytes.len() > QUESTION_LEN_MAX_BYTES {
        return Err(Error::TooLong { len_bytes: bytes.len() });
    }
    Ok(bytes)
}

fn decode_answer(directory: PeerKey, answer: &[u8]) -> Result<Answer, Error> {
    let unreadable = Error::Answer { directory, what: "what cannot be read" };
    let answer = postcard::from_bytes(answer).map_err(|_| unreadable)?;
    if let Answer::Refused(reason) = answer { Err(Error::Refused { directory, reason }) } else { Ok(answer) }
}
