//! Sensors find their domain by the directories: whoever has no representative, or sees a part of the domain only, asks
//! where it is and meets whom they name; a representative asks now and then whether there is another.
//!
//! Rule: what is found is an address to dial and nothing more; who represents is decided by the election.
//! Not here: seeds (`domain`), what counts as an answer (`resolve`).

use crate::domain::{DomainHandle, View};
use crate::election::Role;
use crate::resolve::asker::Asker;
use crate::resolve::{Found, Outcome};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, PeerKey};

/// How often somebody is looked for who is missed.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// How often a representative that misses no one looks for another.
pub const SELDOM: Duration = Duration::from_secs(15);

/// How long directories may take.
const DEADLINE: Duration = Duration::from_secs(4);

/// The task's parts.
#[derive(Debug)]
pub struct Finder {
    /// This daemon.
    pub me: PeerKey,
    /// Its domain.
    pub domain: DomainName,
    /// Who is asked.
    pub asker: Asker,
    /// Who is told.
    pub members: DomainHandle,
}

impl Finder {
    /// Look until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let view = self.members.view();
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK_INTERVAL) => waited += LOOK_INTERVAL,
            }
            let due = due(&view.borrow());
            if due.is_some_and(|due| waited >= due) {
                waited = Duration::ZERO;
                if let Outcome::Found(found) = self.asker.resolve(&self.domain, DEADLINE).await {
                    self.meet(&found).await;
                }
            }
        }
    }

    async fn meet(&self, found: &Found) {
        let all = std::iter::once(&found.primary).chain(&found.partial);
        for reach in all.filter_map(|heard| heard.record.reach.as_ref()) {
            if reach.peer != self.me {
                self.members.meet(reach.peer, reach.addresses.clone()).await;
            }
        }
    }
}

/// How long after the last look the next one is due, if there may be others that this sensor does not see.
fn due(view: &View) -> Option<Duration> {
    if view.state.representative.is_none() || view.state.partial {
        return Some(LOOK_INTERVAL);
    }
    (view.state.role == Role::Representative).then_some(SELDOM)
}
