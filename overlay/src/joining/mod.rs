//! Joining a domain and renewing the certificate: input and output around `identity::join`.
//!
//! ```text
//! visperf join ── dial ──▶ the issuer's daemon (service): token for certificate, stored in the state folder
//! renewal (in every daemon) ──▶ the same: certificate for a newer one, shown to peers from then on
//! ```
//!
//! Rule: an answer is on disk before it is reported or used, the revocation lists before the certificate.
//! File operations run on threads where they do not block a daemon's other tasks.
//! Not here: which hosts are admitted (`identity`), the connection to the issuer (`dial`).

mod dial;
pub mod renewal;
pub mod revocation_file;
pub mod service;

use crate::clock;
use crate::identity::join::{self, Membership};
use crate::identity::key::Key;
use crate::identity::key_file;
use crate::identity::member_files::{self, MEMBERSHIP};
use crate::identity::refused::Refused;
use crate::identity::trust::Readers;
use crate::net;
use dial::IssuerTarget;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Denial, Roles};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::{Admitted, Question, Reply, Token, TokenType};

/// An address of the issuer, and the result of the last attempt there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    pub address: Address,
    /// What happened, as a message.
    pub said: String,
}

/// Addresses that were tried, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllTried(pub Vec<Tried>);

impl fmt::Display for AllTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|tried| write!(f, "\n  {}: {}", tried.address, tried.said))
    }
}

/// Why a daemon could not join or renew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file in the state folder could not be used.
    #[error(transparent)]
    File(#[from] member_files::Error),
    /// The answer was not accepted, or the token has expired.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The overlay could not start.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// The host is a member of another domain.
    #[error(
        "this host is a member of domain {found}, not of {asked} with root {root}; to leave {found}, move {} away first",
        path.display()
    )]
    Elsewhere {
        /// The domain that it is a member of.
        found: DomainName,
        /// The domain to join.
        asked: DomainName,
        /// The root of the domain to join: two domains may have the same name.
        root: PeerKey,
        /// The file with its membership.
        path: PathBuf,
    },
    /// The token was made by this daemon.
    #[error(
        "this token was made by this very daemon, which is in domain {domain} already; type the line on the host that \
         is to join, or name another state folder"
    )]
    Own {
        /// The domain of this daemon.
        domain: DomainName,
    },
    /// The issuer's addresses are not known.
    #[error(
        "it is not known where the issuer of domain {domain} listens; make a token with `visperf token create --address \
         HOST:PORT`"
    )]
    NoAddress {
        /// The domain to join or to stay in.
        domain: DomainName,
    },
    /// The issuer did not answer.
    #[error("the issuer of domain {domain} was not reached within {} s:{tried}", waited.as_secs())]
    Unreachable {
        domain: DomainName,
        /// How long it was tried.
        waited: Duration,
        /// The addresses, and what happened there.
        tried: AllTried,
    },
    /// The issuer refused.
    #[error("the issuer of domain {domain} refused: {reason}")]
    NotAdmitted {
        domain: DomainName,
        /// The issuer's message.
        reason: String,
    },
}

/// Result of joining.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The membership, as it is stored.
    pub membership: Membership,
    pub certificate: Certificate,
    /// Whether the host had this very certificate before.
    pub is_known: bool,
}

/// A host that joins.
#[derive(Clone, Debug)]
pub struct Joiner {
    /// Its state folder, which stores its key and its membership.
    pub state: PathBuf,
    pub host: HostName,
    /// Requested roles, of those of the token; none means all of them.
    pub wanted: Roles,
    /// How long to try.
    pub deadline: Duration,
}

/// Join with a token: dial its issuer until it answers, verify the answer by the root in the token, and store
/// it. `progress` receives the result of an attempt, once for each new reason. Another request with the same
/// token and key returns the same certificate.
///
/// # Errors
/// Why the host did not join; nothing but its key was stored then, and the token is as valid as before unless
/// the issuer says otherwise.
pub async fn join(
    token: &Token,
    joiner: &Joiner,
    progress: &mut (dyn FnMut(&Tried) + Send),
) -> Result<Joined, Error> {
    let state = joiner.state.clone();
    let (domain, root) = (token.domain.clone(), token.root);
    let (key, held) = off(move || own(&state, &domain, root)).await?;
    if token.issuer == key.peer() {
        return Err(Error::Own { domain: token.domain.clone() });
    }
    let question = join::question(token, joiner.host.clone(), joiner.wanted, clock::calendar())?;
    let target = IssuerTarget {
        domain: token.domain.clone(),
        root: token.root,
        issuer: token.issuer,
        addresses: token.addresses.clone(),
    };
    let question = match token.token_type {
        TokenType::Join => Question::Join(question),
        TokenType::Replace => Question::Replace(question),
    };
    let reply = dial::ask(&key, &target, &question, joiner.deadline, progress).await?;
    let answer = admitted(reply, &token.domain)?;
    let (membership, denials) = join::accept(token, answer, key.peer(), clock::calendar())?;
    let denials = denials.all().cloned().collect();
    kept(joiner.state.clone(), held, membership, denials).await
}

/// Install a certificate that the holder of the root key handed over manually, and store it.
///
/// # Errors
/// If it is not for this daemon, or of another domain than the current one; nothing but the key was stored
/// then.
pub async fn install(state: &Path, given: Admitted) -> Result<Joined, Error> {
    let claimed = given.chain.certificate.unverified().map_err(Refused::from)?;
    let folder = state.to_owned();
    let (key, held) = off(move || own(&folder, &claimed.domain, claimed.root)).await?;
    let (membership, denials) = join::install(held.clone(), given, key.peer(), clock::calendar())?;
    kept(state.to_owned(), held, membership, denials).await
}

/// Load the daemon's key, and its membership if it has one, which must be of this domain.
fn own(state: &Path, domain: &DomainName, root: PeerKey) -> Result<(Key, Option<Membership>), Error> {
    let held = member_files::load_membership(state)?;
    if let Some(held) = &held {
        let certificate = held.certificate()?;
        if certificate.domain != *domain || certificate.root != root {
            let path = state.join(MEMBERSHIP);
            let (found, asked) = (certificate.domain, domain.clone());
            return Err(Error::Elsewhere { found, asked, root, path });
        }
    }
    Ok((key_file::load_or_create(state)?, held))
}

fn admitted(reply: Reply, domain: &DomainName) -> Result<Admitted, Error> {
    match reply {
        Reply::Admitted(admitted) => Ok(*admitted),
        Reply::Refused(reason) => Err(Error::NotAdmitted { domain: domain.clone(), reason }),
    }
}

async fn kept(
    state: PathBuf,
    held: Option<Membership>,
    membership: Membership,
    denials: Vec<Denial>,
) -> Result<Joined, Error> {
    let certificate = membership.certificate()?;
    let is_known = held.as_ref().is_some_and(|held| held.chain == membership.chain);
    off(move || {
        keep(&state, held.as_ref(), &membership, &denials)?;
        Ok(Joined { membership, certificate, is_known })
    })
    .await
}

/// Store both, the revocation lists first: a member without them would admit revoked peers.
fn keep(
    state: &Path,
    before: Option<&Membership>,
    membership: &Membership,
    denials: &[Denial],
) -> Result<(), Error> {
    let trust = membership.trust(Readers::Nobody)?;
    let (mut held, later) = member_files::load_denials(state, &trust)?;
    for denial in denials {
        match held.take(denial, &trust) {
            // The stored list is newer: the issuer was set back to an older state, and will count on.
            Ok(_) | Err(Refused::DenyListOld { .. } | Refused::DenyListTwice { .. }) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
    member_files::save_denials(state, &held, &later)?;
    match before {
        Some(before) => member_files::replace_membership(state, before, membership)?,
        None => member_files::save_membership(state, membership)?,
    }
    Ok(())
}

/// Run file operations on a thread where they block no other task.
async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
