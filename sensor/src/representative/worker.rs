//! Worker thread that owns the representative's core while its sensor represents the domain.
//!
//! Rules: the core has a thread of its own outside the runtime's, so decoding and joining delay no
//! connection. Commits run on another thread, one at a time and as often as their pace allows; events
//! received meanwhile are in the next commit. While the lease is not valid nothing is sent, so nothing is
//! acknowledged. While the disk is behind, members' bytes wait in their streams.
//! Not here: when the worker runs ([`super::service`]), the streams' own tasks ([`super::session`]).

use super::domain::{Domain, Link, Now, Output};
use super::hosts::ElectionEntry;
use super::service::{Duty, Shared};
use super::session::{self, Session, StreamNotice, StreamSenders};
use super::store::writer::Commit;
use crate::call_history::CallHistory;
use crate::history::copied::{Answer, Kind, OfKind};
use crate::history::copies::{self, Copies};
use crate::segments;
use crate::segments::sync_limiter::SyncLimiter;
use crate::tail::handle::MachineClock;
use crate::tail::ingest::Clock as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::copied_names::Sent;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use wire::id::{HostName, PeerKey};
use wire::report::calls::{Calls, FetchCalls};
use wire::report::minutes::Fetch;
use wire::time::Moment;

/// Most chunks of bytes that wait, of all members together: 4 MiB.
const BYTES_MAX: usize = 1024;
/// Chunks handled before answers are sent and a commit starts: events received together are stored together.
const BYTES_AT_ONCE: usize = 256;
/// Most notifications of streams that wait; beyond them, a stream waits with its notification.
const NOTICES_MAX: usize = 1024;
/// Most frames queued for one member: the core emits one at a time, and a last one.
const FRAMES_MAX: usize = 4;
/// Period of the housekeeping: roles and counters, and the lease while it is not valid.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often hosts that have been gone for a long time are forgotten.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// Delay before a commit that the disk refused is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A query that runs on the core.
pub(super) type Query = Box<dyn FnOnce(&mut Domain, Now) + Send>;

/// Channels from other parts of the sensor to the worker.
pub(super) struct Inbox {
    pub(super) sessions: mpsc::Receiver<Session>,
    pub(super) queries: mpsc::Receiver<Query>,
    pub(super) duty: watch::Receiver<Duty>,
    pub(super) election: watch::Receiver<Arc<BTreeMap<HostName, ElectionEntry>>>,
}

/// The worker's side of a stream.
struct Stream {
    peer: PeerKey,
    frames: mpsc::Sender<Vec<u8>>,
    /// Names of metrics that were sent with each kind; `None` while it is read for the stream.
    sent: OfKind<Option<Sent>>,
    /// Whether calls are read for it.
    awaits_calls: bool,
}

/// What is stored of the domain besides events; `None` for what the configuration turns off.
#[derive(Clone, Default)]
pub(super) struct Stored {
    pub(super) copies: Option<Copies>,
    pub(super) calls: Option<CallHistory>,
}

type FetchTask = (Link, Kind, Sent, Answer);

type CommitTask = JoinHandle<(Commit, Result<(), segments::Error>)>;

pub(super) struct Worker {
    domain: Domain,
    shared: Arc<Shared>,
    senders: StreamSenders,
    streams: BTreeMap<Link, Stream>,
    tasks: JoinSet<()>,
    committing: Option<CommitTask>,
    /// A commit that the disk refused, and the time of the refusal.
    refused: Option<(Commit, Moment)>,
    sync_limiter: SyncLimiter,
    tidied: Moment,
    stored: Stored,
    /// Minutes that are being read for standbys, and calls; `None` if they cannot be read.
    fetching: JoinSet<FetchTask>,
    fetching_calls: JoinSet<(Link, Option<Calls>)>,
}

/// Channels from the streams to the worker.
struct StreamInputs {
    bytes: mpsc::Receiver<(Link, Vec<u8>)>,
    notices: mpsc::Receiver<StreamNotice>,
}

pub(super) fn now() -> Now {
    Now { moment: Moment(MachineClock.monotonic()), wall: MachineClock.wall() }
}

/// Serves until the duty ends or `ending` fires; then stores what was received.
pub(super) async fn run(
    mut domain: Domain,
    stored: Stored,
    shared: Arc<Shared>,
    inbox: Inbox,
    ending: CancellationToken,
) {
    domain.set_copies(&stored.copies.as_ref().map(|copies| copies.ages.clone()).unwrap_or_default());
    if stored.calls.is_some() {
        domain.collect_call_changes();
    }
    let ((bytes_to, bytes), (notices_to, notices)) = (mpsc::channel(BYTES_MAX), mpsc::channel(NOTICES_MAX));
    let mut worker = Worker {
        domain,
        shared,
        senders: StreamSenders { bytes: bytes_to, notices: notices_to },
        streams: BTreeMap::new(),
        tasks: JoinSet::new(),
        committing: None,
        refused: None,
        sync_limiter: SyncLimiter::default(),
        tidied: now().moment,
        stored,
        fetching: JoinSet::new(),
        fetching_calls: JoinSet::new(),
    };
    worker.serve(inbox, StreamInputs { bytes, notices }, &ending).await;
    worker.finish().await;
}

impl Worker {
    async fn serve(&mut self, mut inbox: Inbox, mut inputs: StreamInputs, ending: &CancellationToken) {
        let mut check_inbox = tokio::time::interval(LOOK_EVERY);
        loop {
            let rest = self.begin_commit();
            self.carry_out();
            let has_room = self.domain.has_room();
            tokio::select! {
                biased;
                () = ending.cancelled() => return,
                changed = inbox.duty.changed() => match *inbox.duty.borrow_and_update() {
                    Duty::Serve { term } if changed.is_ok() => self.domain.set_term(term),
                    Duty::Serve { .. } | Duty::Rest => return,
                },
                committed = committed(&mut self.committing) => match committed {
                    Some((commit, result)) => self.handle_committed(commit, result),
                    None => return,
                },
                () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() => {}
                Some(notice) = inputs.notices.recv() => self.handle_notice(notice),
                _ = check_inbox.tick() => self.check_inbox(&mut inbox),
                Some(session) = inbox.sessions.recv() => self.handle_session(session),
                Some(query) = inbox.queries.recv() => query(&mut self.domain, now()),
                Some((link, bytes)) = inputs.bytes.recv(), if has_room => {
                    self.domain.handle_bytes(link, &bytes, now());
                    self.handle_more(&mut inputs.bytes);
                }
                Some(_) = self.tasks.join_next() => {}
                Some(Ok((link, kind, sent, answer))) = self.fetching.join_next() => {
                    if let Some(stream) = self.streams.get_mut(&link) {
                        *stream.sent.of_mut(kind) = Some(sent);
                        self.domain.send_answer(link, answer);
                    }
                }
                Some(Ok((link, calls))) = self.fetching_calls.join_next() => {
                    if let Some(stream) = self.streams.get_mut(&link) {
                        stream.awaits_calls = false;
                        calls.into_iter().for_each(|calls| self.domain.send_calls(link, calls));
                    }
                }
            }
        }
    }

    /// Handles more of what is waiting, so that events received together are stored together.
    fn handle_more(&mut self, bytes: &mut mpsc::Receiver<(Link, Vec<u8>)>) {
        for _ in 1..BYTES_AT_ONCE {
            let Ok((link, bytes)) = bytes.try_recv() else { return };
            self.domain.handle_bytes(link, &bytes, now());
            if !self.domain.has_room() {
                return;
            }
        }
    }

    /// Accepts a stream. A daemon has one: a new stream replaces its previous one, which may be dead.
    fn handle_session(&mut self, session: Session) {
        let Session { peer, serial, host, stream } = session;
        let former = self.streams.iter().find(|(_, stream)| stream.peer == peer).map(|(link, _)| *link);
        if let Some(former) = former {
            self.hang_up(former);
        }
        let Some(link) = self.domain.connect((peer, serial), host, now().moment) else {
            tracing::warn!(%peer, "too many members report; one more is not taken");
            return;
        };
        let (to, frames) = mpsc::channel(FRAMES_MAX);
        let sent = OfKind([Some(Sent::default()), Some(Sent::default())]);
        self.streams.insert(link, Stream { peer, frames: to, sent, awaits_calls: false });
        self.tasks.spawn(session::serve(link, stream, self.senders.clone(), frames));
    }

    fn handle_notice(&mut self, notice: StreamNotice) {
        match notice {
            StreamNotice::Written(link) => self.domain.handle_written(link),
            StreamNotice::Ended(link) => self.hang_up(link),
        }
    }

    fn hang_up(&mut self, link: Link) {
        self.streams.remove(&link);
        self.domain.disconnect(link);
    }

    fn carry_out(&mut self) {
        if !self.shared.may_serve() {
            return;
        }
        while let Some(output) = self.domain.poll_output() {
            match output {
                Output::Send(link, frame) => {
                    let is_full = |stream: &Stream| stream.frames.try_send(frame).is_err();
                    if self.streams.get(&link).is_some_and(is_full) {
                        self.hang_up(link);
                    }
                }
                // Dropping the sender ends the stream after everything given before is written.
                Output::Close(link, why) => {
                    tracing::debug!(?link, %why, "a member's stream is closed");
                    self.streams.remove(&link);
                }
                Output::Copy(copied) => {
                    if !self.stored.copies.as_ref().is_some_and(|copies| copies.store(copied)) {
                        self.domain.handle_not_copied();
                    }
                }
                Output::Fetch(link, kind, fetch) => self.fetch(link, kind, fetch),
                Output::FetchCalls(link, fetch) => self.fetch_calls(link, fetch),
            }
        }
    }

    /// Reads what is copied for a standby; one answer of each kind at a time.
    fn fetch(&mut self, link: Link, kind: Kind, fetch: Fetch) {
        let reader = self.stored.copies.as_ref().and_then(|copies| copies.handle().reader().ok().cloned());
        let sent = self.streams.get_mut(&link).and_then(|stream| stream.sent.of_mut(kind).take());
        let (Some(reader), Some(mut sent)) = (reader, sent) else { return };
        self.fetching.spawn_blocking(move || {
            let answer = copies::read(&reader, (kind, &fetch), &mut sent);
            (link, kind, sent, answer)
        });
    }

    /// Reads calls for a standby; one answer at a time.
    fn fetch_calls(&mut self, link: Link, fetch: FetchCalls) {
        let stream = self.streams.get_mut(&link).filter(|stream| !stream.awaits_calls);
        let (Some(history), Some(stream)) = (self.stored.calls.clone(), stream) else { return };
        stream.awaits_calls = true;
        self.fetching_calls.spawn(async move {
            let calls = history.store().following(&fetch).await;
            (
                link,
                calls.inspect_err(|error| tracing::debug!(%error, "calls are not read for a standby")).ok(),
            )
        });
    }

    /// Starts to store what was received. Returns how long to wait if it is too soon for that.
    fn begin_commit(&mut self) -> Option<Duration> {
        if self.committing.is_some() || self.refused.is_some() {
            return None;
        }
        let moment = now().moment;
        let rest = self.sync_limiter.due().saturating_sub(moment.0);
        if !rest.is_zero() && self.domain.wants_commit() {
            return Some(rest);
        }
        match self.domain.take_commit() {
            Ok(Some(commit)) => {
                self.sync_limiter.note(moment.0);
                self.commit(commit);
            }
            Ok(None) => {}
            Err(error) => self.shared.report_failure(&error.to_string()),
        }
        None
    }

    fn commit(&mut self, mut commit: Commit) {
        self.committing = Some(tokio::task::spawn_blocking(move || {
            let result = commit.run();
            (commit, result)
        }));
    }

    fn handle_committed(&mut self, commit: Commit, result: Result<(), segments::Error>) {
        self.committing = None;
        match result {
            Ok(()) => {
                self.domain.handle_committed(commit);
                self.shared.clear_failure();
            }
            Err(error) => {
                self.shared.report_failure(&error.to_string());
                self.refused = Some((commit, now().moment));
            }
        }
    }

    fn check_inbox(&mut self, inbox: &mut Inbox) {
        let moment = now().moment;
        let is_due = |since: &mut (Commit, Moment)| moment.since(since.1) >= RETRY_AFTER;
        if let Some((commit, _)) = self.refused.take_if(is_due) {
            self.commit(commit);
        }
        self.domain.close_silent(moment);
        if self.domain.wants_held()
            && let Some(held) = self.stored.copies.as_ref().and_then(Copies::held)
        {
            self.domain.set_held(held);
        }
        self.domain.fetch_copies(now());
        if moment.since(self.tidied) >= TIDY_EVERY {
            self.tidied = moment;
            self.domain.tidy(moment);
        }
        for (sensor, next) in self.domain.take_forgotten() {
            self.shared.lock_watermarks().forget_beyond(sensor, next);
        }
        self.domain.apply_election(&inbox.election.borrow_and_update(), now());
        self.shared.set_counts(self.domain.counts(), self.domain.links_len());
    }

    /// Stores what was received; nothing is sent any more.
    async fn finish(mut self) {
        self.tasks.shutdown().await;
        if self.committing.is_some() {
            let Some((commit, result)) = committed(&mut self.committing).await else { return };
            self.handle_committed(commit, result);
        }
        if self.refused.is_some() {
            return;
        }
        if let Ok(Some(mut commit)) = self.domain.take_commit()
            && let Err(error) = commit.run()
        {
            tracing::warn!(%error, "the last of what members sent is not stored; they send it again");
        }
        self.shared.set_counts(self.domain.counts(), 0);
    }
}

/// Waits for the running commit; `None` if it was cancelled because the process is ending.
async fn committed(under_way: &mut Option<CommitTask>) -> Option<(Commit, Result<(), segments::Error>)> {
    match under_way {
        Some(committing) => match committing.await {
            Ok(done) => Some(done),
            Err(error) if error.is_cancelled() => None,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        },
        None => std::future::pending().await,
    }
}
