//! Discovery of a sensor's own domain through the directories. A sensor that has no representative, or sees
//! only a part of its domain, asks for the domain's representatives and dials them; a representative checks
//! now and then whether there is another.
//!
//! Rule: the result is only an address to dial; the election decides which sensor represents the domain.
//! Not here: seeds (`domain`), what counts as an answer (`resolve`).

use crate::domain::{DomainHandle, View};
use crate::election::Role;
use crate::resolve::asker::Asker;
use crate::resolve::{Found, Outcome};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, PeerKey};

/// Interval of look-ups while a representative or a part of the domain is missing.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// Interval at which a representative that misses nothing looks for another one.
pub const SELDOM: Duration = Duration::from_secs(15);

/// Timeout of the directories' answer.
const DEADLINE: Duration = Duration::from_secs(4);

/// The discovery task.
#[derive(Debug)]
pub struct Finder {
    pub me: PeerKey,
    pub domain: DomainName,
    /// Looks up the domain.
    pub asker: Asker,
    /// This sensor's part in its domain, which dials the sensors found.
    pub members: DomainHandle,
}

impl Finder {
    /// Look up the domain until `shutdown`.
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

/// How long after the last look-up the next one is due; none if this sensor misses nothing.
fn due(view: &View) -> Option<Duration> {
    if view.state.representative.is_none() || view.state.partial {
        return Some(LOOK_INTERVAL);
    }
    (view.state.role == Role::Representative).then_some(SELDOM)
}
