//! Stored calls on a member's stream: a standby fetches those of the representative, so that it has them when it succeeds; an
//! archive fetches them, too.
//!
//! Rule: the database is used by a task of its own, one answer at a time; what it refuses is fetched again.
//! Not here: the copies of minutes ([`super::copying`]), the representative's answers (`representative`).

use super::copying::CopyInputs;
use super::sender::Sender;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::report::FromMember;
use wire::report::calls::{CallPosition, Calls, FetchCalls};

/// How often a standby asks for what is new.
const FETCH_EVERY: Duration = Duration::from_secs(5);
/// After this time without an answer it asks again.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// Length of the answer that is requested, in bytes.
const FETCH_LEN_BYTES: u32 = 256 << 10;
/// Least time between two requests while there is more: 2 MiB/s at most.
const PAUSE: Duration = Duration::from_millis(125);

/// Copying of calls over one stream.
pub(super) struct CallCopying {
    inputs: Arc<CopyInputs>,
    /// Where the copy of this representative ends, once something of it was copied.
    position: Option<CallPosition>,
    /// Uses the database.
    task: Option<JoinHandle<Done>>,
    /// When it asks next; `None` for at once.
    due: Option<Instant>,
}

/// What a task found.
enum Done {
    /// These positions are to be requested.
    Request(Vec<CallPosition>),
    /// The copy ends there, and nothing follows at the moment.
    End(CallPosition),
    /// The database refused.
    Refused,
}

impl Sender {
    /// Takes the calls that the representative sent; call it after each [`Sender::handle_bytes`].
    pub fn take_calls(&mut self) -> Vec<Calls> {
        std::mem::take(&mut self.calls)
    }

    /// Requests the domain's calls from the representative, if it has any to give.
    pub fn request_calls(&mut self, fetch: FetchCalls) {
        if self.offers_calls() {
            self.put(&FromMember::FetchCalls(fetch));
        }
    }

    fn offers_calls(&self) -> bool {
        self.is_open() && self.offer.more.0.is_some_and(|more| more.has_calls)
    }
}

impl CallCopying {
    pub(super) fn new(inputs: Arc<CopyInputs>) -> CallCopying {
        CallCopying { inputs, position: None, task: None, due: None }
    }

    /// Prepares a request, if this host is a standby or an archive and one is due.
    pub(super) fn prepare(&mut self, sender: &Sender, now: Instant) {
        let is_due = self.due.is_none_or(|due| due <= now) && self.task.is_none();
        if !is_due || !sender.offers_calls() || !((self.inputs.is_standby)() || self.inputs.is_archive) {
            return;
        }
        let Some(history) = self.inputs.calls.clone() else { return };
        let known = self.position;
        self.task = Some(tokio::spawn(async move {
            let held = match known {
                Some(position) => Ok(vec![position]),
                // A failure is shown when something is stored.
                None => history.store().positions().await,
            };
            held.map_or(Done::Refused, Done::Request)
        }));
    }

    /// Stores the representative's answer.
    pub(super) fn store(&mut self, calls: Calls) {
        let Some(history) = self.inputs.calls.clone().filter(|_| self.task.is_none()) else { return };
        // A call that is too long to be copied moves the position alone.
        let has_moved = calls.position.key > 0 && self.position != Some(calls.position);
        if calls.calls.is_empty() && !has_moved {
            self.due = Some(Instant::now() + FETCH_EVERY);
            return;
        }
        let (position, is_end) = (calls.position, calls.is_end);
        self.task = Some(tokio::spawn(async move {
            if history.copy(calls).await.is_err() {
                return Done::Refused;
            }
            if is_end {
                return Done::End(position);
            }
            tokio::time::sleep(PAUSE).await;
            Done::Request(vec![position])
        }));
    }

    /// Waits for what is to be requested. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<FetchCalls> {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let done = task.await;
        self.task = None;
        let now = Instant::now();
        match done {
            Ok(Done::Request(held)) => {
                self.due = Some(now + ANSWER_WITHIN);
                return Some(FetchCalls { held, len_bytes: FETCH_LEN_BYTES });
            }
            Ok(Done::End(position)) => self.position = Some(position),
            // Read from the database again.
            Ok(Done::Refused) => self.position = None,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => return std::future::pending().await,
        }
        self.due = Some(now + FETCH_EVERY);
        None
    }
}
