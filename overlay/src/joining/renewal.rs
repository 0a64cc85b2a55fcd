//! Renewal of a daemon's certificate: after half of its life, and shown to peers from then on.
//!
//! Rule: a renewal is retried until it succeeds, without load peaks: the time of the first attempt depends on
//! the daemon's key, and the pauses between attempts grow and are jittered. A certificate that a command
//! stored in the state folder meanwhile is used. A certificate that is valid only from a later time was
//! signed by a wrong clock: it is replaced at once, and the previous one is shown until then. A certificate
//! signed by the root is renewed only by the holder of the root key; a warning is logged in time.
//! Not here: which certificate is issued (`identity::issuer_store`), the connection to the issuer (`dial`).

use super::dial::{self, IssuerTarget};
use super::revocation_file::RevocationFile;
use super::{Error, Tried, admitted, off};
use crate::authenticator::Authenticator;
use crate::clock;
use crate::dice::Dice;
use crate::identity::certificate;
use crate::identity::domain_files::{self, DomainFiles};
use crate::identity::join::Membership;
use crate::identity::key::Key;
use crate::identity::member_files;
use crate::identity::peer_clocks::Members;
use crate::identity::trust::Readers;
use crate::net::handle::Handle;
use crate::net::protocol::Protocol;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::backoff::Backoff;
use wire::credential::Certificate;
use wire::id::PeerKey;
use wire::join::{Admitted, Question};
use wire::time::{Moment, Time};

/// Timeout of one attempt.
const DEADLINE: Duration = Duration::from_secs(30);

/// How long before expiry the log warns that only the holder of the root key can renew: time enough for a
/// holiday.
const WARNED_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// Interval of that warning.
const WARNED_EACH: Duration = Duration::from_secs(86_400);

/// Intervals of checks and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two checks of the clock and the file: calendars step, hosts sleep.
    pub look: Duration,
    /// Pause after the first failure.
    pub pause_min: Duration,
    /// Longest pause.
    pub pause_max: Duration,
}

impl Default for Pace {
    /// Half of a certificate's life is fifteen days, so a pause of at most an hour is short enough.
    fn default() -> Pace {
        Pace {
            look: Duration::from_secs(10),
            pause_min: Duration::from_secs(30),
            pause_max: Duration::from_secs(3600),
        }
    }
}

/// The renewal task.
#[derive(Debug)]
pub struct Renewal {
    /// The daemon's state folder, which contains its membership.
    pub state: PathBuf,
    pub key: Key,
    /// The authorizer, which shows the certificate to peers.
    pub gate: Arc<Authenticator>,
    /// Where revocation lists in an answer are stored.
    pub denials: Arc<RevocationFile>,
    /// The overlay, used if the issuer is connected anyway.
    pub net: Handle,
    pub pace: Pace,
}

/// Why one attempt failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Joining(#[from] Error),
    #[error(transparent)]
    Files(#[from] domain_files::Error),
}

/// State between two checks.
#[derive(Debug, Default)]
struct Waiting {
    failures: u32,
    not_before: Moment,
    warned_at: Option<Moment>,
}

impl Renewal {
    /// Renew until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut dice = Dice::of(self.key.peer());
        let mut waiting = Waiting::default();
        loop {
            self.look(&mut waiting, &mut dice).await;
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(self.pace.look) => {}
            }
        }
    }

    async fn look(&self, waiting: &mut Waiting, dice: &mut Dice) {
        if clock::now() < waiting.not_before {
            return;
        }
        match self.renewed_if_due(waiting).await {
            Ok(()) => waiting.failures = 0,
            Err(error) => {
                let pauses = Backoff::new(self.pace.pause_min, self.pace.pause_max);
                let pause = dice.jittered(pauses.pause(waiting.failures), 30);
                waiting.failures = waiting.failures.saturating_add(1);
                waiting.not_before = clock::now().plus(pause);
                tracing::warn!(%error, again_in_secs = pause.as_secs(), "the certificate is not renewed yet");
            }
        }
    }

    async fn renewed_if_due(&self, waiting: &mut Waiting) -> Result<(), Failed> {
        let state = self.state.clone();
        let held = off(move || member_files::load_membership(&state)).await.map_err(Error::from)?;
        let Some(held) = held else { return Ok(()) };
        let certificate = held.certificate().map_err(Error::from)?;
        self.take_up(&held, &certificate).await?;
        let now = clock::calendar();
        let Some(issuer) = held.issuer_key().map_err(Error::from)? else {
            warn_of_root_certificate(&certificate, now, waiting);
            return Ok(());
        };
        let is_early = certificate::is_early(certificate.issued, now);
        // If this host's own clock is wrong, the certificate may be valid.
        let is_own_fault = is_early && matches!(self.gate.members_clock(), Members::Differ { .. });
        if is_own_fault || (now < due(&certificate) && !is_early) {
            return Ok(());
        }
        let answer = match issuer == self.key.peer() {
            true => self.ask_own_files(&held).await?,
            false => self.ask(&held, &certificate, issuer).await?,
        };
        self.keep(held, answer).await?;
        Ok(())
    }

    /// If a command stored another certificate of this domain in the state folder, show that to peers.
    async fn take_up(&self, held: &Membership, certificate: &Certificate) -> Result<(), Error> {
        let shown = self.gate.newest_chain();
        if shown.as_ref() == Some(&held.chain) {
            return Ok(());
        }
        let (state, membership) = (self.state.clone(), held.clone());
        let previous = off(move || member_files::load_previous(&state, &membership)).await?;
        let now = clock::calendar();
        let verified = held.trust(Readers::Nobody).and_then(|trust| {
            let deny = self.gate.decide(|gate| gate.denials().clone());
            certificate::verify(&held.chain, self.key.peer(), now, &deny, &trust)
        });
        let same_root = shown
            .and_then(|shown| shown.certificate.unverified().ok())
            .is_some_and(|shown| shown.root == certificate.root && shown.domain == certificate.domain);
        if verified.is_ok() && same_root {
            tracing::info!(serial = %certificate.serial, "a new certificate is shown from now on");
            self.gate.show(held.chain.clone(), previous);
        }
        Ok(())
    }

    async fn ask_own_files(&self, held: &Membership) -> Result<Admitted, Failed> {
        let files = DomainFiles::new(&self.state, self.key.clone());
        let (chain, own, members) = (held.chain.clone(), self.key.peer(), self.gate.members_clock());
        off(move || {
            let now = clock::calendar();
            files.check_clock(now, clock::now(), members)?;
            let chain = files.renew(&chain, own, now)?;
            let denials = files.denials(now)?;
            Ok(Admitted { chain, directories: Vec::new(), seeds: Vec::new(), denials })
        })
        .await
    }

    async fn ask(
        &self,
        held: &Membership,
        certificate: &Certificate,
        issuer: PeerKey,
    ) -> Result<Admitted, Error> {
        let question = Question::Renew { chain: Box::new(held.chain.clone()) };
        let domain = certificate.domain.clone();
        if self.net.is_ready(issuer) {
            let body = postcard::to_stdvec(&question).expect("plain data is encoded");
            let answer = self.net.ask(issuer, Protocol::Join, &body, DEADLINE).await;
            let answer =
                answer.map_err(|error| error.to_string()).and_then(|answer| dial::understood(&answer));
            if let Ok(reply) = answer {
                return admitted(reply, &domain);
            }
        }
        let addresses = held.issuer.clone();
        let target = IssuerTarget { domain: domain.clone(), root: certificate.root, issuer, addresses };
        let mut quiet =
            |tried: &Tried| tracing::debug!(address = %tried.address, said = tried.said, "no issuer");
        let reply = dial::ask(&self.key, &target, &question, DEADLINE, &mut quiet).await?;
        admitted(reply, &domain)
    }

    async fn keep(&self, mut held: Membership, answer: Admitted) -> Result<(), Error> {
        let before = held.clone();
        let denials = held.take(answer, self.key.peer(), clock::calendar())?;
        // Before the certificate, so that a crash between the two leaves no new certificate with old lists.
        // A stored list may be newer; a refusal is in the audit log.
        let _ = self.denials.take(&self.gate, self.key.peer(), &denials).await;
        let (state, stored, previous) = (self.state.clone(), held.clone(), before.chain.clone());
        off(move || member_files::replace_membership(&state, &before, &stored)).await?;
        let serial = held.certificate()?.serial;
        self.gate.show(held.chain, Some(previous));
        tracing::info!(%serial, "the certificate was renewed");
        Ok(())
    }
}

fn warn_of_root_certificate(certificate: &Certificate, now: Time, waiting: &mut Waiting) {
    let recently = waiting.warned_at.is_some_and(|warned_at| clock::now().since(warned_at) < WARNED_EACH);
    if now.plus(WARNED_BEFORE) >= certificate.expires && !recently {
        waiting.warned_at = Some(clock::now());
        let days = certificate.expires.since(now).as_secs() / 86_400;
        tracing::warn!(
            days,
            "the root signed this daemon's certificate, so no issuer renews it: type `visperf domain certify` where the \
             root key is, and `visperf join` with what it prints here"
        );
    }
}

/// When a daemon requests renewal: after half of the certificate's life and up to a twentieth more. The
/// addition depends on the daemon's key, so that hosts that were installed together do not ask together.
fn due(certificate: &Certificate) -> Time {
    let life = certificate.expires.since(certificate.issued);
    let late = Dice::of(certificate.peer).span(Duration::ZERO, life / 20);
    certificate::renewed_from(certificate).plus(late)
}
