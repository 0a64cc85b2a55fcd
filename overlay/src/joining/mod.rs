//! Becoming a member and staying one: the shell around `identity::join`.
//!
//! ```text
//! visperf join ── dial ──▶ the issuer's daemon (service): token for certificate, kept in the state folder
//! renewal (in every daemon) ──▶ the same: certificate for a newer one, shown from then on
//! ```
//!
//! Rule: what was given is on disk before anybody is told that it was; the list of denied before the certificate. File
//! work is never done where it would keep a daemon's other tasks waiting.
//! Not here: who is let in (`identity`), how the issuer is reached (`dial`).

pub mod denials;
mod dial;
pub mod renewal;
pub mod service;

use crate::clock;
use crate::identity::join::{self, Membership};
use crate::identity::key::Key;
use crate::identity::key_file;
use crate::identity::member_files::{self, MEMBERSHIP};
use crate::identity::refused::Refused;
use crate::identity::trust::Readers;
use crate::net;
use dial::Errand;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Denial, Roles};
use wire::id::{DomainName, HostName, PeerKey};
use wire::join::{Admitted, Question, Reply, Token, TokenType};

/// An address of the issuer, and what became of the last attempt there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Where.
    pub address: Address,
    /// What happened, in words.
    pub said: String,
}

/// Addresses that were tried, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllTried(pub Vec<Tried>);

impl fmt::Display for AllTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|tried| write!(f, "\n  {}: {}", tried.address, tried.said))
    }
}

/// Why a daemon did not become or stay a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file in the state folder.
    #[error(transparent)]
    File(#[from] member_files::Error),
    /// What was given cannot be believed, or need not even be asked for.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The overlay could not start.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// It is in another domain.
    #[error(
        "this host is a member of domain {found}, not of {asked} with root {root}; to leave {found}, move {} away first",
        path.display()
    )]
    Elsewhere {
        /// Of which domain it is a member.
        found: DomainName,
        /// Which one it was to join.
        asked: DomainName,
        /// The root of the latter: two domains may have one name.
        root: PeerKey,
        /// Where that is kept.
        path: PathBuf,
    },
    /// The token was made here.
    #[error(
        "this token was made by this very daemon, which is in domain {domain} already; type the line on the host that \
         is to join, or name another state folder"
    )]
    Own {
        /// Which domain.
        domain: DomainName,
    },
    /// It tells no address.
    #[error(
        "it is not told where the issuer of domain {domain} listens; make a token with `visperf token create --address \
         HOST:PORT`"
    )]
    NoAddress {
        /// Of which domain.
        domain: DomainName,
    },
    /// No one answered.
    #[error("the issuer of domain {domain} was not reached within {} s:{tried}", waited.as_secs())]
    Unreachable {
        /// Of which domain.
        domain: DomainName,
        /// How long it was tried.
        waited: Duration,
        /// Where, and what happened.
        tried: AllTried,
    },
    /// The issuer says no.
    #[error("the issuer of domain {domain} refused: {reason}")]
    NotAdmitted {
        /// Of which domain.
        domain: DomainName,
        /// In its words.
        reason: String,
    },
}

/// What a daemon has become.
#[derive(Clone, Debug)]
pub struct Joined {
    /// What it keeps from now on.
    pub membership: Membership,
    /// Its certificate.
    pub certificate: Certificate,
    /// Whether it had this very certificate before.
    pub is_known: bool,
}

/// Who wants to join, and how patiently.
#[derive(Clone, Debug)]
pub struct Joiner {
    /// Its state folder; key and membership are kept there.
    pub state: PathBuf,
    /// Its host.
    pub host: HostName,
    /// Which of the token's roles; none means all of them.
    pub wanted: Roles,
    /// How long to try.
    pub deadline: Duration,
}

/// Join by a token: dial its issuer until one answers, ask, believe nothing that its root did not sign, and keep it.
/// `progress` is told what became of an attempt, once for each new reason. Asking again by the same token and key gives
/// the same certificate again.
///
/// # Errors
/// Why it is no member; nothing was kept then but its key, and the token is as good as before unless the issuer says
/// otherwise.
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
    let errand = Errand {
        domain: token.domain.clone(),
        root: token.root,
        issuer: token.issuer,
        addresses: token.addresses.clone(),
    };
    let question = match token.token_type {
        TokenType::Join => Question::Join(question),
        TokenType::Replace => Question::Replace(question),
    };
    let reply = dial::ask(&key, &errand, &question, joiner.deadline, progress).await?;
    let answer = admitted(reply, &token.domain)?;
    let (membership, denials) = join::accept(token, answer, key.peer(), clock::calendar())?;
    let denials = denials.all().cloned().collect();
    kept(joiner.state.clone(), held, membership, denials).await
}

/// Take what the root's keeper gave by hand, and keep it.
///
/// # Errors
/// If it is not for this daemon, or of another domain than the one it is in; nothing was kept then but its key.
pub async fn install(state: &Path, given: Admitted) -> Result<Joined, Error> {
    let claimed = given.chain.certificate.unverified().map_err(Refused::from)?;
    let folder = state.to_owned();
    let (key, held) = off(move || own(&folder, &claimed.domain, claimed.root)).await?;
    let (membership, denials) = join::install(held.clone(), given, key.peer(), clock::calendar())?;
    kept(state.to_owned(), held, membership, denials).await
}

/// The daemon's key, and its membership if it has one, which must be of this domain.
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

/// Keep both, the list of denied first: a member that does not know who is denied would let them in.
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
            // What is held is newer: the issuer was set back, and will count on.
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

/// Do work with files where it keeps no one waiting.
async fn off<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
