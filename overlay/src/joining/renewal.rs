//! A daemon's certificate kept good: renewed from half of its life on, shown to others from then on.
//!
//! Rule: it is tried until it is renewed, never in a storm: when a daemon begins follows from its key, and the pauses
//! between attempts grow and are jittered. A certificate that a command put into the state folder meanwhile is taken up.
//! One that holds from a later time only was signed by a wrong clock: it is replaced at once, and the one before it is
//! shown until then.
//! What the root signed itself only its keeper renews; that is told in time.
//! Not here: who is given what (`identity::book`), how the issuer is reached (`dial`).

use super::denials::DenialFile;
use super::dial::{self, Errand};
use super::{Error, Tried, admitted, off};
use crate::clock;
use crate::dice::Dice;
use crate::gatekeeper::Gatekeeper;
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
use wire::credential::Certificate;
use wire::id::PeerKey;
use wire::join::{Admitted, Question};
use wire::time::{Moment, Time};

/// How long one attempt may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// When somebody is told that only the root's keeper can renew: time enough for a holiday.
const TOLD_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// How often that is told.
const TOLD_EACH: Duration = Duration::from_secs(86_400);

/// How often a daemon looks, and how long it waits between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two looks at the clock and the file: calendars step, hosts sleep.
    pub look: Duration,
    /// After the first failure.
    pub pause_min: Duration,
    /// The longest.
    pub pause_max: Duration,
}

impl Default for Pace {
    /// Half of a certificate's life is fifteen days: an hour is soon enough.
    fn default() -> Pace {
        Pace {
            look: Duration::from_secs(10),
            pause_min: Duration::from_secs(30),
            pause_max: Duration::from_secs(3600),
        }
    }
}

/// The task's parts.
#[derive(Debug)]
pub struct Renewal {
    /// The daemon's state folder, which holds its membership.
    pub state: PathBuf,
    /// Its key.
    pub key: Key,
    /// What shows the certificate.
    pub gate: Arc<Gatekeeper>,
    /// Where lists of denied that come with an answer are kept.
    pub denials: Arc<DenialFile>,
    /// The overlay, used where the issuer is connected anyway.
    pub net: Handle,
    /// How patiently.
    pub pace: Pace,
}

/// Why one attempt came to nothing.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Joining(#[from] Error),
    #[error(transparent)]
    Files(#[from] domain_files::Error),
}

/// What is between two looks.
#[derive(Debug, Default)]
struct Waiting {
    failures: u32,
    not_before: Moment,
    told: Option<Moment>,
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
                let doubled = self.pace.pause_min.saturating_mul(1 << waiting.failures.min(16));
                let pause = dice.jittered(doubled.min(self.pace.pause_max), 30);
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
            tell_of_root(&certificate, now, waiting);
            return Ok(());
        };
        let is_early = certificate::is_early(certificate.issued, now);
        // Where it is this host's clock that is wrong, the certificate may be good.
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

    /// A command has put another certificate of this domain into the state folder: show it.
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
        let errand = Errand { domain: domain.clone(), root: certificate.root, issuer, addresses };
        let mut quiet =
            |tried: &Tried| tracing::debug!(address = %tried.address, said = tried.said, "no issuer");
        let reply = dial::ask(&self.key, &errand, &question, DEADLINE, &mut quiet).await?;
        admitted(reply, &domain)
    }

    async fn keep(&self, mut held: Membership, answer: Admitted) -> Result<(), Error> {
        let before = held.clone();
        let denials = held.take(answer, self.key.peer(), clock::calendar())?;
        let (state, stored, previous) = (self.state.clone(), held.clone(), before.chain.clone());
        off(move || member_files::replace_membership(&state, &before, &stored)).await?;
        let serial = held.certificate()?.serial;
        self.gate.show(held.chain, Some(previous));
        tracing::info!(%serial, "the certificate was renewed");
        // Whoever holds a newer one knows better; what is not believed is in the audit.
        let _ = self.denials.take(&self.gate, self.key.peer(), &denials).await;
        Ok(())
    }
}

fn tell_of_root(certificate: &Certificate, now: Time, waiting: &mut Waiting) {
    let recently = waiting.told.is_some_and(|told| clock::now().since(told) < TOLD_EACH);
    if now.plus(TOLD_BEFORE) >= certificate.expires && !recently {
        waiting.told = Some(clock::now());
        let days = certificate.expires.since(now).as_secs() / 86_400;
        tracing::warn!(
            days,
            "the root signed this daemon's certificate, so nobody renews it: type `visperf domain certify` where the \
             root key is, and `visperf join` with what it prints here"
        );
    }
}

/// From when a daemon asks: half of the certificate's life and up to a twentieth more, which follows from its key, so
/// that hosts that were installed together do not ask together.
fn due(certificate: &Certificate) -> Time {
    let life = certificate.expires.since(certificate.issued);
    let late = Dice::of(certificate.peer).span(Duration::ZERO, life / 20);
    certificate::renewed_from(certificate).plus(late)
}
