//! The issuer service of a daemon: answers peers that join or renew, and takes up revocations made by
//! commands.
//!
//! Rule: one request at a time, each answered from the files. The daemon's own authorizer receives a
//! revocation list that a command wrote within [`LOOK_INTERVAL`], and the list spreads from there.
//! Not here: the decisions (`identity::issuer`), sending lists to others (the daemon).

use super::off;
use super::revocation_file::RevocationFile;
use crate::authenticator::Authenticator;
use crate::clock;
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

/// Interval of checks for a list written by `visperf domain revoke`.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of checks of this host's clock, in addition to those before each signature.
const CLOCK_LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Pause after a failed check, so that a full disk does not fill up with errors.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// The service; run it beside the hub that fills `questions`.
#[derive(Debug)]
pub struct Service {
    /// Requests of `Protocol::Join`.
    pub questions: mpsc::Receiver<Question>,
    pub issuer: Issuer,
    /// The daemon's own key.
    pub me: PeerKey,
    /// The daemon's authorizer, which receives this issuer's revocation lists.
    pub gate: Arc<Authenticator>,
    /// Where those are stored for the next start.
    pub denials: Arc<RevocationFile>,
    /// Addresses of members, this daemon first, for the next joiners.
    pub seeds: watch::Receiver<Vec<Address>>,
    /// Why nothing is signed now, for this daemon's health.
    pub trouble: watch::Sender<Option<String>>,
}

impl Service {
    /// Answer until `shutdown`, or until the overlay ends. Revocation lists go to the authorizer, from which
    /// members and directories get them.
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

/// Log when this host's clock may no longer be used for signing, and when it may again; also sends it to
/// `trouble`.
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

/// Answer one request; the decision is logged.
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
        // The peer may have closed the connection: it repeats the request and receives the same answer.
        let _ = reply.send(answer);
        (issuer, trail)
    })
    .await
}

type Changed = Option<(Stamp, Vec<Denial>)>;

/// The lists, if they differ from those with the stamp `seen`.
fn changed(issuer: Issuer, seen: Option<Stamp>) -> (Issuer, Result<Changed, domain_files::Error>) {
    // Before the lists are read: a change in between is found by the next check.
    let stamp = issuer.files().revocation_list_stamp();
    let lists = match stamp {
        Some(stamp) if seen != Some(stamp) => {
            issuer.files().denials(clock::calendar()).map(|lists| Some((stamp, lists)))
        }
        Some(_) | None => Ok(None),
    };
    (issuer, lists)
}
