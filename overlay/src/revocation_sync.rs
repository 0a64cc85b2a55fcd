//! Synchronization of revocation lists with the directories: takes newer lists from them, and sends them
//! missing ones.
//!
//! Rule: a daemon of the domain that has a newer list sends it to the directories at once, and every daemon
//! asks now and then, so that a list reaches every sensor without manual action; a list that was taken is on
//! disk. The representative and its standbys ask every directory. The others connect briefly to one, chosen
//! again each time: directories replicate among themselves.
//! Not here: which lists are accepted (`identity::revocation_lists`), replication (`directory`).

use crate::authenticator::Authenticator;
use crate::contacts::Keep;
use crate::dice::Dice;
use crate::directories::Directories;
use crate::domain::DomainHandle;
use crate::election::Role;
use crate::joining::revocation_file::RevocationFile;
use crate::net::handle::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, PeerKey};
use wire::replication::{Answer, Question};

/// Interval of the representative and its standbys, which are connected anyway.
pub const OFTEN: Duration = Duration::from_secs(15);

/// Interval of the other sensors.
pub const SELDOM: Duration = Duration::from_secs(600);

/// Interval of checks for a newer list here.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Timeout of a directory's answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Most other domains per exchange: those of connected peers.
const OTHERS_MAX: usize = 64;

/// The synchronization task.
#[derive(Debug)]
pub struct RevocationSync {
    pub domain: DomainName,
    /// The authorizer, which holds the lists.
    pub gate: Arc<Authenticator>,
    /// Where the lists are stored.
    pub denials: Arc<RevocationFile>,
    /// The connected peers.
    pub net: Handle,
    /// This sensor's part in its domain; none for a proxy, which is connected to the directories anyway.
    pub members: Option<DomainHandle>,
    /// The directories to ask.
    pub directories: Arc<Directories>,
}

impl RevocationSync {
    /// Synchronize until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut dice = Dice::of(self.net.me());
        let mut synced = None;
        let mut waited = SELDOM;
        loop {
            let numbers = self.gate.decide(|gate| gate.denials().numbers(&self.domain));
            let role = self.members.as_ref().map(|members| members.view().borrow().state.role);
            let often = matches!(role, None | Some(Role::Representative | Role::Standby));
            if synced != Some(numbers) || waited >= if often { OFTEN } else { SELDOM } {
                let mut directories = self.directories.keys();
                // At its start, a daemon may have missed a list, but has no new one to send; a list received
                // since then must be sent.
                let has_news = synced.is_some_and(|synced| synced != numbers);
                let quorum = if often || has_news { Quorum::All } else { Quorum::One };
                dice.shuffle(&mut directories);
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    exchanged = self.exchange(&directories, quorum) => synced = exchanged.or(synced),
                }
                waited = Duration::ZERO;
            }
            // A directory that is out of reach is not asked again at once.
            let pause = if synced == Some(numbers) { LOOK_INTERVAL } else { OFTEN };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => waited += pause,
            }
        }
    }

    /// Exchange lists with `directories`. Returns the numbers of the own lists that every directory in
    /// `quorum` has now; none if one of these did not answer.
    async fn exchange(&self, directories: &[PeerKey], quorum: Quorum) -> Option<Numbers> {
        let mut domains = BTreeSet::from([self.domain.clone()]);
        domains.extend(self.net.ready().iter().filter_map(|peer| peer.domain.clone()).take(OTHERS_MAX));
        let mut synced: Option<Numbers> = None;
        let mut have_all = true;
        for &directory in directories {
            let exchanged = self.exchange_all(directory, &domains).await;
            have_all &= exchanged.is_some();
            synced = synced.or(exchanged);
            if quorum == Quorum::One && synced.is_some() {
                break;
            }
        }
        synced.filter(|_| have_all || quorum == Quorum::One)
    }

    /// Exchange the lists of all domains with one directory. Returns the numbers of the own lists that it has
    /// now.
    async fn exchange_all(&self, directory: PeerKey, domains: &BTreeSet<DomainName>) -> Option<Numbers> {
        let mut synced = None;
        for domain in domains {
            let numbers = self.exchange_with(directory, domain).await?;
            if *domain == self.domain {
                synced = Some(numbers);
            }
        }
        synced
    }

    /// Exchange the lists of one domain; only lists of the own domain are sent. Returns the numbers of the
    /// lists held now; none if there was no answer.
    async fn exchange_with(&self, directory: PeerKey, domain: &DomainName) -> Option<Numbers> {
        let asked = self
            .directories
            .ask(directory, Question::DenyLists(domain.clone()), Keep::Briefly, DEADLINE)
            .await;
        let lists = match asked {
            Ok(Answer::DenyLists(lists)) => lists,
            Ok(_) => return None,
            Err(error) => {
                tracing::debug!(%error, "no lists of denied were exchanged");
                return None;
            }
        };
        // A refusal is in the audit log.
        let _ = self.denials.take(&self.gate, directory, &lists).await;
        let (numbers, held) =
            self.gate.decide(|gate| (gate.denials().numbers(domain), gate.denials().of(domain)));
        let is_own = *domain == self.domain;
        for denial in held.into_iter().filter(|denial| is_own && !lists.contains(denial)) {
            let question = Question::Deny(Box::new(denial));
            if let Err(error) = self.directories.ask(directory, question, Keep::Briefly, DEADLINE).await {
                tracing::debug!(%error, "a list of denied could not be pushed");
                return None;
            }
        }
        Some(numbers)
    }
}

/// Which directories must answer an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quorum {
    All,
    /// The first that answers.
    One,
}

/// Numbers of a domain's lists: the root's and the issuer's.
type Numbers = (u64, u64);
