//! Lists of denied, exchanged with the directories: what they have newer is taken, what they lack is pushed.
//!
//! Rule: whoever of the domain learns of a newer list tells the directories at once, and everybody asks them now
//! and then, so a list reaches every sensor without anybody's help; what is taken is on disk.
//! Not here: what is believed (`identity::deny_list`), replication (`directory`).

use crate::directories::Directories;
use crate::domain::DomainHandle;
use crate::election::Role;
use crate::gatekeeper::Gatekeeper;
use crate::identity::deny_list::Taken;
use crate::joining::denials::DenialFile;
use crate::net::handle::Handle;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, PeerKey};
use wire::replication::{Answer, Question};

/// How often the representative and its standbys ask, who are connected anyway.
pub const OFTEN: Duration = Duration::from_secs(15);

/// How often the other sensors ask.
pub const SELDOM: Duration = Duration::from_secs(600);

/// How often it is looked whether there is a newer list here.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How long a directory may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Most other domains asked for at a time: those of whom somebody is connected.
const OTHERS_MAX: usize = 64;

/// The task's parts.
#[derive(Debug)]
pub struct DenySync {
    /// This daemon's domain.
    pub domain: DomainName,
    /// What holds the lists.
    pub gate: Arc<Gatekeeper>,
    /// Where they are kept.
    pub denials: Arc<DenialFile>,
    /// Who is connected.
    pub net: Handle,
    /// This sensor's part in its domain.
    pub members: DomainHandle,
    /// Whom to ask.
    pub directories: Arc<Directories>,
}

impl DenySync {
    /// Exchange until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut told = None;
        let mut waited = SELDOM;
        loop {
            let numbers = self.gate.decide(|gate| gate.denials().numbers(&self.domain));
            let role = self.members.view().borrow().state.role;
            let often = matches!(role, Role::Representative | Role::Standby);
            if told != Some(numbers) || waited >= if often { OFTEN } else { SELDOM } {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    all = self.exchange() => if all { told = Some(numbers) },
                }
                waited = Duration::ZERO;
            }
            // One that is out of reach is not asked again at once.
            let pause = if told == Some(numbers) { LOOK_INTERVAL } else { OFTEN };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => waited += pause,
            }
        }
    }

    /// Exchange with all of them; whether all answered.
    async fn exchange(&self) -> bool {
        let mut domains = BTreeSet::from([self.domain.clone()]);
        domains.extend(self.net.ready().iter().filter_map(|peer| peer.domain.clone()).take(OTHERS_MAX));
        let mut all = true;
        let mut new = false;
        for directory in self.directories.keys() {
            for domain in &domains {
                match self.exchange_with(directory, domain).await {
                    Some(taken) => new |= taken,
                    None => {
                        all = false;
                        break;
                    }
                }
            }
        }
        if new && let Err(error) = self.denials.save(&self.gate).await {
            tracing::error!(%error, "a newer list of denied is in force but could not be kept");
        }
        all
    }

    /// Whether something newer was taken; none if there was no answer.
    async fn exchange_with(&self, directory: PeerKey, domain: &DomainName) -> Option<bool> {
        let asked = self.directories.ask(directory, Question::DenyLists(domain.clone()), DEADLINE).await;
        let lists = match asked {
            Ok(Answer::DenyLists(lists)) => lists,
            Ok(_) => return None,
            Err(error) => {
                tracing::debug!(%error, "no lists of denied were exchanged");
                return None;
            }
        };
        // At most one by the root and one by the issuer are told.
        let taken = lists.iter().take(2).map(|list| self.gate.take_denial(directory, list));
        let new = taken.fold(false, |new, taken| new | matches!(taken, Ok(Taken::New)));
        if *domain == self.domain {
            let held = self.gate.decide(|gate| gate.denials().of(domain));
            for denial in held.into_iter().filter(|denial| !lists.contains(denial)) {
                let question = Question::Deny(Box::new(denial));
                if let Err(error) = self.directories.ask(directory, question, DEADLINE).await {
                    tracing::debug!(%error, "a list of denied could not be pushed");
                    return None;
                }
            }
        }
        Some(new)
    }
}
