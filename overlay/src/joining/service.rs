//! The issuer at work in its daemon: answers who wants to join or renew, and takes up what was revoked by command.
//!
//! Rule: one question at a time, each answered from what is on disk; a list of denied that a command wrote is known to
//! the daemon's own gate within [`LOOK_INTERVAL`], and handed on from there.
//! Not here: the decisions (`identity::issuer`), handing lists to others (the daemon).

use super::denials::DenialFile;
use super::off;
use crate::clock;
use crate::gatekeeper::Gatekeeper;
use crate::identity::audit::Trail;
use crate::identity::domain_files::{self, Stamp};
use crate::identity::issuer::Issuer;
use crate::net::event_loop::Question;
use crate::net::handle::Answer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential::Denial;
use wire::id::PeerKey;

/// How often a list written by `visperf domain revoke` is looked for.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the clock of this host is looked at, beside each time something is to be signed.
const CLOCK_LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The same after a failure, so that a disk that is full does not fill up with complaints.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// The service; run it beside the hub that fills `questions`.
#[derive(Debug)]
pub struct Service {
    /// Questions of `Protocol::Join`.
    pub questions: mpsc::Receiver<Question>,
    /// Who decides.
    pub issuer: Issuer,
    /// The daemon's key.
    pub me: PeerKey,
    /// The daemon's gate: it learns whom this issuer denied.
    pub gate: Arc<Gatekeeper>,
    /// Where that is kept for its next start.
    pub denials: Arc<DenialFile>,
    /// Where members listen, this daemon first, for those who join next.
    pub seeds: watch::Receiver<Vec<Address>>,
    /// Why nothing is signed now, for this daemon's health.
    pub trouble: watch::Sender<Option<String>>,
}

impl Service {
    /// Answer until `shutdown`, or until the overlay ends. Who is denied is told to the gate, from which members and
    /// directories have it.
    pub async fn run(self, shutdown: CancellationToken) {
        let Service { mut questions, mut issuer, me, gate, denials, seeds, trouble } = self;
        let mut trail = Trail::default();
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut clock_look = tokio::time::interval(CLOCK_LOOK_INTERVAL);
        clock_look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = None;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                question = questions.recv() => {
                    let Some(question) = question else { return };
                    issuer.set_seeds(seeds.borrow().clone());
                    issuer.set_clock(gate.members_clock());
                    (issuer, trail) = answer(question, issuer, trail).await;
                }
                _ = clock_look.tick() => {
                    issuer.set_clock(gate.members_clock());
                    issuer = look_at_clock(issuer, &trouble).await;
                }
                _ = look.tick() => {
                    let found;
                    (issuer, found) = off(move || changed(issuer, seen)).await;
                    match found {
                        Ok(None) => {}
                        Ok(Some((stamp, lists))) => {
                            seen = Some(stamp);
                            if let Err(refused) = denials.take(&gate, me, &lists).await {
                                tracing::error!(%refused, "rejected this issuer's own revocation list");
                            }
                        }
                        Err(error) => {
                            tracing::error!(%error, "cannot read who is denied");
                            look.reset_after(FAILED_PAUSE);
                        }
                    }
                }
            }
        }
    }
}

/// Log and show it when the clock may not be signed by, and when it may again.
async fn look_at_clock(issuer: Issuer, trouble: &watch::Sender<Option<String>>) -> Issuer {
    let (issuer, checked) = off(move || {
        let checked = issuer.check_clock(clock::calendar(), clock::now());
        (issuer, checked)
    })
    .await;
    let found = checked.err().map(|error| error.to_string());
    let was_refused = trouble.borrow().is_some();
    match &found {
        Some(error) if !was_refused => tracing::warn!(error, "nothing is signed until the clock is right"),
        None if was_refused => tracing::info!("the clock of this host is right again, and is signed by"),
        Some(_) | None => {}
    }
    trouble.send_replace(found);
    issuer
}

/// Answer one question; what was decided is logged.
async fn answer(question: Question, issuer: Issuer, trail: Trail) -> (Issuer, Trail) {
    let Question { peer, body, reply, from, .. } = question;
    off(move || {
        let _from = from.entered();
        let (mut issuer, mut trail) = (issuer, trail);
        let answer = match postcard::from_bytes(&body) {
            Ok(asked) => {
                let answer = issuer.answer(&asked, peer, clock::calendar(), clock::now(), &mut trail);
                Answer::Done(postcard::to_stdvec(&answer).expect("plain data is encoded"))
            }
            Err(_) => Answer::Refused("the question is not understood; is it of another version?".to_owned()),
        };
        while let Some(audit) = trail.poll_output() {
            audit.log();
        }
        // The peer may have gone: it asks again and is given the same.
        let _ = reply.send(answer);
        (issuer, trail)
    })
    .await
}

type Changed = Option<(Stamp, Vec<Denial>)>;

/// The lists, if they are others than those `seen`.
fn changed(issuer: Issuer, seen: Option<Stamp>) -> (Issuer, Result<Changed, domain_files::Error>) {
    // Taken before the lists are read: what is written in between is found at the next look.
    let stamp = issuer.files().deny_list_stamp();
    let lists = match stamp {
        Some(stamp) if seen != Some(stamp) => {
            issuer.files().denials(clock::calendar()).map(|lists| Some((stamp, lists)))
        }
        Some(_) | None => Ok(None),
    };
    (issuer, lists)
}
