//! The issuer's answers to joiners and to members that renew their certificates.
//!
//! Rule: every request is rate limited against guessing and written to the audit log. A fault of this host is
//! logged here; the peer receives only a general message.
//! Not here: which certificate is issued (`issuer_store`), the stream that carries a request (`net`).

use super::audit::{self, AuditedAction, Subject, Trail};
use super::certificate;
use super::domain_files::{DomainFiles, Error, Replacement};
use super::join::JoinLimiter;
use super::peer_clocks::Members;
use super::refused::Refused;
use super::replace_refused;
use super::throttle::{Rate, Throttle};
use std::time::Duration;
use wire::address::Address;
use wire::credential::{Certificate, Roles};
use wire::id::{HostName, PeerKey};
use wire::join::{Admitted, Directory, Question, Reply};
use wire::time::{Moment, Time};

/// How often one host name may pass to another key. Enough for a host that is restarted again and again
/// during a repair, too little for two machines of one name that take it from each other.
const REPLACED_EACH: Rate = Rate { burst: 3, interval: Duration::from_secs(20 * 60) };
/// The same for all host names: high enough that a whole cluster that starts at once is not delayed.
const REPLACED_ALL: Rate = Rate { burst: 10_000, interval: Duration::from_millis(10) };

/// The issuer of a domain, on top of the domain's files. Its calls read and write files: do not call it on a
/// thread that must not block.
#[derive(Debug)]
pub struct Issuer {
    files: DomainFiles,
    join_limiter: JoinLimiter,
    directories: Vec<Directory>,
    seeds: Vec<Address>,
    clock: Members,
    replacements: Throttle<HostName>,
}

impl Issuer {
    /// An issuer that sends these directories and seeds to the peers that it admits.
    #[must_use]
    pub fn new(files: DomainFiles, directories: Vec<Directory>, seeds: Vec<Address>) -> Issuer {
        Issuer {
            files,
            join_limiter: JoinLimiter::default(),
            directories,
            seeds,
            clock: Members::Unknown,
            replacements: Throttle::new(REPLACED_EACH, REPLACED_ALL),
        }
    }

    #[must_use]
    pub fn files(&self) -> &DomainFiles {
        &self.files
    }

    /// Replace the seeds that the next joiners receive: the members known now.
    pub fn set_seeds(&mut self, seeds: Vec<Address>) {
        self.seeds = seeds;
    }

    /// Replace what the members' clocks say about this host's clock.
    pub fn set_clock(&mut self, clock: Members) {
        self.clock = clock;
    }

    /// Check that this host's clock may be used for signing.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check_clock(&self, now: Time, at: Moment) -> Result<(), Error> {
        self.files.check_clock(now, at, self.clock)
    }

    /// Answer the request of `peer`, whose key the connection has proved.
    pub fn answer(
        &mut self,
        question: &Question,
        peer: PeerKey,
        now: Time,
        at: Moment,
        trail: &mut Trail,
    ) -> Reply {
        let what = match question {
            Question::Join(_) => AuditedAction::Join,
            Question::Replace(_) => AuditedAction::Replace,
            Question::Renew { .. } => AuditedAction::Renew,
        };
        let said = match question {
            Question::Join(join) | Question::Replace(join) => Some(join.host.to_string()),
            Question::Renew { chain } => audit::said(chain),
        };
        let subject = Subject { what, ..Subject::stranger(peer) };
        let refused = match self.decide(question, peer, now, at) {
            Ok((admitted, replaced)) => {
                let opened = certificate::open(&admitted.chain).map(|opened| opened.certificate);
                let given = opened.as_ref().ok();
                let subject = Subject {
                    domain: given.map(|given| &given.domain),
                    host: given.map(|given| &given.host),
                    ..subject
                };
                let roles = given.map(|given| given.roles).unwrap_or_default();
                trail.admit(subject, reason(roles, &replaced), now, at);
                return Reply::Admitted(Box::new(admitted));
            }
            // Not the peer's fault: it may ask again at any time.
            Err(Error::Refused(
                refused @ (Refused::IssuerClock { .. }
                | Refused::Replace(replace_refused::Refused::Often { .. })),
            )) => refused,
            Err(Error::Refused(refused)) => self.join_limiter.handle_refusal(peer, refused, at),
            Err(error) => {
                tracing::error!(%peer, %error, "cannot answer who wants to join or renew");
                let reason = "the issuer cannot use its files; its log says why, ask its operator";
                return Reply::Refused(reason.to_owned());
            }
        };
        trail.refuse(Subject { said: said.as_deref(), ..subject }, &refused, now, at);
        Reply::Refused(refused.to_string())
    }

    /// Decide a request: the answer, and the certificates that were revoked for it.
    fn decide(
        &mut self,
        question: &Question,
        peer: PeerKey,
        now: Time,
        at: Moment,
    ) -> Result<(Admitted, Vec<Certificate>), Error> {
        self.join_limiter.admit(peer, at)?;
        self.check_clock(now, at)?;
        let (chain, replaced) = match question {
            Question::Join(join) => (self.files.redeem(join, peer, now)?, Vec::new()),
            Question::Renew { chain } => (self.files.renew(chain, peer, now)?, Vec::new()),
            Question::Replace(join) => {
                let often = &mut self.replacements;
                let mut allow = |holder: &Certificate| allow_replacement(often, holder, peer, at);
                let Replacement { chain, replaced } = self.files.replace(join, peer, now, &mut allow)?;
                (chain, replaced)
            }
        };
        let denials = self.files.denials(now)?;
        let (directories, seeds) = (self.directories.clone(), self.seeds.clone());
        Ok((Admitted { chain, directories, seeds, denials }, replaced))
    }
}

/// Check that the name of `holder` may pass to `joiner` now.
fn allow_replacement(
    often: &mut Throttle<HostName>,
    holder: &Certificate,
    joiner: PeerKey,
    at: Moment,
) -> Result<(), Refused> {
    let host = holder.host.clone();
    let wait = often.wait_of(&host, at);
    if wait > Duration::ZERO {
        let (peer, issued) = (holder.peer, holder.issued);
        return Err(replace_refused::Refused::Often { host, peer, issued, joiner, wait }.into());
    }
    often.count_anyhow(host, at);
    Ok(())
}

/// Reason of an admission in the audit log.
fn reason(roles: Roles, replaced: &[Certificate]) -> String {
    let shown = |certificate: &Certificate| {
        let Certificate { peer, serial, .. } = certificate;
        format!("; in place of {peer}, whose certificate {serial} is revoked")
    };
    roles.to_string() + &replaced.iter().map(shown).collect::<String>()
}
